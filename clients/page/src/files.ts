/** Files that the page opens and saves, and what it can tell about a text before it is asked about. */

import { make } from "./dom.ts";

/** Read a file of text; of a mail its subject, sender, date and plain text. */
export async function readText(file: File): Promise<string> {
  const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  return /\.eml$/i.test(file.name) ? readMail(text) : text;
}

function readMail(written: string): string {
  const { head, body } = partOf(written);
  const shown = ["subject", "from", "date"].flatMap((name) => (head.has(name) ? [`${title(name)}: ${head.get(name)}`] : []));
  return `${shown.join("\n")}\n\n${plainOf(head, body)}`.trim();
}

function partOf(written: string): { head: Map<string, string>; body: string } {
  const [top = "", ...rest] = written.split(/\r?\n\r?\n/);
  const fields = top.replace(/\r?\n[ \t]+/g, " ").split(/\r?\n/).map((line) => /^([\w-]+):\s*(.*)$/.exec(line));
  return { head: new Map(fields.flatMap((field) => (field ? [[field[1]!.toLowerCase(), field[2]!]] : []))), body: rest.join("\n\n") };
}

function plainOf(head: Map<string, string>, body: string): string {
  const type = head.get("content-type") ?? "text/plain";
  const boundary = /boundary="?([^";]+)/.exec(type)?.[1];
  if (boundary) {
    const parts = body.split(`--${boundary}`).slice(1, -1).map((part) => partOf(part.trimStart()));
    const plain = parts.find((part) => /^(text\/plain|multipart)/.test(part.head.get("content-type") ?? "text/plain")) ?? parts[0];
    return plain ? plainOf(plain.head, plain.body) : "";
  }
  const encoding = head.get("content-transfer-encoding")?.toLowerCase();
  const bytes = (binary: string): string => new TextDecoder().decode(Uint8Array.from(binary, (one) => one.charCodeAt(0)));
  if (encoding === "base64") return bytes(atob(body.replace(/\s/g, "")));
  if (encoding !== "quoted-printable") return body;
  const code = (_: string, hex: string): string => String.fromCharCode(parseInt(hex, 16));
  return bytes(body.replace(/=\r?\n/g, "").replace(/=([0-9A-F]{2})/gi, code));
}

function title(name: string): string {
  return name[0]!.toUpperCase() + name.slice(1);
}

/** Offer a file to be saved. */
export function saveFile(name: string, type: string, content: BlobPart): void {
  const href = URL.createObjectURL(new Blob([content], { type }));
  make("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

/** Return about how many tokens the server counts in a text: words and signs. */
export function countTokens(text: string): number {
  return text.match(/[\p{L}\p{M}\p{N}]+|[^\s\p{L}\p{M}\p{N}]/gu)?.length ?? 0;
}

/** Split a text at ends of paragraphs, or of lines, into parts of at most so many tokens where they allow it. */
export function splitText(text: string, most: number): string[] {
  const parts: string[] = [];
  let size = Infinity;
  for (const piece of text.split(/(?<=\n)/)) {
    const added = countTokens(piece);
    if (size + added > most) parts.push(""), (size = 0);
    parts[parts.length - 1] += piece;
    size += added;
  }
  return parts.map((part) => part.trim()).filter(Boolean);
}

const COMMON = new Set("the a an and or of to in is are was were i you we he she it they for on at with be have has not this that my".split(" "));

/** Whether a text of some length has hardly a common English word. */
export function looksForeign(text: string): boolean {
  const words = text.toLowerCase().match(/\p{L}+/gu)?.slice(0, 300) ?? [];
  return words.length >= 12 && words.filter((word) => COMMON.has(word)).length < words.length / 20;
}

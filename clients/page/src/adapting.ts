/** What makes an adapter of rows whose labels a reader has set: a command, or the server, where it is set to. */

import { share } from "./dom.ts";
import { saveFile } from "./files.ts";
import { shell } from "./snippets.ts";
import { choiceOf, type Question, requestOf } from "./state.ts";

/** Sends a document to a path of the server. */
export type Post = (path: string, document: object) => Promise<Response>;

/** Have the server make an adapter of texts and their labels, save it as a file, and return what is told. */
export async function makeAdapter(post: Post, question: Question, rows: [string, string][]): Promise<string> {
  const { context: _, ...asked } = requestOf("", question);
  const labelled = rows.map(([context, label]) => {
    return { context, labels: (question.kind === "several" ? label.split("; ") : [label]).filter(Boolean) };
  });
  const response = await post("v1/adapters", { ...asked, rows: labelled });
  const made = await response.json();
  if (!response.ok) return made.message;
  if (!made.is_better) return `${rows.length} rows show no certain gain yet: correct more.`;
  const file = `${nameOf(question)}.safetensors`;
  saveFile(file, "application/octet-stream", Uint8Array.from(atob(made.file), (byte) => byte.charCodeAt(0)));
  const told = `Cross-validated on your ${rows.length} rows: ${share(made.before)} right before, ${share(made.after)} after`;
  return `Saved as ${file}. ${told}. Put it into the folder that MQAN_ADAPTERS names.`;
}

/** Write the command for a table of texts and labels; `found` are the labels that there are, in their order. */
export function adaptCommand(file: string, question: Question, found: string[]): string {
  const { kind, labels, adapter } = question;
  const isScale = kind === "scale";
  const apart = found.find((label) => (isScale ? /[;,]/ : /[;=]/).test(label));
  if (apart) return `# “${apart}” has a sign that stands between labels: ask with another label.`;
  const choices = adapter || isScale ? found.filter(Boolean) : labels.map(choiceOf);
  const told = choices.map((choice) =>
    typeof choice === "string" ? choice : `${choice.label}=${(choice.description ?? "").replaceAll(";", ",")}`);
  return [
    `mqan adapt ${file} --text text --label label`,
    `--question ${shell(question.question)}`,
    isScale ? `--scale ${shell(told.join(", "))}` : `--labels ${shell(told.join("; "))}`,
    ...(kind === "or_none" || kind === "several" ? ["--none"] : []),
    `--name ${shell(nameOf(question))} --output adapters`,
  ].join(" \\\n  ");
}

/** Return a name that an adapter may have. */
function nameOf({ question, adapter }: Question): string {
  return adapter || question.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 64) || "labels";
}

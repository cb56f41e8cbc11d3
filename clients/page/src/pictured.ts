/** What is shown as a picture: the text with its marks, and the answers with the probabilities of their choices. */

import { make, share } from "./dom.ts";
import { COLOURS, colourOf } from "./marks.ts";
import { toldOf } from "./saved.ts";
import type { Result } from "./shown.ts";
import type { State } from "./state.ts";

const WIDTH = 840;
const PAD = 24;
const LINE = 26;
const BAR = 12;
const DENSITY = 2; // pixels of the picture for one of the page
const MAX_LINES = 250; // of the text: browsers bound how high a picture is
const PLAIN = "16px system-ui, sans-serif";
const LARGE = "600 20px system-ui, sans-serif";
const SMALL = "700 12px system-ui, sans-serif";

interface Piece {
  text: string;
  font?: string;
  ink?: string;
  /** Of a mark, or of a badge with a number. */
  colour?: string;
  isBadge?: boolean;
}

interface Line {
  words: (Piece & { x: number; width: number })[];
  bar?: { colour: string; part: number };
}

/** Draw questions and answers, and the text as `box` marks it. */
export async function toImage(state: State, results: Result[], box: HTMLElement): Promise<Blob> {
  const style = getComputedStyle(document.documentElement);
  const [page = "", ink = "", soft = ""] = ["page", "ink", "soft"].map((name) => style.getPropertyValue(`--${name}`));
  const canvas = make("canvas");
  const pen = canvas.getContext("2d")!;
  const lines = wrap(pen, [...box.childNodes].flatMap(piecesOf));
  if (lines.length > MAX_LINES) lines.splice(MAX_LINES, Infinity, ...wrap(pen, [{ text: "…" }]));
  for (const [i, { question, answer, probability, choices }] of toldOf(state, results).entries()) {
    const colour = COLOURS[colourOf(i + 1)]!;
    lines.push({ words: [] });
    lines.push(...wrap(pen, [{ text: ` ${i + 1} `, font: SMALL, colour, isBadge: true }, { text: ` ${question}`, ink: soft }]));
    lines.push(...wrap(pen, [{ text: answer, font: LARGE }, { text: `  ${share(probability)}`, ink: soft }]));
    for (const choice of choices) {
      lines.push(...wrap(pen, [{ text: choice.label }, { text: `  ${share(choice.probability)}`, ink: soft }]));
      lines.push({ words: [], bar: { colour, part: choice.probability } });
    }
  }
  canvas.width = WIDTH * DENSITY;
  canvas.height = lines.reduce((sum, { bar }) => sum + (bar ? BAR : LINE), 2 * PAD) * DENSITY;
  pen.scale(DENSITY, DENSITY);
  pen.fillStyle = page;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  let y = PAD;
  for (const line of lines) {
    draw(pen, line, y, ink);
    y += line.bar ? BAR : LINE;
  }
  return new Promise((done, fail) =>
    canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("the picture is too large"))), "image/png"));
}

/** A part of the text as it is marked, with the numbers of its answers. */
function piecesOf(node: Node): Piece[] {
  const text = node.textContent ?? "";
  if (!(node instanceof HTMLElement) || !node.matches(".place")) return [{ text }];
  const colour = getComputedStyle(node).getPropertyValue("--c");
  const chip = node.dataset["chip"];
  return [{ text, colour }, ...(chip ? [{ text: ` ${chip} `, font: SMALL, colour, isBadge: true }] : [])];
}

/** Put pieces into lines; words that are longer than one are broken. */
function wrap(pen: CanvasRenderingContext2D, pieces: Piece[]): Line[] {
  const lines: Line[] = [{ words: [] }];
  let x = PAD;
  for (const piece of pieces) {
    pen.font = piece.font ?? PLAIN;
    const widthOf = (word: string): number => pen.measureText(word).width;
    const words = piece.isBadge ? [piece.text] : piece.text.split(/(\n)|(?<=\s)/).filter(Boolean);
    for (const word of words.flatMap((one) => (widthOf(one) > WIDTH - 2 * PAD ? Array.from(one) : [one]))) {
      const width = word === "\n" ? 0 : widthOf(word);
      if (word === "\n" || (x + width > WIDTH - PAD && x > PAD)) {
        lines.push({ words: [] });
        x = PAD;
      }
      if (word !== "\n") lines.at(-1)!.words.push({ ...piece, text: word, x, width });
      x += width;
    }
  }
  return lines;
}

function draw(pen: CanvasRenderingContext2D, { words, bar }: Line, y: number, usual: string): void {
  for (const { text, x, width, font = PLAIN, ink = usual, colour, isBadge } of words) {
    if (colour) {
      pen.fillStyle = colour;
      if (!isBadge) pen.fillRect(x, y + LINE - 5, width, 2);
      pen.globalAlpha = isBadge ? 1 : 0.18; // as in style.css
      pen.fillRect(x, y + 4, width, LINE - 8);
      pen.globalAlpha = 1;
    }
    [pen.font, pen.fillStyle] = [font, isBadge ? "#fff" : ink];
    pen.fillText(text, x, y + 0.7 * LINE);
  }
  if (!bar) return;
  pen.fillStyle = bar.colour;
  pen.fillRect(PAD, y, Math.max(2, bar.part * (WIDTH - 2 * PAD)), 6);
}

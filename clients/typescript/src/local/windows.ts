/**
 * A request as the reader sees it: windows of word pieces, and where the words stand in them.
 *
 *     [CLS] question [SEP] context [SEP]                                  without choices
 *     [CLS] question [SEP] label 1 [SEP] label 2 [SEP] context [SEP]      with them
 *
 * All labels begin at the same position, and do not attend to each other. A long context is read in windows that
 * overlap; a word counts in the window in which it has the most text around it.
 */

import { InvalidRequestError } from "../errors.ts";
import { BETWEEN, FIRST, type WordPieces } from "./pieces.ts";
import type { Token } from "./tokens.ts";

const WINDOW = 384; // pieces of a window, question and choices included
const LEAST_CONTEXT = 128; // pieces of context in a window
const OVERLAP = 64; // pieces that neighbouring windows share
const MOST_QUESTION = 256; // pieces of the question and of the longest label
const MOST_LABELS = 1024; // pieces of all labels
const SHARED = 1; // the group that attends to all, and to which all attend

export interface Window {
  pieces: number[];
  positions: number[];
  segments: number[];
  groups: number[];
  /** First and last piece of each word: the question's, the labels' with their separators, the context's. */
  firsts: number[];
  lasts: number[];
  /** Words of this window in front of the context's. */
  numBefore: number;
  /** The context's words that this window holds from, and those that count as read here. */
  start: number;
  counted: [number, number];
}

/** Lay a request out; refuse a question or labels that are longer than a window allows. */
export function windowsOf(pieces: WordPieces, question: Token[], choices: Token[][], context: Token[]): Window[] {
  const ids = (tokens: Token[]): number[][] => tokens.map(({ word }) => pieces.ids(word));
  const between = pieces.idOf(BETWEEN);
  const labels = choices.map((tokens) => ids(tokens).flat());
  const longest = Math.max(0, ...labels.map(({ length }) => length));
  const contextIds = ids(context);
  const head: Window = {
    pieces: [pieces.idOf(FIRST)], positions: [], segments: [], groups: [], firsts: [], lasts: [], numBefore: 0, start: 0,
    counted: [0, 0],
  };
  for (const word of ids(question)) add(head, word);
  const numQuestion = head.pieces.length - 1;
  if (numQuestion > MOST_QUESTION) throw tooLong("question", numQuestion, MOST_QUESTION);
  if (numQuestion + longest > MOST_QUESTION) throw tooLong("choices", numQuestion + longest, MOST_QUESTION);
  head.pieces.push(between);
  head.positions = [...head.pieces.keys()];
  head.groups = head.pieces.map(() => SHARED);
  const begin = head.pieces.length; // the position at which all labels begin
  for (const [i, label] of labels.entries()) {
    add(head, [between, ...label]);
    head.positions.push(...Array.from({ length: 1 + label.length }, (_, at) => begin + at));
    head.groups.push(...Array.from({ length: 1 + label.length }, () => SHARED + 1 + i));
  }
  if (head.pieces.length - begin > MOST_LABELS) throw tooLong("choices", head.pieces.length - begin, MOST_LABELS);
  head.segments = head.pieces.map(() => 0);
  head.numBefore = head.firsts.length;
  const next = begin + (labels.length ? 1 + longest : 0);
  const size = Math.max(WINDOW - head.pieces.length - 1, LEAST_CONTEXT);
  return partsOf(contextIds.map(({ length }) => length), size).map(({ start, end, counted }) => {
    const window = { ...head, pieces: [...head.pieces], firsts: [...head.firsts], lasts: [...head.lasts], start, counted };
    for (const word of contextIds.slice(start, end)) add(window, word);
    window.pieces.push(between);
    const of = Array.from({ length: window.pieces.length - head.pieces.length }, (_, at) => next + at);
    window.positions = [...head.positions, ...of];
    window.segments = [...head.segments, ...of.map(() => 1)];
    window.groups = [...head.groups, ...of.map(() => SHARED)];
    return window;
  });
}

function add(window: Window, word: number[]): void {
  window.firsts.push(window.pieces.length);
  window.pieces.push(...word);
  window.lasts.push(window.pieces.length - 1);
}

/** Cut words of so many pieces into parts of at most `size` pieces that overlap. */
function partsOf(lengths: number[], size: number) {
  const offsets = [0];
  for (const length of lengths) offsets.push((offsets.at(-1) as number) + length);
  const parts: { start: number; end: number; counted: [number, number] }[] = [];
  for (let start = 0; ;) {
    const most = (offsets[start] as number) + size;
    let end = start;
    while (end < lengths.length && (offsets[end + 1] as number) <= most) end += 1;
    const before = parts.at(-1);
    const border = before ? (start + before.end) >> 1 : 0;
    if (before) before.counted[1] = border;
    parts.push({ start, end, counted: [border, lengths.length] });
    if (end >= lengths.length) return parts;
    const least = (offsets[end] as number) - OVERLAP;
    start = Math.max(offsets.findIndex((offset) => offset >= least), start + 1);
  }
}

function tooLong(field: "question" | "choices", found: number, most: number): InvalidRequestError {
  const message = `${field} needs ${found} word pieces; at most ${most} are read.`;
  return new InvalidRequestError(message, { code: `${field}_too_long`, hint: "Shorten it." });
}

/** Colours of questions and shapes of sources, as in notebooks, terminals and saved pages. */

import table from "../../python/mqan_client/marks.json";

export const SOURCES = table.sources;
export const EVIDENCE = table.evidence;
export const COLOURS = table.colours;

/** Return the number of the colour of a question or a field; build.mjs makes the class `c` or `e` of it. */
export function colourOf(number: number): number {
  return (number - 1) % table.colours.length;
}

/** What has a place in a text: words of an answer, what decided for a label, a value of a record. */
export interface Item {
  /** Ids of what it belongs to, each `card.part`. */
  ids: string[];
  source: "context" | "question";
  start: number;
  end: number;
  /** The number of its question or field. */
  number: number;
  /** Shown in the mark; without it the item is evidence, which shows only when its card is pointed at. */
  chip?: string;
}

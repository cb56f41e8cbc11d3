/** The text with its marks, and the cards of the answers. */

import { type Answer, ClientError, type FilledRecord } from "../../typescript/src/index.ts";
import { makeCard, makeProblem, type Told } from "./answers.ts";
import { at } from "./dom.ts";
import { decidedOf } from "./fields.ts";
import { Heat } from "./heat.ts";
import { markPlaces } from "./marked.ts";
import type { Item } from "./marks.ts";
import { makeRecordCard } from "./records.ts";
import type { State } from "./state.ts";
import { watch } from "./watched.ts";

/** What became of a question. */
export type Result = Answer | FilledRecord | ClientError;

const HINT = "Point at a word, or tap it, to see how likely it is and what else it could have been.";
const told = new Map<string, Told>();
let heat: Heat | undefined;

/** Begin to light up what belongs together. */
export function watchShown(): void {
  watch(at("shown"), (id = "") => {
    at("detail").textContent = told.get(id)?.detail ?? HINT;
    heat?.show(told.get(id)?.weights ?? []);
  });
}

/** Show answers in the order of their questions, each with a number; the fields of a record have one each. */
export function show(state: State, results: Result[]): void {
  const items: Item[] = [];
  told.clear();
  let number = 1;
  const cards = state.questions.map(({ question, labels }, i) => {
    const result = results[i];
    if (result === undefined || result instanceof ClientError) {
      return makeProblem(question, result ?? new ClientError("There is no answer.", { code: "no_answer" }));
    }
    const isRecord = "record" in result;
    const card = isRecord ? makeRecordCard(number, question, result, decidedOf(labels)) : makeCard(number, question, result);
    number += isRecord ? Object.keys(result.fields).length : 1;
    items.push(...card.items);
    for (const [id, one] of card.told) told.set(id, one);
    return card.element;
  });
  at("answers").replaceChildren(...cards);
  at("text").replaceChildren(...markPlaces(state.context, items));
  at("detail").textContent = HINT;
  heat?.show([]);
  heat = new Heat(at("text"));
  at("shown").hidden = false;
  scrollToFirst(at("text"));
}

/** Take the answers away. */
export function hide(): void {
  at("shown").hidden = true;
  at("answers").replaceChildren();
  at("text").replaceChildren();
}

/** Long texts open at their first quotation. */
function scrollToFirst(box: HTMLElement): void {
  const first = box.querySelector("mark.place");
  box.scrollTop = first ? first.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3 : 0;
}

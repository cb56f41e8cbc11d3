/** An answer as a card. */

import type { Answer, AnswerToken, ClientError } from "../../typescript/src/index.ts";
import { button, make, percent } from "./dom.ts";
import type { Weight } from "./heat.ts";
import type { Item, Links } from "./links.ts";
import { markPlaces } from "./marked.ts";

export interface Card {
  element: HTMLElement;
  /** What has a place in the text. */
  items: Item[];
}

/** Make the card of a question that was not answered because of an error. */
export function makeProblem(question: string, error: ClientError): HTMLElement {
  const told = [error.message, error.hint, error.requestId && `(request ${error.requestId})`].filter(Boolean).join(" ");
  return make("article", {}, make("h2", { dir: "auto" }, question), make("p", { class: "problem", role: "alert" }, told));
}

/** Shows what a step looked at. */
export type Look = (weights: Weight[]) => void;

/**
 * Make the card of an answer.
 *
 * @param name begins the ids of its items; unique on the page.
 */
export function makeCard(name: string, question: string, answer: Answer, links: Links, look: Look): Card {
  const items: Item[] = [];
  const parts = answer.answered ? words(name, answer, items, links, look) : [absent(answer)];
  if (answer.expected !== null) parts.push(make("p", { class: "of" }, `Expected value ${answer.expected.toFixed(2)}`));
  if (answer.choices.length) parts.push(bars(name, answer, items, links, look), without(answer));
  if (answer.windows > 1) parts.push(make("p", { class: "of" }, `Read in ${answer.windows} parts.`));
  const asked = items.filter((item) => item.source === "question");
  const title = make("h2", { dir: "auto" }, ...markPlaces(question, asked, links));
  const element = make("article", {}, title, ...parts);
  return { element, items: items.filter((item) => item.source === "context") };
}

function absent(answer: Answer): HTMLElement {
  const told = answer.choices.length && !isYesNo(answer) ? "∅ None of the choices " : "∅ Not in the text ";
  return make("p", { class: "absent" }, told, make("span", { class: "of" }, percent(answer.probability)));
}

function isYesNo({ choices }: Answer): boolean {
  return ["no yes", "false true"].includes(choices.map(({ label }) => label.trim().toLowerCase()).sort().join(" "));
}

/** Say how likely none of the choices is right. */
function without(answer: Answer): HTMLElement {
  return make("p", { class: "of" }, `${isYesNo(answer) ? "Not stated" : "None of these"}: ${percent(answer.none)}`);
}

function words(name: string, answer: Answer, items: Item[], links: Links, look: Look): HTMLElement[] {
  const line = make("p", { class: "words", dir: "auto" });
  const parts: HTMLElement[] = [line];
  if (answer.choices.length) line.append(make("strong", {}, answer.answer));
  else if (answer.tokens.length === 0) line.append("(empty)");
  else {
    const detail = make("p", { class: "detail", role: "status" }, "Point at a word, or tap it, to see where it came from.");
    line.append(...tokens(name, answer, detail, items, links, look));
    parts.push(detail);
  }
  const cut = answer.truncated ? ", cut at the limit" : "";
  line.append(" ", make("small", {}, percent(answer.confidence) + cut));
  return parts;
}

/** The words of an answer as buttons, with what stands between them in the answer. */
function tokens(name: string, answer: Answer, detail: HTMLElement, items: Item[], links: Links, look: Look): Node[] {
  let from = 0;
  return answer.tokens.flatMap((token, i) => {
    const id = `${name}t${i}`;
    if (token.span && token.source !== "vocabulary") items.push({ id, source: token.source, ...token.span });
    const found = answer.answer.indexOf(token.text, from);
    const between = found < 0 ? " " : answer.answer.slice(from, found);
    if (found >= 0) from = found + token.text.length;
    const label = `${token.text}, ${ORIGIN[token.source]}`;
    const element = button({ class: `token ${token.source}`, "aria-label": label }, () => {}, token.text);
    const step = answer.steps[i];
    links.addWord(id, element, () => {
      detail.textContent = [describe(token), step && instead(token, step)].filter(Boolean).join(" ");
      look(step?.context ?? []);
    });
    return [document.createTextNode(between), element];
  });
}

const ORIGIN = { context: "from the text", question: "from the question", vocabulary: "the model’s own word" } as const;

function describe(token: AnswerToken): string {
  const { context, question, vocabulary } = token.masses;
  const place = token.span ? `, characters ${token.span.start} to ${token.span.end}` : "";
  const masses = `text ${percent(context)}, question ${percent(question)}, own words ${percent(vocabulary)}`;
  return `“${token.text}” ${ORIGIN[token.source]}${place}; probability ${percent(token.probability)}. Shares of the sources: ${masses}.`;
}

type Step = Answer["steps"][number];

/** Say which other words came next, of those likelier than one in a hundred. */
function instead(token: AnswerToken, step: Step): string {
  const others = step.candidates.filter(({ text, probability }) => text !== token.text.toLowerCase() && probability > 0.01);
  const told = others.map(({ text, probability }) => `${text ? `“${text}”` : "the end"} ${percent(probability)}`);
  return told.length ? `Instead it could have been ${told.join(", ")}.` : "";
}

function bars(name: string, answer: Answer, items: Item[], links: Links, look: Look): HTMLElement {
  return make("ol", { class: "choices", "aria-label": "Choices" }, ...answer.choices.map((choice, i) => {
    const id = `${name}c${i}`;
    const isChosen = answer.answered && answer.chosen.includes(choice.label);
    const bar = make("span", { class: "bar" });
    bar.style.width = `${100 * choice.probability}%`;
    const label = make("bdi", {}, isChosen ? `✓ ${choice.label}` : choice.label);
    const of = make("span", { class: "of" }, percent(choice.probability));
    const row = button({ class: isChosen ? "choice chosen" : "choice" }, () => {}, label, of, bar);
    for (const { source, start, end } of choice.evidence) items.push({ id, source, start, end });
    links.addWord(id, row, () => look(isChosen ? (answer.steps[0]?.context ?? []) : []));
    return make("li", {}, row);
  }));
}

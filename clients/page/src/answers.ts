/** An answer as a card. */

import type { Answer, AnswerToken, Choice, ClientError, Quotation } from "../../typescript/src/index.ts";
import { button, make, percent, share } from "./dom.ts";
import type { Weight } from "./heat.ts";
import { markPlaces } from "./marked.ts";
import { colourOf, type Item, SOURCES } from "./marks.ts";

/** What is said when something lights up: a line, and what a step looked at. */
export interface Told {
  detail: string;
  weights?: Weight[];
}

export interface Card {
  element: HTMLElement;
  /** What has a place in the text. */
  items: Item[];
  /** What is said of each id. */
  told: Map<string, Told>;
}

/** Below this an answer is a guess, and says so. */
export const WEAK = 0.5;
const NONE = "None of these";

/** Make the card of a question that was not answered because of an error. */
export function makeProblem(question: string, error: ClientError): HTMLElement {
  const told = [error.message, error.hint, error.requestId && `(request ${error.requestId})`].filter(Boolean).join(" ");
  return make("article", {}, make("h2", { dir: "auto" }, question), make("p", { class: "problem", role: "alert" }, told));
}

/** Make the number of a question or a field, in its colour. */
export function badge(number: number): HTMLElement {
  return make("span", { class: `badge c${colourOf(number)}`, "data-chip": `${number}` });
}

/** Make the card of an answer to the question with a number. */
export function makeCard(number: number, question: string, answer: Answer): Card {
  const card = `q${number}`;
  const items: Item[] = [];
  const told = new Map<string, Told>();
  const parts = answer.answered ? words(card, number, answer, items, told) : [absent(answer)];
  if (answer.expected !== null) parts.push(make("p", { class: "of" }, `Expected value ${answer.expected.toFixed(2)}`));
  if (answer.choices.length) parts.push(bars(card, number, answer, items, told));
  else if (answer.alternatives.length) parts.push(rivals(card, number, answer, items));
  if (answer.windows > 1) parts.push(make("p", { class: "of" }, `Read in ${answer.windows} parts.`));
  const asked = items.filter((item) => item.source === "question");
  const title = make("h2", { dir: "auto" }, badge(number), ...markPlaces(question, asked));
  const element = make("article", { class: `c${colourOf(number)}`, "data-card": card }, title, ...parts);
  return { element, items: items.filter((item) => item.source === "context"), told };
}

/** Say that there is no answer; where that is a guess, what it might be. */
export function refusal({ choices, alternatives, confidence }: Pick<Answer, "choices" | "alternatives" | "confidence">): string {
  const absence = choices.length ? nothingOf(choices) : "Not in the text";
  if (confidence >= WEAK) return absence;
  const [likeliest] = [...choices.map(({ label, probability }) => ({ answer: label, probability })), ...alternatives]
    .sort((one, other) => other.probability - one.probability);
  const perhaps = likeliest ? `; perhaps: ${likeliest.answer} (${share(likeliest.probability)})` : "";
  return `Probably ${absence[0]?.toLowerCase()}${absence.slice(1)}${perhaps}`;
}

function absent(answer: Answer): HTMLElement {
  return make("p", { class: "absent", dir: "auto" }, `∅ ${refusal(answer)} `, make("span", { class: "of" }, share(answer.confidence)));
}

function nothingOf(choices: Choice[]): string {
  const isYesNo = ["no yes", "false true"].includes(choices.map(({ label }) => label.trim().toLowerCase()).sort().join(" "));
  return isYesNo ? "Not stated" : NONE;
}

function words(card: string, number: number, answer: Answer, items: Item[], told: Map<string, Told>): HTMLElement[] {
  const line = make("p", { class: "words", dir: "auto" });
  if (answer.confidence < WEAK) line.append(make("small", {}, "Perhaps: "));
  if (answer.choices.length) line.append(make("strong", {}, answer.answer));
  else if (answer.tokens.length === 0) line.append("(empty)");
  else line.append(...tokens(card, number, answer, items, told));
  const cut = answer.truncated ? ", cut at the limit" : "";
  line.append(" ", make("small", {}, share(answer.confidence) + cut));
  return [line];
}

/** The words of an answer as buttons, with what stands between them in the answer; its quotations become items. */
function tokens(card: string, number: number, answer: Answer, items: Item[], told: Map<string, Told>): Node[] {
  for (const { source, start, end } of answer.spans) {
    const within = answer.tokens.flatMap(({ source: from, span }, i) =>
      from === source && span && span.start < end && start < span.end ? [`${card}.t${i}`] : []);
    items.push({ ids: within, source, start, end, number, chip: `${number}` });
  }
  let from = 0;
  return answer.tokens.flatMap((token, i) => {
    const found = answer.answer.indexOf(token.text, from);
    const between = found < 0 ? " " : answer.answer.slice(from, found);
    if (found >= 0) from = found + token.text.length;
    const id = `${card}.t${i}`;
    const step = answer.steps[i];
    const detail = [describe(token), step && instead(token, step)].filter(Boolean).join(" ");
    told.set(id, { detail, weights: step?.context ?? [] });
    const label = `${token.text}, ${SOURCES[token.source].name}`;
    const joined = i && !between ? " joined" : "";
    const element = button({ class: `token ${token.source}${joined}`, "aria-label": label, "data-ids": id }, () => {}, token.text);
    return between ? [document.createTextNode(between), element] : [element];
  });
}

function describe(token: AnswerToken): string {
  const { context, question, vocabulary } = token.masses;
  const place = token.span ? `, characters ${token.span.start} to ${token.span.end}` : "";
  const masses = `text ${percent(context)}, question ${percent(question)}, own words ${percent(vocabulary)}`;
  const { name } = SOURCES[token.source];
  return `“${token.text}” ${name}${place}; probability ${percent(token.probability)}. Shares of the sources: ${masses}.`;
}

type Step = Answer["steps"][number];

/** Say which other words came next, of those likelier than one in a hundred. */
function instead(token: AnswerToken, step: Step): string {
  const others = step.candidates.filter(({ text, probability }) => text !== token.text.toLowerCase() && probability > 0.01);
  const told = others.map(({ text, probability }) => `${text ? `“${text}”` : "the end"} ${percent(probability)}`);
  return told.length ? `Instead it could have been ${told.join(", ")}.` : "";
}

function evidenceOf(id: string, number: number, places: Quotation[]): Item[] {
  return places.map(({ source, start, end }) => ({ ids: [id], source, start, end, number }));
}

/** Make a row with a bar as long as a probability is high. */
function bar(attributes: Record<string, string | undefined>, label: string, probability: number): HTMLElement {
  const line = make("span", { class: "bar" });
  line.style.width = `${100 * probability}%`;
  return button(attributes, () => {}, make("bdi", {}, label), make("span", { class: "of" }, share(probability)), line);
}

function bars(card: string, number: number, answer: Answer, items: Item[], told: Map<string, Told>): HTMLElement {
  const rows = answer.choices.map(({ label, probability, evidence }, i) => {
    const id = `${card}.c${i}`;
    const isChosen = answer.answered && answer.chosen.includes(label);
    items.push(...evidenceOf(id, number, evidence));
    const decided = evidence.map(({ text }) => `“${text}”`).join(", ");
    const detail = decided ? `Words that decided for ${label}: ${decided}.` : `${label}: ${share(probability)}.`;
    told.set(id, { detail, weights: isChosen ? (answer.steps[0]?.context ?? []) : [] });
    return bar({ class: isChosen ? "choice chosen" : "choice", "data-ids": id }, isChosen ? `✓ ${label}` : label, probability);
  });
  // Where none may be chosen, the labels leave room for it; else the labels share all, and this is told apart.
  const total = answer.choices.reduce((sum, { probability }) => sum + probability, answer.none);
  const absence = nothingOf(answer.choices);
  const name = absence === NONE && total > 1.005 ? "Chance that none fits" : absence;
  const nothing = bar({ class: "choice nothing", "data-ids": `${card}.none` }, name, answer.none);
  return make("ol", { class: "choices", "aria-label": "Choices" }, ...[...rows, nothing].map((row) => make("li", {}, row)));
}

/** What else the answer could be: folded, but for a guess. */
function rivals(card: string, number: number, { alternatives, confidence }: Answer, items: Item[]): HTMLElement {
  const rows = alternatives.map(({ answer, probability, spans }, i) => {
    items.push(...evidenceOf(`${card}.a${i}`, number, spans));
    return make("li", {}, bar({ class: "choice", "data-ids": `${card}.a${i}` }, answer, probability));
  });
  const told = make("summary", {}, `What else it could be (${rows.length})`);
  return make("details", { class: "rivals", ...(confidence < WEAK && { open: "" }) }, told, make("ol", { class: "choices" }, ...rows));
}

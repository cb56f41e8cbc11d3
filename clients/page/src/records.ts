/** A record as a card with a table: a row for each field, its value joined with its places in the text. */

import type { FilledField, FilledRecord } from "../../typescript/src/index.ts";
import { badge, type Card, type Told, WEAK } from "./answers.ts";
import { button, cut, make, share } from "./dom.ts";
import { colourOf, type Item } from "./marks.ts";

/**
 * Make the card of a record.
 *
 * @param first the number of its first field; each field has its own.
 * @param decided the fields that are decisions, whose places are evidence and no quotations.
 */
export function makeRecordCard(first: number, title: string, { fields }: FilledRecord, decided: Set<string>): Card {
  const items: Item[] = [];
  const told = new Map<string, Told>();
  const rows = Object.entries(fields).map(([label, field], i) => {
    const [number, id] = [first + i, `q${first}.f${i}`];
    const isQuoted = !decided.has(label);
    const chip = `${number} ${cut(label, 24)}`;
    for (const { source, start, end } of field.spans) {
      items.push({ ids: [id], source, start, end, number, ...(isQuoted && { chip }) });
    }
    told.set(id, { detail: `${field.question} ${field.reason ?? ""}`.trim() });
    const value = make("td", {}, button({ class: `choice c${colourOf(number)}`, "data-ids": id }, () => {}, ...shown(field)));
    return make("tr", {}, make("th", { scope: "row" }, badge(number), make("bdi", {}, label)), value);
  });
  const table = make("table", { class: "record" }, make("tbody", {}, ...rows));
  const element = make("article", { "data-card": `q${first}` }, make("h2", { dir: "auto" }, title), table);
  return { element, items: items.filter((item) => item.source === "context"), told };
}

/** The value, its probability and what was quoted for it; or why there is none. */
function shown({ answered, value, text, normalized, probability, reason }: FilledField): Node[] {
  const of = make("span", { class: "of" }, share(probability));
  const note = (told: string): Node[] => (told ? [make("span", { class: "of quoted" }, told)] : []);
  if (!answered) {
    const absent = text ? `∅ “${text}”` : probability < WEAK ? "∅ Probably not in the text" : "∅ Not in the text";
    return [make("bdi", { class: "without" }, absent), of, ...note(text ? (reason ?? "") : "")];
  }
  const written = valueText(value) + (normalized?.currency ? ` ${normalized.currency}` : "");
  const perhaps = probability < WEAK ? [make("small", {}, "Perhaps: ")] : [];
  const line = make("span", {}, ...perhaps, make("bdi", { class: "value" }, written));
  return [line, of, ...note(written !== text && normalized !== null ? `“${text}”` : "")];
}

/** Write a value as people read it. */
export function valueText(value: unknown): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  return Array.isArray(value) ? value.map(valueText).join(" · ") : String(value ?? "");
}

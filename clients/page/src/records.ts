/** A record as a card with a table: a row for each field, its value joined with its places in the text. */

import type { FilledField, FilledRecord } from "../../typescript/src/index.ts";
import type { Card, Look } from "./answers.ts";
import { button, make, percent } from "./dom.ts";
import type { Item, Links } from "./links.ts";

/**
 * Make the card of a record.
 *
 * @param name begins the ids of its items; unique on the page.
 */
export function makeRecordCard(name: string, title: string, { fields }: FilledRecord, links: Links, look: Look): Card {
  const items: Item[] = [];
  const rows = Object.entries(fields).map(([label, field], i) => {
    const value = field.answered ? found(`${name}f${i}`, field, items, links, look) : missing(`${name}f${i}`, field, items, links, look);
    return make("tr", {}, make("th", { scope: "row" }, make("bdi", {}, label)), make("td", {}, value));
  });
  const table = make("table", { class: "record" }, make("tbody", {}, ...rows));
  const element = make("article", {}, make("h2", { dir: "auto" }, title), table);
  return { element, items: items.filter((item) => item.source === "context") };
}

function found(id: string, field: FilledField, items: Item[], links: Links, look: Look): HTMLElement {
  const currency = field.normalized?.currency;
  const value = told(field.value) + (currency ? ` ${currency}` : "");
  const isQuoted = value !== field.text && field.normalized !== null;
  const quoted = isQuoted ? [make("span", { class: "of quoted" }, `“${field.text}”`)] : [];
  return join(id, field, items, links, look, make("bdi", { class: "value" }, value), ...quoted);
}

/** A field without a value; where there is a quotation all the same it lights up as others do. */
function missing(id: string, field: FilledField, items: Item[], links: Links, look: Look): HTMLElement {
  if (!field.text) {
    return make("span", { class: "without" }, "∅ Not in the text ", make("span", { class: "of" }, percent(field.probability)));
  }
  const reason = make("span", { class: "of quoted" }, field.reason ?? "");
  return join(id, field, items, links, look, make("bdi", {}, `∅ “${field.text}”`), reason);
}

function join(id: string, field: FilledField, items: Item[], links: Links, look: Look, first: Node, ...more: Node[]): HTMLElement {
  for (const { source, start, end } of field.spans) items.push({ id, source, start, end });
  const probability = make("span", { class: "of" }, percent(field.probability));
  const row = button({ class: "choice", title: field.question }, () => {}, first, probability, ...more);
  links.addWord(id, row, () => look([]));
  return row;
}

function told(value: unknown): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  return Array.isArray(value) ? value.map(told).join(" · ") : String(value);
}

/** The list of questions, which can be added to, changed and removed. */

import type { Model } from "../../typescript/src/index.ts";
import { button, cut, make } from "./dom.ts";
import { FieldRows } from "./fields.ts";
import { hasLabels, type Kind, KINDS, type Question } from "./state.ts";

type Adapter = Model["adapters"][number];

const MAX_LABELS = 60; // characters of its labels beside the name of an adapter

export class Questions {
  readonly #list: HTMLElement;
  readonly #fields = new WeakMap<Element, FieldRows>();
  #adapters: Adapter[] = [];

  constructor(list: HTMLElement) {
    this.#list = list;
  }

  /** Offer adapters beside labels of one's own. */
  offer(adapters: Adapter[]): void {
    this.#adapters = adapters;
    for (const row of this.#list.children) row.querySelector("select")?.dispatchEvent(new Event("change"));
  }

  read(): Question[] {
    return [...this.#list.children].map((row) => {
      const kind = (row.querySelector("select")?.value ?? "free") as Kind;
      if (kind === "record") return { question: RECORD, kind, labels: this.#fields.get(row)?.read() ?? [] };
      const labels = (row.querySelector("textarea")?.value ?? "").split("\n").map((label) => label.trim()).filter(Boolean);
      const question = row.querySelector("input")?.value ?? "";
      const adapter = row.querySelector<HTMLSelectElement>(".adapter")?.value;
      return adapter ? { question, kind, labels: [], adapter } : { question, kind, labels };
    });
  }

  show(questions: Question[]): void {
    this.#list.replaceChildren();
    for (const question of questions.length ? questions : [EMPTY]) this.add(question);
  }

  /** Add a row and return its field. */
  add(given: Question = EMPTY): HTMLInputElement {
    const text = make("input", { "aria-label": "Question", placeholder: "Ask something", dir: "auto", autocomplete: "off" });
    const kinds = Object.entries(KINDS).map(([kind, title]) => make("option", { value: kind }, title));
    const kind = make("select", { "aria-label": "Kind of answer" }, ...kinds);
    const labels = make("textarea", { rows: "3", dir: "auto" });
    const fields = new FieldRows();
    const adapter = make("select", { class: "adapter", "aria-label": "Whose labels" });
    const offer = (chosen: string): void => {
      const fitting = this.#adapters.filter((one) => kindsOf(one).includes(kind.value as Kind));
      const known = fitting.map(({ name, labels }) => make("option", { value: name }, `${name}: ${cut(labels.join(", "), MAX_LABELS)}`));
      const isUnknown = chosen && !this.#adapters.some(({ name }) => name === chosen); // of a link, or not listed yet
      if (isUnknown) known.push(make("option", { value: chosen }, chosen));
      adapter.replaceChildren(make("option", { value: "" }, "Labels of my own"), ...known);
      adapter.value = chosen;
      if (adapter.selectedIndex < 0) adapter.value = "";
      if (known.length && hasLabels(kind.value as Kind)) labels.before(adapter);
      else adapter.remove();
    };
    const update = (): void => {
      offer(adapter.value);
      const isAdapted = adapter.isConnected && adapter.value !== "";
      text.readOnly = isAdapted;
      if (isAdapted) text.value = this.#adapters.find(({ name }) => name === adapter.value)?.question ?? text.value;
      const isOfRecord = kind.value === "record";
      text.hidden = isOfRecord;
      if (isOfRecord) row.append(fields.element);
      else fields.element.remove();
      const isScale = kind.value === "scale";
      labels.hidden = !hasLabels(kind.value as Kind) || isAdapted;
      labels.placeholder = isScale ? "Levels from low to high, one per line" : "Choices, one per line";
      labels.setAttribute("aria-label", labels.placeholder);
    };
    const remove = (): void => {
      row.remove();
      if (!this.#list.children.length) this.add();
      this.#list.querySelector<HTMLInputElement>("input:not([hidden])")?.focus();
      this.#list.dispatchEvent(new Event("input", { bubbles: true }));
    };
    const row = make("li", {}, text, kind, button({ "aria-label": "Remove this question" }, remove, "✕"), labels);
    this.#fields.set(row, fields);
    text.value = given.question;
    kind.value = given.kind;
    labels.value = given.kind === "record" ? "" : given.labels.join("\n");
    fields.show(given.kind === "record" ? given.labels : []);
    kind.addEventListener("change", update);
    adapter.addEventListener("input", update); // before the form reads it
    offer(given.adapter ?? "");
    update();
    this.#list.append(row);
    return text;
  }
}

/** The kinds of question that an adapter answers. */
function kindsOf({ multiple, scale }: Adapter): Kind[] {
  return multiple ? ["several"] : scale ? ["scale"] : ["choices", "or_none"];
}

/** What a record is called. */
const RECORD = "Record";
const EMPTY: Question = { question: "", kind: "free", labels: [] };

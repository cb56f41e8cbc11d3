/** The list of questions, which can be added to, changed and removed. */

import { button, make } from "./dom.ts";
import { FieldRows } from "./fields.ts";
import { hasLabels, type Kind, KINDS, type Question } from "./state.ts";

export class Questions {
  readonly #list: HTMLElement;
  readonly #fields = new WeakMap<Element, FieldRows>();

  constructor(list: HTMLElement) {
    this.#list = list;
  }

  read(): Question[] {
    return [...this.#list.children].map((row) => {
      const kind = (row.querySelector("select")?.value ?? "free") as Kind;
      if (kind === "record") return { question: RECORD, kind, labels: this.#fields.get(row)?.read() ?? [] };
      const labels = (row.querySelector("textarea")?.value ?? "").split("\n").map((label) => label.trim()).filter(Boolean);
      return { question: row.querySelector("input")?.value ?? "", kind, labels };
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
    const update = (): void => {
      const isOfRecord = kind.value === "record";
      text.hidden = isOfRecord;
      if (isOfRecord) row.append(fields.element);
      else fields.element.remove();
      const isScale = kind.value === "scale";
      labels.hidden = !hasLabels(kind.value as Kind);
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
    update();
    this.#list.append(row);
    return text;
  }
}

/** What a record is called. */
const RECORD = "Record";
const EMPTY: Question = { question: "", kind: "free", labels: [] };

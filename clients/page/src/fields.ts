/** The fields of a record: what they are called and what their values are, as rows and as a JSON Schema. */

import type { RecordRequest } from "../../typescript/src/index.ts";
import { button, make } from "./dom.ts";

/** Types of fields, as people read them, and what each is in a JSON Schema. */
const TYPES = {
  text: { type: "string" },
  money: { type: "number", format: "money" },
  number: { type: "number" },
  "whole number": { type: "integer" },
  date: { type: "string", format: "date" },
  time: { type: "string", format: "time" },
  email: { type: "string", format: "email" },
  phone: { type: "string", format: "phone" },
  "yes or no": { type: "boolean" },
  "several texts": { type: "array", items: { type: "string" } },
} as const;

const CHOICE = "one of";

interface Field {
  name: string;
  type: string;
  /** Of a choice. */
  options: string;
}

/** Return the schema of fields, each written as `name: type`; a name that ends with a question mark is asked as it is. */
export function schemaOf(written: string[]): RecordRequest["schema"] {
  const properties = written.map(read).map(({ name, type, options }) => {
    const isType = (known: string): known is keyof typeof TYPES => Object.hasOwn(TYPES, known);
    const node = isType(type) ? TYPES[type] : { enum: listed(options) };
    return [name, name.endsWith("?") ? { ...node, ask: name } : node];
  });
  return { type: "object", properties: Object.fromEntries(properties) };
}

/** Return the names of fields whose values are decided for, not quoted. */
export function decidedOf(written: string[]): Set<string> {
  return new Set(written.map(read).filter(({ type }) => type === CHOICE || type === "yes or no").map(({ name }) => name));
}

/** Return what keeps fields from being asked for. */
export function problemOfFields(written: string[]): string | undefined {
  if (!written.length) return "The record needs a field: give it a name and a type.";
  const fields = written.map(read);
  const twice = fields.find(({ name }, i) => fields.findIndex((other) => other.name === name) < i);
  if (twice) return `“${twice.name}” is there twice.`;
  const without = fields.find(({ type, options }) => type === CHOICE && !listed(options).length);
  return without && `“${without.name}” needs its choices, with commas between them.`;
}

/** Rows of fields, which can be added to, changed and removed. */
export class FieldRows {
  readonly element: HTMLElement;
  readonly #list = make("ol", {});

  constructor() {
    const add = button({}, () => this.#add({ name: "", type: "text", options: "" }).focus(), "Add a field");
    this.element = make("div", { class: "fields", role: "group", "aria-label": "Fields of the record" }, this.#list, add);
  }

  /** Return the fields that have a name, each as `name: type`. */
  read(): string[] {
    return [...this.#list.children].flatMap((row) => {
      const [name = "", options = ""] = [...row.querySelectorAll("input")].map((input) => input.value.trim());
      const type = row.querySelector("select")?.value ?? "text";
      return name ? [`${name}: ${type}${type === CHOICE ? ` ${options}` : ""}`] : [];
    });
  }

  show(written: string[]): void {
    this.#list.replaceChildren();
    for (const field of written.length ? written.map(read) : [{ name: "", type: "text", options: "" }]) this.#add(field);
  }

  #add(field: Field): HTMLInputElement {
    const name = make("input", { "aria-label": "Field", placeholder: "total, or What is the total?", autocomplete: "off" });
    const types = [...Object.keys(TYPES), CHOICE].map((type) => make("option", { value: type }, type));
    const type = make("select", { "aria-label": "Type of the field" }, ...types);
    const options = make("input", { "aria-label": "Choices, with commas between", placeholder: "billing, shipping" });
    const update = (): void => {
      options.hidden = type.value !== CHOICE;
    };
    const remove = (): void => {
      row.remove();
      if (!this.#list.children.length) this.show([]);
      this.#list.querySelector("input")?.focus();
      this.element.dispatchEvent(new Event("input", { bubbles: true }));
    };
    const row = make("li", {}, name, type, button({ "aria-label": "Remove this field" }, remove, "✕"), options);
    [name.value, type.value, options.value] = [field.name, field.type, field.options];
    type.addEventListener("change", update);
    update();
    this.#list.append(row);
    return name;
  }
}

/** Read `name: type`, or `name: one of a, b`; what is no type is part of the name of a text. */
function read(written: string): Field {
  const choice = new RegExp(`^(.*?): ${CHOICE}(?: (.*))?$`, "s").exec(written); // its options may hold colons, too
  if (choice) return { name: choice[1] ?? "", type: CHOICE, options: choice[2] ?? "" };
  const [, name = written, told = "text"] = /^(.*): (.+)$/s.exec(written) ?? [];
  return Object.hasOwn(TYPES, told) ? { name, type: told, options: "" } : { name: written, type: "text", options: "" };
}

function listed(options: string): string[] {
  return [...new Set(options.split(",").map((option) => option.trim()).filter(Boolean))];
}

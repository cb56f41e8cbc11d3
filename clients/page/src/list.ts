/** A list of texts: the same questions about each row of a table, which fills while it is asked. */

import { type Client, ClientError } from "../../typescript/src/index.ts";
import { adaptCommand, makeAdapter, type Post } from "./adapting.ts";
import { at, button, copyAndTell, cut, make, share } from "./dom.ts";
import { saveFile } from "./files.ts";
import { valueText } from "./records.ts";
import type { Result } from "./shown.ts";
import { hasLabels, isRecord, type Question, requestOf, type State } from "./state.ts";
import { longestColumn, readTable, type Table, writeTable } from "./tables.ts";

export const MAX_ROWS = 500;
const CONCURRENCY = 8;
const MAX_VALUES = 50; // of a filter
const MAX_SHOWN = 120; // characters of a text in the table
const LEAST_RIGHT = 4; // rows that `mqan adapt` needs

interface Cell {
  value: string;
  probability: number;
  /** What a reader can say is right, where that is one of labels. */
  labels?: string[];
  isSeveral?: boolean;
}

interface Row {
  text: string;
  /** Of the table. */
  cells: string[];
  results: Result[];
  /** What was answered, by question or field. */
  found: Map<string, Cell>;
  element: HTMLTableRowElement;
}

/** The answers about each row, and what a reader says is right. */
export interface KeptList {
  rows: Result[][];
  right: [string, string][];
}

export class List {
  readonly #open: (state: State, results: Result[]) => void;
  readonly #post: Post;
  #table: Table = { head: [], rows: [] };
  #rows: Row[] = [];
  #names: string[] = [];
  #state: State = { context: "", questions: [] };
  /** What a reader says is right, by question and text: it stays when the texts are asked again. */
  #right = new Map<string, string>();

  /** @param open shows the answers of a row. */
  constructor(open: (state: State, results: Result[]) => void, post: Post) {
    [this.#open, this.#post] = [open, post];
    at("make-adapter").hidden = !document.querySelector<HTMLMetaElement>("meta[name=makes-adapters]")?.content;
    at("make-adapter").addEventListener("click", () => void this.#makeAdapters());
    at("texts").addEventListener("input", () => this.read());
    at("filters").addEventListener("input", () => this.#filter());
    at("download").addEventListener("click", () => saveFile("answers.csv", "text/csv", this.#written()));
    at("save-right").addEventListener("click", () => {
      for (const { file, table } of this.#corrected()) saveFile(file, "text/csv", writeTable(table));
    });
    at("copy-adapt").addEventListener("click", () => void copyAndTell(at("adapt").textContent ?? "", at("adapt-copied")));
  }

  /** Read what is written into rows, and offer the columns. */
  read(): void {
    this.#table = readTable(at<HTMLTextAreaElement>("texts").value);
    const { head, rows } = this.#table;
    const column = at<HTMLSelectElement>("column");
    column.replaceChildren(...head.map((name, i) => make("option", { value: `${i}` }, name || `column ${i + 1}`)));
    column.value = `${longestColumn(this.#table)}`;
    at("columns").hidden = head.length < 2;
    const more = rows.length > MAX_ROWS ? `; the first ${MAX_ROWS} are asked` : "";
    at("rows").textContent = rows.length ? `${rows.length} ${rows.length === 1 ? "text" : "texts"}${more}` : "";
  }

  get texts(): string[] {
    const column = Number(at<HTMLSelectElement>("column").value);
    return this.#table.rows.slice(0, MAX_ROWS).map((row) => row[column] ?? "");
  }

  /** What the table holds, for a reload. */
  get kept(): KeptList {
    return { rows: this.#rows.map(({ results }) => results), right: [...this.#right] };
  }

  /** Ask the questions about each text, and fill the table with what comes; `given` answers need no asking. */
  async ask(client: Client, state: State, signal: AbortSignal, given?: KeptList): Promise<void> {
    const rows = this.#rows = this.texts.map((text, i): Row => {
      return { text, cells: this.#table.rows[i] ?? [], results: [], found: new Map(), element: make("tr", {}) };
    });
    this.#state = state;
    this.#right = new Map(given?.right ?? this.#right);
    this.#names = [];
    this.#tell();
    at("filters").replaceChildren();
    at("list-head").replaceChildren(make("th", { scope: "col" }, "Text"));
    at("list-body").replaceChildren(...rows.map(({ element }) => element));
    at("list").hidden = false;
    at("download").hidden = true;
    for (const row of rows) this.#draw(row);
    const progress = at<HTMLProgressElement>("progress");
    [progress.max, progress.value, progress.hidden] = [rows.length, 0, false];
    const waiting = rows.entries(); // shared: each worker takes the next
    const work = async (): Promise<void> => {
      for (const [i, row] of waiting) {
        const asked = state.questions.map((question) => requestOf(row.text, question, state.least));
        row.results = given?.rows[i] ?? await Promise.all(asked.map((request) =>
          (isRecord(request) ? client.fillRecord(request, { signal }) : client.answer(request, { signal })).catch(asResult)));
        if (signal.aborted) return;
        row.found = cellsOf(state, row.results);
        this.#draw(row);
        at("status").textContent = `${++progress.value} of ${rows.length} texts answered`;
      }
    };
    await Promise.all(Array.from({ length: Math.min(CONCURRENCY, rows.length) }, work));
    if (signal.aborted) return;
    progress.hidden = true;
    at("download").hidden = false;
    this.#offerFilters();
    this.#tell();
  }

  #draw(row: Row): void {
    const short = cut(row.text, MAX_SHOWN);
    const open = (): void => {
      for (const other of this.#rows) other.element.classList.toggle("open", other === row);
      this.#open({ ...this.#state, context: row.text }, row.results);
    };
    const names = [...row.found.keys()];
    if (names.length > this.#names.length) {
      this.#names = names;
      at("list-head").replaceChildren(...["Text", ...names].map((name) => make("th", { scope: "col" }, name)));
    }
    const text = row.results.length ? button({ class: "link" }, open, short) : short;
    const values = this.#names.map((name) => make("td", {}, ...this.#shown(row, name)));
    const failed = row.results.find((result): result is ClientError => result instanceof ClientError);
    row.element.replaceChildren(make("td", { dir: "auto" }, text), ...(failed ? [make("td", { class: "problem" }, failed.message)] : values));
  }

  #shown(row: Row, name: string): (Node | string)[] {
    const cell = row.found.get(name);
    if (!cell) return [];
    const right = this.#right.get(keyOf(name, row.text));
    const value = make("bdi", {}, (right ?? cell.value) || "∅");
    const told = make("span", { class: "of" }, right === undefined ? share(cell.probability) : "✓ yours");
    if (!cell.labels) return [value, " ", told];
    const label = button({ class: "link", "data-name": name, title: "Say which is right" }, () => this.#choose(row, name, cell, label), value);
    return [label, " ", told];
  }

  /** Let the reader say which label is right, in the place of the one that is shown. */
  #choose(row: Row, name: string, { labels = [], isSeveral }: Cell, shown: HTMLElement): void {
    const options = labels.map((label) => make("option", { value: label }, label || "∅ none of them"));
    if (!isSeveral) options.unshift(make("option", { hidden: "", disabled: "", selected: "" }, "Which is right?"));
    const select = make("select", { "aria-label": `Right: ${name}`, ...(isSeveral && { multiple: "" }) }, ...options);
    const end = (): void => {
      select.onblur = null; // comes again when it is taken away
      const isHere = document.activeElement === select;
      this.#draw(row);
      if (isHere) row.element.querySelector<HTMLElement>(`[data-name=${CSS.escape(name)}]`)?.focus();
    };
    select.addEventListener("change", () => {
      this.#right.set(keyOf(name, row.text), [...select.selectedOptions].map(({ value }) => value).join("; "));
      this.#tell();
      if (!isSeveral) end();
    });
    select.onblur = end;
    shown.replaceWith(select);
    select.focus();
  }

  /** Return what the reader has said of each question, as a table for `mqan adapt`. */
  #corrected(): { question: Question; rows: [string, string][]; file: string; table: Table; command: string }[] {
    const questions = this.#state.questions.flatMap((question) => {
      const name = question.question;
      const cells = this.#rows.flatMap(({ found }) => found.get(name)?.labels ?? []);
      const rows = this.#rows.flatMap(({ text }): [string, string][] => {
        const right = this.#right.get(keyOf(name, text));
        return right === undefined ? [] : [[text, right]];
      });
      return rows.length ? [{ question, rows, labels: [...new Set(cells)] }] : [];
    });
    return questions.map(({ question, rows, labels }, i) => {
      const file = `corrected${i ? `-${i + 1}` : ""}.csv`;
      return { question, rows, file, table: { head: ["text", "label"], rows }, command: adaptCommand(file, question, labels) };
    });
  }

  async #makeAdapters(): Promise<void> {
    const told = at("adapter-made");
    told.textContent = "Making an adapter …";
    const made = this.#corrected().map(({ question, rows }) =>
      makeAdapter(this.#post, question, rows).catch((error: unknown) => `The server cannot be asked: ${String(error)}.`));
    told.textContent = (await Promise.all(made)).join(" ");
  }

  /** Tell how many labels the reader has set, and what makes an adapter of them. */
  #tell(): void {
    const corrected = this.#corrected();
    const numRows = corrected.reduce((sum, { table }) => sum + table.rows.length, 0);
    const isAsked = this.#rows.some(({ found }) => [...found.values()].some(({ labels }) => labels));
    at("right").hidden = !isAsked;
    at("corrected").hidden = !numRows;
    at("told-right").textContent = numRows
      ? `${numRows} ${numRows === 1 ? "label is" : "labels are"} yours. An adapter is made of ${LEAST_RIGHT} or more; eight of each label are a good start.`
      : "Click a label to say which is right, also where it is right already.";
    at("adapt").textContent = corrected.map(({ command }) => command).join("\n\n");
    for (const id of ["adapt-copied", "adapter-made"]) at(id).textContent = "";
  }

  /** Offer a choice of values where a column has few, and a bound for the probability. */
  #offerFilters(): void {
    const selects = this.#names.flatMap((name) => {
      const values = [...new Set(this.#rows.map(({ found }) => found.get(name)?.value ?? ""))].sort();
      if (values.length < 2 || values.length > MAX_VALUES || values.length > this.#rows.length / 2) return [];
      const options = values.map((value) => make("option", { value: `=${value}` }, value || "∅"));
      return [make("label", {}, `${name} `, make("select", { "data-name": name }, make("option", { value: "" }, "all"), ...options))];
    });
    const most = make("input", { type: "number", id: "below", min: "0", max: "100", step: "5" });
    at("filters").replaceChildren(...selects, make("label", {}, "with a probability below ", most, " %"));
  }

  #filter(): void {
    const chosen = [...at("filters").querySelectorAll("select")].filter(({ value }) => value);
    const most = at<HTMLInputElement>("below").value;
    let numShown = 0;
    for (const { element, found } of this.#rows) {
      const fits = chosen.every(({ value, dataset }) => `=${found.get(dataset["name"] ?? "")?.value ?? ""}` === value);
      const isUnsure = !most || [...found.values()].some(({ probability }) => probability < Number(most) / 100);
      element.hidden = !(fits && isUnsure);
      if (!element.hidden) numShown++;
    }
    at("status").textContent = `${numShown} of ${this.#rows.length} texts`;
  }

  #written(): string {
    const head = [...this.#table.head, ...this.#names.flatMap((name) => [name, `${name}: probability`])];
    const rows = this.#rows.map(({ cells, found }) => {
      return [...cells, ...this.#names.flatMap((name) => [found.get(name)?.value ?? "", found.get(name)?.probability.toFixed(3) ?? ""])];
    });
    return writeTable({ head, rows });
  }
}

function asResult(error: unknown): ClientError {
  if (error instanceof ClientError) return error;
  throw error;
}

function keyOf(name: string, text: string): string {
  return JSON.stringify([name, text]);
}

/** Return what was answered, by question or field. */
function cellsOf(state: State, results: Result[]): Map<string, Cell> {
  return new Map(results.flatMap((result, i): [string, Cell][] => {
    if (result instanceof ClientError) return [];
    if ("record" in result) {
      return Object.entries(result.fields).map(([name, { value, probability }]) => [name, { value: valueText(value), probability }]);
    }
    const { question, kind } = state.questions[i]!;
    const cell = { value: result.answer, probability: result.confidence };
    const labels = [...result.choices.map(({ label }) => label), ...(kind === "or_none" ? [""] : [])];
    return [[question, hasLabels(kind) ? { ...cell, labels, isSeveral: kind === "several" } : cell]];
  }));
}

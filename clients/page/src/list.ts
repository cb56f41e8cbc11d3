/** A list of texts: the same questions about each row of a table, which fills while it is asked. */

import { type Client, ClientError } from "../../typescript/src/index.ts";
import { at, button, make, share } from "./dom.ts";
import { saveFile } from "./files.ts";
import { valueText } from "./records.ts";
import type { Result } from "./shown.ts";
import { isRecord, requestOf, type State } from "./state.ts";
import { longestColumn, readTable, type Table, writeTable } from "./tables.ts";

export const MAX_ROWS = 500;
const CONCURRENCY = 8;
const MAX_VALUES = 50; // of a filter
const MAX_SHOWN = 120; // characters of a text in the table

interface Cell {
  value: string;
  probability: number;
}

interface Row {
  text: string;
  cells: string[];
  results: Result[];
  element: HTMLTableRowElement;
}

export class List {
  readonly #open: (state: State, results: Result[]) => void;
  #table: Table = { head: [], rows: [] };
  #rows: Row[] = [];
  #names: string[] = [];

  /** @param open shows the answers of a row. */
  constructor(open: (state: State, results: Result[]) => void) {
    this.#open = open;
    at("texts").addEventListener("input", () => this.read());
    at("filters").addEventListener("input", () => this.#filter());
    at("download").addEventListener("click", () => saveFile("answers.csv", "text/csv", this.#written()));
  }

  /** Read what is written into rows, and offer the columns. */
  read(): void {
    this.#table = readTable(at<HTMLTextAreaElement>("texts").value);
    const { head, rows } = this.#table;
    const column = at<HTMLSelectElement>("column");
    column.replaceChildren(...head.map((name, i) => make("option", { value: `${i}` }, name || `column ${i + 1}`)));
    column.value = `${longestColumn(this.#table)}`;
    at("columns").hidden = head.length < 2;
    const cut = rows.length > MAX_ROWS ? `; the first ${MAX_ROWS} are asked` : "";
    at("rows").textContent = rows.length ? `${rows.length} ${rows.length === 1 ? "text" : "texts"}${cut}` : "";
  }

  get texts(): string[] {
    const column = Number(at<HTMLSelectElement>("column").value);
    return this.#table.rows.slice(0, MAX_ROWS).map((row) => row[column] ?? "");
  }

  /** What the table holds, for a reload. */
  get kept(): Result[][] {
    return this.#rows.map(({ results }) => results);
  }

  /** Ask the questions about each text, and fill the table with what comes; `given` answers need no asking. */
  async ask(client: Client, state: State, signal: AbortSignal, given?: Result[][]): Promise<void> {
    const rows = this.#rows = this.texts.map((text, i): Row => {
      return { text, cells: this.#table.rows[i] ?? [], results: [], element: make("tr", {}) };
    });
    this.#names = [];
    at("filters").replaceChildren();
    at("list-head").replaceChildren(make("th", { scope: "col" }, "Text"));
    at("list-body").replaceChildren(...rows.map(({ element }) => element));
    at("list").hidden = false;
    at("download").hidden = true;
    for (const row of rows) this.#draw(row, state);
    const progress = at<HTMLProgressElement>("progress");
    [progress.max, progress.value, progress.hidden] = [rows.length, 0, false];
    const waiting = rows.entries(); // shared: each worker takes the next
    const work = async (): Promise<void> => {
      for (const [i, row] of waiting) {
        const asked = state.questions.map((question) => requestOf(row.text, question, state.least));
        row.results = given?.[i] ?? await Promise.all(asked.map((request) =>
          (isRecord(request) ? client.fillRecord(request, { signal }) : client.answer(request, { signal })).catch(asResult)));
        if (signal.aborted) return;
        this.#draw(row, state);
        at("status").textContent = `${++progress.value} of ${rows.length} texts answered`;
      }
    };
    await Promise.all(Array.from({ length: Math.min(CONCURRENCY, rows.length) }, work));
    if (signal.aborted) return;
    progress.hidden = true;
    at("download").hidden = false;
    this.#offerFilters();
  }

  #draw(row: Row, state: State): void {
    const short = row.text.length > MAX_SHOWN ? `${row.text.slice(0, MAX_SHOWN)}…` : row.text;
    const open = (): void => {
      for (const other of this.#rows) other.element.classList.toggle("open", other === row);
      this.#open({ ...state, context: row.text }, row.results);
    };
    const cells = cellsOf(state, row.results);
    const names = [...cells.keys()];
    if (names.length > this.#names.length) {
      this.#names = names;
      at("list-head").replaceChildren(...["Text", ...names].map((name) => make("th", { scope: "col" }, name)));
    }
    const text = row.results.length ? button({ class: "link" }, open, short) : short;
    const values = this.#names.map((name) => {
      const cell = cells.get(name);
      return make("td", {}, cell ? make("bdi", {}, cell.value || "∅") : "", " ", make("span", { class: "of" }, cell ? share(cell.probability) : ""));
    });
    const failed = row.results.find((result): result is ClientError => result instanceof ClientError);
    row.element.replaceChildren(make("td", { dir: "auto" }, text), ...(failed ? [make("td", { class: "problem" }, failed.message)] : values));
    row.element.dataset["cells"] = JSON.stringify(Object.fromEntries(cells));
  }

  /** Offer a choice of values where a column has few, and a bound for the probability. */
  #offerFilters(): void {
    const all = this.#rows.map(({ element }) => readCells(element));
    const selects = this.#names.flatMap((name) => {
      const values = [...new Set(all.map((cells) => cells[name]?.value ?? ""))].sort();
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
    for (const { element } of this.#rows) {
      const cells = readCells(element);
      const fits = chosen.every(({ value, dataset }) => `=${cells[dataset["name"] ?? ""]?.value ?? ""}` === value);
      const isUnsure = !most || Object.values(cells).some(({ probability }) => probability < Number(most) / 100);
      element.hidden = !(fits && isUnsure);
      if (!element.hidden) numShown++;
    }
    at("status").textContent = `${numShown} of ${this.#rows.length} texts`;
  }

  #written(): string {
    const head = [...this.#table.head, ...this.#names.flatMap((name) => [name, `${name}: probability`])];
    const rows = this.#rows.map(({ cells, element }) => {
      const found = readCells(element);
      return [...cells, ...this.#names.flatMap((name) => [found[name]?.value ?? "", found[name]?.probability.toFixed(3) ?? ""])];
    });
    return writeTable({ head, rows });
  }
}

function asResult(error: unknown): ClientError {
  if (error instanceof ClientError) return error;
  throw error;
}

function readCells(element: HTMLElement): Record<string, Cell> {
  return JSON.parse(element.dataset["cells"] ?? "{}") as Record<string, Cell>;
}

/** Return what was answered, by question or field. */
function cellsOf(state: State, results: Result[]): Map<string, Cell> {
  return new Map(results.flatMap((result, i): [string, Cell][] => {
    if (result instanceof ClientError) return [];
    if ("record" in result) {
      return Object.entries(result.fields).map(([name, { value, probability }]) => [name, { value: valueText(value), probability }]);
    }
    return [[state.questions[i]?.question ?? "", { value: result.answer, probability: result.confidence }]];
  }));
}

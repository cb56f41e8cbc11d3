/** The list of examples, and the user's own text among them. */

import { make } from "./dom.ts";
import listed from "./examples.json";
import type { State } from "./state.ts";

/** `expected` holds the answers that count as right, for the tests; without it the model's limits are shown. */
interface Example extends State {
  group: string;
  title: string;
  note?: string;
}

const examples = listed as Example[];
const OWN = "";

export class Examples {
  readonly #select: HTMLSelectElement;
  /** What the form held when something else was chosen, by what had been chosen. */
  readonly #drafts = new Map<string, State>();
  #chosen = OWN;

  /**
   * @param read returns what the form holds.
   * @param show puts something else into the form.
   */
  constructor(select: HTMLSelectElement, read: () => State, show: (state: State, note?: string) => void) {
    this.#select = select;
    for (const group of new Set(examples.map((example) => example.group))) {
      const rows = examples.map((example, i) => ({ example, i })).filter(({ example }) => example.group === group);
      const options = rows.map(({ example, i }) => make("option", { value: `${i}` }, example.title));
      select.append(make("optgroup", { label: group }, ...options));
    }
    select.addEventListener("change", () => {
      this.#drafts.set(this.#chosen, read());
      this.#chosen = select.value;
      const example = this.#chosen === OWN ? undefined : examples[Number(this.#chosen)];
      show(this.#drafts.get(this.#chosen) ?? stateOf(example), example?.note);
    });
  }

  /** Say that the form holds the user's own. */
  setOwn(): void {
    this.#chosen = this.#select.value = OWN;
  }
}

function stateOf(example: Example | undefined): State {
  if (!example) return { context: "", questions: [] };
  const questions = example.questions.map(({ question, kind, labels }) => ({ question, kind, labels }));
  return { context: example.context, questions };
}

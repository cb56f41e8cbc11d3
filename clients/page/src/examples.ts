/** Examples as buttons, and the user's own text among them. */

import { button, make } from "./dom.ts";
import listed from "./examples.json";
import type { State } from "./state.ts";

/** `expected` holds the answers that count as right, for the tests; without it the model's limits are shown. */
interface Example extends State {
  group: string;
  title: string;
  note?: string;
}

const examples = listed as Example[];
const OWN = "Your own";
/** The group that is shown; others are in a fold. */
const [{ group: FIRST }] = examples as [Example];

export class Examples {
  readonly #buttons: HTMLButtonElement[] = [];
  /** What the form held when something else was chosen, by what had been chosen. */
  readonly #drafts = new Map<string, State>();
  #chosen = OWN;

  /**
   * @param read returns what the form holds.
   * @param show puts something else into the form; of an example it is asked, too.
   */
  constructor(box: HTMLElement, read: () => State, show: (state: State, note: string | undefined, isExample: boolean) => void) {
    const add = (title: string, example?: Example): HTMLButtonElement => {
      const choose = (): void => {
        this.#drafts.set(this.#chosen, read());
        this.choose(title);
        show(this.#drafts.get(title) ?? stateOf(example), example?.note, example !== undefined);
      };
      const made = button({ "aria-pressed": "false" }, choose, title);
      this.#buttons.push(made);
      return made;
    };
    const inGroup = (isFirst: boolean): HTMLElement[] =>
      examples.filter(({ group }) => (group === FIRST) === isFirst).map((example) => add(example.title, example));
    const folded = make("details", {}, make("summary", {}, "Research tasks"), make("div", { class: "row" }, ...inGroup(false)));
    box.append(add(OWN), ...inGroup(true), folded);
    this.choose(OWN);
  }

  /** Say what the form holds: an example, or the user's own. */
  choose(title = OWN): void {
    this.#chosen = title;
    for (const each of this.#buttons) each.setAttribute("aria-pressed", `${each.textContent === title}`);
  }
}

function stateOf(example: Example | undefined): State {
  if (!example) return { context: "", questions: [] };
  const questions = example.questions.map(({ question, kind, labels }) => ({ question, kind, labels }));
  return { context: example.context, questions };
}

/** Joins the words of answers with their places: both light up when either is hovered, focused or tapped. */

/** What has a place: a word of an answer, a label, a value of a record. */
export interface Item {
  id: string;
  source: "context" | "question";
  start: number;
  end: number;
}

export class Links {
  readonly #words = new Map<string, HTMLElement>();
  readonly #places = new Map<string, HTMLElement[]>();
  readonly #idsOf = new Map<HTMLElement, string[]>();
  readonly #tells = new Map<string, () => void>();
  #pinned: HTMLElement | undefined;
  readonly #dark: () => void;

  /** @param dark is called when nothing is lit any more. */
  constructor(dark: () => void) {
    this.#dark = dark;
  }

  /** Join a word; `tell` is called when it, or its place, lights up. */
  addWord(id: string, element: HTMLElement, tell: () => void): void {
    this.#words.set(id, element);
    this.#tells.set(id, tell);
    this.#add(element, [id]);
  }

  /** Join a place with every item that it belongs to. */
  addPlace(ids: string[], element: HTMLElement): void {
    for (const id of ids) this.#places.set(id, [...(this.#places.get(id) ?? []), element]);
    this.#add(element, ids);
  }

  /** Let go of what was tapped. */
  release(): void {
    this.#pinned = undefined;
    this.#light([]);
  }

  #add(element: HTMLElement, ids: string[]): void {
    this.#idsOf.set(element, ids);
    const on = (): void => this.#light(ids);
    const off = (): void => this.#light(this.#pinned ? (this.#idsOf.get(this.#pinned) ?? []) : []);
    element.addEventListener("pointerenter", on);
    element.addEventListener("pointerleave", off);
    element.addEventListener("focus", () => {
      on();
      if (element.matches(":focus-visible")) this.#reveal(element, ids);
    });
    element.addEventListener("blur", off);
    element.addEventListener("click", () => {
      this.#pinned = this.#pinned === element ? undefined : element;
      on();
      this.#reveal(element, ids);
    });
    element.addEventListener("keydown", (event) => {
      if (element.tagName === "BUTTON" || (event.key !== "Enter" && event.key !== " ") || event.ctrlKey) return;
      event.preventDefault();
      element.click();
    });
  }

  #light(ids: string[]): void {
    const lit = new Set<HTMLElement>();
    for (const id of ids) {
      const word = this.#words.get(id);
      if (word) lit.add(word);
      for (const place of this.#places.get(id) ?? []) lit.add(place);
    }
    for (const element of this.#idsOf.keys()) element.classList.toggle("lit", lit.has(element));
    const [first] = ids;
    if (first === undefined) this.#dark();
    else this.#tells.get(first)?.();
  }

  /** Scroll the other end into view, inside its own box: the page itself stays where the reader is. */
  #reveal(element: HTMLElement, ids: string[]): void {
    const place = ids.flatMap((id) => this.#places.get(id) ?? []).find((other) => other !== element);
    const box = place?.closest<HTMLElement>(".text");
    if (!place || !box || box.contains(element)) return;
    const [inner, outer] = [place.getBoundingClientRect(), box.getBoundingClientRect()];
    if (inner.top >= outer.top && inner.bottom <= outer.bottom) return;
    box.scrollTop += inner.top - outer.top - outer.height / 3;
  }
}

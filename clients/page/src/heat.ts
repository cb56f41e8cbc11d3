/** Shades the words of a text by how much a step of an answer looked at them. */

/** A word and its part of a step. */
export interface Weight {
  start: number;
  end: number;
  weight: number;
}

/** Least weights of the shades, the strongest first; style.css has a colour for each. */
const SHADES = [0.5, 0.2, 0.05, 0.01];

export class Heat {
  readonly #nodes: { node: Text; start: number }[] = [];
  /** Where each code point begins in UTF-16, which is how the page's ranges count. */
  readonly #units: number[] = [0];

  /** @param box shows the text; its nodes must stay as they are. */
  constructor(box: HTMLElement) {
    const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
    let start = 0;
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      this.#nodes.push({ node: node as Text, start });
      start += (node as Text).length;
    }
    for (const point of box.textContent ?? "") this.#units.push((this.#units.at(-1) ?? 0) + point.length);
  }

  /** Shade words in place of those before; a browser without custom highlights shows none. */
  show(weights: Weight[]): void {
    if (!("highlights" in CSS)) return;
    SHADES.forEach((least, i) => {
      const most = SHADES[i - 1] ?? Infinity;
      const here = weights.filter(({ weight }) => least <= weight && weight < most);
      CSS.highlights.set(`heat-${i + 1}`, new Highlight(...here.flatMap(({ start, end }) => this.#range(start, end) ?? [])));
    });
  }

  #range(start: number, end: number): Range | undefined {
    const [from, to] = [this.#place(start, true), this.#place(end, false)];
    if (!from || !to) return undefined;
    const range = new Range();
    range.setStart(...from);
    range.setEnd(...to);
    return range;
  }

  /** Where a code point stands: in the node that begins there, or for an end in the one that ends there. */
  #place(point: number, isStart: boolean): [Text, number] | undefined {
    const unit = this.#units[point];
    if (unit === undefined) return undefined;
    const found = this.#nodes.findLast(({ start }) => (isStart ? start <= unit : start < unit));
    return found && [found.node, unit - found.start];
  }
}

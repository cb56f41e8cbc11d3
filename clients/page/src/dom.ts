/** Elements. Text is only ever set as text, never as HTML. */

/** Return the element of the page with an id. */
export function at<E extends HTMLElement = HTMLElement>(id: string): E {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no #${id}`);
  return element as E;
}

/** Make an element with attributes and children; attributes that are undefined are left out. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string | undefined> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Make a button that does something. */
export function button(attributes: Record<string, string | undefined>, act: () => void, ...children: (Node | string)[]) {
  const element = make("button", { type: "button", ...attributes }, ...children);
  element.addEventListener("click", act);
  return element;
}

/** Return a text of at most so many characters. */
export function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** Write a probability in whole percents. */
export function share(probability: number): string {
  const whole = Math.round(100 * probability);
  return `${whole === 0 && probability > 0 ? "<\u20091" : whole === 100 && probability < 1 ? ">\u200999" : whole}\u00a0%`;
}

/** Write a probability. */
export function percent(probability: number): string {
  return `${(100 * probability).toFixed(1)}\u00a0%`;
}

/** Copy text, and say whether that worked. */
export async function copyAndTell(text: string, told: HTMLElement, more = ""): Promise<void> {
  told.textContent = (await copy(text)) ? `Copied.${more}` : "Could not copy.";
}

/**
 * Copy text, and return whether that worked. Pages of plain HTTP on other hosts than this one have no clipboard: there a
 * selection is copied.
 */
async function copy(text: string): Promise<boolean> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  const focused = document.activeElement;
  const area = make("textarea", { "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return isCopied;
}

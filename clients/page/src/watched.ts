/** Joins the words of answers with their places: both light up when either is pointed at, focused or tapped. */

/**
 * Watch what is shown. Elements that have an id in common (`data-ids`) light up together; the evidence of a card shows
 * while the card is pointed at. Saved pages run this function from its own text, so it uses nothing from outside.
 *
 * @param tell is called with the first id of what lights up, and with nothing when all is dark.
 */
export function watch(root: HTMLElement, tell: (id?: string) => void = () => {}): void {
  let kept: HTMLElement | null = null;
  let pointed = "";
  const idsOf = (element: HTMLElement | null): string[] => (element?.isConnected && element.dataset["ids"]?.split(" ")) || [];
  const near = (event: Event, selector: string): HTMLElement | null =>
    event.target instanceof Element ? event.target.closest<HTMLElement>(selector) : null;
  const light = (element: HTMLElement | null): void => {
    const ids = idsOf(element);
    const card = pointed || (ids[0] ?? "").split(".")[0];
    for (const other of root.querySelectorAll<HTMLElement>("[data-ids]")) {
      const here = idsOf(other);
      other.classList.toggle("lit", here.some((id) => ids.includes(id)));
      const decided = other.dataset["evidence"]?.split(" ") ?? [];
      if (decided.length) other.classList.toggle("on", decided.some((id) => id.split(".")[0] === card));
    }
    tell(ids[0]);
  };
  /** Scroll the other end into view, inside its own box: the page itself stays where the reader is. */
  const reveal = (element: HTMLElement): void => {
    const place = [...root.querySelectorAll<HTMLElement>(".text .lit")].find((other) => other !== element);
    const box = place?.closest<HTMLElement>(".text");
    if (!place || !box || box.contains(element)) return;
    const [inner, outer] = [place.getBoundingClientRect(), box.getBoundingClientRect()];
    if (inner.top < outer.top || inner.bottom > outer.bottom) box.scrollTop += inner.top - outer.top - outer.height / 3;
  };
  const over = (event: Event): void => {
    pointed = near(event, "article")?.dataset["card"] ?? "";
    light(near(event, "[data-ids]") ?? kept);
  };
  const out = (): void => ((pointed = ""), light(kept));
  root.addEventListener("pointerover", over);
  root.addEventListener("pointerleave", out);
  root.addEventListener("focusout", out);
  root.addEventListener("focusin", (event) => {
    over(event);
    const element = near(event, "[data-ids]");
    if (element?.matches(":focus-visible")) reveal(element);
  });
  root.addEventListener("click", (event) => {
    const element = near(event, "[data-ids]");
    kept = kept === element ? null : element;
    over(event);
    if (element) reveal(element);
  });
  root.addEventListener("keydown", (event) => {
    const element = near(event, "[data-ids]");
    if (!element || element.tagName === "BUTTON" || (event.key !== "Enter" && event.key !== " ") || event.ctrlKey) return;
    event.preventDefault();
    element.click();
  });
  document.addEventListener("keydown", ({ key }) => {
    if (key === "Escape") light((kept = null));
  });
}

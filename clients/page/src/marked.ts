/** A text with the places of items marked. */

import { make } from "./dom.ts";
import type { Item, Links } from "./links.ts";

/** Return the nodes of a text; positions count code points, into which `Array.from` splits it. */
export function markPlaces(text: string, items: Item[], links: Links): Node[] {
  const points = Array.from(text);
  const cuts = new Set([0, points.length]);
  for (const { start, end } of items) cuts.add(start).add(end);
  const at = [...cuts].sort((a, b) => a - b);
  return at.slice(0, -1).map((start, i) => {
    const end = at[i + 1] ?? points.length;
    const piece = points.slice(start, end).join("");
    const here = items.filter((item) => item.start <= start && end <= item.end);
    const [first] = here;
    if (!first) return document.createTextNode(piece);
    const place = make("mark", { class: `place ${first.source}`, tabindex: "0", role: "button" }, piece);
    links.addPlace(here.map((item) => item.id), place);
    return place;
  });
}

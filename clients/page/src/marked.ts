/** A text with the places of items marked. */

import { make } from "./dom.ts";
import { colourOf, type Item } from "./marks.ts";

/** Return the nodes of a text; positions count code points, into which `Array.from` splits it. */
export function markPlaces(text: string, items: Item[]): Node[] {
  const points = Array.from(text);
  const cuts = new Set([0, points.length]);
  for (const { start, end } of items) cuts.add(start).add(end);
  const at = [...cuts].sort((a, b) => a - b);
  return at.slice(0, -1).map((start, i) => {
    const end = at[i + 1] ?? points.length;
    const piece = points.slice(start, end).join("");
    const here = items.filter((item) => item.start <= start && end <= item.end);
    if (!here.length) return document.createTextNode(piece);
    const quoted = here.filter(({ chip }) => chip !== undefined);
    const decided = here.filter(({ chip }) => chip === undefined);
    const [evidence] = decided;
    const classes = [
      ...quoted.slice(0, 1).flatMap(({ source, number }) => ["place", source, `c${colourOf(number)}`]),
      ...(evidence ? ["evidence", `e${colourOf(evidence.number)}`] : []),
    ];
    const chips = [...new Set(quoted.filter((item) => item.end === end && item.source === "context").map(({ chip }) => chip))].join(" · ");
    return make("mark", {
      class: classes.join(" "),
      "data-ids": [...new Set(here.flatMap(({ ids }) => ids))].join(" "),
      "data-evidence": decided.flatMap(({ ids }) => ids).join(" ") || undefined,
      "data-chip": chips || undefined,
      ...(quoted.length && { tabindex: "0", role: "button" }),
    }, piece);
  });
}

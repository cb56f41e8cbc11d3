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
    const [place] = quoted;
    const ids = [...new Set(here.flatMap(({ ids }) => ids))].join(" ");
    const under = evidence && {
      class: `evidence e${colourOf(evidence.number)}`,
      "data-ids": ids,
      "data-evidence": decided.flatMap(({ ids }) => ids).join(" "),
    };
    if (!place) return make("mark", { ...under }, piece);
    const joined = place.start < start ? ["joined"] : [];
    const chips = [...new Set(quoted.filter((item) => item.end === end && item.source === "context").map(({ chip }) => chip))].join(" · ");
    const mark = {
      class: ["place", place.source, `c${colourOf(place.number)}`, ...joined].join(" "),
      "data-ids": ids,
      "data-chip": chips || undefined,
      tabindex: "0",
      role: "button",
    };
    return make("mark", mark, under ? make("span", under, piece) : piece); // the dots end before the chip
  });
}

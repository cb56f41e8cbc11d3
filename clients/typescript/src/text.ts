/** Offsets of mqan count Unicode code points; those of JavaScript count UTF-16 units. */

/** Return the half-open range of code points of a text. */
export function quote(text: string, span: { start: number; end: number }): string {
  return Array.from(text).slice(span.start, span.end).join("");
}

/** Return the same range in UTF-16 units, for `text.slice`, `Range` and `setSelectionRange`. */
export function toUtf16(text: string, span: { start: number; end: number }): { start: number; end: number } {
  const points = Array.from(text);
  const start = points.slice(0, span.start).join("").length;
  return { start, end: start + points.slice(span.start, span.end).join("").length };
}

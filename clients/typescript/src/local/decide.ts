/** From scores to answers: calibrated probabilities of choices, and the likeliest quotation. */

/** How log odds are scaled, by the kind of a question and its number of choices. */
export type Calibrations = Record<string, { scale: number }>;

const BUCKETS: [number, string][] = [[2, "2"], [5, "3-5"], [10, "6-10"], [30, "11-30"]]; // most choices of each
const LARGEST_BUCKET = "31+";
const LEAST = 1e-12; // masses are held above it
const FIRST_WORDS = 64; // that are looked at at least, the likeliest ones
const LEAST_SHARE = 0.2; // of the likeliest quotation's probability, that the first word of another has to have
const MOST_ENDS = 128; // words from the first on, among which the last is
const LONGEST = 100; // words of a quotation
const LIKELIEST_ENDS = 3;

/** Return whether labels are yes and no, or true and false: whether a text says so can then be open, too. */
export function isYesNo(labels: string[]): boolean {
  const known = [...new Set(labels.map((label) => label.trim().toLowerCase()))].sort().join("/");
  return known === "no/yes" || known === "false/true";
}

/** Return how likely each choice is, and that there is none, by their masses; they sum to 1. */
export function calibrate(labels: string[], masses: number[], refusal: number, maps: Calibrations) {
  const kind = isYesNo(labels) ? "yes-no" : "choices";
  const bucket = BUCKETS.find(([most]) => labels.length <= most)?.[1] ?? LARGEST_BUCKET;
  const scale = (maps[`${kind}/${bucket}`] ?? maps[kind])?.scale ?? 1;
  const mapped = softmax([...masses, refusal].map((mass) => scale * Math.log(Math.max(mass, LEAST))));
  return { none: mapped.pop() as number, shares: mapped };
}

/** Return how likely each word is the first of the answer, and that there is none; they sum to 1. */
export function startShares(starts: number[], none: number) {
  const shares = softmax([...starts, none]);
  return { none: shares.pop() as number, shares };
}

/** Return the first and last word of the likeliest quotation that has a letter or digit; and how likely each is that. */
export function findQuotation(starts: number[], ends: number[], words: string[]) {
  const found: { first: number; last: number; start: number; end: number }[] = [];
  let best = 0;
  for (const [place, first] of likeliest(starts).entries()) {
    const start = starts[first] as number;
    if (place >= FIRST_WORDS && start < LEAST_SHARE * best) break;
    const lasts = softmax(ends.slice(first, first + MOST_ENDS)).slice(0, LONGEST);
    for (const i of likeliest(lasts).slice(0, LIKELIEST_ENDS)) {
      const end = lasts[i] as number;
      found.push({ first, last: first + i, start, end });
      best = Math.max(best, start * end);
    }
  }
  found.sort((a, b) => b.start * b.end - a.start * a.end || a.first - b.first || a.last - b.last);
  return found.find(({ first, last }) => /[\p{L}\p{N}]/u.test(words.slice(first, last + 1).join(" ")));
}

export function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Return the places of values, the highest first; of equal ones the first. */
function likeliest(values: number[]): number[] {
  return [...values.keys()].sort((a, b) => (values[b] as number) - (values[a] as number));
}

function softmax(scores: number[]): number[] {
  const highest = scores.reduce((a, b) => Math.max(a, b));
  const exponents = scores.map((score) => Math.exp(score - highest));
  const total = sum(exponents);
  return exponents.map((exponent) => exponent / total);
}

/**
 * Tokens of a text as the server reads it (RevTok), with their place in code points.
 *
 * Neighbours of one kind make a token together if they are letters, digits or symbols; anything else stands alone.
 * Characters that show nothing are not read: they do not divide a word, and the span of a word covers those inside it.
 */

export interface Token {
  /** In lower case, without invisible characters. */
  word: string;
  start: number;
  end: number;
}

type Kind = "letter" | "number" | "symbol" | "other" | "blank" | "invisible";

const SELECTORS = /[\ufe0e\ufe0f]/; // of the variation of the character in front of them
const KINDS: [RegExp, Kind][] = [
  [/[\u00ad\u200b-\u200d\u2060\ufeff\ufe0e\ufe0f]/u, "invisible"],
  [/[\p{Z}\t-\r\x1c-\x1f\x85]/u, "blank"],
  [/[\p{L}\p{M}]/u, "letter"],
  [/\p{N}/u, "number"],
  [/\p{S}/u, "symbol"],
];
const ALONE: Kind = "other"; // punctuation and control characters

/** Split a text into its tokens, all but those of white space. */
export function readTokens(text: string): Token[] {
  const characters = Array.from(text);
  const tokens: Token[] = [];
  let last: Kind = "blank"; // of the character that was read before
  for (const [at, character] of characters.entries()) {
    const kind = KINDS.find(([pattern]) => pattern.test(character))?.[1] ?? ALONE;
    if (kind === "invisible") continue;
    const token = tokens.at(-1);
    if (token && kind === last && kind !== ALONE && kind !== "blank") {
      token.word += character;
      token.end = at + 1;
    } else if (kind !== "blank") {
      tokens.push({ word: character, start: at, end: at + 1 });
    }
    last = kind;
  }
  for (const token of tokens) {
    token.word = token.word.toLowerCase();
    if (SELECTORS.test(characters[token.end] ?? "")) token.end += 1;
  }
  return tokens;
}

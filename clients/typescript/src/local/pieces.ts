/** Word pieces of a pretrained encoder (WordPiece), as the server cuts words into them. */

export const FIRST = "[CLS]", BETWEEN = "[SEP]";
const UNKNOWN = "[UNK]"; // stands for a word without pieces
const INSIDE = "##"; // begins a piece that goes on within a word
const LONGEST_WORD = 100; // characters; what is longer is unknown
const MOST_PIECES = 16; // of a word that are read

const IDEOGRAPH = new RegExp(
  "[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b820}-\u{2ceaf}"
  + "\uf900-\ufaff\u{2f800}-\u{2fa1f}]", "u",
);
const ALONE = /[\p{P}!-/:-@[-`{-~]/u;
/** Where letters and digits have forms that are only typography: ligatures, wide and mathematical ones. */
const FORM = new RegExp(
  "(?=[\\p{L}\\p{N}])[\u00b5\u0132-\u01f3\u037a-\u0edd\u1e9a\u2102-\u2149\u2160-\u217f\u2474-\u249b\u3038-\u303a"
  + "\u3131-\u318e\u3220-\u3229\ufb00-\ufb4f\uff10-\uffdc\u{1d400}-\u{1fbf9}]", "gu",
);

/** Cuts words into pieces, and numbers these. */
export class WordPieces {
  readonly #idOf: Map<string, number>;

  constructor(pieces: string[]) {
    this.#idOf = new Map(pieces.map((piece, id) => [piece, id]));
  }

  /** Return the number of one piece. */
  idOf(piece: string): number {
    const id = this.#idOf.get(piece);
    if (id === undefined) throw new Error(`The vocabulary has no ${piece}.`);
    return id;
  }

  /** Return the numbers of the pieces of a lower-cased word that are read, at least one. */
  ids(word: string): number[] {
    const ids = partsOf(word).flatMap((part) => this.#match(part));
    return ids.length ? ids.slice(0, MOST_PIECES) : [this.idOf(UNKNOWN)];
  }

  /** Match the longest piece first, from the left. */
  #match(part: string): number[] {
    const characters = Array.from(part);
    const ids: number[] = [];
    let start = 0;
    let end = characters.length > LONGEST_WORD ? 0 : characters.length;
    while (start < end) {
      const id = this.#idOf.get((start ? INSIDE : "") + characters.slice(start, end).join(""));
      if (id === undefined) {
        end -= 1;
        continue;
      }
      ids.push(id);
      [start, end] = [end, characters.length];
    }
    return start && start === characters.length ? ids : [this.idOf(UNKNOWN)];
  }
}

/** Split a word where an ideograph or punctuation stands, without accents and control characters. */
function partsOf(word: string): string[] {
  const parts = [""];
  const plain = word.replace(FORM, (character) => character.normalize("NFKD").toLowerCase()).normalize("NFD");
  for (const character of plain) {
    if (/[\p{Mn}\p{C}\ufffd]/u.test(character)) continue;
    if (/\p{Z}/u.test(character)) parts.push("");
    else if (ALONE.test(character) || IDEOGRAPH.test(character)) parts.push(character, "");
    else parts.push(parts.pop() + character);
  }
  return parts.filter(Boolean);
}

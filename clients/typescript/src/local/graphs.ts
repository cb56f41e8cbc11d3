/** The graphs of a bundle: what they read and say of a request. */

import { type InferenceSession, Tensor } from "onnxruntime-web/wasm";
import type { Window } from "./windows.ts";

export interface Graphs {
  embeddings: InferenceSession;
  reader: InferenceSession;
  step: InferenceSession;
}

type Output = InferenceSession.ReturnType;
type Text = "context" | "question"; // the labels count as the question's

const GAMMA = 6, REFUSAL = 10, NUM_FIELDS = 11; // of what a step says

/** Read windows one by one, so that nothing is padded. */
export async function readWindows(graphs: Graphs, windows: Window[]): Promise<Reading> {
  const outputs: Output[] = [];
  for (const window of windows) {
    const { pieces, positions, segments, groups, firsts, lasts } = window;
    const { vectors } = await graphs.embeddings.run({ pieces: whole(pieces) });
    const places = { positions: whole(positions), segments: whole(segments), groups: whole(groups) };
    const words = { firsts: whole(firsts), lasts: whole(lasts) };
    outputs.push(await graphs.reader.run({ ...places, ...words, vectors: vectors as Tensor }));
  }
  return new Reading(windows, outputs);
}

/** What the reader says of all windows of a request. */
export class Reading {
  readonly #windows: Window[];
  readonly #outputs: Output[];

  constructor(windows: Window[], outputs: Output[]) {
    this.#windows = windows;
    this.#outputs = outputs;
  }

  /** Return an output of all words of a text, for each head of the model if it has them. */
  of(name: string, text: Text): Tensor {
    const dims = [...(this.#outputs[0]?.[name] as Tensor).dims];
    const axis = dims.length === 4 ? 2 : 1; // of words, after the heads'
    const heads = axis === 2 ? dims[1] as number : 1, width = dims.slice(axis + 1).reduce((a, b) => a * b, 1);
    const numWords = text === "context" ? this.#windows.at(-1)?.counted[1] as number : this.#windows[0]?.numBefore as number;
    const all = new Float32Array(heads * numWords * width);
    for (const [n, { numBefore, start, counted, firsts }] of this.#windows.entries()) {
      if (text === "question" && n > 0) break; // the first window has all of it
      const [first, last] = text === "context" ? counted : [0, numBefore];
      for (let head = 0; head < heads; head += 1) {
        const base = head * firsts.length + (text === "context" ? numBefore - start : 0);
        const words = this.#data(n, name).subarray((base + first) * width, (base + last) * width);
        all.set(words, (head * numWords + first) * width);
      }
    }
    dims[axis] = numWords;
    return float(dims, all);
  }

  /** Return the scores of there being no answer: the least of all windows. */
  get null(): Float32Array {
    return this.#data(0, "null").map((_, i) => Math.min(...this.#outputs.map((_, n) => this.#data(n, "null")[i] as number)));
  }

  /** Return the mean of what windows say as a whole. */
  get summary(): Float32Array {
    const rows = this.#outputs.map((_, n) => this.#data(n, "summary"));
    return this.#data(0, "summary").map((_, i) => rows.reduce((total, row) => total + (row[i] as number) / rows.length, 0));
  }

  #data(window: number, name: string): Float32Array {
    return this.#outputs[window]?.[name]?.data as Float32Array;
  }
}

/** Take the step that gives a mass to each label, to none of them, and to the vocabulary. */
export async function chooseLabel({ step }: Graphs, numGenerated: number, read: Reading, numQuestion: number) {
  const { null: scores, summary } = read;
  const context = read.of("words", "context"), question = read.of("words", "question");
  const C = context.dims[1] as number, Q = question.dims[1] as number, D = summary.length;
  const mask = (length: number, first = 0): Tensor =>
    new Tensor("bool", Uint8Array.from({ length }, (_, at) => Number(at >= first)), [1, length]);
  const feeds: Record<string, Tensor> = {
    context, context_start: read.of("start", "context"), context_end: read.of("end", "context"), context_mask: mask(C),
    question, question_start: read.of("start", "question"), question_end: read.of("end", "question"), question_mask: mask(Q),
    null: float([1, 2], scores), summary: float([1, D], summary), pointed: mask(Q, numQuestion),
    allowed: float([1, 3], Float32Array.of(0, 1, 0)), // only the question, to which the labels belong
    // no other word is chosen, so it does not matter which words are alike
    context_slots: whole(Array<number>(C).fill(0)), question_slots: whole(Array<number>(Q).fill(0)),
    slot_ids: whole([numGenerated]), slot_inputs: float([1, 1, D]),
    // before the first step all is zero
    input: float([1, D]), hidden: float([1, D]), cell: float([1, D]), context_state: float([1, D]),
    context_pointer: float([1, C]), question_pointer: float([1, Q]), masses: float([1, Q]), evidence: float([1, C]),
    position: new Tensor("int64", [0n], [1]), finished: new Tensor("bool", [false], [1]), trace: float([1, 1, NUM_FIELDS]),
  };
  for (const name of step.inputNames.filter((input) => /^answer_(keys|values)_/.test(input))) {
    const kept = read.of(name.replace("answer_", ""), "context");
    feeds[name.replace("answer", "context")] = kept;
    feeds[name] = float(kept.dims.map((size, axis) => (axis === 2 ? 1 : size)));
  }
  const { next_masses, next_trace } = await step.run(feeds, ["next_masses", "next_trace"]);
  const masses = [...(next_masses?.data as Float32Array).slice(numQuestion)], trace = next_trace?.data as Float32Array;
  return { masses, refusal: trace[REFUSAL] as number, vocabulary: trace[GAMMA] as number };
}

function float(dims: readonly number[], data?: Float32Array): Tensor {
  return new Tensor("float32", data ?? new Float32Array(dims.reduce((a, b) => a * b)), dims);
}

function whole(values: number[]): Tensor {
  return new Tensor("int64", BigInt64Array.from(values, BigInt), [1, values.length]);
}

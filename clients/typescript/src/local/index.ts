/**
 * Answer questions without a server: the model runs here, in the browser or in Node, by onnxruntime-web.
 *
 *     const model = await LocalModel.open("/bundle/");
 *     const answer = await model.answer({ context: "The tower is 330 m tall.", question: "How tall is the tower?" });
 */

import { InferenceSession } from "onnxruntime-web/wasm";
import type { Answer, AnswerRequest, AnswerToken, ChoiceOption } from "../documents.ts";
import { InvalidRequestError, UnavailableError } from "../errors.ts";
import { calibrate, type Calibrations, findQuotation, isYesNo, startShares, sum } from "./decide.ts";
import { chooseLabel, type Graphs, type Reading, readWindows } from "./graphs.ts";
import { WordPieces } from "./pieces.ts";
import { readTokens, type Token } from "./tokens.ts";
import { windowsOf } from "./windows.ts";

/** A question about a text. A choice is the answer, or none with `none` and of yes and no; without any a quotation is. */
export type LocalRequest = Pick<AnswerRequest, "context" | "question"> & { choices?: ChoiceOption[]; none?: boolean };

/** Gives a file of a bundle by its name. */
export type ReadFile = (name: string) => Promise<Uint8Array>;

interface Manifest {
  format_version: number;
  reader: string;
  name: string;
  version: string;
  sizes: { num_generated: number };
  calibration: Calibrations;
  graphs: { cpu: { reader: string; decoder_step: string } };
  files: Record<string, { num_bytes: number }>;
}

interface Choice {
  label: string;
  tokens: Token[]; // the description's after the label's
  place: number; // among the caller's
}

const FORMAT = 9; // of a bundle
const MOST_CHOICES = 255;
const NOT_SHOWN = /[\p{Default_Ignorable_Code_Point}\p{Cf}]/gu;
const FIELDS = ["context", "question", "choices", "none"];

/** A model that is loaded. */
export class LocalModel {
  readonly #graphs: Graphs;
  readonly #pieces: WordPieces;
  readonly #manifest: Manifest;

  private constructor(graphs: Graphs, pieces: WordPieces, manifest: Manifest) {
    this.#graphs = graphs;
    this.#pieces = pieces;
    this.#manifest = manifest;
  }

  /**
   * Load a bundle, about 30 MB.
   *
   * @param from the URL of its folder, or what reads its files.
   * @throws UnavailableError if a file is missing or cut short, or the bundle has another format.
   */
  static async open(from: string | URL | ReadFile): Promise<LocalModel> {
    const read = typeof from === "function" ? from : fetchFrom(String(from));
    const json = async <T>(name: string): Promise<T> => JSON.parse(new TextDecoder().decode(await read(name))) as T;
    const manifest = await json<Manifest>("manifest.json");
    if (manifest.format_version !== FORMAT || manifest.reader !== "pieces") {
      throw new UnavailableError("The bundle has a format that is not known here.", { code: "unknown_bundle" });
    }
    const open = async (name: string): Promise<InferenceSession> => {
      const content = await read(name);
      if (content.length !== manifest.files[name]?.num_bytes) {
        throw new UnavailableError(`${name} has another size than the bundle states.`, { code: "damaged_bundle" });
      }
      return InferenceSession.create(content, { executionProviders: ["wasm"] });
    };
    const { word_pieces } = await json<{ word_pieces: string[] }>("vocab.json");
    const { reader, decoder_step } = manifest.graphs.cpu;
    const graphs = { embeddings: await open("embeddings.onnx"), reader: await open(reader), step: await open(decoder_step) };
    return new LocalModel(graphs, new WordPieces(word_pieces), manifest);
  }

  /**
   * Answer a question about a text, as a server does that is asked for the same choices, or with `contiguous` without
   * any. `evidence` is left empty.
   *
   * @throws InvalidRequestError if the request cannot be answered as it is.
   */
  async answer(request: LocalRequest): Promise<Answer> {
    const other = Object.keys(request).find((name) => !FIELDS.includes(name));
    if (other !== undefined) throw invalid("option_not_supported", `${other} needs a server.`, "Leave it out.");
    const choices = request.choices && readChoices(request.choices);
    const context = readTokens(request.context), question = readTokens(request.question);
    if (!context.length) throw empty("context");
    if (!question.length) throw empty("question");
    const windows = windowsOf(this.#pieces, question, choices?.map(({ tokens }) => tokens) ?? [], context);
    const read = await readWindows(this.#graphs, windows);
    const { name, version } = this.#manifest;
    const document = {
      answer: "", tokens: [], spans: [], truncated: false, answered: true, choices: [], chosen: [], expected: null,
      places: [], alternatives: [], steps: [], parsed: null, parse_error: null, windows: windows.length,
      model: { name, version },
    };
    if (!choices) return { ...document, ...quotationOf(read, request.context, context) };
    return { ...document, ...await this.#choiceOf(read, choices, question.length, request.none === true) };
  }

  async #choiceOf(read: Reading, choices: Choice[], numQuestion: number, asksForNone: boolean): Promise<Decided> {
    const { sizes, calibration } = this.#manifest;
    const { masses, refusal, vocabulary } = await chooseLabel(this.#graphs, sizes.num_generated, read, numQuestion);
    const labels = choices.map(({ label }) => label);
    const mayBeNone = asksForNone || isYesNo(labels);
    const { none, shares } = calibrate(labels, masses, refusal, calibration);
    const all = mayBeNone ? 1 : sum(shares);
    const told = choices.map(({ label, place }, i) => ({ label, place, probability: (shares[i] as number) / all }))
      .sort((a, b) => a.place - b.place).map(({ label, probability }) => ({ label, probability, evidence: [] }));
    const given = { none, choices: told };
    const mass = Math.max(...masses);
    if (mayBeNone && refusal > mass) return { ...given, probability: none, confidence: none, answered: false };
    const { label, tokens } = choices[masses.indexOf(mass)] as Choice;
    const named = tokens.filter(({ end }) => end <= Array.from(label).length);
    const sure = mayBeNone ? mass : mass / sum(masses);
    const probability = Math.max(...shares) / all;
    const quoted = quote(label, named, "question", named.map((_, i) => (i ? 1 : sure)), vocabulary);
    return { ...given, ...quoted, chosen: [label], probability, confidence: probability };
  }
}

type Decided = Pick<Answer, "probability" | "confidence" | "none"> & Partial<Answer>;

function quotationOf(read: Reading, text: string, tokens: Token[]): Decided {
  const scores = (name: string): number[] => [...read.of(name, "context").data as Float32Array];
  const { none, shares } = startShares(scores("start"), read.null[0] as number);
  const found = findQuotation(shares, scores("end"), tokens.map(({ word }) => word));
  if (!found || shares.every((share) => share < none)) return { probability: none, confidence: none, none, answered: false };
  const { first, last, start, end } = found;
  const words = tokens.slice(first, last + 1);
  const each = words.map((_, i) => (i === 0 ? start : 1) * (first + i === last ? end : 1));
  return { ...quote(text, words, "context", each, 0), probability: start * end, confidence: start * end, none };
}

/** Return words that follow each other in a text as an answer. */
function quote(text: string, words: Token[], source: "context" | "question", shares: number[], vocabulary: number) {
  const points = Array.from(text);
  const cut = (start: number, end: number): string => points.slice(start, end).join("");
  const masses = { context: 0, question: 0, vocabulary, [source]: 1 - vocabulary };
  const tokens = words.map(({ start, end }, i): AnswerToken => ({
    text: cut(start, end), probability: shares[i] as number, source, masses, span: { start, end },
  }));
  const start = words[0]?.start as number, end = words.at(-1)?.end as number;
  return { answer: cut(start, end), tokens, spans: [{ source, start, end, text: cut(start, end) }] };
}

/** Check choices, and return them in the order in which they are read, that of their code points. */
function readChoices(given: ChoiceOption[]): Choice[] {
  if (!given.length || given.length > MOST_CHOICES) {
    const message = `choices has ${given.length} labels; 1 to ${MOST_CHOICES} are accepted.`;
    throw invalid("wrong_number_of_choices", message, "Send a number of labels that is accepted.");
  }
  const choices = given.map((choice, place) => {
    const { label, description = "" } = typeof choice === "string" ? { label: choice } : choice;
    if (!readTokens(label).length) throw empty("choice");
    const shown = description ? `${label}: ${description}` : label;
    return { label, tokens: readTokens(shown), place, whole: `${label}\n${description}` };
  });
  const read = new Set(choices.map(({ whole }) => whole.replace(NOT_SHOWN, "").toLowerCase().trim().split(/\s+/).join(" ")));
  if (Math.min(read.size, new Set(choices.map(({ label }) => label)).size) < choices.length) {
    throw invalid("duplicate_choice", "choices has two labels that are read alike.", "Send one, or describe both.");
  }
  const points = (text: string): string => Array.from(text, (one) => String(one.codePointAt(0)).padStart(7, "0")).join("");
  return choices.sort((a, b) => (points(a.whole) < points(b.whole) ? -1 : 1));
}

function fetchFrom(folder: string): ReadFile {
  const base = new URL(folder.endsWith("/") ? folder : `${folder}/`, globalThis.location?.href);
  return async (name) => {
    const response = await fetch(new URL(name, base)).catch(() => undefined);
    if (!response?.ok) throw new UnavailableError(`${name} cannot be loaded from ${base}.`, { code: "unreachable" });
    return new Uint8Array(await response.arrayBuffer());
  };
}

function invalid(code: string, message: string, hint: string): InvalidRequestError {
  return new InvalidRequestError(message, { code, hint });
}

function empty(name: string): InvalidRequestError {
  return invalid(`empty_${name}`, `The ${name} is empty or white space only.`, `Send a ${name} with some text.`);
}

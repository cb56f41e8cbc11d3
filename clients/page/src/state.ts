/** What is asked, and how it is written in the fragment of the page's address. */

import type { AnswerRequest, ChoiceOption, RecordRequest } from "../../typescript/src/index.ts";
import { problemOfFields, schemaOf } from "./fields.ts";

export const KINDS = {
  free: "Free answer",
  quotation: "Quotation",
  choices: "Choices",
  or_none: "Choices, or none of them",
  several: "Several choices",
  yes_no: "Yes or no",
  scale: "Scale",
  record: "Table of fields",
} as const;

export type Kind = keyof typeof KINDS;

export interface Question {
  question: string;
  kind: Kind;
  /** Labels of choices, each as `label` or `label: what it covers`, levels of a scale from low to high, or fields of a record, each as `name: type`. */
  labels: string[];
  /** The name of an adapter that has labels and a question of its own. */
  adapter?: string;
}

export interface State {
  context: string;
  questions: Question[];
  /** Answers that are less likely are withheld. */
  least?: number;
}

/** Whether questions of a kind need labels. */
export function hasLabels(kind: Kind): boolean {
  return kind === "choices" || kind === "or_none" || kind === "several" || kind === "scale";
}

/** Return what keeps a question from being asked. */
export function problemOfQuestion({ question, kind, labels, adapter }: Question): string | undefined {
  if (kind === "record") return problemOfFields(labels);
  if (!hasLabels(kind) || labels.length || adapter) return undefined;
  return `“${question}” needs its ${kind === "scale" ? "levels" : "choices"}, one per line.`;
}

/** Whether a request asks for a record. */
export function isRecord(request: AnswerRequest | RecordRequest): request is RecordRequest {
  return "schema" in request;
}

/** Return the request for one question. */
export function requestOf(context: string, { question, kind, labels, adapter }: Question, least?: number): AnswerRequest | RecordRequest {
  if (kind === "record") return { context, schema: { ...schemaOf(labels), ...(least && { "x-min-probability": least }) } };
  const choices = adapter ? { adapter } : labels.map(choiceOf);
  const more: Record<Exclude<Kind, "record">, Partial<AnswerRequest>> = {
    free: {},
    quotation: { sources: ["context"] },
    choices: { choices },
    or_none: { choices, none: true },
    several: { choices, multiple: true },
    yes_no: { yes_no: true },
    scale: adapter ? { choices } : { scale: labels },
  };
  return { context, question, ...more[kind], ...(least && { min_probability: least }) };
}

/** Read `label` or `label: what it covers`. */
export function choiceOf(line: string): ChoiceOption {
  const [, label = line, description] = /^(.*?\S): +(.+)$/.exec(line) ?? [];
  return description ? { label, description } : label;
}

/** Write a state as a fragment. */
export function toFragment(state: State): string {
  let bytes = "";
  for (const byte of new TextEncoder().encode(JSON.stringify(state))) bytes += String.fromCharCode(byte);
  return `#${btoa(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

/** Read a fragment; undefined if it holds no state. */
export function fromFragment(fragment: string): State | undefined {
  try {
    const bytes = atob(fragment.slice(1).replaceAll("-", "+").replaceAll("_", "/"));
    const text = new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0)));
    const state: unknown = JSON.parse(text);
    return isState(state) ? state : undefined;
  } catch {
    return undefined;
  }
}

function isState(value: unknown): value is State {
  const { context, questions, least } = (value ?? {}) as Partial<State>;
  return typeof context === "string" && ["undefined", "number"].includes(typeof least) && Array.isArray(questions) && questions.every(isQuestion);
}

function isQuestion(value: unknown): value is Question {
  const { question, kind, labels, adapter } = (value ?? {}) as Partial<Question>;
  const isKind = typeof kind === "string" && Object.hasOwn(KINDS, kind);
  const isText = typeof question === "string" && ["undefined", "string"].includes(typeof adapter);
  return isText && isKind && Array.isArray(labels) && labels.every((label) => typeof label === "string");
}

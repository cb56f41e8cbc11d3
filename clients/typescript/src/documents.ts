/** The documents of the wire, by the names that this package uses for them. */

import type { components, paths } from "./schema.ts";

type Plain = paths["/v1/answer"]["post"]["requestBody"]["content"]["application/json"];

export type Source = components["schemas"]["TokenDocument"]["source"];
export type Span = components["schemas"]["SpanDocument"];
export type Quotation = components["schemas"]["QuotationDocument"];
export type AnswerToken = components["schemas"]["TokenDocument"];
export type Model = components["schemas"]["ModelDocument"];

/** A label to choose, with or without a description. */
export type ChoiceOption = string | { label: string; description?: string };

/** A question about a text. Servers of models that answer free questions only refuse the fields from `choices` on. */
export type AnswerRequest = Plain & {
  choices?: ChoiceOption[];
  multiple?: boolean;
  yes_no?: boolean;
  /** Levels of a score, low to high. */
  scale?: string[];
  sources?: Source[];
  contiguous?: boolean;
  all?: boolean;
  alternatives?: number;
  min_probability?: number;
  explain?: boolean;
};

/** One label of a question with choices, and where the model found the decision. */
export interface Choice {
  label: string;
  probability: number;
  spans: Quotation[];
}

/** Another answer, or another place that answers. */
export interface Candidate {
  answer?: string;
  text?: string;
  probability: number;
  spans?: Quotation[];
  start?: number;
  end?: number;
}

/** An answer that says where each of its words came from. Fields that the server does not send are absent. */
export type Answer = components["schemas"]["AnswerDocument"] & {
  answered?: boolean;
  choices?: Choice[];
  /** The labels that hold, where several can. */
  chosen?: string[];
  confidence?: number | null;
  expected?: number | null;
  alternatives?: Candidate[];
  places?: Candidate[];
  windows?: number;
};

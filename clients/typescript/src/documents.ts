/** The documents of the wire, by the names that this package uses for them. */

import { unknownResponse } from "./errors.ts";
import type { components, paths } from "./schema.ts";

type Plain = paths["/v1/answer"]["post"]["requestBody"]["content"]["application/json"];

export type Source = components["schemas"]["TokenDocument"]["source"];
export type Span = components["schemas"]["SpanDocument"];
export type Quotation = components["schemas"]["QuotationDocument"];
export type AnswerToken = components["schemas"]["TokenDocument"];
/** A word of an answer that is not whole yet, and what it appends to the answer's text. */
export type StreamedWord = AnswerToken & { delta: string };
/** A quotation of the text in the shape of Anthropic's citations; offsets count code points. */
export type Citation = components["schemas"]["CitationDocument"];
export type Model = components["schemas"]["ModelDocument"];

/** A label to choose, with or without a description. */
export type ChoiceOption = string | { label: string; description?: string };

/** A question about a text. Word by word it is answered by `answerStream`. */
export type AnswerRequest = Omit<Plain, "stream">;

/** A text, and the JSON Schema of an object with the fields that are wanted of it; `ask` in a field is its question. */
export type RecordRequest = Extract<
  paths["/v1/records"]["post"]["requestBody"]["content"]["application/json"], { context: string }
>;

/** A record of a text: `record` as its schema has it, and `fields` with the place of each value. */
export type FilledRecord = components["schemas"]["RecordDocument"];

/** A field of a record, and what the text says of it. */
export type FilledField = components["schemas"]["FieldDocument"];

/** One label of a question with choices, and the words of the text that decide for it. */
export type Choice = components["schemas"]["ChoiceDocument"];

/** A query that an answer was read as, with its SQL; `parse: "sql"`. */
export type ParsedQuery = components["schemas"]["QueryDocument"];

/** A change of a dialogue's state that an answer was read as; `parse: "dialogue_state"`. */
export type ParsedState = components["schemas"]["StateDocument"];

/** Another answer. */
export type Alternative = components["schemas"]["AlternativeDocument"];

/** A place that answers. */
export type Place = components["schemas"]["PlaceDocument"];

/** An answer that says where each of its words came from. */
export type Answer = components["schemas"]["AnswerDocument"];

/**
 * Read a document.
 *
 * @param field what every document of its kind has.
 * @throws ServerError if it is none of a mqan server.
 */
export function readDocument<Document>(text: string, field: keyof Document & string): Document {
  let document: Partial<Document> | null | undefined;
  try {
    document = JSON.parse(text) as typeof document;
  } catch {
    // no JSON, and so no document
  }
  if (document?.[field] == null) throw unknownResponse("The response is not the document that a mqan server sends.");
  return document as Document;
}

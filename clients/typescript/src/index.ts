/**
 * Ask a mqan server over REST.
 *
 *     const client = new Client("http://127.0.0.1:8000");
 *     const answer = await client.answer({ context: "The tower is 330 m tall.", question: "How tall is the tower?" });
 */

export { type CallOptions, Client, type ClientOptions, type ManyOptions } from "./client.ts";
export type {
  Alternative, Answer, AnswerRequest, AnswerToken, Choice, ChoiceOption, Citation, FilledField, FilledRecord, Model,
  ParsedQuery, ParsedState, Place, Quotation, RecordRequest, Source, Span, StreamedWord,
} from "./documents.ts";
export type { StreamedPart } from "./events.ts";
export {
  CancelledError, ClientError, DeadlineExceededError, InvalidRequestError, OverloadedError, ServerError,
  UnauthenticatedError, UnavailableError,
} from "./errors.ts";
export { DEFAULT_RETRIES, type Retries } from "./retries.ts";
export { quote, toUtf16 } from "./text.ts";

/** Server-sent events: an answer word by word. */

import { type Answer, readDocument, type StreamedWord } from "./documents.ts";
import {
  type ClientError, DeadlineExceededError, type ErrorDocument, errorOfDocument, ServerError, UnavailableError,
  unknownResponse,
} from "./errors.ts";
import { reasonOf } from "./retries.ts";

/** A word of an answer, or at the end the whole answer. */
export type StreamedPart = { type: "word"; word: StreamedWord } | { type: "answer"; answer: Answer };

/** Read the words and the answer of a response; the signal says why it was cut off. */
export async function* readParts(
  response: Response,
  signal: AbortSignal,
): AsyncGenerator<StreamedPart, void, undefined> {
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
  if (!isStream || response.body === null) {
    throw unknownResponse("The server does not answer word by word.");
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let unread = "";
  for (;;) {
    const { done, value } = await reader.read().catch(() => {
      throw signal.aborted ? reasonOf(signal) : endedEarly();
    });
    if (done) throw endedEarly();
    const events = (unread + value).split(/\r?\n\r?\n/);
    unread = events.pop() ?? "";
    for (const event of events) {
      const part = read(event);
      if (part !== undefined) yield part;
      if (part?.type === "answer") return;
    }
  }
}

function read(event: string): StreamedPart | undefined {
  const fields = event.split(/\r?\n/).map((line) => /^(event|data): ?(.*)$/s.exec(line));
  const valueOf = (name: string): string => fields.filter((f) => f?.[1] === name).map((f) => f![2]).join("\n");
  const name = valueOf("event");
  const data = valueOf("data");
  if (name === "word") return { type: "word", word: readDocument<StreamedWord>(data, "delta") };
  if (name === "answer") return { type: "answer", answer: readDocument<Answer>(data, "answer") };
  if (name === "error") throw errorOfEvent(readDocument<ErrorDocument>(data, "code"));
  return undefined;
}

function errorOfEvent(document: ErrorDocument): ClientError {
  const { code } = document;
  const Kind =
    code === "deadline_exceeded" ? DeadlineExceededError : code === "unavailable" ? UnavailableError : ServerError;
  return errorOfDocument(document, Kind);
}

function endedEarly(): ClientError {
  return new UnavailableError("The connection ended before the answer was whole.", { code: "unavailable" });
}

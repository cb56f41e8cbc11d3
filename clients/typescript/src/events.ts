/** Server-sent events: an answer word by word. */

import type { Answer, StreamedWord } from "./documents.ts";
import { type ClientError, DeadlineExceededError, errorOfDocument, ServerError, UnavailableError } from "./errors.ts";
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
    throw new ServerError("The server does not answer word by word.", { code: "invalid_response" });
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
  if (name !== "word" && name !== "answer" && name !== "error") return undefined;
  let document: unknown;
  try {
    document = JSON.parse(valueOf("data"));
  } catch {
    throw new ServerError("An event is not JSON.", { code: "invalid_response" });
  }
  if (name === "word") return { type: "word", word: document as StreamedWord };
  if (name === "answer") return { type: "answer", answer: document as Answer };
  throw errorOfEvent(document);
}

function errorOfEvent(document: unknown): ClientError {
  const code = (document as { code?: unknown } | null)?.code;
  const Kind =
    code === "deadline_exceeded" ? DeadlineExceededError : code === "unavailable" ? UnavailableError : ServerError;
  return errorOfDocument(document, Kind);
}

function endedEarly(): ClientError {
  return new UnavailableError("The connection ended before the answer was whole.", { code: "unavailable" });
}

/** The client: REST over fetch, in browsers and in Node. */

import {
  type Answer, type AnswerRequest, type FilledRecord, type Model, readDocument, type RecordRequest,
} from "./documents.ts";
import { readParts, type StreamedPart } from "./events.ts";
import { ClientError, errorOf, InvalidRequestError, UnavailableError } from "./errors.ts";
import { Attempts, DEFAULT_RETRIES, reasonOf, type Retries } from "./retries.ts";

export interface ClientOptions {
  /** Names the caller, where the server asks for that. */
  apiKey?: string;
  /** Longest duration of one call in milliseconds, retries included. */
  timeoutMs?: number;
  retries?: Partial<Retries>;
}

export interface CallOptions {
  /** Cancels the call. */
  signal?: AbortSignal;
}

export interface ManyOptions extends CallOptions {
  /** Most requests at the same time. */
  concurrency?: number;
  /** Called after each item with the number of items that have ended. */
  onProgress?: (numEnded: number) => void;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1; // of timers
const DEFAULT_CONCURRENCY = 8;

/** Asks a server. Holds no connection of its own and need not be closed. */
export class Client {
  readonly #base: URL;
  readonly #headers: Record<string, string> = {};
  readonly #timeoutMs: number;
  readonly #retries: Retries;

  /**
   * @param url the server, for example `https://answers.example` or, behind a prefix, `https://example.com/mqan/`.
   * @throws InvalidRequestError if the URL is not one of HTTP or has a password in it, or an option is no option.
   */
  constructor(url = "http://127.0.0.1:8000", options: ClientOptions = {}) {
    this.#base = readUrl(url);
    const { timeoutMs = DEFAULT_TIMEOUT_MS } = options;
    if (!(timeoutMs > 0)) throw invalid("timeoutMs must be above 0.");
    this.#timeoutMs = Math.min(Math.ceil(timeoutMs), LONGEST_TIMEOUT_MS);
    this.#retries = { ...DEFAULT_RETRIES, ...options.retries };
    if (options.apiKey === undefined) return;
    if (!/^[!-~]+$/.test(options.apiKey)) throw invalid("The API key is empty or has characters that no key has.");
    this.#headers["authorization"] = `Bearer ${options.apiKey}`;
  }

  /**
   * Answer a question about a text.
   *
   * @throws ClientError if there is no answer; the class says whose fault it is.
   */
  answer(request: AnswerRequest, options: CallOptions = {}): Promise<Answer> {
    return this.#call<Answer>("v1/answer", "answer", options.signal, request);
  }

  /**
   * Answer a question word by word: each word as soon as it is decided, then the whole answer, whose tokens these
   * words are. No word is taken back. Leaving the loop cancels the call; after the first word nothing is asked again.
   *
   * @throws ClientError if there is no answer; the class says whose fault it is.
   */
  async *answerStream(request: AnswerRequest, options: CallOptions = {}): AsyncGenerator<StreamedPart, void, undefined> {
    const left = new AbortController();
    const attempts = new Attempts(this.#retries, this.#timeoutMs, left.signal, options.signal);
    let hasBegun = false;
    try {
      for (;;) {
        const response = await this.#respond("v1/answer", attempts, { ...request, stream: true }, async (told) => told);
        try {
          for await (const part of readParts(response, attempts.signal)) {
            hasBegun = true;
            yield part;
          }
          return;
        } catch (error) {
          if (hasBegun || !(error instanceof ClientError)) throw error;
          await attempts.wait(error, response.headers.get("retry-after"));
        }
      }
    } finally {
      left.abort();
    }
  }

  /**
   * Answer many questions, some at the same time. Returns an answer or an error for each, in order; a failure ends
   * no other item. What `onProgress` throws ends them all.
   */
  async answerMany(requests: Iterable<AnswerRequest>, options: ManyOptions = {}): Promise<(Answer | ClientError)[]> {
    const { concurrency = DEFAULT_CONCURRENCY, onProgress, signal } = options;
    if (!Number.isInteger(concurrency) || concurrency < 1) throw invalid("concurrency must be a whole number above 0.");
    const results: (Answer | ClientError)[] = [];
    const all = Array.from(requests);
    const waiting = all.entries(); // shared: each worker takes the next
    const failed = new AbortController();
    const either = signal ? AbortSignal.any([failed.signal, signal]) : failed.signal;
    let numEnded = 0;
    const work = async (): Promise<void> => {
      try {
        for (const [index, request] of waiting) {
          results[index] = await this.answer(request, { signal: either }).catch((error: unknown) => {
            if (error instanceof ClientError) return error;
            throw error;
          });
          if (failed.signal.aborted) return;
          onProgress?.(++numEnded);
        }
      } catch (error) {
        failed.abort();
        throw error;
      }
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, all.length) }, work));
    return results;
  }

  /**
   * Fill a record of named fields from a text, each value with its place in the text.
   *
   * @throws InvalidRequestError if the schema is not supported; its message names the field.
   * @throws ClientError if there is no record; the class says whose fault it is.
   */
  fillRecord(request: RecordRequest, options: CallOptions = {}): Promise<FilledRecord> {
    return this.#call<FilledRecord>("v1/records", "record", options.signal, request);
  }

  /**
   * Describe the served model and its limits.
   *
   * @throws ClientError if the server does not say.
   */
  getModel(options: CallOptions = {}): Promise<Model> {
    return this.#call<Model>("v1/model", "limits", options.signal);
  }

  /** Get a document, which has this field. */
  async #call<Document>(
    path: string, field: keyof Document & string, given: AbortSignal | undefined, body?: object,
  ): Promise<Document> {
    const attempts = new Attempts(this.#retries, this.#timeoutMs, given);
    return readDocument<Document>(await this.#respond(path, attempts, body, (response) => response.text()), field);
  }

  /** Ask until there is a response that `read` can read; what is cut off while it is read is asked again. */
  async #respond<T>(path: string, attempts: Attempts, body: object | undefined, read: (response: Response) => Promise<T>) {
    for (;;) {
      const sent = body && write(body, attempts.leftMs);
      const outcome = await this.#attempt(path, attempts.signal, sent, read);
      if (!("error" in outcome)) return outcome.value;
      await attempts.wait(outcome.error, outcome.retryAfter);
    }
  }

  async #attempt<T>(
    path: string, signal: AbortSignal, body: string | undefined, read: (response: Response) => Promise<T>,
  ): Promise<Outcome<T>> {
    try {
      const response = await fetch(new URL(path, this.#base), {
        method: body ? "POST" : "GET",
        headers: body ? { ...this.#headers, "content-type": "application/json" } : this.#headers,
        ...(body && { body }),
        redirect: "manual", // one that is followed may make a GET of a POST
        signal,
      });
      if (response.ok) return { value: await read(response) };
      return { error: await errorOf(response), retryAfter: response.headers.get("retry-after") };
    } catch {
      if (signal.aborted) throw reasonOf(signal);
      const told = { code: "unreachable", hint: "Check that it runs and that the URL is right." };
      return { error: new UnavailableError(`The server at ${this.#base} cannot be reached.`, told), retryAfter: null };
    }
  }
}

type Outcome<T> = { value: T } | { error: ClientError; retryAfter: string | null };

function invalid(message: string): InvalidRequestError {
  return new InvalidRequestError(message, { code: "invalid_option" });
}

/** Write a request. It tells the server how long the answer is of use: a proxy may hide that the caller has gone. */
function write(body: { timeout_ms?: unknown }, leftMs: number): string {
  const own = body.timeout_ms ?? leftMs;
  try {
    return JSON.stringify({ ...body, timeout_ms: typeof own === "number" ? Math.min(own, leftMs) : own });
  } catch (error) {
    const message = `The request cannot be sent as JSON: ${(error as Error).message}`;
    throw new InvalidRequestError(message, { code: "invalid_input" });
  }
}

function readUrl(url: string): URL {
  const base = URL.canParse(url) ? new URL(url) : undefined;
  if (base?.username || base?.password) {
    throw invalid("The URL has a user name or a password, which fetch sends to nobody; leave them out and give an apiKey.");
  }
  if (base === undefined || !/^https?:$/.test(base.protocol)) {
    const shown = JSON.stringify(url.replace(/\/\/.*@/s, "//")); // without a password
    throw invalid(`${shown} is not a server URL; give one such as http://127.0.0.1:8000`);
  }
  if (!base.pathname.endsWith("/")) base.pathname += "/";
  return base;
}

/** Errors of the client: one class for each thing a caller can do about it. */

import type { components } from "./schema.ts";

export type ErrorDocument = components["schemas"]["ErrorDocument"];

/** Base of every error of the client. */
export class ClientError extends Error {
  override readonly name: string = "ClientError";
  /** Stable code of the cause, for example `context_too_long`. */
  readonly code: string;
  /** How to fix it; empty where nobody knows. */
  readonly hint: string;
  /** HTTP status; undefined where no response came. */
  readonly status: number | undefined;
  /** Names the request in the server's log. */
  readonly requestId: string | undefined;

  constructor(message: string, told: { code: string; hint?: string; status?: number; requestId?: string | undefined }) {
    super(message);
    this.code = told.code;
    this.hint = told.hint ?? "";
    this.status = told.status;
    this.requestId = told.requestId;
  }
}

/** The request cannot be answered as it is. */
export class InvalidRequestError extends ClientError {
  override readonly name = "InvalidRequestError";
}

/** The server asks for an API key and did not get one that it knows. */
export class UnauthenticatedError extends ClientError {
  override readonly name = "UnauthenticatedError";
}

/** The server is full, retries included. */
export class OverloadedError extends ClientError {
  override readonly name = "OverloadedError";
}

/** The server cannot be reached, is starting, is draining or has gone, retries included. */
export class UnavailableError extends ClientError {
  override readonly name = "UnavailableError";
}

/** No answer came in time. */
export class DeadlineExceededError extends ClientError {
  override readonly name = "DeadlineExceededError";
}

/** The server failed, or what answers is no mqan server. */
export class ServerError extends ClientError {
  override readonly name = "ServerError";
}

/** The caller cancelled the call. */
export class CancelledError extends ClientError {
  override readonly name = "CancelledError";
}

/** What a proxy says, without a document, when the server behind it has gone. */
const OF_PROXIES: ReadonlySet<number> = new Set([500, 502, 504]);

/** What to do about a response that no mqan server sends. */
const CHECK_URL = "Check that the URL is that of a mqan server.";

/** Make the error that a response with a failing status, or one that points elsewhere, tells of. */
export async function errorOf(response: Response): Promise<ClientError> {
  const { status } = response;
  const requestId = response.headers.get("x-request-id") ?? undefined;
  const document = await readError(response);
  if (response.type === "opaqueredirect" || (status >= 300 && status < 400)) return redirected(response);
  if (document === undefined) {
    const Kind = kindWithoutDocument(status);
    const message = `The server answered with HTTP status ${status} and no explanation.`;
    return new Kind(message, { code: "http_error", hint: CHECK_URL, status, requestId });
  }
  const { code, message, hint } = document;
  return new (kindOf(status))(message, { code, hint, status, requestId: document.request_id ?? requestId });
}

/** Make the error that an event tells of. */
export function errorOfDocument(document: ErrorDocument, Kind: typeof ClientError): ClientError {
  const { code, message = "", hint = "", request_id } = document;
  return new Kind(message, { code, hint, requestId: request_id });
}

/** Make the error of a response of a good status that no mqan server sends. */
export function unknownResponse(message: string): ServerError {
  return new ServerError(message, { code: "invalid_response", hint: CHECK_URL });
}

/** Make the error of a redirect. Browsers hide its status and where it points to. */
function redirected({ status, headers }: Response): ServerError {
  const location = headers.get("location")?.slice(0, 200);
  const onward = location ? ` to ${JSON.stringify(location)}` : "";
  const message = `The server redirects${onward}${status ? ` (HTTP ${status})` : ""}, which the client does not follow.`;
  return new ServerError(message, { code: "http_error", hint: CHECK_URL, ...(status && { status }) });
}

function kindOf(status: number): typeof ClientError {
  if (status === 401) return UnauthenticatedError;
  if (status === 429) return OverloadedError;
  if (status === 502 || status === 503) return UnavailableError;
  if (status === 408 || status === 504) return DeadlineExceededError;
  return status < 500 ? InvalidRequestError : ServerError;
}

/** Whatever refuses a request without saying why is no mqan server. */
function kindWithoutDocument(status: number): typeof ClientError {
  if (OF_PROXIES.has(status)) return UnavailableError;
  const Kind = kindOf(status);
  return Kind === InvalidRequestError ? ServerError : Kind;
}

async function readError(response: Response): Promise<ErrorDocument | undefined> {
  try {
    const document = (await response.json()) as Partial<ErrorDocument> | null;
    return typeof document?.code === "string" && typeof document.message === "string"
      ? (document as ErrorDocument)
      : undefined;
  } catch {
    return undefined;
  }
}

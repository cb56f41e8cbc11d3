/** When to ask again. A question always gets the same answer, so it may be asked twice. */

import { CancelledError, type ClientError, DeadlineExceededError, OverloadedError, UnavailableError } from "./errors.ts";

export interface Retries {
  /** Most attempts of one call, the first included. */
  maxAttempts: number;
  /** Longest wait before the second attempt, in milliseconds; it doubles from attempt to attempt. */
  initialMs: number;
  /** Longest wait before any attempt; what the server asks for, cut to as much, comes on top. */
  maxMs: number;
}

export const DEFAULT_RETRIES: Retries = { maxAttempts: 5, initialMs: 100, maxMs: 2000 };

/** Counts the attempts of one call, and waits between them. */
export class Attempts {
  /** Ends the call: one of those given, or the time that it has. */
  readonly signal: AbortSignal;
  /** Held here, as Node forgets a time-out that only another signal waits for. */
  readonly late: AbortSignal;
  readonly #retries: Retries;
  readonly #deadline: number;
  #numFailed = 0;

  /** @param timeoutMs longest duration of the call, in whole milliseconds. */
  constructor(retries: Retries, timeoutMs: number, ...given: (AbortSignal | undefined)[]) {
    this.#retries = retries;
    this.#deadline = performance.now() + timeoutMs;
    this.late = AbortSignal.timeout(timeoutMs);
    this.signal = AbortSignal.any([this.late, ...given.filter((signal) => signal !== undefined)]);
  }

  /** What is left of the call's time, in whole milliseconds, at least 1. */
  get leftMs(): number {
    return Math.max(1, Math.ceil(this.#deadline - performance.now()));
  }

  /** Wait until the next attempt; rejects with `error`, of the last one, if there is to be none. */
  async wait(error: ClientError, retryAfter: string | null): Promise<void> {
    if (this.signal.aborted) throw reasonOf(this.signal);
    const { maxAttempts, initialMs, maxMs } = this.#retries;
    this.#numFailed++;
    const mayPass = error instanceof OverloadedError || error instanceof UnavailableError;
    if (!mayPass || this.#numFailed >= maxAttempts) throw error;
    const longest = Math.min(initialMs * 2 ** (this.#numFailed - 1), maxMs);
    const asked = retryAfter !== null && /^\d+$/.test(retryAfter) ? Math.min(1000 * Number(retryAfter), maxMs) : 0;
    // Waits differ, so that callers refused together do not come back together.
    const waitMs = longest * (0.5 + Math.random() / 2) + asked;
    if (performance.now() + waitMs >= this.#deadline) throw error;
    await pause(waitMs, this.signal);
  }
}

/** Wait; rejects when the signal, which has not fired yet, does. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(reasonOf(signal));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}

/** Return the error that an aborted signal stands for. */
export function reasonOf(signal: AbortSignal): ClientError {
  const isLate = signal.reason instanceof DOMException && signal.reason.name === "TimeoutError";
  return isLate
    ? new DeadlineExceededError("No answer came in time.", { code: "deadline_exceeded" })
    : new CancelledError("The call was cancelled.", { code: "cancelled" });
}

/** The client against a real server, which MQAN_URL names, and against sockets of our own that fail as told. */

import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import {
  type AnswerRequest, CancelledError, Client, ClientError, DeadlineExceededError, InvalidRequestError, OverloadedError,
  quote, ServerError, type StreamedPart, toUtf16, UnavailableError,
} from "../src/index.ts";

const url = process.env["MQAN_URL"];
const CONTEXT = "The Eiffel Tower 🗼 is 330 metres tall. It stands in Paris.";
const QUESTION = "Where does the Eiffel Tower stand?";

describe.skipIf(url === undefined)("a real server (MQAN_URL)", () => {
  const client = new Client(url);

  it("answers, with offsets in code points", async () => {
    const answer = await client.answer({ context: CONTEXT, question: QUESTION });
    expect(answer.tokens.length).toBeGreaterThan(0);
    for (const span of answer.spans) expect(quote(span.source === "context" ? CONTEXT : QUESTION, span)).toBe(span.text);
  });

  it("answers word by word, and then as the plain call does", async () => {
    const parts: StreamedPart[] = [];
    for await (const part of client.answerStream({ context: CONTEXT, question: QUESTION })) parts.push(part);
    const words = parts.flatMap((part) => (part.type === "word" ? [part.word] : []));
    const last = parts.at(-1)!;
    const answer = await client.answer({ context: CONTEXT, question: QUESTION });
    expect(last).toEqual({ type: "answer", answer });
    expect(words.map(({ delta, ...token }) => token)).toEqual(answer.tokens);
    expect(words.map((word) => word.delta).join("")).toBe(answer.answer);
    const refused = client.answerStream({ context: " ", question: QUESTION });
    await expect(refused.next()).rejects.toMatchObject({ code: "empty_context", status: 422 });
  });

  it("answers many in order, with an error in its place", async () => {
    const questions = ["Where does the tower stand?", " ", "How tall is the tower?"];
    let ended = 0;
    const requests = questions.map((question) => ({ context: CONTEXT, question }));
    const results = await client.answerMany(requests, { concurrency: 2, onProgress: (n) => (ended = n) });
    expect(ended).toBe(3);
    expect(results[1]).toBeInstanceOf(InvalidRequestError);
    expect((results[1] as ClientError).code).toBe("empty_question");
    expect(results[0]).toEqual(await client.answer(requests[0]!));
    expect(results[2]).toEqual(await client.answer(requests[2]!));
  });

  it("fills a record, each value with its place", async () => {
    const height = { type: "integer", ask: "How tall is the Eiffel Tower?" };
    const built = { anyOf: [{ type: "string", format: "date" }, { type: "null" }] };
    const schema = { type: "object", properties: { height, built } };
    const { record, fields, missing } = await client.fillRecord({ context: CONTEXT, schema });
    expect(record).toEqual({ height: 330, built: null });
    expect(missing).toEqual(["built"]);
    expect(fields["height"]).toMatchObject({ value: 330, question: height.ask, normalized: { library: "price-parser" } });
    expect(quote(CONTEXT, fields["height"]!.spans[0]!)).toBe(fields["height"]!.text);
    const refused = client.fillRecord({ context: CONTEXT, schema: { properties: { parts: { type: "object" } } } });
    await expect(refused).rejects.toMatchObject({ code: "unsupported_schema", status: 422 });
    await expect(refused).rejects.toThrow("The field parts is an object");
  });

  it("describes the model", async () => {
    expect((await client.getModel()).limits.max_question_tokens).toBeGreaterThan(0);
  });
});

describe("failures", () => {
  let server: Server | undefined;
  afterEach(() => server?.closeAllConnections());

  async function answering(handle: RequestListener): Promise<string> {
    server = createServer(handle);
    await new Promise<void>((resolve) => server!.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  async function failing(statuses: number[], headers: Record<string, string> = {}): Promise<[string, number[]]> {
    const times: number[] = [];
    server = createServer((_, response) => {
      times.push(performance.now());
      const status = statuses.shift() ?? 200;
      response.writeHead(status, { "content-type": "application/json", ...headers });
      response.end(status === 200 ? '{"answer": "yes"}' : '{"code": "c", "message": "m", "hint": "h", "request_id": "r"}');
    });
    await new Promise<void>((resolve) => server!.listen(0, "127.0.0.1", resolve));
    return [`http://127.0.0.1:${(server.address() as AddressInfo).port}`, times];
  }
  const ask = { context: "c", question: "q" };

  it("asks again while the server is full or starting", async () => {
    const [at, times] = await failing([503, 429]);
    expect((await new Client(at).answer(ask)).answer).toBe("yes");
    expect(times.length).toBe(3);
  });

  it("tells the server how long the answer is of use, in each attempt what is left", async () => {
    const told: number[] = [];
    const at = await answering(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      told.push((JSON.parse(Buffer.concat(chunks).toString()) as { timeout_ms: number }).timeout_ms);
      if (told.length === 1) response.writeHead(503).end();
      else response.end('{"answer": "yes", "record": {}}');
    });
    const client = new Client(at, { timeoutMs: 5000, retries: { initialMs: 200 } });
    await client.answer(ask);
    await client.answer({ ...ask, timeout_ms: 70 });
    await client.answer({ ...ask, timeout_ms: 70_000 });
    await client.fillRecord({ context: "c", schema: {} });
    expect(told[0]).toBeLessThanOrEqual(5000);
    expect(told[1]).toBeLessThanOrEqual(told[0]! - 100);
    expect(told[2]).toBe(70);
    for (const ms of [told[3]!, told[4]!]) expect([Number.isInteger(ms), ms > 4000, ms <= 5000]).toEqual([true, true, true]);
  });

  it("waits as long as the server asks", async () => {
    const [at, times] = await failing([429], { "retry-after": "1" });
    await new Client(at).answer(ask);
    expect(times[1]! - times[0]!).toBeGreaterThan(1000);
  });

  it("gives up after the last attempt and says why", async () => {
    const [at, times] = await failing([429, 429, 429]);
    const error: unknown = await new Client(at, { retries: { maxAttempts: 2 } }).answer(ask).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(OverloadedError);
    expect(error).toMatchObject({ code: "c", message: "m", hint: "h", requestId: "r", status: 429 });
    expect(times.length).toBe(2);
  });

  it("does not repeat what cannot get better", async () => {
    const [at, times] = await failing([422]);
    await expect(new Client(at).answer(ask)).rejects.toBeInstanceOf(InvalidRequestError);
    const [other] = await failing([500]);
    await expect(new Client(other).answer(ask)).rejects.toBeInstanceOf(ServerError);
    expect(times.length).toBe(1);
  });

  it.each([500, 502, 504])("asks again where a proxy says %i because the server behind it has gone", async (status) => {
    const told = ["<html>Bad gateway</html>", '{"detail": "gone"}'];
    let count = 0;
    const at = await answering((_, response) => {
      const body = told[count++];
      response.writeHead(body === undefined ? 200 : status).end(body ?? '{"answer": "yes"}');
    });
    expect((await new Client(at).answer(ask)).answer).toBe("yes");
    expect(count).toBe(3);
    count = 0;
    const error: unknown = await new Client(at, { retries: { maxAttempts: 1 } }).answer(ask).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(UnavailableError);
    expect(error).toMatchObject({ code: "http_error", status });
  });

  it.each([301, 302, 303, 307, 308])("says where a redirect (%i) points to, and does not follow it", async (status) => {
    let count = 0;
    const at = await answering((_, response) => {
      if (count++) response.end('{"answer": "yes"}');
      else response.writeHead(status, { location: "https://answers.example/v1/answer" }).end("<html>Moved</html>");
    });
    const error: unknown = await new Client(at).answer(ask).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(ServerError);
    expect(error).toMatchObject({ code: "http_error", status });
    expect((error as ServerError).message).toContain(`to "https://answers.example/v1/answer" (HTTP ${status})`);
    expect((error as ServerError).hint).toContain("Check that the URL");
    expect(count).toBe(1);
  });

  it("says so where a browser tells only that the server redirects", async () => {
    const opaque = { type: "opaqueredirect", status: 0, ok: false, headers: new Headers(), json: () => Promise.reject() };
    vi.stubGlobal("fetch", async () => opaque);
    const error: unknown = await new Client().answer(ask).catch((e: unknown) => e);
    vi.unstubAllGlobals();
    expect(error).toBeInstanceOf(ServerError);
    expect((error as ServerError).message).toBe("The server redirects, which the client does not follow.");
    expect((error as ServerError).status).toBeUndefined();
  });

  it.each(["{}", "null", '"yes"', '{"answer": null}', "<html>Welcome</html>", ""])(
    "refuses what no mqan server sends: %s", async (body) => {
      const at = await answering((_, response) => response.end(body));
      const client = new Client(at);
      const told = { name: "ServerError", code: "invalid_response", hint: expect.stringContaining("a mqan server") };
      await expect(client.answer(ask)).rejects.toMatchObject(told);
      await expect(client.fillRecord({ context: "c", schema: {} })).rejects.toMatchObject(told);
      await expect(client.getModel()).rejects.toMatchObject(told);
      await expect(client.answerStream(ask).next()).rejects.toMatchObject(told);
    },
  );

  it.each([
    [401, "UnauthenticatedError"], [404, "ServerError"], [408, "DeadlineExceededError"], [413, "ServerError"],
    [429, "OverloadedError"],
  ])("reads %i without an explanation as %s", async (status, name) => {
    const at = await answering((_, response) => response.writeHead(status).end("<html>No</html>"));
    const client = new Client(at, { retries: { maxAttempts: 1 } });
    await expect(client.answer(ask)).rejects.toMatchObject({ name, code: "http_error", status });
  });

  it("asks again when the connection ends within an answer", async () => {
    let count = 0;
    const at = await answering((_, response) => {
      if (count++) return response.end('{"answer": "yes"}');
      response.writeHead(200, { "content-length": 17 });
      response.write('{"answer"', () => response.destroy());
    });
    expect((await new Client(at).answer(ask)).answer).toBe("yes");
    expect(count).toBe(2);
  });

  it("asks again for a stream that ends before its first word, and not after it", async () => {
    const unavailable = 'event: error\ndata: {"code": "unavailable", "message": "m", "hint": "h"}\n\n';
    const word = 'event: word\ndata: {"delta": "a"}\n\n';
    const answer = 'event: answer\ndata: {"answer": "a"}\n\n';
    const begins = ["", ": comment\n\n", "event: wo", unavailable, word + answer, word, word + answer];
    let count = 0;
    const at = await answering((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      if (count % 2) response.end(begins[count++]);
      else response.write(begins[count++] || ":", () => response.destroy());
    });
    const client = new Client(at, { retries: { initialMs: 1 } });
    const types: string[] = [];
    for await (const part of client.answerStream(ask)) types.push(part.type);
    expect([types, count]).toEqual([["word", "answer"], 5]);
    const parts = client.answerStream(ask);
    expect((await parts.next()).value).toMatchObject({ type: "word" });
    await expect(parts.next()).rejects.toBeInstanceOf(UnavailableError);
    expect(count).toBe(6);
  });

  it.each([503, 429])("says at once why there is no answer (%i) if the next attempt would be too late", async (status) => {
    const [at, times] = await failing([status, status], { "retry-after": "2" });
    const began = performance.now();
    await expect(new Client(at, { timeoutMs: 1900 }).answer(ask)).rejects.toMatchObject({ code: "c", status });
    expect(performance.now() - began).toBeLessThan(1000);
    expect(times.length).toBe(1);
    const nobody = new Client("http://127.0.0.1:1", { timeoutMs: 200, retries: { initialMs: 400 } });
    await expect(nobody.answer(ask)).rejects.toBeInstanceOf(UnavailableError);
  });

  it("ends in time, and when it is cancelled", async () => {
    const silent = await answering(() => undefined);
    await expect(new Client(silent, { timeoutMs: 49.5 }).answer(ask)).rejects.toBeInstanceOf(DeadlineExceededError);
    server!.closeAllConnections();
    const hesitant = await answering((_, response) => response.writeHead(422).write("{"));
    await expect(new Client(hesitant, { timeoutMs: 50 }).answer(ask)).rejects.toBeInstanceOf(DeadlineExceededError);
    server!.closeAllConnections();
    const [at] = await failing([503, 503, 503, 503], { "retry-after": "2" });
    const cancelled = new AbortController();
    const call = new Client(at).answer(ask, { signal: cancelled.signal });
    cancelled.abort();
    await expect(call).rejects.toBeInstanceOf(CancelledError);
  });

  it("ends in time whatever memory is collected", async () => {
    setFlagsFromString("--expose-gc");
    const collecting = setInterval(runInNewContext("gc") as () => void, 20);
    onTestFinished(() => clearInterval(collecting));
    const client = new Client(await answering(() => undefined), { timeoutMs: 200 });
    const { signal } = new AbortController();
    const calls = [client.answer(ask), client.answer(ask, { signal }), client.answerStream(ask, { signal }).next()];
    for (const call of calls) await expect(call).rejects.toBeInstanceOf(DeadlineExceededError);
  });

  it("asks nothing more after what onProgress throws", async () => {
    let [numAsked, numLeft, numEnded] = [0, 0, 0];
    const at = await answering((_, response) => {
      if (++numAsked === 3) response.end('{"answer": "yes"}'); // the others would wait for ever
      response.on("close", () => (numLeft += response.writableFinished ? 0 : 1));
    });
    const onProgress = (): void => {
      numEnded++;
      throw new RangeError("no page");
    };
    const requests = Array.from({ length: 9 }, () => ask);
    await expect(new Client(at).answerMany(requests, { concurrency: 3, onProgress })).rejects.toThrow(RangeError);
    await expect.poll(() => numLeft).toBe(2);
    expect([numAsked, numEnded]).toEqual([3, 1]);
  });

  it("asks all at the same time where that is allowed", async () => {
    const [at] = await failing([]);
    const results = await new Client(at).answerMany([ask, ask], { concurrency: Number.MAX_SAFE_INTEGER });
    expect(results).toEqual([{ answer: "yes" }, { answer: "yes" }]);
  });

  it("reads a stream however it is cut, and says how it ended", async () => {
    const word = 'event: word\ndata: {"text": "🗼", "delta": "🗼"}\n\n';
    const endings: [string, string | undefined][] = [
      ['event: later\ndata: {}\n\n: comment\n\nevent: answer\r\ndata: {"answer": "🗼"}\r\n\r\n', undefined],
      ['event: error\ndata: {"code": "deadline_exceeded", "message": "m", "hint": "h"}\n\n', "DeadlineExceededError"],
      ['event: error\ndata: {"code": "internal", "message": "m", "hint": "h"}\n\n', "ServerError"],
      ["event: answer\ndata: {\n\n", "ServerError"],
      ["event: answer\ndata: {}\n\n", "ServerError"],
      ["event: word\ndata: null\n\n", "ServerError"],
      ["event: error\ndata: null\n\n", "ServerError"],
      ["event: answer\nda", "UnavailableError"],
    ];
    for (const [ending, kind] of endings) {
      server = createServer(async (_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        for (const byte of Buffer.from(word + ending)) {
          response.write(Buffer.from([byte]));
          await new Promise(setImmediate);
        }
        response.end();
      });
      await new Promise<void>((resolve) => server!.listen(0, "127.0.0.1", resolve));
      const parts = new Client(`http://127.0.0.1:${(server.address() as AddressInfo).port}`).answerStream(ask);
      expect((await parts.next()).value).toEqual({ type: "word", word: { text: "🗼", delta: "🗼" } });
      if (kind === undefined) expect((await parts.next()).value).toEqual({ type: "answer", answer: { answer: "🗼" } });
      else await expect(parts.next()).rejects.toMatchObject({ name: kind });
      server.closeAllConnections();
    }
  });

  it("lets go of a stream that nobody reads any more", async () => {
    let isClosed = false;
    server = createServer((request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write('event: word\ndata: {"delta": "a"}\n\n');
      request.socket.on("close", () => (isClosed = true));
    });
    await new Promise<void>((resolve) => server!.listen(0, "127.0.0.1", resolve));
    const client = new Client(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    for await (const part of client.answerStream(ask)) if (part.type === "word") break;
    await expect.poll(() => isClosed).toBe(true);
  });

  it("says that nobody listens, and that a URL or a key is none", async () => {
    const client = new Client("http://127.0.0.1:1", { retries: { maxAttempts: 1 } });
    await expect(client.answer(ask)).rejects.toBeInstanceOf(UnavailableError);
    expect(() => new Client("grpc://127.0.0.1:9000")).toThrow(InvalidRequestError);
    expect(() => new Client("http://127.0.0.1", { apiKey: "ä" })).toThrow(InvalidRequestError);
    await expect(client.answerMany([], { concurrency: 0 })).rejects.toBeInstanceOf(InvalidRequestError);
  });
});

describe("what cannot be sent", () => {
  it("is no fault of the server's", async () => {
    const client = new Client("http://127.0.0.1:1");
    const question: Record<string, unknown> = { context: "c", question: "q" };
    question["itself"] = question;
    const sent = [question, { context: "c", question: "q", alternatives: 1n }] as unknown as AnswerRequest[];
    for (const request of sent) {
      await expect(client.answer(request)).rejects.toMatchObject({ name: "InvalidRequestError", code: "invalid_input" });
      await expect(client.answerStream(request).next()).rejects.toBeInstanceOf(InvalidRequestError);
    }
  });

  const urls = ["http://ada:secret@127.0.0.1", "http://:secret@127.0.0.1", "grpc://ada:secret@127.0.0.1", "http://ada:secret@"];
  it.each(urls)("is refused without its password: %s", (url) => {
    expect(() => new Client(url)).toThrow(InvalidRequestError);
    expect(() => new Client(url)).toThrow(/^(?!.*secret)/);
  });
});

describe("offsets", () => {
  it("count code points", () => {
    expect(quote("a🗼bc", { start: 1, end: 3 })).toBe("🗼b");
    expect(toUtf16("a🗼bc", { start: 2, end: 4 })).toEqual({ start: 3, end: 5 });
  });
});

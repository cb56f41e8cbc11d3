/** The model that runs without a server, against what the engine answers; `python -m tests.page.local_answers` writes it. */

import { readFile } from "node:fs/promises";
import { env } from "onnxruntime-web/wasm";
import { beforeAll, describe, expect, it } from "vitest";
import { type Answer, InvalidRequestError, UnavailableError } from "../src/index.ts";
import { LocalModel, type LocalRequest, type ReadFile } from "../src/local/index.ts";
import cases from "./local.json" with { type: "json" };

const BUNDLE = new URL("../../../serving/bundles/default/", import.meta.url);
const SLOW_MS = 200_000; // for all requests, on a processor that is busy otherwise
const read: ReadFile = (name) => readFile(new URL(name, BUNDLE));
const all = cases as unknown as { request: LocalRequest; answer: Answer }[];

/** Read the bundle with the graphs that a device of a server has. */
function graphsOf(device: string): ReadFile {
  return async (name) => {
    const content = await read(name);
    if (name !== "manifest.json") return content;
    const manifest = JSON.parse(new TextDecoder().decode(content));
    return new TextEncoder().encode(JSON.stringify({ ...manifest, graphs: { cpu: manifest.graphs[device] } }));
  };
}

/** Return a document with numbers that are nearly the same, as processors add up otherwise. */
function near(value: unknown): unknown {
  if (typeof value === "number") return expect.closeTo(value, 3);
  if (Array.isArray(value)) return value.map(near);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, near(inner)]));
}

beforeAll(() => {
  env.wasm.numThreads = 1; // Node has no worker for more
});

describe("a model without a server", () => {
  it("answers what the engine does with the same graphs, word for word", async () => {
    const model = await LocalModel.open(graphsOf("cuda")); // float32
    for (const { request, answer } of all) expect(await model.answer(request)).toEqual(near(answer));
  }, SLOW_MS);

  it("answers nearly the same with 8-bit graphs", async () => {
    const model = await LocalModel.open(read);
    const found = [];
    for (const { request } of all) found.push(await model.answer(request));
    const numSame = found.filter(({ answer }, i) => answer === all[i]?.answer.answer).length;
    expect(numSame).toBeGreaterThanOrEqual(0.9 * all.length);
    const apart = found.map(({ probability }, i) => Math.abs(probability - (all[i]?.answer.probability ?? 0)));
    expect(apart.reduce((a, b) => a + b) / apart.length).toBeLessThan(0.03);
  }, SLOW_MS);

  it("refuses what it cannot answer, with the server's codes", async () => {
    const model = await LocalModel.open(read);
    const request = { context: "It is open.", question: "Is it open?" };
    const refused: [object, string][] = [
      [{ context: " \u200b" }, "empty_context"], [{ question: "" }, "empty_question"],
      [{ choices: [] }, "wrong_number_of_choices"], [{ choices: ["a", " "] }, "empty_choice"],
      [{ choices: ["a", "b", "A "] }, "duplicate_choice"], [{ choices: ["word ".repeat(300)] }, "choices_too_long"],
      [{ choices: Array.from({ length: 200 }, (_, i) => `label number ${i} of many`) }, "choices_too_long"],
      [{ question: "word ".repeat(300) }, "question_too_long"], [{ multiple: true }, "option_not_supported"],
    ];
    for (const [part, code] of refused) {
      const error: unknown = await model.answer({ ...request, ...part } as LocalRequest).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(InvalidRequestError);
      expect(error).toMatchObject({ code });
    }
  });

  it("says what is wrong with a bundle", async () => {
    const cut: ReadFile = async (name) => (await read(name)).slice(0, name.endsWith(".onnx") ? 1000 : undefined);
    await expect(LocalModel.open(cut)).rejects.toMatchObject({ code: "damaged_bundle" });
    const older: ReadFile = async () => new TextEncoder().encode('{"format_version": 8, "reader": "pieces"}');
    await expect(LocalModel.open(older)).rejects.toBeInstanceOf(UnavailableError);
    await expect(LocalModel.open("http://127.0.0.1:1/")).rejects.toBeInstanceOf(UnavailableError);
  });
});

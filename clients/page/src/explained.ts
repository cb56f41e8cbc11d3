/** Answers with what each step looked at and what else they could be, from models that can say so. */

import {
  type Answer, type AnswerRequest, type Client, type ClientError, InvalidRequestError, type ManyOptions,
} from "../../typescript/src/index.ts";

/** Whether the server's model may be able to explain; false once it has answered only without. */
let mayExplain = true;
const NUM_RIVALS = 3;

/** Answer many questions as `Client.answerMany` does, explained and with rivals where the model can. */
export async function answerExplained(
  client: Client, requests: AnswerRequest[], options: ManyOptions,
): Promise<(Answer | ClientError)[]> {
  if (!mayExplain) return client.answerMany(requests, options);
  const more = options.signal ? { signal: options.signal } : {};
  const results = await client.answerMany(requests.map((request) => ({ ...request, explain: true })), options);
  const again = [...results.keys()].filter((i) => isUnsupported(results[i]));
  const plain = await client.answerMany(again.map((i) => requests[i]!), more);
  // A model that refuses both ways lacks something else that was asked for, and may explain the next answer.
  if (plain.some((result) => !isUnsupported(result) && "answer" in result)) mayExplain = false;
  for (const [nth, i] of again.entries()) results[i] = plain[nth]!;
  // Asked apart: a question that asks for alternatives is not read as a list of labels.
  const free = mayExplain ? [...results.keys()].filter((i) => isFree(results[i])) : [];
  const rivals = await client.answerMany(free.map((i) => ({ ...requests[i]!, alternatives: NUM_RIVALS })), more);
  for (const [nth, i] of free.entries()) {
    const [result, other] = [results[i]!, rivals[nth]!];
    if ("answer" in result && "answer" in other) results[i] = { ...result, alternatives: other.alternatives };
  }
  return results;
}

function isUnsupported(result: unknown): boolean {
  return result instanceof InvalidRequestError && result.code === "option_not_supported";
}

function isFree(result: Answer | ClientError | undefined): boolean {
  return result !== undefined && "answer" in result && !result.choices.length;
}

/** Answers with what each step looked at, from models that can say so, and without it from the others. */

import {
  type Answer, type AnswerRequest, type Client, type ClientError, InvalidRequestError, type ManyOptions,
} from "../../typescript/src/index.ts";

/** Whether the server's model may be able to explain; false once it has answered only without. */
let mayExplain = true;

/** Answer many questions as `Client.answerMany` does, explained where the model can explain. */
export async function answerExplained(
  client: Client, requests: AnswerRequest[], options: ManyOptions,
): Promise<(Answer | ClientError)[]> {
  if (!mayExplain) return client.answerMany(requests, options);
  const results = await client.answerMany(requests.map((request) => ({ ...request, explain: true })), options);
  const again = [...results.keys()].filter((i) => isUnsupported(results[i]));
  const plain = await client.answerMany(again.map((i) => requests[i]!), options.signal ? { signal: options.signal } : {});
  // A model that refuses both ways lacks something else that was asked for, and may explain the next answer.
  if (plain.some((result) => !isUnsupported(result) && "answer" in result)) mayExplain = false;
  for (const [nth, i] of again.entries()) results[i] = plain[nth]!;
  return results;
}

function isUnsupported(result: unknown): boolean {
  return result instanceof InvalidRequestError && result.code === "option_not_supported";
}

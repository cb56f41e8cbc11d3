/** A request as code in several languages. */

import type { AnswerRequest, RecordRequest } from "../../typescript/src/index.ts";
import { isRecord } from "./state.ts";

/** Not code but the answers themselves, as the server sent them. */
export const RESPONSE = "JSON of the answers";
export const LANGUAGES = ["curl", "Python", "TypeScript", "grpcurl", "Decision API", RESPONSE] as const;
export type Language = (typeof LANGUAGES)[number];

/** The server that code is written for. */
export interface Target {
  base: URL;
  grpcPort: string;
  /** Whether it asks for an API key, for which the code has a place; the key itself is not shown. */
  needsKey: boolean;
}

type Asked = AnswerRequest | RecordRequest;

/** Write requests to a server. */
export function snippet(language: Exclude<Language, typeof RESPONSE>, requests: Asked[], target: Target): string {
  const write = { curl, Python: python, grpcurl, TypeScript: typescript, "Decision API": decisionApi }[language];
  return write(requests, target);
}

function curl(requests: Asked[], { base, needsKey }: Target): string {
  const head = `-H 'content-type: application/json'${needsKey ? KEY_HEADER : ""} -d`;
  const commands = requests.map((request) => {
    const url = shell(new URL(isRecord(request) ? "v1/records" : "v1/answer", base).href);
    return `curl ${url} \\\n  ${head} ${shell(JSON.stringify(request, null, 2))}`;
  });
  return commands.join("\n\n");
}

/** The same questions by the decision API of TypeSafe, which has choices, yes or no and scores, and no other kinds. */
function decisionApi(requests: Asked[], { base, needsKey }: Target): string {
  const questions: Record<string, object> = {};
  const others: string[] = [];
  for (const [i, request] of requests.entries()) {
    const typed = isRecord(request) ? undefined : typedQuestion(request);
    if (typed) questions[`question-${i + 1}`] = typed;
    else others.push(isRecord(request) ? "a record" : JSON.stringify(request.question));
  }
  const left = others.length ? `# System One has choices, yes or no and scores, so this is left out: ${others.join(", ")}` : "";
  if (!Object.keys(questions).length) return left;
  const url = shell(new URL("v1/systemone", base).href);
  const request = { model: "jev-latest", state: requests[0]?.context ?? "", questions };
  const head = `-H 'content-type: application/json'${needsKey ? KEY_HEADER : ""} -d`;
  return `${left}${left && "\n"}curl ${url} \\\n  ${head} ${shell(JSON.stringify(request, null, 2))}`;
}

/** A question as System One has it; undefined if it has none of this kind. */
function typedQuestion({ question, yes_no, choices, multiple, none, scale }: AnswerRequest): object | undefined {
  if (yes_no) return { type: "noul", instructions: question };
  if (scale) return { type: "score", instructions: question, criteria: scale };
  if (!choices || multiple || none) return undefined;
  if ("adapter" in choices) return { type: "choice", ...choices };
  const criteria = choices.map((choice) => (typeof choice === "string" ? [choice, ""] : [choice.label, choice.description]));
  return { type: "choice", instructions: question, criteria: Object.fromEntries(criteria) };
}

function grpcurl(requests: Asked[], { base, grpcPort, needsKey }: Target): string {
  const head = `grpcurl -plaintext${needsKey ? KEY_HEADER : ""} -d`;
  const commands = requests.map((request) => {
    const method = isRecord(request) ? "FillRecord" : "Answer";
    const told = shell(JSON.stringify(messageOf(request), null, 2));
    return `${head} ${told} \\\n  ${base.hostname}:${grpcPort} mqan.v1.QuestionAnswering/${method}`;
  });
  return commands.join("\n\n");
}

/** A request as a message of gRPC, in the JSON of protobuf: a choice is an object, a source the name of an enum. */
function messageOf(request: Asked): object {
  if (isRecord(request)) return { ...request, schema: JSON.stringify(request.schema) };
  const { sources, ...rest } = adapted(request);
  return {
    ...rest,
    ...(rest.choices && { choices: rest.choices.map(labelled) }),
    ...(sources && { sources: sources.map((source) => `SOURCE_${source.toUpperCase()}`) }),
  };
}

/** A request with the name of its adapter beside the choices, as gRPC and Python have it. */
function adapted({ choices, ...rest }: AnswerRequest) {
  if (!choices) return { ...rest, choices: undefined };
  return "adapter" in choices ? { ...rest, ...choices, choices: undefined } : { ...rest, choices };
}

function labelled(choice: string | { label: string }): object {
  return typeof choice === "string" ? { label: choice } : choice;
}

function python(requests: Asked[], { base, needsKey }: Target): string {
  const context = requests[0]?.context ?? "";
  const calls = requests.map((request) => {
    if (isRecord(request)) return `    print(client.fill_record(context, ${literal(request.schema)}))`;
    const { context: _, question, ...options } = adapted(request);
    const given = Object.entries(options).flatMap(([name, value]) => (value === undefined ? [] : [`, ${name}=${literal(value)}`]));
    return `    print(client.answer(context, ${literal(question)}${given.join("")}))`;
  });
  const head = `from mqan_client import Client\n\ncontext = ${literal(context)}`;
  const key = needsKey ? ', api_key="KEY"' : "";
  return `${head}\nwith Client(${literal(trim(base))}${key}) as client:\n${calls.join("\n")}`;
}

function typescript(requests: Asked[], { base, needsKey }: Target): string {
  const context = requests[0]?.context ?? "";
  const calls = requests.map((request) => {
    if (isRecord(request)) {
      return `console.log((await client.fillRecord({ context, schema: ${JSON.stringify(request.schema)} })).record);`;
    }
    const { context: _, ...rest } = request;
    const fields = Object.entries(rest).map(([name, value]) => `, ${name}: ${JSON.stringify(value)}`);
    return `console.log((await client.answer({ context${fields.join("")} })).answer);`;
  });
  const key = needsKey ? ', { apiKey: "KEY" }' : "";
  const head = `import { Client } from "@mqan/client";\n\nconst client = new Client(${JSON.stringify(trim(base))}${key});`;
  return `${head}\nconst context = ${JSON.stringify(context)};\n${calls.join("\n")}`;
}

const KEY_HEADER = " -H 'authorization: Bearer KEY'";

function trim(base: URL): string {
  return base.href.replace(/\/$/, "");
}

/** Write a text as one word of a shell. */
export function shell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Python reads strings, numbers and lists of JSON as they are. */
function literal(value: unknown): string {
  if (typeof value === "boolean") return value ? "True" : "False";
  return JSON.stringify(value);
}

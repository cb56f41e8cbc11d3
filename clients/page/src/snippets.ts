/** A request as code in several languages. */

import type { AnswerRequest } from "../../typescript/src/index.ts";

export const LANGUAGES = ["curl", "Python", "grpcurl", "TypeScript"] as const;
export type Language = (typeof LANGUAGES)[number];

/** Write requests to the server at an address. */
export function snippet(language: Language, requests: AnswerRequest[], base: URL): string {
  const write = { curl, Python: python, grpcurl, TypeScript: typescript }[language];
  return write(requests, base);
}

function curl(requests: AnswerRequest[], base: URL): string {
  const one = (request: AnswerRequest): string =>
    `curl ${shell(new URL("v1/answer", base).href)} \\\n  -H 'content-type: application/json' -d ${shell(JSON.stringify(request, null, 2))}`;
  return requests.map(one).join("\n\n");
}

function grpcurl(requests: AnswerRequest[], base: URL): string {
  const one = (request: AnswerRequest): string =>
    `grpcurl -plaintext -d ${shell(JSON.stringify(request, null, 2))} \\\n  ${base.hostname}:9000 mqan.v1.QuestionAnswering/Answer`;
  return requests.map(one).join("\n\n");
}

function python(requests: AnswerRequest[], base: URL): string {
  const context = requests[0]?.context ?? "";
  const calls = requests.map(({ context: _, question, ...options }) => {
    const given = Object.entries(options).map(([name, value]) => `, ${name}=${literal(value)}`);
    return `    print(client.answer(context, ${literal(question)}${given.join("")}))`;
  });
  const head = `from mqan_client import Client\n\ncontext = ${literal(context)}`;
  return `${head}\nwith Client(${literal(trim(base))}) as client:\n${calls.join("\n")}`;
}

function typescript(requests: AnswerRequest[], base: URL): string {
  const context = requests[0]?.context ?? "";
  const calls = requests.map(({ context: _, ...rest }) => {
    const fields = Object.entries(rest).map(([name, value]) => `, ${name}: ${JSON.stringify(value)}`);
    return `console.log(await client.answer({ context${fields.join("")} }));`;
  });
  const head = `import { Client } from "@mqan/client";\n\nconst client = new Client(${JSON.stringify(trim(base))});`;
  return `${head}\nconst context = ${JSON.stringify(context)};\n${calls.join("\n")}`;
}

function trim(base: URL): string {
  return base.href.replace(/\/$/, "");
}

function shell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Python reads strings, numbers and lists of JSON as they are. */
function literal(value: unknown): string {
  if (typeof value === "boolean") return value ? "True" : "False";
  return JSON.stringify(value);
}

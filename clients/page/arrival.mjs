// Stores the answers that the page shows on arrival: node arrival.mjs URL, of a server of the default model. Then build.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [base = "http://127.0.0.1:8000"] = process.argv.slice(2);
const source = (name) => join(import.meta.dirname, "src", name);
const [{ title, context, questions }] = JSON.parse(readFileSync(source("examples.json"), "utf8"));

const results = [];
for (const { question, labels } of questions) {
  const request = { context, question, ...(labels.length && { choices: labels }) };
  const ask = async (more) => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(new URL("v1/answer", `${base}/`), { method: "POST", headers, body: JSON.stringify({ ...request, ...more }) });
    if (!response.ok) throw new Error(await response.text());
    return response.json();
  };
  const answer = await ask({});
  results.push({ ...answer, alternatives: labels.length ? [] : (await ask({ alternatives: 3 })).alternatives });
}
const example = { title, context, questions: questions.map(({ question, kind, labels }) => ({ question, kind, labels })) };
writeFileSync(source("arrival.json"), `${JSON.stringify({ example, results }, null, 1)}\n`);

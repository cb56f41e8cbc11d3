// Ask for a decision as OpenAI's client does in a page: `node openai_in_a_page.mjs URL ORIGIN`. A browser asks first
// whether the page may send the headers of the client.
import OpenAI from "openai";

const [url, origin] = process.argv.slice(2);
const simple = new Set(["accept", "accept-language", "content-language"]);
let sent = [];

async function fetchAsBrowser(target, init) {
  const { method, headers } = new Request(target, init);
  const names = [...headers.keys()].filter((name) => !simple.has(name));
  const asked = { "access-control-request-method": method, "access-control-request-headers": names.join(",") };
  const told = await fetch(target, { method: "OPTIONS", headers: { origin, ...asked } });
  const allowed = (told.headers.get("access-control-allow-headers") ?? "").toLowerCase().split(/, ?/);
  if (!told.ok || told.headers.get("access-control-allow-origin") !== origin || names.some((n) => !allowed.includes(n))) {
    throw new Error(`blocked by CORS: ${told.status} for ${names}`);
  }
  sent = names;
  return fetch(target, init);
}

const client = new OpenAI({
  baseURL: `${url}/v1`,
  apiKey: "any",
  dangerouslyAllowBrowser: true,
  fetch: fetchAsBrowser,
  maxRetries: 0,
});
const { answers } = await client.decisions.create({
  model: "mqan-default",
  input: "I was charged twice for my order last week.",
  questions: [
    {
      type: "choice",
      name: "team",
      instructions: "Which team should take this?",
      choices: [{ value: "billing" }, { value: "shipping" }],
    },
  ],
});
console.log(JSON.stringify({ team: answers[0].choice, sent }));

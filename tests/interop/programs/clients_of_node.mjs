// Ask for decisions with the clients of OpenAI and of Vercel's AI SDK: `node clients_of_node.mjs URL`.
import { createOpenAI } from "@ai-sdk/openai";
import OpenAI from "openai";

const baseURL = `${process.argv[2]}/v1`;
const ticket = "I was charged twice for my order last week.";
const instructions = "Which team should take this?";

const decision = await new OpenAI({ baseURL, apiKey: "any" }).decisions.create({
  model: "mqan-default",
  input: ticket,
  questions: [
    { type: "choice", name: "team", instructions, choices: [{ value: "billing" }, { value: "shipping" }] },
  ],
});

const model = createOpenAI({ baseURL, apiKey: "any" }).decisionModel("mqan-default");
const { answers } = await model.doDecide({
  state: [{ type: "text", text: ticket }],
  questions: {
    team: { type: "choice", instructions, criteria: { billing: null, shipping: null } },
    twice: { type: "boolean", instructions: "Was the customer charged twice?" },
    haste: { type: "score", instructions: "How pressing is it?", criteria: ["can wait", "today"] },
  },
});

const told = { team: answers.team.choice, twice: answers.twice.probability, haste: answers.haste.score };
console.log(JSON.stringify({ openai: decision.answers[0].choice, aiSdk: told }));

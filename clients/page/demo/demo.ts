/** A page that answers without a server: it loads the bundle beside it, and runs the model. */

import "../src/style.css";
import { LocalModel } from "../../typescript/src/local/index.ts";
import { makeCard } from "../src/answers.ts";
import { at } from "../src/dom.ts";
import { markPlaces } from "../src/marked.ts";
import { COLOURS } from "../src/marks.ts";

let model: LocalModel | undefined;
const ask = at<HTMLButtonElement>("ask");
const read = (id: string): string => at<HTMLTextAreaElement | HTMLInputElement>(id).value;

/** Do something that takes a while; say what it is, and what went wrong. */
async function busy(doing: string, act: () => Promise<string>): Promise<void> {
  at("results").setAttribute("aria-busy", "true");
  at("status").textContent = doing;
  at("problem").textContent = "";
  ask.disabled = true;
  await new Promise((resolve) => setTimeout(resolve)); // show it before the model runs
  try {
    at("status").textContent = await act();
    ask.disabled = false;
  } catch (error) {
    at("status").textContent = "";
    at("problem").textContent = (error as Error).message;
    ask.disabled = model === undefined;
  }
  at("results").setAttribute("aria-busy", "false");
}

async function answer(local: LocalModel): Promise<string> {
  const [context, question] = [read("context"), read("question")];
  const choices = read("choices").split("\n").map((line) => line.trim()).filter(Boolean);
  const began = performance.now();
  const card = makeCard(1, question, await local.answer({ context, question, ...(choices.length && { choices }) }));
  at("text").hidden = false;
  at("text").replaceChildren(...markPlaces(context, card.items));
  at("answers").replaceChildren(card.element);
  return `Answered here in ${((performance.now() - began) / 1000).toFixed(1)} s`;
}

at("results").style.setProperty("--c", COLOURS[0] as string);
at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  void busy("Answering", () => answer(model as LocalModel));
});
await busy("Loading the model, about 30 MB", async () => {
  model = await LocalModel.open("bundle");
  return "The model is ready.";
});

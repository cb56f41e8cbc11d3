/** What is shown, as a file or a text to send. */

import { type Choice, ClientError } from "../../typescript/src/index.ts";
import { refusal } from "./answers.ts";
import { make, share } from "./dom.ts";
import { valueText } from "./records.ts";
import type { Result } from "./shown.ts";
import type { State } from "./state.ts";
import { watch } from "./watched.ts";

/** Write what is shown as one page that needs nothing else; `request` is what was asked, as code. */
export function toHtml(shown: HTMLElement, request: string, model: string): string {
  const copy = shown.cloneNode(true) as HTMLElement;
  for (const element of copy.querySelectorAll(".lit, .text .on")) element.classList.remove("lit", "on");
  for (const element of copy.querySelectorAll(".actions, .detail")) element.remove();
  const page = document.implementation.createHTMLDocument("Answers with their evidence");
  const viewport = make("meta", { name: "viewport", content: "width=device-width, initial-scale=1" });
  page.documentElement.lang = "en";
  page.head.append(make("meta", { charset: "utf-8" }), viewport, make("style", {}, document.querySelector("style")?.textContent ?? ""));
  const code = make("details", {}, make("summary", {}, "The request"), make("pre", { tabindex: "0" }, make("code", {}, request)));
  const script = `(${watch})(document.getElementById("shown"))`;
  page.body.append(
    make("main", { class: "saved" }, make("h1", {}, "Answers with their evidence"), copy, code, make("footer", {}, model)),
    make("script", {}, script),
  );
  return `<!doctype html>\n${page.documentElement.outerHTML}\n`;
}

/** Write questions and answers as Markdown, the text quoted first. */
export function toMarkdown(state: State, results: Result[]): string {
  const quoted = state.context.trim().split("\n").map((line) => `> ${line}`.trimEnd()).join("\n");
  const rows = toldOf(state, results).map(({ question, answer, probability }, i) => `${i + 1}. ${question} **${answer}** (${share(probability)})`);
  return `${quoted}\n\n${rows.join("\n")}\n`;
}

/** Return what was answered to each question and field that has a number, in their order. */
export function toldOf(state: State, results: Result[]): { question: string; answer: string; probability: number; choices: Choice[] }[] {
  return results.flatMap((result, i) => {
    const question = state.questions[i]?.question ?? "";
    if (result instanceof ClientError) return [];
    if ("record" in result) {
      return Object.entries(result.fields).map(([name, { answered, value, probability }]) =>
        ({ question: name, answer: answered ? valueText(value) : "∅", probability, choices: [] }));
    }
    const answer = result.answered ? result.answer : `∅ ${refusal(result)}`;
    return [{ question, answer, probability: result.confidence, choices: result.choices }];
  });
}

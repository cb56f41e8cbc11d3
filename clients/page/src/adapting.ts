/** The command that makes an adapter of rows whose labels a reader has set. */

import { shell } from "./snippets.ts";
import { choiceOf, type Question } from "./state.ts";

/** Write the command for a table of texts and labels; `found` are the labels that there are, in their order. */
export function adaptCommand(file: string, { question, kind, labels, adapter }: Question, found: string[]): string {
  const isScale = kind === "scale";
  const apart = found.find((label) => (isScale ? /[;,]/ : /[;=]/).test(label));
  if (apart) return `# “${apart}” has a sign that stands between labels: ask with another label.`;
  const choices = adapter || isScale ? found.filter(Boolean) : labels.map(choiceOf);
  const told = choices.map((choice) =>
    typeof choice === "string" ? choice : `${choice.label}=${(choice.description ?? "").replaceAll(";", ",")}`);
  return [
    `mqan adapt ${file} --text text --label label`,
    `--question ${shell(question)}`,
    isScale ? `--scale ${shell(told.join(", "))}` : `--labels ${shell(told.join("; "))}`,
    ...(kind === "or_none" || kind === "several" ? ["--none"] : []),
    `--name ${adapter ? shell(adapter) : nameOf(question)} --output adapters`,
  ].join(" \\\n  ");
}

/** Return a name that an adapter may have. */
function nameOf(question: string): string {
  return question.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 64) || "labels";
}

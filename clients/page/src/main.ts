/** The page: reads what is asked, asks the server that it comes from, shows the answers. */

import {
  type Answer, type AnswerRequest, Client, ClientError, type ClientOptions, type FilledRecord, UnauthenticatedError,
} from "../../typescript/src/index.ts";
import { type Card, makeCard, makeProblem } from "./answers.ts";
import { at, button, copy, make } from "./dom.ts";
import { Examples } from "./examples.ts";
import { answerExplained } from "./explained.ts";
import { Heat, type Weight } from "./heat.ts";
import { Links } from "./links.ts";
import { markPlaces } from "./marked.ts";
import { Questions } from "./questions.ts";
import { makeRecordCard } from "./records.ts";
import { LANGUAGES, type Language, snippet } from "./snippets.ts";
import { fromFragment, isRecord, problemOfQuestion, requestOf, type State, toFragment } from "./state.ts";

const MAX_HISTORY = 30;
const SAVE_AFTER_MS = 400; // browsers refuse addresses that change too often
const MARGIN_MS = 5000; // for the way to the server and back, and for retries
const base = new URL(".", document.baseURI.split("#")[0]);
[base.username, base.password] = ["", ""]; // the browser sends them by itself; in links and code they would be told on

const context = at<HTMLTextAreaElement>("context");
const questions = new Questions(at("questions"));
const examples = new Examples(at("example"), readForm, (state, note) => {
  reset();
  showState(state, note);
});
let options: ClientOptions = {};
let client = new Client(base.href, options);
let running: AbortController | undefined;
let saving: ReturnType<typeof setTimeout> | undefined;
let language: Language = "curl";
let heat: Heat | undefined;
/** Rows of the history by what was asked, the latest last. */
const remembered = new Map<string, HTMLElement>();
let links = new Links(() => look([]));

function look(weights: Weight[]): void {
  heat?.show(weights);
}

function readForm(): State {
  return { context: context.value, questions: questions.read() };
}

/** Return the form without rows that ask nothing. */
function readState(): State {
  const form = readForm();
  return { ...form, questions: form.questions.filter((question) => question.question.trim() !== "") };
}

/** Put a state into the address, so that a reload does not lose it. */
function save(state: State): void {
  clearTimeout(saving);
  try {
    history.replaceState(null, "", toFragment(state));
  } catch {
    // the text is too long for an address, or the address changes too often
  }
}

function saveSoon(): void {
  clearTimeout(saving);
  saving = setTimeout(() => save(readForm()), SAVE_AFTER_MS);
}

function showState(state: State, note = ""): void {
  context.value = state.context;
  questions.show(state.questions);
  showNote(note);
  showCode();
}

function showNote(note: string): void {
  at("note").textContent = note;
  at("note").hidden = !note;
}

function requests(state: State) {
  return state.questions.map((question) => requestOf(state.context, question));
}

/** Return what keeps a state from being asked. */
function problemOf(state: State): string | undefined {
  if (!state.context.trim()) return "Paste a text first, or choose an example.";
  if (!state.questions.length) return "Ask a question.";
  return state.questions.map(problemOfQuestion).find((problem) => problem !== undefined);
}

async function ask(): Promise<void> {
  stop("");
  clear();
  const state = readState();
  const problem = problemOf(state);
  at("problem").textContent = problem ?? "";
  if (problem) return;
  save(state);
  showCode();
  const mine = (running = new AbortController());
  showBusy(true);
  try {
    const results = await answerAll(state, mine);
    if (running !== mine) return; // cancelled, or something newer is asked
    show(state, results);
    remember(state);
    stop(count(results));
  } catch (error) {
    if (running !== mine) return;
    stop("");
    clear();
    at("problem").textContent = `This page failed: ${String(error)}. Ask again, or reload the page.`;
  }
}

type Result = Answer | FilledRecord | ClientError;

/** Ask all that is asked, and tell how far it is; an error stands in the place of what failed. */
async function answerAll(state: State, mine: AbortController): Promise<Result[]> {
  const asked = requests(state);
  let numRecords = 0;
  let numAnswers = 0;
  const tell = (): void => {
    if (running !== mine || asked.length < 2) return;
    at("status").textContent = `${numRecords + numAnswers} of ${asked.length} answered`;
  };
  const plain = asked.filter((request): request is AnswerRequest => !isRecord(request));
  const onProgress = (numEnded: number): void => ((numAnswers = numEnded), tell());
  const answering = answerExplained(client, plain, { signal: mine.signal, concurrency: 4, onProgress });
  const filling = asked.filter(isRecord).map(async (request): Promise<Result> => {
    const result = await client.fillRecord(request, { signal: mine.signal }).catch(asResult);
    numRecords++;
    tell();
    return result;
  });
  const [answers, records] = [(await answering).values(), (await Promise.all(filling)).values()];
  return asked.map((request) => (isRecord(request) ? records : answers).next().value as Result);
}

function asResult(error: unknown): ClientError {
  if (error instanceof ClientError) return error;
  throw error;
}

/** Say how many answers there are; nothing if the server asks for a key first. */
function count(results: Result[]): string {
  if (results.some((result) => result instanceof UnauthenticatedError)) return "";
  const numFailed = results.filter((result) => result instanceof ClientError).length;
  const numAnswers = results.length - numFailed;
  return `${numAnswers} ${numAnswers === 1 ? "answer" : "answers"}${numFailed ? `, ${numFailed} failed` : ""}`;
}

/** End what is running, if anything is. */
function stop(told: string): void {
  running?.abort();
  running = undefined;
  showBusy(false);
  at("status").textContent = told;
}

function showBusy(isBusy: boolean): void {
  at("results").setAttribute("aria-busy", `${isBusy}`);
  if (!isBusy && document.activeElement === at("cancel")) at("ask").focus(); // a hidden button loses the focus
  at("cancel").hidden = !isBusy;
  if (isBusy) at("status").textContent = "Asking …";
}

function clear(): void {
  at("shown").hidden = true;
  at("answers").replaceChildren();
  at("text").replaceChildren();
  at("problem").textContent = "";
  at("start").hidden = true;
}

/** Stop asking and take the answers away: the form is to hold something else. */
function reset(): void {
  stop("");
  clear();
  at("start").hidden = false;
}

function show(state: State, results: Result[]): void {
  const refused = results.find((result) => result instanceof UnauthenticatedError);
  at("key-form").hidden = !refused;
  if (refused) {
    at("problem").textContent = `${refused.message} ${refused.hint}`;
    at("key").focus();
    return;
  }
  look([]);
  links = new Links(() => look([]));
  const items: Card["items"] = [];
  const cards = state.questions.map(({ question }, i) => {
    const result = results[i];
    if (result === undefined || result instanceof ClientError) {
      return makeProblem(question, result ?? new ClientError("There is no answer.", { code: "no_answer" }));
    }
    const card =
      "record" in result
        ? makeRecordCard(`q${i}`, question, result, links, look)
        : makeCard(`q${i}`, question, result, links, look);
    items.push(...card.items);
    return card.element;
  });
  at("answers").replaceChildren(...cards);
  at("text").replaceChildren(...markPlaces(state.context, items, links));
  heat = new Heat(at("text"));
  at("text").scrollTop = 0;
  at("shown").hidden = false;
  scrollToFirst();
  const { top } = at("results").getBoundingClientRect();
  if (top > innerHeight / 2) scrollTo(0, scrollY + top); // in one column the answers stand below the questions
}

/** Long texts open at their first quotation. */
function scrollToFirst(): void {
  const box = at("text");
  const first = box.querySelector("mark");
  if (first) box.scrollTop = first.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3;
}

function remember(state: State): void {
  const list = at("asked");
  const fragment = toFragment(state);
  const title = `${state.questions.map(({ question }) => question).join(" · ")} — ${state.context.slice(0, 60)}`;
  const again = (): void => {
    examples.setOwn();
    showState(state);
    void ask();
  };
  remembered.get(fragment)?.remove();
  const row = make("li", {}, button({ dir: "auto" }, again, title));
  list.prepend(row);
  remembered.delete(fragment); // so that it is the latest
  remembered.set(fragment, row);
  for (const [oldest, last] of [...remembered].slice(0, -MAX_HISTORY)) {
    last.remove();
    remembered.delete(oldest);
  }
  at("history").hidden = false;
}

function showCode(): void {
  const state = readState();
  at("code").hidden = problemOf(state) !== undefined;
  at("snippet").textContent = snippet(language, requests(state), { base, needsKey: options.apiKey !== undefined });
  for (const each of at("languages").children) each.setAttribute("aria-pressed", `${each.textContent === language}`);
  at("copied").textContent = "";
  at("shared").textContent = "";
}

async function openFile(input: HTMLInputElement): Promise<void> {
  const file = input.files?.[0];
  if (!file) return;
  try {
    context.value = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    at("problem").textContent = "";
    examples.setOwn();
    showNote("");
    saveSoon();
  } catch {
    at("problem").textContent = `${file.name} is not text in UTF-8. Save it as UTF-8, or paste its text.`;
  }
  input.value = ""; // so that the same file can be opened again
  showCode();
}

async function describeServer(): Promise<void> {
  const model = await client.getModel();
  const on = model.provider.replace("ExecutionProvider", "");
  at("model").textContent = `Model ${model.model.name} ${model.model.version} on ${on}; server ${model.server_version}.`;
  options = { ...options, timeoutMs: model.limits.max_timeout_ms + MARGIN_MS };
  client = new Client(base.href, options);
}

function listen(): void {
  at("form").addEventListener("submit", (event) => {
    event.preventDefault();
    void ask();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void ask();
    } else if (event.key === "Escape") links.release();
  });
  at("form").addEventListener("input", () => {
    showCode();
    saveSoon();
  });
  at("add").addEventListener("click", () => questions.add().focus());
  at("cancel").addEventListener("click", () => stop("Cancelled."));
  at("file").addEventListener("change", (event) => void openFile(event.target as HTMLInputElement));
  at("share").addEventListener("click", () => {
    const state = readState();
    save(state);
    void copyAndTell(new URL(toFragment(state), base).href, at("shared"));
  });
  at("copy").addEventListener("click", () => void copyAndTell(at("snippet").textContent ?? "", at("copied")));
  at("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    useKey(at<HTMLInputElement>("key").value.trim());
  });
  addEventListener("hashchange", openFragment);
  for (const name of LANGUAGES) {
    at("languages").append(button({}, () => ((language = name), showCode()), name));
  }
}

async function copyAndTell(text: string, told: HTMLElement): Promise<void> {
  told.textContent = (await copy(text)) ? "Copied." : "Could not copy.";
}

function useKey(apiKey: string): void {
  try {
    options = { ...options, apiKey };
    client = new Client(base.href, options);
  } catch (error) {
    at("problem").textContent = (error as Error).message;
    return;
  }
  void describeServer().catch(() => {});
  void ask();
}

function openFragment(): void {
  if (location.hash.length < 2) return;
  clearTimeout(saving);
  reset();
  const state = fromFragment(location.hash);
  if (!state) {
    at("problem").textContent = "The link is incomplete or damaged.";
    return;
  }
  examples.setOwn();
  showState(state);
}

listen();
showState({ context: "", questions: [] });
openFragment();
describeServer().catch(() => {}); // the page can ask without knowing the model's name

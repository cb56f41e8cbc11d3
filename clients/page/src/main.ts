/** The page: reads what is asked, asks the server that it comes from, shows the answers. */

import {
  type AnswerRequest, Client, ClientError, type ClientOptions, UnauthenticatedError,
} from "../../typescript/src/index.ts";
import arrival from "./arrival.json";
import { badge } from "./answers.ts";
import { at, button, copyAndTell, cut, make } from "./dom.ts";
import { Examples } from "./examples.ts";
import { answerExplained } from "./explained.ts";
import { countTokens, looksForeign, readText, saveFile, splitText } from "./files.ts";
import { type KeptList, List } from "./list.ts";
import { Questions } from "./questions.ts";
import { toHtml, toldOf, toMarkdown } from "./saved.ts";
import { hide, type Result, show, watchShown } from "./shown.ts";
import { toImage } from "./pictured.ts";
import { LANGUAGES, type Language, RESPONSE, snippet } from "./snippets.ts";
import { fromFragment, isRecord, problemOfQuestion, requestOf, type State, toFragment } from "./state.ts";

const MAX_HISTORY = 30;
const SAVE_AFTER_MS = 400; // browsers refuse addresses that change too often
const MARGIN_MS = 5000; // for the way to the server and back, and for retries
const PART_TOKENS = 2000; // of a text that is too long for one question
const LONG_LINK = 8000; // characters, above which programs that open links may cut them
const MAX_OFFERED = 4; // answers that are told in short
const KEPT = "mqan";
const base = new URL(".", document.baseURI.split("#")[0]);
[base.username, base.password] = ["", ""]; // the browser sends them by itself; in links and code they would be told on

const context = at<HTMLTextAreaElement>("context");
const least = at<HTMLInputElement>("least");
const questions = new Questions(at("questions"));
const examples = new Examples(at("examples"), readForm, (state, note, isExample) => {
  reset();
  setMode(false);
  showState(state, note);
  if (isExample) void ask();
  else context.focus();
});
const list = new List(
  (state, results) => display(state, results),
  (path, document) => {
    const key = options.apiKey ? { authorization: `Bearer ${options.apiKey}` } : {};
    const headers = { "content-type": "application/json", ...key };
    return fetch(new URL(path, base), { method: "POST", headers, body: JSON.stringify(document) });
  },
);
let options: ClientOptions = {};
let client = new Client(base.href, options);
let running: AbortController | undefined;
let saving: ReturnType<typeof setTimeout> | undefined;
let language: Language = "curl";
let mostTokens = Infinity;
/** What is shown. */
let latest: { state: State; results: Result[] } | undefined;
/** Rows of the history by what was asked, the latest last. */
const remembered = new Map<string, HTMLElement>();

const isList = (): boolean => !at("many").hidden;

function readForm(): State {
  const bound = Number(least.value) / 100;
  return { context: context.value, questions: questions.read(), ...(bound > 0 && { least: Math.min(bound, 1) }) };
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

interface Kept {
  state?: State;
  results?: Result[];
  /** The history, the latest last. */
  asked?: string[];
  /** A list of texts, with what its table holds. */
  texts?: string;
  list?: KeptList;
}

/** Keep what is shown and the history for a reload, as far as the browser has room; an error is asked again. */
function keep(state: State): void {
  const isWhole = (results: Result[]): boolean => results.every((result) => !(result instanceof ClientError));
  const asked = [...remembered.keys()];
  const one = latest && isWhole(latest.results) ? { results: latest.results } : {};
  const many = { texts: at<HTMLTextAreaElement>("texts").value, list: isWhole(list.kept.rows.flat()) ? list.kept : { ...list.kept, rows: [] } };
  const kept: Kept = { state, asked, ...(isList() ? many : one) };
  try {
    sessionStorage.setItem(KEPT, JSON.stringify(kept));
  } catch {
    sessionStorage.setItem(KEPT, JSON.stringify({ asked } satisfies Kept));
  }
}

/** Return what was kept in this tab, if anything was. */
function readKept(): Kept | undefined {
  try {
    return (JSON.parse(sessionStorage.getItem(KEPT) ?? "null") as Kept | null) ?? undefined;
  } catch {
    return undefined;
  }
}

function showState(state: State, note = ""): void {
  context.value = state.context;
  least.value = state.least ? `${Math.round(100 * state.least)}` : "";
  questions.show(state.questions);
  at("note").textContent = note;
  at("note").hidden = !note;
  showForm();
}

/** Show what follows from the form: the code, and what can be told about the text. */
function showForm(): void {
  const numTokens = countTokens(context.value);
  const isLong = numTokens > mostTokens;
  at("tokens").textContent = numTokens < 300 ? "" : `about ${numTokens} tokens${isLong ? `, of which a question may have ${mostTokens}.` : ""}`;
  at("split").hidden = !isLong;
  at("language").textContent = looksForeign(context.value) ? "This does not look like English, which is all that the model reads." : "";
  showCode();
  forgetCopied();
}

function setMode(isMany: boolean): void {
  at("many").hidden = !isMany;
  at("one").hidden = isMany;
  at("mode-list").setAttribute("aria-pressed", `${isMany}`);
  at("mode-one").setAttribute("aria-pressed", `${!isMany}`);
  at("share").hidden = isMany;
  if (!isMany) at("list").hidden = true;
  showCode();
  forgetCopied();
}

function requests(state: State) {
  return state.questions.map((question) => requestOf(state.context, question, state.least));
}

/** Return what keeps a state from being asked. */
function problemOf(state: State): string | undefined {
  if (isList() ? !list.texts.length : !state.context.trim()) {
    return `Paste ${isList() ? "some texts" : "a text"} first, or choose an example.`;
  }
  if (!state.questions.length) return "Ask a question.";
  return state.questions.map(problemOfQuestion).find((problem) => problem !== undefined);
}

/** Ask what the form holds. On arrival stored answers stay until there are others; a list may have its answers given. */
async function ask(isArrival = false, given?: KeptList): Promise<void> {
  stop("");
  if (!isArrival) clear();
  const state = readState();
  const problem = problemOf(state);
  at("problem").textContent = problem ?? "";
  if (problem) return;
  if (!isArrival) save(state);
  showCode();
  const mine = (running = new AbortController());
  showBusy(true);
  try {
    if (isList()) {
      const asking = list.ask(client, state, mine.signal, given);
      goTo("results");
      offerDown();
      await asking;
      if (running === mine) stop(at("status").textContent ?? "");
      return keep(state);
    }
    const results = await answerAll(state, mine);
    if (running !== mine) return; // cancelled, or something newer is asked
    const refused = results.find((result) => result instanceof UnauthenticatedError);
    at("key-form").hidden = !refused;
    if (refused) {
      stop(isArrival ? "These answers were stored with the page." : "");
      if (!isArrival) at("problem").textContent = "This server needs an API key.";
      if (!isArrival) at("key").focus();
      return;
    }
    if (isArrival && results.some((result) => result instanceof ClientError)) return stop("These answers were stored with the page.");
    display(state, results);
    if (!isArrival) remember(state);
    keep(state);
    stop(count(results));
  } catch (error) {
    if (running !== mine) return;
    stop("");
    clear();
    at("problem").textContent = `This page failed: ${String(error)}. Ask again, or reload the page.`;
  }
}

/** Ask all that is asked, and tell how far it is; an error takes the place of what failed. */
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

/** Say how many answers there are. */
function count(results: Result[]): string {
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

/** While the answers are below what is seen, tell them in short and offer the way to them, or to ask anew. */
function offerDown(): void {
  const hasAnswers = !at("shown").hidden || !at("list").hidden;
  at("down").hidden = !hasAnswers || at("results").getBoundingClientRect().top < innerHeight;
  const told = latest && !isList() && !isChanged() ? toldOf(latest.state, latest.results) : [];
  const short = told.slice(0, MAX_OFFERED).map(({ answer }, i) => make("bdi", {}, badge(i + 1), cut(answer, 30)));
  at("down").classList.toggle("primary", isChanged());
  at("down").replaceChildren(...short, make("strong", {}, isChanged() ? "Ask" : short.length ? "See why ↓" : "See the answers ↓"));
}

/** Whether the form holds something else than what was answered. */
function isChanged(): boolean {
  return latest !== undefined && !isList() && toFragment(readState()) !== toFragment(latest.state);
}

function tellChanged(): void {
  if (!latest || running || isList()) return;
  at("status").textContent = isChanged() ? "Changed since then: press Ask." : count(latest.results);
  offerDown();
}

/** In one column the answers are below the questions: go there, unless they are seen. */
function goTo(id: string): void {
  const { top } = at(id).getBoundingClientRect();
  if (top > innerHeight / 2) scrollTo(0, scrollY + top);
}

function clear(): void {
  latest = undefined;
  hide();
  at("down").hidden = true;
  at("problem").textContent = "";
  at("start").hidden = true;
}

/** Stop asking and take the answers away: the form is to hold something else. */
function reset(): void {
  stop("");
  clear();
  at("list").hidden = true;
  at("start").hidden = false;
}

function display(state: State, results: Result[]): void {
  const isNew = isList() || latest === undefined;
  latest = { state, results };
  show(state, results);
  at("start").hidden = true;
  showCode();
  offerDown();
  if (isNew) goTo(isList() ? "shown" : "results");
}

function remember(state: State): void {
  const list = at("asked");
  const fragment = toFragment(state);
  const title = `${state.questions.map(({ question }) => question).join(" · ")} — ${state.context.slice(0, 60)}`;
  const again = (): void => {
    examples.choose();
    setMode(false);
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
  at("code").hidden = isList() || problemOf(state) !== undefined;
  const grpcPort = document.querySelector<HTMLMetaElement>("meta[name=grpc-port]")?.content ?? "";
  const target = { base, grpcPort, needsKey: options.apiKey !== undefined };
  at("snippet").textContent =
    language === RESPONSE ? JSON.stringify(latest?.results ?? [], null, 2) : snippet(language, requests(state), target);
  for (const each of at("languages").children) each.setAttribute("aria-pressed", `${each.textContent === language}`);
}

/** What was copied or saved is no longer what the form asks. */
function forgetCopied(): void {
  for (const id of ["copied", "shared", "sent"]) at(id).textContent = "";
}

async function openFile(input: HTMLInputElement): Promise<void> {
  const file = input.files?.[0];
  if (!file) return;
  try {
    const text = await readText(file);
    const isTable = /\.[ct]sv$/i.test(file.name);
    at("problem").textContent = "";
    examples.choose();
    setMode(isTable);
    if (isTable) fillList(text);
    else showState({ ...readForm(), context: text });
    saveSoon();
  } catch {
    at("problem").textContent = `${file.name} is not text in UTF-8. Save it as UTF-8, or paste its text.`;
  }
  input.value = ""; // so that the same file can be opened again
}

function fillList(text: string): void {
  at<HTMLTextAreaElement>("texts").value = text;
  list.read();
}

async function describeServer(): Promise<void> {
  const model = await client.getModel();
  const on = model.provider.replace("ExecutionProvider", "");
  at("model").textContent = `Model ${model.model.name} ${model.model.version} on ${on}; server ${model.server_version}.`;
  options = { ...options, timeoutMs: model.limits.max_timeout_ms + MARGIN_MS };
  client = new Client(base.href, options);
  mostTokens = model.limits.max_context_tokens;
  questions.offer(model.adapters);
  at("card").hidden = options.apiKey !== undefined; // a link sends no key
  showForm();
}

function listen(): void {
  watchShown();
  at("form").addEventListener("submit", (event) => {
    event.preventDefault();
    void ask();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    void ask();
  });
  at("form").addEventListener("input", ({ target }) => {
    if (target === context) examples.choose();
    showForm();
    tellChanged();
    if (!isList()) saveSoon();
  });
  at("mode-one").addEventListener("click", () => (reset(), setMode(false)));
  at("mode-list").addEventListener("click", () => (reset(), setMode(true), at("texts").focus()));
  at("split").addEventListener("click", () => {
    setMode(true);
    const rows = splitText(context.value, PART_TOKENS).map((part) => `"${part.replaceAll('"', '""')}"`);
    fillList(["part", ...rows].join("\n"));
  });
  at("list-body").addEventListener("change", () => keep(readState()));
  at("add").addEventListener("click", () => questions.add().focus());
  at("cancel").addEventListener("click", () => stop("Cancelled."));
  at("file").addEventListener("change", (event) => void openFile(event.target as HTMLInputElement));
  at("share").addEventListener("click", () => {
    const state = readState();
    save(state);
    const link = new URL(toFragment(state), base).href;
    const long = link.length > LONG_LINK ? ` It has ${link.length} characters: better send a saved file.` : "";
    void copyAndTell(link, at("shared"), long);
  });
  at("copy").addEventListener("click", () => void copyAndTell(at("snippet").textContent ?? "", at("copied")));
  at("save").addEventListener("click", () => {
    if (!latest) return;
    const request = JSON.stringify(requests(latest.state), null, 2);
    saveFile("answers.html", "text/html", toHtml(at("shown"), request, at("model").textContent ?? ""));
    at("sent").textContent = "Saved as answers.html.";
  });
  at("markdown").addEventListener("click", () => {
    if (latest) void copyAndTell(toMarkdown(latest.state, latest.results), at("sent"));
  });
  at("image").addEventListener("click", () => {
    if (latest) void copyImage(toImage(latest.state, latest.results, at("text")), at("sent"));
  });
  at("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    useKey(at<HTMLInputElement>("key").value.trim());
  });
  at("down").addEventListener("click", () => (isChanged() ? void ask() : goTo("results")));
  new IntersectionObserver(offerDown).observe(at("results"));
  addEventListener("hashchange", () => openFragment(true));
  for (const name of LANGUAGES) {
    at("languages").append(button({}, () => ((language = name), showCode(), forgetCopied()), name));
  }
}

/** Copy a picture, or save it where the clipboard takes none. */
async function copyImage(picture: Promise<Blob>, told: HTMLElement): Promise<void> {
  try {
    await navigator.clipboard.write([new ClipboardItem({ "image/png": picture })]);
    told.textContent = "Copied.";
  } catch {
    saveFile("answers.png", "image/png", await picture);
    told.textContent = "The clipboard takes no image: saved as answers.png.";
  }
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

/** Open what the address holds; a link that is followed is asked, what is loaded again shows what it had. */
function openFragment(isFollowed: boolean): void {
  clearTimeout(saving);
  reset();
  const state = fromFragment(location.hash);
  if (!state) {
    at("problem").textContent = "The link is incomplete or damaged.";
    return;
  }
  examples.choose();
  setMode(false);
  showState(state);
  if (!restore(state) && isFollowed && problemOf(readState()) === undefined) void ask();
}

/** Show what was kept of a state, or of the latest one; return whether something was. */
function restore(state?: State): boolean {
  const { state: of, results, texts, list: table } = readKept() ?? {};
  if (!of || (state && toFragment(state) !== toFragment(of))) return false;
  showState(of);
  if (texts) {
    setMode(true);
    fillList(texts);
    void ask(false, table);
  } else if (results) display(of, results);
  return Boolean(texts ?? results);
}


/** Show an example with its stored answers at once, and ask it while they are read. */
function arrive(): void {
  const { title, ...state } = arrival.example;
  examples.choose(title);
  showState(state as State);
  latest = { state: state as State, results: arrival.results as unknown as Result[] };
  display(latest.state, latest.results);
  if (matchMedia("(pointer: fine)").matches) context.select(); // what is pasted takes its place
  void ask(true);
}

listen();
for (const fragment of readKept()?.asked ?? []) {
  const state = fromFragment(fragment);
  if (state) remember(state);
}
const [navigation] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
if (location.hash.length > 1) openFragment(navigation?.type === "navigate");
else if (!readKept()) arrive();
else if (!restore()) showState({ context: "", questions: [] });
describeServer().catch(() => {}); // the page can ask without knowing the model's name

// What the page tells and keeps: drafts, failures, numbers of answers, what is lit, what is copied, and where the focus is.

import assert from "node:assert/strict";
import { ask, fill, hold, QUESTION, TEXT, until } from "./scenarios.mjs";

const isBusy = (page) => page.getAttribute("#results", "aria-busy").then((busy) => busy === "true");
const textOf = (page, id, text) =>
  page.waitForFunction(([id, text]) => document.getElementById(id).textContent === text, [id, text]);

export async function examplesBesideOwnText(open) {
  const page = await open();
  const choose = async (name) => {
    const before = await page.inputValue("#context");
    await page.getByRole("button", { name, exact: true }).click();
    await page.waitForFunction((text) => document.getElementById("context").value !== text, before);
  };
  await fill(page, "My own text.", "My own question?", "");
  await page.locator("#questions select").nth(1).selectOption("choices");
  await page.locator("#questions textarea").nth(1).fill("red\ngreen");
  await choose("Ticket routing");
  const example = await page.inputValue("#context");
  await page.locator("#questions input").first().fill("Another question about the example?");
  await choose("Log line");
  await choose("Your own");
  assert.equal(await page.inputValue("#context"), "My own text.");
  assert.equal(await page.locator("#questions input").first().inputValue(), "My own question?");
  assert.equal(await page.locator("#questions textarea").nth(1).inputValue(), "red\ngreen");
  await choose("Ticket routing");
  assert.equal(await page.inputValue("#context"), example);
  assert.equal(await page.locator("#questions input").first().inputValue(), "Another question about the example?");
  await page.waitForSelector("#answers article"); // an example is asked at once
  await choose("Your own");
  assert.ok(await page.locator("#shown").isHidden(), "old answers stand under another text");
}

export async function writtenButNotAsked(open) {
  const page = await open();
  const saved = async (act) => {
    const before = page.url();
    await act();
    await page.waitForFunction((url) => location.href !== url, before);
  };
  await saved(() => fill(page, TEXT, QUESTION));
  await page.reload();
  assert.equal(await page.inputValue("#context"), TEXT);
  assert.equal(await page.locator("#questions input").inputValue(), QUESTION);
  const link = page.url();
  await saved(() => page.fill("#context", "A text that is never asked."));
  await page.evaluate((to) => (location.href = to), link);
  await page.waitForFunction((text) => document.getElementById("context").value === text, TEXT);
  await page.goBack();
  await page.waitForFunction(() => document.getElementById("context").value === "A text that is never asked.");
  await page.fill("#context", "Typed just before a link is followed.");
  await page.evaluate(() => (location.hash = "#broken"));
  await page.waitForFunction(() => document.getElementById("problem").textContent.includes("link"));
  await page.waitForTimeout(600);
  assert.match(page.url(), /#broken$/, "the address is still that of the link");
}

export async function failuresOfThePage(open) {
  const page = await open();
  const fails = async (what) => {
    await page.click("#ask");
    await page.waitForFunction(() => /^This page failed: TypeError/.test(document.getElementById("problem").textContent));
    assert.equal(await isBusy(page), false, what);
    assert.equal(await page.textContent("#status"), "", what);
    assert.ok(await page.locator("#cancel").isHidden(), what);
  };
  await fill(page, TEXT, QUESTION);
  await page.evaluate(() => ([window.any, AbortSignal.any] = [AbortSignal.any, undefined]));
  await fails("while it asks");
  await page.evaluate(() => (AbortSignal.any = window.any));
  await page.route("**/v1/answer", (route) => route.fulfill({ json: { answer: "an answer without its words" } }));
  await fails("while it shows the answers");
  await page.unroute("**/v1/answer");
  await page.click("#ask");
  await page.waitForSelector("#answers article");
  assert.equal(await page.textContent("#problem"), "");
}

export async function timesOfTheServer(open) {
  const page = await open();
  await page.route("**/v1/model", async (route) => {
    const response = await route.fetch();
    const model = await response.json();
    await route.fulfill({ response, json: { ...model, limits: { ...model.limits, max_timeout_ms: 90_000 } } });
  });
  await page.reload();
  await page.waitForFunction(() => document.getElementById("model").textContent);
  const asked = page.waitForRequest("**/v1/answer");
  await ask(page);
  const { timeout_ms: ms } = (await asked).postDataJSON();
  assert.ok(ms > 90_000 && ms <= 100_000, `the page waits ${ms} ms`);
}

export async function numbersOfAnswers(open) {
  const page = await open();
  for (const id of ["status", "problem"]) {
    const display = await page.locator(`#${id}`).evaluate((node) => getComputedStyle(node).display);
    assert.equal(display, "block", `#${id} is there before something is said in it`);
  }
  await ask(page);
  await textOf(page, "status", "1 answer");
  await ask(page, TEXT, QUESTION, "How tall is it?");
  await textOf(page, "status", "2 answers");
  await page.locator("#questions input").nth(1).fill("why ".repeat(3000));
  await page.click("#ask");
  await textOf(page, "status", "1 answer, 1 failed");
}

export async function outlines(open) {
  for (const options of [{ colorScheme: "light" }, { colorScheme: "dark" }, { forcedColors: "active" }]) {
    const page = await open(options);
    await ask(page);
    const outline = (selector) =>
      page.locator(selector).first().evaluate((node) => {
        const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(node);
        return `${outlineStyle} ${outlineWidth} ${outlineColor}`;
      });
    assert.match(await outline("#text .place"), /^none/);
    await page.hover("#answers .token");
    const lit = await outline("#text .place.lit");
    const ofSystem = await page.evaluate(() => {
      document.body.style.borderColor = "CanvasText"; // the only colours that are shown as they are among forced ones
      return getComputedStyle(document.body).borderTopColor;
    });
    assert.equal(lit, `solid 2px ${ofSystem}`, `what is lit has an outline: ${JSON.stringify(options)}`);
    assert.equal(await outline("#answers .token.lit"), lit);
    await page.keyboard.press("Tab");
    await page.locator("#answers .token").first().focus();
    assert.match(await outline("#answers .token.lit"), /^solid 3px/, "the focus keeps its own outline");
  }
}

export async function copying(open) {
  const page = await open();
  await fill(page, TEXT, QUESTION);
  const focused = () => page.evaluate(() => document.activeElement.id);
  await page.evaluate(() => (navigator.clipboard.writeText = () => Promise.reject(new Error("not allowed"))));
  await page.click("#share");
  await textOf(page, "shared", "Could not copy.");
  await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined })); // as over plain HTTP
  await page.click("#share");
  await textOf(page, "shared", "Copied.");
  assert.equal(await focused(), "share");
  await page.evaluate(() => (document.execCommand = () => false));
  await page.click("#code summary");
  await page.click("#copy");
  await textOf(page, "copied", "Could not copy.");
  assert.equal(await focused(), "copy");
}

export async function copiedImage(open) {
  const page = await open();
  await ask(page);
  await page.click("#image");
  await textOf(page, "sent", "Copied.");
  const drawn = await page.evaluate(async () => {
    const [item] = await navigator.clipboard.read();
    const { width, height } = (window.picture = await createImageBitmap(await item.getType("image/png")));
    const pen = new OffscreenCanvas(width, height).getContext("2d");
    pen.drawImage(window.picture, 0, 0);
    const colours = new Set(new Uint32Array(pen.getImageData(0, 0, width, height).data.buffer));
    const rgb = getComputedStyle(document.querySelector("#text .place")).borderBottomColor.match(/\d+/g).map(Number);
    return { width, hasMark: colours.has(((255 << 24) | (rgb[2] << 16) | (rgb[1] << 8) | rgb[0]) >>> 0), numColours: colours.size };
  });
  assert.equal(drawn.width, 1680);
  assert.ok(drawn.hasMark, "the mark of the text is not drawn in its colour");
  assert.ok(drawn.numColours > 20, "there are no letters");
  await page.evaluate(() => (navigator.clipboard.write = () => Promise.reject(new Error("not allowed"))));
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#image")]);
  assert.equal(download.suggestedFilename(), "answers.png");
  await textOf(page, "sent", "The clipboard takes no image: saved as answers.png.");
}

export async function adapters(open) {
  const page = await open();
  const adapter = page.locator("#questions .adapter");
  await page.fill("#context", "Ada wrote notes.");
  await page.selectOption("#questions select", "choices");
  await adapter.waitFor();
  assert.deepEqual(await adapter.locator("option").allTextContents(), ["Labels of my own", "desks: harbour, notes, walls"]);
  await adapter.selectOption("desks");
  assert.ok(await page.locator("#questions textarea").isHidden());
  assert.equal(await page.locator("#questions input").first().inputValue(), "Which desk?");
  const asks = page.waitForRequest("**/v1/answer");
  await page.click("#ask");
  assert.deepEqual((await asks).postDataJSON().choices, { adapter: "desks" });
  await page.waitForSelector("#answers .words");
  assert.match(await page.textContent("#answers .words"), /^notes/);
  await page.click("#code summary");
  await page.getByRole("button", { name: "Python" }).click();
  assert.match(await page.textContent("#snippet"), /"Which desk\?", adapter="desks"/);
  await page.getByRole("button", { name: "Decision API" }).click();
  assert.match(await page.textContent("#snippet"), /"type": "choice",\s+"adapter": "desks"/);
  const link = page.url();
  await page.selectOption("#questions select >> nth=0", "scale");
  assert.equal(await adapter.count(), 0, "it is no scale");
  assert.ok(await page.locator("#questions textarea").isVisible());
  await page.goto("about:blank");
  await page.goto(link);
  assert.equal(await adapter.inputValue(), "desks", "a link has no adapter");
  assert.equal(await page.getByRole("link", { name: "Source" }).getAttribute("href"), "https://code.example/a?b=1&c=2");
  await page.getByRole("link", { name: "Model card" }).click();
  await page.waitForURL("**/card");
  assert.match(await page.textContent("body"), /# mqan-default [^]*Intended use/);
}

export async function focusAfterCancel(open) {
  const page = await open();
  const held = await hold(page);
  await fill(page, TEXT, QUESTION);
  const focused = () => page.evaluate(() => document.activeElement.id);
  await page.click("#ask");
  await until(() => held.length === 1);
  await page.click("#cancel");
  assert.equal(await focused(), "ask");
  await page.click("#ask");
  await until(() => held.length === 2);
  await page.focus("#cancel");
  await held[1].continue();
  await page.waitForSelector("#answers article");
  assert.equal(await focused(), "ask", "answers hide the button that has the focus");
}

// As behind a proxy that serves https://example.com/mqan/: paths without the prefix are somebody else's.
export async function behindAPrefix(open) {
  const page = await open();
  const root = page.url();
  const [others, prefix] = [[], "/mqan/"];
  await page.route("**/*", async (route) => {
    const url = new URL(route.request().url());
    const isOurs = url.pathname.startsWith(prefix);
    if (!isOurs) others.push(url.pathname);
    const response = await route.fetch({ url: new URL(url.pathname.slice(isOurs ? prefix.length : 1), root).href });
    await route.fulfill({ response });
  });
  await page.goto(new URL("mqan/", root).href);
  await ask(page);
  await page.click("nav a");
  await page.waitForURL("**/mqan/docs");
  await page.getByRole("link", { name: "OpenAPI document" }).click();
  await page.waitForURL("**/mqan/openapi.json");
  await page.goBack();
  await page.getByRole("link", { name: "Try it" }).click();
  await page.waitForURL((url) => url.pathname === prefix);
  await page.waitForSelector("#context");
  assert.deepEqual(others, []);
}

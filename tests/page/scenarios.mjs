// What people do with the page. Each function gets `open`, which opens the page, and throws if the page fails them.

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const TEXT = "The Eiffel Tower is 330 metres tall. It was built by Gustave Eiffel's company for a fair in Paris.";
export const QUESTION = "Who built the Eiffel Tower?";

export async function fill(page, context, ...questions) {
  await page.fill("#context", context);
  for (const [i, question] of questions.entries()) {
    if (i) await page.click("#add");
    await page.locator("#questions input").nth(i).fill(question);
  }
}

export async function ask(page, context = TEXT, ...questions) {
  await fill(page, context, ...(questions.length ? questions : [QUESTION]));
  await page.click("#ask");
  await page.waitForSelector("#answers article");
}

/** The words of an answer; of a record its fields, each with its value. */
const answerOf = (article) =>
  article.evaluate((node) => {
    const rows = [...node.querySelectorAll(".record tr")].map((row) => {
      const value = row.querySelector(".value, .without");
      return `${row.querySelector("th").textContent} ${value.textContent.trim()}`;
    });
    if (rows.length) return rows.join(", ");
    const words = node.querySelector(".words")?.cloneNode(true);
    for (const small of words?.querySelectorAll("small") ?? []) small.remove();
    return words?.textContent.trim() ?? "";
  });

const isLit = (locator) => locator.evaluate((node) => node.classList.contains("lit"));

export async function examples(open) {
  const page = await open();
  const answers = {};
  await page.click("#examples summary");
  for (const example of (await page.locator("#examples button").all()).slice(1)) {
    await example.click();
    await page.waitForSelector("#answers article");
    const found = await page.locator("#answers article").all();
    answers[await example.textContent()] = await Promise.all(found.map(answerOf));
  }
  return answers;
}

export async function wordsAndPlaces(open) {
  const page = await open({ hasTouch: true });
  await ask(page);
  const word = page.locator("#answers .token.context").first();
  const place = page.locator("#text .place").first();
  assert.ok((await place.textContent()).startsWith(await word.textContent()));
  const both = async () => [await isLit(word), await isLit(place)];
  assert.deepEqual(await both(), [false, false]);
  await word.hover();
  assert.deepEqual(await both(), [true, true], "hovering a word");
  assert.match(await page.textContent("#detail"), /from the text, characters \d+ to \d+; probability/);
  assert.equal((await shaded(page))[0], await word.textContent(), "its step looked at it most");
  await page.mouse.move(0, 0);
  assert.deepEqual(await both(), [false, false], "leaving it");
  assert.deepEqual(await shaded(page), [], "nothing is shaded then");
  await place.hover();
  assert.deepEqual(await both(), [true, true], "hovering a place");
  assert.equal((await shaded(page))[0], await word.textContent(), "the place shades the same");
  await page.mouse.move(0, 0);
  await word.focus();
  assert.deepEqual(await both(), [true, true], "focusing a word");
  await page.focus("#context");
  assert.deepEqual(await both(), [false, false], "leaving it by keyboard");
  await place.focus();
  await page.keyboard.press("Enter");
  await page.focus("#context");
  assert.deepEqual(await both(), [true, true], "a place that was chosen stays lit");
  await page.keyboard.press("Escape");
  assert.deepEqual(await both(), [false, false], "until Escape");
  await word.tap();
  assert.deepEqual(await both(), [true, true], "tapping a word");
}

export const MAIL = `Invoice 2024-118 of 03/05/2024 🧾. Total 476.00 EUR, due on 2 June 2024. Write to bill@lumen.example.`;

/** Set the last question to a record of fields, each a name, a type and, of a choice, its options. */
export async function fillFields(page, ...fields) {
  await page.locator("#questions > li > select").last().selectOption("record");
  const box = page.locator(".fields").last();
  for (const [i, [name, type, options]] of fields.entries()) {
    if (i) await box.getByText("Add a field").click();
    const row = box.locator("li").nth(i);
    await row.locator("input").first().fill(name);
    await row.locator("select").selectOption(type);
    if (options) await row.locator("input").last().fill(options);
  }
}

const rowsOf = (page) =>
  page.locator(".record tr").evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));

export async function recordOfFields(open) {
  const page = await open();
  await page.fill("#context", MAIL);
  await fillFields(page);
  await page.click("#ask");
  assert.match(await page.textContent("#problem"), /needs a field/);
  await fillFields(page, ["total", "money"], ["When is it due?", "date"], ["order number", "text"], ["invoice date", "date"],
    ["email", "email"], ["paid", "yes or no"], ["kind", "one of", "invoice, complaint"], ["amounts", "several texts"]);
  await page.click("#ask");
  await page.waitForSelector(".record");
  const rows = Object.fromEntries(await rowsOf(page));
  assert.match(rows["total"], /^476 EUR.*“476.00 EUR”$/);
  assert.match(rows["When is it due?"], /^2024-06-02.*“2 June 2024”$/);
  assert.match(rows["order number"], /Not in the text/);
  assert.match(rows["invoice date"], /“03\/05\/2024”.*order of day and month is not known/);
  assert.match(rows["email"], /^bill@lumen.example/);
  assert.match(rows["paid"], /^(yes|no|∅)/);
  assert.match(rows["kind"], /^invoice/);
  assert.match(rows["amounts"], /476.00 EUR/);
  assert.equal(await page.textContent("#text"), MAIL);
  const value = page.locator(".record .choice", { hasText: "2024-06-02" });
  const place = page.locator("#text .place", { hasText: "June" }); // of a piece, where the words of a label overlap it
  assert.deepEqual([await isLit(value), await isLit(place)], [false, false]);
  await value.hover();
  assert.deepEqual([await isLit(value), await isLit(place)], [true, true], "hovering a value");
  await page.mouse.move(0, 0);
  await place.focus();
  assert.ok(await isLit(value), "focusing a place");
  const other = await open();
  await other.goto(page.url());
  await other.click("#ask");
  await other.waitForSelector(".record");
  assert.deepEqual(await rowsOf(other), await rowsOf(page), "a link has the fields");
  await page.locator(".fields").getByLabel("Remove this field").first().click();
  assert.equal(await page.locator(".fields li").count(), 7);
  assert.ok(!(await page.textContent("#snippet")).includes('"total"'), "the code follows");
  await page.locator(".fields").getByText("Add a field").click();
  await page.locator(".fields li").last().locator("input").first().fill("email");
  await page.click("#ask");
  assert.match(await page.textContent("#problem"), /“email” is there twice/);
}

export async function recordsAmongQuestions(open) {
  const page = await open();
  await fill(page, `${MAIL} ${ATTACK}`, "Who sent it?", "");
  await fillFields(page, [ATTACK, "text"], ["total", "money"]);
  await page.click("#add");
  await page.locator("#questions > li > input").nth(2).fill("How much is it?");
  await page.click("#ask");
  await page.waitForSelector("#answers article");
  const titles = await page.locator("#answers h2").allTextContents();
  assert.deepEqual(titles, ["Who sent it?", "Record", "How much is it?"]);
  assert.equal((await rowsOf(page))[0][0], ATTACK);
  await assertUnbroken(page);
  await page.click("#history summary");
  await page.fill("#context", "");
  await page.locator("#asked button").first().click();
  await page.waitForSelector(".record");
  assert.equal(await page.locator("#questions > li > select").nth(1).inputValue(), "record");
  await fill(page, "a ".repeat(5000));
  await page.click("#ask");
  await page.waitForFunction(() => document.querySelectorAll("#answers .problem").length === 3);
  assert.equal(await page.locator(".record").count(), 0, "an old record stands under a new error");
}

/** The words that are shaded, the strongest shade first. */
function shaded(page) {
  return page.evaluate(() =>
    [1, 2, 3, 4].flatMap((i) => [...(CSS.highlights.get(`heat-${i}`) ?? [])].map((range) => range.toString())),
  );
}

export async function keyboardAlone(open) {
  const page = await open();
  const reach = async (selector) => {
    for (let i = 0; i < 60; i++) {
      await page.keyboard.press("Tab");
      if (await page.evaluate((wanted) => document.activeElement?.matches(wanted), selector)) return;
    }
    assert.fail(`Tab does not reach ${selector}`);
  };
  await reach("#context");
  await page.keyboard.type(TEXT);
  await reach("#questions input");
  await page.keyboard.type(QUESTION);
  await page.keyboard.press("Control+Enter");
  await page.waitForSelector("#answers article");
  await reach("#answers .token");
  assert.ok(await isLit(page.locator("#text .place").first()));
  await reach("#text .place");
  await reach("#code summary");
  await page.keyboard.press("Enter");
  await reach("#copy");
}

export async function errors(open) {
  const page = await open();
  await page.click("#ask");
  assert.match(await page.textContent("#problem"), /Paste a text/);
  await page.fill("#context", TEXT);
  await page.click("#ask");
  assert.match(await page.textContent("#problem"), /Ask a question/);
  await ask(page);
  assert.equal(await page.textContent("#problem"), "");
  await ask(page, TEXT, "why ".repeat(3000));
  await page.waitForSelector(".problem");
  assert.match(await page.textContent(".problem"), /tokens.*limits.*request/s);
  assert.equal(await page.locator(".token:not(.legend .token)").count(), 0, "an old answer stands under a new error");
  await page.fill("#context", "");
  await page.click("#ask");
  assert.ok(await page.locator("#shown").isHidden(), "an old answer stands under a new error");
}

// Of a server whose model refuses what it cannot do, an explanation among it.
export async function withoutExplanations(open, { context, question }) {
  const page = await open();
  const asked = [];
  page.on("request", (request) => request.url().endsWith("/v1/answer") && asked.push(request.postDataJSON().explain === true));
  await fill(page, context, question);
  await page.locator("#questions select").selectOption("choices");
  await page.locator("#questions textarea").fill("a\nb");
  await page.click("#ask");
  await page.waitForSelector("#answers article");
  assert.match(await page.textContent("#answers .problem"), /does not take choices/);
  await page.locator("#questions select").selectOption("free");
  const answers = async (number) => {
    await page.click("#ask");
    await page.waitForFunction((wanted) => document.querySelectorAll("#answers .words, #answers .absent").length === wanted, number);
    return asked.splice(0);
  };
  assert.deepEqual(asked.splice(0), [true, false]);
  assert.deepEqual(await answers(1), [true, false], "what is refused is asked again");
  await page.click("#add");
  await page.locator("#questions > li > input").nth(1).fill(question);
  assert.deepEqual(await answers(2), [false, false], "and from then on once only");
}

export async function oneOfSeveralFails(open) {
  const page = await open();
  await ask(page, TEXT, QUESTION, "why ".repeat(3000), "How tall is it?");
  const hasProblem = await page.locator("#answers article").evaluateAll((all) => all.map((a) => !!a.querySelector(".problem")));
  assert.deepEqual(hasProblem, [false, true, false]);
}

const ATTACK = `<img src=x onerror="window.broken=1"></script><script>window.broken=1</script><mark>"'&lt;`;

async function assertUnbroken(page) {
  assert.equal(await page.evaluate(() => window.broken), undefined);
  assert.equal(await page.locator("img, body script:not(:last-child)").count(), 0);
}

export async function attacks(open) {
  const page = await open();
  await ask(page, `${TEXT} ${ATTACK}`, `${QUESTION} ${ATTACK}`, `What comes after "Paris."?`);
  assert.equal(await page.textContent("#text"), `${TEXT} ${ATTACK}`);
  assert.equal(await page.textContent("#answers h2"), `${QUESTION} ${ATTACK}`);
  assert.ok((await page.textContent("#snippet")).includes("<img src=x"));
  await assertUnbroken(page);
  const hash = await page.evaluate(() => location.hash);
  await page.goto("about:blank");
  await page.goBack();
  assert.ok(hash.length > 10);
  assert.equal(await page.inputValue("#context"), `${TEXT} ${ATTACK}`);
  await assertUnbroken(page);
}

export async function offsets(open) {
  const page = await open();
  for (const context of [`🗼👩‍👩‍👧 ${TEXT}`, `שלום עולם 🙂. ${TEXT}`, `e\u0301té 𝒳. ${TEXT} 🗼`]) {
    await ask(page, context);
    assert.equal(await page.textContent("#text"), context);
    const words = await page.locator("#answers .token.context").allTextContents();
    assert.ok(words.length > 0);
    const places = await page.locator("#text .place").allTextContents();
    assert.equal(places.join("").replace(/\s/g, ""), words.join(""));
    await page.locator("#answers .token.context").first().hover();
    assert.equal((await shaded(page))[0], words[0]);
  }
  const link = page.url();
  const other = await open();
  await other.goto(link);
  assert.equal(await other.inputValue("#context"), `e\u0301té 𝒳. ${TEXT} 🗼`);
}

// Holds requests back until they are let go, so that there is time to do something else.
export async function hold(page) {
  const held = [];
  await page.route("**/v1/answer", (route) => held.push(route));
  return held;
}

export const until = async (condition) => {
  for (let i = 0; !condition(); i++) {
    assert.ok(i < 2000, "it does not happen");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

export async function busyAndCancelled(open) {
  const page = await open();
  const held = await hold(page);
  await fill(page, TEXT, QUESTION);
  await page.click("#ask");
  await until(() => held.length === 1);
  assert.equal(await page.getAttribute("#results", "aria-busy"), "true");
  const ended = page.waitForEvent("requestfailed");
  await page.click("#cancel");
  await ended;
  assert.equal(await page.getAttribute("#results", "aria-busy"), "false");
  assert.equal(await page.textContent("#status"), "Cancelled.");

  await page.click("#ask");
  await until(() => held.length === 2);
  const old = page.waitForEvent("requestfailed");
  await page.locator("#questions input").fill("How tall is the Eiffel Tower?");
  await page.click("#ask");
  await old;
  await until(() => held.length === 3);
  await held[2].continue();
  await page.waitForSelector("#answers article");
  assert.equal(await page.textContent("#answers h2"), "How tall is the Eiffel Tower?");
  assert.equal(await page.locator("#answers article").count(), 1);
}

export async function longTexts(open) {
  const page = await open();
  await ask(page, `${"Rain fell on the hills, and later on the sea.\n".repeat(20)}${TEXT}`);
  await page.waitForFunction(() => {
    const [outer, inner] = ["#text", "#text mark"].map((name) => document.querySelector(name).getBoundingClientRect());
    return document.getElementById("text").scrollTop > 0 && outer.top <= inner.top && inner.bottom <= outer.bottom;
  });
  await page.locator("#text").evaluate((node) => (node.scrollTop = 0));
  await page.locator("#answers .token.context").first().click();
  await page.waitForFunction(() => document.getElementById("text").scrollTop > 0);
}

/** The text of the code in a language for one question of each kind, and for a record. */
export async function codeOfEachKind(open, { language }) {
  const page = await open();
  const labelled = ["choices", "or_none", "several", "scale"];
  const kinds = ["free", "quotation", "yes_no", ...labelled, "record"];
  await fill(page, `It's "high" 🗼.`, ...kinds.slice(0, -1).map(() => "What's high?"), "");
  for (const [i, kind] of kinds.slice(0, -1).entries()) {
    await page.locator("#questions > li > select").nth(i).selectOption(kind);
    if (labelled.includes(kind)) await page.locator("#questions > li > textarea").nth(i).fill("it's low\n🗼: high");
  }
  await fillFields(page, ["total", "money"]);
  await page.click("#code summary");
  await page.locator("#languages button", { hasText: language }).click();
  return page.textContent("#snippet");
}

export async function code(open, { fields = [], labels = [] }) {
  const page = await open();
  await ask(page, `It's "330" metres \\ tall 🗼 $HOME \`id\`.`, "What's tall?");
  if (fields.length) await fillFields(page, ...fields);
  if (labels.length) {
    await page.click("#add");
    await page.locator("#questions input").nth(1).fill("How's it built?");
    await page.locator("#questions select").nth(1).selectOption("choices");
    await page.locator("#questions textarea").nth(1).fill(labels.join("\n"));
  }
  await page.click("#code summary");
  const copied = {};
  for (const language of await page.locator("#languages button").all()) {
    await language.click();
    await page.click("#copy");
    await page.waitForFunction(() => document.getElementById("copied").textContent === "Copied.");
    copied[await language.textContent()] = await page.evaluate(() => navigator.clipboard.readText());
  }
  return copied;
}

export async function apiKey(open, { key }) {
  const page = await open();
  await fill(page, TEXT, QUESTION);
  await page.click("#ask");
  await page.waitForSelector("#key-form:not([hidden])");
  assert.match(await page.textContent("#problem"), /key/);
  await page.fill("#key", key);
  await page.keyboard.press("Enter");
  await page.waitForSelector("#answers article .token");
  assert.ok(await page.locator("#key-form").isHidden());
  assert.ok(!page.url().includes(key));
  const code = await page.textContent("#snippet");
  assert.ok(code.includes("Bearer KEY") && !code.includes(key));
}

// Kinds of questions that the server of this test does not answer yet: its documents come from the test.
export async function kinds(open, { documents }) {
  const page = await open();
  await page.route("**/v1/answer", (route) => route.fulfill({ json: documents[route.request().postDataJSON().question] }));
  await ask(page, `The bill is too high. ${ATTACK}`, ...Object.keys(documents));
  const [chosen, refused, unfit] = await page.locator("#answers article").all();
  assert.deepEqual(await chosen.locator(".choice").count(), 3, "two labels and none of them");
  assert.ok((await chosen.locator(".choice.chosen").textContent()).includes(ATTACK));
  await chosen.locator(".choice.chosen").hover();
  assert.ok(await isLit(page.locator("#text .evidence.on", { hasText: "bill" })), "the evidence of a choice lights up");
  const widths = await chosen.locator(".bar").evaluateAll((all) => all.map((bar) => bar.getBoundingClientRect().width));
  assert.ok(Math.abs(widths[0] / widths[1] - 3) < 0.1, "bars are as long as probabilities are high");
  assert.match(await refused.textContent(), /Not in the text/);
  assert.equal(await refused.locator(".token").count(), 0);
  assert.match(await chosen.textContent(), /Chance that none fits13\s%/);
  assert.match(await unfit.textContent(), /∅ None of these/);
  await assertUnbroken(page);
}

export async function assertAccessible(page, axe, state) {
  await page.evaluate(axe());
  const found = await page.evaluate(() => window.axe.run());
  const told = found.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
  assert.deepEqual(told, [], `axe, ${state}`);
  const [inner, outer] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(inner <= outer, `${state}: the page is ${inner} px wide on ${outer} px`);
}

/** Save what a page shows, and open the file without a network. */
export async function openSaved(open, page, options = {}) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#save")]);
  const path = join(tmpdir(), `answers-${process.pid}.html`);
  await writeFile(path, await readFile(await download.path()));
  return open({ offline: true, serviceWorkers: "block", ...options }, `file://${path}`);
}

export async function accessible(open, { colorScheme, width }, axe) {
  const page = await open({ colorScheme, viewport: { width, height: 800 } });
  const check = (state) => assertAccessible(page, axe, state);
  await check("at the start");
  const fresh = await open({ colorScheme, viewport: { width, height: 800 }, arrives: true });
  await fresh.waitForSelector("#answers article");
  await assertAccessible(fresh, axe, "on arrival");
  await fresh.locator("#answers article").last().hover();
  await assertAccessible(fresh, axe, "with the evidence of a decision");
  await page.bringToFront();
  await ask(page, TEXT, QUESTION, "Is this review positive or negative?", "why ".repeat(3000));
  await page.click("#code summary");
  await page.click("#history summary");
  await check("with answers and an error");
  await page.hover("#answers .token");
  await check("with a word lit");
  await page.fill("#context", MAIL);
  await page.click("#add");
  await fillFields(page, ["total", "money"], ["invoice date", "date"], ["order", "text"], ["kind", "one of", "bill, praise"]);
  await page.click("#ask");
  await page.waitForSelector(".record");
  await check("with a record");
  await page.hover(".record .choice");
  await check("with a value lit");
  const saved = await openSaved(open, page, { colorScheme, viewport: { width, height: 800 } });
  await assertAccessible(saved, axe, "the saved file");
  await page.bringToFront();
  await page.click("#mode-list");
  await page.fill("#texts", "Pay 20 EUR.\nPay nothing.");
  while ((await page.locator("#questions > li").count()) > 1) await page.getByLabel("Remove this question").last().click();
  await page.locator("#questions select").first().selectOption("choices");
  await page.locator("#questions textarea").first().fill("bill\npraise");
  await page.click("#ask");
  await page.waitForSelector("#download:not([hidden])");
  await page.locator("#list-body button").first().click();
  await page.locator(".choice.nothing").hover();
  await check("with a list of texts");
  await page.locator("#list-body [data-name]").first().click();
  await check("while a label is corrected");
  await page.locator("#list-body select").selectOption("praise");
  await page.waitForSelector("#corrected:not([hidden])");
  await check("with a corrected label");
  await page.click("#mode-one");
  await page.fill("#context", "");
  await page.click("#ask");
  await check("with a problem");
  await page.click("nav a");
  await page.waitForURL("**/docs");
  await check("the reference");
}

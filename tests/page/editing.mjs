// What people do before and after they ask: links, files, the history, and rows that come and go.

import assert from "node:assert/strict";
import { ask, fill, fillFields, hold, MAIL, QUESTION, TEXT, until } from "./scenarios.mjs";

export async function link(open) {
  const page = await open();
  await fill(page, TEXT, QUESTION, "How tall is it?");
  await page.click("#share");
  await page.waitForFunction(() => document.getElementById("shared").textContent === "Copied.");
  const other = await open();
  await other.goto(await page.evaluate(() => navigator.clipboard.readText()));
  assert.equal(await other.inputValue("#context"), TEXT);
  const asked = await other.locator("#questions input").evaluateAll((all) => all.map((input) => input.value));
  assert.deepEqual(asked, [QUESTION, "How tall is it?"]);
  await other.evaluate(() => (location.hash = "#broken"));
  await other.waitForFunction(() => document.getElementById("problem").textContent.includes("link"));
}

export async function files(open) {
  const page = await open();
  const file = (content) => ({ name: "tower.txt", mimeType: "text/plain", buffer: Buffer.from(content) });
  await page.setInputFiles("#file", file(`${TEXT} 🗼`));
  await page.waitForFunction((text) => document.getElementById("context").value === text, `${TEXT} 🗼`);
  await page.setInputFiles("#file", file([0x63, 0x61, 0x66, 0xe9]));
  await page.waitForFunction(() => document.getElementById("problem").textContent.includes("UTF-8"));
  assert.equal(await page.inputValue("#context"), `${TEXT} 🗼`);
}

export async function historyOfTheSession(open) {
  const page = await open();
  await ask(page);
  await ask(page, TEXT, "How tall is the Eiffel Tower?");
  await page.click("#history summary");
  assert.equal(await page.locator("#asked button").count(), 2);
  await page.locator("#asked button").nth(1).click();
  await page.waitForFunction((asked) => document.querySelector("#answers h2")?.textContent === asked, QUESTION);
  assert.equal(await page.locator("#asked button").count(), 2);
}

export async function fieldsWithColons(open) {
  const page = await open();
  await fill(page, MAIL);
  const options = "1: urgent, 2: normal, 3: one of many";
  const choices = [["urgency", "one of", options], ["kind: of mail", "one of", "bill, praise"]];
  await fillFields(page, ["How urgent: today?", "text"], ...choices);
  const schema = async () => {
    const [, sent] = (await page.textContent("#snippet")).match(/-d '(.*)'$/s);
    return JSON.parse(sent.replaceAll("'\\''", "'")).schema.properties;
  };
  const expected = {
    "How urgent: today?": { type: "string", ask: "How urgent: today?" },
    urgency: { enum: ["1: urgent", "2: normal", "3: one of many"] },
    "kind: of mail": { enum: ["bill", "praise"] },
  };
  assert.deepEqual(await schema(), expected);
  await page.click("#share");
  await page.reload();
  assert.deepEqual(await schema(), expected, "a link has the same fields");
  assert.equal(await page.locator(".fields li").nth(1).locator("input").last().inputValue(), options);
}

export async function linksInAPageInUse(open) {
  const page = await open();
  await fill(page, TEXT, QUESTION);
  await page.click("#share");
  const good = await page.evaluate(() => location.hash);
  const follow = (hash) => page.evaluate((to) => (location.hash = to), hash);
  const problem = (wanted) => page.waitForFunction((is) => !!document.getElementById("problem").textContent === is, wanted);
  await follow("#broken");
  await problem(true);
  await follow(good);
  await problem(false);
  await ask(page, MAIL, "Who wrote it?");
  await follow(good);
  await page.waitForFunction((text) => document.getElementById("context").value === text, TEXT);
  await page.waitForFunction((text) => document.getElementById("text").textContent === text, TEXT); // a link asks
  const held = await hold(page);
  await page.fill("#context", MAIL);
  await page.click("#ask");
  await until(() => held.length === 1);
  const ended = page.waitForEvent("requestfailed");
  await follow(good);
  await ended;
  await page.waitForFunction((text) => document.getElementById("text").textContent === text, TEXT);
  assert.equal(await page.getAttribute("#results", "aria-busy"), "false");
  assert.equal(held.length, 1, "what was answered before is asked again");
}

export async function removedQuestions(open) {
  const page = await open();
  await fill(page, MAIL, "");
  await fillFields(page, ["total", "money"]);
  for (const [i, question] of ["Who sent it?", "When is it due?"].entries()) {
    await page.click("#add");
    await page.locator("#questions > li > input").nth(i + 1).fill(question);
  }
  const remove = (i) => page.getByLabel("Remove this question").nth(i).click();
  const snippet = () => page.textContent("#snippet");
  assert.match(await snippet(), /Who sent it/);
  await remove(1);
  assert.doesNotMatch(await snippet(), /Who sent it/, "the code has a question that was removed");
  assert.match(await snippet(), /When is it due/);
  assert.equal(await page.evaluate(() => document.activeElement.value), "total", "the first field has the focus");
  await remove(0);
  assert.doesNotMatch(await snippet(), /total/);
  assert.equal(await page.evaluate(() => document.activeElement.value), "When is it due?");
  await remove(0);
  assert.ok(await page.locator("#code").isHidden());
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Question");
}

export async function historyOfTextsWithOneHead(open) {
  const page = await open();
  const head = "Dear team, thank you for the quick reply to my letter of last week. ";
  const texts = [`${head}The tower is in Paris.`, `${head}The bridge is in London.`];
  for (const text of [...texts, texts[0]]) await ask(page, text, "Where is it?");
  await page.waitForFunction(() => document.getElementById("results").getAttribute("aria-busy") === "false");
  await page.click("#history summary");
  const rows = page.locator("#asked button");
  assert.equal(await rows.count(), 2);
  for (const text of [texts[1], texts[0]]) {
    await rows.nth(1).click();
    await page.waitForFunction((wanted) => document.getElementById("text").textContent === wanted, text);
    assert.equal(await page.inputValue("#context"), text);
  }
  await rows.first().click();
  await page.waitForFunction(() => document.getElementById("results").getAttribute("aria-busy") === "false");
  await page.selectOption("#questions select", "yes_no");
  await page.click("#ask");
  await page.waitForFunction(() => document.querySelectorAll("#asked button").length === 3);
}

export async function filesAndNotes(open) {
  const page = await open();
  await page.click("#examples summary");
  await page.getByRole("button", { name: "Summary" }).click();
  await page.waitForSelector("#note:not([hidden])");
  await page.click("#share");
  await page.waitForFunction(() => document.getElementById("shared").textContent === "Copied.");
  const file = { name: "tower.txt", mimeType: "text/plain", buffer: Buffer.from(TEXT) };
  for (const round of ["first", "second"]) {
    await page.fill("#context", "Another text.");
    assert.equal(await page.textContent("#shared"), "", "what is copied is another text");
    await page.setInputFiles("#file", file);
    await page.waitForFunction((text) => document.getElementById("context").value === text, TEXT);
    assert.equal(await page.inputValue("#file"), "", `the same file can be opened after the ${round} time`);
  }
  assert.ok(await page.locator("#note").isHidden(), "the note of an example stands over another text");
  assert.equal(await page.textContent("#examples [aria-pressed=true]"), "Your own");
}

export async function passwordInTheAddress(open) {
  const page = await open();
  const url = new URL(page.url());
  [url.username, url.password] = ["ada", "secret"];
  await page.goto(url.href);
  await ask(page);
  assert.ok(await page.locator("#answers .token").count(), "the page cannot ask");
  assert.doesNotMatch(await page.textContent("#snippet"), /secret/);
  await page.click("#share");
  await page.waitForFunction(() => document.getElementById("shared").textContent === "Copied.");
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.doesNotMatch(link, /secret/);
  await page.goto(link);
  assert.equal(await page.inputValue("#context"), TEXT);
}

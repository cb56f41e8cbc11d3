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

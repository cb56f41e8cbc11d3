// The first minute: what the page shows by itself, what stays, what can be sent, and lists of texts.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { ask, fill, hold, MAIL, openSaved, QUESTION, TEXT, until } from "./scenarios.mjs";

const idle = (page) => page.waitForFunction(() => document.getElementById("results").getAttribute("aria-busy") === "false");
const shownText = (page) => page.locator("#answers article").allTextContents();

/** The answers that come with the page, and then those of the server, without numbers that differ by processor. */
export async function arrival(open) {
  const page = await open({ arrives: true });
  const heads = () => page.locator("#answers .words, #answers .absent").evaluateAll((all) => all.map((line) => line.firstElementChild.textContent));
  const stored = await heads();
  assert.ok(stored.length >= 3, "the page is empty on arrival");
  assert.equal(await page.evaluate(() => document.activeElement.id), "context");
  await idle(page);
  assert.match(await page.textContent("#status"), /^3 answers$/);
  assert.equal(new URL(page.url()).hash, "");
  return [stored, await heads()];
}

/** The page that needs no server: a quotation, a choice and an error. */
export async function local(open) {
  const page = await open();
  const askHere = async (question, choices) => {
    await page.fill("#question", question);
    await page.fill("#choices", choices);
    await page.click("#ask");
    await idle(page);
    return page.locator("#answers .words").textContent();
  };
  await idle(page);
  assert.match(await askHere("What is the customer number?", ""), /48213/);
  assert.equal(await page.locator("#text .place").allTextContents().then((all) => all.join("")), "48213");
  assert.match(await askHere("Which team should take this ticket?", "billing\nshipping\ntechnical support"), /billing/);
  assert.match(await page.textContent("#status"), /^Answered here/);
  await askHere("Which team should take this ticket?", "billing\nbilling");
  assert.match(await page.textContent("#problem"), /alike/);
  assert.ok(await page.locator("#ask").isEnabled());
}

export async function reloads(open) {
  const page = await open();
  await ask(page, TEXT, QUESTION, "How tall is it?");
  await idle(page);
  const before = await shownText(page);
  const held = await hold(page);
  await page.reload();
  await page.waitForSelector("#answers article");
  assert.deepEqual(await shownText(page), before);
  assert.equal(await page.locator("#asked button").count(), 1);
  assert.equal(held.length, 0, "a reload asks again");
  await page.locator("#questions input").first().fill("Who paid for it?");
  assert.match(await page.textContent("#status"), /^Changed since then/);
  await page.locator("#questions input").first().fill(QUESTION);
  assert.equal(await page.textContent("#status"), "2 answers");
  await page.locator("#questions input").first().fill("Who paid for it?");
  await page.waitForTimeout(600); // until the address follows
  await page.reload();
  assert.equal(await page.locator("#questions input").first().inputValue(), "Who paid for it?");
  assert.ok(await page.locator("#shown").isHidden(), "old answers are under another question");
  const other = await open({ arrives: true });
  await other.goto("about:blank"); // what is asked on arrival is not asked for any more
  const asked = await hold(other);
  await other.goto(page.url());
  await until(() => asked.length === 2);
  assert.deepEqual(asked.map((route) => route.request().postDataJSON().question), ["Who paid for it?", "How tall is it?"]);
}

export async function colours(open) {
  const page = await open();
  await fill(page, "The bill of 20 EUR came twice. Dana Cole", "How much is the bill?", "Who wrote it?", "Which team?");
  await page.locator("#questions select").nth(2).selectOption("choices");
  await page.locator("#questions textarea").nth(2).fill("billing: money and invoices\nshipping");
  await page.click("#ask");
  await page.waitForSelector("#answers article");
  const marks = await page.locator("#text .place").evaluateAll((all) => all.map((mark) => [mark.dataset.chip, getComputedStyle(mark).borderBottomColor]));
  assert.equal(new Set(marks.map(([, colour]) => colour)).size, new Set(marks.map(([chip]) => chip)).size);
  assert.ok(marks.length >= 2, "each question has a mark");
  const edges = await page.locator("#answers article").evaluateAll((all) => all.map((card) => getComputedStyle(card).borderInlineStartColor));
  for (const [chip, colour] of marks) assert.equal(colour, edges[Number(chip) - 1], "a card and its marks have one colour");
  assert.ok(await page.locator("#text .evidence").count());
  assert.equal(await page.locator("#text .evidence.on").count(), 0, "evidence of a decision shows unasked");
  await page.locator("#answers article").nth(2).hover();
  assert.ok(await page.locator("#text .evidence.on").count());
  assert.match(await page.locator("#text .evidence.on").first().evaluate((mark) => getComputedStyle(mark).textDecorationStyle), /dotted/);
  assert.match(await page.textContent("#answers"), /Chance that none fits/);
  await page.locator("#answers article").first().hover();
  const shown = await page.locator("#text .evidence.on").evaluateAll((all) => all.map((mark) => mark.dataset.evidence));
  assert.deepEqual(shown.filter((ids) => ids.includes("q3.")), [], "evidence of another card shows");
}

const token = (text, start) => ({ text, probability: 0.3, source: "context", masses: { context: 1, question: 0, vocabulary: 0 }, span: { start, end: start + text.length } });
const answerWith = (more) => ({ answer: "", probability: 0.3, confidence: 0.3, answered: false, truncated: false, tokens: [], spans: [], choices: [],
  chosen: [], places: [], alternatives: [], steps: [], none: 0.3, expected: null, windows: 1, model: { name: "m", version: "1" }, ...more });

export async function guesses(open) {
  const page = await open();
  const span = { source: "context", start: 9, end: 13, text: "4 pm" };
  const alternatives = [{ answer: "4 pm", probability: 0.28, tokens: [], spans: [span] }];
  const documents = {
    "When?": answerWith({ alternatives }),
    "At what time?": answerWith({ answer: "Come", answered: true, tokens: [token("Come", 0)], spans: [{ source: "context", start: 0, end: 4, text: "Come" }], alternatives }),
    "Is it late?": answerWith({ none: 0.4, choices: [{ label: "yes", probability: 0.35, evidence: [] }, { label: "no", probability: 0.25, evidence: [] }] }),
  };
  await page.route("**/v1/answer", (route) => route.fulfill({ json: documents[route.request().postDataJSON().question] }));
  await ask(page, "Come at, 4 pm.", ...Object.keys(documents));
  const [refused, guessed, unsure] = await shownText(page);
  assert.match(refused, /Probably not in the text; perhaps: 4 pm \(28\s%\)/);
  assert.match(guessed, /Perhaps: Come/);
  assert.match(unsure, /Probably not stated; perhaps: yes \(35\s%\)/);
  assert.match(unsure, /Not stated40\s%/);
  assert.equal(await page.locator(".rivals[open]").count(), 2, "rivals of a guess are open");
  await page.locator(".rivals .choice").first().hover();
  assert.equal(await page.textContent("#text .evidence.on"), "4 pm");
}

export async function savedFile(open) {
  const page = await open();
  await ask(page, `${MAIL} </script><script>window.broken=1</script>`, "What is the total?", "Is it paid?");
  await idle(page);
  const saved = await openSaved(open, page);
  const marksOf = (on) => on.locator("#text mark").evaluateAll((all) => all.map((mark) => [mark.textContent, mark.className, mark.dataset.chip]));
  await page.mouse.move(0, 0);
  assert.deepEqual(await marksOf(saved), await marksOf(page));
  assert.equal(await saved.evaluate(() => window.broken), undefined);
  await saved.locator("#answers .token").first().hover();
  assert.ok(await saved.locator("#text .place.lit").count(), "words and places are joined");
  assert.match(await saved.textContent("pre"), /"question": "What is the total\?"/);
  assert.equal(await saved.evaluate(() => performance.getEntriesByType("resource").length), 0);
  await page.bringToFront();
  await page.click("#markdown");
  await page.waitForFunction(() => document.getElementById("sent").textContent === "Copied.");
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^> Invoice 2024-118[^]*1\. What is the total\? \*\*/);
}

export async function listOfTexts(open) {
  const page = await open();
  await page.click("#mode-list");
  await page.click("#ask");
  assert.match(await page.textContent("#problem"), /Paste some texts/);
  const mails = Array.from({ length: 6 }, (_, i) => [`${i}`, `I paid "${i + 1}0 EUR", and\nnow I want it back.`, "open"]);
  const csv = [["id", "mail", "state"], ...mails].map((row) => row.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(",")).join("\n");
  await page.setInputFiles("#file", { name: "mails.csv", mimeType: "text/csv", buffer: Buffer.from(csv) });
  await page.waitForFunction(() => document.getElementById("rows").textContent.startsWith("6 texts"));
  assert.equal(await page.locator("#column option:checked").textContent(), "mail");
  await page.locator("#questions input").first().fill("How much was paid?");
  await page.click("#ask");
  await page.waitForSelector("#download:not([hidden])");
  const rows = page.locator("#list-body tr");
  assert.equal(await rows.count(), 6);
  const value = await rows.nth(2).locator("td bdi").textContent();
  await rows.nth(2).getByRole("button").click();
  assert.match(await page.textContent("#text"), /30 EUR/);
  assert.ok(value === "∅" || (await page.textContent("#answers .words")).includes(value), "the row and its card differ");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#download")]);
  const written = await readFile(await download.path(), "utf8");
  assert.ok(written.startsWith("\ufeffid,mail,state,How much was paid?,How much was paid?: probability\r\n0,"), written);
  assert.ok(written.includes('"I paid ""10 EUR"", and\nnow I want it back."'));
  await page.fill("#below", "0");
  assert.equal(await rows.filter({ visible: true }).count(), 0);
  await page.fill("#below", "");
  assert.equal(await rows.filter({ visible: true }).count(), 6);
  const asked = await hold(page);
  await page.reload();
  await page.waitForSelector("#download:not([hidden])");
  assert.equal(await rows.nth(2).locator("td bdi").textContent(), value);
  assert.equal(asked.length, 0, "a reload asks the rows again");
  await page.fill("#texts", "one line\nand, another\n\n");
  assert.match(await page.textContent("#rows"), /^2 texts/);
  await page.fill("#texts", "line\n".repeat(501));
  assert.match(await page.textContent("#rows"), /^501 texts; the first 500 are asked/);
}

export async function correctedLabels(open) {
  const page = await open();
  await page.click("#mode-list");
  const mails = ["My invoice is wrong.", "The parcel, is late.", "I was charged twice.", "Where is my delivery?"];
  await page.fill("#texts", mails.join("\n"));
  await page.locator("#questions input").first().fill("Which team's?");
  await page.selectOption("#questions select", "choices");
  await page.locator("#questions textarea").fill("billing: money; invoices\nshipping");
  await page.click("#ask");
  await page.waitForSelector("#download:not([hidden])");
  const label = (row) => page.locator("#list-body tr").nth(row).locator("[data-name]");
  assert.ok(await page.locator("#corrected").isHidden());
  for (const [row, right] of ["shipping", "shipping", "billing", "shipping"].entries()) {
    await label(row).click();
    await page.getByLabel("Right: Which team's?").selectOption(right);
    await page.waitForFunction((number) => document.getElementById("told-right").textContent.startsWith(`${number} label`), row + 1);
    assert.equal(await page.evaluate(() => document.activeElement.textContent), right, "the focus is lost");
  }
  await label(1).click();
  await page.keyboard.press("Tab");
  assert.equal(await label(1).textContent(), "shipping", "leaving the choice changes the label");
  await page.click("#ask");
  await page.waitForSelector("#download:not([hidden])");
  await page.reload();
  await page.waitForSelector("#download:not([hidden])");
  assert.equal(await label(0).textContent(), "shipping", "what is right is forgotten");
  await page.click("#copy-adapt");
  await page.waitForFunction(() => document.getElementById("adapt-copied").textContent === "Copied.");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#save-right")]);
  const written = await readFile(await download.path(), "utf8");
  const rows = ['My invoice is wrong.,shipping', '"The parcel, is late.",shipping', "I was charged twice.,billing", "Where is my delivery?,shipping"];
  assert.equal(written, `\ufefftext,label\r\n${rows.join("\r\n")}\r\n`);
  const command = await page.evaluate(() => navigator.clipboard.readText());
  assert.ok(command.includes("--labels 'billing=money, invoices; shipping'"), command);
  return { written, command: command.replaceAll("\\\n", "") };
}

export async function madeAdapter(open, { table }) {
  const page = await open();
  await page.setInputFiles("#file", { name: "desks.csv", mimeType: "text/csv", buffer: Buffer.from(table) });
  await page.locator("#questions input").first().fill("Which desk?");
  await page.selectOption("#questions select", "choices");
  await page.locator("#questions textarea").fill("K1\nK2\nK3");
  await page.click("#ask");
  await page.waitForSelector("#download:not([hidden])");
  const right = table.trim().split("\n").slice(1).map((line) => line.slice(-2));
  const correct = async (row) => {
    await page.locator("#list-body tr").nth(row).locator("[data-name]").click();
    await page.getByLabel("Right: Which desk?").selectOption(right[row]);
  };
  await correct(0);
  await page.click("#make-adapter");
  await page.waitForFunction(() => document.getElementById("adapter-made").textContent.startsWith("Give at least 4 rows"));
  for (let row = 1; row < right.length; row++) await correct(row);
  assert.equal(await page.textContent("#adapter-made"), "");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#make-adapter")]);
  assert.equal(download.suggestedFilename(), "which-desk.safetensors");
  await page.waitForFunction(() => /12 rows: \d+\s% right before, \d+\s% after/.test(document.getElementById("adapter-made").textContent));
  return (await readFile(await download.path())).toString("base64");
}

export async function optionsOfAll(open) {
  const page = await open();
  await fill(page, TEXT, "Which kind?");
  await page.locator("#questions select").selectOption("choices");
  await page.locator("#questions textarea").fill("tall: higher than 100 m\nlow");
  await page.click("#more summary");
  await page.fill("#least", "60");
  const [sent] = await Promise.all([page.waitForRequest("**/v1/answer"), page.click("#ask")]);
  const { choices, min_probability } = sent.postDataJSON();
  assert.deepEqual(choices, [{ label: "tall", description: "higher than 100 m" }, "low"]);
  assert.equal(min_probability, 0.6);
  await page.waitForSelector("#answers article");
  await page.click("#code summary");
  await page.getByRole("button", { name: "JSON of the answers" }).click();
  assert.deepEqual(JSON.parse(await page.textContent("#snippet"))[0].choices.map(({ label }) => label), ["tall", "low"]);
}

export async function hints(open) {
  const page = await open();
  await page.fill("#context", "Sehr geehrte Damen und Herren, ich habe die Rechnung zweimal bezahlt und bitte um Erstattung.");
  assert.match(await page.textContent("#language"), /English/);
  await page.fill("#context", TEXT);
  assert.equal(await page.textContent("#language"), "");
  await page.fill("#context", `${"Rain fell on the hills.\n".repeat(1200)}`);
  assert.match(await page.textContent("#tokens"), /about 7200 tokens/);
  await page.click("#split");
  assert.match(await page.textContent("#rows"), /^4 texts/);
  const mail = "Subject: A bill\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Type: text/plain\r\n" +
    "Content-Transfer-Encoding: quoted-printable\r\n\r\nIt is =C2=A320, and I do not =\r\nagree.\r\n--x--\r\n";
  await page.setInputFiles("#file", { name: "a.eml", mimeType: "message/rfc822", buffer: Buffer.from(mail) });
  await page.waitForFunction(() => document.getElementById("context").value === "Subject: A bill\n\nIt is £20, and I do not agree.");
}

// Runs scenarios in headless Chromium: node browse.mjs CHROMIUM. Each line of the input is {"name", "url", "given"}, each
// line of the output what the scenario returned, {"result"}, or why it failed, {"error"}: by what it asserts, errors of
// scripts, and what the Content-Security-Policy refuses.

import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import * as editing from "./editing.mjs";
import * as arriving from "./arriving.mjs";
import * as asking from "./scenarios.mjs";
import * as telling from "./telling.mjs";

const executablePath = process.argv[2];
const scenarios = { ...arriving, ...asking, ...editing, ...telling };
const require = createRequire(join(import.meta.dirname, "../../clients/page/package.json"));
const { chromium } = require("playwright-core");

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

async function run({ name, url, given }) {
  const problems = [];
  const contexts = [];

  async function open({ arrives = false, ...options } = {}, address = url) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
    contexts.push(context);
    // A tab that was used before does not begin with an answered example.
    const use = () => location.protocol.startsWith("http") && sessionStorage.setItem("mqan", sessionStorage.getItem("mqan") ?? "{}");
    if (!arrives) await context.addInitScript(use);
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const page = await context.newPage();
    await page.bringToFront(); // only a page that is in front may write to the clipboard
    page.setDefaultTimeout(60_000);
    page.on("pageerror", (error) => problems.push(error.message));
    page.on("console", (message) => {
      const isExpected = message.text().startsWith("Failed to load resource"); // how a refused question is noted
      if (message.type() === "error" && !isExpected) problems.push(message.text());
    });
    await page.goto(address);
    return page;
  }

  try {
    const result = await scenarios[name](open, given, () => require("axe-core").source);
    if (problems.length) throw new Error(`the browser's console: ${problems.join("\n")}`);
    return { result: result ?? null };
  } catch (error) {
    return { error: error.stack };
  } finally {
    await Promise.all(contexts.map((context) => context.close()));
  }
}

for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(await run(JSON.parse(line))));
await browser.close();

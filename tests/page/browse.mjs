// Runs one scenario in headless Chromium: node browse.mjs CHROMIUM SCENARIO URL [ARGUMENTS AS JSON].
// Fails on what the scenario asserts, on errors of scripts, and on what the Content-Security-Policy refuses.

import { createRequire } from "node:module";
import { join } from "node:path";
import * as editing from "./editing.mjs";
import * as asking from "./scenarios.mjs";

const [executablePath, name, url, given = "null"] = process.argv.slice(2);
const scenarios = { ...asking, ...editing };
const require = createRequire(join(import.meta.dirname, "../../clients/page/package.json"));
const { chromium } = require("playwright-core");

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const problems = [];

async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => {
    const isExpected = message.text().startsWith("Failed to load resource"); // how the browser notes a refused question
    if (message.type() === "error" && !isExpected) problems.push(message.text());
  });
  await page.goto(url);
  return page;
}

try {
  const result = await scenarios[name](open, JSON.parse(given), () => require("axe-core").source);
  if (problems.length) throw new Error(`the browser's console: ${problems.join("\n")}`);
  console.log(JSON.stringify(result ?? null));
} finally {
  await browser.close();
}

// Takes the pictures in docs/: node pictures.mjs URL, of a server of the default model. Needs Chromium. Those in docs/ have
// 256 colours each, which is a third of the size.

import { join } from "node:path";
import { chromium } from "playwright-core";

const [url = "http://127.0.0.1:8000", executablePath = "/usr/bin/chromium"] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

async function take(name, { act = async () => {}, fullPage = false, ...options }) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  await page.goto(url);
  const idle = () => page.waitForFunction(() => document.getElementById("results").getAttribute("aria-busy") === "false");
  await idle();
  await act(page, idle);
  await page.screenshot({ path: join(import.meta.dirname, "../../docs", `page-${name}.png`), fullPage });
  await page.close();
}

await take("light", {});
await take("dark", { colorScheme: "dark", act: (page) => page.locator("#answers .token").first().hover() });
await take("phone", {
  viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true,
  act: async (page) => {
    await page.tap("#down");
    await page.waitForTimeout(500);
  },
});
await take("record", {
  act: async (page, idle) => {
    await page.getByRole("button", { name: "Invoice fields" }).click();
    await idle();
  },
});
await take("list", {
  colorScheme: "dark", fullPage: true,
  act: async (page, idle) => {
    await page.setInputFiles("#file", join(import.meta.dirname, "../../examples/tickets.csv"));
    await page.click("#ask");
    await page.waitForSelector("#download:not([hidden])");
    await idle();
    await page.locator("#list-body button").first().click();
  },
});
await browser.close();

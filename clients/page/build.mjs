// Builds the page: one HTML file with its style and script inside, and the hash of its sources in a comment.
// `serving/mqan_serving/pages` serves it as it is; tests/page/test_build.py says when it is stale.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { build } from "esbuild";

const here = import.meta.dirname;
const root = join(here, "../..");
const read = (path) => readFileSync(path, "utf8");

// The same as in tests/page/test_build.py: for each file, by its path, the path and the content, each behind its length.
function hashSources() {
  const folders = [join(here, "src"), join(here, "../typescript/src")];
  const files = folders.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)));
  const hash = createHash("sha256");
  for (const file of [...files, join(here, "build.mjs")].map((path) => relative(root, path)).sort()) {
    for (const part of [Buffer.from(file), readFileSync(join(root, file))]) hash.update(`${part.length} `).update(part);
  }
  return hash.digest("hex");
}

async function bundle(entry) {
  const options = { bundle: true, minify: true, write: false, charset: "utf8", target: "es2022", legalComments: "none" };
  const result = await build({ ...options, format: "iife", entryPoints: [join(here, "src", entry)] });
  return result.outputFiles[0].text.trim();
}

const parts = { SOURCES: hashSources(), STYLE: await bundle("style.css"), SCRIPT: await bundle("main.ts") };
const html = read(join(here, "src/page.html")).replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]);
writeFileSync(join(root, "serving/mqan_serving/pages/playground.html"), html);
console.log(`playground.html: ${(html.length / 1024).toFixed(1)} KiB`);

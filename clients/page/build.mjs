// Builds the page: one HTML file with its style and script inside, and the hash of its sources in a comment.
// `serving/mqan_serving/pages` serves it; tests/page/test_build.py says when it is stale.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { build } from "esbuild";

const here = import.meta.dirname;
const root = join(here, "../..");
const MARKS = join(root, "clients/python/mqan_client/marks.json"); // colours and shapes, which the Python client shares
const read = (path) => readFileSync(path, "utf8");

// The same as in tests/page/test_build.py: for each file, by its path, the path and the content, each after its length.
function hashSources() {
  const folders = [join(here, "src"), join(here, "../typescript/src")];
  const entries = folders.flatMap((folder) => readdirSync(folder, { withFileTypes: true }));
  const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  const hash = createHash("sha256");
  for (const file of [...files, MARKS, join(here, "build.mjs")].map((path) => relative(root, path)).sort()) {
    for (const part of [Buffer.from(file), readFileSync(join(root, file))]) hash.update(`${part.length} `).update(part);
  }
  return hash.digest("hex");
}

async function bundle(entry) {
  const options = { bundle: true, minify: true, write: false, charset: "utf8", target: "es2022", legalComments: "none" };
  const result = await build({ ...options, format: "iife", entryPoints: [join(here, "src", entry)] });
  return result.outputFiles[0].text.trim();
}

/** Classes of colours, for marks and for evidence, and of the shapes of sources. */
function styleOfMarks({ colours, sources, evidence }) {
  const classes = colours.map((colour, i) => `.c${i}{--c:${colour}}.e${i}{--e:${colour}}`);
  const shapes = Object.entries(sources).map(([name, { line }]) => `.token.${name},.place.${name}{border-style:${line}}`);
  return [...classes, ...shapes, `.evidence.on{text-decoration-style:${evidence.line}}`].join("");
}

const marks = JSON.parse(read(MARKS));
const legend = Object.entries(marks.sources).map(([name, source]) => `<span class="token c0 ${name}">${source.name}</span>`);
legend.push(`<span><mark class="evidence on e0">${marks.evidence.name}</mark></span>`);
const parts = {
  LEGEND: legend.join(" "),
  SOURCES: hashSources(),
  STYLE: (await bundle("style.css")) + styleOfMarks(marks),
  SCRIPT: await bundle("main.ts"),
};
const html = read(join(here, "src/page.html")).replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]);
writeFileSync(join(root, "serving/mqan_serving/pages/playground.html"), html);
console.log(`playground.html: ${(html.length / 1024).toFixed(1)} KiB`);

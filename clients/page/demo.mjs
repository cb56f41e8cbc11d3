// Builds the page that needs no server into dist/, beside the default bundle, and shows it: node demo.mjs [PORT]. What is
// in dist/ works from any server of static files.

import { cpSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { context } from "esbuild";

const here = import.meta.dirname;
const dist = join(here, "dist");
const bundle = join(here, "../../serving/bundles/default");
const runtime = join(here, "../typescript/node_modules/onnxruntime-web/dist/ort-wasm-simd-threaded.wasm");
const { graphs } = JSON.parse(readFileSync(join(bundle, "manifest.json"), "utf8"));

mkdirSync(join(dist, "bundle"), { recursive: true });
cpSync(runtime, join(dist, "ort-wasm-simd-threaded.wasm"));
cpSync(join(here, "demo/demo.html"), join(dist, "index.html"));
for (const name of ["manifest.json", "vocab.json", "embeddings.onnx", graphs.cpu.reader, graphs.cpu.decoder_step]) {
  cpSync(join(bundle, name), join(dist, "bundle", name));
}
const options = { bundle: true, minify: true, charset: "utf8", target: "es2022", legalComments: "none", format: "esm" };
const built = await context({ ...options, entryPoints: [join(here, "demo/demo.ts")], outdir: dist });
await built.rebuild();
const { port } = await built.serve({ servedir: dist, host: "127.0.0.1", port: Number(process.argv[2] ?? 8080) });
console.log(`http://127.0.0.1:${port}`);

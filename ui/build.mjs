// Bundle the pages into src/report/: a script and a style, and the hashes that
// the page's policy names. Usage: node build.mjs [DIRECTORY]
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "../src/report");
const common = { bundle: true, minify: true, legalComments: "none", absWorkingDir: here };

buildSync({ ...common, entryPoints: ["report/main.ts"], outfile: join(out, "html_bundle.js"),
	format: "iife", target: "es2021" });
buildSync({ ...common, entryPoints: ["report/report.css"], outfile: join(out, "html_bundle.css"),
	target: "chrome100" });
const hash = (name) =>
	createHash("sha256").update(readFileSync(join(out, name))).digest("base64");
writeFileSync(join(out, "html_hashes.h"),
	`/* Written by ui/build.mjs: what the page's policy allows to run, base64 of SHA-256. */
#ifndef NP_REPORT_HTML_HASHES_H
#define NP_REPORT_HTML_HASHES_H

#define NP_HTML_SCRIPT_SHA256 "${hash("html_bundle.js")}"
#define NP_HTML_STYLE_SHA256  "${hash("html_bundle.css")}"

#endif
`);

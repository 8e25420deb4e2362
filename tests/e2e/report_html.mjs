// The page of `npuprof report` in a real browser: no request but the file, nothing
// on the console, names of a capture inert, tables that sort, filter and page.
//
//   node report_html.mjs NPUPROF      exit status 0, 1 failed, 77 no browser or no packages
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { accessSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const npuprof = process.argv[2];
const browserPath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
	(path) => {
		try {
			accessSync(path);
			return true;
		} catch {
			return false;
		}
	},
);
let chromium;
try {
	({ chromium } = await import("../../ui/node_modules/playwright-core/index.mjs"));
} catch {
	console.log("skipped: ui/node_modules has no playwright-core (scripts/ui.sh gets it)");
	process.exit(77);
}
if (!browserPath) {
	console.log("skipped: no chromium");
	process.exit(77);
}

const EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)></script>";
const dir = mkdtempSync(join(tmpdir(), "npuprof-e2e-"));
const file = (name) => join(dir, name);
const run = (...words) => execFileSync(npuprof, words, { stdio: ["ignore", "ignore", "inherit"] });

/** Hostile names in place of the tables that the page draws as figures. */
function withMoreTables(from, to) {
	const page = readFileSync(from, "utf8");
	const [whole, begin, json, end] = page.match(
		/(<script type="application\/json" id="data">)([\s\S]*?)(<\/script>)/,
	);
	const data = JSON.parse(json);
	const column = (name, type) => ({ name, heading: name, type, help: "" });
	const share = [column("total_ns", "duration"), column("share", "percent")];
	const replaced = ["classes", "op_types", "idle"];
	data.tables = data.tables.filter((table) => !replaced.includes(table.id));
	data.tables.unshift(
		{ id: "classes", title: EVIL, total: 2, columns: [column("class", "text"), ...share],
			rows: [[EVIL, 3e6, 0.75], ["vector", 1e6, 0.25]] },
		{ id: "op_types", title: "Operator types", total: 300, columns: [column("type", "text"), ...share],
			rows: Array.from({ length: 100 }, (_, i) => [`Op${i}${i % 10 ? "" : EVIL}`, 1000 * (i + 1), i / 100]) },
		{ id: "idle", title: "Idle", total: 1, columns: [column("class", "text"), ...share],
			rows: [["host", 5000, 0.1]] },
	);
	data.findings.rows.unshift({ severity: "error", code: "EVIL", title: EVIL, detail: EVIL,
		evidence: [{ file: EVIL, column: EVIL, rows: null, text: EVIL }], evidence_total: 3,
		impact_us: 1.5, impact_share: 0.5, advice: EVIL, command: `rm ${EVIL}` });
	data.findings.total++;
	writeFileSync(to, page.replace(whole, () => begin + JSON.stringify(data).replace(/</g, "\\u003c") + end));
}

async function open(browser, path, options = {}) {
	const page = await browser.newPage(options);
	const complaints = [];
	page.on("console", (message) => complaints.push(message.text()));
	page.on("pageerror", (error) => complaints.push(error.message));
	page.on("dialog", (dialog) => {
		complaints.push("a dialog");
		void dialog.dismiss();
	});
	page.on("request", (request) => {
		if (request.url() !== `file://${path}`) complaints.push(`request ${request.url()}`);
	});
	await page.goto(`file://${path}`);
	return { page, complaints };
}

const column = (page, id, n) =>
	page.locator(`[data-table=${id}] tbody tr td:nth-child(${n})`).allTextContents();

async function plainPage(browser) {
	const { page, complaints } = await open(browser, file("plain.html"));
	assert.equal(await page.locator("figure").count(), 5);
	assert.equal(await page.locator(".verdict strong").textContent(), "PASS");
	assert.equal(await page.locator("[data-table=thumbnail]").count(), 0);
	assert.deepEqual(complaints, []);
}

async function chinesePage(browser) {
	const { page, complaints } = await open(browser, file("zh.html"), { colorScheme: "dark" });
	assert.equal(await page.locator("html").getAttribute("lang"), "zh-CN");
	assert.equal(await page.locator(".verdict strong").textContent(), "不通过");
	assert.match(await page.locator(".finding h4").first().textContent(), /[\u4e00-\u9fff]{4}/);
	assert.deepEqual(complaints, []);
}

async function hostilePage(browser) {
	const { page, complaints } = await open(browser, file("more.html"));
	assert.equal(await page.locator("figure").count(), 5);
	assert.equal(await page.locator("main script, main img").count(), 0);
	assert.ok((await page.locator("[data-table=classes] td").first().textContent()).includes(EVIL));
	assert.ok((await page.locator(".finding").first().textContent()).includes(EVIL));

	// numbers: the largest first, then the smallest, then as written
	const head = page.locator("[data-table=op_types] th").nth(1);
	const sort = head.locator("button");
	await sort.click();
	assert.equal((await column(page, "op_types", 2))[0], "100.000");
	assert.equal(await head.getAttribute("aria-sort"), "descending");
	await sort.click();
	assert.equal((await column(page, "op_types", 2))[0], "1.000");
	await sort.press("Enter");
	assert.equal(await head.getAttribute("aria-sort"), "none");

	// pages
	const table = page.locator("[data-table=op_types]");
	assert.equal((await column(page, "op_types", 1)).length, 20);
	await table.getByText("Next").click();
	assert.match((await column(page, "op_types", 1))[0], /^Op20/);
	assert.match(await table.locator(".count").textContent(), /200 more are left out/);

	// filter: all words must be there, case does not matter
	await table.locator("input").fill("op1 SCRIPT");
	assert.deepEqual((await column(page, "op_types", 1)).map((text) => text.slice(0, 4)), ["Op10"]);
	assert.match(await table.locator(".count").textContent(), /Rows: 1 of 100/);

	// no style or script but the page's own
	const blocked = await page.evaluate(() => {
		const style = document.createElement("style");
		style.textContent = "main { display: none }";
		document.head.append(style);
		return getComputedStyle(document.querySelector("main")).display;
	});
	assert.equal(blocked, "block");
	assert.equal(complaints.length, 1); // that attempt, and nothing else
	assert.match(complaints[0], /Content Security Policy/);
}

async function narrowPage(browser) {
	const { page, complaints } = await open(browser, file("more.html"),
		{ viewport: { width: 360, height: 700 } });
	assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 360);
	assert.deepEqual(complaints, []);
}

let browser;
try {
	run("synth", file("plain"), "--ranks", "2", "--format", "text");
	run("report", file("plain"), "--lang", "en", "-o", file("plain.html"));
	run("synth", file("bad"), "--ranks", "1", "--fault", "hostile-names", "--fault", "na-metrics");
	run("report", file("bad"), "--lang", "zh", "-o", file("zh.html"));
	withMoreTables(file("plain.html"), file("more.html"));
	browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
	const tests = [plainPage, chinesePage, hostilePage, narrowPage];
	console.log(`1..${tests.length}`);
	for (const [n, test] of tests.entries()) {
		await test(browser);
		console.log(`ok ${n + 1} - ${test.name}`);
	}
} finally {
	await browser?.close();
	rmSync(dir, { recursive: true, force: true });
}

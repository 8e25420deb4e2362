// The page: heading, charts, findings, tables, notes.
import { load, useWords, word } from "./data";
import type { Report } from "./data";
import { chartsSection } from "./charts";
import { html } from "./dom";
import { findingsSection } from "./findings";
import { tableSection } from "./table";

const CHART_ONLY = "thumbnail"; // its 600 rows are the picture

function header(report: Report): HTMLElement {
	const head = html("header", {}, html("h1", {}, `npuprof ${report.command}`));
	if (report.verdict)
		head.append(html("p", { class: `verdict ${report.verdict}` },
			`${word("verdict")}: `, html("strong", {}, word(report.verdict))));
	const counts = (["error", "warning", "info"] as const)
		.map((severity) => ({
			severity,
			n: report.findings.rows.filter((finding) => finding.severity === severity).length,
		}))
		.filter(({ n }) => n > 0)
		.map(({ severity, n }) => `${word(severity)}: ${n}`);
	if (counts.length) head.append(html("p", {}, counts.join(" · ")));
	for (const input of report.inputs) head.append(html("p", { class: "input" }, html("code", {}, input)));
	return head;
}

function build(report: Report): void {
	useWords(report.words);
	document.title = `npuprof ${report.command}: ${report.inputs[0] ?? ""}`;
	const tables = report.tables.filter((table) => table.id !== CHART_ONLY);
	const sections: HTMLElement[] = [];
	const links: [string, string][] = [];
	const add = (section: HTMLElement | null, title: string): void => {
		if (!section) return;
		sections.push(section);
		links.push([section.id, title]);
	};
	add(chartsSection(report), word("charts"));
	add(findingsSection(report), word("findings"));
	tables.forEach((table, i) => add(tableSection(table, `t${i}`), table.title));
	if (report.notes.total) {
		const list = html("ul", {}, ...report.notes.rows.map((note) => html("li", {}, note)));
		if (report.notes.total > report.notes.rows.length)
			list.append(html("li", {}, word("more", report.notes.total - report.notes.rows.length)));
		add(html("section", { id: "notes" }, html("h2", {}, word("notes")), list), word("notes"));
	}
	const nav = html("nav", { "aria-label": word("contents") },
		...links.map(([id, title]) => html("a", { href: `#${id}` }, title)));
	document.getElementById("app")?.replaceChildren(header(report), nav, ...sections,
		html("footer", {}, `npuprof ${report.version}`));
}

build(load());

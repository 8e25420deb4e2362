// Findings, grouped by severity.
import { percent, word } from "./data";
import type { Evidence, Finding, Report } from "./data";
import { html } from "./dom";

function copy(text: string, button: HTMLButtonElement): void {
	const done = (): void => {
		button.textContent = word("copied");
		setTimeout(() => (button.textContent = word("copy")), 1500);
	};
	const select = (): void => {
		// no clipboard here: mark the text, so that one key copies it
		const code = button.previousElementSibling;
		if (code) getSelection()?.selectAllChildren(code);
	};
	if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, select);
	else select();
}

function commandBlock(command: string): HTMLElement {
	const button = html("button", { type: "button" }, word("copy"));
	button.addEventListener("click", () => copy(command, button));
	return html("div", { class: "command" }, html("code", {}, command), button);
}

function evidenceItem(evidence: Evidence): HTMLElement {
	const where = [evidence.file, evidence.column, evidence.rows].filter(Boolean).join(": ");
	const item = html("li");
	if (where) item.append(html("code", {}, where));
	if (where && evidence.text) item.append(" ");
	if (evidence.text) item.append(evidence.text);
	return item;
}

function impactText(finding: Finding): string {
	const parts: string[] = [];
	if (finding.impact_us === 0 && !finding.impact_share) return ""; // advice without a gain in time
	if (finding.impact_us !== null)
		parts.push(`${finding.impact_us.toLocaleString("en-US", { maximumFractionDigits: 3 })} us`);
	if (finding.impact_share !== null) parts.push(word("of_step", percent(finding.impact_share)));
	return parts.join(", ");
}

function findingItem(finding: Finding): HTMLElement {
	const item = html("article", { class: `finding ${finding.severity}` },
		html("h4", {}, html("span", { class: "badge" }, word(finding.severity)), " ",
			html("code", {}, finding.code), " ", finding.title));
	if (finding.detail) item.append(html("p", {}, finding.detail));
	if (finding.evidence.length) {
		const list = html("ul", {}, ...finding.evidence.map(evidenceItem));
		if (finding.evidence_total > finding.evidence.length)
			list.append(html("li", {}, word("more", finding.evidence_total - finding.evidence.length)));
		const open = finding.evidence.length <= 3;
		item.append(html("details", { open },
			html("summary", {}, `${word("evidence")} (${finding.evidence_total})`), list));
	}
	const impact = impactText(finding);
	if (impact) item.append(html("p", {}, html("strong", {}, word("impact")), " ", impact));
	if (finding.advice)
		item.append(html("p", {}, html("strong", {}, word("advice")), " ", finding.advice));
	if (finding.command) item.append(commandBlock(finding.command));
	return item;
}

export function findingsSection(report: Report): HTMLElement {
	const section = html("section", { id: "findings" }, html("h2", {}, word("findings")));
	for (const severity of ["error", "warning", "info"] as const) {
		const group = report.findings.rows.filter((finding) => finding.severity === severity);
		if (group.length)
			section.append(html("h3", {}, `${word(severity)} (${group.length})`),
				...group.map(findingItem));
	}
	const missing = report.findings.total - report.findings.rows.length;
	if (missing > 0) section.append(html("p", {}, word("more", missing)));
	if (!report.findings.total) section.append(html("p", {}, word("no_findings")));
	return section;
}

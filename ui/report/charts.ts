// Charts as inline SVG. Colours are classes of report.css, so that they follow
// the light and the dark scheme; sizes are attributes, since the page's policy
// refuses style attributes.
import { columnIndex, duration, findTable, numbers, percent, word } from "./data";
import type { Report, Table } from "./data";
import { html, svg } from "./dom";

const WIDTH = 640;

interface Series {
	name: string; // class of the colour, and word
	values: number[];
}

function figure(title: string, summary: string, height: number, parts: SVGElement[],
	legend: string[] = []): HTMLElement {
	const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": summary },
		...parts);
	const caption = html("figcaption", {}, html("h3", {}, title));
	if (legend.length)
		caption.append(html("ul", { class: "legend" },
			...legend.map((name) =>
				html("li", {},
					svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" },
						svg("rect", { width: 10, height: 10, class: name })),
					word(name)))));
	return html("figure", {}, caption, picture);
}

function label(x: number, y: number, text: string, attributes: Record<string, string> = {}): SVGElement {
	return svg("text", { x, y, ...attributes }, text);
}

function shareSummary(title: string, series: Series[], total: number): string {
	const sum = (values: number[]): number => values.reduce((a, b) => a + b, 0);
	return `${title}: ` + series.map((s) =>
		`${word(s.name)} ${percent(total > 0 ? sum(s.values) / total : 0)}`).join(", ");
}

/** Stacked columns, one per step. */
function stepChart(report: Report): HTMLElement | null {
	const names = ["computing", "comm_not_overlapped", "free"];
	const table = findTable(report, "steps", "span_ns", ...names.map((name) => `${name}_ns`));
	if (!table?.rows.length) return null;
	const series = names.map((name) => ({ name, values: numbers(table, `${name}_ns`) }));
	const spans = numbers(table, "span_ns");
	const top = Math.max(1, ...spans);
	const [left, base, high] = [84, 184, 168];
	const slot = (WIDTH - left - 8) / spans.length;
	const bar = Math.min(48, Math.max(1, slot * 0.8));
	const id = columnIndex(table, "step");
	const every = Math.ceil(spans.length / 16);
	const parts: SVGElement[] = [];
	for (const part of [0, 0.5, 1])
		parts.push(
			svg("line", { x1: left, x2: WIDTH, y1: base - high * part, y2: base - high * part, class: "grid" }),
			label(left - 6, base - high * part + 4, part ? duration(top * part) : "0", { "text-anchor": "end" }));
	spans.forEach((span, i) => {
		const x = left + slot * i + (slot - bar) / 2;
		const step = table.rows[i]![id] ?? null;
		let y = base;
		const column = svg("g", {},
			svg("title", {}, [`${word("step")} ${step ?? "-"}: ${duration(span)}`,
				...series.map((s) => `${word(s.name)} ${duration(s.values[i]!)}`)].join("\n")));
		for (const s of series) {
			const height = (s.values[i]! / top) * high;
			y -= height;
			column.append(svg("rect", { x, y, width: bar, height: Math.max(0, height), class: s.name }));
		}
		parts.push(column);
		if (step !== null && i % every === 0)
			parts.push(label(x + bar / 2, base + 16, String(step), { "text-anchor": "middle" }));
	});
	const title = word("chart_steps");
	return figure(title, shareSummary(title, series, spans.reduce((a, b) => a + b, 0)), 206, parts, names);
}

function clip(text: string, length: number): string {
	const points = [...text];
	return points.length > length ? points.slice(0, length - 1).join("") + "…" : text;
}

/** Horizontal bars, the largest first. */
function barChart(table: Table | undefined, title: string, nameColumn: string, color: string,
	most: number): HTMLElement | null {
	if (!table) return null;
	const at = columnIndex(table, nameColumn);
	const share = columnIndex(table, "share");
	const values = numbers(table, "total_ns");
	const rows = table.rows
		.map((row, i) => ({
			name: String(row[at] ?? "-"),
			value: values[i]!,
			share: share >= 0 && row[share] !== null ? Number(row[share]) : null,
		}))
		.filter((row) => row.value > 0)
		.sort((a, b) => b.value - a.value)
		.slice(0, most);
	if (!rows.length) return null;
	const top = rows[0]!.value;
	const [left, right, pitch] = [196, 150, 22];
	const parts = rows.flatMap((row, i) => {
		const y = i * pitch + 4;
		const width = Math.max(1, (row.value / top) * (WIDTH - left - right));
		const figureText = duration(row.value) + (row.share === null ? "" : ` · ${percent(row.share)}`);
		return [svg("g", {}, svg("title", {}, `${row.name}: ${figureText}`),
			label(left - 8, y + 12, clip(row.name, 26), { "text-anchor": "end" }),
			svg("rect", { x: left, y, width, height: 15, class: color }),
			label(left + width + 6, y + 12, figureText))];
	});
	const summary = `${title}: ` + rows.slice(0, 5).map((r) => `${r.name} ${duration(r.value)}`).join(", ");
	return figure(title, summary, rows.length * pitch + 6, parts);
}

/** The whole capture as one band: how much of each stretch is computing, … */
function thumbnailChart(report: Report): HTMLElement | null {
	const names = ["computing", "comm_not_overlapped", "free"];
	const table = findTable(report, "thumbnail", "start_ns", ...names);
	if (!table?.rows.length) return null;
	const series = names.map((name) => ({ name, values: numbers(table, name) }));
	const [base, high] = [96, 96];
	const slot = WIDTH / table.rows.length;
	const below = table.rows.map(() => 0);
	const parts = series.map((s) => {
		let path = "";
		s.values.forEach((value, i) => {
			const y = base - high * (below[i]! + value);
			path += `M${(i * slot).toFixed(2)} ${y.toFixed(2)}h${slot.toFixed(2)}v${(high * value).toFixed(2)}h${(-slot).toFixed(2)}z`;
			below[i]! += value;
		});
		return svg("path", { d: path, class: s.name });
	});
	const first = BigInt(table.rows[0]![columnIndex(table, "start_ns")] as string);
	const last = BigInt(table.rows[table.rows.length - 1]![columnIndex(table, "start_ns")] as string);
	const count = table.rows.length;
	const span = count > 1 ? (Number(last - first) / (count - 1)) * count : 0;
	const title = word("chart_timeline");
	const band = figure(title, shareSummary(title, series, count), base, parts, names);
	// stretched to the width of the page, so its texts stand outside of the picture
	band.classList.add("band");
	band.lastElementChild?.setAttribute("preserveAspectRatio", "none");
	band.append(html("div", { class: "axis" }, html("span", {}, "0"), html("span", {}, duration(span))));
	return band;
}

export function chartsSection(report: Report): HTMLElement | null {
	const charts = [
		thumbnailChart(report),
		stepChart(report),
		barChart(findTable(report, "classes", "class", "total_ns"), word("chart_classes"), "class",
			"computing", 10),
		barChart(findTable(report, "op_types", "type", "total_ns"), word("chart_ops"), "type",
			"computing", 10),
		barChart(findTable(report, "idle", "class", "total_ns"), word("chart_idle"), "class", "free", 10),
	].filter((chart): chart is HTMLElement => chart !== null);
	if (!charts.length) return null;
	return html("section", { id: "charts", "aria-label": word("charts") },
		html("h2", {}, word("charts")), html("div", { class: "charts" }, ...charts));
}

// What the page is given: the JSON that src/report/write_html.c embeds.

/** Integers beyond 2^53 and times come as decimal strings, so that nothing is rounded. */
export type Cell = null | string | number | boolean;

export type ColumnType =
	"text" | "int" | "real" | "duration" | "time" | "bytes" | "percent" | "bool";

export interface Column {
	name: string; // the key, e.g. dur_ns
	heading: string; // for people, with the unit that is shown
	type: ColumnType;
	help: string;
}

export interface Table {
	id: string;
	title: string;
	total: number; // rows there are; `rows` may have fewer
	columns: Column[];
	rows: Cell[][];
}

export interface Evidence {
	file: string | null;
	column: string | null;
	rows: string | null;
	text: string | null;
}

export interface Finding {
	severity: "info" | "warning" | "error";
	code: string;
	title: string;
	detail: string | null;
	evidence: Evidence[];
	evidence_total: number;
	impact_us: number | null;
	impact_share: number | null;
	advice: string | null;
	command: string | null;
}

export interface Report {
	version: string;
	lang: string;
	command: string;
	inputs: string[];
	verdict: string | null;
	words: Record<string, string>;
	findings: { total: number; rows: Finding[] };
	notes: { total: number; rows: string[] };
	tables: Table[];
}

export function load(): Report {
	return JSON.parse(document.getElementById("data")?.textContent ?? "") as Report;
}

let words: Record<string, string> = {};

export function useWords(all: Record<string, string>): void {
	words = all;
}

/** A word of the page in the reader's language; {0}, {1} are replaced. */
export function word(key: string, ...values: (string | number)[]): string {
	const text = words[key] ?? key;
	return text.replace(/\{(\d)\}/g, (_, n: string) => String(values[Number(n)] ?? ""));
}

export const isNumber = (type: ColumnType): boolean => type !== "text" && type !== "bool";

const grouped = (digits: number): Intl.NumberFormat =>
	new Intl.NumberFormat("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
const whole = grouped(0);
const three = grouped(3);
const one = grouped(1);

function bytes(value: number): string {
	const units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
	if (Math.abs(value) < 1024) return `${value} B`;
	let unit = 0;
	for (value /= 1024; Math.abs(value) >= 1023.95 && unit + 1 < units.length; unit++) value /= 1024;
	return `${value.toFixed(1)} ${units[unit]}`;
}

/** ns since the epoch as UTC with ms, as the text writer shows it. */
function time(ns: bigint): string {
	const date = new Date(Number(ns / 1000000n));
	return Number.isNaN(date.getTime())
		? ns.toString()
		: date.toISOString().replace("T", " ").replace("Z", "");
}

export function percent(share: number): string {
	return `${one.format(share * 100)} %`;
}

/** A duration with the unit that keeps it short, for charts. */
export function duration(ns: number): string {
	const at = Math.abs(ns);
	if (at >= 1e9) return `${three.format(ns / 1e9)} s`;
	if (at >= 1e6) return `${three.format(ns / 1e6)} ms`;
	return `${three.format(ns / 1e3)} us`;
}

/** A cell for people. */
export function shown(column: Column, cell: Cell | undefined): string {
	if (cell === null || cell === undefined) return "-";
	if (typeof cell === "boolean") return word(cell ? "yes" : "no");
	if (column.type === "text") return String(cell);
	if (column.type === "time") return time(BigInt(cell));
	const value = Number(cell);
	switch (column.type) {
		case "duration":
			return three.format(value / 1000);
		case "bytes":
			return bytes(value);
		case "percent":
			return percent(value);
		case "real":
			return value === 0 || (Math.abs(value) >= 0.0005 && Math.abs(value) < 1e15)
				? three.format(value)
				: value.toPrecision(6);
		default:
			return typeof cell === "string" ? cell : whole.format(value);
	}
}

/** Order of two cells of a column; what is absent comes last in either direction. */
export function compare(type: ColumnType, a: Cell, b: Cell, down: boolean): number {
	if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
	let order: number;
	if (isNumber(type)) {
		const x = typeof a === "string" ? BigInt(a) : Number(a);
		const y = typeof b === "string" ? BigInt(b) : Number(b);
		order = x < y ? -1 : x > y ? 1 : 0;
	} else {
		const x = String(a);
		const y = String(b);
		order = x < y ? -1 : x > y ? 1 : 0;
	}
	return down ? -order : order;
}

/** The table `id` that has all these columns. */
export function findTable(report: Report, id: string, ...names: string[]): Table | undefined {
	return report.tables.find(
		(table) => table.id === id && names.every((name) => columnIndex(table, name) >= 0),
	);
}

export function columnIndex(table: Table, name: string): number {
	return table.columns.findIndex((column) => column.name === name);
}

/** A column as numbers; absent cells are 0 wide in a chart. */
export function numbers(table: Table, name: string): number[] {
	const at = columnIndex(table, name);
	return table.rows.map((row) => Number(row[at] ?? 0));
}

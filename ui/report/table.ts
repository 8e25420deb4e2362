// A table that sorts, filters and pages in the browser.
import { compare, isNumber, shown, word } from "./data";
import type { Cell, Table } from "./data";
import { html } from "./dom";

const PAGE_ROWS = 20;
const LONG_TEXT = 60; // characters; longer cells may break

interface State {
	sort: number; // column, -1: as written
	down: boolean;
	filter: string;
	page: number;
}

/** Rows that have every word of the filter somewhere, in the order asked for. */
export function select(table: Table, state: State): Cell[][] {
	const terms = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
	let rows = table.rows;
	if (terms.length)
		rows = rows.filter((row) => {
			const text = table.columns.map((column, c) => shown(column, row[c])).join("\n");
			return terms.every((term) => text.toLowerCase().includes(term));
		});
	const column = table.columns[state.sort];
	if (!column) return rows;
	return [...rows].sort((a, b) =>
		compare(column.type, a[state.sort] ?? null, b[state.sort] ?? null, state.down),
	);
}

function cell(table: Table, c: number, value: Cell | undefined): HTMLTableCellElement {
	const column = table.columns[c]!;
	const text = shown(column, value);
	const kind = isNumber(column.type) ? "number" : text.length > LONG_TEXT ? "long" : "";
	return html("td", kind ? { class: kind } : {}, text);
}

function countText(table: Table, matching: number): string {
	const parts = [
		matching === table.rows.length
			? word("rows", matching)
			: word("rows_of", matching, table.rows.length),
	];
	if (table.total > table.rows.length)
		parts.push(word("left_out", table.total - table.rows.length));
	return parts.join(" · ");
}

export function tableSection(table: Table, anchor: string): HTMLElement {
	const state: State = { sort: -1, down: false, filter: "", page: 0 };
	const body = html("tbody");
	const count = html("span", { class: "count", role: "status" });
	const place = html("span");
	const back = html("button", { type: "button" }, word("previous"));
	const next = html("button", { type: "button" }, word("next"));
	const pager = html("div", { class: "pager" }, back, place, next);
	const filter = html("input", {
		type: "search",
		placeholder: word("filter"),
		"aria-label": `${word("filter")}: ${table.title}`,
	});
	const heads = table.columns.map((column) =>
		html("th", { scope: "col", class: isNumber(column.type) ? "number" : "" },
			html("button", { type: "button", title: column.help }, column.heading)),
	);

	function draw(): void {
		const rows = select(table, state);
		const pages = Math.max(1, Math.ceil(rows.length / PAGE_ROWS));
		state.page = Math.min(state.page, pages - 1);
		const from = state.page * PAGE_ROWS;
		body.replaceChildren(
			...rows.slice(from, from + PAGE_ROWS).map((row) =>
				html("tr", {}, ...table.columns.map((_, c) => cell(table, c, row[c]))),
			),
		);
		count.textContent = countText(table, rows.length);
		pager.hidden = pages === 1;
		place.textContent = word("page", state.page + 1, pages);
		back.disabled = state.page === 0;
		next.disabled = state.page === pages - 1;
		heads.forEach((head, c) =>
			head.setAttribute("aria-sort",
				c !== state.sort ? "none" : state.down ? "descending" : "ascending"),
		);
	}

	// numbers from the largest, texts from A; the other way round; as written
	function sortBy(c: number): void {
		const first = isNumber(table.columns[c]!.type);
		if (state.sort !== c) Object.assign(state, { sort: c, down: first });
		else if (state.down === first) state.down = !first;
		else state.sort = -1;
		state.page = 0;
		draw();
	}

	heads.forEach((head, c) => head.firstElementChild!.addEventListener("click", () => sortBy(c)));
	filter.addEventListener("input", () => {
		state.filter = filter.value;
		state.page = 0;
		draw();
	});
	back.addEventListener("click", () => {
		state.page--;
		draw();
	});
	next.addEventListener("click", () => {
		state.page++;
		draw();
	});
	draw();
	const tools = html("div", { class: "tools" }, count);
	if (table.rows.length > 1) tools.prepend(filter);
	const grid = html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": table.title },
		html("table", {}, html("thead", {}, html("tr", {}, ...heads)), body));
	return html("section", { id: anchor, class: "table", "data-table": table.id },
		html("h2", {}, table.title), tools, ...(table.rows.length ? [grid, pager] : []));
}

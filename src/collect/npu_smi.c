#include "collect/npu_smi.h"

#include <math.h>
#include <string.h>

#include "base/time.h"
#include "collect/npu_topo.h"

enum { MAX_CELLS = 8, MAX_FIELDS = 16 };

/* A row between bars, or a heading: its cells, and the words of each. */
struct row {
	np_str cells[MAX_CELLS];
	size_t n;
};

enum section { SECTION_NONE, SECTION_DEVICES, SECTION_PROCESSES, SECTION_MAP, SECTION_TOPO };

struct parser {
	struct np_npu_set *out;
	struct np_err *err;
	const char *where;
	unsigned line_no;
	np_str line;
	enum section section;
	struct row head[2]; /* headings of the devices: first and second line of each */
	size_t n_head;
	struct row process_head;
	struct row map_head;
	struct np_npu_device half; /* after the first line of a device */
	bool has_half;
	np_str first_noise; /* the first line that is part of nothing */
	unsigned noise_no;
};

void np_npu_set_init(struct np_npu_set *self)
{
	*self = (struct np_npu_set){0};
	np_arena_init(&self->arena);
}

void np_npu_set_release(struct np_npu_set *self)
{
	np_vec_release(&self->devices);
	np_vec_release(&self->processes);
	np_vec_release(&self->map);
	np_vec_release(&self->topo.ids);
	np_vec_release(&self->topo.links);
	np_arena_release(&self->arena);
}

struct np_npu_device *np_npu_find(const struct np_npu_set *self, int64_t npu, int64_t chip)
{
	for (size_t i = 0; i < self->devices.n; i++)
		if (self->devices.v[i].npu == npu && self->devices.v[i].chip == chip)
			return &self->devices.v[i];
	return NULL;
}

static enum np_status not_understood(struct parser *self, const char *what)
{
	np_str line = np_str_trim(self->line);
	if (line.len > 160)
		line.len = 160;
	return np_err_at(self->err, NP_E_FORMAT, self->where, self->line_no,
	                 "%s is not understood: %.*s", what, NP_FMT(line));
}

/* ── words ── */

static np_str next_word(np_str *text)
{
	*text = np_str_trim(*text);
	size_t n = 0;
	while (n < text->len && text->ptr[n] != ' ' && text->ptr[n] != '\t')
		n++;
	np_str word = np_str_sub(*text, 0, n);
	*text = np_str_from(*text, n);
	return word;
}

/* Columns of `-m` have single spaces inside: two of them, or a tab, end one. */
static np_str next_column(np_str *text)
{
	*text = np_str_trim(*text);
	size_t n = 0;
	while (n < text->len && text->ptr[n] != '\t' &&
	       !(text->ptr[n] == ' ' && n + 1 < text->len && text->ptr[n + 1] == ' '))
		n++;
	np_str column = np_str_trim(np_str_sub(*text, 0, n));
	*text = np_str_from(*text, n);
	return column;
}

static struct row split_bars(np_str line)
{
	struct row row = {.n = 0};
	np_str rest = np_str_from(np_str_trim(line), 1);
	while (rest.len && row.n < MAX_CELLS)
		row.cells[row.n++] = np_str_trim(np_str_cut(rest, '|', &rest));
	return row;
}

static struct row split_columns(np_str line)
{
	struct row row = {.n = 0};
	while (np_str_trim(line).len && row.n < MAX_CELLS)
		row.cells[row.n++] = next_column(&line);
	return row;
}

/* Where a heading stands; MAX_CELLS: nowhere. */
static size_t find_cell(const struct row *head, const char *name)
{
	for (size_t i = 0; i < head->n; i++)
		if (np_str_ieq(head->cells[i], np_str_of(name)))
			return i;
	return MAX_CELLS;
}

static np_str cell_at(const struct row *row, size_t i)
{
	return i < row->n ? row->cells[i] : (np_str){0};
}

/* ── numbers ── */

/* A count, or "-", "NA": not told. */
static bool take_id(np_str text, int64_t *out)
{
	uint64_t value = 0;
	*out = NP_NPU_NONE;
	if (np_is_na(text))
		return true;
	if (!np_str_to_u64(text, &value) || value > INT32_MAX)
		return false;
	*out = (int64_t)value;
	return true;
}

static bool take_real(np_str text, double *out)
{
	*out = NAN;
	return np_is_na(text) || (np_str_to_double(text, out) && *out > -1e6 && *out < 1e9);
}

/* "3401 / 65536", "31877/ 65536", "NA / NA" off the front of a text */
static bool take_pair(np_str *text, int64_t *used, int64_t *total)
{
	np_str trimmed = np_str_trim(*text), behind;
	np_str first = np_str_trim(np_str_cut(trimmed, '/', &behind));
	if (first.len == trimmed.len) { /* no slash: one word that is not told */
		np_str word = next_word(text);
		*used = *total = NP_NPU_NONE;
		return word.len && np_is_na(word);
	}
	/* "N/A" is a word of its own */
	if (np_str_ieq(first, NP_STR("N")) && behind.len && (behind.ptr[0] | 32) == 'a') {
		(void)next_word(text);
		*used = *total = NP_NPU_NONE;
		return true;
	}
	np_str second = next_word(&behind);
	*text = behind;
	return take_id(first, used) && take_id(second, total);
}

/* ── devices ── */

static bool take_field(struct np_npu_device *device, np_str name, np_str *text)
{
	double ignored;
	int64_t a = NP_NPU_NONE, b = NP_NPU_NONE;
	if (np_str_istarts(name, NP_STR("Hugepages-Usage")))
		return take_pair(text, &device->huge_used, &device->huge_total);
	if (np_str_istarts(name, NP_STR("Memory-Usage")))
		return take_pair(text, &device->mem_used_mb, &device->mem_total_mb);
	if (np_str_istarts(name, NP_STR("HBM-Usage")))
		return take_pair(text, &device->hbm_used_mb, &device->hbm_total_mb);
	if (np_str_icontains(name, NP_STR("-Usage")))
		return take_pair(text, &a, &b); /* of a later release */
	np_str word = next_word(text);
	if (np_str_istarts(name, NP_STR("Power")))
		return take_real(word, &device->power_w);
	if (np_str_istarts(name, NP_STR("Temp")))
		return take_real(word, &device->temp_c);
	if (np_str_istarts(name, NP_STR("AICore")))
		return take_real(word, &device->aicore);
	return take_real(word, &ignored);
}

/* The last cell of both lines: one value per word of the heading. */
static bool take_fields(struct np_npu_device *device, np_str names, np_str text)
{
	while (np_str_trim(names).len) {
		np_str name = next_word(&names);
		if (np_str_trim(text).len == 0 || !take_field(device, name, &text))
			return false;
	}
	return np_str_trim(text).len == 0;
}

static enum np_status first_line(struct parser *self, const struct row *row)
{
	struct np_npu_device *half = &self->half;
	np_str rest = row->cells[0];
	*half = (struct np_npu_device){.phy = NP_NPU_NONE,
	                               .logic = NP_NPU_NONE,
	                               .power_w = NAN,
	                               .temp_c = NAN,
	                               .aicore = NAN,
	                               .hbm_used_mb = NP_NPU_NONE,
	                               .hbm_total_mb = NP_NPU_NONE,
	                               .mem_used_mb = NP_NPU_NONE,
	                               .mem_total_mb = NP_NPU_NONE,
	                               .huge_used = NP_NPU_NONE,
	                               .huge_total = NP_NPU_NONE};
	bool good = row->n == 3 && take_id(next_word(&rest), &half->npu) && half->npu >= 0 &&
	            take_fields(half, cell_at(&self->head[0], 2), row->cells[2]);
	if (!good || row->cells[1].len == 0)
		return not_understood(self, "the first line of a device");
	half->name = np_arena_dup(&self->out->arena, np_str_trim(rest));
	half->health = np_arena_dup(&self->out->arena, row->cells[1]);
	self->has_half = true;
	return half->name.ptr && half->health.ptr ? NP_OK : np_err_nomem(self->err);
}

static enum np_status second_line(struct parser *self, const struct row *row)
{
	struct np_npu_device *half = &self->half;
	np_str rest = row->cells[0], heading = cell_at(&self->head[1], 0);
	(void)next_word(&heading); /* "Chip" */
	bool good = row->n == 3 && take_id(next_word(&rest), &half->chip) && half->chip >= 0;
	heading = np_str_trim(heading);
	if (good && heading.len) /* "Phy-ID" or "Device" */
		good = take_id(next_word(&rest),
		               np_str_ieq(heading, NP_STR("Device")) ? &half->logic : &half->phy);
	if (!good || np_str_trim(rest).len ||
	    !take_fields(half, cell_at(&self->head[1], 2), row->cells[2]))
		return not_understood(self, "the second line of a device");
	half->bus = np_arena_dup(&self->out->arena, row->cells[1]);
	self->has_half = false;
	if (np_npu_find(self->out, half->npu, half->chip))
		return not_understood(self, "a device that was there before");
	if (self->out->devices.n >= NP_NPU_MAX)
		return np_err_set(self->err, NP_E_LIMIT, self->where, "more than %d devices",
		                  NP_NPU_MAX);
	if (!half->bus.ptr || !np_vec_push(&self->out->devices, *half))
		return np_err_nomem(self->err);
	return NP_OK;
}

/* ── processes ── */

static const char idle_text[] = "No running processes found in NPU";

static enum np_status idle_npu(struct parser *self, np_str cell)
{
	int64_t npu = 0;
	np_str rest = np_str_from(cell, strlen(idle_text));
	if (!take_id(np_str_trim(rest), &npu) || npu < 0)
		return not_understood(self, "a line about an NPU without processes");
	for (size_t i = 0; i < self->out->devices.n; i++)
		if (self->out->devices.v[i].npu == npu)
			self->out->devices.v[i].processes_told = true;
	return NP_OK;
}

static enum np_status process_line(struct parser *self, const struct row *row)
{
	const struct row *head = &self->process_head;
	struct np_npu_process process = {.chip = 0};
	np_str where = row->cells[0];
	np_str chip;
	bool good = take_id(next_word(&where), &process.npu) && process.npu >= 0;
	chip = next_word(&where);
	if (chip.len)
		good = good && take_id(chip, &process.chip) && process.chip >= 0;
	good = good && row->n == head->n && np_str_trim(where).len == 0 &&
	       take_id(cell_at(row, find_cell(head, "Process id")), &process.pid) &&
	       process.pid >= 0 &&
	       take_id(cell_at(row, find_cell(head, "Process memory(MB)")), &process.memory_mb) &&
	       take_id(cell_at(row, find_cell(head, "Process id in container")),
	               &process.container_pid);
	if (!good)
		return not_understood(self, "a line of the table of processes");
	process.name =
		np_arena_dup(&self->out->arena, cell_at(row, find_cell(head, "Process name")));
	if (self->out->processes.n >= 65536)
		return np_err_set(self->err, NP_E_LIMIT, self->where, "too many processes");
	if (!process.name.ptr || !np_vec_push(&self->out->processes, process))
		return np_err_nomem(self->err);
	return NP_OK;
}

/* ── the tables between bars ── */

static bool is_first_heading(const struct row *row)
{
	np_str cell = row->cells[0];
	return row->n == 3 && np_str_is(next_word(&cell), "NPU") &&
	       np_str_ieq(row->cells[1], NP_STR("Health"));
}

static bool is_second_heading(const struct row *row)
{
	np_str cell = row->cells[0];
	return row->n == 3 && np_str_is(next_word(&cell), "Chip") &&
	       np_str_istarts(row->cells[1], NP_STR("Bus-Id"));
}

static enum np_status bar_line(struct parser *self)
{
	struct row row = split_bars(self->line);
	if (row.n == 0)
		return not_understood(self, "a line");
	if (row.n == 1 && np_str_istarts(row.cells[0], NP_STR("npu-smi"))) {
		np_str text = row.cells[0];
		(void)next_word(&text);
		self->out->version = np_arena_dup(&self->out->arena, next_word(&text));
		return NP_OK;
	}
	if (is_first_heading(&row)) {
		self->head[0] = row;
		self->n_head = 1;
		self->section = SECTION_DEVICES;
		return NP_OK;
	}
	if (self->n_head == 1 && is_second_heading(&row)) {
		self->head[1] = row;
		self->n_head = 2;
		self->out->has_table = true;
		return NP_OK;
	}
	if (find_cell(&row, "Process id") < row.n) {
		if (self->has_half)
			return not_understood(self, "the second line of a device");
		self->process_head = row;
		self->section = SECTION_PROCESSES;
		self->out->has_processes = true;
		return NP_OK;
	}
	if (self->section == SECTION_DEVICES && self->n_head == 2)
		return self->has_half ? second_line(self, &row) : first_line(self, &row);
	if (self->section != SECTION_PROCESSES)
		return not_understood(self, "a line of a table");
	if (row.n == 1 && np_str_istarts(row.cells[0], np_str_of(idle_text)))
		return idle_npu(self, row.cells[0]);
	return process_line(self, &row);
}

/* ── -m ── */

static enum np_status map_line(struct parser *self)
{
	struct row row = split_columns(self->line);
	struct np_npu_map map;
	const struct row *head = &self->map_head;
	size_t logic = find_cell(head, "Chip Logic ID"), phy = find_cell(head, "Chip Phy-ID");
	if (row.n != head->n || !take_id(cell_at(&row, find_cell(head, "NPU ID")), &map.npu) ||
	    !take_id(cell_at(&row, find_cell(head, "Chip ID")), &map.chip) ||
	    !take_id(cell_at(&row, logic), &map.logic) || !take_id(cell_at(&row, phy), &map.phy) ||
	    map.npu < 0)
		return not_understood(self, "a line of the map of ids");
	if (self->out->map.n >= NP_NPU_MAX)
		return np_err_set(self->err, NP_E_LIMIT, self->where, "more than %d ids",
		                  NP_NPU_MAX);
	return np_vec_push(&self->out->map, map) ? NP_OK : np_err_nomem(self->err);
}

/* ── lines ── */

static enum np_status plain_line(struct parser *self)
{
	np_str line = np_str_trim(self->line);
	struct row row = split_columns(line);
	if (find_cell(&row, "NPU ID") < row.n && find_cell(&row, "Chip ID") < row.n &&
	    find_cell(&row, "Chip Logic ID") < row.n) {
		self->section = SECTION_MAP;
		self->map_head = row;
		self->out->has_map = true;
		return NP_OK;
	}
	if (np_npu_is_topo_head(line)) {
		self->section = SECTION_TOPO;
		return np_npu_topo_head(&self->out->topo, line)
		               ? NP_OK
		               : not_understood(self, "the heading of the topology");
	}
	if (self->section == SECTION_TOPO && np_npu_is_topo_row(line))
		return np_npu_topo_row(&self->out->topo, &self->out->arena, line)
		               ? NP_OK
		               : not_understood(self, "a line of the topology");
	if (self->section == SECTION_MAP && row.n == self->map_head.n)
		return map_line(self);
	if (self->section == SECTION_TOPO)
		self->section = SECTION_NONE; /* its legend */
	if (self->first_noise.len == 0) {
		self->first_noise = line;
		self->noise_no = self->line_no;
	}
	return NP_OK;
}

static enum np_status parse_line(struct parser *self)
{
	np_str line = np_str_trim(self->line);
	if (line.len == 0 || line.ptr[0] == '+' || (line.ptr[0] == '=' && line.len > 20))
		return NP_OK;
	return line.ptr[0] == '|' ? bar_line(self) : plain_line(self);
}

/* ── what belongs together ── */

static enum np_status count_processes(struct parser *self)
{
	for (size_t i = 0; i < self->out->processes.n; i++) {
		const struct np_npu_process *process = &self->out->processes.v[i];
		struct np_npu_device *device = np_npu_find(self->out, process->npu, process->chip);
		if (!device)
			return np_err_set(self->err, NP_E_FORMAT, self->where,
			                  "process %lld is on NPU %lld chip %lld, which is not in "
			                  "the table of devices",
			                  (long long)process->pid, (long long)process->npu,
			                  (long long)process->chip);
		device->n_processes++;
		for (size_t k = 0; k < self->out->devices.n; k++)
			if (self->out->devices.v[k].npu == process->npu)
				self->out->devices.v[k].processes_told = true;
	}
	return NP_OK;
}

static void apply_map(struct np_npu_set *set)
{
	for (size_t i = 0; i < set->map.n; i++) {
		const struct np_npu_map *map = &set->map.v[i];
		struct np_npu_device *device = np_npu_find(set, map->npu, map->chip);
		if (!device)
			continue; /* the board's controller ("Mcu"), or out of sight */
		if (map->logic != NP_NPU_NONE)
			device->logic = map->logic;
		if (device->phy == NP_NPU_NONE)
			device->phy = map->phy;
	}
}

static const char *hint_for(np_str noise)
{
	if (np_str_icontains(noise, NP_STR("-8020")))
		return "; another container holds the devices: stop it, or give each container its "
		       "own";
	if (np_str_icontains(noise, NP_STR("dcmi")))
		return "; the driver does not answer: is it loaded, is /dev/davinci_manager there, "
		       "and may this user open it?";
	return "";
}

static enum np_status finish(struct parser *self)
{
	np_str noise = self->first_noise;
	if (noise.len > 160)
		noise.len = 160;
	if (!self->out->has_table && noise.len)
		return np_err_at(self->err, NP_E_FORMAT, self->where, self->noise_no,
		                 "no table of devices; the first line is: %.*s%s", NP_FMT(noise),
		                 hint_for(noise));
	if (!self->out->has_table)
		return np_err_set(self->err, NP_E_FORMAT, self->where, "no table of devices");
	if (self->has_half)
		return np_err_set(self->err, NP_E_FORMAT, self->where,
		                  "the text ends within a device");
	if (self->out->devices.n == 0)
		return np_err_set(self->err, NP_E_EMPTY, self->where, "the table has no device");
	if (!np_npu_topo_is_whole(&self->out->topo))
		return np_err_set(self->err, NP_E_FORMAT, self->where,
		                  "the topology has fewer lines than columns");
	NP_TRY(count_processes(self));
	apply_map(self->out);
	return NP_OK;
}

enum np_status np_npu_parse(np_str text, const char *where, struct np_npu_set *out,
                            struct np_err *err)
{
	struct parser parser = {.out = out, .err = err, .where = where};
	while (text.len) {
		parser.line_no++;
		parser.line = np_str_cut(text, '\n', &text);
		NP_TRY(parse_line(&parser));
	}
	return finish(&parser);
}

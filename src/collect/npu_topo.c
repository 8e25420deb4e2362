#include "collect/npu_topo.h"

#include <string.h>

#include "report/lang.h"

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

/* "NPU12" or "Phy-ID12" */
static bool parse_label(np_str word, enum np_npu_label *label, int64_t *id)
{
	uint64_t number = 0;
	bool phy = np_str_starts(word, NP_STR("Phy-ID"));
	if (!phy && !np_str_starts(word, NP_STR("NPU")))
		return false;
	if (!np_str_to_u64(np_str_from(word, phy ? 6 : 3), &number) || number > INT32_MAX)
		return false;
	*label = phy ? NP_NPU_LABEL_PHY : NP_NPU_LABEL_NPU;
	*id = (int64_t)number;
	return true;
}

bool np_npu_is_topo_head(np_str line)
{
	enum np_npu_label label;
	int64_t id;
	if (!parse_label(next_word(&line), &label, &id))
		return false;
	np_str second = next_word(&line);
	return second.len == 0 || parse_label(second, &label, &id) ||
	       np_str_starts(second, NP_STR("NIC")) || np_str_is(second, "CPU");
}

bool np_npu_topo_head(struct np_npu_topo *self, np_str line)
{
	enum np_npu_label label = NP_NPU_LABEL_NPU, first = NP_NPU_LABEL_NPU;
	int64_t id;
	self->ids.n = self->links.n = 0;
	for (np_str word = next_word(&line); word.len; word = next_word(&line)) {
		if (!parse_label(word, &label, &id))
			break; /* network cards, "CPU Affinity" */
		if (self->ids.n == 0)
			first = label;
		if (label != first || self->ids.n >= 256 || !np_vec_push(&self->ids, id))
			return false;
	}
	self->label = first;
	return true;
}

bool np_npu_is_topo_row(np_str line)
{
	enum np_npu_label label;
	int64_t id;
	np_str word = next_word(&line);
	return parse_label(word, &label, &id) || np_str_starts(word, NP_STR("NIC"));
}

bool np_npu_topo_row(struct np_npu_topo *self, struct np_arena *arena, np_str line)
{
	enum np_npu_label label = NP_NPU_LABEL_NPU;
	int64_t id = 0;
	np_str word = next_word(&line);
	if (np_str_starts(word, NP_STR("NIC")))
		return true;
	size_t row = self->ids.n ? self->links.n / self->ids.n : 0;
	if (!parse_label(word, &label, &id) || label != self->label || row >= self->ids.n ||
	    self->ids.v[row] != id)
		return false;
	for (size_t i = 0; i < self->ids.n; i++) {
		word = next_word(&line);
		np_str link = np_arena_dup(arena, word);
		if (word.len == 0 || word.len > 16 || !link.ptr || !np_vec_push(&self->links, link))
			return false;
	}
	return true;
}

bool np_npu_topo_is_whole(const struct np_npu_topo *self)
{
	return self->links.n == self->ids.n * self->ids.n;
}

/* ── groups ── */

static bool is_fast(np_str link)
{
	static const char *const fast[] = {"HCCS", "HCCS_SW", "SIO", "UB", "XLink", "XLink_SW"};
	for (size_t i = 0; i < sizeof fast / sizeof *fast; i++)
		if (np_str_is(link, fast[i]))
			return true;
	return false;
}

/* The row of the matrix for a device; ids.n: none. */
static size_t row_of(const struct np_npu_topo *topo, const struct np_npu_device *device)
{
	int64_t id = topo->label == NP_NPU_LABEL_PHY ? device->phy : device->npu;
	for (size_t i = 0; i < topo->ids.n; i++)
		if (topo->ids.v[i] == id)
			return i;
	return topo->ids.n;
}

/* Does every device have a row of its own kind? Chips of one NPU share that of "NPU0". */
static bool covers(const struct np_npu_set *set)
{
	for (size_t i = 0; i < set->devices.n; i++)
		if (row_of(&set->topo, &set->devices.v[i]) == set->topo.ids.n)
			return false;
	return set->topo.ids.n > 0;
}

static bool are_linked(const struct np_npu_topo *topo, size_t row, size_t column)
{
	size_t n = topo->ids.n;
	return row == column || is_fast(topo->links.v[row * n + column]) ||
	       is_fast(topo->links.v[column * n + row]);
}

static bool is_name(const struct np_npu_device *device, const char *part)
{
	return np_str_icontains(device->name, np_str_of(part));
}

/* How many NPUs reach each other in servers with this chip; 1: none are known to. */
static int64_t npus_together(const struct np_npu_device *device)
{
	np_str name = device->name;
	if (np_str_istarts(name, NP_STR("Ascend")))
		name = np_str_trim(np_str_from(name, 6));
	if (!np_str_starts(name, NP_STR("910")))
		return 1;
	/* 910B1…B4 and 910_93… against 910A, 910B (of the first generation: "910ProB"), 910 */
	bool second = np_str_starts(name, NP_STR("910B")) && name.len > 4;
	return second || is_name(device, "910_9") || device->phy != NP_NPU_NONE ? 8 : 4;
}

static bool is_together(const struct np_npu_device *a, const struct np_npu_device *b)
{
	int64_t n = npus_together(a);
	return n == npus_together(b) && a->npu / n == b->npu / n;
}

/* Two groups become one, the smaller number stays. */
static void unite(size_t *groups, size_t n, size_t a, size_t b)
{
	size_t keep = groups[a] < groups[b] ? groups[a] : groups[b];
	size_t drop = groups[a] < groups[b] ? groups[b] : groups[a];
	for (size_t i = 0; i < n && keep != drop; i++)
		if (groups[i] == drop)
			groups[i] = keep;
}

/* 0, 1, … in order of the first device; a group's number is the index of its first one. */
static void renumber(size_t *groups, size_t n)
{
	size_t next = 0;
	for (size_t i = 0; i < n; i++)
		groups[i] = groups[i] == i ? next++ : groups[groups[i]];
}

enum np_npu_grouping np_npu_groups(const struct np_npu_set *set, size_t *groups)
{
	bool topo = covers(set), model = false;
	size_t rows[NP_NPU_MAX] = {0};
	size_t n = set->devices.n;
	for (size_t i = 0; i < n; i++) {
		groups[i] = i;
		rows[i] = row_of(&set->topo, &set->devices.v[i]);
		model |= npus_together(&set->devices.v[i]) > 1;
	}
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++)
			if (topo ? are_linked(&set->topo, rows[i], rows[k])
			         : is_together(&set->devices.v[i], &set->devices.v[k]))
				unite(groups, n, i, k);
	renumber(groups, n);
	return topo ? NP_GROUPS_TOPO : model ? NP_GROUPS_MODEL : NP_GROUPS_CARD;
}

const char *np_npu_grouping_text(enum np_npu_grouping grouping)
{
	switch (grouping) {
	case NP_GROUPS_TOPO:
		return NP_N("groups are the devices that npu-smi info -t topo links by HCCS, SIO "
		            "or UB");
	case NP_GROUPS_MODEL:
		return NP_N("npu-smi told no topology: groups are assumed from the chip (910A: "
		            "rings of four NPUs, later ones: eight)");
	default:
		return NP_N("npu-smi told no topology: a group is the chips of one NPU");
	}
}

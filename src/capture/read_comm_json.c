/*
 * communication.json and communication_matrix.json (torch_npu.md §3.8, §3.9).
 */
#include <math.h>
#include <string.h>

#include "capture/comm_rows.h"
#include "capture/reader.h"
#include "io/json.h"

typedef enum np_status entry_reader(struct np_profile *profile, struct np_comm_key *key,
                                    const struct np_jval *entry, uint64_t *odd, struct np_err *err);

static double number(const struct np_jval *object, const char *key)
{
	double d;
	return np_jdouble(np_jget(object, key), &d) ? d : NAN;
}

/* A text that may be absent. false: out of memory. */
static bool intern_text(struct np_profile *profile, np_str text, uint32_t *id)
{
	*id = text.len > 0 ? np_intern_add(&profile->strings, text) : NP_ID_NONE;
	return text.len == 0 || *id != NP_ID_NONE;
}

/* ── communication.json ── */

static enum np_status add_packages(struct np_profile *profile, const struct np_comm_key *key,
                                   const struct np_comm_link *link, const struct np_jval *sizes,
                                   uint64_t *odd, struct np_err *err)
{
	for (size_t i = 0; sizes && i < sizes->n; i++) {
		const struct np_jval *bucket = &sizes->child[i];
		double package[3];
		if (np_num_double(bucket->key, &package[0]) != NP_NUM_OK || bucket->n < 2 ||
		    !np_jdouble(&bucket->child[0], &package[1]) ||
		    !np_jdouble(&bucket->child[1], &package[2])) {
			(*odd)++;
			continue;
		}
		if (!np_comm_add_bandwidth(profile, key, link, package))
			return np_err_nomem(err);
	}
	return NP_OK;
}

static enum np_status add_link(struct np_profile *profile, const struct np_comm_key *key,
                               const struct np_jval *entry, uint64_t *odd, struct np_err *err)
{
	struct np_comm_link link = {
		.transit_mb = number(entry, "Transit Size(MB)"),
		.transit_ms = number(entry, "Transit Time(ms)"),
		.gbps = number(entry, "Bandwidth(GB/s)"),
		.large_ratio = number(entry, "Large Packet Ratio"),
	};
	const struct np_jval *sizes = np_jget(entry, "Size Distribution");
	if (!np_comm_link_used(&link) && (!sizes || sizes->n == 0))
		return NP_OK;
	if (!intern_text(profile, entry->key, &link.transport) ||
	    !np_comm_add_bandwidth(profile, key, &link, NULL))
		return np_err_nomem(err);
	return add_packages(profile, key, &link, sizes, odd, err);
}

static enum np_status read_op(struct np_profile *profile, struct np_comm_key *key,
                              const struct np_jval *entry, uint64_t *odd, struct np_err *err)
{
	const struct np_jval *time = np_jget(entry, "Communication Time Info");
	const struct np_jval *links = np_jget(entry, "Communication Bandwidth Info");
	if (!time)
		(*odd)++;
	struct np_comm_times times = {
		.start_us = number(time, "Start Timestamp(us)"),
		.elapse_ms = number(time, "Elapse Time(ms)"),
		.transit_ms = number(time, "Transit Time(ms)"),
		.wait_ms = number(time, "Wait Time(ms)"),
		.sync_ms = number(time, "Synchronization Time(ms)"),
		.idle_ms = number(time, "Idle Time(ms)"),
	};
	if (time && !np_comm_add_time(profile, key, &times))
		return np_err_nomem(err);
	for (size_t i = 0; links && i < links->n; i++)
		NP_TRY(add_link(profile, key, &links->child[i], odd, err));
	return NP_OK;
}

/* ── communication_matrix.json ── */

static enum np_status read_matrix_entry(struct np_profile *profile, struct np_comm_key *key,
                                        const struct np_jval *entry, uint64_t *odd,
                                        struct np_err *err)
{
	for (size_t i = 0; i < entry->n; i++) {
		const struct np_jval *pair = &entry->child[i];
		np_str rest, src = np_str_cut(pair->key, '-', &rest);
		uint32_t from = np_comm_u32(src), to = np_comm_u32(rest), op;
		if (pair->type != NP_J_OBJECT || from == NP_NO_U32 || to == NP_NO_U32) {
			(*odd)++;
			continue;
		}
		struct np_comm_link link = {
			.transit_mb = number(pair, "Transit Size(MB)"),
			.transit_ms = number(pair, "Transit Time(ms)"),
			.gbps = number(pair, "Bandwidth(GB/s)"),
		};
		if (!intern_text(profile, np_jstr(np_jget(pair, "Transport Type")),
		                 &link.transport) ||
		    !intern_text(profile, np_jstr(np_jget(pair, "Op Name")), &op) ||
		    !np_comm_add_matrix(profile, key, from, to, &link, op))
			return np_err_nomem(err);
	}
	return NP_OK;
}

/* ── both: step → p2p | collective → name@group → entry ── */

static enum np_status read_class(struct np_profile *profile, struct np_comm_key *key,
                                 const struct np_jval *class, entry_reader *read_entry,
                                 uint64_t *odd, struct np_err *err)
{
	bool p2p = np_str_is(class->key, "p2p");
	if (class->type != NP_J_OBJECT || (!p2p && !np_str_is(class->key, "collective"))) {
		(*odd)++;
		return NP_OK;
	}
	key->p2p = p2p;
	for (size_t i = 0; i < class->n; i++) {
		const struct np_jval *entry = &class->child[i];
		if (entry->type != NP_J_OBJECT) {
			(*odd)++;
			continue;
		}
		if (!np_comm_name(profile, entry->key, key))
			return np_err_nomem(err);
		NP_TRY(read_entry(profile, key, entry, odd, err));
	}
	return NP_OK;
}

static enum np_status read_tree(struct np_profile *profile, const struct np_jval *root,
                                entry_reader *read_entry, uint64_t *odd, struct np_err *err)
{
	for (size_t s = 0; s < root->n; s++) {
		const struct np_jval *step = &root->child[s];
		struct np_comm_key key = {.step = np_comm_step(step->key)};
		if (step->type != NP_J_OBJECT || !np_str_starts(step->key, NP_STR("step"))) {
			(*odd)++;
			continue;
		}
		for (size_t c = 0; c < step->n; c++)
			NP_TRY(read_class(profile, &key, &step->child[c], read_entry, odd, err));
	}
	return NP_OK;
}

static void tell(struct np_profile *profile, const char *path,
                 const struct np_json_repairs *repairs, uint64_t odd)
{
	struct np_buf text = {.max_bytes = 4096};
	np_json_repairs_describe(repairs, &text);
	if (np_json_repairs_total(repairs) > 0)
		np_profile_diag(profile, "JSON_REPAIRED", path, np_json_repairs_total(repairs),
		                "%s", text.ptr ? text.ptr : "");
	np_buf_release(&text);
	if (odd > 0)
		np_profile_diag(profile, "COMM_ENTRY_UNKNOWN", path, odd,
		                "%llu entries are not as in a communication file, left out",
		                (unsigned long long)odd);
}

static enum np_status read_file(const struct np_read *read, const char *path,
                                entry_reader *read_entry, struct np_err *err)
{
	struct np_arena arena;
	np_arena_init(&arena);
	const struct np_jval *root = NULL;
	struct np_json_repairs repairs = {0};
	uint64_t odd = 0;
	enum np_status st = np_json_parse_file(&arena, path, 0, &root, &repairs, err);
	if (st == NP_OK && root->type != NP_J_OBJECT)
		st = np_err_set(err, NP_E_FORMAT, path, "not an object of steps");
	if (st == NP_OK) {
		st = read_tree(read->profile, root, read_entry, &odd, err);
		tell(read->profile, path, &repairs, odd);
	}
	if (st == NP_OK)
		read->profile->loaded |= NP_COMM_SUMMARY;
	np_arena_release(&arena);
	return st;
}

enum np_status np_read_comm_json(const struct np_read *read, const char *path, struct np_err *err)
{
	return read->what & NP_COMM_SUMMARY ? read_file(read, path, read_op, err) : NP_OK;
}

enum np_status np_read_comm_matrix(const struct np_read *read, const char *path, struct np_err *err)
{
	return read->what & NP_COMM_SUMMARY ? read_file(read, path, read_matrix_entry, err) : NP_OK;
}

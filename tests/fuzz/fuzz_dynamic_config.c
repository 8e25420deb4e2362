/*
 * Any bytes as profiler_config.json. Checking never fails; editing what is strict JSON
 * changes the named fields and no other: parsed before and after, everything else is equal.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/dynamic_check.h"
#include "collect/dynamic_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                                              \
	do {                                                                          \
		if (!(condition)) {                                                   \
			(void)fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
			abort();                                                      \
		}                                                                     \
	} while (0)

static const struct np_dyn_change all_changes[] = {
	{NP_DYN_START_STEP, "-1"},
	{NP_DYN_RANK_LIST, "[0, 7]"},
	{NP_DYN_PROF_DIR, "\"/a \\\"b\\\"\""},
	{NP_DYN_LEVEL, "\"Level2\""},
	{NP_DYN_EXPORT, "[\"text\"]"},
};

static bool is_changed(const struct np_dyn_change *changes, size_t n, enum np_dyn_id id)
{
	for (size_t i = 0; i < n; i++)
		if (changes[i].id == id)
			return true;
	return false;
}

static void dump(struct np_buf *out, const struct np_jval *value)
{
	np_buf_clear(out);
	np_json_dump(out, value, NULL);
}

/* Every member that counts, but the changed ones, has the same value in `other`. */
static void keeps(const struct np_dyn_text *doc, const struct np_dyn_text *other,
                  const struct np_dyn_change *changes, size_t n)
{
	struct np_buf a = {0}, b = {0};
	for (size_t i = 0; i < doc->members.n; i++) {
		const struct np_dyn_member *member = &doc->members.v[i], *same = NULL;
		enum np_dyn_id id = np_dyn_field_find(member->key, member->inside);
		if (!member->last || is_changed(changes, n, id) || id == NP_DYN_EXPERIMENTAL)
			continue;
		for (size_t k = 0; k < other->members.n; k++)
			if (other->members.v[k].last &&
			    other->members.v[k].inside == member->inside &&
			    np_str_eq(other->members.v[k].key, member->key))
				same = &other->members.v[k];
		CHECK(same);
		dump(&a, member->value);
		dump(&b, same->value);
		CHECK(np_str_eq(np_buf_str(&a), np_buf_str(&b)));
	}
	np_buf_release(&a);
	np_buf_release(&b);
}

static void edit(np_str text, unsigned which)
{
	struct np_arena arena;
	struct np_dyn_text before, after;
	struct np_dyn_change changes[5];
	struct np_buf out = {0}, again = {0};
	size_t n = 0;
	for (size_t i = 0; i < 5; i++)
		if (which & (1U << i))
			changes[n++] = all_changes[i];
	np_arena_init(&arena);
	enum np_status status = np_dyn_text_read(&arena, text, "fuzz", true, &before, NULL);
	CHECK(np_dyn_text_edit(text, "fuzz", changes, n, &out, NULL) == status);
	if (status == NP_OK) {
		CHECK(np_dyn_text_read(&arena, np_buf_str(&out), "fuzz", true, &after, NULL) ==
		      NP_OK);
		for (size_t i = 0; i < n; i++) {
			const struct np_dyn_member *member = np_dyn_member(&after, changes[i].id);
			CHECK(member &&
			      np_dyn_accepts(&np_dyn_fields[changes[i].id], member->value));
		}
		keeps(&before, &after, changes, n);
		keeps(&after, &before, changes, n);
		/* once more changes nothing, not a byte */
		CHECK(np_dyn_text_edit(np_buf_str(&out), "fuzz", changes, n, &again, NULL) ==
		      NP_OK);
		CHECK(np_str_eq(np_buf_str(&out), np_buf_str(&again)));
		np_dyn_text_release(&before);
		np_dyn_text_release(&after);
	}
	np_buf_release(&out);
	np_buf_release(&again);
	np_arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	np_str text = {(const char *)data + 1, size - 1};
	const struct np_dyn_check_options options = {
		.has_current_step = true, .current_step = data[0], .has_max_step = true};
	struct np_report *report = np_report_new("fuzz");
	struct np_err err = {0};
	struct np_buf plain = {0};
	struct np_dyn_log log = {.start_step = -1, .stop_step = -1};
	CHECK(report &&
	      np_dyn_check_text("dir/profiler_config.json", text, &options, report, &err) == NP_OK);
	CHECK(!report->mistaken);
	np_report_free(report);
	edit(text, data[0]);
	np_dyn_strip_comments(text, &plain);
	CHECK(plain.len <= text.len + 1);
	np_buf_release(&plain);
	np_dyn_log_take(&log, text, 0, np_dyn_log_shift(text, 0));
	return 0;
}

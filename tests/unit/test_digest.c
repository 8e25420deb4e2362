/* Digests: packed and read back, and what hostile bytes do. */
#include <math.h>

#include "base/mem.h"
#include "cluster/digest.h"
#include "unit.h"

#define ALL_COLUMNS(X)                    \
	X(np_id, name, "a string")        \
	X(np_id, other, "another")        \
	X(uint8_t, small, "one byte")     \
	X(uint32_t, count, "four bytes")  \
	X(int64_t, time, "eight, signed") \
	X(double, real, "a double")       \
	X(bool, truth, "a bool")

#define ONE_COLUMN(X) X(uint16_t, value, "two bytes")

NP_TABLE_STRUCT(t_all, ALL_COLUMNS);
NP_TABLE_STRUCT(t_one, ONE_COLUMN);
#define NP_TAG t_all
NP_TABLE_DESC(static, t_all, "all", ALL_COLUMNS)
#undef NP_TAG
#define NP_TAG t_one
NP_TABLE_DESC(static, t_one, "one", ONE_COLUMN)
#undef NP_TAG

static const struct np_table_desc *const known[] = {&t_all_desc, &t_one_desc};

enum { ROWS = 5 };

/* NULL: out of memory */
static struct np_digest *make(void)
{
	struct np_digest *digest = np_digest_new();
	struct t_all *all = digest ? np_digest_table(digest, &t_all_desc) : NULL;
	bool ok = all && np_digest_table(digest, &t_one_desc);
	for (size_t i = 0; ok && i < ROWS; i++) {
		char text[16];
		int len = snprintf(text, sizeof text, "name %zu", i / 2);
		size_t r = np_rows_add(all, &t_all_desc);
		ok = r != SIZE_MAX;
		if (!ok)
			break;
		all->name[r] = np_intern_add(&digest->strings, (np_str){text, (size_t)len});
		all->other[r] = i == 3 ? NP_ID_NONE : 0;
		all->small[r] = (uint8_t)(250 + i);
		all->count[r] = UINT32_MAX - (uint32_t)i;
		all->time[r] = INT64_MIN + (int64_t)i;
		all->real[r] = i == 1 ? NAN : (double)i / 3;
		all->truth[r] = i % 2 == 0;
		ok = all->name[r] != NP_ID_NONE;
	}
	if (ok)
		return digest;
	np_digest_free(digest);
	return NULL;
}

static void same_rows(const struct np_digest *digest, const struct np_intern *strings)
{
	const struct t_all *all = np_digest_find(digest, &t_all_desc);
	const struct t_one *one = np_digest_find(digest, &t_one_desc);
	assert_non_null(all);
	assert_non_null(one);
	assert_int_equal(one->n, 0);
	assert_int_equal(all->n, ROWS);
	for (size_t i = 0; i < ROWS; i++) {
		char text[16];
		(void)snprintf(text, sizeof text, "name %zu", i / 2);
		assert_str(np_intern_get(strings, all->name[i]), text);
		assert_str(np_intern_get(strings, all->other[i]), "");
		assert_int_equal(all->other[i] == NP_ID_NONE, i == 3);
		assert_int_equal(all->small[i], 250 + i);
		assert_int_equal(all->count[i], UINT32_MAX - (uint32_t)i);
		assert_true(all->time[i] == INT64_MIN + (int64_t)i);
		assert_true(i == 1 ? isnan(all->real[i]) : all->real[i] == (double)i / 3);
		assert_int_equal(all->truth[i], i % 2 == 0);
	}
}

static void every_kind_of_column_comes_back(void **state)
{
	(void)state;
	struct np_digest *digest = make(), *back = NULL;
	struct np_buf bytes = {0}, again = {0};
	assert_non_null(digest);
	np_digest_pack(digest, &bytes);
	assert_false(bytes.failed);
	assert_int_equal(np_digest_unpack(np_buf_str(&bytes), known, 2, &back, NULL), NP_OK);
	same_rows(back, &back->strings);
	np_digest_pack(back, &again);
	assert_int_equal(bytes.len, again.len);
	assert_memory_equal(bytes.ptr, again.ptr, bytes.len);
	np_digest_free(digest);
	np_digest_free(back);
	np_buf_release(&bytes);
	np_buf_release(&again);
}

static void an_adopted_digest_has_the_ids_of_the_cluster(void **state)
{
	(void)state;
	struct np_digest *digest = make();
	struct np_intern shared;
	assert_true(np_intern_init(&shared));
	(void)np_intern_add(&shared, NP_STR("before"));
	assert_true(np_digest_adopt(digest, &shared));
	same_rows(digest, &shared);
	const struct t_all *all = np_digest_find(digest, &t_all_desc);
	assert_int_equal(all->name[0], 2); /* "", "before", "name 0" */
	np_digest_free(digest);
	np_intern_release(&shared);
}

static void tables_move_and_keep_their_strings(void **state)
{
	(void)state;
	struct np_digest *from = make(), *to = np_digest_new();
	(void)np_intern_add(&to->strings, NP_STR("own"));
	struct t_one *one = np_digest_table(to, &t_one_desc);
	assert_true(np_digest_move(to, from));
	assert_ptr_equal(np_digest_find(to, &t_one_desc), one); /* was there: stays */
	same_rows(to, &to->strings);
	np_digest_free(from);
	np_digest_free(to);
}

static void a_digest_of_other_tables_is_refused(void **state)
{
	(void)state;
	struct np_digest *digest = make(), *back = digest;
	struct np_buf bytes = {0};
	struct np_err err = {0};
	np_digest_pack(digest, &bytes);
	assert_int_equal(np_digest_unpack(np_buf_str(&bytes), known, 1, &back, &err), NP_E_FORMAT);
	assert_null(back);
	assert_string_equal(err.msg, "has a table that is not known");
	np_digest_free(digest);
	np_buf_release(&bytes);
}

/* All cuts, and every byte changed in three ways: refused, or a digest that can be used. */
static void hostile_bytes_never_get_in(void **state)
{
	(void)state;
	static const unsigned char masks[] = {0x01, 0x80, 0xff};
	struct np_digest *digest = make(), *back;
	struct np_buf bytes = {0};
	size_t accepted = 0;
	np_digest_pack(digest, &bytes);
	for (size_t cut = 0; cut < bytes.len; cut++) {
		np_str part = {bytes.ptr, cut};
		assert_int_equal(np_digest_unpack(part, known, 2, &back, NULL), NP_E_FORMAT);
		assert_null(back);
	}
	for (size_t i = 0; i < bytes.len * sizeof masks; i++) {
		struct np_intern shared;
		bytes.ptr[i / sizeof masks] ^= (char)masks[i % sizeof masks];
		enum np_status status = np_digest_unpack(np_buf_str(&bytes), known, 2, &back, NULL);
		bytes.ptr[i / sizeof masks] ^= (char)masks[i % sizeof masks];
		assert_true(status == NP_OK || status == NP_E_FORMAT || status == NP_E_NOMEM);
		if (status != NP_OK)
			continue;
		accepted++; /* a figure that differs: what the sum of the cache is for */
		assert_true(np_intern_init(&shared));
		assert_true(np_digest_adopt(back, &shared));
		np_intern_release(&shared);
		np_digest_free(back);
	}
	assert_true(accepted > 0 && accepted < bytes.len * sizeof masks);
	np_digest_free(digest);
	np_buf_release(&bytes);
}

static void more_rows_than_bytes_take_no_memory(void **state)
{
	(void)state;
	struct np_digest *digest = make(), *back;
	struct np_buf bytes = {0};
	struct np_err err = {0};
	np_digest_pack(digest, &bytes);
	for (size_t i = 0; i + 8 < bytes.len; i++) {
		uint64_t n, huge = UINT64_MAX / 16;
		memcpy(&n, bytes.ptr + i, sizeof n);
		if (n != ROWS)
			continue;
		memcpy(bytes.ptr + i, &huge, sizeof huge);
		break;
	}
	assert_int_equal(np_digest_unpack(np_buf_str(&bytes), known, 2, &back, &err), NP_E_FORMAT);
	assert_string_equal(err.msg, "has more rows than bytes");
	np_digest_free(digest);
	np_buf_release(&bytes);
}

/* make, pack, unpack, move, adopt: with the n-th allocation failing, for every n */
static bool whole_life(void)
{
	struct np_digest *digest = make(), *back = NULL, *to = NULL;
	struct np_buf bytes = {0};
	struct np_intern shared = {0};
	bool ok = digest != NULL;
	if (ok)
		np_digest_pack(digest, &bytes);
	ok = ok && !bytes.failed;
	ok = ok && np_digest_unpack(np_buf_str(&bytes), known, 2, &back, NULL) == NP_OK;
	ok = ok && (to = np_digest_new()) && np_digest_move(to, back);
	ok = ok && np_intern_init(&shared) && np_digest_adopt(to, &shared);
	np_intern_release(&shared);
	np_digest_free(digest);
	np_digest_free(back);
	np_digest_free(to);
	np_buf_release(&bytes);
	return ok;
}

static void out_of_memory_leaks_nothing(void **state)
{
	(void)state;
	size_t n = 1;
	for (;; n++) {
		np_mem_fail_after(n);
		bool ok = whole_life();
		np_mem_fail_after(0);
		if (ok)
			break;
		assert_true(n < 1000);
	}
	assert_true(n > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_column_comes_back),
		cmocka_unit_test(an_adopted_digest_has_the_ids_of_the_cluster),
		cmocka_unit_test(tables_move_and_keep_their_strings),
		cmocka_unit_test(a_digest_of_other_tables_is_refused),
		cmocka_unit_test(hostile_bytes_never_get_in),
		cmocka_unit_test(more_rows_than_bytes_take_no_memory),
		cmocka_unit_test(out_of_memory_leaks_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

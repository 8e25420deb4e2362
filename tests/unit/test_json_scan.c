#include "unit.h"

#include "io/json_scan.h"

enum { BLOCKS = 64, BYTES = BLOCKS * NP_JSON_BLOCK };

struct result {
	uint64_t structure[BLOCKS], brackets[BLOCKS], odd[BLOCKS];
	struct np_json_scan state;
	bool nul;
};

/* Scan in pieces of `step` blocks, so that the state is carried between calls. */
static void run(np_json_scan_fn *scan, const char *text, size_t step, struct result *out)
{
	memset(out, 0, sizeof *out);
	for (size_t i = 0; i < BLOCKS; i += step) {
		size_t n = BLOCKS - i < step ? BLOCKS - i : step;
		struct np_json_masks masks = {out->structure + i, out->brackets + i, out->odd + i};
		out->nul |= scan(&out->state, text + i * NP_JSON_BLOCK, n, masks);
	}
}

/* The definition, byte by byte, with none of the mask arithmetic. */
static void expected(const char *text, struct result *out)
{
	bool inside = false, escaped = false, scalar = false;
	memset(out, 0, sizeof *out);
	for (size_t at = 0; at < BYTES; at++) {
		unsigned char c = (unsigned char)text[at];
		size_t i = at / 64;
		uint64_t bit = 1ull << at % 64;
		bool quote = c == '"' && !escaped;
		bool op = c && strchr("{}[]:,\x0c\x1a", c);
		bool plain = !op && !quote && !(c && strchr(" \t\r\n", c));
		if (quote || (!inside && (op || (plain && !scalar))))
			out->structure[i] |= bit;
		if (!inside && c && strchr("{}[]", c))
			out->brackets[i] |= bit;
		if (inside && (c < 0x20 || c >= 0x80 || c == '\\') && !quote)
			out->odd[i] |= bit;
		inside ^= quote;
		escaped = c == '\\' && !escaped;
		scalar = plain;
		out->nul |= c == 0;
	}
	out->state.in_string = inside ? ~0ull : 0;
	out->state.escaped = escaped;
	out->state.scalar = scalar;
}

static void compare(const struct result *a, const struct result *b, const char *text)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		if (a->structure[i] == b->structure[i] && a->brackets[i] == b->brackets[i] &&
		    a->odd[i] == b->odd[i])
			continue;
		fail_msg("block %zu \"%.64s\": %llx %llx %llx, expected %llx %llx %llx", i,
		         text + i * 64, (unsigned long long)a->structure[i],
		         (unsigned long long)a->brackets[i], (unsigned long long)a->odd[i],
		         (unsigned long long)b->structure[i], (unsigned long long)b->brackets[i],
		         (unsigned long long)b->odd[i]);
	}
	assert_int_equal(a->nul, b->nul);
	assert_true(a->state.in_string == b->state.in_string);
	assert_true(a->state.escaped == b->state.escaped);
	assert_true(a->state.scalar == b->state.scalar);
}

static void check(const char *text)
{
	static const enum np_simd levels[] = {NP_SIMD_SCALAR, NP_SIMD_AVX2, NP_SIMD_NEON};
	static struct result want, got;
	expected(text, &want);
	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
		if (levels[i] != NP_SIMD_SCALAR && levels[i] != np_simd_level())
			continue; /* not of this processor */
		for (size_t step = 1; step <= BLOCKS; step = step * 3 + 1) {
			run(np_json_scan_for(levels[i]), text, step, &got);
			compare(&got, &want, text);
		}
	}
}

static void the_twins_agree_with_the_definition_on_random_bytes(void **state)
{
	(void)state;
	static const char favourites[] =
		"\\\\\\\"\"{}[]:, \t\n\r0a\x01\x0c\x1a\x1f\x7f\x80\xff\xc3\xa9";
	char text[BYTES];
	srandom(11);
	for (int round = 0; round < 3000; round++) {
		int any = (int)(random() % 3); /* how often a byte is just any, NUL too */
		for (size_t i = 0; i < BYTES; i++)
			text[i] = random() % 100 < any
			                  ? (char)random()
			                  : favourites[(size_t)random() % (sizeof favourites - 1)];
		check(text);
	}
}

static void runs_of_backslashes_of_any_length_cross_the_borders_of_blocks(void **state)
{
	(void)state;
	char text[BYTES];
	for (size_t start = 40; start < 70; start++) {
		for (size_t len = 0; len < 150; len++) {
			memset(text, 'x', sizeof text);
			text[3] = '"';
			memset(text + start, '\\', len);
			text[start + len] = '"';
			text[start + len + 7] = '"';
			check(text);
		}
	}
}

static void one_nul_anywhere_is_seen(void **state)
{
	(void)state;
	char text[BYTES];
	for (size_t at = 0; at < BYTES; at += 13) {
		memset(text, ' ', sizeof text);
		text[at] = 0;
		check(text);
	}
}

static void without_comments_the_comment_scan_is_the_same(void **state)
{
	(void)state;
	static const char alphabet[] = "\\\"\"{}[]:, \n0a\x1f\xc3";
	static struct result want, got;
	char text[BYTES];
	srandom(12);
	for (int round = 0; round < 300; round++) {
		bool inside = false, escaped = false;
		for (size_t i = 0; i < BYTES; i++) {
			do {
				text[i] = alphabet[(size_t)random() % (sizeof alphabet - 1)];
			} while (text[i] == '\\' && !inside);
			if (text[i] == '"' && !escaped)
				inside = !inside;
			escaped = text[i] == '\\' && !escaped;
		}
		expected(text, &want);
		memset(&got, 0, sizeof got);
		struct np_json_masks masks = {got.structure, got.brackets, got.odd};
		got.nul = np_json_scan_comments(&got.state, text, BLOCKS, BYTES, 0, masks);
		got.state.scalar = want.state.scalar;
		compare(&got, &want, text);
		assert_int_equal(got.state.comments, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_twins_agree_with_the_definition_on_random_bytes),
		cmocka_unit_test(runs_of_backslashes_of_any_length_cross_the_borders_of_blocks),
		cmocka_unit_test(one_nul_anywhere_is_seen),
		cmocka_unit_test(without_comments_the_comment_scan_is_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

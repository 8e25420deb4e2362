/* Cells: numbers, times, NA tokens (base/time.h, base/str.h). */
#include <stdlib.h>

#include "base/time.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read must come back from its own text. */
static void check_round_trip(int64_t ns)
{
	char text[32];
	int64_t again = 0;
	int len = np_ns_format_us(text, sizeof text, ns);
	if (len < 0 || (size_t)len >= sizeof text)
		abort();
	np_str cell = {text, (size_t)len};
	if (np_us_to_ns(cell, &again) != NP_NUM_OK || again != ns)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	np_str text = {(const char *)data, size};
	int64_t integer = 0;
	double real = 0;
	char out[64];
	if (np_us_to_ns(text, &integer) == NP_NUM_OK)
		check_round_trip(integer);
	for (int scale = 0; scale <= 9; scale++)
		(void)np_decimal_scaled(text, scale, &integer);
	(void)np_num_i64(text, &integer);
	(void)np_num_double(text, &real);
	(void)np_ns_format_date(out, sizeof out, integer);
	(void)np_ns_format_human(out, sizeof out, integer);
	np_str rest = text;
	while (rest.len > 0)
		if (np_is_na(np_str_cut(rest, ',', &rest)) && rest.len > size)
			abort();
	return 0;
}

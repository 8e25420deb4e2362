/*
 * Any bytes as what ssh hands on, in pieces of any size: nothing is lost, nothing is made up.
 * The first byte is the size of the pieces.
 */
#include <stdlib.h>
#include <string.h>

#include "collect/ssh_marks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum np_status append(void *ctx, const void *bytes, size_t len, struct np_err *err)
{
	(void)err;
	np_buf_add(ctx, bytes, len);
	return NP_OK;
}

static void filter(const uint8_t *data, size_t size, size_t step, struct np_mark_filter *self,
                   struct np_buf *got)
{
	static const struct np_marks marks = {"\x1e"
	                                      "0123456789abcdef0123456789abcdef"};
	np_mark_filter_init(self, &marks, (struct np_sink){append, got});
	for (size_t i = 0; i < size; i += step)
		if (np_mark_filter_take(self, data + i, size - i < step ? size - i : step, NULL) !=
		    NP_OK)
			abort();
	if (np_mark_filter_end(self, NULL) != NP_OK)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	struct np_mark_filter whole, pieces;
	struct np_buf a = {0}, b = {0};
	filter(data + 1, size - 1, size, &whole, &a);
	filter(data + 1, size - 1, data[0] + 1U, &pieces, &b);
	if (!np_str_eq(np_buf_str(&a), np_buf_str(&b)) || whole.begun != pieces.begun ||
	    whole.ended != pieces.ended || whole.status != pieces.status ||
	    whole.pid != pieces.pid || a.len + whole.noise.len > size - 1)
		abort();
	/* without a mark everything is noise, cut at its limit */
	if (!whole.begun &&
	    (a.len || whole.noise.len != (size - 1 < NP_MARK_NOISE ? size - 1 : NP_MARK_NOISE)))
		abort();
	np_buf_release(&a);
	np_buf_release(&b);
	np_mark_filter_release(&whole);
	np_mark_filter_release(&pieces);
	return 0;
}

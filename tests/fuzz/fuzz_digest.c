/*
 * Any bytes as a digest, or as a file of the cache (the first byte chooses). What is
 * accepted must be packed and read again, and be good for adopting.
 */
#include <stdlib.h>

#include "cluster/internal.h"
#include "cluster/parts.h"
#include "cluster/timeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ODD_COLUMNS(X)           \
	X(bool, truth, "a bool") \
	X(uint16_t, two, "two bytes")

NP_TABLE_STRUCT(np_odd, ODD_COLUMNS);
#define NP_TAG np_odd
NP_TABLE_DESC(static, np_odd, "odd", ODD_COLUMNS)
#undef NP_TAG

static const struct np_table_desc *const known[] = {&np_digest_comm_ops_desc, &np_odd_desc,
                                                    &np_timeline_ops_desc, &np_timeline_facts_desc,
                                                    NULL};

enum { N_KNOWN = sizeof known / sizeof *known - 1 };

static void use(struct np_digest *digest)
{
	struct np_intern shared;
	if (!np_intern_init(&shared) || !np_digest_adopt(digest, &shared))
		abort();
	const struct np_digest_comm_ops *ops = np_digest_find(digest, known[0]);
	for (size_t i = 0; ops && i < ops->n; i++)
		(void)np_intern_get(&shared, ops->name[i]);
	np_intern_release(&shared);
	np_digest_free(digest);
}

static void as_digest(np_str bytes)
{
	struct np_digest *digest = NULL, *again = NULL;
	struct np_buf packed = {0};
	if (np_digest_unpack(bytes, known, N_KNOWN, &digest, NULL) != NP_OK) {
		if (digest)
			abort();
		return;
	}
	/* not the same bytes (no strings at all reads as the empty one), but the same digest */
	np_digest_pack(digest, &packed);
	if (packed.failed ||
	    np_digest_unpack(np_buf_str(&packed), known, N_KNOWN, &again, NULL) != NP_OK)
		abort();
	np_buf_release(&packed);
	use(again);
	use(digest);
}

static void as_file(np_str bytes)
{
	static const struct np_part part = {.name = "fuzz", .tables = known};
	struct np_digest *digest = np_cache_decode(bytes, NP_STR("key"), &part);
	if (digest)
		use(digest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	np_str rest = {(const char *)data + 1, size - 1};
	if (data[0] % 2)
		as_file(rest);
	else
		as_digest(rest);
	return 0;
}

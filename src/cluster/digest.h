/*
 * A digest: what is kept of one rank when its profile is gone.
 *
 * It is a bag of tables (profile/columns.h) and the strings that their np_id
 * columns mean. It can be packed into bytes, for the cache and for other
 * processes, and read back:
 *
 *   profile ──map──▶ digest ──adopt──▶ cluster (one intern table for all ranks)
 *                      │  ▲
 *                 pack ▼  │ unpack
 *                  bytes (cache, MPI)
 *
 * Threads: a digest belongs to one thread at a time.
 */
#ifndef NP_CLUSTER_DIGEST_H
#define NP_CLUSTER_DIGEST_H

#include "base/err.h"
#include "base/intern.h"
#include "profile/columns.h"

struct np_digest {
	struct np_intern strings; /* empty once the cluster has adopted them */
	NP_VEC(struct np_digest_table {
		const struct np_table_desc *desc;
		void *rows; /* the struct that desc describes */
	})
	tables;
};

/* NULL: out of memory. */
struct np_digest *np_digest_new(void);
void np_digest_free(struct np_digest *self); /* NULL is fine */

/* The table of this description, empty and made when it is not there yet; NULL: out of memory. */
void *np_digest_table(struct np_digest *self, const struct np_table_desc *desc);

/* The same for reading: NULL when there is none, or no digest. */
const void *np_digest_find(const struct np_digest *self, const struct np_table_desc *desc);

/* Copy a string of `from` (a profile's table); NP_ID_NONE stays. false: out of memory. */
bool np_digest_string(struct np_digest *self, const struct np_intern *from, uint32_t id,
                      np_id *out);

/* Make the ids those of `shared`, and let the own strings go. false: out of memory; the
 * digest is then good for nothing but freeing. */
bool np_digest_adopt(struct np_digest *self, struct np_intern *shared);

/* Take over the tables of `from` that are not here; both have their own strings or both
 * have been adopted. `from` keeps the others. false: out of memory. */
bool np_digest_move(struct np_digest *self, struct np_digest *from);

/* Append the digest as bytes; machine order, so for this machine and its like only. Must
 * not have been adopted. Failure shows in out->failed. */
void np_digest_pack(const struct np_digest *self, struct np_buf *out);

/*
 * Read back. `known` are the descriptions that may occur; E_FORMAT for anything
 * that does not fit them exactly (another version, damage): every length, and
 * every id, is checked. E_NOMEM.
 */
enum np_status np_digest_unpack(np_str bytes, const struct np_table_desc *const *known,
                                size_t n_known, struct np_digest **out, struct np_err *err);

#endif

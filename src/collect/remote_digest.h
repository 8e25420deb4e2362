/*
 * SHA-256 of files on the other side, computed there: one process for all of them.
 */
#ifndef NP_COLLECT_REMOTE_DIGEST_H
#define NP_COLLECT_REMOTE_DIGEST_H

#include "collect/hash.h"
#include "collect/remote_list.h"

/* Told as they come, in the order of the paths; some may be missing (a file that went). `hex`
 * is NP_SHA256_HEX digits with a NUL. */
typedef void np_digest_take(void *ctx, size_t i, const char *hex);

/*
 * Digest `paths` (relative to `root`) over there. After a lost connection it begins anew, so a
 * path may be told twice. A file that cannot be read is left out; E_UNSUPPORTED when there is
 * neither openssl nor sha256sum; errors of the transport.
 */
enum np_status np_remote_digests(struct np_transport *transport, const struct np_place *place,
                                 const char *root, const struct np_remote_tools *tools,
                                 const char *const *paths, size_t n, np_digest_take *take,
                                 void *ctx, const atomic_bool *cancel, struct np_err *err);

#endif

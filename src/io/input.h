/*
 * The bytes of one file, as windows.
 *
 * A reader asks for the next window and says how much of the last one it is
 * done with; what it keeps comes again, followed by more:
 *
 *    file    ......[consumed][kept][new                ].......
 *    window                  ^ptr                      ^ptr+len
 *
 * Regular files are mapped: the first window is the whole file, and pages
 * behind the reader are given back, so that a stream's resident memory stays
 * small. Files that start with the gzip magic are inflated into a buffer
 * (whatever their name is), so memory is bounded there too. `offset` counts
 * bytes of the (inflated) content.
 *
 * A mapped file that shrinks while it is read would kill the process with
 * SIGBUS. A handler puts zero pages there instead and marks the input:
 * np_input_faulted() is then true and what was read is not to be trusted.
 *
 * Threads: an input belongs to one thread at a time; different inputs are
 * independent.
 */
#ifndef NP_IO_INPUT_H
#define NP_IO_INPUT_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

struct np_input;

struct np_window {
	const char *ptr;
	size_t len;
	uint64_t offset; /* of ptr[0] in the content */
	bool eof;        /* nothing follows this window */
};

/* Only regular files (E_FORMAT for others); an empty file is a valid input. */
enum np_status np_input_open(const char *path, struct np_input **out, struct np_err *err);

/* Bytes in memory, which must outlive the input. `name` (copied) is for messages;
 * `offset` is what the first byte counts as. */
enum np_status np_input_open_mem(np_str bytes, const char *name, uint64_t offset,
                                 struct np_input **out, struct np_err *err);

void np_input_close(struct np_input *self); /* NULL is fine */

/*
 * Drop the first `consumed` bytes of the last window (0 at the first call) and
 * give the rest with at least one byte more, unless eof. A window that would
 * have to grow beyond NP_INPUT_MAX_WINDOW is E_LIMIT. Views into an older
 * window are invalid after this call, except for mapped and memory inputs.
 * A damaged gzip stream is E_FORMAT, one that ends early E_TRUNCATED; the bytes
 * before the damage are given first. Members that follow each other are one
 * content; zeros behind the last one are padding, other bytes E_FORMAT.
 */
enum np_status np_input_next(struct np_input *self, size_t consumed, struct np_window *out,
                             struct np_err *err);

enum { NP_INPUT_MAX_WINDOW = 256 << 20 }; /* of buffered (gzip) inputs */

/* The whole content when it is in memory as one piece (mapped or memory), so
 * that it can be cut into chunks for several threads; len 0 otherwise. */
np_str np_input_whole(const struct np_input *self);

/* Hint: pages before this content offset are not needed again. Cheap; call it
 * every few MiB. No effect on buffered and memory inputs. */
void np_input_release_behind(struct np_input *self, uint64_t offset);

/* Did the file shrink, or a read fail, under the map? Chunks of np_input_whole() that
 * are read as memory inputs don't know it: ask the input that they come from. */
bool np_input_faulted(const struct np_input *self);
const char *np_input_name(const struct np_input *self);
/* On disk (compressed size for gzip); for memory inputs their length. */
uint64_t np_input_file_size(const struct np_input *self);
/* Content offset of the first byte: 0, but for memory inputs. */
uint64_t np_input_begin(const struct np_input *self);
bool np_input_is_gzip(const struct np_input *self);

/* Test hook, before the first np_input_next(): windows grow by this many bytes at a
 * time (whole inputs), or start with that many (gzip); 0 is the usual. */
void np_input_limit_window(struct np_input *self, size_t bytes);

#endif

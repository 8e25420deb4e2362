#include "base/pool.h"
#include "capture/trace_doc.h"

enum { MAX_CHUNKS = 64 };

struct chunk {
	const char *start;
	struct np_trace_span span;
	struct np_profile *profile;
	struct np_trace_part part;
	enum np_trace_stop stop;
	enum np_status status;
	struct np_err err;
};

struct wave {
	struct chunk *chunks;
	size_t n;
	unsigned what;
};

/* The brace of the first `}, {` at or behind p; NULL when there is none nearby. */
static const char *guess_border(const char *p, const char *end, size_t nearby)
{
	const char *stop = (size_t)(end - p) > nearby ? p + nearby : end;
	while (p < stop && (p = memchr(p, '}', (size_t)(stop - p)))) {
		const char *q = np_trace_skip_space(p + 1, end);
		if (q < end && *q == ',') {
			q = np_trace_skip_space(q + 1, end);
			if (q < end && *q == '{')
				return q;
		}
		p++;
	}
	return NULL;
}

static void read_chunk(void *ctx, size_t i)
{
	struct wave *wave = ctx;
	struct chunk *chunk = &wave->chunks[i];
	chunk->status = NP_E_NOMEM;
	chunk->stop = NP_TRACE_STOP_ERROR;
	chunk->profile = np_profile_new();
	if (!chunk->profile) {
		(void)np_err_nomem(&chunk->err);
		return;
	}
	chunk->status = np_trace_part_init(&chunk->part, chunk->profile, wave->what, &chunk->err);
	if (chunk->status == NP_OK)
		chunk->stop =
			np_trace_span_run(&chunk->span, &chunk->part, &chunk->status, &chunk->err);
}

static void release_chunk(struct chunk *chunk)
{
	if (chunk->profile)
		np_trace_part_release(&chunk->part);
	np_profile_free(chunk->profile);
	chunk->profile = NULL;
}

/* Chunks of about chunk_bytes from span->p on; the first one is proven. */
static size_t cut(const struct np_trace_span *span, struct chunk *chunks, size_t max,
                  size_t chunk_bytes)
{
	/* how far an unproven chunk may read beyond its end */
	const size_t slack = chunk_bytes / 4;
	size_t n = 0;
	const char *p = span->p;
	while (n < max && p) {
		chunks[n].start = p;
		chunks[n].span = *span;
		chunks[n].span.p = p;
		if (n > 0) {
			chunks[n].span.after_element = false;
			chunks[n].span.last_comma = NULL;
		}
		n++;
		p = (size_t)(span->end - p) > chunk_bytes
		            ? guess_border(p + chunk_bytes, span->end, chunk_bytes)
		            : NULL;
	}
	for (size_t i = 0; i < n; i++) {
		struct np_trace_span *it = &chunks[i].span;
		if (i + 1 < n)
			it->limit = chunks[i + 1].start;
		else /* p: a border nobody begins at, else as much again or all that is left */
			it->limit = p ? p
			            : (size_t)(span->end - it->p) > chunk_bytes
			                    ? it->p + chunk_bytes
			                    : span->end;
		if (i > 0 && (size_t)(span->end - it->limit) > slack)
			it->end = it->limit + slack;
	}
	return n;
}

/* Take a chunk whose start is proven; the true position moves to where it stopped. */
static enum np_trace_stop take(struct np_trace_span *span, struct np_trace_part *part,
                               const struct chunk *chunk, enum np_status *status,
                               struct np_err *err)
{
	const char *end = span->end;
	*status = np_trace_part_merge(part, &chunk->part, err);
	if (*status != NP_OK)
		return NP_TRACE_STOP_ERROR;
	*span = chunk->span;
	span->end = end;
	*status = chunk->status;
	if (chunk->stop == NP_TRACE_STOP_ERROR && err)
		*err = chunk->err;
	return chunk->stop;
}

/* One chunk of the wave in its turn: taken, or its stretch read again. */
static enum np_trace_stop settle(struct np_trace_span *span, struct np_trace_part *part,
                                 struct chunk *chunk, enum np_status *status, struct np_err *err)
{
	const char *limit = chunk->span.limit;
	bool incomplete = chunk->stop == NP_TRACE_STOP_MORE && chunk->span.end != span->end;
	if (span->p == chunk->start && chunk->profile && chunk->part.names && !incomplete)
		return take(span, part, chunk, status, err);
	if (chunk->status == NP_E_NOMEM) {
		*status = np_err_nomem(err);
		return NP_TRACE_STOP_ERROR;
	}
	if (span->p >= limit)
		return NP_TRACE_STOP_LIMIT; /* the one before read over all of it */
	span->limit = limit;
	return np_trace_span_run(span, part, status, err);
}

enum np_trace_stop np_trace_wave_run(struct np_trace_span *span, struct np_trace_part *part,
                                     unsigned threads, size_t chunk_bytes, enum np_status *status,
                                     struct np_err *err)
{
	size_t max = (size_t)threads * 2 < MAX_CHUNKS ? (size_t)threads * 2 : MAX_CHUNKS;
	struct wave wave = {np_calloc(max, sizeof *wave.chunks), 0, part->what};
	enum np_trace_stop stop = NP_TRACE_STOP_LIMIT;
	*status = NP_OK;
	if (!wave.chunks) {
		*status = np_err_nomem(err);
		return NP_TRACE_STOP_ERROR;
	}
	wave.n = cut(span, wave.chunks, max, chunk_bytes);
	np_pool_run(threads, wave.n, read_chunk, &wave);
	for (size_t i = 0; i < wave.n; i++) {
		if (stop == NP_TRACE_STOP_LIMIT)
			stop = settle(span, part, &wave.chunks[i], status, err);
		release_chunk(&wave.chunks[i]);
	}
	np_free(wave.chunks);
	return stop;
}

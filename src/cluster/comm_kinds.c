#include "cluster/comm_kinds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/grouping.h"

static const char *const suffixes[] = {"-top", "-middle", "-bottom", "-total"};

bool np_comm_is_kind(np_str text)
{
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
		if (np_str_contains(text, np_str_of(suffixes[i])))
			return true;
	return false;
}

/* In the order of the official tool's expression: the first that matches at the leftmost
 * place, so that reducescatter is a reduce, as torch's files have it. */
static const char *const types[] = {"send",      "reduce",       "invalid",   "broadcast",
                                    "allreduce", "receive",      "allgather", "scatter",
                                    "alltoall",  "batchsendrecv"};

np_str np_comm_kind_of(np_str op, struct np_buf *lower)
{
	np_buf_clear(lower);
	for (size_t i = 0; i < op.len; i++) {
		char c = op.ptr[i];
		np_buf_add_char(lower, c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c);
	}
	np_str text = np_buf_str(lower);
	for (size_t i = 0; i < text.len; i++)
		for (size_t t = 0; t < sizeof types / sizeof *types; t++)
			if (np_str_starts(np_str_from(text, i), np_str_of(types[t])))
				return np_str_of(types[t]);
	for (size_t i = 0; i + 1 < text.len; i++)
		if (text.ptr[i] == '_' && text.ptr[i + 1] == '_')
			return np_str_sub(text, 0, i);
	return text;
}

/* ── rows by kind, group and link ── */

struct kinds {
	const struct np_comm_matrix *from;
	const struct np_intern *strings;
	struct np_digest *digest;
	struct np_digest_comm_matrix *to;
	size_t n;
	uint32_t *row, *p2p, *kind, *group, *src, *dst; /* kind: id in the digest */
	struct np_buf text;
};

static bool collect(struct kinds *self)
{
	const struct np_comm_matrix *m = self->from;
	uint32_t **const columns[] = {&self->row,   &self->p2p, &self->kind,
	                              &self->group, &self->src, &self->dst};
	bool ok = true;
	for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
		*columns[c] = np_realloc(NULL, m->n + 1, sizeof(uint32_t));
		ok &= *columns[c] != NULL;
	}
	for (size_t i = 0; ok && i < m->n; i++) {
		np_str op = np_intern_get(self->strings, m->kind[i]);
		if (np_comm_is_kind(op) || np_str_istarts(op, NP_STR("total")))
			continue;
		uint32_t kind =
			np_intern_add(&self->digest->strings, np_comm_kind_of(op, &self->text));
		self->row[self->n] = (uint32_t)i;
		self->p2p[self->n] = m->p2p[i];
		self->kind[self->n] = kind;
		self->group[self->n] = m->group[i];
		self->src[self->n] = m->src[i];
		self->dst[self->n++] = m->dst[i];
		ok = kind != NP_ID_NONE && !self->text.failed;
	}
	return ok;
}

static void release(struct kinds *self)
{
	np_free(self->row);
	np_free(self->p2p);
	np_free(self->kind);
	np_free(self->group);
	np_free(self->src);
	np_free(self->dst);
	np_buf_release(&self->text);
}

/* ── the few that stand for all ── */

static bool add(struct kinds *self, uint32_t first, uint32_t row, const char *suffix, double mb,
                double ms)
{
	const struct np_comm_matrix *m = self->from;
	struct np_digest_comm_matrix *to = self->to;
	size_t r = np_rows_add(to, &np_digest_comm_matrix_desc);
	if (r == SIZE_MAX)
		return false;
	np_buf_clear(&self->text);
	np_buf_add_str(&self->text, np_intern_get(&self->digest->strings, self->kind[first]));
	np_buf_add_cstr(&self->text, suffix);
	bool total = strcmp(suffix, "-total") == 0;
	to->step[r] = m->step[row];
	to->p2p[r] = m->p2p[row];
	to->src[r] = m->src[row];
	to->dst[r] = m->dst[row];
	to->transit_mb[r] = mb;
	to->transit_ms[r] = ms;
	to->op[r] = NP_ID_NONE;
	to->kind[r] = self->text.failed
	                      ? NP_ID_NONE
	                      : np_intern_add(&self->digest->strings, np_buf_str(&self->text));
	return to->kind[r] != NP_ID_NONE &&
	       (total || np_digest_string(self->digest, self->strings, m->kind[row], &to->op[r])) &&
	       np_digest_string(self->digest, self->strings, m->group[row], &to->group[r]) &&
	       np_digest_string(self->digest, self->strings, m->transport[row], &to->transport[r]);
}

struct speed {
	double gbps;
	uint32_t row;
};

static int by_speed(const void *a, const void *b)
{
	const struct speed *x = a, *y = b;
	if (x->gbps != y->gbps)
		return x->gbps > y->gbps ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

/* rows[]: of one kind, group and link */
static bool add_link(struct kinds *self, const uint32_t *rows, size_t n)
{
	const struct np_comm_matrix *m = self->from;
	struct speed *sorted = np_realloc(NULL, n, sizeof *sorted);
	double mb = 0, ms = 0;
	for (size_t i = 0; sorted && i < n; i++) {
		uint32_t row = self->row[rows[i]];
		sorted[i] = (struct speed){isnan(m->gbps[row]) ? 0 : m->gbps[row], row};
		mb += m->transit_mb[row];
		ms += m->transit_ms[row];
	}
	if (!sorted)
		return false;
	qsort(sorted, n, sizeof *sorted, by_speed);
	const struct {
		const char *suffix;
		size_t at;
	} picks[] = {{"-top1", 0},
	             {"-middle", n / 2},
	             {"-bottom1", n - 1},
	             {"-bottom2", n - 2},
	             {"-bottom3", n - 3}};
	bool ok = true;
	for (size_t i = 0; ok && i < sizeof picks / sizeof *picks; i++) {
		uint32_t row = picks[i].at < n ? sorted[picks[i].at].row : 0;
		if (picks[i].at < n)
			ok = add(self, rows[0], row, picks[i].suffix, m->transit_mb[row],
			         m->transit_ms[row]);
	}
	ok = ok && add(self, rows[0], sorted[0].row, "-total", mb, ms);
	np_free(sorted);
	return ok;
}

bool np_comm_kinds_add(const struct np_comm_matrix *from, const struct np_intern *strings,
                       struct np_digest *digest, struct np_digest_comm_matrix *to)
{
	struct kinds self = {.from = from, .strings = strings, .digest = digest, .to = to};
	struct np_groups links = {0};
	bool ok = collect(&self);
	if (ok) {
		const uint32_t *const keys[] = {self.p2p, self.kind, self.group, self.src,
		                                self.dst};
		ok = np_group_rows(self.n, keys, 5, &links);
	}
	for (size_t g = 0; ok && g < links.n; g++)
		ok = add_link(&self, &links.order[links.start[g]], np_group_size(&links, g));
	np_groups_release(&links);
	release(&self);
	return ok;
}

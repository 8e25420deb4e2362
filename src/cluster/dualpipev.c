#include "cluster/dualpipev.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"

struct pipe {
	struct np_pipe_tasks *out;
	size_t stages, m, i;   /* i: the stage */
	size_t f0, f1, b0, b1; /* numbers of the next forward and backward of both chunks */
	bool failed;
};

bool np_dualpipev_fits(int64_t stages, int64_t batches)
{
	return stages >= 1 && stages <= NP_PIPE_MAX_STAGES && batches <= NP_PIPE_MAX_BATCHES &&
	       batches >= 2 * stages;
}

static void add(struct pipe *self, uint8_t phase, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void add(struct pipe *self, uint8_t phase, const char *fmt, ...)
{
	struct np_pipe_task task = {.phase = phase};
	va_list args;
	va_start(args, fmt);
	(void)vsnprintf(task.name, sizeof task.name, fmt, args);
	va_end(args);
	self->failed |= !np_vec_push(self->out, task);
}

static void logits(struct pipe *self, uint8_t phase)
{
	if (self->i == 0)
		add(self, phase, "logits");
}

/* ── the phases ── */

static void forwards(struct pipe *self)
{
	size_t warm_up = 2 * self->stages - 2 - 2 * self->i;
	for (size_t j = 0; j < warm_up; j++)
		add(self, 0, "%zu", self->f0++);
	for (size_t j = 0; j < self->i + 1; j++) {
		add(self, 1, "%zu", self->f0++);
		add(self, 1, "%zu", self->f1++);
	}
	for (size_t j = 0; j < self->stages - self->i - 1; j++) {
		logits(self, 2);
		add(self, 2, "%zub", self->b1);
		add(self, 2, "%zuw", self->b1++);
		add(self, 2, "%zu", self->f1++);
	}
}

static void overlaps(struct pipe *self)
{
	/* as many pairs as leave the phases behind enough to do; m ≥ 2P keeps it positive */
	size_t pairs = self->m + self->i + 1 - 2 * self->stages;
	for (size_t j = 0; j < pairs; j++) {
		logits(self, 3);
		if (self->i == self->stages - 1 && j == 0) {
			add(self, 3, "%zuF", self->f0++);
			add(self, 3, "%zuB", self->b1++);
		} else {
			add(self, 3, "%zuF+%zuB", self->f0, self->b1);
			self->f0++;
			self->b1++;
		}
		add(self, 3, "%zuF+%zuB", self->f1, self->b0);
		self->f1++;
		self->b0++;
	}
	for (size_t j = 0; j < self->stages - self->i - 1; j++) {
		logits(self, 4);
		add(self, 4, "%zuB", self->b1++);
		add(self, 4, "%zuF+%zuB", self->f1, self->b0);
		self->f1++;
		self->b0++;
	}
}

static void backwards(struct pipe *self)
{
	for (size_t j = 0; j < self->i + 1; j++) {
		if (j % 2 == 0)
			logits(self, 5);
		add(self, 5, "%zuB", j % 2 == 0 ? self->b1++ : self->b0++);
	}
	/* in turns: it goes on with the other chunk than the last one */
	bool first = (self->i + 1) % 2 != 0; /* chunk 0 is next */
	while (self->b0 < self->m || self->b1 < 2 * self->m) {
		if (first ? self->b0 < self->m : self->b1 < 2 * self->m)
			add(self, 6, "%zuB", first ? self->b0++ : self->b1++);
		first = !first;
	}
}

bool np_dualpipev(size_t stages, size_t batches, size_t stage, struct np_pipe_tasks *out)
{
	struct pipe self = {.out = out,
	                    .stages = stages,
	                    .m = batches,
	                    .i = stage,
	                    .f1 = batches,
	                    .b1 = batches};
	*out = (struct np_pipe_tasks){0};
	forwards(&self);
	overlaps(&self);
	backwards(&self);
	return !self.failed;
}

void np_pipe_tasks_release(struct np_pipe_tasks *self)
{
	np_vec_release(self);
}

/* The environment of the command: what was there, and what brings the hook into it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/inject_files.h"
#include "collect/run_internal.h"

extern char **environ;

struct variables {
	struct np_arena *arena;
	char **v;
	size_t n, cap;
	bool failed;
};

static size_t name_length(const char *variable)
{
	return (size_t)(strchrnul(variable, '=') - variable);
}

static void set(struct variables *self, const char *name, const char *value, bool replace)
{
	size_t len = strlen(name);
	const char *text = np_arena_printf(self->arena, "%s=%s", name, value);
	if (!text || self->n + 1 >= self->cap) {
		self->failed = true;
		return;
	}
	for (size_t i = 0; i < self->n; i++)
		if (name_length(self->v[i]) == len && strncmp(self->v[i], name, len) == 0) {
			if (replace)
				self->v[i] = (char *)(uintptr_t)text;
			return;
		}
	self->v[self->n++] = (char *)(uintptr_t)text;
}

/* `value` in front of what the variable holds. */
static void put_in_front(struct variables *self, const char *name, const char *value, char between)
{
	const char *old = getenv(name);
	const char *text = value;
	if (old && *old)
		text = np_arena_printf(self->arena, "%s%c%s", value, between, old);
	if (!text)
		self->failed = true;
	else
		set(self, name, text, true);
}

static void set_of_preset(struct variables *self, const struct np_preset *preset)
{
	for (size_t i = 0; preset && i < NP_PRESET_VARIABLES && preset->variables[i]; i++) {
		const char *text = preset->variables[i];
		const char *name = np_arena_cstr(self->arena, (np_str){text, name_length(text)});
		if (name)
			set(self, name, text + name_length(text) + 1, false);
		else
			self->failed = true;
	}
}

enum np_status np_run_environment(struct np_run *run, char ***out, struct np_err *err)
{
	struct np_arena *arena = &run->report->arena;
	struct variables self = {.arena = arena};
	size_t n = 0;
	while (environ[n])
		n++;
	self.cap = n + 16;
	self.v = np_arena_zalloc(arena, self.cap * sizeof *self.v);
	if (!self.v)
		return np_err_nomem(err);
	for (; self.n < n; self.n++)
		self.v[self.n] = environ[self.n];
	set_of_preset(&self, run->preset);
	/* Python writes to a pipe in blocks: what a killed process had not written yet is lost */
	set(&self, "PYTHONUNBUFFERED", "1", false);
	if (run->hooked) {
		const char *json = np_path_join(arena, run->dir, "inject.json");
		self.failed |= !json;
		put_in_front(&self, "PYTHONPATH", run->inject_dir, ':');
		set(&self, "NPUPROF_INJECT", json ? json : "", true);
	}
	if (run->options->collectives) {
		const char *library = np_path_join(arena, run->inject_dir, NP_INJECT_LIBRARY_NAME);
		self.failed |= !library;
		set(&self, "NPUPROF_COMM", run->comm_dir, true);
		put_in_front(&self, "LD_PRELOAD", library ? library : "", ':');
	}
	*out = self.v;
	return self.failed ? np_err_nomem(err) : NP_OK;
}

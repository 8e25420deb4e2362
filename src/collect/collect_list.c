/* The delivery list of an arm (R54): those of its hosts as one, in OUT or OUT/ARM. */
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "collect/collect_internal.h"
#include "collect/manifest.h"

static enum np_status add_host(struct np_manifest *whole, struct leg *leg, struct np_err *err)
{
	struct np_manifest part;
	np_str host = np_path_base(leg->dir);
	const char *dir = np_path_join(&leg->arena, leg->dir, "run");
	if (!dir)
		return np_err_nomem(err);
	np_manifest_init(&part);
	enum np_status status = np_manifest_read(&part, dir, err);
	for (size_t i = 0; status == NP_OK && i < part.files.n; i++) {
		struct np_manifest_file file = part.files.v[i];
		file.path = np_arena_printf(&leg->arena, "%.*s/run/%s", NP_FMT(host), file.path);
		if (!file.path || !np_manifest_put(whole, &file))
			status = np_err_nomem(err);
	}
	np_manifest_release(&part);
	return status;
}

enum np_status collect_list(struct collect *self, size_t arm, struct np_err *err)
{
	struct np_manifest whole;
	const char *name = self->arms[arm].name, *dir = self->options->out;
	size_t n = 0;
	if (name)
		dir = np_path_join(self->arena, dir, name);
	if (!dir)
		return np_err_nomem(err);
	np_manifest_init(&whole);
	enum np_status status = NP_OK;
	for (size_t h = 0; h < self->hosts.v.n && status == NP_OK; h++) {
		struct leg *leg = &self->legs[arm * self->hosts.v.n + h];
		if (leg->stages[STAGE_PULL].verdict != NP_VERDICT_PASS)
			continue;
		status = add_host(&whole, leg, err);
		n++;
	}
	whole.arm = name ? name : "";
	whole.created_ns = np_time_now();
	if (status == NP_OK && n > 0)
		status = np_manifest_write(&whole, dir, err);
	np_manifest_release(&whole);
	return status;
}

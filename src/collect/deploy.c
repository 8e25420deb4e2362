#include "collect/deploy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/fs.h"
#include "collect/manifest.h"
#include "collect/remote_digest.h"
#include "report/lang.h"

struct deploy {
	struct np_transport *transport;
	const struct np_deploy_options *options;
	struct np_deploy_tree tree;
	struct np_remote_list there;
	struct np_arena arena;
	const char *name, *workspace; /* workspace: absolute, over there */
	char id[17];
	bool exists;
	char (*digests)[NP_SHA256_HEX + 1]; /* of there.files; "" where none was asked for */
	size_t *asked;                      /* of there.files, while digests come */
	bool *chosen;                       /* of tree.v: to send */
	size_t n_new, n_changed, n_mode, n_same;
	uint64_t sent_bytes;
	NP_VEC(const char *) extra; /* there, not here */
};

/* ── talking to the other side ── */

static void from_the_start(void *ctx)
{
	(void)lseek(*(const int *)ctx, 0, SEEK_SET);
}

static enum np_status ask(struct deploy *self, const char *what, const char *script,
                          const char *const *args, const struct np_source *input, bool repeatable,
                          struct np_outcome *outcome, struct np_err *err)
{
	struct np_command command = {
		.argv = np_place_script(&self->arena, &self->options->place, input != NULL, script,
	                                args),
		.what = what,
		.repeatable = repeatable,
		.cancel = self->options->cancel,
	};
	if (input)
		command.input = *input;
	if (input && input->kind == NP_SOURCE_FD) {
		command.restart = from_the_start;
		command.restart_ctx = &command.input.fd;
	}
	if (!command.argv)
		return np_err_nomem(err);
	return np_transport_check(self->transport, &command, outcome, err);
}

/* Makes the workspace, gives back a tree that a call put aside and died, sweeps up what broken
 * calls left more than an hour ago (never a tree that is only there), and tells its absolute
 * path. 71: the name is taken by something that is no directory. */
static const char prepare_script[] =
	"set -e\n"
	"w=$1\n"
	"case $w in '~') w=$HOME ;; '~/'*) w=$HOME/${w#??} ;; esac\n"
	"if [ \"$3\" = look ] && ! [ -d \"$w\" ]; then printf '%s' \"$w\"; exit 0; fi\n"
	"mkdir -p -- \"$w\"\n"
	"cd -- \"$w\"\n"
	"if [ -L \"./$2\" ]; then echo \"$2 is a link there\" >&2; exit 71; fi\n"
	"if [ -e \"./$2\" ] && ! [ -d \"./$2\" ]; then echo \"$2 is a file there\" >&2; exit 71; "
	"fi\n"
	"for d in .npuprof-deploy-*; do\n"
	"[ -d \"$d/old\" ] && ! [ -e \"$d/done\" ] && ! [ -e \"./$2\" ] && "
	"[ \"$(cat \"$d/name\")\" = \"$2\" ] && mv -T -- \"$d/old\" \"./$2\" || :\n"
	"done\n"
	"find . -maxdepth 1 -name '.npuprof-deploy-*' -mmin +60 "
	"! \\( -exec test -d '{}/old' \\; ! -exec test -e '{}/done' \\; \\) "
	"-exec rm -rf -- {} + || :\n"
	"printf '%s' \"$(pwd -P)\"\n";

static enum np_status prepare(struct deploy *self, struct np_err *err)
{
	struct np_outcome outcome = {0};
	const char *const args[] = {self->options->workspace, self->name,
	                            self->options->dry_run ? "look" : "make", NULL};
	enum np_status status =
		ask(self, "workspace", prepare_script, args, NULL, true, &outcome, err);
	if (status == NP_E_IO && outcome.status == 71)
		status = np_err_set(err, NP_E_EXISTS, self->transport->name,
		                    "%s/%s is a link or a file there: deploy wants a directory",
		                    self->options->workspace, self->name);
	if (status == NP_OK) {
		self->workspace = np_arena_cstr(&self->arena, np_buf_str(&outcome.out));
		status = self->workspace ? NP_OK : np_err_nomem(err);
	}
	np_outcome_release(&outcome);
	return status;
}

static void take_digest(void *ctx, size_t i, const char *hex)
{
	struct deploy *self = ctx;
	memcpy(self->digests[self->asked[i]], hex, NP_SHA256_HEX + 1);
}

static const struct np_deploy_entry *find_here(const struct deploy *self, const char *path)
{
	size_t low = 0, high = self->tree.v.n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(self->tree.v.v[middle].path, path);
		if (order == 0)
			return &self->tree.v.v[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* Files and digests below `dir` over there, into self->there and self->digests. */
static enum np_status look(struct deploy *self, const char *dir, struct np_err *err)
{
	np_free(self->digests);
	np_remote_list_release(&self->there);
	self->digests = NULL;
	NP_TRY(np_remote_list(&self->there, self->transport, &self->options->place, dir, err));
	size_t n = self->there.files.n, asked = 0;
	const char **paths = np_calloc(n + 1, sizeof *paths);
	self->asked = np_calloc(n + 1, sizeof *self->asked);
	self->digests = np_calloc(n + 1, sizeof *self->digests);
	/* what is not here, or has another size, needs no digest: it may be large */
	for (size_t i = 0; paths && self->asked && i < n; i++) {
		const struct np_remote_file *file = &self->there.files.v[i];
		const struct np_deploy_entry *here = find_here(self, file->path);
		if (!here || here->target || here->size_bytes != file->size_bytes)
			continue;
		self->asked[asked] = i;
		paths[asked++] = file->path;
	}
	enum np_status status =
		!paths || !self->asked || !self->digests
			? np_err_nomem(err)
			: np_remote_digests(self->transport, &self->options->place,
	                                    self->there.root, &self->there.tools, paths, asked,
	                                    take_digest, self, self->options->cancel, err);
	np_free(paths);
	np_free(self->asked);
	self->asked = NULL;
	return status;
}

/* ── what differs ── */

static const struct np_remote_file *find_there(const struct deploy *self, const char *path,
                                               size_t *at)
{
	size_t low = 0, high = self->there.files.n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(self->there.files.v[middle].path, path);
		if (order == 0) {
			*at = middle;
			return &self->there.files.v[middle];
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* A link there where a directory is here: tar would follow it, wherever it leads. */
static enum np_status refuse_links_on_the_way(const struct deploy *self, struct np_err *err)
{
	for (size_t i = 0; i < self->there.links.n; i++) {
		const char *link = self->there.links.v[i];
		size_t len = strlen(link), low = 0, high = self->tree.v.n;
		while (low < high) { /* the first entry that is not before "link/" */
			size_t middle = low + (high - low) / 2;
			const char *path = self->tree.v.v[middle].path;
			int order = strncmp(path, link, len);
			if (order < 0 || (order == 0 && (unsigned char)path[len] < '/'))
				low = middle + 1;
			else
				high = middle;
		}
		const char *path = low < self->tree.v.n ? self->tree.v.v[low].path : "";
		if (strncmp(path, link, len) == 0 && path[len] == '/')
			return np_err_set(err, NP_E_EXISTS, self->transport->name,
			                  "%s/%s/%s is a link there and a directory here: remove "
			                  "it there",
			                  self->workspace, self->name, link);
	}
	return NP_OK;
}

enum change { SAME, NEW, CHANGED, MODE, LINK };

static enum change change_of(const struct deploy *self, const struct np_deploy_entry *entry)
{
	size_t at = 0;
	if (entry->target)
		return LINK; /* always sent: it is nothing */
	const struct np_remote_file *there = find_there(self, entry->path, &at);
	if (!there)
		return NEW;
	if (strcmp(self->digests[at], entry->digests.sha256) != 0)
		return CHANGED;
	/* only whether it may be run: umasks differ */
	return (there->mode & 0100) == (entry->mode & 0100) ? SAME : MODE;
}

static enum np_status compare(struct deploy *self, struct np_err *err)
{
	self->chosen = np_calloc(self->tree.v.n + 1, sizeof *self->chosen);
	if (!self->chosen)
		return np_err_nomem(err);
	for (size_t i = 0; i < self->tree.v.n; i++) {
		enum change change = change_of(self, &self->tree.v.v[i]);
		self->chosen[i] = change != SAME;
		self->n_new += change == NEW;
		self->n_changed += change == CHANGED;
		self->n_mode += change == MODE;
		self->n_same += change == SAME;
	}
	for (size_t i = 0; i < self->there.files.n; i++)
		if (!find_here(self, self->there.files.v[i].path) &&
		    !np_vec_push(&self->extra, self->there.files.v[i].path))
			return np_err_nomem(err);
	for (size_t i = 0; i < self->there.links.n; i++)
		if (!find_here(self, self->there.links.v[i]) &&
		    !np_vec_push(&self->extra, self->there.links.v[i]))
			return np_err_nomem(err);
	return NP_OK;
}

/* ── staging ── */

static const char stage_script[] =
	"set -e\n"
	"cd -- \"$1\"\n"
	"new=.npuprof-deploy-$3\n"
	"rm -rf -- \"$new\"\n"
	"mkdir -- \"$new\"\n"
	"if [ -d \"./$2\" ]; then\n"
	"cp -al -- \"./$2\" \"$new/tree\" 2>/dev/null || { rm -rf -- \"$new/tree\"; "
	"cp -a -- \"./$2\" \"$new/tree\"; }\n"
	"else mkdir -- \"$new/tree\"; fi\n"
	"tar -x -z --unlink-first ${4:+--recursive-unlink} --no-same-owner -f - -C \"$new/tree\"\n";

static const char delete_script[] =
	"cd -- \"$1/.npuprof-deploy-$2/tree\" && xargs -0 rm -f -- && "
	"find . -depth -type d -empty ! -name . -exec rmdir -- {} + 2>/dev/null; :";

/* Renames only: an exchange where mv can, else aside, in, and back again if that fails. Once
 * begun it is not ended by a lost connection; `name` and `done` tell the next call whose tree
 * lies aside, should the host itself go down between the two. */
static const char switch_script[] =
	"trap '' HUP INT TERM PIPE\n"
	"cd -- \"$1\" || exit 70\n"
	"new=.npuprof-deploy-$3\n"
	"printf '%s\\n' \"$2\" >\"$new/name\" || exit 70\n"
	"if ! [ -e \"./$2\" ]; then mv -T -- \"$new/tree\" \"./$2\" || exit 70\n"
	"elif ! mv --exchange -T -- \"$new/tree\" \"./$2\" 2>/dev/null; then\n"
	"mv -T -- \"./$2\" \"$new/old\" || exit 70\n"
	"mv -T -- \"$new/tree\" \"./$2\" || { mv -T -- \"$new/old\" \"./$2\"; exit 70; }\n"
	"fi\n"
	": >\"$new/done\"\n"
	"rm -rf -- \"$new\"\n"
	":";

/* A switch that was cut may have put the tree aside, and not the new one in. */
static const char drop_script[] =
	"cd -- \"$1\" || exit\n"
	"new=.npuprof-deploy-$2\n"
	"[ -e \"./$3\" ] || ! [ -d \"$new/old\" ] || mv -T -- \"$new/old\" \"./$3\" || exit\n"
	"rm -rf -- \"$new\"";

static void drop(struct deploy *self)
{
	struct np_outcome outcome = {0};
	const char *const args[] = {self->workspace, self->id, self->name, NULL};
	(void)ask(self, "cleaning up", drop_script, args, NULL, true, &outcome, NULL);
	np_outcome_release(&outcome);
}

static enum np_status send_files(struct deploy *self, struct np_err *err)
{
	FILE *spool = tmpfile();
	if (!spool)
		return np_err_set(err, NP_E_IO, "TMPDIR", "%s", strerror(errno));
	int fd = fileno(spool);
	struct np_outcome outcome = {0};
	const char *const args[] = {self->workspace, self->name, self->id,
	                            self->options->delete_extra ? "delete" : "", NULL};
	enum np_status status =
		np_deploy_pack(&self->tree, self->chosen, fd, &self->sent_bytes, err);
	if (status == NP_OK && lseek(fd, 0, SEEK_SET) != 0)
		status = np_err_set(err, NP_E_IO, "TMPDIR", "%s", strerror(errno));
	struct np_source input = {.kind = NP_SOURCE_FD, .fd = fd};
	if (status == NP_OK) /* it begins with an empty directory, whatever came before */
		status = ask(self, "sending", stage_script, args, &input, true, &outcome, err);
	np_outcome_release(&outcome);
	(void)fclose(spool);
	return status;
}

static enum np_status delete_extra(struct deploy *self, struct np_err *err)
{
	struct np_buf names = {0};
	struct np_outcome outcome = {0};
	const char *const args[] = {self->workspace, self->id, NULL};
	for (size_t i = 0; i < self->extra.n; i++) {
		np_buf_add_cstr(&names, "./");
		np_buf_add_cstr(&names, self->extra.v[i]);
		np_buf_add_char(&names, '\0');
	}
	struct np_source input = {.kind = NP_SOURCE_BYTES, .bytes = np_buf_str(&names)};
	enum np_status status = names.failed ? np_err_nomem(err)
	                                     : ask(self, "deleting", delete_script, args, &input,
	                                           true, &outcome, err);
	np_outcome_release(&outcome);
	np_buf_release(&names);
	return status;
}

/* What arrived is what was sent, before it gets its name. */
static enum np_status verify(struct deploy *self, struct np_err *err)
{
	const char *dir = np_arena_printf(&self->arena, "%s/.npuprof-deploy-%s/tree",
	                                  self->workspace, self->id);
	NP_TRY(dir ? look(self, dir, err) : np_err_nomem(err));
	for (size_t i = 0; i < self->tree.v.n; i++) {
		enum change change = change_of(self, &self->tree.v.v[i]);
		if (change == NEW || change == CHANGED)
			return np_err_set(err, NP_E_IO, self->tree.v.v[i].path,
			                  "it did not arrive as it is here (did it change "
			                  "meanwhile?); nothing was switched");
	}
	return NP_OK;
}

static enum np_status stage(struct deploy *self, struct np_err *err)
{
	NP_TRY(send_files(self, err));
	if (self->options->delete_extra && self->extra.n)
		NP_TRY(delete_extra(self, err));
	return verify(self, err);
}

static enum np_status bring(struct deploy *self, struct np_err *err)
{
	struct np_outcome outcome = {0};
	const char *const args[] = {self->workspace, self->name, self->id, NULL};
	enum np_status status = stage(self, err);
	/* not repeatable: whether it was done before the link was lost is not known */
	if (status == NP_OK)
		status = ask(self, "switching", switch_script, args, NULL, false, &outcome, err);
	np_outcome_release(&outcome);
	if (status != NP_OK)
		drop(self);
	return status;
}

/* ── the report ── */

static const char *const change_words[] = {
	[SAME] = NP_N("same"), [NEW] = NP_N("new"),   [CHANGED] = NP_N("changed"),
	[MODE] = NP_N("mode"), [LINK] = NP_N("link"),
};

static const struct np_column deployed_columns[] = {
	{"host", "", NP_COL_TEXT, "where"},
	{"directory", "", NP_COL_TEXT, "over there"},
	{"files", "", NP_COL_INT, "in all"},
	{"new", "", NP_COL_INT, "were not there"},
	{"changed", "", NP_COL_INT, "had another content"},
	{"same", "", NP_COL_INT, "did not travel"},
	{"deleted", "", NP_COL_INT, "were there and are not here"},
	{"sent_bytes", "bytes", NP_COL_BYTES, "that travelled, compressed"},
};

static const struct np_column change_columns[] = {
	{"path", "", NP_COL_TEXT, "of the file"},
	{"change", "", NP_COL_TEXT, "new, changed, mode (may be run or not), or deleted"},
	{"size_bytes", "bytes", NP_COL_BYTES, "as it is sent"},
};

static void tell_changes(const struct deploy *self, const bool *chosen, const enum change *changes,
                         struct np_report *report)
{
	struct np_table *table = NP_REPORT_TABLE(report, "changes", "Changes", change_columns);
	for (size_t i = 0; i < self->tree.v.n; i++) {
		const struct np_deploy_entry *entry = &self->tree.v.v[i];
		if (!chosen[i] || changes[i] == LINK)
			continue;
		np_cell_cstr(table, entry->path);
		np_cell_word(table, change_words[changes[i]]);
		np_cell_int(table, (int64_t)entry->size_bytes);
	}
	for (size_t i = 0; self->options->delete_extra && i < self->extra.n; i++) {
		np_cell_cstr(table, self->extra.v[i]);
		np_cell_word(table, NP_N("deleted"));
		np_cell_na(table);
	}
}

static void tell_row(const struct deploy *self, struct np_report *report)
{
	struct np_table *table = NP_REPORT_TABLE(report, "deployed", "Deployed", deployed_columns);
	np_cell_cstr(table, self->transport->name);
	np_cell_printf(table, "%s/%s", self->workspace, self->name);
	np_cell_int(table, (int64_t)self->tree.v.n);
	np_cell_int(table, (int64_t)self->n_new);
	np_cell_int(table, (int64_t)self->n_changed);
	np_cell_int(table, (int64_t)self->n_same);
	np_cell_int(table, self->options->delete_extra ? (int64_t)self->extra.n : 0);
	np_cell_int(table, (int64_t)self->sent_bytes);
}

static void list_some(struct np_finding *finding, const char *const *paths, size_t n)
{
	enum { SHOWN = 20 };
	for (size_t i = 0; i < n && i < SHOWN; i++)
		np_finding_evidence(finding, paths[i], NULL, NULL, "left as it is");
}

static void tell_findings(const struct deploy *self, struct np_report *report)
{
	struct np_finding *finding = NULL;
	for (size_t i = 0; i < self->tree.v.n; i++) {
		if (!self->tree.v.v[i].converted)
			continue;
		if (!finding)
			finding = np_report_finding(report, "DEPLOY_CRLF", NP_INFO,
			                            "line ends of text files were sent as LF "
			                            "(--keep-crlf does not)");
		np_finding_evidence(finding, self->tree.v.v[i].path, NULL, NULL, "had CRLF");
	}
	if (self->extra.n && !self->options->delete_extra) {
		finding = np_report_finding(report, "DEPLOY_EXTRA", NP_INFO,
		                            "files are there that are not here (--delete "
		                            "removes them)");
		list_some(finding, self->extra.v, self->extra.n);
	}
	if (self->tree.left_out.n) {
		finding = np_report_finding(report, "DEPLOY_LEFT_OUT", NP_WARNING,
		                            "links out of the tree and special files were not "
		                            "sent");
		list_some(finding, self->tree.left_out.v, self->tree.left_out.n);
	}
	if (self->tree.n_excluded)
		np_report_note(report, "%zu files and directories are excluded by name",
		               self->tree.n_excluded);
	if (self->options->dry_run)
		np_report_note(report, "nothing was changed (--dry-run)");
}

static enum np_status choose_name(struct deploy *self, struct np_err *err)
{
	unsigned char bytes[8];
	np_str name = np_path_base(self->options->path);
	if (self->options->name)
		name = np_str_of(self->options->name);
	while (name.len && name.ptr[name.len - 1] == '/')
		name.len--;
	self->name = np_arena_cstr(&self->arena, name);
	if (!np_is_safe_path(name) || memchr(name.ptr, '/', name.len))
		return np_err_set(err, NP_E_USAGE, self->options->path,
		                  "give the directory there a name with --name");
	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		return np_err_set(err, NP_E_IO, NULL, "no random bytes: %s", strerror(errno));
	for (size_t i = 0; i < sizeof bytes; i++)
		(void)snprintf(self->id + 2 * i, 3, "%02x", bytes[i]);
	return self->name ? NP_OK : np_err_nomem(err);
}

static enum np_status look_there(struct deploy *self, struct np_err *err)
{
	struct np_err own = {0};
	const char *dir = np_arena_printf(&self->arena, "%s/%s", self->workspace, self->name);
	if (!dir)
		return np_err_nomem(err);
	enum np_status status = look(self, dir, &own);
	if (status == NP_E_NOTFOUND) { /* the first deploy of this name */
		np_remote_list_release(&self->there);
		self->there = (struct np_remote_list){0};
		return NP_OK;
	}
	if (status != NP_OK && err)
		*err = own;
	return status;
}

static enum np_status run(struct deploy *self, struct np_report *report, struct np_err *err)
{
	NP_TRY(choose_name(self, err));
	NP_TRY(np_deploy_tree_read(&self->tree, self->options->path, &self->options->choice, err));
	NP_TRY(prepare(self, err));
	NP_TRY(look_there(self, err));
	NP_TRY(refuse_links_on_the_way(self, err));
	NP_TRY(compare(self, err));
	enum change *changes = np_calloc(self->tree.v.n + 1, sizeof *changes);
	if (!changes)
		return np_err_nomem(err);
	for (size_t i = 0; i < self->tree.v.n; i++)
		changes[i] = change_of(self, &self->tree.v.v[i]);
	bool idle = self->n_new + self->n_changed + self->n_mode == 0 &&
	            self->n_same == self->tree.v.n && self->tree.v.n &&
	            !(self->options->delete_extra && self->extra.n);
	enum np_status status = NP_OK;
	/* names of what is there die with the list that verifying replaces */
	for (size_t i = 0; i < self->extra.n && status == NP_OK; i++) {
		self->extra.v[i] = np_arena_cstr(&self->arena, np_str_of(self->extra.v[i]));
		status = self->extra.v[i] ? NP_OK : np_err_nomem(err);
	}
	if (status == NP_OK && !self->options->dry_run && !idle)
		status = bring(self, err);
	if (status == NP_OK) {
		tell_row(self, report);
		tell_changes(self, self->chosen, changes, report);
		tell_findings(self, report);
	}
	np_free(changes);
	return status;
}

enum np_status np_deploy(struct np_transport *transport, const struct np_deploy_options *options,
                         struct np_report *report, struct np_err *err)
{
	struct deploy self = {.transport = transport, .options = options};
	np_arena_init(&self.arena);
	enum np_status status = run(&self, report, err);
	np_deploy_tree_release(&self.tree);
	np_remote_list_release(&self.there);
	np_vec_release(&self.extra);
	np_free(self.digests);
	np_free(self.chosen);
	np_arena_release(&self.arena);
	return status;
}

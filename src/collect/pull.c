/*
 * A pull as a whole: what to fetch, rounds until the digests agree, and the report.
 */
#include "collect/pull.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "collect/manifest.h"
#include "collect/pull_state.h"

void np_pull_fail_locked(struct pull *self, const struct np_err *err)
{
	if (!self->stop)
		self->failure = *err;
	self->stop = true;
	atomic_store(&self->ended, true);
	(void)pthread_cond_broadcast(&self->wake);
}

void np_pull_fail(struct pull *self, const struct np_err *err)
{
	(void)pthread_mutex_lock(&self->lock);
	np_pull_fail_locked(self, err);
	(void)pthread_mutex_unlock(&self->lock);
}

uint64_t np_pull_shard_size(const struct pull *self, const struct item *item, size_t shard)
{
	uint64_t begin = shard * self->shard_bytes, size = item->file->size_bytes;
	return size - begin < self->shard_bytes ? size - begin : self->shard_bytes;
}

void np_pull_progress(struct pull *self)
{
	if (self->options->progress)
		atomic_store(&self->options->progress->done,
		             (size_t)(atomic_load(&self->bytes_done) >> 20));
}

/* ── what to fetch ── */

static bool is_asked_for(const struct np_pull_options *options, const struct np_remote_file *file)
{
	np_str name = np_path_base(file->path);
	bool match = options->n_only == 0;
	for (size_t i = 0; i < options->n_only && !match; i++)
		match = fnmatch(options->only[i], name.ptr, 0) == 0 ||
		        fnmatch(options->only[i], file->path, 0) == 0;
	bool ranked = options->n_ranks == 0;
	for (size_t i = 0; i < options->n_ranks && !ranked; i++)
		ranked = file->rank == options->ranks[i];
	return match && ranked;
}

static enum np_status select_items(struct pull *self, struct np_err *err)
{
	for (size_t i = 0; i < self->list.files.n; i++) {
		const struct np_remote_file *file = &self->list.files.v[i];
		/* the delivery list here is made here */
		if (strcmp(file->path, NP_MANIFEST_NAME) == 0 || !is_asked_for(self->options, file))
			continue;
		if (!np_vec_push(&self->items, (struct item){.file = file}))
			return np_err_nomem(err);
		if (__builtin_add_overflow(self->bytes_total, file->size_bytes, &self->bytes_total))
			return np_err_set(err, NP_E_FORMAT, self->options->source,
			                  "the far side lists more bytes than there can be");
	}
	if (self->items.n)
		return NP_OK;
	return np_err_set(err, NP_E_EMPTY, self->options->source,
	                  self->list.files.n
	                          ? "none of its files is asked for by --only and --ranks"
	                          : "no files there");
}

/* ── jobs ── */

static bool is_small(const struct pull *self, const struct item *item)
{
	return item->file->size_bytes < NP_PULL_BATCH_BYTES / 16 && item->n_shards == 1 &&
	       self->shard_bytes >= NP_PULL_BATCH_BYTES / 16;
}

static bool is_to_fetch(const struct item *item)
{
	return item->state == ITEM_WANTED && item->n_have < item->n_shards;
}

/* Small files that follow each other go together. */
static size_t batch_at(const struct pull *self, size_t first)
{
	uint64_t bytes = 0;
	size_t n = 0;
	while (first + n < self->items.n && n < NP_PULL_BATCH_FILES) {
		const struct item *item = &self->items.v[first + n];
		if (!is_to_fetch(item) || !is_small(self, item))
			break;
		bytes += item->file->size_bytes;
		if (n && bytes > NP_PULL_BATCH_BYTES)
			break;
		n++;
	}
	return n;
}

/* Workers take from the end, so the last job is put first. */
static enum np_status queue_jobs(struct pull *self, struct np_err *err)
{
	for (size_t i = 0; i < self->items.n;) {
		size_t n = batch_at(self, i);
		if (n > 1) {
			if (!np_vec_push(&self->jobs, ((struct job){i, n, 0})))
				return np_err_nomem(err);
			i += n;
			continue;
		}
		const struct item *item = &self->items.v[i];
		for (size_t k = 0; is_to_fetch(item) && k < item->n_shards; k++)
			if (!item->have[k] && !np_vec_push(&self->jobs, ((struct job){i, 1, k})))
				return np_err_nomem(err);
		i++;
	}
	for (size_t i = 0; i < self->jobs.n / 2; i++) {
		struct job other = self->jobs.v[self->jobs.n - 1 - i];
		self->jobs.v[self->jobs.n - 1 - i] = self->jobs.v[i];
		self->jobs.v[i] = other;
	}
	return NP_OK;
}

/* What has come before, and what has nothing to come, is the hasher's at once. */
static enum np_status queue_hashes(struct pull *self, struct np_err *err)
{
	for (size_t i = 0; i < self->items.n; i++) {
		struct item *item = &self->items.v[i];
		if (item->state == ITEM_PRESENT)
			item->n_front = item->n_have = item->n_shards;
		else if (item->state != ITEM_WANTED)
			continue;
		if (item->state == ITEM_WANTED && item->n_shards == 0) {
			int fd = open(item->part,
			              O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
			if (fd < 0)
				return np_err_set(err, NP_E_IO, item->part, "%s", strerror(errno));
			(void)close(fd);
		}
		if (item->has_local || (item->n_front == 0 && item->n_shards))
			continue;
		item->queued = true;
		if (!np_vec_push(&self->to_hash, i))
			return np_err_nomem(err);
	}
	return NP_OK;
}

/* ── rounds ── */

void np_pull_thread_ends(struct pull *self, bool is_worker)
{
	(void)pthread_mutex_lock(&self->lock);
	self->n_busy--;
	self->n_workers -= is_worker;
	(void)pthread_cond_broadcast(&self->wake);
	(void)pthread_mutex_unlock(&self->lock);
}

enum { MAX_THREADS = 34 };

struct team {
	pthread_t threads[MAX_THREADS];
	size_t n;
};

/* Without a thread the same is done here, one after the other. */
static void let_work(struct pull *self, struct team *team, void *(*work)(void *), bool is_worker)
{
	(void)pthread_mutex_lock(&self->lock);
	self->n_busy++;
	self->n_workers += is_worker;
	(void)pthread_mutex_unlock(&self->lock);
	if (team->n < MAX_THREADS && pthread_create(&team->threads[team->n], NULL, work, self) == 0)
		team->n++;
	else
		(void)work(self);
}

/* Wait for all threads; meanwhile the user may want to end it, whatever they wait for. */
static void await(struct pull *self, const struct team *team)
{
	enum { TICK_NS = 100000000 };
	(void)pthread_mutex_lock(&self->lock);
	while (self->n_busy) {
		struct timespec until;
		(void)clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += TICK_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		(void)pthread_cond_timedwait(&self->wake, &self->lock, &until);
		if (self->options->cancel && atomic_load(self->options->cancel))
			atomic_store(&self->ended, true);
	}
	(void)pthread_mutex_unlock(&self->lock);
	for (size_t i = 0; i < team->n; i++)
		(void)pthread_join(team->threads[i], NULL);
}

static enum np_status fetch_round(struct pull *self, struct np_err *err)
{
	struct team team = {.n = 0};
	size_t wanted =
		self->options->connections ? self->options->connections : NP_PULL_CONNECTIONS;
	NP_TRY(queue_jobs(self, err));
	NP_TRY(queue_hashes(self, err));
	wanted = wanted < self->jobs.n ? wanted : self->jobs.n;
	wanted = wanted < MAX_THREADS - 2 ? wanted : MAX_THREADS - 2;
	let_work(self, &team, np_pull_far_digests, false);
	for (size_t i = 0; i < wanted; i++)
		let_work(self, &team, np_pull_worker, true);
	/* the last: it ends when no worker is left */
	let_work(self, &team, np_pull_hasher, false);
	await(self, &team);
	if (self->stop && err)
		*err = self->failure;
	return self->stop ? self->failure.code : NP_OK;
}

static bool is_wrong(const struct item *item)
{
	return (item->state == ITEM_WANTED || item->state == ITEM_PRESENT) && item->has_local &&
	       item->has_remote;
}

static size_t count_wrong(const struct pull *self)
{
	size_t n = 0;
	for (size_t i = 0; i < self->items.n; i++)
		n += is_wrong(&self->items.v[i]);
	return n;
}

/* Is it still the file that was listed? */
static bool has_changed(const struct np_remote_list *now, const struct np_remote_file *file)
{
	size_t low = 0, high = now->files.n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct np_remote_file *other = &now->files.v[middle];
		int order = strcmp(other->path, file->path);
		if (order == 0)
			return other->size_bytes != file->size_bytes ||
			       other->mtime_ns != file->mtime_ns;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return true;
}

static enum np_status forget_wrong(struct pull *self, const struct np_remote_list *now,
                                   struct np_err *err)
{
	for (size_t i = 0; i < self->items.n; i++) {
		struct item *item = &self->items.v[i];
		if (!is_wrong(item))
			continue;
		if (has_changed(now, item->file)) {
			item->state = ITEM_FAILED;
			item->why = "it has changed there meanwhile";
			continue;
		}
		item->state = ITEM_WANTED; /* also what was there already, with --force */
		NP_TRY(np_pull_forget_bad(self, i, err));
	}
	return NP_OK;
}

static enum np_status look_again(struct pull *self, struct np_err *err)
{
	struct np_remote_list now = {0};
	enum np_status status =
		np_remote_list(&now, self->side, &self->link->place, self->options->path, err);
	if (status == NP_OK)
		status = forget_wrong(self, &now, err);
	np_remote_list_release(&now);
	return status;
}

static enum np_status fetch_all(struct pull *self, struct np_err *err)
{
	for (unsigned round = 0;; round++) {
		NP_TRY(fetch_round(self, err));
		if (count_wrong(self) == 0)
			return NP_OK;
		if (round + 1 == NP_PULL_ROUNDS)
			break;
		NP_TRY(look_again(self, err));
	}
	for (size_t i = 0; i < self->items.n; i++)
		if (is_wrong(&self->items.v[i])) {
			self->items.v[i].state = ITEM_FAILED;
			self->items.v[i].why = "its digest was wrong each time it was fetched";
		}
	return NP_OK;
}

/* ── the end ── */

static void count(struct pull *self)
{
	struct np_pull_result *result = self->result;
	result->verified = self->list.tools.openssl || self->list.tools.sha256sum;
	for (size_t i = 0; i < self->items.n; i++) {
		const struct item *item = &self->items.v[i];
		result->failed += item->state == ITEM_FAILED;
		result->conflicts += item->state == ITEM_CONFLICT;
		if (item->state != ITEM_DONE)
			continue;
		result->files++;
		result->bytes += item->file->size_bytes;
		result->had_files += item->had;
		result->had_bytes += item->had ? item->file->size_bytes : 0;
	}
	result->complete = result->files == self->items.n;
}

/* Without anything over there that makes digests a complete file is taken, and said to be
 * unverified. Where there is something, a file without a digest (it cannot be read, or the far
 * side keeps it to itself) is not taken. */
static enum np_status settle_rest(struct pull *self, struct np_err *err)
{
	bool can_verify = self->list.tools.openssl || self->list.tools.sha256sum;
	for (size_t i = 0; i < self->items.n; i++) {
		struct item *item = &self->items.v[i];
		if (item->state != ITEM_WANTED && item->state != ITEM_PRESENT)
			continue;
		if (item->has_local && !can_verify) {
			NP_TRY(np_pull_store_finish(self, item, err));
			continue;
		}
		item->state = ITEM_FAILED;
		item->why = "the far side gave no digest of it";
	}
	return NP_OK;
}

/* Manifests that were never finished, of calls that were killed: none other is at work here. */
static void sweep(struct pull *self)
{
	struct np_dir list;
	if (np_dir_list(&self->arena, self->options->dest, &list, NULL) != NP_OK)
		return;
	for (size_t i = 0; i < list.n; i++) {
		np_str name = np_str_of(list.v[i].name);
		if (list.v[i].kind != NP_FILE_REG || !np_str_ends(name, NP_STR(".tmp")) ||
		    !np_str_starts(name, NP_STR(NP_MANIFEST_NAME ".")))
			continue;
		const char *path = np_path_join(&self->arena, self->options->dest, list.v[i].name);
		if (path)
			(void)unlink(path);
	}
}

static enum np_status write_manifest(struct pull *self, struct np_err *err)
{
	struct np_manifest manifest;
	struct np_err ignored = {0};
	bool good = true;
	np_manifest_init(&manifest);
	/* what an earlier call brought stays in the list */
	if (np_manifest_read(&manifest, self->options->dest, &ignored) != NP_OK) {
		np_manifest_release(&manifest);
		np_manifest_init(&manifest);
	}
	for (size_t i = 0; i < self->items.n && good; i++) {
		const struct item *item = &self->items.v[i];
		struct np_manifest_file file = {item->file->path, item->file->size_bytes,
		                                item->file->mtime_ns, item->local};
		if (item->state == ITEM_DONE)
			good = np_manifest_put(&manifest, &file);
	}
	manifest.source = self->options->source;
	manifest.created_ns = np_time_now();
	if (self->options->arm)
		manifest.arm = self->options->arm;
	/* what the manifest promises is on the disk before it */
	enum np_status status = good ? NP_OK : np_err_nomem(err);
	if (status == NP_OK && syncfs(self->lock_fd) != 0)
		status = np_err_sys(err, errno, self->options->dest, "write it to the disk");
	if (status == NP_OK)
		status = np_manifest_write(&manifest, self->options->dest, err);
	np_manifest_release(&manifest);
	return status;
}

static enum np_status run_all(struct pull *self, struct np_err *err)
{
	NP_TRY(np_pull_store_open(self, err));
	sweep(self);
	NP_TRY(np_pull_store_items(self, err));
	uint64_t had_bytes = 0;
	for (size_t i = 0; i < self->items.n; i++) {
		struct item *item = &self->items.v[i];
		item->had = item->state == ITEM_DONE || item->state == ITEM_PRESENT;
		had_bytes += item->had ? item->file->size_bytes : 0;
	}
	NP_TRY(np_pull_store_room(self, err));
	self->begun = true;
	atomic_store(&self->bytes_done, had_bytes + self->result->resumed_bytes);
	np_progress_begin(self->options->progress, "MiB fetched",
	                  (size_t)(self->bytes_total >> 20));
	np_pull_progress(self);
	if (self->options->progress)
		atomic_store(&self->options->progress->timed, true);
	enum np_status status = fetch_all(self, err);
	if (status == NP_OK)
		status = settle_rest(self, err);
	count(self);
	if (status == NP_OK && self->result->files)
		status = write_manifest(self, err);
	return status;
}

static void release(struct pull *self)
{
	for (size_t i = 0; i < self->items.n; i++)
		np_hash_free(self->items.v[i].hash);
	np_vec_release(&self->items);
	np_vec_release(&self->jobs);
	np_vec_release(&self->to_hash);
	np_remote_list_release(&self->list);
	np_transport_close(self->side);
	(void)pthread_mutex_destroy(&self->lock);
	(void)pthread_cond_destroy(&self->wake);
	np_arena_release(&self->arena);
}

/* Here, into the source itself or below it: the next call would list what this one brings. */
static enum np_status refuse_itself(const struct pull *self, struct np_err *err)
{
	size_t len = strlen(self->list.root);
	if (strcmp(self->side->ops->kind, "local") != 0 || self->link->place.container ||
	    self->options->dry_run)
		return NP_OK;
	char *dest = realpath(self->options->dest, NULL);
	bool inside = dest && strncmp(dest, self->list.root, len) == 0 &&
	              (dest[len] == '\0' || dest[len] == '/');
	free(dest);
	return inside ? np_err_set(err, NP_E_USAGE, self->options->dest,
	                           "DEST lies in the source: choose another directory")
	              : NP_OK;
}

static enum np_status list_files(struct pull *self, struct np_err *err)
{
	NP_TRY(self->link->open(self->link->ctx, &self->side, err));
	NP_TRY(np_remote_list(&self->list, self->side, &self->link->place, self->options->path,
	                      err));
	NP_TRY(refuse_itself(self, err));
	return select_items(self, err);
}

/* ── the report ── */

static const struct np_column columns[] = {
	{"source", "", NP_COL_TEXT, "where it came from"},
	{"files", "", NP_COL_INT, "verified in DEST"},
	{"size_bytes", "bytes", NP_COL_BYTES, "of them"},
	{"had_files", "", NP_COL_INT, "of them there before"},
	{"resumed_bytes", "bytes", NP_COL_BYTES, "that an earlier call had fetched"},
	{"wire_bytes", "bytes", NP_COL_BYTES, "that travelled, compressed"},
	{"refetched", "", NP_COL_INT, "shards fetched again since a digest was wrong"},
	{"took", "s", NP_COL_REAL, "of it all"},
	{"rate_mb_s", "MB/s", NP_COL_REAL, "of what was fetched, as it is on the disk"},
};

static void tell_row(const struct pull *self, np_ns took, struct np_report *report)
{
	const struct np_pull_result *result = self->result;
	struct np_table *table = NP_REPORT_TABLE(report, "pulled", "Pulled", columns);
	np_cell_cstr(table, self->options->source);
	np_cell_int(table, (int64_t)result->files);
	np_cell_int(table, (int64_t)result->bytes);
	np_cell_int(table, (int64_t)result->had_files);
	np_cell_int(table, (int64_t)result->resumed_bytes);
	np_cell_int(table, (int64_t)result->wire_bytes);
	np_cell_int(table, (int64_t)result->refetched);
	np_cell_real(table, (double)took / 1e9);
	if (result->fetched_bytes && took > 0)
		np_cell_real(table, (double)result->fetched_bytes * 1000.0 / (double)took);
	else
		np_cell_na(table);
}

static void tell_items(const struct pull *self, enum item_state state, struct np_finding *finding)
{
	enum { SHOWN = 20 };
	size_t n = 0;
	for (size_t i = 0; i < self->items.n; i++) {
		const struct item *item = &self->items.v[i];
		if (item->state == state && n++ < SHOWN)
			np_finding_evidence(finding, item->file->path, NULL, NULL, "%s",
			                    item->why ? item->why : "its content is another one");
	}
}

/* What a command to copy needs to be the same one again: " --ranks 0,1 --shard-size 1". */
static const char *same_words(const struct pull *self, struct np_report *report)
{
	static const char *const engines[] = {[NP_ENGINE_ANY] = "",
	                                      [NP_ENGINE_DOCKER] = "docker:",
	                                      [NP_ENGINE_PODMAN] = "podman:"};
	const struct np_pull_options *options = self->options;
	const struct np_container *container = self->link->place.container;
	struct np_buf words = {0};
	for (size_t i = 0; i < options->n_only; i++)
		np_buf_printf(&words, " --only %s", np_shell_quote(report, options->only[i]));
	for (size_t i = 0; i < options->n_ranks; i++)
		np_buf_printf(&words, "%s%lld", i ? "," : " --ranks ",
		              (long long)options->ranks[i]);
	if (container)
		np_buf_printf(&words, " --container %s%.*s", engines[container->engine],
		              NP_FMT(container->name));
	if (self->shard_bytes != NP_PULL_SHARD_BYTES) /* what has come counts for this size only */
		np_buf_printf(&words, " --shard-size %llu",
		              (unsigned long long)(self->shard_bytes >> 20));
	np_buf_add_cstr(&words, options->no_compress ? " --no-compress" : "");
	np_buf_add_cstr(&words, options->preserve ? " --preserve" : "");
	np_buf_add_cstr(&words, options->with_md5 ? " --md5" : "");
	const char *kept = np_arena_cstr(&report->arena, np_buf_str(&words));
	np_buf_release(&words);
	return kept ? kept : "";
}

static void tell_findings(const struct pull *self, const struct np_err *failure,
                          struct np_report *report)
{
	const struct np_pull_result *result = self->result;
	const char *source = np_shell_quote(report, self->options->source);
	const char *dest = np_shell_quote(report, self->options->dest);
	const char *words = same_words(self, report);
	struct np_finding *finding;
	if (failure) {
		finding = np_report_finding(report, "PULL_INCOMPLETE", NP_ERROR,
		                            "the transfer was ended: %s", failure->msg);
		np_finding_evidence(finding, *failure->where ? failure->where : NULL, NULL, NULL,
		                    "%zu of %zu files are complete", result->files, self->items.n);
		np_finding_advice(finding, "The same command goes on where it was ended.");
		np_finding_command(finding, "npuprof pull %s %s%s", source, dest, words);
	}
	if (result->failed) {
		finding = np_report_finding(report, "PULL_SOURCE_CHANGED", NP_ERROR,
		                            "files could not be fetched as they were listed");
		tell_items(self, ITEM_FAILED, finding);
		np_finding_advice(finding, "Wait until nothing writes there any more, then fetch "
		                           "again.");
		np_finding_command(finding, "npuprof pull %s %s%s", source, dest, words);
	}
	if (result->conflicts) {
		finding = np_report_finding(report, "PULL_FILE_DIFFERS", NP_ERROR,
		                            "files are there already, and are not the same");
		tell_items(self, ITEM_CONFLICT, finding);
		np_finding_advice(finding,
		                  "Fetch into a directory of its own, or write over them.");
		np_finding_command(finding, "npuprof pull --force %s %s%s", source, dest, words);
	}
	if (!result->verified)
		(void)np_report_finding(report, "PULL_UNVERIFIED", NP_WARNING,
		                        "the far side has neither openssl nor sha256sum: nothing "
		                        "was verified");
	if (self->list.links.n || self->list.n_others) {
		finding = np_report_finding(report, "PULL_LINKS", NP_INFO,
		                            "links and special files were left out");
		np_finding_evidence(finding, self->list.links.n ? self->list.links.v[0] : NULL,
		                    NULL, NULL, "%zu links, %zu others", self->list.links.n,
		                    self->list.n_others);
	}
}

static void judge(const struct np_pull_result *result, bool failure, struct np_report *report)
{
	if (failure) {
		report->verdict = NP_VERDICT_FAIL;
		report->exit_code = 4;
	} else if (result->failed || result->conflicts) {
		report->verdict = NP_VERDICT_FAIL;
		report->exit_code = 1;
	} else if (!result->verified) {
		report->verdict = NP_VERDICT_UNKNOWN;
		report->exit_code = 3;
	} else {
		report->verdict = NP_VERDICT_PASS;
	}
}

static void tell_plan(const struct pull *self, struct np_report *report)
{
	static const struct np_column plan[] = {
		{"path", "", NP_COL_TEXT, "below DEST"},
		{"size_bytes", "bytes", NP_COL_BYTES, "of it"},
		{"rank", "", NP_COL_INT, "whose capture it belongs to"},
	};
	struct np_table *table = NP_REPORT_TABLE(report, "files", "Files to fetch", plan);
	for (size_t i = 0; i < self->items.n; i++) {
		const struct np_remote_file *file = self->items.v[i].file;
		np_cell_cstr(table, file->path);
		np_cell_int(table, (int64_t)file->size_bytes);
		if (file->rank == NP_REMOTE_NO_RANK)
			np_cell_na(table);
		else
			np_cell_int(table, file->rank);
	}
	np_report_note(report, "nothing was fetched (--dry-run): %zu files, %llu bytes",
	               self->items.n, (unsigned long long)self->bytes_total);
}

enum np_status np_pull(const struct np_pull_link *link, const struct np_pull_options *options,
                       struct np_pull_result *result, struct np_report *report, struct np_err *err)
{
	struct pull self = {
		.link = link, .options = options, .result = result, .journal = -1, .lock_fd = -1};
	struct np_err failure = {0};
	np_ns begin = np_time_now();
	*result = (struct np_pull_result){0};
	self.shard_bytes = options->shard_bytes ? options->shard_bytes : NP_PULL_SHARD_BYTES;
	np_arena_init(&self.arena);
	(void)pthread_mutex_init(&self.lock, NULL);
	(void)pthread_cond_init(&self.wake, NULL);
	np_report_input(report, options->source);
	enum np_status status = list_files(&self, err);
	if (status == NP_OK && options->dry_run) {
		tell_plan(&self, report);
	} else if (status == NP_OK) {
		enum np_status ended = run_all(&self, &failure);
		/* before anything could be fetched it is an error, after that a result */
		if (!self.begun) {
			status = ended;
			*err = failure;
		} else {
			tell_row(&self, np_time_now() - begin, report);
			tell_findings(&self, ended == NP_OK ? NULL : &failure, report);
			judge(result, ended != NP_OK, report);
		}
		np_pull_store_close(&self, ended == NP_OK && result->complete);
	}
	release(&self);
	return status;
}

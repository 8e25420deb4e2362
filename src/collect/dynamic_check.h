/*
 * Is this configuration of dynamic_profile one that yields what was wanted? torch_npu resets
 * what it does not accept, drops what it does not know, and ignores what comes too early or
 * too late, mostly without a word that anyone sees: the rules R72–R88 as findings.
 *
 *   profiler_config.json ──dynamic_rules.c──▶ what it says     (any text)
 *                        ──dynamic_pairs.c──▶ what goes with what
 *   its directory        ──dynamic_place.c──▶ path, owners, times, shared memory
 */
#ifndef NP_COLLECT_DYNAMIC_CHECK_H
#define NP_COLLECT_DYNAMIC_CHECK_H

#include "collect/dynamic_text.h"
#include "report/report.h"

struct np_dyn_check_options {
	bool has_current_step, has_max_step, has_job_start, has_purpose;
	int64_t current_step; /* step() calls so far */
	int64_t max_step;     /* step() calls of the whole job */
	np_ns job_start_ns;   /* when the job's init ran, at the earliest */
	enum np_dyn_purpose purpose;
	bool no_purposes;    /* leave `purposes` and its finding out */
	const char *shm_dir; /* NULL: np_dyn_shm_dir() */
};

/* What the rules share. */
struct np_dyn_checking {
	const struct np_dyn_check_options *options;
	const char *path, *dir; /* of profiler_config.json, of its directory */
	struct np_report *report;
	const struct np_dyn_text *doc;
	bool unknown; /* something could not be judged */
	struct np_err *err;
};

/*
 * Judge `path`, a profiler_config.json or its directory: findings, the table `purposes` (what
 * such a capture can be used for), verdict and exit code as those of `check`: any error
 * fails (1), else what could not be judged leaves it open (3). Errors: E_NOTFOUND, E_ACCESS,
 * E_IO, E_NOMEM.
 */
enum np_status np_dyn_check(const char *path, const struct np_dyn_check_options *options,
                            struct np_report *report, struct np_err *err);

/* The part that needs only the text: findings, and the table `purposes`. `path` is for
 * messages. Errors: E_NOMEM. */
enum np_status np_dyn_check_text(const char *path, np_str text,
                                 const struct np_dyn_check_options *options,
                                 struct np_report *report, struct np_err *err);

/* "DIR/profiler_config.json" for a directory, the path itself for what is none; in the arena. */
const char *np_dyn_config_path(struct np_arena *arena, const char *path);
/* The directory of such a path; "." when it names none. */
const char *np_dyn_config_dir(struct np_arena *arena, const char *config);

/* ── the parts; not for use outside ── */

/* A finding about a member (NULL: the file as a whole), with its line as evidence. */
struct np_finding *np_dyn_tell(struct np_dyn_checking *self, const char *code,
                               enum np_severity severity, const struct np_dyn_member *member,
                               const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Suggest `npuprof dynamic trigger DIR --set KEY=JSON`. */
void np_dyn_suggest(struct np_dyn_checking *self, struct np_finding *finding, enum np_dyn_id id,
                    const char *json);

/* The member's value if torch_npu accepts it, else what it takes instead. */
int64_t np_dyn_int(const struct np_dyn_text *doc, enum np_dyn_id id);
bool np_dyn_bool(const struct np_dyn_text *doc, enum np_dyn_id id);
bool np_dyn_has_word(const struct np_dyn_text *doc, enum np_dyn_id id, const char *word);
np_str np_dyn_word(const struct np_dyn_text *doc, enum np_dyn_id id);

void np_dyn_check_fields(struct np_dyn_checking *self);
void np_dyn_check_pairs(struct np_dyn_checking *self);
void np_dyn_check_purposes(struct np_dyn_checking *self);
enum np_status np_dyn_check_place(struct np_dyn_checking *self);

/* The name of a network file system, by statfs(); NULL for others. */
const char *np_dyn_network_fs(long type);

#endif

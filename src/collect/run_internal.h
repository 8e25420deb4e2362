/*
 * Inside run: one run, from its options to its report. Everything lives in the report's arena
 * but the two vectors.
 */
#ifndef NP_COLLECT_RUN_INTERNAL_H
#define NP_COLLECT_RUN_INTERNAL_H

#include "collect/dumps.h"
#include "collect/events.h"
#include "collect/presets.h"
#include "collect/run.h"
#include "collect/spawn.h"
#include "gate/gate.h"

enum { NP_RUN_MAX_RANKS = 4096, NP_RUN_MAX_TARGETS = 32 };

struct np_run_target {
	const char *text, *module, *qualname;
	const char *stage; /* its name, of a stage */
};

enum np_run_command_state {
	NP_RUN_NOT_STARTED,
	NP_RUN_ENDED,
	NP_RUN_LAUNCHER_DIED, /* how the command ended is not known */
};

struct np_run {
	const struct np_run_options *options;
	struct np_report *report;
	const struct np_preset *preset; /* NULL */
	struct np_run_target targets[NP_RUN_MAX_TARGETS], stages[NP_RUN_MAX_TARGETS];
	size_t n_targets, n_stages;
	int64_t *ranks; /* NULL: all */
	size_t n_ranks;
	uint64_t warmup, active, call;
	const char *level, *aic_metrics, *phase, *export_type, *step_anchor, *request_anchor;
	bool text, db;
	bool hooked; /* something is injected */
	enum np_gate_profile profile;
	const char *command; /* as one line to copy */
	char *const *argv;
	/* absolute paths */
	const char *name, *dir, *prof_dir, *events_dir, *comm_dir, *inject_dir, *log_dir, *log,
		*marker;
	const char *search; /* where captures are looked for: prof_dir or what is watched */
	const char *state;  /* of run.json: "running", "exporting", "finished" */
	np_ns started_ns, ended_ns;
	np_ns start_ns; /* mtime of the marker, by the clock that judges */
	enum np_run_command_state command_state;
	struct np_spawn_end end;
	struct np_run_events events;
	struct np_dumps dumps;
	const char *export_python; /* NULL: none can import torch_npu */
	bool gated, failed, unknown;
	enum np_verdict gate_verdict; /* NONE: it did not run */
	np_ns looked_ns;              /* of enough(): when all had recorded first; monotonic */
};

/* run_setup.c */
enum np_status np_run_resolve(struct np_run *run, struct np_err *err);
enum np_status np_run_make_dir(struct np_run *run, struct np_err *err);
/* "module:qualname" of a stage "name=module:qualname" or of a target. E_USAGE. */
enum np_status np_run_parse_target(struct np_arena *arena, const char *text, bool stage,
                                   struct np_run_target *out, struct np_err *err);
/* "all", or numbers and ranges; *ranks NULL for all; in the arena. E_USAGE. */
enum np_status np_run_parse_ranks(struct np_arena *arena, const char *text, int64_t **ranks,
                                  size_t *n, struct np_err *err);
/* In the arena; NULL without memory. */
const char *np_run_absolute(struct np_arena *arena, const char *path);
/* The paths below run->dir. */
enum np_status np_run_paths(struct np_run *run, struct np_err *err);

/* run_env.c: the environment of the command; NULL-terminated, in the arena. */
enum np_status np_run_environment(struct np_run *run, char ***out, struct np_err *err);

/* run_json.c */
enum np_status np_run_write_inject(const struct np_run *run, struct np_err *err);
enum np_status np_run_write_json(const struct np_run *run, struct np_err *err);
/* The document itself; exposed for tests. */
void np_run_json(const struct np_run *run, struct np_buf *out);
/* An earlier run, options included; E_NOTFOUND, E_FORMAT, E_USAGE (it still runs). */
enum np_status np_run_read_json(struct np_run *run, struct np_run_options *options, const char *dir,
                                struct np_err *err);

/* run_report.c: all that is said; it calls the others */
void np_run_tell(struct np_run *run);

/* run_again.c: commands to copy, in the arena */
/* A command as one line for a shell. */
const char *np_run_command_line(struct np_report *report, char *const *argv);
/* The command line of this run again, with another option in front, which takes the place of its
 * own: "--warmup 2"; or NULL. */
const char *np_run_again(struct np_run *run, const char *with);
/* … with `target` in the place of the target `old`, the text of one. */
const char *np_run_again_with_target(struct np_run *run, const char *old, const char *target);

/* run_targets.c */
void np_run_tell_targets(struct np_run *run);
void np_run_tell_hook(struct np_run *run);
void np_run_tell_processes(struct np_run *run);
/* "DiT" of "model:DiT.forward". */
np_str np_run_first_name(const struct np_run_target *target);
/* A cell of an integer; NP_NO_I64 is not available. */
void np_run_cell(struct np_table *table, int64_t value);

/* run_logs.c */
void np_run_tell_collectives(struct np_run *run);
void np_run_tell_log(struct np_run *run);

#endif

/*
 * Making a profiler_config.json, and asking for a capture by changing it.
 */
#ifndef NP_COLLECT_DYNAMIC_TRIGGER_H
#define NP_COLLECT_DYNAMIC_TRIGGER_H

#include "collect/dynamic_text.h"
#include "report/report.h"

/*
 * A change of the command line, "KEY=VALUE": VALUE is JSON, or a word where the field is a
 * text; KEY may have experimental_config. in front. The JSON is in the arena. E_USAGE: no
 * such key, or a value that torch_npu would reset.
 */
enum np_status np_dyn_change_parse(struct np_arena *arena, const char *text,
                                   struct np_dyn_change *out, struct np_err *err);

/* Add or replace the change of a field; out[0 … *n) has room for NP_DYN_N_FIELDS. */
void np_dyn_change_put(struct np_dyn_change *out, size_t *n, enum np_dyn_id id, const char *json);

/* What differs between the purposes: level, metrics, export, what is recorded of the host. Ranks,
 * steps and prof_dir stay the user's. */
void np_dyn_change_preset(struct np_dyn_change *out, size_t *n, enum np_dyn_purpose purpose);

/* is_rank and rank_list for "all", or for a list of ranks. */
enum np_status np_dyn_change_ranks(struct np_arena *arena, const char *ranks,
                                   struct np_dyn_change *out, size_t *n, struct np_err *err);

/*
 * Make `dir` (0750) and a profiler_config.json (0640) in it, for the purpose, with start_step 0
 * (no capture) and the changes; E_EXISTS when there is one already. The report tells how to let
 * a job use it.
 */
enum np_status np_dyn_init(const char *dir, enum np_dyn_purpose purpose,
                           const struct np_dyn_change *changes, size_t n, struct np_report *report,
                           struct np_err *err);

struct np_dyn_trigger_options {
	bool dry_run, strip_comments;
	bool force; /* also write what torch_npu would not accept as it is */
};

/*
 * Write the changes into the file in place (dynamic_store.h). Tables: `changes`, and with
 * dry_run `diff`. What is wrong with the result is told before anything is written, and an
 * error refuses it (exit code 2) unless `force`. Errors: those of np_dyn_rewrite().
 */
enum np_status np_dyn_trigger(const char *path, const struct np_dyn_change *changes, size_t n,
                              const struct np_dyn_trigger_options *options,
                              struct np_report *report, struct np_err *err);

#endif

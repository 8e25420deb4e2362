/*
 * The options of `npuprof run` which `npuprof collect` hands on to it, once.
 */
#ifndef NP_CMD_RUN_OPTIONS_H
#define NP_CMD_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/options.h"

/* A member of a command's struct of options. */
struct np_run_words {
	struct np_opt_list targets, stages;
	const char *preset, *warmup, *ranks, *level, *aic_metrics, *phase, *export_type,
		*step_anchor, *request_anchor, *pre_check, *python, *profile, *active, *call;
	double timeout, export_timeout, grace;
	bool compile, with_stack, with_shapes, no_shapes, with_memory, collectives, no_export,
		no_check, stop_after_capture;
};

/* Rows for its table: `type` is the struct, `member` the member's name. */
#define NP_RUN_ROW(type, member, kind, name, arg, help)                   \
	{                                                                 \
		name, 0, NP_OPT_##kind, offsetof(type, member), arg, help \
	}
#define NP_RUN_OPTIONS(t, m)                                                                       \
	NP_RUN_ROW(t, m.targets, LIST, "target", "MODULE:NAME",                                    \
	           "the call to record, as pkg.dit:DiT.forward; may be given several times"),      \
		NP_RUN_ROW(t, m.preset, STRING, "preset", "NAME", "what is known of a framework"), \
		NP_RUN_ROW(t, m.warmup, STRING, "warmup", "N",                                     \
	                   "calls before the recorded one (default: 5, or the preset's)"),         \
		NP_RUN_ROW(t, m.compile, FLAG, "compile", NULL,                                    \
	                   "a compiler is at work: warm up 10 calls"),                             \
		NP_RUN_ROW(t, m.active, STRING, "active", "N",                                     \
	                   "calls in a row to record (default: 1)"),                               \
		NP_RUN_ROW(t, m.call, STRING, "call", "K",                                         \
	                   "record from call K on, counted from 1 (default: warm-up + 1)"),        \
		NP_RUN_ROW(t, m.ranks, STRING, "ranks", "LIST",                                    \
	                   "all, or as 0,2,4-7 (default: 0)"),                                     \
		NP_RUN_ROW(t, m.phase, STRING, "phase", "WHAT",                                    \
	                   "prefill, decode or both (default: both)"),                             \
		NP_RUN_ROW(t, m.level, STRING, "level", "LEVEL",                                   \
	                   "Level0, Level1, Level2 or Level_none (default: Level1)"),              \
		NP_RUN_ROW(t, m.aic_metrics, STRING, "aic-metrics", "NAME",                        \
	                   "unit counters (default: PipeUtilization)"),                            \
		NP_RUN_ROW(t, m.with_stack, FLAG, "with-stack", NULL,                              \
	                   "record Python call stacks"),                                           \
		NP_RUN_ROW(t, m.with_shapes, FLAG, "with-shapes", NULL,                            \
	                   "record input shapes (the default)"),                                   \
		NP_RUN_ROW(t, m.no_shapes, FLAG, "no-shapes", NULL, "do not record input shapes"), \
		NP_RUN_ROW(t, m.with_memory, FLAG, "with-memory", NULL, "record memory"),          \
		NP_RUN_ROW(t, m.export_type, STRING, "export-type", "LIST",                        \
	                   "text, db or text,db (default: text)"),                                 \
		NP_RUN_ROW(t, m.collectives, FLAG, "collectives", NULL,                            \
	                   "record every collective as well"),                                     \
		NP_RUN_ROW(t, m.stages, LIST, "stage", "NAME=MODULE:NAME",                         \
	                   "a stage of the collectives; may be given several times"),              \
		NP_RUN_ROW(t, m.step_anchor, STRING, "step-anchor", "NAME",                        \
	                   "the stage whose calls count steps (default: the first)"),              \
		NP_RUN_ROW(t, m.request_anchor, STRING, "request-anchor", "NAME",                  \
	                   "the stage whose calls are requests (default: one called request)"),    \
		NP_RUN_ROW(t, m.pre_check, STRING, "pre-check", "CMD",                             \
	                   "run it by sh -c first; it must end with 0 and print something"),       \
		NP_RUN_ROW(t, m.timeout, DOUBLE, "timeout", "SECONDS",                             \
	                   "end the command then (default: never)"),                               \
		NP_RUN_ROW(t, m.stop_after_capture, FLAG, "stop-after-capture", NULL,              \
	                   "end the command once all ranks have recorded: for servers"),           \
		NP_RUN_ROW(t, m.grace, DOUBLE, "grace", "SECONDS",                                 \
	                   "from SIGTERM to SIGKILL when npuprof ends it (default: 30)"),          \
		NP_RUN_ROW(t, m.python, STRING, "python", "PYTHON",                                \
	                   "a Python with torch_npu, for the export (default: the command's)"),    \
		NP_RUN_ROW(t, m.export_timeout, DOUBLE, "export-timeout", "SECONDS",               \
	                   "per export (default: 1800)"),                                          \
		NP_RUN_ROW(t, m.no_export, FLAG, "no-export", NULL, "keep the raw dump only"),     \
		NP_RUN_ROW(t, m.profile, STRING, "profile", "WHAT",                                \
	                   "of the gate: kernel, framework or cluster (default: by the "           \
	                   "configuration)"),                                                      \
		NP_RUN_ROW(t, m.no_check, FLAG, "no-check", NULL, "do not judge; never a pass")

#endif

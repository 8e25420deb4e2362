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
		*step_anchor, *pre_check, *python, *profile;
	uint64_t active, call;
	double timeout, export_timeout, grace;
	bool compile, with_stack, with_shapes, no_shapes, with_memory, collectives, no_export,
		no_check, stop_after_capture;
};

/* Rows for its table: `type` is the struct, `member` the member's name. */
#define NP_RUN_OPTIONS(type, member)                                                       \
	{"target",                                                                         \
	 0,                                                                                \
	 NP_OPT_LIST,                                                                      \
	 offsetof(type, member.targets),                                                   \
	 "MODULE:NAME",                                                                    \
	 "the call to record, as "                                                         \
	 "pkg.dit:DiT.forward; may be given several times"},                               \
		{"preset",      0,                                                         \
	         NP_OPT_STRING, offsetof(type, member.preset),                             \
	         "NAME",        "what is known of a framework"},                           \
		{"warmup",                                                                 \
	         0,                                                                        \
	         NP_OPT_STRING,                                                            \
	         offsetof(type, member.warmup),                                            \
	         "N",                                                                      \
	         "calls before the recorded one (default: "                                \
	         "5, or the preset's)"},                                                   \
		{"compile",   0,                                                           \
	         NP_OPT_FLAG, offsetof(type, member.compile),                              \
	         NULL,        "a compiler is at work: warm up 10 calls"},                  \
		{"active",    0,                                                           \
	         NP_OPT_UINT, offsetof(type, member.active),                               \
	         "N",         "calls in a row to record (default: 1)"},                    \
		{"call",                                                                   \
	         0,                                                                        \
	         NP_OPT_UINT,                                                              \
	         offsetof(type, member.call),                                              \
	         "K",                                                                      \
	         "record from call K on, counted from 1 "                                  \
	         "(default: warm-up + 1)"},                                                \
		{"ranks",       0,                                                         \
	         NP_OPT_STRING, offsetof(type, member.ranks),                              \
	         "LIST",        "all, or as 0,2,4-7 (default: 0)"},                        \
		{"phase",       0,                                                         \
	         NP_OPT_STRING, offsetof(type, member.phase),                              \
	         "WHAT",        "prefill, decode or both (default: both)"},                \
		{"level",                                                                  \
	         0,                                                                        \
	         NP_OPT_STRING,                                                            \
	         offsetof(type, member.level),                                             \
	         "LEVEL",                                                                  \
	         "Level0, Level1, Level2 or Level_none "                                   \
	         "(default: Level1)"},                                                     \
		{"aic-metrics", 0,                                                         \
	         NP_OPT_STRING, offsetof(type, member.aic_metrics),                        \
	         "NAME",        "unit counters (default: PipeUtilization)"},               \
		{"with-stack", 0,                                                          \
	         NP_OPT_FLAG,  offsetof(type, member.with_stack),                          \
	         NULL,         "record Python call stacks"},                               \
		{"with-shapes", 0,                                                         \
	         NP_OPT_FLAG,   offsetof(type, member.with_shapes),                        \
	         NULL,          "record input shapes (the default)"},                      \
		{"no-shapes", 0,                                                           \
	         NP_OPT_FLAG, offsetof(type, member.no_shapes),                            \
	         NULL,        "do not record input shapes"},                               \
		{"with-memory",  0, NP_OPT_FLAG, offsetof(type, member.with_memory), NULL, \
	         "record memory"},                                                         \
		{"export-type", 0,                                                         \
	         NP_OPT_STRING, offsetof(type, member.export_type),                        \
	         "LIST",        "text, db or text,db (default: text)"},                    \
		{"collectives", 0,                                                         \
	         NP_OPT_FLAG,   offsetof(type, member.collectives),                        \
	         NULL,          "record every collective as well"},                        \
		{"stage",                                                                  \
	         0,                                                                        \
	         NP_OPT_LIST,                                                              \
	         offsetof(type, member.stages),                                            \
	         "NAME=MODULE:NAME",                                                       \
	         "a stage of the collectives; may be "                                     \
	         "given several times"},                                                   \
		{"step-anchor",                                                            \
	         0,                                                                        \
	         NP_OPT_STRING,                                                            \
	         offsetof(type, member.step_anchor),                                       \
	         "NAME",                                                                   \
	         "the stage whose calls count steps "                                      \
	         "(default: the first)"},                                                  \
		{"pre-check",                                                              \
	         0,                                                                        \
	         NP_OPT_STRING,                                                            \
	         offsetof(type, member.pre_check),                                         \
	         "CMD",                                                                    \
	         "run it by sh -c first; it must end with "                                \
	         "0 and print something"},                                                 \
		{"timeout",     0,                                                         \
	         NP_OPT_DOUBLE, offsetof(type, member.timeout),                            \
	         "SECONDS",     "end the command then (default: never)"},                  \
		{"stop-after-capture",                                                     \
	         0,                                                                        \
	         NP_OPT_FLAG,                                                              \
	         offsetof(type, member.stop_after_capture),                                \
	         NULL,                                                                     \
	         "end the command once all ranks have "                                    \
	         "recorded: for servers"},                                                 \
		{"grace",                                                                  \
	         0,                                                                        \
	         NP_OPT_DOUBLE,                                                            \
	         offsetof(type, member.grace),                                             \
	         "SECONDS",                                                                \
	         "from SIGTERM to SIGKILL when npuprof "                                   \
	         "ends it (default: 30)"},                                                 \
		{"python",                                                                 \
	         0,                                                                        \
	         NP_OPT_STRING,                                                            \
	         offsetof(type, member.python),                                            \
	         "PYTHON",                                                                 \
	         "a Python with torch_npu, for the export "                                \
	         "(default: the command's)"},                                              \
		{"export-timeout", 0,                                                      \
	         NP_OPT_DOUBLE,    offsetof(type, member.export_timeout),                  \
	         "SECONDS",        "per export (default: 1800)"},                          \
		{"no-export", 0,                                                           \
	         NP_OPT_FLAG, offsetof(type, member.no_export),                            \
	         NULL,        "keep the raw dump only"},                                   \
		{"profile",                                                                \
	         0,                                                                        \
	         NP_OPT_STRING,                                                            \
	         offsetof(type, member.profile),                                           \
	         "WHAT",                                                                   \
	         "of the gate: kernel, framework or cluster "                              \
	         "(default: by the configuration)"},                                       \
	{                                                                                  \
		"no-check", 0, NP_OPT_FLAG, offsetof(type, member.no_check), NULL,         \
			"do not judge; never a pass"                                       \
	}

#endif

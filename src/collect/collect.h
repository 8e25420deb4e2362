/*
 * `npuprof collect`: one command from a program here to judged captures here, over one host or
 * many (R1, R52–R54).
 *
 *   connect ▶ environment ▶ ship ▶ deploy ▶ devices │ pre-check ▶ run ▶ export │ pull ▶ gate
 *   └────────────── prepare, all hosts ─────────────┘└── npuprof run, there ───┘└── here ──┘
 *
 * The command runs there under `npuprof run`, in a session of its own, so that no lost connection
 * ends it; what is known of it lies in files beside its products (collect_script.h). It is
 * followed by the length of its log (R11d).
 *
 * Clocks (R52). Three verdicts make that of a host, and each uses one clock only:
 *   run's gate  there, marker and products by the clock over there: are they of this run?
 *   transfer    no clock: size and SHA-256 of every file
 *   gate here   marker written before the run, files that a pull dates by the clock here: did
 *               all of it come with this collect, complete and readable?
 * Only all three make a PASS.
 *
 *   OUT/collect.json          what was asked for, for --resume
 *   OUT/.npuprof_start        the marker of the gate here (R53)
 *   OUT/[ARM/]HOST/collect.json   how far it is
 *   OUT/[ARM/]HOST/run/       what was fetched, with its manifest
 * So OUT, or OUT/ARM, is what `npuprof cluster` and `npuprof compare` read.
 */
#ifndef NP_COLLECT_COLLECT_H
#define NP_COLLECT_COLLECT_H

#include "collect/quote.h"
#include "collect/transport.h"
#include "report/report.h"

enum { NP_COLLECT_MAX_ARMS = 16, NP_COLLECT_MAX_WORDS = 1024 };

struct np_collect_options {
	const char *out;            /* directory here */
	const char *const *hosts;   /* as they were written, expanded; NULL-terminated */
	const char *container;      /* as --container wants it; NULL */
	const char *workspace;      /* directory there; NULL: ~/npuprof */
	const char *deploy;         /* a tree to bring there first; NULL */
	const char *chdir;          /* the command's directory; NULL: the tree, or the workspace */
	const char *devices;        /* "4", "0,1", "none"; NULL: as many as the command says */
	const char *set_env;        /* a script to source, "none"; NULL: that of the toolkit */
	const char *port_range;     /* HCCL_NPU_SOCKET_PORT_RANGE; NULL: 20000-21000 (R9) */
	const char *remote_npuprof; /* an npuprof that is installed there; NULL: this one */
	const char *const *env;     /* "NAME=value"; NULL-terminated */
	const char *const *run;     /* options for `npuprof run`; NULL-terminated */
	const char *const *arms;    /* "NAME=WORDS" (R54); NULL-terminated */
	const char *const *command; /* NULL-terminated; {host} {index} {n} {master} {arm} */
	const char *ssh_config;     /* of struct np_ssh_options */
	const char *const *ssh_options;
	bool accept_unknown_host_key;
	bool span_groups, no_pull, no_check, keep_raw;

	/* not kept for --resume */
	const atomic_bool *cancel;     /* Ctrl-C: the runs are ended, what exists is fetched */
	void (*say)(const char *line); /* called from several threads, never two at once */
	struct np_retry retry;         /* tells of repetitions */
	double poll_s;                 /* 0: 2 */
	double patience_s;             /* without a connection; 0: 600 */
	unsigned threads;
};

/*
 * Tables `stages` and `captures`; findings COLLECT_*, DEVICES_NONE_FREE, DEVICE_BUSY and those of
 * the gate here. verdict and exit_code: 1 something failed on some host, else 4 some host could
 * not be worked with, else 3 something is not verified, else 0.
 * Errors: E_USAGE (also: OUT holds a collect already), E_IO, E_NOMEM.
 */
enum np_status np_collect(const struct np_collect_options *options, struct np_report *report,
                          struct np_err *err);

/* Go on where a collect into `out` was ended, whatever ended it. Of the options count those that
 * are not kept. E_NOTFOUND: there is none; E_FORMAT. */
enum np_status np_collect_resume(const char *out, const struct np_collect_options *options,
                                 struct np_report *report, struct np_err *err);

/* Three fixtures with known answers, no ssh (R53): table `selftest`. */
enum np_status np_collect_selftest(struct np_report *report, struct np_err *err);

#endif

/*
 * Inside collect: a leg is one host in one arm, with its stages. A leg belongs to one thread at a
 * time; what legs share is read only, but for talk(), which locks.
 */
#ifndef NP_COLLECT_COLLECT_INTERNAL_H
#define NP_COLLECT_COLLECT_INTERNAL_H

#include <pthread.h>

#include "base/time.h"
#include "collect/collect.h"
#include "collect/hash.h"
#include "collect/hosts_run.h"
#include "collect/remote_list.h"
#include "io/input.h"

/* in their order: name */
#define COLLECT_STAGE_MAP(X)          \
	X(CONNECT, "connect")         \
	X(ENVIRONMENT, "environment") \
	X(SHIP, "ship")               \
	X(DEPLOY, "deploy")           \
	X(DEVICES, "devices")         \
	X(PRE_CHECK, "pre-check")     \
	X(RUN, "run")                 \
	X(EXPORT, "export")           \
	X(PULL, "pull")               \
	X(GATE, "gate")

enum collect_stage {
#define X(name, text) STAGE_##name,
	COLLECT_STAGE_MAP(X)
#undef X
		N_STAGES
};

extern const char *const collect_stage_names[N_STAGES];

struct stage_result {
	enum np_verdict verdict; /* NONE: not reached, or not asked for */
	bool environment;        /* FAIL since the host could not be worked with: exit status 4 */
	const char *detail;      /* "" */
	np_ns took_ns;
};

struct arm {
	const char *name;         /* NULL: the only one */
	const char *const *env;   /* NULL-terminated */
	const char *const *words; /* for {arm}; NULL-terminated */
};

struct collect;

struct leg {
	struct collect *all;
	const struct arm *arm;
	size_t index;           /* of the host */
	const char *host, *dir; /* as written; OUT/[ARM/]HOST */
	struct np_arena arena;
	struct np_report *report;       /* its findings */
	struct np_transport *transport; /* while a phase lasts */
	struct stage_result stages[N_STAGES];
	/* what is known of the far side; kept in DIR/collect.json; NULL: not yet */
	const char *workspace, *npuprof, *cwd, *devices, *job;
	const char *run_dir, *gate_profile;
	bool has_set_env;
	bool launched; /* a launch may have happened */
	bool run_over; /* its end is known, stages PRE_CHECK … EXPORT are final */
	bool exported; /* every capture has its products */
	bool stopped;  /* by Ctrl-C */
	int64_t run_exit, command_exit; /* NP_NO_EXIT */
	enum np_verdict run_verdict;    /* of run's gate */
	bool pulled_now;                /* and verified by that */
};

enum { NP_NO_EXIT = -1 };

struct collect {
	const struct np_collect_options *options;
	struct np_report *report;
	struct np_arena *arena;
	struct np_hosts hosts;
	struct np_ssh_options ssh;
	struct np_container container;
	struct np_place place;
	const char *id; /* names the job over there */
	const char *marker;
	struct arm arms[NP_COLLECT_MAX_ARMS];
	size_t n_arms;
	struct leg *legs;               /* n_arms × hosts */
	char sha256[NP_SHA256_HEX + 1]; /* of this program */
	char machine[65];
	bool together; /* the command names other hosts: all run, or none */
	bool resumed;
	pthread_mutex_t lock;
};

/* ── collect_plan.c: what was asked for ── */
enum np_status collect_plan_write(const struct collect *self, struct np_err *err);
/* Into *out (in the arena) and self->id. */
enum np_status collect_plan_read(struct collect *self, const char *dir,
                                 struct np_collect_options *out, struct np_err *err);
/* Arms, hosts, container, ssh: from the options. E_USAGE. */
enum np_status collect_plan_resolve(struct collect *self, struct np_err *err);
/* The command of a leg, its placeholders replaced; NULL-terminated, in its arena; NULL: memory. */
const char *const *collect_command(struct leg *leg);

/* ── collect_state.c: how far a leg is ── */
enum np_status collect_state_write(const struct leg *leg, struct np_err *err);
/* NP_OK without a file: it is at its beginning. */
enum np_status collect_state_read(struct leg *leg, struct np_err *err);
void collect_state_json(const struct leg *leg, struct np_buf *out);
enum np_status collect_state_parse(struct leg *leg, struct np_input *input, struct np_err *err);

/* ── collect_leg.c ── */
/* Note a stage's verdict, tell it, and keep the state. */
void collect_stage(struct leg *leg, enum collect_stage stage, enum np_verdict verdict, np_ns begin,
                   const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* The same for an error: FAIL by the environment, with a finding. Returns `status`. */
enum np_status collect_broken(struct leg *leg, enum collect_stage stage, np_ns begin,
                              enum np_status status, const struct np_err *err);
void collect_say(struct leg *leg, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Run a script at the leg's place and take its output. `status` NULL: any but 0 is an error. */
enum np_status collect_ask(struct leg *leg, const char *what, const char *script,
                           const char *const *args, const struct np_source *input,
                           const atomic_bool *cancel, struct np_outcome *outcome, int *status,
                           struct np_err *err);
/* Findings of at least a severity into another report; "host: " in front of the titles. */
void collect_copy_findings(struct np_report *to, const struct np_report *from,
                           enum np_severity at_least, const char *host);
bool collect_cancelled(const struct leg *leg);
/* "npuprof collect --resume OUT" */
const char *collect_resume_line(struct leg *leg);
/* Did a stage before the run fail? */
bool collect_failed_before_run(const struct leg *leg);

/* What COLLECT_LOOK_SCRIPT tells of a run. */
enum far_state { FAR_STARTS, FAR_RUNS, FAR_ENDED, FAR_BUSY, FAR_GONE };

struct far {
	enum far_state state;
	int64_t status; /* of npuprof run; NP_NO_EXIT */
	uint64_t bytes, lines;
	np_str log; /* what is new; a view */
};

bool collect_far_parse(np_str text, struct far *out);

/* The stages up to the devices. */
enum np_status collect_prepare(struct leg *leg, struct np_err *err);
enum np_status collect_devices(struct leg *leg, struct np_err *err); /* collect_devices.c */
enum np_status collect_run(struct leg *leg, struct np_err *err);     /* collect_run.c */
enum np_status collect_fetch(struct leg *leg, struct np_err *err);   /* collect_fetch.c */
/* The delivery list of all hosts of an arm, in its directory (collect_list.c). */
enum np_status collect_list(struct collect *self, size_t arm, struct np_err *err);
/* What `npuprof run` found there, as far as it was fetched: run/report.json. */
void collect_far_findings(struct leg *leg, struct np_report *to);
/* The gate here; pure but for the files. */
enum np_status collect_judge(const char *dir, const char *marker, const char *profile,
                             unsigned threads, struct np_report *report, struct np_err *err);

#endif

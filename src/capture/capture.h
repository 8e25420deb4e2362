/*
 * A capture: what discovery returns for one rank, and how to load it.
 *
 *   path ──np_discover()──▶ np_captures { capture, capture, … , left out }
 *                                  └──np_capture_load(what)──▶ np_profile
 *
 * Structs are for reading; only src/capture/ fills them. Everything lives in
 * the arena of its np_captures.
 *
 * Discovery is deterministic (sorted), never writes, and tells what it left
 * out and why. It opens small files only (profiler_info, metadata, info.json);
 * deliverables are opened by np_capture_load().
 */
#ifndef NP_CAPTURE_CAPTURE_H
#define NP_CAPTURE_CAPTURE_H

#include "base/fs.h"
#include "capture/role.h"
#include "io/json.h"
#include "profile/profile.h"

enum np_framework {
	NP_FW_UNKNOWN,   /* deliverables without a directory that says whose they are */
	NP_FW_TORCH,     /* *_ascend_pt */
	NP_FW_MINDSPORE, /* *_ascend_ms */
	NP_FW_MSPROF,    /* PROF_* */
	NP_FW_CLUSTER,   /* cluster_analysis_output: results, not a rank */
};

enum np_capture_format {
	NP_HAS_TEXT = 1 << 0,     /* CSV and JSON deliverables */
	NP_HAS_DB = 1 << 1,       /* ascend_pytorch_profiler*.db, msprof_*.db */
	NP_HAS_ANALYSIS = 1 << 2, /* analysis.db, communication_analyzer.db */
	NP_HAS_RAW = 1 << 3,      /* host and device_N below PROF_…, or FRAMEWORK */
	NP_HAS_CLUSTER = 1 << 4,
};

enum np_rank_source {
	NP_RANK_UNKNOWN,      /* a state of its own, never -1 and never dropped */
	NP_RANK_INFO_NAME,    /* profiler_info_<N>.json */
	NP_RANK_DEVICE_MAP,   /* RANK_DEVICE_MAP in the db */
	NP_RANK_DB_NAME,      /* ascend_pytorch_profiler_<N>.db */
	NP_RANK_INFO_CONTENT, /* rank_id in profiler_info or info.json */
	NP_RANK_DIR_NAME,     /* rank_3_…, …_rank3_… */
};

const char *np_framework_name(enum np_framework framework);
const char *np_rank_source_name(enum np_rank_source source);

/* One file of a capture. */
struct np_file {
	enum np_role role;
	const char *path;
	uint64_t size_bytes;
	np_ns mtime_ns;
	int slice;             /* number behind _slice_, -1 without */
	const char *timestamp; /* of an msprof deliverable, "" without */
	bool readable;
};

/* The recorded configuration; what is not recorded is "" or NP_NO_I64 or -1. */
struct np_config {
	bool recorded;     /* a profiler_info was found and could be read */
	const char *level; /* "Level0", "Level1", "Level2", "Level_none" */
	const char
		*aic_metrics; /* "PipeUtilization", "AiCoreNone", … as torch_npu's users write it */
	const char *export_types; /* "text", "db", "text,db" */
	const char *activities;   /* "CPU,NPU" */
	const char *torch_npu_version, *cann_version;
	bool has_schedule;
	int64_t wait, warmup, active, repeat, skip_first, skip_first_wait;
	int with_stack, record_shapes, profile_memory, l2_cache, data_simplification; /* 0, 1, -1 */
	np_ns end_ns; /* collectionTimeEnd, NP_NO_I64 */
};

/* A variable of the process's environment, as ENV_VARIABLES lists it; "" also when unset. */
struct np_variable {
	const char *name, *value;
};

struct np_group {
	const char *comm_name; /* communicator name */
	const char *name;      /* "default_group", "tp", … */
	/* of the communicator name: what data files call the group (torch_npu.md §2.2) */
	uint64_t hash;
	const int64_t *ranks; /* global */
	size_t n_ranks;
};

/* Sizes of distributed_args; NP_NO_I64: not recorded. */
struct np_parallel {
	int64_t tp, pp, dp, cp, ep, world;
};

/* A row of RANK_DEVICE_MAP; NP_NO_I64: unknown (-1 there). */
struct np_rank_device {
	int64_t rank, device;
};

/* DeviceInfo of info.json in the raw dump: its first device. */
struct np_chip {
	bool recorded;
	int64_t ai_cores;     /* ai_core_num, NP_NO_I64 */
	int64_t vector_cores; /* aiv_num, NP_NO_I64: no vector cores of their own */
	double aic_mhz;       /* aic_frequency, NaN */
	int64_t rank;         /* rank_id of the file, NP_NO_I64 */
};

/* What is wrong with one capture, found while looking at it. */
struct np_problem {
	const char *code; /* UPPER_SNAKE, docs/findings.md; static */
	const char *file, *text;
};

struct np_capture {
	enum np_framework framework;
	unsigned formats;   /* enum np_capture_format */
	const char *path;   /* its directory, or the single file */
	const char *name;   /* last component of path */
	const char *output; /* directory of the deliverables, NULL if there is none */
	int64_t rank;       /* NP_NO_I64: unknown */
	enum np_rank_source rank_source;
	int64_t device;   /* NP_NO_I64: unknown */
	const char *host; /* worker name of the directory, or hostname recorded; "" */
	const char *host_uid;
	const char *npu_name; /* "Ascend910B", from NPU_INFO; "" */
	int64_t pid;          /* NP_NO_I64 */
	const char *batch;    /* time stamp of the directory name, "" */
	/* path of the parent below the input: verl's role (actor, rollout), "" */
	const char *group_dir;
	bool n_a_rank_ok; /* one process without distributed: an unknown rank is normal */
	struct np_config config;
	const char *distributed; /* "tp=2 pp=2 dp=2 …" or "" */
	struct np_parallel parallel;
	/* JSON objects on one line, or "": distributed_args without its rank; pp_info */
	const char *distributed_args, *pp_info;
	int64_t world_size; /* of distributed_args, else of default_group; NP_NO_I64 */
	struct np_group *groups;
	size_t n_groups;
	struct np_variable *variables; /* ENV_VARIABLES, in the order of the file */
	size_t n_variables;
	struct np_rank_device *rank_devices; /* all rows of RANK_DEVICE_MAP */
	size_t n_rank_devices;
	struct np_chip chip;
	NP_VEC(struct np_file) files; /* sorted by role, then slice, then name */
	NP_VEC(struct np_problem) problems;
	NP_VEC(const char *) prof_dirs; /* PROF_* inside, or itself */
	bool has_framework_dir;
	bool analyse_done;  /* the empty marker analyse.done is there */
	uint64_t raw_bytes; /* of the raw dump */
};

struct np_left_out {
	const char *path, *reason;
};

struct np_captures {
	struct np_arena arena;
	const char *input; /* as given */
	const char *root;  /* where it was looked: input, or the unpacked archive */
	NP_VEC(struct np_capture *) captures; /* sorted by (group_dir, rank, batch, path) */
	NP_VEC(struct np_left_out) left_out;
	NP_VEC(struct np_problem) problems; /* of the tree: symlink loop, unreadable directory, … */
	uint64_t directories, files, bytes; /* seen */
	char *temp_dir;     /* unpacked archive, removed by np_captures_free(); else NULL */
	bool out_of_memory; /* while looking: np_discover() then fails as a whole */
};

enum { NP_DISCOVER_MAX_DEPTH = 10 };

/*
 * Find all captures at `path`: a directory of any depth, one capture, one
 * deliverable, or an archive (unpacked below $TMPDIR, removed again).
 * Errors: E_NOTFOUND (no such path), E_ACCESS, E_IO, E_NOMEM. A tree without any
 * capture is NP_OK with none. np_captures_free() is right in every case.
 */
enum np_status np_discover(const char *path, struct np_captures **out, struct np_err *err);
void np_captures_free(struct np_captures *self);

/* The first file of a role, or NULL; and how many there are (slices). */
const struct np_file *np_capture_file(const struct np_capture *self, enum np_role role);
size_t np_capture_count(const struct np_capture *self, enum np_role role);

/* Kind for people: "torch_text", "torch_db", "torch_text+db", "msprof_text", "raw", … */
void np_capture_kind(const struct np_capture *self, char *out, size_t size);

/* Does it have anything that can be analysed (text or db)? */
bool np_capture_has_data(const struct np_capture *self);

/*
 * Load the tables asked for (enum np_load bits) from whatever format is there:
 * text first where both exist and it has the table. Damage in one file is a
 * diagnostic and the rest is loaded; an error is returned only when memory runs
 * out. `threads`: for large files, 0 for all processors. *out is freed with
 * np_profile_free().
 */
enum np_status np_capture_load(const struct np_capture *self, unsigned what, unsigned threads,
                               struct np_profile **out, struct np_err *err);

/* 64-bit hash of a communicator name, as in "hcom_…@<hash>" (torch_npu.md §2.2). */
uint64_t np_group_hash(np_str comm_name);

/*
 * What analysis.db and communication.json call a group of comm_ops.group: the
 * decimal hash. A group that is such a number already stays what it is.
 */
enum { NP_GROUP_KEY_SIZE = 21 };
void np_group_key(np_str group, char out[NP_GROUP_KEY_SIZE]);

#endif

/*
 * What `npu-smi` prints, as data. A pure function over text: the outputs of `npu-smi info`,
 * `npu-smi info -m` and `npu-smi info -t topo`, in any order, one behind another.
 *
 *   info    | NPU Name | Health  | Power(W) Temp(C) Hugepages-Usage(page)      |  two lines per
 *           | Chip …   | Bus-Id  | AICore(%) Memory-Usage(MB) HBM-Usage(MB)   |  chip
 *           | NPU Chip | Process id | Process name | Process memory(MB) …      |  one per process
 *   -m      NPU ID   Chip ID   Chip Logic ID   [Chip Phy-ID]   Chip Name
 *   topo    a matrix of NPU0 … or Phy-ID0 …: X, HCCS, HCCS_SW, SIO, UB, PIX, PXB, PHB, SYS, NA
 *
 * Columns are found by their headings, so layouts differ freely:
 *
 *   910A, 910B      one chip per NPU: "Chip", HBM
 *   A3              two chips per NPU: "Chip Phy-ID", HBM; only chip 0 has a power
 *   310P            several chips per card: "Chip Device", no HBM, power NA; Device is taken for
 *                   the logical id, as it counts from 0 in a container
 *   26.x            wider, and "Process id in container"
 *
 * Three numbers name a device. (npu, chip) is what npu-smi counts, the same in a container and
 * outside. The physical id is that of /dev/davinciN. The logical id counts what this system or
 * container may see: ASCEND_RT_VISIBLE_DEVICES wants it.
 *
 * What the tables say and this parser does not understand is an error that names the line, never
 * a device that is left out.
 */
#ifndef NP_COLLECT_NPU_SMI_H
#define NP_COLLECT_NPU_SMI_H

#include "base/err.h"
#include "base/mem.h"

enum { NP_NPU_MAX = 512, NP_NPU_NONE = -1 /* an id or a size that is not told */ };

struct np_npu_device {
	int64_t npu, chip;
	int64_t phy;   /* NP_NPU_NONE where no output tells it */
	int64_t logic; /* of `info -m`, else of "Device"; NP_NPU_NONE without both */
	np_str name, health, bus;
	double power_w, temp_c, aicore; /* NaN: not told */
	int64_t hbm_used_mb, hbm_total_mb, mem_used_mb, mem_total_mb;
	int64_t huge_used, huge_total;
	size_t n_processes;
	bool processes_told; /* the table of processes speaks of its NPU */
};

struct np_npu_process {
	int64_t npu, chip, pid;
	int64_t container_pid; /* NP_NPU_NONE */
	int64_t memory_mb;     /* NP_NPU_NONE */
	np_str name;           /* "" where it belongs to another container */
};

struct np_npu_map {
	int64_t npu, chip, logic, phy; /* logic, phy: NP_NPU_NONE */
};

/* Ends of the matrix of `-t topo`. */
enum np_npu_label { NP_NPU_LABEL_NPU, NP_NPU_LABEL_PHY };

struct np_npu_topo {
	enum np_npu_label label;
	NP_VEC(int64_t) ids;  /* of the rows and columns */
	NP_VEC(np_str) links; /* ids.n × ids.n, row by row */
};

struct np_npu_set {
	struct np_arena arena;
	np_str version; /* of npu-smi; "" */
	bool has_table, has_processes, has_map;
	NP_VEC(struct np_npu_device) devices; /* in npu-smi's order */
	NP_VEC(struct np_npu_process) processes;
	NP_VEC(struct np_npu_map) map;
	struct np_npu_topo topo; /* ids.n is 0 without one */
};

void np_npu_set_init(struct np_npu_set *self);
void np_npu_set_release(struct np_npu_set *self);

/*
 * Read a text; `where` names it in errors ("node7: npu-smi info" gives "…:12" for line 12).
 * E_FORMAT: no table in it, or a line of a table that is not understood (the message holds the
 * line). E_EMPTY: a table without a device. E_LIMIT, E_NOMEM.
 */
enum np_status np_npu_parse(np_str text, const char *where, struct np_npu_set *out,
                            struct np_err *err);

/* The device of an (npu, chip), or NULL. */
struct np_npu_device *np_npu_find(const struct np_npu_set *self, int64_t npu, int64_t chip);

#endif

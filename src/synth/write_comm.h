/*
 * What communication.json, communication_matrix.json and the CommAnalyzer tables
 * of analysis.db have in common: the sums over the tasks of a collective, by the
 * formulas of torch_npu.md §3.8 and §3.9, and the ranking of links.
 */
#ifndef NP_SYNTH_WRITE_COMM_H
#define NP_SYNTH_WRITE_COMM_H

#include "synth/write.h"

/* in the order of the files */
enum np_synth_transport {
	NP_LINK_RDMA,
	NP_LINK_HCCS,
	NP_LINK_PCIE,
	NP_LINK_SDMA,
	NP_LINK_SIO,
	NP_LINK_TYPES
};
extern const char *const np_synth_transport_names[NP_LINK_TYPES];

enum { NP_BUCKETS = 4 }; /* different packet sizes of one collective; there are fewer */
struct np_synth_bandwidth {
	uint64_t len_bytes;
	np_ns time_ns;
	uint32_t count, large; /* packets, and those beyond the threshold */
	struct {
		uint64_t len_bytes;
		uint32_t count;
		np_ns time_ns;
	} bucket[NP_BUCKETS];
	uint32_t n_buckets;
};

struct np_synth_comm_info {
	np_ns start_ns, elapse_ns, transit_ns, wait_ns, sync_ns, idle_ns;
	struct np_synth_bandwidth links[NP_LINK_TYPES];
};
void np_synth_comm_info(const struct np_synth_run *run, const struct np_synth_item *item,
                        struct np_synth_comm_info *out);
/* transit, sizes and waits of b into a; packets too */
void np_synth_comm_add(struct np_synth_comm_info *a, const struct np_synth_comm_info *b);

/* GB/s in 1/10000 */
int64_t np_synth_gbps(uint64_t len_bytes, np_ns time_ns);
/* part / (part + rest) in 1/10000, 0 if both are 0 */
int64_t np_synth_ratio(np_ns part, np_ns rest);

/* One line of the matrix: one link in one of top1, middle, bottom1…3, total. */
struct np_synth_matrix_row {
	const char *place; /* "top1", … */
	uint32_t group, src, dst;
	enum np_synth_coll coll;
	const char *transport;
	uint64_t len_bytes;
	np_ns time_ns;
	const struct np_synth_item *item; /* NULL in "total" */
};

/* Calls row() for every line of a step, ordered by group, kind, place, link. Errors:
 * E_NOMEM. */
enum np_status np_synth_matrix(const struct np_synth_run *run, uint32_t step,
                               void (*row)(void *ctx, const struct np_synth_matrix_row *row),
                               void *ctx, struct np_err *err);

/* The items [*from, *to) of a step, in host order. */
void np_synth_step_items(const struct np_synth_run *run, uint32_t step, size_t *from, size_t *to);

/* communication.json and communication_matrix.json */
enum np_status np_synth_write_comm(const struct np_synth_run *run, const char *dir,
                                   struct np_synth_stats *stats, struct np_err *err);

#endif

/* The kernels of the simulated transformer: what they are called, how long they
 * take and what their metrics look like. Invented, in the style of the field. */
#ifndef NP_SYNTH_OPS_H
#define NP_SYNTH_OPS_H

#include <stdbool.h>
#include <stdint.h>

enum np_synth_core { NP_CORE_CUBE, NP_CORE_VECTOR, NP_CORE_MIX, NP_CORE_AICPU };

struct np_synth_op {
	const char *name, *type;
	enum np_synth_core core;
	uint32_t dur_ns; /* before noise */
	uint16_t blocks, mix_blocks;
	bool hf32;
	/* busy shares in 1/1000: cube, vector, transfers in and out */
	uint16_t mac, vec, mte2, mte3;
	uint32_t out_kb; /* memory that it allocates */
	const char *in_shapes, *in_types, *in_formats;
	const char *out_shapes, *out_types, *out_formats;
	const char *aten, *acl; /* host op, and the op nested in it */
};

enum {
	NP_OP_LAYER = 0, /* the first of NP_OPS_PER_LAYER that make a layer */
	NP_OPS_PER_LAYER = 12,
	NP_OP_EMBEDDING = 12,
	NP_OP_MASK,      /* the one AI_CPU kernel of a step */
	NP_OP_INDEX_PUT, /* AI_CPU, only with the fault `aicpu` */
	NP_OP_ADAM,      /* the first of the optimizer's */
	NP_OP_NORM,
	NP_OP_CONCAT, /* only with the fault `memory-bound` */
	NP_OP_CHAIN,  /* only with `fusable`: the first of NP_OPS_CHAIN */
	NP_OPS_CHAIN = 6,
	NP_OP_GROUPED = NP_OP_CHAIN + NP_OPS_CHAIN, /* of experts */
	NP_OPS,
};

/* Multiplications and additions of a matrix product of so many rows; 0 of other kernels. */
uint64_t np_synth_flops(uint32_t op, uint64_t rows);

extern const struct np_synth_op np_synth_ops[NP_OPS];

/* "AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", "AI_CPU" */
const char *np_synth_core_name(enum np_synth_core core);
/* the device's word for it: "KERNEL_AICORE", "KERNEL_AIVEC", "KERNEL_MIX_AIC", "AI_CPU" */
const char *np_synth_task_type(enum np_synth_core core);

#endif

/*
 * Ranges in a tree by containment: modules within modules, operators in the innermost
 * module around them. Private to modules.c and its tests.
 */
#ifndef NP_CLUSTER_MODULE_TREE_H
#define NP_CLUSTER_MODULE_TREE_H

#include "base/intern.h"
#include "base/time.h"

/* Module or operator. */
struct np_span {
	np_ns start, end;
	uint32_t order; /* of two equal ranges the lower is the outer */
	uint32_t name;  /* of a module, in the names of the tree */
	uint32_t op;    /* of an operator: its number; NP_SPAN_MODULE otherwise */
	bool backward;
};

#define NP_SPAN_MODULE UINT32_MAX

struct np_module_node {
	np_ns start, end;
	uint32_t parent_path, name; /* names; the path of the modules around it, "a/b" */
	uint32_t path;              /* its own, for those within */
	uint32_t depth;             /* 0: the root, which is no module */
	bool backward;              /* or a module around it is */
};

enum {
	NP_MODULE_MAX_DEPTH = 20,       /* operators in deeper ones are left out */
	NP_MODULE_NAME_BYTES = 1 << 12, /* of a name in a path; longer ones are cut */
};

struct np_module_tree {
	struct np_intern *names;             /* borrowed */
	NP_VEC(struct np_module_node) nodes; /* [0] is the root */
};

/* Sorts `spans`. owner[op] is the node around each operator, 0 if it is in none or too
 * deep. false: out of memory; np_module_tree_release() in every case. */
bool np_module_tree_build(struct np_module_tree *self, struct np_intern *names,
                          struct np_span *spans, size_t n, uint32_t *owner);
void np_module_tree_release(struct np_module_tree *self);

#endif

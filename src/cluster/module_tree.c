#include "cluster/module_tree.h"

#include <stdlib.h>

static int by_start(const void *a, const void *b)
{
	const struct np_span *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static np_str name_of(const struct np_module_tree *self, uint32_t id)
{
	return np_str_sub(np_intern_get(self->names, id), 0, NP_MODULE_NAME_BYTES);
}

static bool join(struct np_module_tree *self, uint32_t path, uint32_t name, uint32_t *out)
{
	struct np_buf text = {0};
	np_str before = np_intern_get(self->names, path);
	np_buf_add_str(&text, before);
	if (before.len > 0)
		np_buf_add_char(&text, '/');
	np_buf_add_str(&text, name_of(self, name));
	*out = text.failed ? NP_ID_NONE : np_intern_add(self->names, np_buf_str(&text));
	np_buf_release(&text);
	return *out != NP_ID_NONE;
}

static bool add_node(struct np_module_tree *self, const struct np_span *span, uint32_t parent)
{
	const struct np_module_node *around = &self->nodes.v[parent];
	struct np_module_node node = {.start = span->start,
	                              .end = span->end,
	                              .parent_path = around->path,
	                              .name = span->name,
	                              .path = around->path,
	                              .depth = around->depth + 1,
	                              .backward = span->backward || around->backward};
	/* below the deepest that count nobody asks for the path */
	if (node.depth < NP_MODULE_MAX_DEPTH && !join(self, around->path, span->name, &node.path))
		return false;
	return np_vec_push(&self->nodes, node);
}

bool np_module_tree_build(struct np_module_tree *self, struct np_intern *names,
                          struct np_span *spans, size_t n, uint32_t *owner)
{
	NP_VEC(uint32_t) stack = {0};
	*self = (struct np_module_tree){.names = names};
	/* id 0 of an intern table is the empty string */
	struct np_module_node root = {.start = INT64_MIN, .end = INT64_MAX};
	bool ok = np_vec_push(&self->nodes, root) && np_vec_push(&stack, 0);
	if (n > 0)
		qsort(spans, n, sizeof *spans, by_start);
	for (size_t i = 0; ok && i < n; i++) {
		const struct np_span *span = &spans[i];
		while (self->nodes.v[stack.v[stack.n - 1]].end < span->end)
			stack.n--;
		uint32_t top = stack.v[stack.n - 1];
		if (span->op != NP_SPAN_MODULE) {
			bool deep = self->nodes.v[top].depth > NP_MODULE_MAX_DEPTH;
			owner[span->op] = deep ? 0 : top;
			continue;
		}
		ok = add_node(self, span, top) &&
		     np_vec_push(&stack, (uint32_t)(self->nodes.n - 1));
	}
	np_vec_release(&stack);
	return ok;
}

void np_module_tree_release(struct np_module_tree *self)
{
	np_vec_release(&self->nodes);
}

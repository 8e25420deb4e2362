/* The two readers of whole documents: the tree, and the check that keeps nothing. */
#include <string.h>

#include "io/json.h"

/* A container that is being read: its children are the top of the stack. */
struct frame {
	struct np_jval node;
	size_t first; /* of its children on the stack */
};

struct builder {
	struct np_arena *arena;
	struct np_json *reader;
	NP_VEC(struct np_jval) stack;
	NP_VEC(struct frame) frames;
	np_str key; /* of the next value */
	struct np_buf scratch;
};

static enum np_status copy_text(struct builder *self, const struct np_json_token *token,
                                np_str *out, struct np_err *err)
{
	np_str text = token->text;
	if (token->type == NP_JSON_STRING || token->type == NP_JSON_KEY)
		text = np_json_unescape(text, &self->scratch);
	*out = np_arena_dup(self->arena, text);
	return self->scratch.failed || !out->ptr ? np_err_nomem(err) : NP_OK;
}

static enum np_status close_frame(struct builder *self, struct np_err *err)
{
	struct frame frame = self->frames.v[--self->frames.n];
	frame.node.n = self->stack.n - frame.first;
	if (frame.node.n) {
		struct np_jval *children =
			np_arena_alloc(self->arena, frame.node.n * sizeof *children);
		if (!children)
			return np_err_nomem(err);
		memcpy(children, self->stack.v + frame.first, frame.node.n * sizeof *children);
		frame.node.child = children;
	}
	self->stack.n = frame.first;
	return np_vec_push(&self->stack, frame.node) ? NP_OK : np_err_nomem(err);
}

static enum np_jtype node_type(enum np_json_type type)
{
	switch (type) {
	case NP_JSON_OBJECT_BEGIN:
		return NP_J_OBJECT;
	case NP_JSON_ARRAY_BEGIN:
		return NP_J_ARRAY;
	case NP_JSON_STRING:
		return NP_J_STRING;
	case NP_JSON_NUMBER:
		return NP_J_NUMBER;
	case NP_JSON_TRUE:
		return NP_J_TRUE;
	case NP_JSON_FALSE:
		return NP_J_FALSE;
	default:
		return NP_J_NULL;
	}
}

static enum np_status add_token(struct builder *self, const struct np_json_token *token,
                                struct np_err *err)
{
	if (token->type == NP_JSON_KEY)
		return copy_text(self, token, &self->key, err);
	if (token->type == NP_JSON_OBJECT_END || token->type == NP_JSON_ARRAY_END)
		return close_frame(self, err);
	struct np_jval node = {.type = node_type(token->type), .key = self->key};
	self->key = (np_str){NULL, 0};
	if (node.type == NP_J_OBJECT || node.type == NP_J_ARRAY)
		return np_vec_push(&self->frames, (struct frame){node, self->stack.n})
		               ? NP_OK
		               : np_err_nomem(err);
	if (node.type == NP_J_STRING || node.type == NP_J_NUMBER)
		NP_TRY(copy_text(self, token, &node.text, err));
	return np_vec_push(&self->stack, node) ? NP_OK : np_err_nomem(err);
}

static enum np_status build(struct builder *self, const char *name, const struct np_jval **out,
                            struct np_err *err)
{
	for (;;) {
		struct np_json_token token;
		NP_TRY(np_json_next(self->reader, &token, err));
		if (token.type == NP_JSON_END)
			break;
		if (np_json_offset(self->reader) > NP_JSON_TREE_MAX_BYTES)
			return np_err_at(err, NP_E_LIMIT, name, token.offset,
			                 "too large to be read as one tree (limit 512 MiB)");
		NP_TRY(add_token(self, &token, err));
	}
	struct np_jval *root = np_arena_alloc(self->arena, sizeof *root);
	if (!root)
		return np_err_nomem(err);
	*root = self->stack.v[0];
	*out = root;
	return NP_OK;
}

enum np_status np_json_parse(struct np_arena *arena, struct np_input *input, unsigned flags,
                             const struct np_jval **out, struct np_json_repairs *repairs,
                             struct np_err *err)
{
	struct builder self = {.arena = arena};
	*out = NULL;
	if (repairs)
		*repairs = (struct np_json_repairs){0};
	NP_TRY(np_json_open(input, flags, &self.reader, err));
	enum np_status status = build(&self, np_input_name(input), out, err);
	if (repairs)
		*repairs = *np_json_repairs(self.reader);
	np_vec_release(&self.stack);
	np_vec_release(&self.frames);
	np_buf_release(&self.scratch);
	np_json_close(self.reader);
	return status;
}

enum np_status np_json_parse_file(struct np_arena *arena, const char *path, unsigned flags,
                                  const struct np_jval **out, struct np_json_repairs *repairs,
                                  struct np_err *err)
{
	struct np_input *input;
	*out = NULL;
	NP_TRY(np_input_open(path, &input, err));
	enum np_status status = np_json_parse(arena, input, flags, out, repairs, err);
	np_input_close(input);
	return status;
}

/* ── accessors ──────────────────────────────────────────────────────────────── */

static const struct np_jval *get(const struct np_jval *object, np_str key)
{
	if (!object || object->type != NP_J_OBJECT)
		return NULL;
	for (size_t i = object->n; i-- > 0;) /* of equal keys the last counts, as in Python */
		if (np_str_eq(object->child[i].key, key))
			return &object->child[i];
	return NULL;
}

const struct np_jval *np_jget(const struct np_jval *object, const char *key)
{
	return get(object, np_str_of(key));
}

const struct np_jval *np_jpath(const struct np_jval *root, const char *dotted)
{
	np_str rest = np_str_of(dotted);
	while (rest.len && root) {
		np_str key = np_str_cut(rest, '.', &rest);
		root = get(root, key);
	}
	return root;
}

np_str np_jstr(const struct np_jval *value)
{
	return value && value->type == NP_J_STRING ? value->text : (np_str){NULL, 0};
}

static np_str numeric_text(const struct np_jval *value)
{
	if (!value || (value->type != NP_J_NUMBER && value->type != NP_J_STRING))
		return (np_str){NULL, 0};
	return value->text;
}

bool np_ji64(const struct np_jval *value, int64_t *out)
{
	return np_str_to_i64(numeric_text(value), out);
}

bool np_jdouble(const struct np_jval *value, double *out)
{
	return np_str_to_double(numeric_text(value), out);
}

bool np_jbool(const struct np_jval *value, bool *out)
{
	if (!value || (value->type != NP_J_TRUE && value->type != NP_J_FALSE))
		return false;
	*out = value->type == NP_J_TRUE;
	return true;
}

/* ── writing ── */

static void dump_member(struct np_buf *out, const struct np_jval *value, bool keyed, bool first)
{
	if (!first)
		np_buf_add_cstr(out, ", ");
	if (keyed) {
		np_json_quote(out, value->key);
		np_buf_add_cstr(out, ": ");
	}
	np_json_dump(out, value, NULL);
}

/* As deep as the reader lets a tree be. */
void np_json_dump(struct np_buf *out, const struct np_jval *value, const char *without)
{
	bool object = value->type == NP_J_OBJECT, first = true;
	switch (value->type) {
	case NP_J_NULL:
		np_buf_add_cstr(out, "null");
		break;
	case NP_J_FALSE:
		np_buf_add_cstr(out, "false");
		break;
	case NP_J_TRUE:
		np_buf_add_cstr(out, "true");
		break;
	case NP_J_NUMBER:
		np_buf_add_str(out, value->text);
		break;
	case NP_J_STRING:
		np_json_quote(out, value->text);
		break;
	case NP_J_ARRAY:
	case NP_J_OBJECT:
		np_buf_add_char(out, object ? '{' : '[');
		for (size_t i = 0; i < value->n; i++) {
			if (object && without && np_str_is(value->child[i].key, without))
				continue;
			dump_member(out, &value->child[i], object, first);
			first = false;
		}
		np_buf_add_char(out, object ? '}' : ']');
		break;
	}
}

/* ── the check ──────────────────────────────────────────────────────────────── */

/* At which depth the elements are that np_json_validate() counts; 0 before it is known. */
struct counting {
	uint32_t depth;
	bool at_events; /* the last token was the outermost object's key `traceEvents` */
};

static bool counts(struct counting *self, const struct np_json_token *token)
{
	bool ends = token->type == NP_JSON_KEY || token->type == NP_JSON_OBJECT_END ||
	            token->type == NP_JSON_ARRAY_END;
	if (token->type == NP_JSON_ARRAY_BEGIN && (token->depth == 0 || self->at_events)) {
		self->depth = token->depth + 1;
		self->at_events = false;
		return false;
	}
	self->at_events = token->type == NP_JSON_KEY && token->depth == 1 &&
	                  np_str_is(token->text, "traceEvents");
	if (token->type == NP_JSON_ARRAY_END && token->depth + 1 == self->depth)
		self->depth = 0;
	return self->depth && token->depth == self->depth && !ends;
}

enum np_status np_json_validate(struct np_input *input, struct np_json_repairs *repairs,
                                uint64_t *elements, struct np_err *err)
{
	struct np_json *reader;
	struct counting counting = {0};
	struct np_json_token token = {0};
	uint64_t n = 0;
	*repairs = (struct np_json_repairs){0};
	if (elements)
		*elements = 0;
	NP_TRY(np_json_open(input, 0, &reader, err));
	enum np_status status;
	while ((status = np_json_next(reader, &token, err)) == NP_OK && token.type != NP_JSON_END)
		n += counts(&counting, &token);
	*repairs = *np_json_repairs(reader);
	if (elements)
		*elements = n;
	np_json_close(reader);
	return status;
}

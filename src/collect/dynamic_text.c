#include "collect/dynamic_text.h"

#include <string.h>

size_t np_dyn_line(np_str text, size_t at)
{
	size_t line = 1;
	for (size_t i = 0; i < at && i < text.len; i++)
		line += text.ptr[i] == '\n';
	return line;
}

void np_dyn_text_release(struct np_dyn_text *self)
{
	np_vec_release(&self->members);
}

const struct np_dyn_member *np_dyn_member(const struct np_dyn_text *self, enum np_dyn_id id)
{
	for (size_t i = self->members.n; i-- > 0;) {
		const struct np_dyn_member *member = &self->members.v[i];
		if (member->last && member->inside == np_dyn_fields[id].inside &&
		    np_str_is(member->key, np_dyn_fields[id].key))
			return member;
	}
	return NULL;
}

/* ── reading ── */

struct reading {
	struct np_dyn_text *to;
	struct np_json *json;
	struct np_buf scratch;
	struct np_err *err;
};

/* Skip the value that `token` begins; where it ends. */
static enum np_status skip_value(struct reading *self, const struct np_json_token *token,
                                 size_t *end)
{
	struct np_json_token inner = *token;
	size_t extra = token->type == NP_JSON_STRING ? 2 : 0;
	static const size_t word[] = {[NP_JSON_TRUE] = 4, [NP_JSON_FALSE] = 5, [NP_JSON_NULL] = 4};
	*end = (size_t)token->offset + token->text.len + extra;
	if (token->type >= NP_JSON_TRUE)
		*end = (size_t)token->offset + word[token->type];
	if (token->type != NP_JSON_OBJECT_BEGIN && token->type != NP_JSON_ARRAY_BEGIN)
		return NP_OK;
	for (size_t open = 1; open > 0;) {
		NP_TRY(np_json_next(self->json, &inner, self->err));
		if (inner.type == NP_JSON_OBJECT_BEGIN || inner.type == NP_JSON_ARRAY_BEGIN)
			open++;
		else if (inner.type == NP_JSON_OBJECT_END || inner.type == NP_JSON_ARRAY_END)
			open--;
	}
	*end = (size_t)inner.offset + 1;
	return NP_OK;
}

/* What the tree calls this value, once its key is known. */
static const struct np_jval *tree_value(const struct np_jval *object, size_t i)
{
	return object && object->type == NP_J_OBJECT && i < object->n ? &object->child[i] : NULL;
}

static enum np_status read_object(struct reading *self, const struct np_jval *tree, bool inside,
                                  struct np_dyn_object *object);

static enum np_status read_member(struct reading *self, const struct np_json_token *key,
                                  const struct np_jval *value, bool inside)
{
	struct np_json_token token;
	struct np_dyn_member member = {.key = value->key,
	                               .inside = inside,
	                               .value = value,
	                               .key_begin = (size_t)key->offset};
	NP_TRY(np_json_next(self->json, &token, self->err));
	member.begin = (size_t)token.offset;
	bool experimental =
		!inside && np_str_is(value->key, np_dyn_fields[NP_DYN_EXPERIMENTAL].key);
	for (size_t i = 0; experimental && i < self->to->members.n; i++)
		if (self->to->members.v[i].inside) /* an earlier one does not count */
			self->to->members.v[i].last = false;
	bool enter = experimental && token.type == NP_JSON_OBJECT_BEGIN;
	if (experimental)
		self->to->has_inner = enter;
	if (enter) {
		self->to->inner = (struct np_dyn_object){.open = member.begin};
		NP_TRY(read_object(self, value, true, &self->to->inner));
		member.end = self->to->inner.close + 1;
	} else {
		NP_TRY(skip_value(self, &token, &member.end));
	}
	member.last = true;
	for (size_t i = 0; i < self->to->members.n; i++)
		if (self->to->members.v[i].inside == inside &&
		    np_str_eq(self->to->members.v[i].key, member.key))
			self->to->members.v[i].last = false;
	return np_vec_push(&self->to->members, member) ? NP_OK : np_err_nomem(self->err);
}

/* The object whose `{` was just read. */
static enum np_status read_object(struct reading *self, const struct np_jval *tree, bool inside,
                                  struct np_dyn_object *object)
{
	struct np_json_token token;
	for (;;) {
		NP_TRY(np_json_next(self->json, &token, self->err));
		if (token.type != NP_JSON_KEY)
			break;
		const struct np_jval *value = tree_value(tree, object->n);
		if (!value)
			return np_err_set(self->err, NP_E_FORMAT, NULL, "members without a value");
		NP_TRY(read_member(self, &token, value, inside));
		object->n++;
		object->last_key = (size_t)token.offset;
		/* members of an inner object come before the member itself */
		object->last_end = self->to->members.v[self->to->members.n - 1].end;
	}
	object->close = (size_t)token.offset;
	object->gap = object->last_key;
	np_str text = self->to->text;
	while (object->gap > object->open + 1 &&
	       strchr(" \t\r\n", text.ptr[object->gap - 1]) != NULL)
		object->gap--;
	return NP_OK;
}

static enum np_status read_with(struct reading *self, struct np_arena *arena,
                                struct np_input *input, unsigned flags, const char *name)
{
	struct np_dyn_text *to = self->to;
	struct np_json_token token;
	NP_TRY(np_json_parse(arena, input, flags, &to->root, &to->repairs, self->err));
	if (to->root->type != NP_J_OBJECT)
		return np_err_set(self->err, NP_E_FORMAT, name, "the outermost value is no object");
	struct np_input *again;
	NP_TRY(np_input_open_mem(to->text, name, 0, &again, self->err));
	enum np_status status = np_json_open(again, flags, &self->json, self->err);
	if (status == NP_OK)
		status = np_json_next(self->json, &token, self->err);
	if (status == NP_OK) {
		to->outer.open = (size_t)token.offset;
		status = read_object(self, to->root, false, &to->outer);
	}
	np_json_close(self->json);
	np_input_close(again);
	return status;
}

enum np_status np_dyn_text_read(struct np_arena *arena, np_str text, const char *name, bool strict,
                                struct np_dyn_text *out, struct np_err *err)
{
	struct reading self = {.to = out, .err = err};
	struct np_input *input;
	*out = (struct np_dyn_text){.text = text};
	NP_TRY(np_input_open_mem(text, name, 0, &input, err));
	enum np_status status =
		read_with(&self, arena, input, strict ? NP_JSON_STRICT : NP_JSON_COMMENTS, name);
	np_input_close(input);
	if (status != NP_OK)
		np_dyn_text_release(out);
	return status;
}

void np_dyn_strip_comments(np_str text, struct np_buf *out)
{
	bool in_string = false;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];
		bool comment =
			!in_string &&
			(c == '#' || (c == '/' && i + 1 < text.len && text.ptr[i + 1] == '/'));
		if (comment) {
			while (out->len && strchr(" \t", out->ptr[out->len - 1]))
				out->len--;
			while (i < text.len && text.ptr[i] != '\n')
				i++;
			if (i < text.len)
				np_buf_add_char(out, '\n');
			continue;
		}
		if (c == '"')
			in_string = !in_string;
		np_buf_add_char(out, c);
		if (in_string && c == '\\' && i + 1 < text.len)
			np_buf_add_char(out, text.ptr[++i]);
	}
}

/* ── editing ── */

struct splice {
	size_t begin, end;
	struct np_buf text;
};

struct editing {
	struct np_arena *arena;
	const struct np_dyn_text *doc;
	struct splice splices[NP_DYN_N_FIELDS];
	size_t n;
	struct np_buf *inner; /* members for an experimental_config that is not there yet */
};

static bool same_value(struct editing *self, const struct np_jval *old, const char *json)
{
	const struct np_jval *new;
	struct np_input *input;
	struct np_buf a = {0}, b = {0};
	bool same = false;
	if (np_input_open_mem(np_str_of(json), "value", 0, &input, NULL) != NP_OK)
		return false;
	if (np_json_parse(self->arena, input, NP_JSON_STRICT, &new, NULL, NULL) == NP_OK) {
		np_json_dump(&a, old, NULL);
		np_json_dump(&b, new, NULL);
		same = !a.failed && !b.failed && np_str_eq(np_buf_str(&a), np_buf_str(&b));
	}
	np_buf_release(&a);
	np_buf_release(&b);
	np_input_close(input);
	return same;
}

/* The splice at the end of an object, or a new one there. */
static struct splice *splice_at(struct editing *self, size_t begin, size_t end)
{
	for (size_t i = 0; i < self->n; i++)
		if (self->splices[i].begin == begin && self->splices[i].end == end)
			return &self->splices[i];
	self->splices[self->n] = (struct splice){.begin = begin, .end = end};
	return &self->splices[self->n++];
}

static void add_member(struct editing *self, const struct np_dyn_object *object, const char *key,
                       const char *json)
{
	size_t at = object->n ? object->last_end : object->open + 1;
	struct splice *splice = splice_at(self, at, at);
	if (object->n || splice->text.len)
		np_buf_add_cstr(&splice->text, ",");
	if (object->n) /* the space in front of the last key: its line break and indentation */
		np_buf_add(&splice->text, self->doc->text.ptr + object->gap,
		           object->last_key - object->gap);
	else if (splice->text.len)
		np_buf_add_cstr(&splice->text, " ");
	np_buf_printf(&splice->text, "\"%s\": %s", key, json);
}

static void change(struct editing *self, const struct np_dyn_change *what)
{
	const struct np_dyn_field *field = &np_dyn_fields[what->id];
	const struct np_dyn_member *member = np_dyn_member(self->doc, what->id);
	if (field->inside && !self->doc->has_inner) {
		np_buf_printf(self->inner, "%s\"%s\": %s", self->inner->len ? ", " : "{",
		              field->key, what->json);
		return;
	}
	if (!member)
		add_member(self, field->inside ? &self->doc->inner : &self->doc->outer, field->key,
		           what->json);
	else if (!same_value(self, member->value, what->json))
		np_buf_add_cstr(&splice_at(self, member->begin, member->end)->text, what->json);
}

static enum np_status apply(struct editing *self, struct np_buf *out, struct np_err *err)
{
	size_t at = 0;
	bool failed = self->inner->failed;
	for (size_t i = 0; i < self->n; i++) /* few: by insertion */
		for (size_t k = i; k > 0 && self->splices[k].begin < self->splices[k - 1].begin;
		     k--) {
			struct splice swap = self->splices[k];
			self->splices[k] = self->splices[k - 1];
			self->splices[k - 1] = swap;
		}
	for (size_t i = 0; i < self->n; i++) {
		const struct splice *splice = &self->splices[i];
		np_buf_add(out, self->doc->text.ptr + at, splice->begin - at);
		np_buf_add_str(out, np_buf_str(&splice->text));
		at = splice->end;
		failed = failed || splice->text.failed;
	}
	np_buf_add_str(out, np_str_from(self->doc->text, at));
	return failed || out->failed ? np_err_nomem(err) : NP_OK;
}

static enum np_status edit(struct np_arena *arena, const struct np_dyn_text *doc,
                           const struct np_dyn_change *changes, size_t n, struct np_buf *out,
                           struct np_err *err)
{
	struct np_buf inner = {0};
	struct editing self = {.arena = arena, .doc = doc, .inner = &inner};
	for (size_t i = 0; i < n; i++)
		change(&self, &changes[i]);
	if (inner.len) { /* experimental_config is absent, or null, or of a wrong type */
		const struct np_dyn_member *member = np_dyn_member(doc, NP_DYN_EXPERIMENTAL);
		np_buf_add_cstr(&inner, "}");
		if (member)
			np_buf_add_str(&splice_at(&self, member->begin, member->end)->text,
			               np_buf_str(&inner));
		else if (!inner.failed)
			add_member(&self, &doc->outer, np_dyn_fields[NP_DYN_EXPERIMENTAL].key,
			           inner.ptr);
	}
	enum np_status status = apply(&self, out, err);
	for (size_t i = 0; i < self.n; i++)
		np_buf_release(&self.splices[i].text);
	np_buf_release(&inner);
	return status;
}

enum np_status np_dyn_text_edit(np_str text, const char *name, const struct np_dyn_change *changes,
                                size_t n, struct np_buf *out, struct np_err *err)
{
	struct np_arena arena;
	struct np_dyn_text doc;
	np_arena_init(&arena);
	enum np_status status = np_dyn_text_read(&arena, text, name, true, &doc, err);
	if (status == NP_OK) {
		status = edit(&arena, &doc, changes, n, out, err);
		np_dyn_text_release(&doc);
	}
	np_arena_release(&arena);
	return status;
}

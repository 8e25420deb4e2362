#include "report/lang.h"

#include <string.h>

#include "base/intern.h"
#include "report/embed.h"

/* gettext's own way to put a context in front of a msgid */
enum { CONTEXT_END = '\004' };

static struct {
	enum np_lang lang;
	struct np_intern ids;       /* keys; an id is an index in texts */
	NP_VEC(const char *) texts; /* in ids.text */
	struct np_buf key;          /* while reading */
} catalogue;

bool np_lang_parse(const char *name, enum np_lang *out)
{
	np_str text = np_str_of(name);
	if (np_str_istarts(text, NP_STR("zh")))
		*out = NP_LANG_ZH;
	else if (np_str_istarts(text, NP_STR("en")))
		*out = NP_LANG_EN;
	else
		return false;
	return true;
}

enum np_lang np_lang(void)
{
	return catalogue.lang;
}

/* ── formats ── */

/* The next conversion at or behind *at: from its % to its letter; empty at the end. */
static np_str next_conversion(const char **at)
{
	for (const char *p = *at; *p; p++) {
		if (*p != '%')
			continue;
		if (p[1] == '%') {
			p++;
			continue;
		}
		size_t len = 1 + strspn(p + 1, "-+ #0123456789.*'hljztL");
		len += p[len] != '\0';
		*at = p + len;
		return (np_str){p, len};
	}
	return (np_str){0};
}

bool np_format_equal(const char *a, const char *b)
{
	for (;;) {
		np_str x = next_conversion(&a), y = next_conversion(&b);
		if (!np_str_eq(x, y))
			return false;
		if (x.len == 0)
			return true;
	}
}

/* ── the catalogue ── */

static void set_key(struct np_buf *key, np_str context, np_str id)
{
	np_buf_clear(key);
	if (context.len) {
		np_buf_add_str(key, context);
		np_buf_add_char(key, CONTEXT_END);
	}
	np_buf_add_str(key, id);
}

static bool add_entry(void *to, np_str context, np_str id, np_str text)
{
	(void)to;
	if (id.len == 0) /* the header */
		return true;
	set_key(&catalogue.key, context, id);
	const char *copy = np_arena_cstr(&catalogue.ids.text, text);
	size_t known = catalogue.ids.strings.n;
	uint32_t index = copy && !catalogue.key.failed
	                         ? np_intern_add(&catalogue.ids, np_buf_str(&catalogue.key))
	                         : NP_ID_NONE;
	if (index == NP_ID_NONE)
		return false;
	if (index < known) /* twice: the first stands */
		return true;
	/* ids from np_intern_init() on that have no text of their own */
	while (catalogue.texts.n < index)
		if (!np_vec_push(&catalogue.texts, ""))
			return false;
	const char *english = np_intern_get(&catalogue.ids, index).ptr;
	const char *keep = np_format_equal(english, copy) ? copy : "";
	return np_vec_push(&catalogue.texts, keep);
}

enum np_status np_lang_use(enum np_lang lang, struct np_err *err)
{
	if (catalogue.lang != NP_LANG_EN) {
		np_intern_release(&catalogue.ids);
		np_vec_release(&catalogue.texts);
		catalogue.lang = NP_LANG_EN;
	}
	if (lang == NP_LANG_EN)
		return NP_OK;
	bool ok = np_intern_init(&catalogue.ids) && np_po_read(np_embedded_po(), add_entry, NULL);
	np_buf_release(&catalogue.key);
	if (!ok) {
		np_intern_release(&catalogue.ids);
		np_vec_release(&catalogue.texts);
		return np_err_nomem(err);
	}
	catalogue.lang = lang;
	return NP_OK;
}

static const char *find(np_str key)
{
	uint32_t index = np_intern_find(&catalogue.ids, key);
	if (index == NP_ID_NONE || index >= catalogue.texts.n || !*catalogue.texts.v[index])
		return NULL;
	return catalogue.texts.v[index];
}

const char *np_tr(const char *text)
{
	if (catalogue.lang == NP_LANG_EN || !text)
		return text;
	const char *found = find(np_str_of(text));
	return found ? found : text;
}

const char *np_tr_column(const char *name)
{
	char key[128] = "column\004";
	size_t at = strlen(key), len = name ? strlen(name) : 0;
	if (catalogue.lang == NP_LANG_EN || len == 0 || len >= sizeof key - at)
		return NULL;
	memcpy(key + at, name, len + 1);
	return find((np_str){key, at + len});
}

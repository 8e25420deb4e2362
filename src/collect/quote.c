#include "collect/quote.h"

#include <string.h>

static bool is_harmless(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("_-./:,@+", c));
}

/* Words that a shell may take for its own grammar where a command is expected. */
static bool is_reserved(np_str word)
{
	static const char *const words[] = {
		"if",   "then",   "else", "elif",   "fi",     "do",        "done",
		"case", "esac",   "for",  "in",     "while",  "until",     "function",
		"time", "select", "end",  "coproc", "repeat", "nocorrect", "noglob",
	};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (np_str_is(word, words[i]))
			return true;
	return false;
}

static void quote(struct np_buf *out, np_str word)
{
	np_buf_add_char(out, '\'');
	for (size_t i = 0; i < word.len; i++) {
		if (word.ptr[i] == '\'')
			np_buf_add_cstr(out, "'\\''");
		else
			np_buf_add_char(out, word.ptr[i]);
	}
	np_buf_add_char(out, '\'');
}

void np_quote_word(struct np_buf *out, np_str word)
{
	bool harmless = word.len > 0;
	for (size_t i = 0; i < word.len && harmless; i++)
		harmless = is_harmless(word.ptr[i]);
	if (harmless)
		np_buf_add_str(out, word);
	else
		quote(out, word);
}

void np_quote_argv(struct np_buf *out, const char *const *argv)
{
	for (size_t i = 0; argv[i]; i++) {
		np_str word = np_str_of(argv[i]);
		if (i)
			np_buf_add_char(out, ' ');
		if (i == 0 && is_reserved(word))
			quote(out, word);
		else
			np_quote_word(out, word);
	}
}

const char *np_quote_line(struct np_arena *arena, const char *const *argv)
{
	struct np_buf text = {0};
	np_quote_argv(&text, argv);
	const char *line = text.failed ? NULL : np_arena_cstr(arena, np_buf_str(&text));
	np_buf_release(&text);
	return line;
}

/* ── containers ── */

static bool is_name(np_str name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];
		bool plain =
			(c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
		if (!plain && (i == 0 || (c != '_' && c != '.' && c != '-')))
			return false;
	}
	return name.len > 0 && name.len < 256;
}

enum np_status np_container_parse(const char *text, struct np_container *out, struct np_err *err)
{
	np_str name = np_str_of(text);
	*out = (struct np_container){.engine = NP_ENGINE_ANY};
	if (np_str_starts(name, NP_STR("docker:")))
		out->engine = NP_ENGINE_DOCKER;
	else if (np_str_starts(name, NP_STR("podman:")))
		out->engine = NP_ENGINE_PODMAN;
	if (out->engine != NP_ENGINE_ANY)
		name = np_str_from(name, 7);
	out->name = name;
	if (!is_name(name))
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "'%s' is not the name of a container: letters, digits, '_', '.', "
		                  "'-', with docker: or podman: before it",
		                  text);
	return NP_OK;
}

const char *const *np_container_argv(struct np_arena *arena, const struct np_container *self,
                                     const char *const *argv, bool with_input)
{
	static const char any[] = "if command -v docker >/dev/null 2>&1; then exec docker exec "
				  "\"$@\"; else exec podman exec \"$@\"; fi";
	const char **words = np_arena_zalloc(arena, 12 * sizeof *words);
	const char *name = np_arena_cstr(arena, self->name);
	const char *line = np_quote_line(arena, argv);
	size_t n = 0;
	if (!words || !name || !line)
		return NULL;
	if (self->engine == NP_ENGINE_ANY) {
		words[n++] = "sh";
		words[n++] = "-c";
		words[n++] = any;
		words[n++] = "sh";
	} else {
		words[n++] = self->engine == NP_ENGINE_DOCKER ? "docker" : "podman";
		words[n++] = "exec";
	}
	if (with_input)
		words[n++] = "-i";
	words[n++] = name;
	words[n++] = "bash";
	words[n++] = "-lc";
	words[n++] = line;
	return words;
}

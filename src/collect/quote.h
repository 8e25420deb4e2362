/*
 * Words as text for a shell. Whatever is run behind a shell, on this machine or on another one,
 * in a container or not, is quoted here and nowhere else (R11f).
 *
 *   argv ─np_quote_argv─▶ text ─ sh -c ─▶ the same argv, byte for byte
 *
 * Text for a POSIX shell (dash, bash, ksh, zsh). To show a command to a person there is
 * np_shell_quote() of report/report.h.
 */
#ifndef NP_COLLECT_QUOTE_H
#define NP_COLLECT_QUOTE_H

#include "base/err.h"
#include "base/mem.h"

/* Append one word: as it is when harmless, else in single quotes. It must hold no NUL. */
void np_quote_word(struct np_buf *out, np_str word);

/* Append the words, a space between. The first one is never a reserved word, an assignment
 * or an alias to the shell. */
void np_quote_argv(struct np_buf *out, const char *const *argv);

/*
 * The same in an arena, NUL behind it; NULL: out of memory.
 */
const char *np_quote_line(struct np_arena *arena, const char *const *argv);

enum np_engine { NP_ENGINE_ANY, NP_ENGINE_DOCKER, NP_ENGINE_PODMAN };

/* A container as the user names it: "NAME", "docker:NAME" or "podman:NAME". */
struct np_container {
	enum np_engine engine; /* ANY: docker where there is one, else podman */
	np_str name;
};

/* E_USAGE for what cannot be the name of a container: [A-Za-z0-9][A-Za-z0-9_.-]* */
enum np_status np_container_parse(const char *text, struct np_container *out, struct np_err *err);

/*
 * The argv that runs `argv` in the container through `bash -lc`, so that the profile of the
 * container (PATH of npu-smi, set_env.sh) is in force. `with_input`: stdin is handed in.
 * In the arena, NULL-terminated; NULL: out of memory.
 */
const char *const *np_container_argv(struct np_arena *arena, const struct np_container *self,
                                     const char *const *argv, bool with_input);

#endif

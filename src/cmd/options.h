/*
 * Options as data: one table per command drives getopt_long and yields --help
 * and shell completion. A value lands in the command's own struct, at `offset`.
 */
#ifndef NP_CMD_OPTIONS_H
#define NP_CMD_OPTIONS_H

#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"

enum np_opt_type {
	NP_OPT_FLAG,   /* bool: true when given; with a `no-` twin where the table has one */
	NP_OPT_STRING, /* const char *: into argv */
	NP_OPT_UINT,   /* uint64_t */
	NP_OPT_DOUBLE, /* double */
	NP_OPT_LIST,   /* struct np_opt_list: may be given several times */
};

enum { NP_OPT_MAX_LIST = 32 };

struct np_opt_list {
	const char *v[NP_OPT_MAX_LIST];
	size_t n;
};

struct np_option {
	const char *name;
	char letter; /* 0: none */
	enum np_opt_type type;
	size_t offset;
	const char *arg;  /* name of the value in the help; NULL for flags */
	const char *help; /* one line */
};

/* A part of the command line's options: a table and where its values go. */
struct np_option_set {
	const struct np_option *options;
	size_t n;
	void *values;
};

/*
 * Parse argv[1…] by getopt_long; *first is the index of the first word that is
 * no option (words may stand anywhere). E_USAGE with the message to show.
 */
enum np_status np_options_parse(const struct np_option_set *sets, size_t n_sets, int argc,
                                char **argv, int *first, struct np_err *err);

/*
 * The first word that is neither an option nor an option's value, looking from the left
 * without moving anything; a `--` counts as such a word. argc when there is none. What is
 * wrong with the options before it is np_options_parse()'s to say.
 */
int np_options_end(const struct np_option_set *sets, size_t n_sets, int argc, char **argv);

/*
 * The way back: the words that give what `values` holds, "--name=value", into out[*n …]. What
 * is 0, NULL or false was not given. The words are in the arena. E_LIMIT beyond `max`, E_NOMEM.
 */
enum np_status np_options_words(const struct np_option_set *set, struct np_arena *arena,
                                const char **out, size_t *n, size_t max, struct np_err *err);

#endif

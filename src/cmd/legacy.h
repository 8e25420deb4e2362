/*
 * The command line of msprof-analyze, for a link of that name to npuprof.
 *
 *   msprof-analyze [cluster] -m MODE -d PATH    → npuprof cluster …
 *   msprof-analyze compare -d A -bp B           → npuprof compare B A
 *   msprof-analyze advisor all -d PATH          → npuprof advisor all -d PATH
 *
 * What the official tool does by itself, it does here, too, but for writing into
 * the captures: without -o results go into the current directory, and that is said.
 */
#ifndef NP_CMD_LEGACY_H
#define NP_CMD_LEGACY_H

#include <stdbool.h>

/* Is this the name of the official tool? */
bool np_legacy_is(const char *argv0);

enum { NP_LEGACY_EXTRA = 8 };

/* The words in npuprof's way: out has room for argc + NP_LEGACY_EXTRA. Returns how many. */
int np_legacy_words(int argc, char **argv, char **out);

#endif

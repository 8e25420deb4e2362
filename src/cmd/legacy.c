#include "cmd/legacy.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

bool np_legacy_is(const char *argv0)
{
	const char *slash = strrchr(argv0, '/');
	return strcmp(slash ? slash + 1 : argv0, "msprof-analyze") == 0;
}

static bool is_option(const char *word, const char *letter, const char *name)
{
	size_t len = strlen(name);
	return (letter && strncmp(word, letter, 2) == 0 && word[1] != '-') ||
	       (strncmp(word, name, len) == 0 && (word[len] == '\0' || word[len] == '='));
}

static bool has_option(int argc, char **argv, const char *letter, const char *name)
{
	for (int i = 1; i < argc; i++)
		if (is_option(argv[i], letter, name))
			return true;
	return false;
}

static bool is_command(const char *word)
{
	static const char *const names[] = {"cluster", "advisor", "compare", "help",
	                                    "auto-completion"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(word, names[i]) == 0)
			return true;
	return false;
}

/* getopt would take -bp for -b p */
static char *long_form(char *word)
{
	static const struct {
		const char *is, *becomes;
	} forms[] = {{"-bp", "--bp"},
	             {"-cv", "--cann_version"},
	             {"-tv", "--torch_version"},
	             {"-pt", "--profiling_type"},
	             {"-V", "--version"},
	             {"-H", "--help"}};
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (strcmp(word, forms[i].is) == 0)
			return (char *)(uintptr_t)forms[i]
			        .becomes; /* read only by whoever gets it */
	return word;
}

/* -d TARGET -bp BASE → BASE TARGET; the rest stays as it is. */
static int compare_words(int n, char **words)
{
	char *base = NULL, *target = NULL;
	int kept = 2;
	for (int i = 2; i < n; i++) {
		bool more = i + 1 < n;
		if (more && strcmp(words[i], "--bp") == 0)
			base = words[++i];
		else if (more &&
		         (strcmp(words[i], "-d") == 0 || strcmp(words[i], "--profiling_path") == 0))
			target = words[++i];
		else
			words[kept++] = words[i];
	}
	if (base)
		words[kept++] = base;
	if (target)
		words[kept++] = target;
	return kept;
}

int np_legacy_words(int argc, char **argv, char **out)
{
	static char cluster[] = "cluster", mode[] = "--mode=all", here[] = "--output=.";
	int n = 0, from = 1;
	out[n++] = argv[0];
	bool bare = argc > 1 && argv[1][0] == '-' && !has_option(argc, argv, "-V", "--version") &&
	            !has_option(argc, argv, "-h", "--help");
	if (bare)
		out[n++] = cluster;
	else if (argc > 1 && is_command(argv[1]))
		out[n++] = argv[from++];
	for (int i = from; i < argc; i++)
		out[n++] = long_form(argv[i]);
	if (n > 1 && strcmp(out[1], "compare") == 0)
		n = compare_words(n, out);
	if (n > 1 && strcmp(out[1], cluster) == 0 && !has_option(argc, argv, "-h", "--help")) {
		if (!has_option(argc, argv, "-m", "--mode"))
			out[n++] = mode;
		if (!has_option(argc, argv, "-o", "--output") &&
		    !has_option(argc, argv, NULL, "--output_path")) {
			out[n++] = here;
			(void)fprintf(stderr, "npuprof: without -o the results go into "
			                      "./cluster_analysis_output, captures are never "
			                      "written to\n");
		}
	}
	return n;
}

/*
 * What was asked for: which words go together, defaults, and who writes it.
 */
#include "collect/snippet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/lang.h"

/* ── what each target takes ── */

enum { PHASE = 1, ACTIVE = 2, WARMUP = 4, RANKS = 8, LEVEL = 16, METRICS = 32, CLUSTER = 64 };

static const struct {
	const char *name;
	int takes;
	const char *legal; /* for the message */
} targets[NP_SNIPPET_TARGETS] = {
	[NP_SNIPPET_TORCH_NPU] = {"torch_npu",
                                  PHASE | ACTIVE | WARMUP | RANKS | LEVEL | METRICS | CLUSTER, ""},
	[NP_SNIPPET_MSPROF] = {"msprof", METRICS,
                               "msprof records a whole process: --profile kernel, --aic-metrics "
                               "and --out-dir"},
	[NP_SNIPPET_VLLM] = {"vllm", ACTIVE | WARMUP | RANKS | LEVEL | METRICS | CLUSTER,
                             "a hook sees calls of forward(), no phases: --active, --warmup, "
                             "--rank-list, --level, --aic-metrics, --profile and --out-dir"},
	[NP_SNIPPET_DYNAMIC] = {"dynamic", ACTIVE | WARMUP | RANKS | LEVEL | METRICS | CLUSTER,
                                "dynamic_profile counts steps, not phases: --active, --warmup, "
                                "--rank-list, --level, --aic-metrics, --profile and --out-dir"},
	[NP_SNIPPET_PATH_A] = {"path-a", PHASE | ACTIVE,
                               "the framework has its own configuration (Level1, "
                               "PipeUtilization, every rank): --phase, --active and --profile "
                               "kernel"},
};

static enum np_status choose(const char *option, const char *word, const char *const *names,
                             size_t n, int *out, struct np_err *err)
{
	char legal[256] = "";
	size_t len = 0;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(word, names[i]) == 0) {
			*out = (int)i;
			return NP_OK;
		}
		if (len < sizeof legal)
			len += (size_t)snprintf(legal + len, sizeof legal - len, "%s%s",
			                        i ? ", " : "", names[i]);
	}
	return np_err_set(err, NP_E_USAGE, NULL, "unknown %s '%s': use %s", option, word, legal);
}

static enum np_status refuse_foreign(const struct np_snippet_words *words,
                                     const struct np_snippet *self, struct np_err *err)
{
	const struct {
		const char *option, *word;
		int bit;
	} given[] = {{"--phase", words->phase, PHASE},
	             {"--active", words->active, ACTIVE},
	             {"--warmup", words->warmup, WARMUP},
	             {"--rank-list", words->rank_list, RANKS},
	             {"--level", words->level, LEVEL},
	             {"--aic-metrics", words->aic_metrics, METRICS},
	             {"--profile cluster", self->cluster ? "" : NULL, CLUSTER}};
	bool path_a_dir = self->target == NP_SNIPPET_PATH_A && words->out_dir;
	for (size_t i = 0; i < sizeof given / sizeof *given; i++)
		if (given[i].word && !(targets[self->target].takes & given[i].bit))
			return np_err_set(err, NP_E_USAGE, NULL, "%s does not go with --for %s; %s",
			                  given[i].option, targets[self->target].name,
			                  targets[self->target].legal);
	if (path_a_dir)
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "--out-dir does not go with --for path-a, which writes beside "
		                  "log_0.log; %s",
		                  targets[self->target].legal);
	return NP_OK;
}

/* ── single options ── */

static enum np_status take_count(const char *option, const char *word, int64_t least, int64_t *out,
                                 struct np_err *err)
{
	enum { MOST = 100000 };
	if (word && (!np_str_to_i64(np_str_of(word), out) || *out < least || *out > MOST))
		return np_err_set(err, NP_E_USAGE, NULL, "%s wants %d … %d, got '%s'", option,
		                  (int)least, MOST, word);
	return NP_OK;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static bool take_range(np_str part, struct np_snippet *out)
{
	uint64_t first = 0, last = 0;
	np_str rest, head = np_str_cut(np_str_trim(part), '-', &rest);
	if (!np_str_to_u64(head, &first))
		return false;
	last = first;
	if (head.len < np_str_trim(part).len && !np_str_to_u64(rest, &last))
		return false;
	if (last < first || last >= NP_SNIPPET_RANKS_MAX)
		return false;
	for (uint64_t rank = first; rank <= last; rank++)
		if (out->ranks.n >= NP_SNIPPET_RANKS_MAX ||
		    !np_vec_push(&out->ranks, (uint32_t)rank))
			return false;
	return true;
}

static enum np_status take_ranks(const char *word, struct np_snippet *out, struct np_err *err)
{
	np_str rest = np_str_of(word);
	size_t kept = 0;
	do {
		np_str part = np_str_cut(rest, ',', &rest);
		if (!take_range(part, out))
			return np_err_set(
				err, NP_E_USAGE, NULL,
				"--rank-list wants ranks like 0,2,8-15 below %d, got '%s'",
				NP_SNIPPET_RANKS_MAX, word);
	} while (rest.len);
	qsort(out->ranks.v, out->ranks.n, sizeof *out->ranks.v, by_value);
	for (size_t i = 0; i < out->ranks.n; i++)
		if (kept == 0 || out->ranks.v[i] != out->ranks.v[kept - 1])
			out->ranks.v[kept++] = out->ranks.v[i];
	out->ranks.n = kept;
	return NP_OK;
}

/* torch_npu takes letters, digits, . _ / - ~, blanks and Chinese characters in a path. Other
 * bytes of UTF-8 are left to it. */
static enum np_status take_dir(const char *word, const char *fallback, const char **out,
                               struct np_err *err)
{
	*out = word ? word : fallback;
	bool fine = **out != '\0' && **out != '-';
	for (const char *c = *out; *c && fine; c++) {
		bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
		              (*c >= '0' && *c <= '9') || (unsigned char)*c >= 0x80;
		fine = letter || strchr("._/-~ ", *c);
	}
	if (!fine || strlen(*out) > 4096)
		return np_err_set(
			err, NP_E_USAGE, NULL,
			"--out-dir '%s': torch_npu takes letters, digits and . _ / - ~ in "
			"a path",
			*out);
	return NP_OK;
}

static enum np_status take_level(const struct np_snippet_words *words, struct np_snippet *out,
                                 struct np_err *err)
{
	static const char *const names[] = {
		"PipeUtilization", "ArithmeticUtilization", "Memory",  "MemoryL0",
		"MemoryUB",        "ResourceConflictRatio", "L2Cache", "MemoryAccess",
		"AiCoreNone"};
	int metric = out->cluster ? 8 : 0;
	out->level = 1;
	if (words->level && (strlen(words->level) != 1 || !strchr("12", *words->level)))
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "--level %s: use 1 or 2; level 0 has no utilisation of the units "
		                  "and no communication",
		                  words->level);
	if (words->level)
		out->level = *words->level - '0';
	if (words->aic_metrics)
		NP_TRY(choose("--aic-metrics", words->aic_metrics, names,
		              sizeof names / sizeof *names, &metric, err));
	out->aic_metrics = names[metric];
	if (!out->cluster && metric == 8)
		return np_err_set(
			err, NP_E_USAGE, NULL,
			"--aic-metrics AiCoreNone records no utilisation, which --profile "
			"kernel is about; use PipeUtilization, or --profile cluster");
	return NP_OK;
}

static enum np_status take_phase(const struct np_snippet_words *words, struct np_snippet *out,
                                 struct np_err *err)
{
	static const char *const names[] = {"prefill", "decode", "both", "separate"};
	int phase = out->target == NP_SNIPPET_PATH_A ? NP_PHASE_BOTH : NP_PHASE_DECODE;
	if (words->phase)
		NP_TRY(choose("--phase", words->phase, names, 4, &phase, err));
	out->phase = (enum np_snippet_phase)phase;
	if (out->phase == NP_PHASE_PREFILL && words->active && strcmp(words->active, "1") != 0)
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "--active %s does not go with --phase prefill: a request has one "
		                  "prefill, active is 1",
		                  words->active);
	return NP_OK;
}

/* Recorded steps where nothing else is asked for. */
static int64_t usual_active(const struct np_snippet *self)
{
	switch (self->target) {
	case NP_SNIPPET_VLLM:
		return 1; /* R16: exactly one step of a program of others */
	case NP_SNIPPET_DYNAMIC:
		return 2; /* R76 */
	case NP_SNIPPET_PATH_A:
	case NP_SNIPPET_TORCH_NPU:
		return self->phase == NP_PHASE_PREFILL ? 1 : 10; /* R56: at least 10 decode steps */
	case NP_SNIPPET_MSPROF:
	case NP_SNIPPET_TARGETS:
		break;
	}
	return 1;
}

static const char *usual_dir(const struct np_snippet *self)
{
	static const char *const by_phase[] = {"./prof_prefill", "./prof_decode", "./prof_both",
	                                       "./prof_separate"};
	if (self->cluster)
		return "./cluster_profile_output"; /* R76 */
	switch (self->target) {
	case NP_SNIPPET_TORCH_NPU:
		return by_phase[self->phase];
	case NP_SNIPPET_MSPROF:
		return "./prof_msprof";
	case NP_SNIPPET_VLLM:
		return "./prof_vllm";
	case NP_SNIPPET_DYNAMIC:
	case NP_SNIPPET_PATH_A:
	case NP_SNIPPET_TARGETS:
		break;
	}
	return "./prof_dynamic";
}

enum np_status np_snippet_choose(const struct np_snippet_words *words, struct np_snippet *out,
                                 struct np_err *err)
{
	static const char *const profiles[] = {"kernel", "cluster"};
	const char *names[NP_SNIPPET_TARGETS];
	int target = 0, profile = 0;
	*out = (struct np_snippet){0};
	for (size_t i = 0; i < NP_SNIPPET_TARGETS; i++)
		names[i] = targets[i].name;
	if (!words->target)
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "--for is missing: torch_npu, msprof, vllm, dynamic or path-a");
	NP_TRY(choose("--for", words->target, names, NP_SNIPPET_TARGETS, &target, err));
	if (words->profile)
		NP_TRY(choose("--profile", words->profile, profiles, 2, &profile, err));
	out->target = (enum np_snippet_for)target;
	out->cluster = profile == 1;
	NP_TRY(refuse_foreign(words, out, err));
	NP_TRY(take_phase(words, out, err));
	out->active = usual_active(out);
	out->warmup = out->target == NP_SNIPPET_VLLM ? 5 : 0; /* R6, R68, R76 */
	NP_TRY(take_count("--active", words->active, 1, &out->active, err));
	NP_TRY(take_count("--warmup", words->warmup, 0, &out->warmup, err));
	NP_TRY(take_level(words, out, err));
	NP_TRY(take_dir(words->out_dir, usual_dir(out), &out->out_dir, err));
	/* kernels of one rank are enough (R7); a question about ranks wants all (R86) */
	out->all_ranks = out->cluster && !words->rank_list;
	if (out->target == NP_SNIPPET_DYNAMIC)
		out->all_ranks = !words->rank_list;
	return words->rank_list ? take_ranks(words->rank_list, out, err) : NP_OK;
}

void np_snippet_release(struct np_snippet *self)
{
	np_vec_release(&self->ranks);
}

/* ── what to do with it ── */

static void add_talk(const struct np_snippet *self, struct np_buf *talk)
{
	static const char *const how[NP_SNIPPET_TARGETS] = {
		NP_N("fill in load_model(), run_prefill() and run_decode(), then run the file\n"),
		NP_N("run it with the program and its arguments behind it\n"),
		NP_N("name MODULE and CLASS, save it as sitecustomize.py, and put its directory "
	             "into "
	             "PYTHONPATH\n"),
		NP_N("save it as profiler_config.json; change it in place, never replace the file. "
	             "A "
	             "relative prof_dir is relative to the script\n"),
		NP_N("set the switch in the YAML file, tune profiler_context.py, run infer.sh, "
	             "then "
	             "the acceptance\n"),
	};
	np_buf_add_cstr(talk, np_tr(how[self->target]));
	if (!self->cluster && strcmp(self->aic_metrics, "PipeUtilization") != 0)
		np_buf_printf(talk,
		              np_tr("aic_metrics %s: npuprof check will say WRONG_PMU_GROUP, "
		                    "utilisation of the units is in PipeUtilization only\n"),
		              self->aic_metrics);
	if (self->cluster && self->ranks.n)
		np_buf_add_cstr(talk, np_tr("analyses across ranks want all ranks of a group\n"));
	if (self->target == NP_SNIPPET_PATH_A && self->phase == NP_PHASE_BOTH)
		np_buf_add_cstr(talk, np_tr("the framework writes prefill and decode apart\n"));
}

void np_snippet_write(const struct np_snippet *self, struct np_buf *code, struct np_buf *talk)
{
	static void (*const writers[NP_SNIPPET_TARGETS])(
		const struct np_snippet *, struct np_buf *) = {np_snippet_torch, np_snippet_msprof,
	                                                       np_snippet_vllm, np_snippet_dynamic,
	                                                       np_snippet_path_a};
	writers[self->target](self, code);
	add_talk(self, talk);
}

/*
 * The data types of the AI cores' operators, as the official tool lists them for
 * CANN 7.0.RC1, and for 7.0.0 and 8.0.RC1. It knows no list for its default 8.0.0, so
 * there its advice is dead; here the newest list holds for every later version.
 */
#include "advice/aicpu_dtypes.h"

#include <string.h>

#include "report/lang.h"

struct rule {
	const char *op;       /* lower case; NULL: every other operator */
	const char *in, *out; /* each between blanks */
};

#define GENERIC_7                                                                       \
	" float float32 float16 bool int32 uint32 int64 uint64 int8 uint8 int16 uint16" \
	" dt_bf16 "
#define CAST " float float32 float16 bool int32 uint32 int64 uint64 uint8 dt_bf16 "
#define EQ_7 " float float32 float16 bool int32 int8 uint8 "
#define GENERIC_8                                                                            \
	" float float32 float16 dt_bf16 float64 bool int32 int64 int8 uint8 int16 complex64" \
	" complex128 "
#define EQ_8 " float float32 float16 dt_bf16 float64 bool int32 int8 uint8 "
#define MUL  " float float32 float16 bool int32 uint32 int64 uint64 int8 uint8 dt_bf16 "

static const struct rule rules_7[] = {
	{"cast", CAST, CAST},
	{"tensorequal", EQ_7, " bool "},
	{"equal", EQ_7 "int64 ", " bool "},
	{"nonzero", " float16 bool dt_bf16 ", " int64 "},
	{"mul", MUL, MUL},
	{NULL, GENERIC_7, GENERIC_7},
};

static const struct rule rules_8[] = {
	{"cast", CAST, CAST},
	{"tensorequal", EQ_8, " bool "},
	{"equal", EQ_8 "int64 ", " bool "},
	{"nonzero", " float16 bool dt_bf16 ", " int64 "},
	{"mul", MUL "complex64 ", MUL "complex64 "},
	{NULL, GENERIC_8, GENERIC_8},
};

static const struct rule *rule_of(np_str op_type, const char *cann)
{
	const struct rule *rule = strncmp(cann, "7.0.RC1", 7) == 0 ? rules_7 : rules_8;
	while (rule->op && !np_str_ieq(op_type, np_str_of(rule->op)))
		rule++;
	return rule;
}

/* Is the word in a list of words between blanks, whatever its case? */
static bool listed(np_str word, np_str list)
{
	while (list.len) {
		np_str one = np_str_cut(list, ' ', &list);
		if (one.len && np_str_ieq(one, word))
			return true;
	}
	return false;
}

np_str np_aicpu_dtype(np_str op_type, np_str dtypes, bool output, const char *cann,
                      const char **instead)
{
	const struct rule *rule = rule_of(op_type, cann);
	*instead = output ? rule->out : rule->in;
	while (dtypes.len) {
		np_str one = np_str_trim(np_str_cut(dtypes, ';', &dtypes));
		bool known = one.len && !np_str_is(one, "N/A") && !np_str_is(one, "UNDEFINED") &&
		             !np_str_is(one, "DT_UNDEFINED");
		if (known && !listed(one, np_str_of(*instead)))
			return one;
	}
	return (np_str){"", 0};
}

const char *np_aicpu_guide(np_str op_type)
{
	static const struct {
		const char *op, *guide;
	} guides[] = {
		{"index",
	         NP_N("indexing by a tensor runs on the AI CPU: use index_select, gather or "
	              "torch.where, and slices instead of masks")},
		{"indexput", NP_N("x[mask] = v runs on the AI CPU: use torch.where, masked_fill or "
	                          "x * mask")},
		{"indexputv2",
	         NP_N("x[mask] = v runs on the AI CPU: use torch.where, masked_fill or "
	              "x * mask")},
		{"argmin", NP_N("newer versions of CANN have argmin on the AI cores: upgrade")},
		{"nonzero",
	         NP_N("the shape of nonzero depends on values, which the host has to wait "
	              "for: use torch.where(cond, a, b) or multiply by the mask")},
	};
	for (size_t i = 0; i < sizeof guides / sizeof *guides; i++)
		if (np_str_ieq(op_type, np_str_of(guides[i].op)))
			return guides[i].guide;
	return NULL;
}

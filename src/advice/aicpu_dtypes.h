/* Which data types of an operator the AI cores support. Private to src/advice/. */
#ifndef NP_ADVICE_AICPU_DTYPES_H
#define NP_ADVICE_AICPU_DTYPES_H

#include <stddef.h>

#include "base/str.h"

/*
 * The first of the types ("DOUBLE;INT64") with which an operator of this type gets no
 * kernel of the AI cores; empty when all are fine or nothing is known. `cann` is the
 * version of the capture, "" when it is not recorded. *instead: those that would do.
 */
np_str np_aicpu_dtype(np_str op_type, np_str dtypes, bool output, const char *cann,
                      const char **instead);

/* What to write instead of an operator that usually ends on the AI CPU; NULL. */
const char *np_aicpu_guide(np_str op_type);

#endif

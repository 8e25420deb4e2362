#include "cluster/py_text.h"

#include <math.h>

#include "base/number.h"
#include "io/json.h"

void np_py_number(struct np_buf *out, double value)
{
	if (value == 0 || isnan(value)) {
		np_buf_add_char(out, '0');
		return;
	}
	char digits[NP_PYTHON_CHARS];
	np_buf_add(out, digits, np_format_python(value, digits));
}

void np_py_count(struct np_buf *out, double value)
{
	if (value == floor(value) && fabs(value) < 1e15)
		np_buf_printf(out, "%lld", (long long)value);
	else
		np_py_number(out, value);
}

void np_py_member(struct np_buf *out, const char *key, double value)
{
	np_buf_add_cstr(out, key);
	np_py_number(out, value);
}

void np_py_op_key(struct np_buf *out, np_str name, np_str group, struct np_buf *scratch)
{
	np_buf_clear(scratch);
	np_buf_add_str(scratch, name);
	np_buf_add_char(scratch, '@');
	np_buf_add_str(scratch, group);
	out->failed |= scratch->failed;
	np_json_quote(out, np_buf_str(scratch));
	NP_PY_ADD(out, ": ");
}

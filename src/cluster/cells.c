#include "cluster/cells.h"

#include "base/number.h"

void np_cell_decimal_us(struct np_table *table, np_ns ns)
{
	char text[32];
	int len = np_ns_format_us(text, sizeof text, ns);
	while (len > 0 && text[len - 1] == '0')
		len--;
	if (len > 0 && text[len - 1] == '.')
		len--;
	np_cell_text(table, (np_str){text, (size_t)len});
}

void np_buf_add_python_us(struct np_buf *out, double us)
{
	char digits[NP_PYTHON_CHARS];
	np_buf_add(out, digits, np_format_python(np_round_half_even(us, 3), digits));
	np_buf_add_cstr(out, " us");
}

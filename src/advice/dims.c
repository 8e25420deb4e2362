#include "advice/dims.h"

static np_str without_quotes(np_str text)
{
	while (text.len > 0 && (text.ptr[0] == '"' || text.ptr[0] == ' '))
		text = np_str_from(text, 1);
	while (text.len > 0 && (text.ptr[text.len - 1] == '"' || text.ptr[text.len - 1] == ' '))
		text.len--;
	return text;
}

struct np_dims np_dims_of(np_str shapes, int index)
{
	struct np_dims dims = {.n = 0};
	np_str rest = without_quotes(shapes), one = {"", 0};
	for (int i = 0; i <= index; i++) {
		if (i > 0 && rest.len == 0)
			return dims;
		one = np_str_cut(rest, ';', &rest);
	}
	while (one.len > 0) {
		int64_t value;
		np_str word = np_str_trim(np_str_cut(one, ',', &one));
		if (dims.n == NP_MAX_DIMS || !np_str_to_i64(word, &value) || value < 0)
			return (struct np_dims){.n = 0};
		dims.of[dims.n++] = value;
	}
	return dims;
}

double np_dims_elements(const struct np_dims *dims)
{
	double elements = dims->n > 0 ? 1 : 0;
	for (int i = 0; i < dims->n; i++)
		elements *= (double)dims->of[i];
	return elements;
}

int np_dims_count(np_str shapes)
{
	np_str rest = without_quotes(shapes);
	int n = rest.len > 0;
	for (size_t i = 0; i < rest.len; i++)
		n += rest.ptr[i] == ';';
	return n;
}

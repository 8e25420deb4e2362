#include "capture/csv_table.h"

#include <math.h>
#include <string.h>

enum np_status np_csv_table_open(struct np_csv_table *self, struct np_profile *profile,
                                 const char *path, struct np_err *err)
{
	memset(self, 0, sizeof *self);
	self->profile = profile;
	self->path = path;
	NP_TRY(np_input_open(path, &self->input, err));
	return np_csv_open(self->input, &self->csv, err);
}

static void tell(struct np_csv_table *self)
{
	const struct np_csv_health *health = np_csv_health(self->csv);
	uint64_t ragged = health->short_rows + health->long_rows + health->open_quotes;
	struct np_profile *p = self->profile;
	if (ragged > 0)
		np_profile_diag(p, "RAGGED_ROWS", self->path, ragged,
		                "%llu rows have too few or too many fields (first: row %llu)",
		                (unsigned long long)ragged,
		                (unsigned long long)health->first_bad_row);
	if (self->bad_time > 0)
		np_profile_diag(p, "BAD_TIME", self->path, self->bad_time,
		                "%llu rows have a time that is missing or impossible, dropped",
		                (unsigned long long)self->bad_time);
	if (self->bad_number > 0)
		np_profile_diag(p, "BAD_NUMBER", self->path, self->bad_number,
		                "%llu fields should be numbers and are not, taken as absent",
		                (unsigned long long)self->bad_number);
	if (np_input_faulted(self->input))
		np_profile_diag(p, "FILE_CHANGED", self->path, 1,
		                "the file shrank while it was read");
	p->dropped_rows += self->bad_time;
}

void np_csv_table_close(struct np_csv_table *self)
{
	if (self->csv) {
		tell(self);
		np_csv_close(self->csv);
	}
	np_input_close(self->input);
	np_buf_release(&self->scratch);
}

void np_csv_table_columns(struct np_csv_table *self, const struct np_csv_column *wanted, size_t n)
{
	for (size_t i = 0; i < n; i++)
		self->columns[i] = np_csv_find_any(self->csv, wanted[i].names);
}

enum np_status np_csv_table_next(struct np_csv_table *self, bool *got, struct np_err *err)
{
	return np_csv_next(self->csv, &self->row, got, err);
}

static np_str raw(const struct np_csv_table *self, size_t i)
{
	return self->columns[i] < 0 ? (np_str){"", 0} : self->row.fields[self->columns[i]];
}

np_str np_csv_table_text(struct np_csv_table *self, size_t i)
{
	return np_csv_text(raw(self, i), &self->scratch);
}

static bool usable(struct np_csv_table *self, enum np_num num)
{
	self->bad_number += num == NP_NUM_BAD || num == NP_NUM_RANGE;
	return num == NP_NUM_OK;
}

double np_csv_table_double(struct np_csv_table *self, size_t i)
{
	double d;
	return usable(self, np_csv_double(raw(self, i), &d)) ? d : NAN;
}

int64_t np_csv_table_i64(struct np_csv_table *self, size_t i)
{
	int64_t v;
	return usable(self, np_csv_i64(raw(self, i), &v)) ? v : NP_NO_I64;
}

uint32_t np_csv_table_u32(struct np_csv_table *self, size_t i)
{
	int64_t v = np_csv_table_i64(self, i);
	return v >= 0 && v < NP_NO_U32 ? (uint32_t)v : NP_NO_U32;
}

np_ns np_csv_table_time(struct np_csv_table *self, size_t i)
{
	np_ns ns;
	return np_csv_us_to_ns(raw(self, i), &ns) == NP_NUM_OK && np_time_sane(ns, 0) ? ns
	                                                                              : NP_NO_I64;
}

bool np_csv_table_intern(struct np_csv_table *self, size_t i, uint32_t *id)
{
	np_str text = np_csv_table_text(self, i);
	*id = NP_ID_NONE;
	if (np_is_na(text))
		return true;
	*id = np_intern_add(&self->profile->strings, text);
	return *id != NP_ID_NONE;
}

uint32_t np_npu_number(np_str text)
{
	uint64_t n;
	if (!np_str_istarts(text, NP_STR("NPU:")) || !np_str_to_u64(np_str_from(text, 4), &n))
		return NP_NO_U32;
	return n < NP_NO_U32 ? (uint32_t)n : NP_NO_U32;
}

/*
 * Text as Python's json writes it, for the files of the official tool.
 */
#ifndef NP_CLUSTER_PY_TEXT_H
#define NP_CLUSTER_PY_TEXT_H

#include "base/str.h"

/* A number as Python prints it; 0 (and what is not known) as "0". */
void np_py_number(struct np_buf *out, double value);
/* The same, whole numbers as integers. */
void np_py_count(struct np_buf *out, double value);
/* `key` as it is, and the number. */
void np_py_member(struct np_buf *out, const char *key, double value);
/* "name@group" as a key, with its colon. */
void np_py_op_key(struct np_buf *out, np_str name, np_str group, struct np_buf *scratch);

#define NP_PY_ADD(out, literal) np_buf_add((out), "" literal, sizeof(literal) - 1)

#endif

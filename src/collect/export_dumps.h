/*
 * Inside run: have raw dumps exported by a Python that can import torch_npu, in a process of
 * its own (R35–R38). What counts is what lies there afterwards, never what it said.
 */
#ifndef NP_COLLECT_EXPORT_DUMPS_H
#define NP_COLLECT_EXPORT_DUMPS_H

#include "collect/run_internal.h"

/* The Python for the export: --python, that of the processes which recorded, that of the
 * command, python3; NULL when none of them finds torch_npu. */
const char *np_run_find_python(struct np_run *run);

/* Export what is raw and not complete; fills the dumps, log/export.log. E_NOMEM only. */
enum np_status np_run_export(struct np_run *run, struct np_err *err);

/* Are the new deliverables there that this configuration gives? */
bool np_run_is_complete(const struct np_run *run, const struct np_dump *dump);

/* The command that exports a dump, with `python`, for people. */
const char *np_run_export_command(struct np_run *run, const char *python, const char *dump);

#endif

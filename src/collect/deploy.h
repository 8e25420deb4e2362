/*
 * Bring a source tree to a host (§2.7), so that it is there as a whole or not at all.
 *
 *   digests here ─┐
 *   digests there ┴▶ what differs ─ tar ─▶ WORKSPACE/.npuprof-deploy-ID/tree ─ verified ─▶ switch
 *
 * The staged tree begins as hard links of the one that is there, so what has not changed neither
 * travels nor is copied; a file is compared by its content, never by size or time. The switch
 * are renames. Whatever ends a deploy, the tree under its name is the old or the new one.
 */
#ifndef NP_COLLECT_DEPLOY_H
#define NP_COLLECT_DEPLOY_H

#include "collect/deploy_tree.h"
#include "collect/remote_list.h"
#include "report/report.h"

struct np_deploy_options {
	const char *path;      /* a directory here, or one file */
	const char *workspace; /* a directory over there, made when it is not there */
	const char *name;      /* below it; NULL: the last part of `path` */
	struct np_deploy_choice choice;
	struct np_place place;
	bool delete_extra; /* remove what is there and not here */
	bool dry_run;
	const atomic_bool *cancel;
};

/*
 * Tables `deployed` and `changes`, findings DEPLOY_CRLF, DEPLOY_EXTRA, DEPLOY_LEFT_OUT.
 * E_IO when what arrived is not what was sent (nothing was switched); E_EXISTS when the name is
 * a link or a file there; errors of the walk and of the transport.
 */
enum np_status np_deploy(struct np_transport *transport, const struct np_deploy_options *options,
                         struct np_report *report, struct np_err *err);

#endif

/*
 * What a deploy sends: the files below a directory as they are to be there, with their digests.
 */
#ifndef NP_COLLECT_DEPLOY_TREE_H
#define NP_COLLECT_DEPLOY_TREE_H

#include "collect/hash.h"

struct np_deploy_entry {
	const char *path;          /* relative */
	const char *target;        /* of a link; NULL for a file */
	uint64_t size_bytes;       /* as it is sent */
	unsigned mode;             /* permission bits */
	bool converted;            /* CRLF became LF: what is sent is not what lies here */
	struct np_digests digests; /* of what is sent */
};

struct np_deploy_tree {
	struct np_arena arena;
	const char *root;
	NP_VEC(struct np_deploy_entry) v; /* sorted by path */
	NP_VEC(const char *) left_out;    /* links that lead out of the tree, devices, sockets */
	size_t n_excluded;
};

/* Left out unless asked for otherwise: .git, __pycache__, dist, *.egg-info, _build,
 * .pytest_cache, .coverage, build/ (a trailing slash: directories only). */
extern const char *const np_deploy_excludes[]; /* NULL-terminated */

struct np_deploy_choice {
	const char *const *excludes; /* fnmatch; with a slash inside: of the path, else the name */
	size_t n_excludes;
	bool keep_crlf;
	unsigned threads;
};

/*
 * Walk `root`, a directory or one file. Text files (.py .sh .json .txt .md .yaml .yml .cfg)
 * with \r\n are converted in what is sent, never here. E_NOTFOUND, E_ACCESS, E_IO, E_LIMIT.
 */
enum np_status np_deploy_tree_read(struct np_deploy_tree *self, const char *root,
                                   const struct np_deploy_choice *choice, struct np_err *err);
void np_deploy_tree_release(struct np_deploy_tree *self);

/* The content of an entry as it is sent. */
enum np_status np_deploy_content(const struct np_deploy_tree *self,
                                 const struct np_deploy_entry *entry, struct np_buf *out,
                                 struct np_err *err);

/* Drop each \r that stands before \n; true when there was one. */
bool np_drop_cr(struct np_buf *text);

/* Write the chosen entries as a gzipped tar to `fd`. */
enum np_status np_deploy_pack(const struct np_deploy_tree *self, const bool *chosen, int fd,
                              uint64_t *bytes, struct np_err *err);

#endif

/*
 * The chosen files as a tar, by libarchive. GNU tar keeps names as bytes; pax would want to know
 * their character set.
 */
#include <archive.h>
#include <archive_entry.h>
#include <unistd.h>

#include "collect/deploy_tree.h"

static enum np_status failed(struct archive *tar, const struct np_deploy_entry *entry,
                             struct np_err *err)
{
	const char *why = archive_error_string(tar);
	return np_err_set(err, NP_E_IO, entry ? entry->path : NULL, "packing: %s",
	                  why ? why : "failed");
}

static enum np_status add(struct archive *tar, const struct np_deploy_tree *tree,
                          const struct np_deploy_entry *entry, struct archive_entry *head,
                          struct np_err *err)
{
	struct np_buf content = {0};
	enum np_status status = NP_OK;
	archive_entry_clear(head);
	archive_entry_copy_pathname(head, entry->path);
	archive_entry_set_perm(head, (mode_t)entry->mode);
	archive_entry_set_filetype(head, entry->target ? AE_IFLNK : AE_IFREG);
	if (entry->target)
		archive_entry_copy_symlink(head, entry->target);
	else
		status = np_deploy_content(tree, entry, &content, err);
	/* a file that has changed since it was digested is found when the far side is verified */
	archive_entry_set_size(head, (la_int64_t)content.len);
	if (status == NP_OK && archive_write_header(tar, head) != ARCHIVE_OK)
		status = failed(tar, entry, err);
	if (status == NP_OK && content.len &&
	    archive_write_data(tar, content.ptr, content.len) != (la_ssize_t)content.len)
		status = failed(tar, entry, err);
	np_buf_release(&content);
	return status;
}

static enum np_status open_tar(struct archive *tar, int fd, struct np_err *err)
{
	if (archive_write_set_format_gnutar(tar) != ARCHIVE_OK ||
	    archive_write_add_filter_gzip(tar) != ARCHIVE_OK ||
	    archive_write_set_options(tar, "gzip:compression-level=1") != ARCHIVE_OK ||
	    archive_write_open_fd(tar, fd) != ARCHIVE_OK)
		return failed(tar, NULL, err);
	return NP_OK;
}

enum np_status np_deploy_pack(const struct np_deploy_tree *self, const bool *chosen, int fd,
                              uint64_t *bytes, struct np_err *err)
{
	struct archive *tar = archive_write_new();
	struct archive_entry *head = archive_entry_new();
	enum np_status status = tar && head ? open_tar(tar, fd, err) : np_err_nomem(err);
	for (size_t i = 0; i < self->v.n && status == NP_OK; i++)
		if (chosen[i])
			status = add(tar, self, &self->v.v[i], head, err);
	if (status == NP_OK && archive_write_close(tar) != ARCHIVE_OK)
		status = failed(tar, NULL, err);
	if (bytes && tar)
		*bytes = (uint64_t)archive_filter_bytes(tar, -1);
	archive_entry_free(head);
	(void)archive_write_free(tar);
	return status;
}

/* SPDX-License-Identifier: MIT */
/*
 * mend.c - a pack's compiled module that is not what its manifest pins, made anew.
 *
 * Only from the module that it was compiled from, which has to lie beside it and be what the manifest pins, as have
 * the data; and only to what the manifest pins: the same compiler makes the same bytes.  Put in place by rename.
 * Where any of that fails, or the folder is not ours to write, the pack stays refused.
 */
#include "wasm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEND_MS 300000u

/* All but the compiled module are whole. */
static bool rest_is_whole(const packdir *dir)
{
	for (size_t i = 0; i <= dir->of.file_count; i++) {
		int fd FD_AUTO = packdir_file(dir, i ? &dir->of.files[i - 1] : &dir->of.source, true, NULL);

		if (fd < 0)
			return false;
	}
	return true;
}

static bool is_pinned(const manifest_file *file, const void *data, size_t len)
{
	char hash[SHA256_HEX];

	sha256_data(data, len, hash);
	return len == file->bytes && !strcmp(hash, file->sha256);
}

static int put_in_place(const packdir *dir, const void *data, size_t len)
{
	int folder FD_AUTO = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[48];
	int rc;

	if (folder < 0 || random_id(".module.", name, sizeof name, NULL) < 0)
		return -EIO;
	int fd FD_AUTO = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	rc = fd_write_all(fd, data, len);
	if (!rc && (fchmod(fd, 0644) < 0 || renameat(folder, name, folder, dir->of.module.name) < 0))
		rc = -errno;
	if (rc)
		unlinkat(folder, name, 0);
	return rc;
}

static int compile_anew(sb_state *state, const packdir *dir, const sb_call *call, sb_error *err)
{
	int fd FD_AUTO = packdir_file(dir, &dir->of.source, false, err);
	size_t len = dir->of.source.bytes, made_len = 0;
	void *made = NULL, *source;
	int rc;

	if (fd < 0)
		return fd;
	source = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (source == MAP_FAILED)
		return error_no_memory(err, "pack");
	rc = is_pinned(&dir->of.source, source, len) ?
		     compile_module(state, call, JOB_FOR_FILE, source, len, &made, &made_len, err) : SB_ERR_CHECKSUM;
	munmap(source, len);
	if (!rc && !is_pinned(&dir->of.module, made, made_len))
		rc = SB_ERR_CHECKSUM;
	if (!rc && put_in_place(dir, made, made_len) < 0)
		rc = SB_ERR_FORBIDDEN;
	free(made);
	return rc;
}

int mend_pack(sb_state *state, const packdir *dir, const sb_call *call, sb_error *err)
{
	const sb_progress progress = { .size = sizeof progress, .phase = "compile", .subject = dir->of.name };
	sb_call mine = *call;
	int rc;

	if (!dir->of.source.name[0] || faccessat(dir->fd, ".", W_OK, AT_EACCESS) < 0 || !rest_is_whole(dir))
		return SB_ERR_CHECKSUM;
	rc = sb_call_progress(call, &progress, err);
	if (rc)
		return rc;
	mine.deadline_ns = clock_deadline_ns(clock_now_ns(), MEND_MS); /* it takes no run's time */
	rc = compile_anew(state, dir, &mine, err);
	return rc ? rc : packdir_verify(dir, err);
}

/* SPDX-License-Identifier: MIT */
#include "packdir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STAMP_MAX_BYTES = 8192, STAMP_LINE = 256, ENGINE_MAX_BYTES = 128 };

/* ---- Who could have written it ------------------------------------------------------------------ */

static bool is_trusted(const struct stat *st, uid_t programs_owner)
{
	return (st->st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
	       (st->st_uid == 0 || st->st_uid == geteuid() || st->st_uid == programs_owner);
}

static int untrusted(const char *path, sb_error *err)
{
	return error_set(err, SB_ERR_FORBIDDEN, "pack",
			 "\"%s\" could be changed by other users: give it to root or to you, and take "
			 "group's and others' write permission away", path);
}

/* ---- Small text files of a folder ---------------------------------------------------------------- */

/* Into buf; 0, or -errno (ENOENT, EFBIG, EPERM if it is not trusted). */
static int read_text(const packdir *dir, const char *name, size_t max, uid_t owner, buf *out)
{
	int fd FD_AUTO = open_plain(dir->fd, name, O_RDONLY | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || !is_trusted(&st, owner))
		return -EPERM;
	return fd_read_file(fd, max, out);
}

static int check_engine(const packdir *dir, const char *programs, uid_t owner, sb_error *err)
{
	packdir up = { .fd = open_plain(dir->fd, "..", O_PATH | O_DIRECTORY) };
	buf key;

	buf_init(&key, ENGINE_MAX_BYTES);
	int code = up.fd < 0 ? -errno : read_text(&up, "engine", ENGINE_MAX_BYTES, owner, &key);
	fd_close(&up.fd);
	if (key.len > 0) /* the worker's build is on the next line */
		key.data[key.len = strcspn(key.data, "\n")] = '\0';
	bool same = code == 0 && key.len > 0 && strcmp(key.data, dir->of.engine) == 0;
	if (code < 0)
		code = error_errno(err, SB_ERR_NOT_FOUND, -code, "pack",
				   "the engine's key \"%s/wasm/engine\" cannot be read", programs);
	else if (!same)
		code = error_set(err, SB_ERR_UNSUPPORTED, "pack",
				 "the pack \"%s\" was made for another engine (\"%s\"): `sandbox packs build "
				 "%s` makes it anew", dir->of.name, dir->of.engine, dir->of.name);
	buf_release(&key);
	return code;
}

static int read_manifest(packdir *dir, const char *name, uid_t owner, sb_error *err)
{
	buf text;

	buf_init(&text, MANIFEST_MAX_BYTES + 1);
	int code = read_text(dir, "manifest", MANIFEST_MAX_BYTES, owner, &text);
	if (code == -ENOENT)
		code = error_set(err, SB_ERR_NOT_FOUND, "pack",
				 "the pack \"%s\" is not whole: `sandbox packs build %s` makes it", name, name);
	else if (code == -EPERM)
		code = untrusted(dir->path, err);
	else if (code < 0)
		code = error_errno(err, SB_ERR_INVALID, -code, "pack", "\"%s/manifest\" cannot be read",
				   dir->path);
	else
		code = manifest_parse(text.data ? text.data : "", text.len, &dir->of, err);
	buf_release(&text);
	if (code == SB_ERR_INVALID)
		error_prefix(err, "the pack \"%s\": ", name);
	if (code == 0 && strcmp(dir->of.name, name) != 0)
		code = error_set(err, SB_ERR_INVALID, "pack", "\"%s\" holds the pack \"%s\"", dir->path,
				 dir->of.name);
	return code;
}

/* ---- Open and close ------------------------------------------------------------------------------ */

static int open_folder(packdir *dir, const char *programs, const char *name, uid_t *owner, sb_error *err)
{
	struct stat st, of_programs;

	if (snprintf(dir->path, sizeof dir->path, "%s/wasm/%s", programs, name) >= (int)sizeof dir->path)
		return error_set(err, SB_ERR_INVALID_PATH, "pack", "the path of the pack \"%s\" is too long", name);
	dir->fd = open(dir->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir->fd < 0)
		return error_set(err, errno == EACCES ? SB_ERR_FORBIDDEN : SB_ERR_NOT_FOUND, "pack",
				 "the pack \"%s\" is not built: `sandbox packs build %s` makes it", name, name);
	if (fstat(dir->fd, &st) < 0 || stat(programs, &of_programs) < 0)
		return error_errno(err, SB_ERR_IO, errno, "pack", "\"%s\" cannot be examined", dir->path);
	*owner = of_programs.st_uid;
	return is_trusted(&st, *owner) ? 0 : untrusted(dir->path, err);
}

int packdir_open(packdir *dir, const char *programs, const char *name, sb_error *err)
{
	uid_t owner = 0;

	*dir = (packdir){ .fd = -1 };
	int code = open_folder(dir, programs, name, &owner, err);
	if (code == 0)
		code = read_manifest(dir, name, owner, err);
	if (code == 0)
		code = check_engine(dir, programs, owner, err);
	if (code < 0)
		packdir_close(dir);
	return code;
}

void packdir_close(packdir *dir)
{
	fd_close(&dir->fd);
}

/* ---- Files, and the stamp ------------------------------------------------------------------------ */

/* What the stamp has of a file that is as it was. */
static int stamp_line(const manifest_file *file, const struct stat *st, char out[STAMP_LINE])
{
	return snprintf(out, STAMP_LINE, "%s %llu %llu %lld %lld.%09ld %lld.%09ld\n", file->sha256,
			(unsigned long long)st->st_dev, (unsigned long long)st->st_ino,
			(long long)st->st_size, (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
			(long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
}

static bool has_line(const buf *stamp, const manifest_file *file, const struct stat *st)
{
	char want[STAMP_LINE];

	stamp_line(file, st, want);
	const char *at = stamp->data ? strstr(stamp->data, want) : NULL;
	return at && (at == stamp->data || at[-1] == '\n');
}

static bool is_stamped(const packdir *dir, const manifest_file *file, const struct stat *st)
{
	buf text;

	buf_init(&text, STAMP_MAX_BYTES + 1);
	int code = read_text(dir, "stamp", STAMP_MAX_BYTES, st->st_uid, &text);
	bool known = code == 0 && has_line(&text, file, st);
	buf_release(&text);
	return known;
}

static int changed(const packdir *dir, const manifest_file *file, sb_error *err)
{
	return error_set(err, SB_ERR_CHECKSUM, "pack",
			 "\"%s/%s\" is not what the manifest pins: `sandbox packs build %s` makes it anew",
			 dir->path, file->name, dir->of.name);
}

int packdir_file(const packdir *dir, const manifest_file *file, bool always, sb_error *err)
{
	int fd FD_AUTO = open_plain(dir->fd, file->name, O_RDONLY | O_NONBLOCK);
	char found[SHA256_HEX];
	struct stat st;
	int error = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return error_errno(err, SB_ERR_NOT_FOUND, errno, "pack", "\"%s/%s\" cannot be opened",
				   dir->path, file->name);
	if (!S_ISREG(st.st_mode) || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return untrusted(dir->path, err);
	if ((uint64_t)st.st_size != file->bytes)
		return changed(dir, file, err);
	if (always || !is_stamped(dir, file, &st)) {
		error = sha256_file(fd, found, NULL);
		if (error == 0 && strcmp(found, file->sha256) != 0)
			return changed(dir, file, err);
		if (error == 0 && lseek(fd, 0, SEEK_SET) < 0)
			error = -errno;
	}
	if (error < 0)
		return error_errno(err, SB_ERR_IO, -error, "pack", "\"%s/%s\" cannot be read", dir->path,
				   file->name);
	int out = fd;
	fd = -1;
	return out;
}

/* The manifest's files, one by one: module, source, data; NULL = no more. */
static const manifest_file *each(const packdir *dir, size_t i)
{
	const manifest *m = &dir->of;

	if (i < 2)
		return i == 0 ? &m->module : &m->source;
	return i - 2 < m->file_count ? &m->files[i - 2] : NULL;
}

/* Beside the old one, then by rename; a folder that cannot be written has none, and is hashed. */
static void leave_stamp(const packdir *dir, const buf *text)
{
	int folder FD_AUTO = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[48] = ".stamp.";

	if (folder < 0 || text->failed || random_id(".stamp.", name, sizeof name, NULL) < 0)
		return;
	int fd FD_AUTO = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return;
	if (fd_write_all(fd, text->data, text->len) < 0 || renameat(folder, name, folder, "stamp") < 0)
		unlinkat(folder, name, 0);
}

int packdir_verify(const packdir *dir, sb_error *err)
{
	const manifest_file *file;
	char line[STAMP_LINE];
	int code = 0;
	buf stamp;

	buf_init(&stamp, STAMP_MAX_BYTES);
	for (size_t i = 0; code == 0 && (file = each(dir, i)) != NULL; i++) {
		struct stat st;

		if (!file->name[0])
			continue;
		int fd FD_AUTO = packdir_file(dir, file, true, err);
		if (fd < 0 || fstat(fd, &st) < 0) {
			code = fd < 0 ? fd : error_errno(err, SB_ERR_IO, errno, "pack", "\"%s\"", file->name);
			continue;
		}
		buf_add(&stamp, line, (size_t)stamp_line(file, &st, line));
	}
	if (code == 0)
		leave_stamp(dir, &stamp);
	buf_release(&stamp);
	return code;
}

/* One by one is a look at the stamp for each; here it is read once. */
static bool all_stamped(const packdir *dir)
{
	bool known = true;
	struct stat st;
	buf stamp;

	buf_init(&stamp, STAMP_MAX_BYTES + 1);
	if (fstatat(dir->fd, dir->of.module.name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    read_text(dir, "stamp", STAMP_MAX_BYTES, st.st_uid, &stamp) < 0)
		known = false;
	for (size_t i = 0; known && i <= dir->of.file_count; i++) {
		const manifest_file *file = i ? &dir->of.files[i - 1] : &dir->of.module;

		known = fstatat(dir->fd, file->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
			!(st.st_mode & (S_IWGRP | S_IWOTH)) && (uint64_t)st.st_size == file->bytes &&
			has_line(&stamp, file, &st);
	}
	buf_release(&stamp);
	return known;
}

int packdir_check(const packdir *dir, sb_error *err)
{
	return all_stamped(dir) ? 0 : packdir_verify(dir, err);
}

uint64_t packdir_bytes(const packdir *dir)
{
	const manifest_file *file;
	uint64_t sum = 0;

	for (size_t i = 0; (file = each(dir, i)) != NULL; i++)
		sum += file->name[0] ? file->bytes : 0;
	return sum;
}

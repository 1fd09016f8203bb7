/* SPDX-License-Identifier: MIT */
/*
 * cache.c - compiled raw modules on disk, for the next command.
 *
 * In $XDG_CACHE_HOME/sandbox/wasm (~/.cache/sandbox/wasm), a folder of the caller's own that nobody else can
 * write; never where packs lie.  A file is named by the hash of the module and the engine's key (version,
 * route, settings), and begins with the hash of what follows: it is looked at before each use, and what
 * does not fit is removed and compiled again.  Files come by rename alone.
 *
 * What is in it was made of a module that nobody trusts, and is only ever run as that module, behind walls.
 * Whatever fails here costs time, and nothing else.
 */
#include "wasm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MOST 64
#define FILE_MOST ((size_t)128 << 20)
#define NAME_BYTES (SHA256_HEX + 8)
#define FIRST "sandbox-module "
#define HEAD_BYTES (sizeof FIRST - 1 + SHA256_HEX) /* a line: hash and its end */

static void name_of(const char *hash, const char *key, char out[NAME_BYTES])
{
	char both[SHA256_HEX];
	sha256 s;

	sha256_init(&s);
	sha256_add(&s, hash, strlen(hash) + 1);
	sha256_add(&s, key, strlen(key));
	sha256_hex(&s, both);
	snprintf(out, NAME_BYTES, "%s.cwasm", both);
}

/* ---- The folder ---------------------------------------------------------------------------------- */

static int open_below(int dir, const char *name, bool own)
{
	struct stat st;
	int fd;

	if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
		return -1;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (own ? O_NOFOLLOW : 0));
	if (fd >= 0 && own && (fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH))))
		fd_close(&fd);
	return fd;
}

/* The folder of caches, or (`is_home`) the one whose ".cache" is that; NULL = nobody says. */
static const char *folder_top(bool *is_home)
{
	const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");

	*is_home = !cache || cache[0] != '/';
	if (!*is_home)
		return cache;
	return home && home[0] == '/' ? home : NULL;
}

/* -1 = there is none, or others could write it. */
static int open_folder(void)
{
	bool is_home;
	const char *path = folder_top(&is_home);
	int base FD_AUTO = -1;
	int middle FD_AUTO = -1;

	if (path && !is_home) {
		base = open_below(AT_FDCWD, path, false);
	} else if (path) {
		int top FD_AUTO = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

		base = top < 0 ? -1 : open_below(top, ".cache", false);
	}
	middle = base < 0 ? -1 : open_below(base, "sandbox", true);
	return middle < 0 ? -1 : open_below(middle, "wasm", true);
}

/* ---- Reading ------------------------------------------------------------------------------------- */

static bool fits(const buf *file)
{
	char found[SHA256_HEX];

	if (file->len <= HEAD_BYTES || memcmp(file->data, FIRST, sizeof FIRST - 1) ||
	    file->data[HEAD_BYTES - 1] != '\n')
		return false;
	sha256_data(file->data + HEAD_BYTES, file->len - HEAD_BYTES, found);
	return !memcmp(found, file->data + sizeof FIRST - 1, SHA256_HEX - 1);
}

static bool read_one(int dir, const char *name, buf *out)
{
	int fd FD_AUTO = open_plain(dir, name, O_RDONLY | O_NONBLOCK);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH)) && fd_read_file(fd, FILE_MOST, out) == 0;
}

bool cache_load(const sb_state *state, const char *hash, void **data, size_t *len)
{
	int dir FD_AUTO = open_folder();
	char name[NAME_BYTES];
	bool good;
	buf file;

	if (dir < 0)
		return false;
	name_of(hash, state->key, name);
	buf_init(&file, FILE_MOST);
	good = read_one(dir, name, &file) && fits(&file);
	if (!good && file.len)
		unlinkat(dir, name, 0);
	*data = good ? malloc(file.len - HEAD_BYTES) : NULL;
	if (*data) {
		*len = file.len - HEAD_BYTES;
		memcpy(*data, file.data + HEAD_BYTES, *len);
		utimensat(dir, name, NULL, 0); /* when it was used last */
	}
	buf_release(&file);
	return *data;
}

/* ---- Writing ------------------------------------------------------------------------------------- */

/* The one that was not used for longest, and how many there are. */
static size_t find_oldest(int dir, char oldest[NAME_BYTES])
{
	int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = again < 0 ? NULL : fdopendir(again);
	struct timespec least = { 0 };
	const struct dirent *e;
	size_t count = 0;
	struct stat st;

	if (!list) {
		fd_close(&again);
		return 0;
	}
	while ((e = readdir(list))) {
		size_t len = strlen(e->d_name);

		if (len >= NAME_BYTES || !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (!count++ || st.st_mtim.tv_sec < least.tv_sec ||
		    (st.st_mtim.tv_sec == least.tv_sec && st.st_mtim.tv_nsec < least.tv_nsec)) {
			least = st.st_mtim;
			memcpy(oldest, e->d_name, len + 1);
		}
	}
	closedir(list);
	return count;
}

static bool write_one(int dir, const char *name, const void *data, size_t len)
{
	int fd FD_AUTO = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	char head[HEAD_BYTES + 1], hash[SHA256_HEX];

	sha256_data(data, len, hash);
	snprintf(head, sizeof head, FIRST "%s\n", hash);
	return fd >= 0 && fd_write_file(fd, head, HEAD_BYTES) == 0 && fd_write_file(fd, data, len) == 0;
}

void cache_store(const sb_state *state, const char *hash, const void *data, size_t len)
{
	int dir FD_AUTO = open_folder();
	char name[NAME_BYTES], oldest[NAME_BYTES], beside[48] = ".new.";

	if (dir < 0 || len > FILE_MOST - HEAD_BYTES || random_id(".new.", beside, sizeof beside, NULL) < 0)
		return;
	name_of(hash, state->key, name);
	if (!write_one(dir, beside, data, len) || renameat(dir, beside, dir, name) < 0)
		unlinkat(dir, beside, 0);
	for (int i = 0; i < 8 && find_oldest(dir, oldest) > FILES_MOST; i++)
		unlinkat(dir, oldest, 0);
}

/* ---- Telling ------------------------------------------------------------------------------------- */

/* Makes nothing. */
void cache_tell(char *out, size_t cap)
{
	bool is_home;
	const char *top = folder_top(&is_home);
	char path[PATH_MAX];
	const struct dirent *e;
	size_t count = 0;
	DIR *list;

	if (!top) {
		snprintf(out, cap, "none are kept: HOME is not set");
		return;
	}
	if (snprintf(path, sizeof path, "%s%s/sandbox/wasm", top, is_home ? "/.cache" : "") >= (int)sizeof path)
		path[0] = '\0';
	list = opendir(path);
	while (list && (e = readdir(list)))
		count += e->d_name[0] != '.';
	if (list)
		closedir(list);
	snprintf(out, cap, "%zu in \"%.400s\"", count, path);
}

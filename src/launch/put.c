/* SPDX-License-Identifier: MIT */
/*
 * put.c - files of the host into the box, and what it wants out of it or gone.
 *
 * Every element of a path is opened without following links, one by one, and a file is replaced, never
 * written through: the guest may have been here before.  pid 1 has the guest's rights by then, so
 * nothing can be reached that the guest could not reach.
 *
 * Before the first command a file is written where it belongs.  Later ones are written beside it and
 * renamed, so that one that does not fit leaves what was there.
 */
#include "box.h"
#include "sys.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define BESIDE ".sandbox-put"
#define REMOVE_US 1500000u       /* the supervisor gives us two seconds to act on a limit */
#define REMOVE_DEPTH 256u

/* Where something lies: what its messages call it. */
typedef struct place {
	const char *step;        /* of FAILED */
	int root;                /* what its paths are relative to */
	bool beside;
} place;

static int put_fail(launch_failure *f, int error, const place *at, const char *path)
{
	const char *slash = strcmp(at->step, "files") ? "" : "/";

	if (error == ELOOP)
		return launch_fail(f, error, at->step,
				   "\"%s%s\" leads through a link, and none is followed; name the place itself",
				   slash, path);
	return launch_fail(f, error, at->step, "cannot make the file \"%s%s\"", slash, path);
}

static bool is_link(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

/* -1 and errno; ELOOP: it is a link. */
static int open_element(int dir, const char *name)
{
	int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOTDIR)
		errno = is_link(dir, name) ? ELOOP : ENOTDIR;
	return fd;
}

/* The directory that `path` lies in, its elements made if `make`; *name = its last element. */
static int parent_open(int root, const char *path, bool make, const char **name)
{
	int dir = fcntl(root, F_DUPFD_CLOEXEC, 3);
	char element[256];
	const char *end;

	for (*name = path; dir >= 0 && (end = strchr(*name, '/')); *name = end + 1) {
		size_t len = (size_t)(end - *name);
		int next = -1, error = ENAMETOOLONG;

		if (len < sizeof element) {
			memcpy(element, *name, len);
			element[len] = 0;
			next = open_element(dir, element);
			if (next < 0 && errno == ENOENT && make && mkdirat(dir, element, 0755) == 0)
				next = open_element(dir, element);
			error = errno;
		}
		close(dir);
		errno = error;
		dir = next;
	}
	return dir;
}

/* ---- In ---------------------------------------------------------------------------------------------- */

static int write_all(int fd, const char *data, uint64_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len > (1u << 20) ? 1u << 20 : (size_t)len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : ENOSPC;
		data += n;
		len -= (uint64_t)n;
	}
	return 0;
}

/* A new file of that name; 0 or errno. */
static int write_new(int dir, const char *name, const lp_put_entry *entry, const void *content)
{
	int fd, error;

	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		return errno;
	fd = openat(dir, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC,
		    (mode_t)(entry->mode & 0777));
	if (fd < 0)
		return errno;
	error = write_all(fd, content, entry->data_len);
	close(fd);
	return error;
}

static int write_beside(int dir, const char *name, const lp_put_entry *entry, const void *content)
{
	int error = write_new(dir, BESIDE, entry, content);

	if (!error && renameat(dir, BESIDE, dir, name) < 0)
		error = errno;
	if (error)
		unlinkat(dir, BESIDE, 0);
	return error;
}

static int put_entry(const place *at, const lp_put_entry *entry, const char *path, const void *content,
		     launch_failure *f)
{
	const char *name;
	int dir = parent_open(at->root, path, true, &name), error;

	if (dir < 0)
		return put_fail(f, errno, at, path);
	error = at->beside ? write_beside(dir, name, entry, content)
			   : write_new(dir, name, entry, content);
	close(dir);
	return error ? put_fail(f, error, at, path) : 0;
}

static int put_archive(const place *at, const void *data, size_t len, launch_failure *f)
{
	const lp_put_entry *entry;
	const char *path, *why = "";
	const void *content;
	size_t done = 0;
	int rc;

	while ((rc = lp_decode_put(data, len, &done, &entry, &path, &content, &why)) > 0)
		if (put_entry(at, entry, path, content, f) < 0)
			return -1;
	if (rc < 0)
		return launch_fail(f, EPROTO, at->step, "the files' archive is broken (%s)", why);
	return 0;
}

static int open_root(launch_failure *f)
{
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return root < 0 ? launch_fail(f, errno, "files", "cannot open \"/\"") : root;
}

static int map_and_put(const place *at, const lp_put *request, int fd, launch_failure *f)
{
	size_t len = (size_t)request->archive_bytes;
	struct stat st;
	void *data;
	int rc;

	if (!len)
		return 0;
	if (fstat(fd, &st) < 0 || (uint64_t)st.st_size < len)
		return launch_fail(f, EPROTO, at->step, "the files' archive is cut");
	data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return launch_fail(f, errno, at->step, "cannot map the files' archive");
	rc = put_archive(at, data, len, f);
	munmap(data, len);
	return rc;
}

int put_files(launch_box *box, const lp_put *request, int fd, launch_failure *f)
{
	place at = { .step = "put", .root = box->scratch, .beside = request->head.id != 0 };
	int rc;

	if (!request->from_root)
		return box->scratch < 0 ? launch_fail(f, EROFS, "put",
						      "the sandbox has no scratch space for files")
					: map_and_put(&at, request, fd, f);
	at.step = "files";
	at.root = open_root(f);
	rc = at.root < 0 ? -1 : map_and_put(&at, request, fd, f);
	if (at.root >= 0)
		close(at.root);
	return rc;
}

/* ---- Out --------------------------------------------------------------------------------------------- */

/* The directory of a path below the root; -1 with the failure. */
static int find_parent(const char *path, const char **name, launch_failure *f)
{
	const place at = { .step = "files" };
	int root = open_root(f), dir, error;

	if (root < 0)
		return -1;
	dir = parent_open(root, path, false, name);
	error = errno;
	close(root);
	if (dir >= 0)
		return dir;
	return error == ELOOP ? put_fail(f, error, &at, path)
			      : launch_fail(f, error, at.step, "cannot reach \"/%s\"", path);
}

/* A fifo or a device is not opened: looking at one may already do something.  -1 and errno. */
static int open_plain(int dir, const char *name)
{
	struct stat st;
	int fd, error;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		errno = S_ISLNK(st.st_mode) ? ELOOP : EINVAL;
		return -1;
	}
	fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || (fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))))
		return fd;
	error = EINVAL; /* it changed meanwhile */
	close(fd);
	errno = error;
	return -1;
}

int put_open(const char *path, launch_failure *f)
{
	const place at = { .step = "files" };
	const char *name;
	int dir = find_parent(path, &name, f), fd, error;

	if (dir < 0)
		return -1;
	fd = open_plain(dir, name);
	error = errno;
	close(dir);
	if (fd >= 0)
		return fd;
	if (error == ELOOP)
		return put_fail(f, error, &at, path);
	return launch_fail(f, error, at.step, error == EINVAL ? "\"/%s\" is neither a file nor a folder"
							      : "cannot read \"/%s\"", path);
}

/* ---- Gone -------------------------------------------------------------------------------------------- */

typedef struct entry {          /* what getdents64 answers */
	uint64_t inode, offset;
	uint16_t bytes;
	unsigned char type;
	char name[];
} entry;

static bool is_dot(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

static int remove_tree(int dir, const char *name, uint32_t depth, uint64_t until_us);

/* One piece of a directory's entries; how many are gone, or -errno. */
static int remove_some(int dir, uint32_t depth, uint64_t until_us, bool *end)
{
	_Alignas(8) char piece[1024];
	int gone = 0, error;
	long n, i;

	n = syscall(SYS_getdents64, dir, piece, sizeof piece);
	*end = n <= 0;
	if (n < 0)
		return -errno;
	for (i = 0; i < n; i += ((const entry *)(const void *)(piece + i))->bytes) {
		const entry *e = (const void *)(piece + i);

		if (is_dot(e->name))
			continue;
		error = remove_tree(dir, e->name, depth + 1, until_us);
		if (error)
			return -error;
		gone++;
	}
	return gone;
}

/* 0 or errno. */
static int empty_dir(int dir, uint32_t depth, uint64_t until_us)
{
	bool any = true, end;
	int n;

	while (any) { /* again from the beginning: what was removed may have hidden others */
		any = false;
		if (lseek(dir, 0, SEEK_SET) < 0)
			return errno;
		do {
			n = remove_some(dir, depth, until_us, &end);
			if (n < 0)
				return -n;
			any |= n > 0;
		} while (!end);
	}
	return 0;
}

static int open_dir(int dir, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dir, name, flags);

	if (fd < 0 && errno == EACCES && !is_link(dir, name) && fchmodat(dir, name, 0700, 0) == 0)
		fd = openat(dir, name, flags);
	return fd;
}

/* 0 or errno.  What is gone already is gone. */
static int remove_tree(int dir, const char *name, uint32_t depth, uint64_t until_us)
{
	struct stat st;
	int sub, error;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : errno;
	if (!S_ISDIR(st.st_mode))
		return unlinkat(dir, name, 0) == 0 || errno == ENOENT ? 0 : errno;
	if (wire_now_us() > until_us)
		return ETIMEDOUT;
	if (depth == REMOVE_DEPTH)
		return ENAMETOOLONG;
	sub = open_dir(dir, name);
	if (sub < 0)
		return errno == ENOENT ? 0 : errno;
	error = empty_dir(sub, depth, until_us);
	close(sub);
	if (error || unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return error;
	/* a place of the sandbox's stays, empty */
	return depth == 1 && (errno == EBUSY || errno == EROFS || errno == EACCES) ? 0 : errno;
}

int put_remove(const char *path, launch_failure *f)
{
	const char *name;
	struct stat st;
	int dir = find_parent(path, &name, f), error = 0;

	if (dir < 0)
		return -1;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		error = errno;
	else
		error = remove_tree(dir, name, 1, wire_now_us() + REMOVE_US);
	close(dir);
	if (error == ETIMEDOUT)
		return launch_fail(f, error, "files", "\"/%s\" is large, or filled again at once: some of it "
				   "is left", path);
	return error ? launch_fail(f, error, "files", "cannot remove \"/%s\"", path) : 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * put.c - files of the host into the scratch tmpfs.
 *
 * Every element of a path is opened without following links, one by one, and a file is replaced, never
 * written through: the guest may have been here before.  pid 1 has the guest's rights by then, so
 * nothing can be reached that the guest could not reach.
 */
#include "box.h"
#include "sys.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static int put_fail(launch_failure *f, int error, const char *path)
{
	return launch_fail(f, error, "put", "cannot make the file \"%s\"", path);
}

/* The directory that `path` lies in, made if absent; *name = its last element. */
static int parent_open(int scratch, const char *path, const char **name)
{
	int dir = fcntl(scratch, F_DUPFD_CLOEXEC, 3);
	char element[256];
	const char *end;

	for (*name = path; dir >= 0 && (end = strchr(*name, '/')); *name = end + 1) {
		size_t len = (size_t)(end - *name);
		int next = -1, error = ENAMETOOLONG;

		if (len < sizeof element) {
			memcpy(element, *name, len);
			element[len] = 0;
			if (mkdirat(dir, element, 0755) == 0 || errno == EEXIST)
				next = openat(dir, element, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			error = errno;
		}
		close(dir);
		errno = error;
		dir = next;
	}
	return dir;
}

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

static int put_entry(int scratch, const lp_put_entry *entry, const char *path, const void *content,
		     launch_failure *f)
{
	const char *name;
	int dir = parent_open(scratch, path, &name), fd = -1, error = 0;

	if (dir < 0)
		return put_fail(f, errno, path);
	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		error = errno;
	else if ((fd = openat(dir, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC,
			      (mode_t)(entry->mode & 0777))) < 0)
		error = errno;
	else
		error = write_all(fd, content, entry->data_len);
	if (fd >= 0)
		close(fd);
	close(dir);
	return error ? put_fail(f, error, path) : 0;
}

static int put_archive(int scratch, const void *data, size_t len, launch_failure *f)
{
	const lp_put_entry *entry;
	const char *path, *why = "";
	const void *content;
	size_t at = 0;
	int rc;

	while ((rc = lp_decode_put(data, len, &at, &entry, &path, &content, &why)) > 0)
		if (put_entry(scratch, entry, path, content, f) < 0)
			return -1;
	if (rc < 0)
		return launch_fail(f, EPROTO, "put", "the files' archive is broken (%s)", why);
	return 0;
}

int put_files(launch_box *box, const lp_put *request, int fd, launch_failure *f)
{
	size_t len = (size_t)request->archive_bytes;
	struct stat st;
	void *data;
	int rc;

	if (box->scratch < 0)
		return launch_fail(f, EROFS, "put", "the sandbox has no scratch space for files");
	if (!len)
		return 0;
	if (fstat(fd, &st) < 0 || (uint64_t)st.st_size < len)
		return launch_fail(f, EPROTO, "put", "the files' archive is cut");
	data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return launch_fail(f, errno, "put", "cannot map the files' archive");
	rc = put_archive(box->scratch, data, len, f);
	munmap(data, len);
	return rc;
}

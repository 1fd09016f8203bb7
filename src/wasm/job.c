/* SPDX-License-Identifier: MIT */
/* job.c - the worker's side of the memory file: what is to be run, and the world that it sees. */
#include "worker.h"
#include "build_id.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int job_map(worker *k, uint64_t at, uint64_t bytes)
{
	void *data = bytes < sizeof(job_head) ? MAP_FAILED :
		     mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, k->fd, (off_t)at);

	if (data == MAP_FAILED)
		return -1;
	k->at = at;
	k->data = data;
	k->head = data;
	return k->head->magic == JOB_MAGIC && k->head->bytes <= bytes && k->head->bytes >= sizeof(job_head) ? 0 : -1;
}

int job_open(worker *k, int fd)
{
	struct stat st;

	k->fd = fd;
	return fstat(fd, &st) < 0 || st.st_size < 0 ? -1 : job_map(k, 0, (uint64_t)st.st_size);
}

static int fail(worker *k, int error, const char *what, const char *path)
{
	if (error == -ENOSPC)
		snprintf(k->why, sizeof k->why, "the files given do not fit the limit of the disk");
	else
		snprintf(k->why, sizeof k->why, "%s \"%.200s\": %s", what, path, strerror(-error));
	return -1;
}

/* A file of the pack's, as it lies on the disk: pages are read when they are needed. */
static int mount_file(worker *k, const char *path, const char *name, size_t len)
{
	char file[300];
	struct stat st;
	void *data;
	int fd, rc;

	if (len == 0 || len > 200 || memchr(name, '/', len))
		return fail(k, -EINVAL, "cannot show", path);
	snprintf(file, sizeof file, JOB_PACK_DIR "/%.*s", (int)len, name);
	fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail(k, -errno, "cannot read", file);
	data = st.st_size ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
	close(fd);
	if (data == MAP_FAILED)
		return fail(k, -errno, "cannot map", file);
	rc = mem_add_file(k->fs, path, data, (uint64_t)st.st_size, MEM_READONLY | MEM_FREE | MEM_BORROWED | MEM_GIVEN);
	return rc ? fail(k, rc, "cannot show", path) : 0;
}

/* What is shown of the host's, at the same path. */
static int show_host(worker *k, const job_entry *e, const char *path)
{
	char at[JOB_PATH_MAX + sizeof JOB_HOST_DIR], *name = NULL;
	vfs_file *dir;
	int fd, rc;

	if (e->path_len >= JOB_PATH_MAX || path[0] != '/')
		return fail(k, -EINVAL, "cannot show", path);
	memcpy(at, JOB_HOST_DIR, sizeof JOB_HOST_DIR - 1);
	memcpy(at + sizeof JOB_HOST_DIR - 1, path, (size_t)e->path_len + 1);
	if (e->flags & JOB_ONE) {
		name = strrchr(at, '/');
		*name++ = '\0';
	}
	if (!k->host)
		k->host = host_new();
	if (!k->host)
		return fail(k, -ENOMEM, "cannot show", path);
	if (!(e->flags & JOB_READONLY)) {
		host_may_change(k->host);
		k->host_writes = true;
	}
	fd = open(at, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return fail(k, -errno, "cannot open", path);
	dir = host_dir(fd);
	rc = dir ? mem_mount(k->fs, path, host_vfs(k->host), dir, name) : -ENOMEM;
	return rc ? fail(k, rc, "cannot show", path) : 0;
}

static int lay_file(worker *k, const job_entry *e, const char *path, const uint8_t *data)
{
	uint32_t flags = 0;

	flags |= e->flags & JOB_READONLY ? MEM_READONLY : 0;
	flags |= e->flags & JOB_FREE ? MEM_FREE : 0;
	if (flags & MEM_READONLY)
		flags |= MEM_BORROWED; /* the job stays mapped */
	if ((flags & MEM_READONLY) && (flags & MEM_FREE))
		flags |= MEM_GIVEN; /* a branch's job has it, too */
	return mem_add_file(k->fs, path, data, e->data_len, flags);
}

static char *text(const uint8_t *data, uint64_t len)
{
	return strndup((const char *)data, len);
}

static int take(worker *k, const job_entry *e, const char *path, const uint8_t *data, uint32_t at[2])
{
	int rc = 0;

	switch (e->kind) {
	case JOB_ARG:
		k->argv[at[0]] = text(data, e->data_len);
		return k->argv[at[0]++] ? 0 : fail(k, -ENOMEM, "argument", "");
	case JOB_ENV:
		k->env[at[1]] = text(data, e->data_len);
		return k->env[at[1]++] ? 0 : fail(k, -ENOMEM, "environment", "");
	case JOB_DIR:
		rc = mem_add_dir(k->fs, path, (e->flags & JOB_READONLY ? MEM_READONLY : 0u) |
						     (e->flags & JOB_FREE ? MEM_FREE : 0u));
		break;
	case JOB_FILE:
		rc = lay_file(k, e, path, data);
		break;
	case JOB_MOUNT:
		return mount_file(k, path, (const char *)data, e->data_len);
	case JOB_HOST:
		return show_host(k, e, path);
	case JOB_MODULE_FILE:
		k->module_file = text(data, e->data_len);
		break;
	case JOB_MODULE:
	case JOB_SOURCE:
		k->module = data;
		k->module_len = e->data_len;
		break;
	default:
		rc = -EINVAL;
	}
	return rc ? fail(k, rc, "cannot make", path) : 0;
}

int job_lay_out(worker *k)
{
	const job_head *h = k->head;
	uint64_t at = sizeof *h;
	uint32_t counts[2] = { 0, 0 }, entries = 0;
	const job_entry *e;
	const char *path;
	const uint8_t *data;

	k->argv = calloc((size_t)h->entries + 1, sizeof *k->argv);
	k->env = calloc((size_t)h->entries + 1, sizeof *k->env);
	if (!k->argv || !k->env)
		return fail(k, -ENOMEM, "arguments", "");
	while (job_next(k->data, h->bytes, &at, &e, &path, &data)) {
		if (entries++ >= h->entries)
			return fail(k, -EINVAL, "the job is", "broken");
		if (take(k, e, path, data, counts) < 0)
			return -1;
	}
	if (at != h->bytes || entries != h->entries)
		return fail(k, -EINVAL, "the job is", "broken");
	return 0;
}

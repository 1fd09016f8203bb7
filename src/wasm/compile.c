/* SPDX-License-Identifier: MIT */
/*
 * compile.c - sb-wasmc: WebAssembly in, what sb-wasm loads out.
 *
 * usage: sb-wasmc IN.wasm OUT.cwasm    a module that is trusted: at set-up
 *        sb-wasmc --job FD             one that is not: started behind walls, for this module alone
 *        sb-wasmc --key
 */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sandbox/sandbox.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(const char *what, const char *path, const char *why)
{
	fprintf(stderr, "sb-wasmc: %s \"%s\": %s\n", what, path, why);
	return 1;
}

/* Beside the place first, then over it by rename: who has the old one mapped keeps it whole. */
static int write_file(const char *path, const void *data, size_t len)
{
	char beside[4096];
	const char *p = data;
	int fd, n = snprintf(beside, sizeof beside, "%s.%d.new", path, (int)getpid());

	if (n < 0 || (size_t)n >= sizeof beside)
		return fail("cannot write", path, "the path is too long");
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return fail("cannot write", beside, strerror(errno));
	while (len) {
		ssize_t done = write(fd, p, len);

		if (done <= 0)
			break;
		p += done;
		len -= (size_t)done;
	}
	if (len || fsync(fd) < 0 || close(fd) < 0 || rename(beside, path) < 0) {
		n = errno;
		unlink(beside);
		return fail("cannot write", path, strerror(n));
	}
	return 0;
}

static int compile_file(const char *in, const char *out)
{
	char why[ENGINE_WHY] = "";
	int fd = open(in, O_RDONLY | O_CLOEXEC), rc;
	engine *e = engine_new(false, ENGINE_STACK_BYTES);
	void *data, *made = NULL;
	size_t made_len = 0;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fail("cannot read", in, strerror(errno));
	data = st.st_size ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	close(fd);
	if (data == MAP_FAILED)
		return fail("cannot read", in, st.st_size ? strerror(errno) : "it is empty");
	if (!e || engine_compile(e, data, (size_t)st.st_size, &made, &made_len, why) < 0)
		return fail("cannot compile", in, e ? why : "no memory");
	rc = write_file(out, made, made_len);
	free(made);
	munmap(data, (size_t)st.st_size);
	return rc;
}

/* ---- Behind walls --------------------------------------------------------------------------------- */

static int put_all(int fd, const void *data, size_t len, uint64_t at)
{
	const char *p = data;

	while (len) {
		ssize_t n = pwrite(fd, p, len, (off_t)at);

		if (n <= 0)
			return -1;
		p += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

/* A module may be made to need any amount of memory. */
static void hold_memory(uint64_t bytes)
{
	const struct rlimit limit = { .rlim_cur = bytes, .rlim_max = bytes };

	if (bytes != SB_UNLIMITED && setrlimit(RLIMIT_DATA, &limit) < 0)
		_exit(1);
}

static int compile_job(int fd)
{
	static worker k;
	result_head r = { .magic = JOB_RESULT_MAGIC, .kind = RESULT_REFUSED, .bytes = sizeof r };
	job_entry entry = { .kind = JOB_MODULE };
	uint64_t begin;
	void *made = NULL;
	size_t len = 0;

	if (job_open(&k, fd) < 0)
		return JOB_NOT_MINE;
	hold_memory(k.head->memory_bytes);
	begin = (k.head->bytes + JOB_ALIGN - 1) / JOB_ALIGN * JOB_ALIGN;
	k.fs = mem_new(0, 0);
	k.e = engine_new(!(k.head->flags & JOB_FOR_FILE), ENGINE_STACK_BYTES);
	if (!k.fs || !k.e || job_lay_out(&k) < 0 || !k.module) {
		snprintf(r.why, sizeof r.why, "%s", k.why[0] ? k.why : "no memory");
	} else if (engine_compile(k.e, k.module, k.module_len, &made, &len, r.why) == 0) {
		entry.data_len = len;
		r.kind = RESULT_EXITED;
		r.entries = 1;
		/* the path is empty: its NUL and the padding behind it are zeros */
		r.bytes = sizeof r + sizeof entry + JOB_ALIGN + (len + JOB_ALIGN - 1) / JOB_ALIGN * JOB_ALIGN;
		if (ftruncate(fd, (off_t)(begin + r.bytes)) < 0 ||
		    put_all(fd, &entry, sizeof entry, begin + sizeof r) < 0 ||
		    put_all(fd, made, len, begin + sizeof r + sizeof entry + JOB_ALIGN) < 0)
			return 1;
	}
	return put_all(fd, &r, sizeof r, begin) < 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--key") == 0)
		return puts(engine_key()) < 0;
	if (argc == 3 && strcmp(argv[1], "--job") == 0)
		return compile_job((int)strtol(argv[2], NULL, 10));
	if (argc == 3)
		return compile_file(argv[1], argv[2]);
	fputs("usage: sb-wasmc IN.wasm OUT.cwasm\n", stderr);
	return 2;
}

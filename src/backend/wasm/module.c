/* SPDX-License-Identifier: MIT */
/*
 * module.c - the module of a command: sb_wasm_options.module.
 *
 * The file is read here, with the rights of whoever calls us, as a script's file is by the command; a guest
 * never sees it.  Its bytes then go the way that code in the language "wasm" goes (compile.c).
 */
#include "wasm.h"
#include "../../core/core.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODULE_MAX ((size_t)16 << 20) /* as much as code may be */

const char *module_path(const sb_box_request *request)
{
	const sb_wasm_options *options = request->options;

	return !request->pack && options ? options->module : NULL;
}

static int unreadable(const char *path, int why, sb_error *err)
{
	return error_errno(err, error_code_of_errno(why), why, "module", "cannot read the module \"%.200s\"", path);
}

/* Not blocking: a pipe without a writer would hold us before any limit of the run begins. */
static int open_file(const char *path, size_t *size, sb_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st = { 0 };

	if (fd < 0 || fstat(fd, &st) != 0) {
		int why = errno;

		fd_close(&fd);
		return unreadable(path, why, err);
	}
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size <= MODULE_MAX) {
		*size = (size_t)st.st_size;
		return fd;
	}
	fd_close(&fd);
	if (S_ISREG(st.st_mode))
		return error_set(err, SB_ERR_INVALID_SPEC, "module",
				 "the module \"%.200s\" has %lld bytes; %zu are the most", path,
				 (long long)st.st_size, MODULE_MAX);
	return error_set(err, S_ISDIR(st.st_mode) ? SB_ERR_IS_DIR : SB_ERR_INVALID_SPEC, "module",
			 "the module \"%.200s\" is no file, but %s; name a file", path,
			 S_ISDIR(st.st_mode)  ? "a directory" :
			 S_ISFIFO(st.st_mode) ? "a pipe" :
						"a device or a socket");
}

/* Until `size` bytes are there, or the file ends: one that is cut meanwhile is short. */
static int read_some(const char *path, int fd, void *out, size_t size, size_t *len, sb_error *err)
{
	for (*len = 0; *len < size;) {
		ssize_t n = read(fd, (char *)out + *len, size - *len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return unreadable(path, errno, err);
		if (n == 0)
			break;
		*len += (size_t)n;
	}
	return 0;
}

int module_check(const char *path, sb_error *err)
{
	char head[COMPILE_HEAD] = { 0 };
	size_t size = 0, len = 0;
	int fd FD_AUTO = open_file(path, &size, err);
	int rc = fd < 0 ? fd : read_some(path, fd, head, sizeof head, &len, err);

	return rc ? rc : compile_check(head, len, err);
}

int module_add(sb_state *state, const sb_call *call, const char *path, wasm_box *box, sb_error *err)
{
	size_t size = 0, len = 0;
	int fd FD_AUTO = open_file(path, &size, err);
	void *data = fd < 0 ? NULL : malloc(size ? size : 1);
	int rc = fd < 0 ? fd : !data ? error_no_memory(err, "module") : read_some(path, fd, data, size, &len, err);

	if (!rc)
		rc = compile_add(state, call, data, len, NULL, box, err);
	box->has_code = !rc;
	free(data);
	return rc;
}

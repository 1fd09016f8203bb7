/* SPDX-License-Identifier: MIT */
/* source.c - where code comes from, and in which language it is. */
#include "cli.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { PIPE_STEP_MS = 50, PIPE_STEPS = 40 }; /* for a writer to come: 2 s */

/* ---- Reading ------------------------------------------------------------------------------ */

static int open_failed(const char *path, int why, sb_error *err)
{
	int code = why == ENOENT || why == ENOTDIR ? SB_ERR_NOT_FOUND
		   : why == EACCES || why == EPERM ? SB_ERR_FORBIDDEN
						   : SB_ERR_IO;

	error_fill(err, code, "file", "cannot read \"%.160s\": %s", path,
		   units_errno_text(why, (char[UNITS_TEXT]){ 0 }));
	err->os_errno = why;
	return code;
}

/* A device that is neither a terminal nor the null device: it has no end, or no beginning. */
static bool is_device(int fd, const struct stat *st)
{
	if (S_ISBLK(st->st_mode))
		return true;
	return S_ISCHR(st->st_mode) && st->st_rdev != makedev(1, 3) && !isatty(fd);
}

/* Not blocking, or a pipe without a writer would hold us before any limit of the run begins; what
 * is no pipe may block then as it likes. */
static int source_open(const char *path, bool *pipe, sb_error *err)
{
	struct stat st;

	*pipe = false;
	if (strcmp(path, "-") == 0)
		return STDIN_FILENO;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return open_failed(path, errno, err);
	if (fstat(fd, &st) < 0) {
		int why = errno;

		close(fd);
		return open_failed(path, why, err);
	}
	if (S_ISDIR(st.st_mode) || is_device(fd, &st)) {
		close(fd);
		return error_fill(err, S_ISDIR(st.st_mode) ? SB_ERR_IS_DIR : SB_ERR_INVALID, "file",
				  "\"%.160s\" is a %s: name a file", path,
				  S_ISDIR(st.st_mode) ? "folder" : "device");
	}
	*pipe = S_ISFIFO(st.st_mode);
	if (S_ISCHR(st.st_mode)) /* a terminal; the open file is ours alone */
		fcntl(fd, F_SETFL, O_RDONLY);
	return fd;
}

/* Nothing came from a pipe: true = there is more to wait for.  A writer that is there may take all
 * its time; for one to come there is a moment. */
static bool pipe_wait(int fd, ssize_t n, int *patience)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };

	if (n < 0) /* EAGAIN: a writer is there */
		return poll(&ready, 1, -1) >= 0 || errno == EINTR;
	if (*patience == 0 || (poll(&ready, 1, PIPE_STEP_MS) > 0 && (ready.revents & POLLHUP) != 0))
		return false;
	*patience -= 1;
	return true;
}

/* Room for at least `want` bytes more; false = no memory. */
static bool grow(char **data, size_t *cap, size_t len, size_t want)
{
	if (*cap - len >= want)
		return true;
	size_t bigger = *cap == 0 ? 16384 : *cap * 2;
	char *moved = realloc(*data, bigger);
	if (moved == NULL)
		return false;
	*data = moved;
	*cap = bigger;
	return true;
}

/* Into *bytes, to the end. */
static int read_all(const char *path, int fd, bool pipe, size_t max, char **bytes, size_t *used,
		    sb_error *err)
{
	int patience = PIPE_STEPS;
	size_t cap = 0;

	for (;;) {
		if (!grow(bytes, &cap, *used, 4096))
			return error_fill(err, SB_ERR_NO_MEMORY, "file",
					  "no memory to read \"%.160s\"", path);
		ssize_t n = read(fd, *bytes + *used, cap - *used);
		if (n < 0 && errno == EINTR)
			continue;
		if (pipe && ((n < 0 && errno == EAGAIN) || (n == 0 && *used == 0)) &&
		    pipe_wait(fd, n, &patience))
			continue;
		if (n < 0)
			return open_failed(path, errno, err);
		if (n == 0 && pipe && patience == 0 && *used == 0)
			return error_fill(err, SB_ERR_IO, "file",
					  "nobody writes to the pipe \"%.160s\"; start its writer "
					  "first, or name a file",
					  path);
		if (n == 0)
			return 0;
		*used += (size_t)n;
		if (*used > max)
			return error_fill(
				err, SB_ERR_INVALID, "file",
				"\"%.160s\" is larger than %zu MiB, the most that is taken in",
				path, max >> 20);
	}
}

int source_read(const char *path, size_t max, char **data, size_t *len, sb_error *err)
{
	char *bytes = NULL;
	size_t used = 0;
	bool pipe;
	int fd = source_open(path, &pipe, err);

	if (fd < 0)
		return fd;
	int rc = read_all(path, fd, pipe, max, &bytes, &used, err);
	if (fd != STDIN_FILENO)
		close(fd);
	if (rc < 0) {
		free(bytes);
		return rc;
	}
	*data = bytes;
	*len = used;
	return 0;
}

/* ---- Language ----------------------------------------------------------------------------- */

static bool list_has(const char *const *list, const char *word, size_t len)
{
	for (; list != NULL && *list != NULL; list++)
		if (strlen(*list) == len && memcmp(*list, word, len) == 0)
			return true;
	return false;
}

static bool ends_with(const char *text, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len > n && memcmp(text + len - n, end, n) == 0;
}

static const char *by_extension(const char *path)
{
	size_t len = strlen(path);

	for (const sb_pack *const *pack = sb_packs_builtin(); *pack != NULL; pack++)
		for (const char *const *e = (*pack)->extensions; e != NULL && *e != NULL; e++)
			if (ends_with(path, len, *e))
				return (*pack)->name;
	return NULL;
}

/* The pack that goes by this interpreter's name: its own, an alias, a program it looks for. */
static const char *by_interpreter(const char *name, size_t len)
{
	for (const sb_pack *const *pack = sb_packs_builtin(); *pack != NULL; pack++) {
		if (strlen((*pack)->name) == len && memcmp((*pack)->name, name, len) == 0)
			return (*pack)->name;
		if (list_has((*pack)->aliases, name, len))
			return (*pack)->name;
		for (const sb_pack_way *const *way = (*pack)->ways; way != NULL && *way != NULL;
		     way++)
			if (list_has((*way)->find, name, len))
				return (*pack)->name;
	}
	return NULL;
}

/* The next word of a "#!" line: from *at to before a blank or `end`. */
static size_t next_word(const char **at, const char *end)
{
	const char *p = *at;

	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	*at = p;
	while (p < end && *p != ' ' && *p != '\t' && *p != '\r')
		p++;
	return (size_t)(p - *at);
}

static void base_name(const char **at, size_t *len)
{
	for (size_t i = *len; i > 0; i--)
		if ((*at)[i - 1] == '/') {
			*at += i;
			*len -= i;
			return;
		}
}

static const char *by_shebang(const char *code, size_t len)
{
	if (len < 3 || memcmp(code, "#!", 2) != 0)
		return NULL;
	const char *line = memchr(code, '\n', len);
	const char *end = line != NULL ? line : code + len;
	const char *at = code + 2;
	size_t n = next_word(&at, end);
	base_name(&at, &n);
	if (n == 3 && memcmp(at, "env", 3) == 0) /* its options and NAME=VALUE are not the name */
		do {
			at += n;
			n = next_word(&at, end);
		} while (n > 0 && (*at == '-' || memchr(at, '=', n) != NULL));
	base_name(&at, &n);
	const char *found = by_interpreter(at, n);
	while (found == NULL && n > 1 &&
	       ((at[n - 1] >= '0' && at[n - 1] <= '9') || at[n - 1] == '.'))
		found = by_interpreter(at, --n); /* python3.11 */
	return found;
}

const char *source_language(const char *path, const char *code, size_t len)
{
	const char *found = by_extension(path);

	return found != NULL ? found : by_shebang(code, len);
}

void source_languages(cli_text *text)
{
	for (const sb_pack *const *pack = sb_packs_builtin(); *pack != NULL; pack++)
		text_add_fmt(text, "%s%s", pack == sb_packs_builtin() ? "" : ", ", (*pack)->name);
}

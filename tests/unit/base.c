/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../src/base/base.h"

static void error_has_code_kind_and_line(void **state)
{
	sb_error err;

	(void)state;
	assert_int_equal(error_set(&err, SB_ERR_NOT_FOUND, "spawn", "no \"%s\"\n\x1b[0m \xff", "x"),
			 SB_ERR_NOT_FOUND);
	assert_int_equal(err.code, -200);
	assert_int_equal(err.kind, SB_KIND_NOT_FOUND);
	assert_int_equal(err.os_errno, 0);
	assert_string_equal(err.where, "spawn");
	assert_string_equal(err.message, "no \"x\"??[0m ?");
	assert_int_equal(error_set(NULL, SB_ERR_IO, "x", "y"), SB_ERR_IO);
	assert_int_equal(sizeof(sb_error), 512);
	errno = EDOM;
	error_errno(&err, SB_ERR_IO, ENOENT, "open", "cannot open \"%s\"", "/a");
	assert_int_equal(errno, EDOM);
	assert_int_equal(err.os_errno, ENOENT);
	assert_string_equal(err.message, "cannot open \"/a\": no such file or directory");
	error_errno(&err, SB_ERR_IO, 99999, "open", "cannot open");
	assert_non_null(strchr(err.message, ':'));
}

static void error_is_cut_at_a_character(void **state)
{
	char text[1200];
	sb_error err;

	(void)state;
	for (size_t shift = 0; shift < 4; shift++) {
		memset(text, 'a', shift);
		for (size_t i = shift; i + 4 < sizeof text; i += 4)
			memcpy(text + i, "\xf0\x9f\x98\x80", 5);
		error_set(&err, SB_ERR_IO, text, "%s", text);
		assert_true(strlen(err.message) < sizeof err.message);
		assert_true(utf8_valid(err.message, strlen(err.message)));
		assert_null(strchr(err.message, '?'));
		assert_non_null(strstr(err.message, "..."));
		assert_true(strlen(err.message) > sizeof err.message - 12);
		error_set(&err, SB_ERR_IO, text, "\"%s\" is too long", text);
		assert_string_equal(err.message + strlen(err.message) - 13, "\" is too long");
		assert_true(utf8_valid(err.message, strlen(err.message)));
		error_errno(&err, SB_ERR_IO, EACCES, "w", "%s", text);
		assert_non_null(strstr(err.message, "..."));
		assert_non_null(strstr(err.message, ": permission denied"));
		assert_true(utf8_valid(err.message, strlen(err.message)));
		error_prefix(&err, "%s: ", text);
		assert_true(utf8_valid(err.message, strlen(err.message)));
		assert_int_equal(err.code, SB_ERR_IO);
	}
}

static void error_prefix_keeps_the_remedy(void **state)
{
	sb_error err;

	(void)state;
	error_set(&err, SB_ERR_INVALID_PATH, "path", "bad \"%s\"; mend it", "p");
	error_prefix(&err, "workspace: ");
	assert_string_equal(err.message, "workspace: bad \"p\"; mend it");
	assert_int_equal(err.code, SB_ERR_INVALID_PATH);
	assert_string_equal(err.where, "path");
	error_prefix(&err, "%0500d: ", 7);
	assert_non_null(strstr(err.message, "mend it"));
	error_prefix(NULL, "x");
}

static void errno_becomes_a_code(void **state)
{
	static const struct {
		int os, code;
	} rows[] = {
		{ ENOENT, SB_ERR_NOT_FOUND }, { EACCES, SB_ERR_FORBIDDEN },
		{ EPERM, SB_ERR_FORBIDDEN },  { ENOTDIR, SB_ERR_NOT_DIR },
		{ EISDIR, SB_ERR_IS_DIR },    { ENOMEM, SB_ERR_NO_MEMORY },
		{ EMFILE, SB_ERR_IO },
	};

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++)
		unit_row(i, error_code_of_errno(rows[i].os) == rows[i].code);
}

static void buf_has_a_maximum(void **state)
{
	buf b;
	size_t len;
	char *text;

	(void)state;
	buf_init(&b, 10);
	buf_add_str(&b, "12345");
	buf_add_fmt(&b, "%d", 67890);
	assert_int_equal(b.failed, 0);
	assert_string_equal(b.data, "1234567890");
	buf_add_char(&b, 'x');
	assert_int_equal(b.failed, SB_ERR_INVALID);
	buf_add_str(&b, "");
	assert_int_equal(b.len, 10);
	assert_null(buf_take(&b, &len));
	assert_int_equal(len, 0);
	text = buf_take(&b, &len); /* fresh again, and empty */
	assert_string_equal(text, "");
	free(text);
	for (int i = 0; i < 10; i++)
		buf_add_fmt(&b, "%c", 'a' + i);
	text = buf_take(&b, &len);
	assert_int_equal(len, 10);
	assert_string_equal(text, "abcdefghij");
	free(text);
	buf_init(&b, SIZE_MAX);
	buf_add(&b, "x", SIZE_MAX / 2);
	assert_int_equal(b.failed, SB_ERR_INVALID);
	buf_release(&b);
}

static void strv_owns_its_strings(void **state)
{
	static const char *const more[] = { "c", "d", NULL };
	strv v = { 0 };
	char **list = strv_take(&v);

	(void)state;
	assert_non_null(list);
	assert_null(list[0]);
	strv_free_list(list);
	assert_int_equal(strv_add(&v, "a"), 0);
	assert_int_equal(strv_add_len(&v, "bxx", 1), 0);
	assert_int_equal(strv_add_all(&v, more), 0);
	assert_int_equal(strv_add_all(&v, NULL), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(strv_add_fmt(&v, "n=%d", i), 0);
	assert_int_equal(strv_count((const char *const *)v.at), 104);
	assert_true(strv_has((const char *const *)v.at, "b"));
	assert_true(strv_has((const char *const *)v.at, "n=99"));
	assert_false(strv_has((const char *const *)v.at, "bxx"));
	assert_false(strv_has(NULL, "b"));
	assert_int_equal(strv_count(NULL), 0);
	strv_release(&v);
	strv_free_list(NULL);
}

static void utf8_is_strict(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		size_t first;
	} rows[] = {
		{ "a", 1, 1 },
		{ "\0", 1, 1 },
		{ "\x7f", 1, 1 },
		{ "\x80", 1, 0 },
		{ "\xc1\xbf", 2, 0 },
		{ "\xc2\x80", 2, 2 },
		{ "\xc2", 1, 0 },
		{ "\xe0\x9f\xbf", 3, 0 },
		{ "\xe0\xa0\x80", 3, 3 },
		{ "\xed\x9f\xbf", 3, 3 },
		{ "\xed\xa0\x80", 3, 0 },
		{ "\xee\x80\x80", 3, 3 },
		{ "\xe2\x82", 2, 0 },
		{ "\xe2\x82\x41", 3, 0 },
		{ "\xf0\x8f\xbf\xbf", 4, 0 },
		{ "\xf0\x90\x80\x80", 4, 4 },
		{ "\xf4\x8f\xbf\xbf", 4, 4 },
		{ "\xf4\x90\x80\x80", 4, 0 },
		{ "\xf5\x80\x80\x80", 4, 0 },
		{ "\xf0\x9f\x98", 3, 0 },
		{ "", 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		unit_row(i, utf8_sequence(rows[i].text, rows[i].len) == rows[i].first);
		unit_row(i,
			 utf8_valid(rows[i].text, rows[i].len) == (rows[i].first == rows[i].len));
	}
}

/* A line that quotes what others chose stays one line, and moves nothing on a terminal. */
static void plain_text_is_obeyed_by_nobody(void **state)
{
	static const char *const rows[][2] = {
		{ "", "" },
		{ "caf\xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x98\x80" },
		{ "a\nb\tc\x1b[31md\x7f", "a?b?c?[31md?" },
		{ "\xc2\x9b" "31m \x9b" "31m \xc2\x85", "?31m ?31m ?" },
		{ "\xe2\x80\xaertl\xe2\x81\xa6\xe2\x80\xa8\xef\xbb\xbf\xd8\x9c", "?rtl????" },
		{ "\xff\xfe \xe2\x80", "?? ??" },
		{ "\xe2\x80\x93\xe2\x80\xa2\xc2\xa0", "\xe2\x80\x93\xe2\x80\xa2\xc2\xa0" },
		/* U+2060 to U+206F, and the digits and signs before and behind them */
		{ "\xe2\x81\x9e\xe2\x81\xa0\xe2\x81\xaf\xe2\x81\xb0\xe2\x81\xbf", "\xe2\x81\x9e??\xe2\x81\xb0\xe2\x81\xbf" },
	};

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		char text[64];
		sb_error err;

		snprintf(text, sizeof text, "%s", rows[i][0]);
		unit_row(i, utf8_make_plain(text) == strlen(rows[i][1]));
		unit_row(i, strcmp(text, rows[i][1]) == 0);
		error_set(&err, SB_ERR_INVALID, "x", "%s", rows[i][0]);
		unit_row(i, strcmp(err.message, rows[i][1]) == 0);
	}
}

static void deadlines_saturate(void **state)
{
	(void)state;
	char text[32];

	assert_string_equal(clock_text(1500, text), "1500 ms");
	assert_string_equal(clock_text(10000, text), "10 s");
	assert_string_equal(size_text(1000, text), "1000 bytes");
	assert_string_equal(size_text((uint64_t)64 << 20, text), "64 MiB");
	assert_string_equal(size_text(SB_UNLIMITED - 1, text), "18446744073709551614 bytes");
	assert_true(clock_deadline_ns(5, SB_UNLIMITED) == SB_UNLIMITED);
	assert_true(clock_deadline_ns(5, 2) == 2000005);
	assert_true(clock_deadline_ns(UINT64_MAX - 10, 1) == SB_UNLIMITED);
	assert_true(clock_deadline_ns(0, INT64_MAX) == SB_UNLIMITED);
	assert_int_equal(clock_poll_ms(0, SB_UNLIMITED), -1);
	assert_int_equal(clock_poll_ms(7, 7), 0);
	assert_int_equal(clock_poll_ms(9, 7), 0);
	assert_int_equal(clock_poll_ms(0, 1), 1);
	assert_int_equal(clock_poll_ms(0, 1000000), 1);
	assert_int_equal(clock_poll_ms(0, 1000001), 2);
	assert_int_equal(clock_poll_ms(0, SB_UNLIMITED - 1), INT_MAX);
	assert_true(clock_now_ns() > 0 && clock_unix_ns() > 0);
}

static void paths_are_cleaned(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "/", "/" },
		{ "//", "/" },
		{ "/a", "/a" },
		{ "/a/", "/a" },
		{ "/a//b/./c/.", "/a/b/c" },
		{ "/./", "/" },
		{ "/...", "/..." },
		{ "/a/..b", "/a/..b" },
		{ "/a b\n", "/a b\n" },
		{ "", NULL },
		{ "a", NULL },
		{ "./a", NULL },
		{ "/..", NULL },
		{ "/a/../b", NULL },
		{ "/a/..", NULL },
		{ NULL, NULL },
		{ "~", NULL },
	};
	char *out, *again, *longest = malloc(PATH_MAX + 1);

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		sb_error err = { 0 };

		out = NULL;
		if (!rows[i].out) {
			unit_row(i, path_clean_absolute(rows[i].in, &out, &err) ==
					    SB_ERR_INVALID_PATH);
			unit_row(i, out == NULL && err.message[0] != '\0');
			continue;
		}
		unit_row(i, path_clean_absolute(rows[i].in, &out, &err) == 0);
		unit_row(i, strcmp(out, rows[i].out) == 0);
		unit_row(i, path_is_clean_absolute(out));
		unit_row(i, path_is_clean_absolute(rows[i].in) == (strcmp(rows[i].in, out) == 0));
		unit_row(i, path_clean_absolute(out, &again, NULL) == 0 && strcmp(out, again) == 0);
		free(again);
		free(out);
	}
	memset(longest, 'a', PATH_MAX);
	longest[0] = '/';
	longest[PATH_MAX] = '\0';
	assert_int_equal(path_clean_absolute(longest, &out, NULL), SB_ERR_INVALID_PATH);
	longest[PATH_MAX - 1] = '\0';
	assert_int_equal(path_clean_absolute(longest, &out, NULL), SB_ERR_INVALID_PATH);
	for (size_t i = 0; i < PATH_MAX - 1; i += 256) /* no name of more than 255 bytes */
		longest[i] = '/';
	assert_int_equal(path_clean_absolute(longest, &out, NULL), 0);
	free(out);
	free(longest);
}

static void paths_are_compared_by_element(void **state)
{
	static const struct {
		const char *path, *dir;
		bool within;
	} rows[] = {
		{ "/a/b", "/a", true },	 { "/a", "/a", true }, { "/ab", "/a", false },
		{ "/a", "/a/b", false }, { "/x", "/", true },  { "/", "/", true },
		{ "/a.b", "/a", false },
	};
	char *joined;

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++)
		unit_row(i, path_is_within(rows[i].path, rows[i].dir) == rows[i].within);
	assert_string_equal(path_base("/a/b"), "b");
	assert_string_equal(path_base("b"), "b");
	assert_string_equal(path_base("/a/"), "");
	assert_int_equal(path_join("/", "a", &joined), 0);
	assert_string_equal(joined, "/a");
	free(joined);
	assert_int_equal(path_join("/a", "b/c", &joined), 0);
	assert_string_equal(joined, "/a/b/c");
	free(joined);
	assert_int_equal(path_join("/a", "", &joined), 0);
	assert_string_equal(joined, "/a");
	free(joined);
}

static void ids_are_random(void **state)
{
	char a[64], b[64];

	(void)state;
	assert_int_equal(random_id("run_", a, sizeof a, NULL), 0);
	assert_int_equal(random_id("run_", b, sizeof b, NULL), 0);
	assert_int_equal(strlen(a), 36);
	assert_int_equal(strspn(a + 4, "0123456789abcdef"), 32);
	assert_string_not_equal(a, b);
	assert_int_equal(random_id("run_", a, 36, NULL), SB_ERR_INVALID);
	assert_int_equal(random_id("run_", a, 37, NULL), 0);
}

static void descriptors_close_on_exec(void **state)
{
	int pair[2], fd = fd_memfd("unit", "hello", 5);
	char text[8] = { 0 };
	buf b;

	(void)state;
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(write(fd, "x", 1), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(read(fd, text, sizeof text), 5);
	assert_string_equal(text, "hello");
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	buf_init(&b, 100);
	assert_int_equal(fd_read_file(fd, 4, &b), -EFBIG);
	buf_release(&b);
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(fd_read_file(fd, 5, &b), 0);
	assert_string_equal(b.data, "hello");
	buf_release(&b);
	fd_close(&fd);
	assert_int_equal(fd, -1);
	fd_close(&fd);
	assert_int_equal(fd_pair(SOCK_SEQPACKET, pair), 0);
	assert_true(fcntl(pair[0], F_GETFD) & fcntl(pair[1], F_GETFD) & FD_CLOEXEC);
	assert_int_equal(fd_nonblock(pair[0]), 0);
	assert_true(fcntl(pair[0], F_GETFL) & O_NONBLOCK);
	fd_close(&pair[0]);
	errno = EDOM;
	fd_close(&pair[1]);
	assert_int_equal(errno, EDOM);
	assert_int_equal(fd_write_all(-1, "x", 1), -EBADF);
	assert_int_equal(fd_nonblock(-1), -EBADF);
}

/* A file size limit is an error, never the end of the process that the library lives in. */
static void no_signal_for_a_file_too_large(void **state)
{
	const struct rlimit least = { 4, RLIM_INFINITY };
	struct rlimit old;
	sigset_t pending;
	int fd;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &least), 0);
	fd = fd_memfd("test", "12345", 5);
	assert_int_equal(sigpending(&pending), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(fd, -EFBIG);
	assert_int_equal(sigismember(&pending, SIGXFSZ), 0);
	fd = fd_memfd("test", "12345", 5);
	assert_true(fd >= 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(error_has_code_kind_and_line),
		cmocka_unit_test(error_is_cut_at_a_character),
		cmocka_unit_test(error_prefix_keeps_the_remedy),
		cmocka_unit_test(errno_becomes_a_code),
		cmocka_unit_test(buf_has_a_maximum),
		cmocka_unit_test(strv_owns_its_strings),
		cmocka_unit_test(utf8_is_strict),
		cmocka_unit_test(plain_text_is_obeyed_by_nobody),
		cmocka_unit_test(no_signal_for_a_file_too_large),
		cmocka_unit_test(deadlines_saturate),
		cmocka_unit_test(paths_are_cleaned),
		cmocka_unit_test(paths_are_compared_by_element),
		cmocka_unit_test(ids_are_random),
		cmocka_unit_test(descriptors_close_on_exec),
	};

	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}

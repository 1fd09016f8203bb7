/* SPDX-License-Identifier: MIT */
/* cli_source.c - the language of a file; reading code; and where the files of a result are written. */
#include "unit.h"

#include "../../src/cli/cli.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void languages(void **state)
{
	static const struct { const char *path, *code, *language; } rows[] = {
		{ "a.py", "", "python" },
		{ "/x/y.z/a.mjs", "", "js" },
		{ "a.js", "#!/usr/bin/python3\n", "js" }, /* the name decides first */
		{ "run.sh", "", "bash" },
		{ "a.lua", "", "lua" },
		{ "a.rb", "", "ruby" },
		{ "a.pl", "", "perl" },
		{ "tool", "#!/usr/bin/env python3\nprint(1)\n", "python" },
		{ "tool", "#!/usr/bin/python3.11 -B\n", "python" },
		{ "tool", "#! /bin/sh\n", "bash" },
		{ "tool", "#!/usr/bin/env -S A=1 node --no-warnings\n", "js" },
		{ "tool", "#!/usr/bin/env\n", NULL },
		{ "tool", "#!/opt/bin/perl5.36\r\n", "perl" },
		{ "tool", "#!/usr/bin/awk -f\n", NULL },
		{ "tool", "#!", NULL },
		{ "tool", "#!python", "python" }, /* no end of line */
		{ "tool", "print(1)\n#!/usr/bin/python3\n", NULL },
		{ "tool", "", NULL },
		{ "/etc/passwd", "root:x:0:0\n", NULL },
		{ ".py", "", NULL }, /* a name, not an extension */
		{ "py", "", NULL },
		{ "a.py.txt", "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		const char *found = source_language(rows[i].path, rows[i].code, strlen(rows[i].code));
		if ((found == NULL) != (rows[i].language == NULL) ||
		    (found != NULL && strcmp(found, rows[i].language) != 0))
			fail_msg("row %zu: %s: %s", i, rows[i].path, found == NULL ? "none" : found);
	}
}

/* A folder of its own for each test. */
static int make_folder(void **state)
{
	char path[] = "/tmp/cli-source.XXXXXX";

	*state = mkdtemp(path) != NULL ? strdup(path) : NULL;
	return *state == NULL || chdir(*state) < 0;
}

static int remove_folder(void **state)
{
	static const char *const left[] = { "a", "big", "out/a/b/f.txt", "out/kept", "out/hard",
					    "out/link", "out/d", "secret", "new/x", "plain",
					    "fifo", "out/b", "out/c" };
	static const char *const folders[] = { "out/a/b", "out/a", "out", "elsewhere", "new" };

	for (size_t i = 0; i < UNIT_LEN(left); i++)
		unlink(left[i]);
	for (size_t i = 0; i < UNIT_LEN(folders); i++)
		rmdir(folders[i]);
	int rc = chdir("/") < 0 || rmdir(*state) < 0; /* nothing else may be left */
	free(*state);
	return rc;
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void expect(const char *path, const char *text)
{
	char buf[64] = "";
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_true(read(fd, buf, sizeof buf - 1) >= 0);
	close(fd);
	assert_string_equal(buf, text);
}

static void reading(void **state)
{
	char *data = NULL;
	size_t len = 0;
	sb_error err;

	(void)state;
	put("a", "print(1)\n");
	assert_int_equal(source_read("a", 9, &data, &len, &err), 0);
	assert_int_equal(len, 9);
	assert_memory_equal(data, "print(1)\n", 9);
	free(data);
	assert_int_equal(source_read("a", 8, &data, &len, &err), SB_ERR_INVALID);
	assert_int_equal(source_read("nope", 9, &data, &len, &err), SB_ERR_NOT_FOUND);
	assert_non_null(strstr(err.message, "\"nope\""));
	assert_int_equal(source_read(".", 9, &data, &len, &err), SB_ERR_IS_DIR);
	put("big", "");
	assert_int_equal(truncate("big", 200000), 0);
	assert_int_equal(source_read("big", 1 << 20, &data, &len, &err), 0);
	assert_int_equal(len, 200000);
	free(data);
}

static void *write_late(void *path)
{
	struct timespec moment = { .tv_nsec = 120 * 1000000 };

	nanosleep(&moment, NULL);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		nanosleep(&moment, NULL); /* there, and silent */
		(void)!write(fd, "later", 5);
		close(fd);
	}
	return NULL;
}

/* A pipe is read to its end; one that nobody writes to does not hold us. */
static void pipes(void **state)
{
	char *data = NULL, path[32];
	size_t len = 1;
	pthread_t writer;
	sb_error err;
	int fds[2];

	(void)state;
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(source_read("fifo", 9, &data, &len, &err), SB_ERR_IO);
	assert_non_null(strstr(err.message, "\"fifo\""));
	assert_int_equal(pthread_create(&writer, NULL, write_late, (void *)"fifo"), 0);
	assert_int_equal(source_read("fifo", 9, &data, &len, &err), 0);
	pthread_join(writer, NULL);
	assert_int_equal(len, 5);
	assert_memory_equal(data, "later", 5);
	free(data);
	/* as <(true) in a shell: its writer has been there */
	assert_int_equal(pipe(fds), 0);
	close(fds[1]);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fds[0]);
	assert_int_equal(source_read(path, 9, &data, &len, &err), 0);
	assert_int_equal(len, 0);
	free(data);
	close(fds[0]);
}

static sb_tree *tree(const char *path, const char *text)
{
	sb_tree *t;
	sb_error err;

	assert_int_equal(sb_tree_new(1 << 20, 100, &t, &err), 0);
	assert_int_equal(sb_tree_write(t, path, text, strlen(text), &err), 0);
	return t;
}

static int write_out(const char *path, const char *text)
{
	cli_outdir dir;
	sb_error err;
	sb_tree *t = tree(path, text);

	assert_int_equal(outdir_open(&dir, "out", &err), 0);
	int rc = outdir_write(&dir, t, &err);
	outdir_close(&dir, false);
	sb_tree_free(t);
	return rc;
}

static void out_files(void **state)
{
	(void)state;
	assert_int_equal(write_out("a/b/f.txt", "hi"), 0);
	expect("out/a/b/f.txt", "hi");
	assert_int_equal(write_out("a/b/f.txt", "again"), 0);
	expect("out/a/b/f.txt", "again");
}

/* One that cannot be written is told; the others are there. */
static void out_goes_on(void **state)
{
	cli_outdir dir;
	sb_error err;
	sb_tree *t = tree("a", "1");

	(void)state;
	assert_int_equal(sb_tree_write(t, "b/x", "2", 1, &err), 0);
	assert_int_equal(sb_tree_write(t, "c", "3", 1, &err), 0);
	assert_int_equal(sb_tree_write(t, "d", "4", 1, &err), 0);
	assert_int_equal(mkdir("out", 0755), 0);
	assert_int_equal(mkdir("out/a", 0755), 0);
	put("out/b", "a file");
	assert_int_equal(outdir_open(&dir, "out", &err), 0);
	assert_int_equal(outdir_write(&dir, t, &err), SB_ERR_IO);
	assert_non_null(strstr(err.message, "\"a\", and 1 more"));
	outdir_close(&dir, false);
	sb_tree_free(t);
	expect("out/c", "3");
	expect("out/d", "4");
	expect("out/b", "a file");
}

/* What lies in the folder must not lead out of it. */
static void out_never_follows(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(mkdir("out", 0755), 0);
	assert_int_equal(mkdir("elsewhere", 0755), 0);
	put("secret", "secret");
	assert_int_equal(symlink("../secret", "out/link"), 0);
	assert_int_equal(link("secret", "out/hard"), 0);
	assert_int_equal(symlink("../elsewhere", "out/d"), 0);
	assert_int_equal(write_out("link", "new"), 0);
	assert_int_equal(write_out("hard", "new"), 0);
	assert_int_equal(write_out("d/x", "new"), SB_ERR_IO);
	expect("secret", "secret");
	expect("out/link", "new");
	expect("out/hard", "new");
	assert_int_equal(lstat("elsewhere/x", &st), -1);
	assert_true(lstat("out/link", &st) == 0 && S_ISREG(st.st_mode));
}

static void out_folder(void **state)
{
	cli_outdir dir;
	sb_error err;
	struct stat st;

	(void)state;
	assert_int_equal(outdir_open(&dir, "new", &err), 0);
	outdir_close(&dir, true); /* refused: what we made goes */
	assert_int_equal(stat("new", &st), -1);
	assert_int_equal(mkdir("new", 0755), 0);
	assert_int_equal(outdir_open(&dir, "new", &err), 0);
	outdir_close(&dir, true); /* what was there stays */
	assert_int_equal(stat("new", &st), 0);
	put("plain", "x");
	assert_int_equal(outdir_open(&dir, "plain", &err), SB_ERR_NOT_DIR);
	assert_non_null(strstr(err.message, "\"plain\""));
	assert_int_equal(outdir_open(&dir, "no/such", &err), SB_ERR_NOT_FOUND);
	expect("plain", "x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(languages),
		cmocka_unit_test_setup_teardown(pipes, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(out_goes_on, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(reading, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(out_files, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(out_never_follows, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(out_folder, make_folder, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

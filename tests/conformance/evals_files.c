/* SPDX-License-Identifier: MIT */
/* evals_files.c - files of a session that evaluates: with each evaluation, and put and fetched from outside. */
#include "evals.h"
#include "../unit/folder.h"

static void files_of_each(void **state)
{
	const sb_file in = { .size = sizeof in, .path = "given.txt", .data = "given", .len = 5 };

	if (strcmp(w.backend, "linux") && !on_wasm()) {
		skip(); /* no /out */
		return;
	}
	NEEDS_REAL();
	answer a =
		eval("open('/out/one', 'w').write('1')\nopen('/work/stays', 'w').write('2')\nNone");

	assert_int_equal(a.files, 1);
	assert_string_equal(a.first, "one");
	a = eval(on_wasm() ? "import os\nos.makedirs('/out/sub/deep')\nopen('/out/sub/deep/two', "
			     "'w').write('2')\nos.symlink('../x', '/out/link')\nNone"
			   : "import os\nos.makedirs('/out/sub/deep')\nopen('/out/sub/deep/two', "
			     "'w').write('2')\n"
			     "os.symlink('/etc/passwd', '/out/link')\nos.chmod('/out/sub', 0)\nNone");
	assert_int_equal(a.files, 3);
	ok(eval("os.listdir('/out')"), "[]\n");
	(void)eval("os.mkdir('/out/alone')\nNone"); /* no file, and yet something */
	ok(eval("os.listdir('/out')"), "[]\n");
	(void)eval("os.symlink('x', '/out/link')\nNone");
	ok(eval("os.listdir('/out')"), "[]\n");
	ok(eval("print(open('/work/stays').read())"), "2\n");
	ok(eval_in(session, (sb_command){ .files = (const sb_file *const[]){ &in, NULL } },
		   "print(open('/in/given.txt').read())", NULL),
	   "given\n");
	/* over what is there, and what is beside it stays */
	const sb_file again = { .size = sizeof again, .path = "given.txt", .data = "new", .len = 3 };
	const sb_file beside = { .size = sizeof beside, .path = "sub/other.txt", .data = "x", .len = 1 };

	ok(eval_in(session, (sb_command){ .files = (const sb_file *const[]){ &again, NULL } },
		   "print(open('/in/given.txt').read())", NULL),
	   "new\n");
	ok(eval_in(session, (sb_command){ .files = (const sb_file *const[]){ &beside, NULL } },
		   "print(open('/in/given.txt').read(), open('/in/sub/other.txt').read())", NULL),
	   "new x\n");
	a = eval("open('/in/given.txt', 'w')");
	assert_non_null(strstr(a.exception, "Error"));
}

static char place[64]; /* where the guest may write, and nobody else's files are */

/* Whatever has no files refuses them, and says so. */
static bool has_files(void)
{
	static char dir[] = "/tmp/evals-files.XXXXXX", work[] = "/work";

	if (w.is_fake || on_wasm()) /* but with an evaluation */
		return false;
	session = open_one();
	if (!strcmp(w.backend, "process")) {
		strcpy(dir + strlen(dir) - 6, "XXXXXX");
		assert_non_null(mkdtemp(dir));
		strcpy(place, dir);
	} else {
		strcpy(place, work);
	}
	return true;
}

static const char *at_place(const char *name)
{
	static char paths[4][300];
	static int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof paths[0], "%s/%s", place, name);
	return path;
}

static int put(const char *path, const char *text)
{
	return sb_session_put(session, path, text, strlen(text), NULL, &err);
}

static void has_file(const char *path, const char *name, const char *text)
{
	sb_node node = { .size = sizeof node };
	sb_tree *tree = NULL;

	if (sb_session_get(session, path, NULL, &tree, &err) < 0)
		fail_msg("%s: %s", path, err.message);
	assert_int_equal(sb_tree_find(tree, name, &node, &err), 0);
	assert_int_equal(node.len, strlen(text));
	assert_memory_equal(node.data, text, node.len);
	sb_tree_free(tree);
}

static void python_in_place(const char *code, const char *out)
{
	char whole[1200];

	snprintf(whole, sizeof whole, "import os\nos.chdir('%s')\n%s", place, code);
	ok(eval(whole), out);
}

static void files_in_and_out(void **state)
{
	sb_tree *tree = NULL;

	(void)state;
	if (!has_files())
		skip();
	assert_int_equal(put(at_place("deep/er/one"), "first"), 0);
	python_in_place("print(open('deep/er/one').read())", "first\n");
	assert_int_equal(put(at_place("deep/er/one"), "second"), 0); /* replaced */
	assert_int_equal(put(at_place("empty"), ""), 0);
	python_in_place("print(open('deep/er/one').read(), os.path.getsize('empty'), "
			"oct(os.stat('empty').st_mode), os.stat('empty').st_uid == os.getuid())\n"
			"open('deep/two', 'w').write('2'); os.symlink('/etc/passwd', 'deep/link'); "
			"os.mkfifo('deep/pipe')",
			"second 0 0o100644 True\n");
	has_file(at_place("deep/er/one"), "one", "second");
	has_file(at_place("deep"), "er/one", "second");
	has_file(at_place("deep"), "two", "2");
	assert_int_equal(sb_session_get(session, at_place("deep"), NULL, &tree, &err), 0);
	assert_int_equal(sb_tree_find(tree, "link", &(sb_node){ .size = sizeof(sb_node) }, NULL),
			 SB_ERR_NOT_FOUND);
	sb_tree_free(tree);
	assert_int_equal(sb_session_remove(session, at_place("deep/er/one"), NULL, &err), 0);
	python_in_place("print(os.listdir('deep/er'))", "[]\n");
	python_in_place("for i in range(50): os.makedirs(f'deep/{i}/x/y'); open(f'deep/{i}/f', 'w').close()", "");
	assert_int_equal(sb_session_remove(session, at_place("deep"), NULL, &err), 0);
	assert_int_equal(sb_session_remove(session, at_place("deep"), NULL, &err), SB_ERR_NOT_FOUND);
	assert_int_equal(sb_session_get(session, at_place("deep"), NULL, &tree, &err), SB_ERR_NOT_FOUND);
	assert_int_equal(put(at_place("binary"), "\377\1"), 0);
	has_file(at_place("binary"), "binary", "\377\1");
	python_in_place("print(sorted(os.listdir()))", "['binary', 'empty']\n");
	assert_int_equal(sb_session_remove(session, place, NULL, &err), 0);
}

/* In the memory of an instance nobody else puts or takes files, but with an evaluation; that is said, and nothing is lost. */
static void files_of_an_instance(void **state)
{
	static const char *const places[] = { "/work/x", "/tmp", "/out/x", "/home/sandbox" };
	sb_tree *tree = NULL;

	(void)state;
	if (!on_wasm())
		skip();
	session = open_one();
	ok(eval("open('/work/x', 'w').write('mine'); None"), "");
	for (size_t i = 0; i < UNIT_LEN(places); i++) {
		unit_row(i, put(places[i], "x") == SB_ERR_UNSUPPORTED && strstr(err.message, "/in"));
		unit_row(i, sb_session_get(session, places[i], NULL, &tree, &err) == SB_ERR_UNSUPPORTED && !tree);
		unit_row(i, strstr(err.message, "--backend linux") != NULL);
		unit_row(i, sb_session_remove(session, places[i], NULL, &err) == SB_ERR_UNSUPPORTED);
	}
	ok(eval("print(open('/work/x').read())"), "mine\n");
}

static void files_refused(void **state)
{
	sb_tree *tree = NULL;

	(void)state;
	if (!has_files())
		skip();
	assert_int_equal(put("relative", "x"), SB_ERR_INVALID_PATH);
	assert_int_equal(put(at_place("../x"), "x"), SB_ERR_INVALID_PATH);
	assert_int_equal(put("/", "x"), SB_ERR_IS_DIR);
	assert_int_equal(put(NULL, "x"), SB_ERR_INVALID_PATH);
	assert_int_equal(sb_session_put(session, at_place("x"), NULL, 1, NULL, &err), SB_ERR_INVALID);
	assert_int_equal(sb_session_get(session, place, NULL, NULL, &err), SB_ERR_INVALID);
	python_in_place("os.mkdir('dir'); open('file', 'w').write('file'); os.symlink('/etc', 'out'); "
			"os.symlink('file', 'to'); os.mkfifo('pipe'); None", "");
	assert_int_equal(put(at_place("dir"), "x"), SB_ERR_IS_DIR);
	assert_int_equal(put(at_place("file/x"), "x"), SB_ERR_NOT_DIR);
	/* no link is followed, neither within the path nor at its end */
	assert_int_equal(put(at_place("out/passwd"), "x"), SB_ERR_PATH_TRAVERSAL);
	assert_non_null(strstr(err.message, "link"));
	assert_int_equal(sb_session_get(session, at_place("out/passwd"), NULL, &tree, &err),
			 SB_ERR_PATH_TRAVERSAL);
	assert_int_equal(sb_session_get(session, at_place("to"), NULL, &tree, &err), SB_ERR_PATH_TRAVERSAL);
	assert_int_equal(sb_session_remove(session, at_place("out/passwd"), NULL, &err),
			 SB_ERR_PATH_TRAVERSAL);
	assert_int_equal(sb_session_get(session, at_place("pipe"), NULL, &tree, &err), SB_ERR_INVALID_PATH);
	assert_null(tree);
	assert_int_equal(put(at_place("to"), "x"), 0); /* the link gives way, its target stays */
	python_in_place("print(open('file').read(), os.path.islink('to'))", "file False\n");
	assert_int_equal(sb_session_remove(session, at_place("out"), NULL, &err), 0);
	assert_int_equal(access("/etc/passwd", F_OK), 0);
	if (!strcmp(w.backend, "linux")) { /* elsewhere nothing is held back */
		assert_int_equal(put("/usr/x", "x"), SB_ERR_FORBIDDEN);
		assert_int_equal(put("/in/x", "x"), SB_ERR_FORBIDDEN);
		assert_int_equal(sb_session_get(session, "/etc/passwd", NULL, &tree, &err), SB_ERR_FORBIDDEN);
		assert_int_equal(put("/tmp/x", "x"), 0);
		if (put("/home/sandbox/x", "x") < 0)
			fail_msg("%s", err.message);
		assert_int_equal(sb_session_remove(session, "/tmp", NULL, &err), 0); /* emptied */
		ok(eval("print(os.listdir('/tmp'), os.listdir('/home/sandbox'))"), "[] ['x']\n");
	}
	sb_session_remove(session, place, NULL, &err);
	sb_session_close(session, NULL, NULL);
	assert_int_equal(put(at_place("x"), "x"), SB_ERR_SESSION_CLOSED);
	assert_int_equal(sb_session_get(session, place, NULL, &tree, &err), SB_ERR_SESSION_CLOSED);
	assert_int_equal(sb_session_remove(session, place, NULL, &err), SB_ERR_SESSION_CLOSED);
	assert_int_equal(sb_session_remove(NULL, place, NULL, &err), SB_ERR_INVALID);
}

/* What does not fit is told, and leaves what was there. */
static void files_under_the_quota(void **state)
{
	sb_tree *tree = NULL;
	size_t len = 3 << 20;
	char *much;

	if (strcmp(w.backend, "linux"))
		skip(); /* no quota */
	limits.fs_bytes = 2 << 20;
	NEEDS_REAL();
	much = calloc(1, len);
	assert_non_null(much);
	assert_int_equal(put("/work/file", "small"), 0);
	assert_int_equal(sb_session_put(session, "/work/file", much, len, NULL, &err), SB_ERR_FS_QUOTA);
	has_file("/work/file", "file", "small");
	ok(eval("import os\nprint(os.listdir('/work'))"), "['file']\n");
	/* a sparse giant is not read to its end; where a limit of file sizes stands in for another, none is */
	if (eval("os.truncate('/work/file', 1 << 40)").code == 0) {
		assert_int_equal(sb_session_get(session, "/work/file", NULL, &tree, &err), SB_ERR_FS_QUOTA);
		assert_null(tree);
	}
	free(much);
}

/* Links and folders that change places all the time lead nowhere else. */
static void files_against_a_busy_guest(void **state)
{
	other o = { .code = "import os, time\nend = time.time() + 1.5\nos.makedirs('/work/a', exist_ok=True)\n"
			    "while time.time() < end:\n"
			    "    try:\n        os.rename('/work/a', '/work/b'); os.symlink('/etc', '/work/a')\n"
			    "        os.unlink('/work/a'); os.rename('/work/b', '/work/a')\n"
			    "    except OSError: pass\n" };
	sb_node node = { .size = sizeof node };

	if (strcmp(w.backend, "linux"))
		skip();
	NEEDS_REAL();
	start(&o);
	await_state(SB_STATE_BUSY);
	for (int i = 0; i < 300; i++) {
		sb_tree *tree = NULL;
		int code = put("/work/a/hosts", "mine");

		/* whatever stood there at that instant */
		if (code < 0 && code != SB_ERR_PATH_TRAVERSAL && code != SB_ERR_NOT_FOUND &&
		    code != SB_ERR_NOT_DIR && code != SB_ERR_FORBIDDEN && code != SB_ERR_IO)
			fail_msg("%s", err.message);
		if (sb_session_get(session, "/work/a/hosts", NULL, &tree, &err) < 0)
			continue;
		assert_int_equal(sb_tree_find(tree, "hosts", &node, NULL), 0);
		assert_int_equal(node.len, 4);
		sb_tree_free(tree);
	}
	join(&o);
	assert_int_equal(o.got.rc, 0);
}

EVALS_MAIN(TEST(files_of_each), TEST(files_in_and_out), TEST(files_of_an_instance), TEST(files_refused),
	   TEST(files_under_the_quota), TEST(files_against_a_busy_guest));

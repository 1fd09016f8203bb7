/* SPDX-License-Identifier: MIT */
/* What a request names on the host: workspace, working directory, file rules, protections. */
#include "session_world.h"

/* ---- workspace ---------------------------------------------------------------------------------------- */

static void workspace_refused(void **state)
{
	char file[PATH_MAX + 16], missing[PATH_MAX + 16];

	(void)state;
	snprintf(file, sizeof file, "%s/file", ws);
	snprintf(missing, sizeof missing, "%s/missing", ws);
	assert_int_equal(run((sb_spec){ .workspace = "/" }, (sb_command){ 0 }), SB_ERR_INVALID_SPEC);
	assert_int_equal(run((sb_spec){ .workspace = "/tmp/.." }, (sb_command){ 0 }), SB_ERR_FORBIDDEN);
	assert_int_equal(run((sb_spec){ .workspace = home }, (sb_command){ 0 }), SB_ERR_FORBIDDEN);
	assert_int_equal(run((sb_spec){ .workspace = top }, (sb_command){ 0 }), SB_ERR_FORBIDDEN);
	assert_int_equal(run((sb_spec){ .workspace = "/proc/self" }, (sb_command){ 0 }),
			 SB_ERR_FORBIDDEN);
	assert_int_equal(run((sb_spec){ .workspace = missing }, (sb_command){ 0 }), SB_ERR_NOT_FOUND);
	assert_int_equal(run((sb_spec){ .workspace = file }, (sb_command){ 0 }), SB_ERR_NOT_DIR);
	assert_int_equal(chdir(home), 0);
	assert_int_equal(run((sb_spec){ 0 }, (sb_command){ 0 }), SB_ERR_FORBIDDEN);
	assert_int_equal(run((sb_spec){ .workspace_mode = SB_WORKSPACE_NONE }, (sb_command){ 0 }), 0);
	assert_string_equal(got.workspace, "");
	assert_string_equal(got.cwd, "/work");
	assert_int_equal(chdir(ws), 0);
	assert_int_equal(run((sb_spec){ .workspace_mode = SB_WORKSPACE_COPY }, (sb_command){ 0 }),
			 SB_ERR_UNSUPPORTED);
}

static void workspace_modes(void **state)
{
	char link[PATH_MAX + 16];

	(void)state;
	snprintf(link, sizeof link, "%s/to-ws", top);
	assert_int_equal(run((sb_spec){ 0 }, (sb_command){ 0 }), 0);
	assert_string_equal(got.workspace, ws);
	assert_string_equal(got.cwd, ws);
	assert_int_equal(got.workspace_mode, SB_WORKSPACE_DEFAULT); /* nobody named one */
	assert_true(got.workspace_fd);
	assert_int_equal(run((sb_spec){ .workspace = link, .workspace_mode = SB_WORKSPACE_READ },
			     (sb_command){ 0 }),
			 0);
	assert_string_equal(got.workspace, ws); /* resolved once */
	assert_int_equal(got.workspace_mode, SB_WORKSPACE_READ);
	assert_int_equal(got.rule_count, 0); /* nothing to protect where nothing can be written */
}

static void operators_workspace_stays(void **state)
{
	char link[PATH_MAX + 16];
	const fake_script script = { .size = sizeof script, .backend = "fake", .seen = look };
	const sb_other_options *const options[] = { FAKE_OPTIONS(&script), NULL };
	const sb_command c = { .size = sizeof c, .argv = LIST("true") };
	const sb_spec spec = { .size = sizeof spec, .other_options = options };
	sb_result *result = NULL;

	(void)state;
	snprintf(link, sizeof link, "%s/to-ws", top);
	const sb_spec fixed = { .size = sizeof fixed, .workspace = link };
	sb_sandbox *sandbox = make((sb_sandbox_options){ .operator_spec = &fixed });

	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink("/etc", link), 0);
	assert_int_equal(sb_run(sandbox, &spec, &c, NULL, &result, &last), 0);
	assert_string_equal(got.workspace, ws);
	sb_result_free(result);
	sb_sandbox_free(sandbox);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink(ws, link), 0);
}

static void quota_over_a_workspace(void **state)
{
	const sb_limits disk = { .size = sizeof disk, .fs_bytes = 8 << 20 };

	(void)state;
	assert_int_equal(run((sb_spec){ .limits = &disk }, (sb_command){ 0 }), SB_ERR_UNENFORCEABLE);
	assert_int_equal(run((sb_spec){ .limits = &disk, .workspace_mode = SB_WORKSPACE_READ },
			     (sb_command){ 0 }),
			 0);
}

static void working_directories(void **state)
{
	char inside[PATH_MAX + 16];
	const struct {
		const char *cwd;
		int code;
		const char *behind; /* of the workspace */
	} rows[] = {
		{ "sub", 0, "/sub" },	   { "./sub/", 0, "/sub" },
		{ inside, 0, "/sub" },	   { "sub/..", 0, "" },
		{ "sub/../sub", 0, "/sub" }, { "..", SB_ERR_PATH_TRAVERSAL, NULL },
		{ "../..", SB_ERR_PATH_TRAVERSAL, NULL },
		{ "/etc", SB_ERR_PATH_TRAVERSAL, NULL },
		{ "/", SB_ERR_PATH_TRAVERSAL, NULL },
		{ "../ws-not", SB_ERR_PATH_TRAVERSAL, NULL },
		{ "link", SB_ERR_PATH_TRAVERSAL, NULL },
		{ "link/ssl", SB_ERR_PATH_TRAVERSAL, NULL },
		{ "missing", SB_ERR_NOT_FOUND, NULL }, { "file", SB_ERR_NOT_DIR, NULL },
		{ "", SB_ERR_INVALID_SPEC, NULL },
	};

	(void)state;
	snprintf(inside, sizeof inside, "%s/sub", ws);
	for (size_t i = 0; i < BASE_ARRAY_LEN(rows); i++) {
		int code = run((sb_spec){ 0 }, (sb_command){ .cwd = rows[i].cwd });

		if (code != rows[i].code)
			fail_msg("\"%s\": %d %s", rows[i].cwd, code, last.message);
		if (rows[i].behind)
			assert_string_equal(got.cwd + strlen(ws), rows[i].behind);
	}
	/* /work is there without a workspace, and for code */
	assert_int_equal(run((sb_spec){ 0 }, (sb_command){ .cwd = "/work" }), SB_ERR_PATH_TRAVERSAL);
	assert_int_equal(run((sb_spec){ .workspace_mode = SB_WORKSPACE_NONE },
			     (sb_command){ .cwd = "/work" }),
			 0);
	assert_string_equal(got.cwd, "/work");
}

/* ---- file rules ------------------------------------------------------------------------------------------- */

static int with_rule(uint32_t access, uint32_t flags, const char *fmt, const char *arg)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof path, fmt, arg);
	const sb_file_rule rule = { .size = sizeof rule, .path = path, .access = access,
				    .flags = flags };

	return run((sb_spec){ .files = ONE(rule) }, (sb_command){ 0 });
}

static void rules_and_globs(void **state)
{
	(void)state;
	assert_int_equal(with_rule(SB_FILE_READ, 0, "%s/none", top), SB_ERR_NOT_FOUND);
	assert_non_null(strstr(last.message, "/none"));
	assert_int_equal(with_rule(SB_FILE_READ, SB_FILE_OPTIONAL, "%s/none", top), 0);
	assert_int_equal(with_rule(SB_FILE_READ, 0, "%s/data/a[1]", top), 0);
	assert_true(has_rule("read %s/data/a[1]", top) || has_rule("ro %s/data/a[1]", top));
	assert_int_equal(with_rule(SB_FILE_HIDE, SB_FILE_GLOB, "%s/data/a[1]", top), 0);
	assert_true(has_rule("hide %s/data/a1", top));
	assert_false(has_rule("hide %s/data/a[1]", top));
	assert_int_equal(with_rule(SB_FILE_READ, SB_FILE_GLOB, "%s/data/zz*", top), SB_ERR_NOT_FOUND);
	assert_int_equal(with_rule(SB_FILE_READ, 0, "rel/%s", "x"), SB_ERR_INVALID_PATH);
	assert_int_equal(with_rule(SB_FILE_READ, 0, "%s/../x", top), SB_ERR_INVALID_PATH);
	assert_int_equal(with_rule(SB_FILE_TMPFS, 0, "%s/new", ws), 0);
	/* a link where a guest of before could have put it */
	assert_int_equal(with_rule(SB_FILE_READ, 0, "%s/link/passwd", ws), SB_ERR_FORBIDDEN);
	assert_int_equal(with_rule(SB_FILE_WRITE, 0, "%s/link", ws), SB_ERR_FORBIDDEN);
}

static void lay(const char *fmt)
{
	char path[PATH_MAX + 64];
	size_t len;
	int fd;

	snprintf(path, sizeof path, "%s/%s", top, fmt);
	len = strlen(path);
	if (path[len - 1] == '/') {
		path[len - 1] = 0;
		assert_int_equal(mkdir(path, 0755), 0);
		return;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
}

/* A secret that a pattern seems to cover does not stay open: at any depth, below hidden folders, with a dot
 * at its beginning; wherever the caller stands. */
static void patterns_reach_everywhere(void **state)
{
	static const char *const all[] = { "deep/", "deep/.env", "deep/a/", "deep/a/.env", "deep/.h/", "deep/.h/b[1]/",
		"deep/.h/b[1]/.env", "deep/a/x.key", "deep/.h/b[1]/y.key", "deep/a/env" };

	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		lay(all[i]);
	assert_int_equal(with_rule(SB_FILE_HIDE, SB_FILE_GLOB, "%s/deep/**/.env", top), 0);
	assert_true(has_rule("hide %s/deep/.env", top));
	assert_true(has_rule("hide %s/deep/a/.env", top));
	assert_true(has_rule("hide %s/deep/.h/b[1]/.env", top));
	assert_false(has_rule("hide %s/deep/a/env", top));
	assert_int_equal(with_rule(SB_FILE_HIDE, SB_FILE_GLOB, "%s/deep/**/*.key", top), 0);
	assert_true(has_rule("hide %s/deep/a/x.key", top));
	assert_true(has_rule("hide %s/deep/.h/b[1]/y.key", top));
	assert_int_equal(with_rule(SB_FILE_HIDE, SB_FILE_GLOB, "%s/deep/*", top), 0);
	assert_true(has_rule("hide %s/deep/.env", top)); /* a dot is a name's beginning like any other */
	assert_true(has_rule("hide %s/deep/.h", top));
	assert_false(has_rule("hide %s/deep/..", top));
	assert_int_equal(with_rule(SB_FILE_HIDE, SB_FILE_GLOB, "%s/deep/**", top), 0);
	assert_true(has_rule("hide %s/deep/.h", top) && has_rule("hide %s/deep/a", top));
	assert_int_equal(with_rule(SB_FILE_READ, SB_FILE_GLOB, "%s/deep/*", top), 0);
	assert_false(has_rule("read %s/deep/.env", top)); /* a grant takes what a shell would */
	/* from where the caller stands means nothing: refused, not read from there */
	assert_int_equal(with_rule(SB_FILE_HIDE, SB_FILE_GLOB, "**/%s", ".env"), SB_ERR_INVALID_PATH);
	assert_int_equal(with_rule(SB_FILE_HIDE, SB_FILE_GLOB, "%s/**/a/**/b", top), SB_ERR_INVALID_SPEC);
}

static void protections(void **state)
{
	char path[PATH_MAX + 64];
	sb_result *result = NULL;

	(void)state;
	assert_int_equal(run((sb_spec){ 0 }, (sb_command){ 0 }), 0);
	assert_true(has_rule("protect %s/.git/hooks", ws));
	assert_false(has_rule("protect %s/.envrc", ws)); /* absent: looked for afterwards */
	assert_int_equal(with_rule(SB_FILE_WRITE, 0, "%s/.git/hooks", ws), 0);
	assert_false(has_rule("protect %s/.git/hooks", ws));
	/* what appears meanwhile is named */
	snprintf(path, sizeof path, "%s/.envrc", ws);
	unlink(path);
	assert_int_equal(run_full((sb_sandbox_options){ 0 }, (sb_spec){ 0 }, (sb_command){ 0 },
				  &result),
			 0);
	assert_null(sb_result_appeared(result)[0]);
	sb_result_free(result);
}

static void make_envrc(const sb_box_request *box, const sb_guest_request *guest)
{
	char from[PATH_MAX + 64], to[PATH_MAX + 64];

	if (!guest)
		return;
	(void)box;
	make_file("home/ws/.envrc");
	/* and the trick of moving away the directory of a protected one */
	snprintf(from, sizeof from, "%s/.git", ws);
	snprintf(to, sizeof to, "%s/.old", ws);
	assert_int_equal(rename(from, to), 0);
	make_dir("home/ws/.git");
	make_dir("home/ws/.git/hooks");
}

static void appeared(void **state)
{
	const fake_script script = { .size = sizeof script, .backend = "fake", .seen = make_envrc };
	const sb_other_options *const options[] = { FAKE_OPTIONS(&script), NULL };
	const sb_command c = { .size = sizeof c, .argv = LIST("true") };
	const sb_spec spec = { .size = sizeof spec, .other_options = options };
	sb_sandbox *sandbox = make((sb_sandbox_options){ 0 });
	sb_result *result = NULL;
	char want[PATH_MAX + 64];

	(void)state;
	assert_int_equal(sb_run(sandbox, &spec, &c, NULL, &result, &last), 0);
	const char *const *list = sb_result_appeared(result);

	snprintf(want, sizeof want, "%s/.envrc", ws);
	assert_true(strv_has(list, want));
	snprintf(want, sizeof want, "%s/.git/hooks", ws);
	assert_true(strv_has(list, want));
	assert_int_equal(strv_count(list), 2);
	sb_result_free(result);
	sb_sandbox_free(sandbox);
}

/* ---- protected paths that are links -------------------------------------------------------------- */

static void link_to(const char *text, const char *name)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof path, "%s/%s", ws, name);
	assert_int_equal(symlink(text, path), 0);
}

static void remove_it(const char *name)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof path, "%s/%s", ws, name);
	assert_int_equal(unlink(path), 0);
}

/* A new link, one put in the place of another, and one that at last leads somewhere. */
static void make_links(const sb_box_request *box, const sb_guest_request *guest)
{
	(void)box;
	if (!guest)
		return;
	link_to("anywhere", ".mcp.json");
	remove_it(".profile");
	link_to("new", ".profile");
	make_file("home/ws/later");
}

static void links_appear(void **state)
{
	static const char *const names[] = { ".mcp.json", ".profile", ".zshrc" };
	const fake_script script = { .size = sizeof script, .backend = "fake", .seen = make_links };
	const sb_other_options *const options[] = { FAKE_OPTIONS(&script), NULL };
	const sb_command c = { .size = sizeof c, .argv = LIST("true") };
	const sb_spec spec = { .size = sizeof spec, .other_options = options };
	sb_result *result = NULL;
	char want[PATH_MAX + 64];

	(void)state;
	link_to("old", ".profile");
	link_to("later", ".zshrc");
	link_to("file", ".zshenv"); /* stays as it is */
	sb_sandbox *sandbox = make((sb_sandbox_options){ 0 });

	assert_int_equal(sb_run(sandbox, &spec, &c, NULL, &result, &last), 0);
	for (size_t i = 0; i < BASE_ARRAY_LEN(names); i++) {
		snprintf(want, sizeof want, "%s/%s", ws, names[i]);
		if (!strv_has(sb_result_appeared(result), want))
			fail_msg("%s is not named", want);
	}
	assert_int_equal(strv_count(sb_result_appeared(result)), 3);
	sb_result_free(result);
	sb_sandbox_free(sandbox);
	for (size_t i = 0; i < BASE_ARRAY_LEN(names); i++)
		remove_it(names[i]);
	remove_it("later");
	remove_it(".zshenv");
}

/* What it leads to is protected, wherever in the workspace that is; what is outside is not there. */
static void links_are_protected_where_they_lead(void **state)
{
	sb_result *result = NULL;

	(void)state;
	make_dir("home/ws/sub/husky");
	link_to("sub/husky", ".husky");
	link_to("/etc/passwd", ".zlogin");
	assert_int_equal(run_full((sb_sandbox_options){ 0 }, (sb_spec){ 0 }, (sb_command){ 0 },
				  &result),
			 0);
	assert_true(has_rule("protect %s/sub/husky", ws));
	assert_false(has_rule("protect %s/.husky", ws));
	assert_false(has_rule("protect %s/.zlogin", ws));
	assert_false(has_rule("protect /etc/passwd"));
	assert_null(sb_result_appeared(result)[0]); /* nothing has changed */
	sb_result_free(result);
	/* the caller's word for that very path */
	assert_int_equal(with_rule(SB_FILE_WRITE, 0, "%s/sub/husky", ws), 0);
	assert_false(has_rule("protect %s/sub/husky", ws));
	remove_it(".husky");
	remove_it(".zlogin");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workspace_refused),
		cmocka_unit_test(workspace_modes),
		cmocka_unit_test(operators_workspace_stays),
		cmocka_unit_test(quota_over_a_workspace),
		cmocka_unit_test(working_directories),
		cmocka_unit_test(rules_and_globs), cmocka_unit_test(patterns_reach_everywhere),
		cmocka_unit_test(protections),
		cmocka_unit_test(appeared),
		cmocka_unit_test(links_appear),
		cmocka_unit_test(links_are_protected_where_they_lead),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

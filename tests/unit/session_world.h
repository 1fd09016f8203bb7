/* SPDX-License-Identifier: MIT */
/*
 * session_world.h - a home, a workspace in it and a file or two beside, for the tests of what a
 * request turns into; and runs that show what the backend was given.
 */
#ifndef SB_TESTS_SESSION_WORLD_H
#define SB_TESTS_SESSION_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/session/session.h"
#include "../fake/fake.h"

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define ONE(x) ((const sb_file_rule *const[]){ &(x), NULL })

static const sb_backend *const both[] = { &fake_backend, &fake_other_backend, NULL };
static const char *const order_fake[] = { "fake", NULL }, *const argv_true[] = { "true", NULL };
static char top[PATH_MAX], ws[PATH_MAX + 8], home[PATH_MAX + 16], old_cwd[PATH_MAX];

/* What the backend was given, copied while it was there. */
static struct {
	char argv[8][64], env[512][128], cwd[PATH_MAX], workspace[PATH_MAX];
	char rules[64][PATH_MAX + 64];
	size_t rule_count, env_count;
	sb_limits limits;
	uint32_t net_mode, workspace_mode;
	bool workspace_fd;
} got;

static void look(const sb_box_request *box, const sb_guest_request *guest)
{
	if (box) {
		memset(&got, 0, sizeof got);
		got.limits = *box->limits;
		got.net_mode = box->network->mode;
		got.workspace_mode = box->spec->workspace_mode;
		got.workspace_fd = box->workspace_fd >= 0;
		snprintf(got.workspace, sizeof got.workspace, "%s",
			 box->workspace ? box->workspace : "");
		for (size_t i = 0; box->spec->files && box->spec->files[i] && i < 64; i++)
			snprintf(got.rules[got.rule_count++], sizeof got.rules[0], "%s %s%s%s",
				 sb_access_name((int)box->spec->files[i]->access),
				 box->spec->files[i]->path,
				 box->spec->files[i]->source ? " < " : "",
				 box->spec->files[i]->source ? box->spec->files[i]->source : "");
	}
	for (size_t i = 0; guest && guest->argv[i] && i < 8; i++)
		snprintf(got.argv[i], sizeof got.argv[i], "%s", guest->argv[i]);
	for (size_t i = 0; guest && guest->env[i] && i < 512; i++)
		snprintf(got.env[got.env_count++], sizeof got.env[0], "%s", guest->env[i]);
	if (guest)
		snprintf(got.cwd, sizeof got.cwd, "%s", guest->cwd);
}

BASE_PRINTF(1, 2) static bool has_rule(const char *fmt, ...)
{
	char text[PATH_MAX + 128];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	for (size_t i = 0; i < got.rule_count; i++)
		if (!strcmp(got.rules[i], text))
			return true;
	return false;
}

__attribute__((unused)) static bool has_env(const char *text)
{
	for (size_t i = 0; i < got.env_count; i++)
		if (!strcmp(got.env[i], text))
			return true;
	return false;
}

static void make_file(const char *name)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof path, "%s/%s", top, name);
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static void make_dir(const char *name)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof path, "%s/%s", top, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static int setup(void **state)
{
	char link[PATH_MAX + 64], name[] = "/tmp/resolve.XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(name));
	assert_non_null(realpath(name, top));
	snprintf(ws, sizeof ws, "%s/home/ws", top);
	snprintf(home, sizeof home, "%s/home", top);
	make_dir("home");
	make_dir("home/ws");
	make_dir("home/ws/sub");
	make_dir("home/ws/.git");
	make_dir("home/ws/.git/hooks");
	make_file("home/ws/file");
	make_dir("data");
	make_file("data/a[1]");
	make_file("data/a1");
	snprintf(link, sizeof link, "%s/link", ws);
	assert_int_equal(symlink("/etc", link), 0);
	snprintf(link, sizeof link, "%s/to-ws", top);
	assert_int_equal(symlink(ws, link), 0);
	setenv("HOME", home, 1);
	setenv("RESOLVE_TEST", "here", 1);
	assert_non_null(getcwd(old_cwd, sizeof old_cwd));
	return chdir(ws);
}

static int teardown(void **state)
{
	const char *const argv[] = { "rm", "-rf", top, NULL };

	(void)state;
	assert_int_equal(chdir(old_cwd), 0);
	pid_t child = fork();

	if (child == 0) {
		execvp(argv[0], (char *const *)(intptr_t)argv);
		_exit(1);
	}
	return waitpid(child, NULL, 0) == child ? 0 : -1;
}

static sb_sandbox *make(sb_sandbox_options o)
{
	sb_sandbox *sandbox = NULL;
	sb_error err = { 0 };

	fake_reset();
	o.size = sizeof o;
	if (!o.backends)
		o.backends = both;
	if (!o.order)
		o.order = order_fake;
	if (sb_sandbox_new(&o, NULL, &sandbox, &err) < 0)
		fail_msg("%s: %s", err.where, err.message);
	return sandbox;
}

static sb_error last;

/* Under these operator's and caller's specs; the result, if one is wanted, is the test's. */
static int run_full(sb_sandbox_options o, sb_spec spec, sb_command c, sb_result **keep)
{
	const fake_script script = { .size = sizeof script, .backend = "fake", .seen = look };
	const sb_other_options *const options[] = { FAKE_OPTIONS(&script), NULL };
	sb_sandbox *sandbox = make(o);
	sb_result *result = NULL;

	spec.size = sizeof spec;
	spec.other_options = options;
	c.size = sizeof c;
	if (!c.language && !c.argv)
		c.argv = argv_true;
	memset(&last, 0, sizeof last);
	int code = sb_run(sandbox, &spec, &c, NULL, &result, &last);

	if (code < 0) {
		assert_int_equal(last.code, code);
		assert_true(strlen(last.message) > 10);
		assert_null(strchr(last.message, '\n'));
	}
	sb_sandbox_free(sandbox);
	assert_int_equal(fake_seen.broken + fake_seen.boxes + fake_seen.states, 0);
	if (keep)
		*keep = result;
	else
		sb_result_free(result);
	return code;
}

static int run(sb_spec spec, sb_command c)
{
	return run_full((sb_sandbox_options){ 0 }, spec, c, NULL);
}

#endif /* SB_TESTS_SESSION_WORLD_H */

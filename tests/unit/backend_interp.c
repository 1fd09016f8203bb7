/* SPDX-License-Identifier: MIT */
/* Which program a command means, with interpreters and shims made up for the test. */
#include "unit.h"

#include "../../src/backend/interp.h"
#include "../../src/backend/shim.h"
#include "host_tree.h"

typedef struct world {
	host_tree tree;
	char path[1024], home[512], env_path[1200];
	const char *env[3];
	const char *names[3];
	interp_query q;
} world;

/* The tree lies in /tmp; the home directory of the test is beside its programs. */
static void world_open(world *w, const char *const *dirs)
{
	size_t len = 0;

	memset(w, 0, sizeof *w);
	host_tree_open(&w->tree);
	for (; *dirs; dirs++)
		len += (size_t)snprintf(w->path + len, sizeof w->path - len, "%s%s", len ? ":" : "",
					**dirs == '/' ? *dirs : host_path(&w->tree, *dirs));
	snprintf(w->env_path, sizeof w->env_path, "PATH=%s", w->path);
	w->env[0] = w->env_path;
	snprintf(w->home, sizeof w->home, "%s/home", w->tree.dir);
	w->q = (interp_query){ .names = w->names, .host_env = w->env, .home = w->home,
		.guest_path = "/usr/local/bin:/usr/bin:/bin", .cancel_fd = -1, .ask_ms = 5000 };
}

static void program(const world *w, const char *name, const char *text)
{
	host_write_mode(&w->tree, name, text, 0755);
}

static int find(world *w, const char *name, interp_found *found, sb_error *err)
{
	w->names[0] = name;
	return interp_find(&w->q, found, err);
}

#define ELF "\177ELF"

static void what_the_guest_finds_keeps_its_name(void **state)
{
	static const char *const dirs[] = { "none", "/usr/bin", NULL };
	interp_found found;
	sb_error err;
	world w;

	(void)state;
	world_open(&w, dirs);
	assert_int_equal(find(&w, "env", &found, &err), 0);
	assert_null(found.program);
	assert_null(found.show);
	/* not there at all: the start tells */
	assert_int_equal(find(&w, "no-such-program-here", &found, &err), 0);
	assert_null(found.program);
	/* its directory is not on the guest's PATH */
	w.q.guest_path = "/bin";
	assert_int_equal(find(&w, "env", &found, &err), 0);
	assert_string_equal(found.program, "/usr/bin/env");
	interp_release(&found);
	w.q.guest_path = NULL;
	assert_int_equal(find(&w, "env", &found, &err), 0);
	assert_string_equal(found.program, "/usr/bin/env");
	interp_release(&found);
	host_tree_close(&w.tree);
}

static void an_interpreter_elsewhere_brings_its_prefix(void **state)
{
	static const char *const dirs[] = { "v/3.99/bin", "/usr/bin", NULL };
	interp_found found;
	sb_error err;
	world w;

	(void)state;
	world_open(&w, dirs);
	program(&w, "v/3.99/bin/python3.99", ELF);
	host_link(&w.tree, "python3.99", "v/3.99/bin/python3");
	assert_int_equal(find(&w, "python3", &found, &err), 0);
	assert_string_equal(found.program, host_path(&w.tree, "v/3.99/bin/python3.99"));
	assert_string_equal(found.show, host_path(&w.tree, "v/3.99"));
	interp_release(&found);
	host_tree_close(&w.tree);
}

/* One name may be "node-gyp": no interpreter, so nothing but an error that helps. */
static void other_programs_are_never_shown_in_silence(void **state)
{
	static const char *const dirs[] = { "tools/bin", NULL };
	interp_found found;
	sb_error err;
	world w;

	(void)state;
	world_open(&w, dirs);
	program(&w, "tools/bin/node-gyp", ELF);
	program(&w, "tools/bin/deploy", "#!/bin/sh\n");
	assert_int_equal(find(&w, "node-gyp", &found, &err), SB_ERR_NOT_FOUND);
	assert_non_null(strstr(err.message, host_path(&w.tree, "tools/bin/node-gyp")));
	assert_non_null(strstr(err.message, "--ro "));
	assert_null(found.show);
	assert_int_equal(find(&w, "deploy", &found, &err), SB_ERR_NOT_FOUND);
	/* named by its path: the private directory is named, too */
	assert_int_equal(find(&w, host_path(&w.tree, "tools/bin/deploy"), &found, &err),
			 SB_ERR_NOT_FOUND);
	assert_non_null(strstr(err.message, "\"/tmp\""));
	host_tree_close(&w.tree);
}

static void rules_and_workspace_make_visible(void **state)
{
	static const char *const dirs[] = { "tools/bin", NULL };
	char tools[512], hide[512];
	const sb_file_rule show = { .size = sizeof show, .path = tools, .access = SB_FILE_READ };
	const sb_file_rule hidden = { .size = sizeof hidden, .path = hide, .access = SB_FILE_HIDE };
	const sb_file_rule *rules[] = { &show, NULL, NULL };
	interp_found found;
	sb_error err;
	world w;

	(void)state;
	world_open(&w, dirs);
	program(&w, "tools/bin/deploy", ELF);
	snprintf(tools, sizeof tools, "%s", host_path(&w.tree, "tools"));
	snprintf(hide, sizeof hide, "%s", host_path(&w.tree, "tools/bin"));
	w.q.rules = rules;
	assert_int_equal(find(&w, "deploy", &found, &err), 0);
	assert_string_equal(found.program, host_path(&w.tree, "tools/bin/deploy"));
	assert_null(found.show);
	interp_release(&found);
	rules[1] = &hidden;
	assert_int_equal(find(&w, "deploy", &found, &err), SB_ERR_NOT_FOUND);
	w.q.rules = NULL;
	w.q.workspace = tools;
	w.q.cwd = tools;
	assert_int_equal(find(&w, "deploy", &found, &err), 0);
	interp_release(&found);
	/* "./x" in the workspace stays as it was typed */
	assert_int_equal(find(&w, "./bin/deploy", &found, &err), 0);
	assert_null(found.program);
	w.q.workspace = w.q.cwd = NULL;
	w.q.everything = true;
	assert_int_equal(find(&w, "deploy", &found, &err), 0);
	assert_string_equal(found.program, host_path(&w.tree, "tools/bin/deploy"));
	interp_release(&found);
	host_tree_close(&w.tree);
}

static void a_shim_is_asked(void **state)
{
	static const char *const dirs[] = { "home/.env/shims", "/usr/bin", NULL };
	interp_found found;
	char text[1200];
	sb_error err;
	world w;

	(void)state;
	world_open(&w, dirs);
	program(&w, "v/3.98/bin/python3", ELF);
	snprintf(text, sizeof text, "#!/bin/sh\n[ \"$1\" = -c ] && echo %s\n",
		 host_path(&w.tree, "v/3.98/bin/python3"));
	program(&w, "home/.env/shims/python3", text);
	assert_int_equal(find(&w, "python3", &found, &err), 0);
	assert_string_equal(found.program, host_path(&w.tree, "v/3.98/bin/python3"));
	assert_string_equal(found.show, host_path(&w.tree, "v/3.98"));
	assert_string_equal(found.shim, host_path(&w.tree, "home/.env/shims/python3"));
	interp_release(&found);
	host_tree_close(&w.tree);
}

static int lines_of(const char *path)
{
	FILE *f = fopen(path, "r");
	int lines = 0;

	for (int c; f && (c = fgetc(f)) != EOF;)
		lines += c == '\n';
	if (f)
		fclose(f);
	return lines;
}

static void found_is(world *w, const char *program)
{
	interp_found found;
	sb_error err;

	assert_int_equal(find(w, "python3", &found, &err), 0);
	assert_string_equal(found.program, host_path(&w->tree, program));
	interp_release(&found);
}

/* An answer counts until anything is another that it is known to go by. */
static void an_answer_is_kept(void **state)
{
	static const char *const dirs[] = { "home/.env/shims", "/usr/bin", NULL };
	char text[2600], asked[1200], version[1200];
	world w;

	(void)state;
	world_open(&w, dirs);
	w.q.kept = shim_kept_new();
	assert_non_null(w.q.kept);
	snprintf(asked, sizeof asked, "%s", host_path(&w.tree, "asked"));
	snprintf(version, sizeof version, "%s", host_path(&w.tree, "home/.env/version"));
	program(&w, "v/1/bin/python3", ELF);
	program(&w, "v/2/bin/python3", ELF);
	host_write_mode(&w.tree, "home/.env/version", "1", 0644);
	snprintf(text, sizeof text, "#!/bin/sh\necho >>%s\necho %s/$(cat %s)/bin/python3\n", asked,
		 host_path(&w.tree, "v"), version);
	program(&w, "home/.env/shims/python3", text);
	for (int i = 0; i < 3; i++)
		found_is(&w, "v/1/bin/python3");
	assert_int_equal(lines_of(asked), 1);
	/* another version is chosen */
	host_write_mode(&w.tree, "home/.env/version", "2", 0644);
	for (int i = 0; i < 2; i++)
		found_is(&w, "v/2/bin/python3");
	assert_int_equal(lines_of(asked), 2);
	/* what it answered is another file; is gone */
	unlink(host_path(&w.tree, "v/2/bin/python3"));
	program(&w, "v/2/bin/python3", ELF "2");
	found_is(&w, "v/2/bin/python3");
	assert_int_equal(lines_of(asked), 3);
	/* another environment */
	w.env[1] = "CHOSEN=1";
	found_is(&w, "v/2/bin/python3");
	assert_int_equal(lines_of(asked), 4);
	/* another shim */
	snprintf(text, sizeof text, "#!/bin/sh\necho %s\n", host_path(&w.tree, "v/1/bin/python3"));
	program(&w, "home/.env/shims/python3", text);
	found_is(&w, "v/1/bin/python3");
	assert_int_equal(lines_of(asked), 4);
	shim_kept_free(w.q.kept);
	host_tree_close(&w.tree);
}

/* It would run as the caller, outside of every wall. */
static void nothing_is_asked_where_guests_may_write(void **state)
{
	static const char *const dirs[] = { "home/.here/bin", "other/.venv/bin", "home/work/bin",
		"home/.env/shims", "/usr/bin", NULL };
	char planted[1200], text[2600], asked[1200];
	int before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	interp_found found;
	sb_error err;
	world w;

	(void)state;
	world_open(&w, dirs);
	snprintf(planted, sizeof planted, "#!/bin/sh\necho >%s\n", host_path(&w.tree, "planted"));
	program(&w, "home/.here/bin/python3", planted);
	program(&w, "other/.venv/bin/python3", planted);
	program(&w, "home/work/bin/python3", planted);
	program(&w, "v/bin/python3", ELF);
	snprintf(asked, sizeof asked, "%s", host_path(&w.tree, "asked"));
	snprintf(text, sizeof text, "#!/bin/sh\npwd >%s\necho %s\n", asked, host_path(&w.tree, "v/bin/python3"));
	program(&w, "home/.env/shims/python3", text);
	assert_int_equal(chdir(host_path(&w.tree, "home/.here")), 0);
	assert_int_equal(find(&w, "python3", &found, &err), 0);
	assert_string_equal(found.program, host_path(&w.tree, "v/bin/python3")); /* the next on PATH */
	assert_int_equal(access(host_path(&w.tree, "planted"), F_OK), -1);
	interp_release(&found);
	/* nor does what the project holds tell the shim which one to take */
	FILE *f = fopen(asked, "r");

	assert_non_null(f);
	assert_non_null(fgets(text, sizeof text, f));
	assert_string_equal(text, "/\n");
	fclose(f);
	assert_int_equal(fchdir(before), 0);
	close(before);
	host_tree_close(&w.tree);
}

/* Fails, lies, is silent, floods, or hangs: the next on PATH is taken, in time. */
static void a_shim_that_does_not_answer_is_passed_over(void **state)
{
	static const char *const dirs[] = { "home/.env/shims", "real/bin", NULL };
	static const char *const shims[] = { "#!/bin/sh\nexit 1\n", "#!/bin/sh\necho python3\n",
		"#!/bin/sh\necho /no/such/file\n", "#!/bin/sh\n", "#!/bin/sh\nyes | tr -d '\\n'\n",
		"#!/bin/sh\necho $0\n", "#!/bin/sh\nsleep 600\n", "#!/no/such/interpreter\n" };
	interp_found found;
	sb_error err;
	size_t i;
	world w;

	(void)state;
	for (i = 0; i < UNIT_LEN(shims); i++) {
		world_open(&w, dirs);
		if (strstr(shims[i], "sleep"))
			w.q.ask_ms = 200;
		program(&w, "home/.env/shims/python3", shims[i]);
		program(&w, "real/bin/python3", ELF);
		unit_row(i, find(&w, "python3", &found, &err) == 0);
		unit_row(i, found.program &&
			 !strcmp(found.program, host_path(&w.tree, "real/bin/python3")));
		interp_release(&found);
		host_tree_close(&w.tree);
	}
}

static void broad_directories_are_never_a_prefix(void **state)
{
	static const char *const dirs[] = { "home/bin", "home/.local/bin", NULL };
	interp_found found;
	sb_error err;
	world w;

	(void)state;
	world_open(&w, dirs);
	program(&w, "home/bin/node", ELF);
	program(&w, "home/.local/bin/ruby", ELF);
	assert_int_equal(find(&w, "node", &found, &err), SB_ERR_NOT_FOUND);
	assert_null(found.show);
	assert_int_equal(find(&w, "ruby", &found, &err), SB_ERR_NOT_FOUND);
	assert_null(found.show);
	host_tree_close(&w.tree);
}

static void virtual_environments_stay_what_they_are(void **state)
{
	static const char *const dirs[] = { "proj/.venv/bin", NULL };
	char proj[512];
	interp_found found;
	sb_error err;
	world w;

	(void)state;
	world_open(&w, dirs);
	host_write(&w.tree, "proj/.venv/pyvenv.cfg", "");
	host_link(&w.tree, "/usr/bin/env", "proj/.venv/bin/python");
	assert_int_equal(find(&w, "python", &found, &err), 0);
	assert_string_equal(found.program, host_path(&w.tree, "proj/.venv/bin/python"));
	assert_string_equal(found.show, host_path(&w.tree, "proj/.venv"));
	interp_release(&found);
	/* in the workspace nothing more need be shown, but for the real one's prefix */
	snprintf(proj, sizeof proj, "%s", host_path(&w.tree, "proj"));
	w.q.workspace = proj;
	assert_int_equal(find(&w, "python", &found, &err), 0);
	assert_string_equal(found.program, host_path(&w.tree, "proj/.venv/bin/python"));
	assert_null(found.show);
	interp_release(&found);
	unlink(host_path(&w.tree, "proj/.venv/bin/python"));
	program(&w, "v/3.97/bin/python3", ELF);
	host_link(&w.tree, host_path(&w.tree, "v/3.97/bin/python3"), "proj/.venv/bin/python");
	assert_int_equal(find(&w, "python", &found, &err), 0);
	assert_string_equal(found.program, host_path(&w.tree, "proj/.venv/bin/python"));
	assert_string_equal(found.show, host_path(&w.tree, "v/3.97"));
	interp_release(&found);
	host_tree_close(&w.tree);
}

static void the_first_name_that_is_there_is_taken(void **state)
{
	static const char *const dirs[] = { "v/1/bin", NULL };
	interp_found found;
	sb_error err;
	world w;

	(void)state;
	world_open(&w, dirs);
	program(&w, "v/1/bin/lua5.4", ELF);
	w.names[1] = "lua5.4";
	assert_int_equal(find(&w, "lua", &found, &err), 0);
	assert_string_equal(found.program, host_path(&w.tree, "v/1/bin/lua5.4"));
	interp_release(&found);
	host_tree_close(&w.tree);
}

/* A file that is not executable is left to the start: it says so. */
static void paths_that_are_no_programs_are_left_alone(void **state)
{
	static const char *const dirs[] = { "/usr/bin", NULL };
	static const char *const paths[] = { "/etc/passwd", "/no/such", "/tmp", "/proc/self/exe",
		"/bin/sh", "/work/x", "./x", "sub/x" };
	interp_found found;
	sb_error err;
	size_t i;
	world w;

	(void)state;
	world_open(&w, dirs);
	for (i = 0; i < UNIT_LEN(paths); i++) {
		unit_row(i, find(&w, paths[i], &found, &err) == 0);
		unit_row(i, !found.program && !found.show);
	}
	host_tree_close(&w.tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_guest_finds_keeps_its_name),
		cmocka_unit_test(an_interpreter_elsewhere_brings_its_prefix),
		cmocka_unit_test(other_programs_are_never_shown_in_silence),
		cmocka_unit_test(rules_and_workspace_make_visible),
		cmocka_unit_test(a_shim_is_asked),
		cmocka_unit_test(an_answer_is_kept),
		cmocka_unit_test(nothing_is_asked_where_guests_may_write),
		cmocka_unit_test(a_shim_that_does_not_answer_is_passed_over),
		cmocka_unit_test(broad_directories_are_never_a_prefix),
		cmocka_unit_test(virtual_environments_stay_what_they_are),
		cmocka_unit_test(the_first_name_that_is_there_is_taken),
		cmocka_unit_test(paths_that_are_no_programs_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

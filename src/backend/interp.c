/* SPDX-License-Identifier: MIT */
/*
 * interp.c - which program a command means, and what must be shown for it to run.
 *
 * A candidate has two paths: as found (C) and with links resolved (R).  What matters is which of
 * them the box shows:
 *
 *   both                        it runs as it is
 *   C, not R (a link in a       an interpreter: the prefix of R is shown, C is run (so that a virtual
 *   workspace to pyenv)         environment stays one)
 *   R, not C (~/bin/python)     R is run; a virtual environment around C is shown, and C run
 *   neither                     a shim is asked for the real one; an interpreter's prefix is shown
 *
 * and everything else is an error that names the path and the option.
 */
#include "interp.h"
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FALLBACK_PATH "/usr/local/bin:/usr/bin:/bin"

static const char *const system_dirs[] = { "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
	"/libx32" };
/* Never shown as a whole: other people's or other programs' things lie there. */
static const char *const broad_dirs[] = { "/", "/opt", "/srv", "/tmp", "/var", "/var/tmp", "/home",
	"/root", "/mnt", "/media", "/run", "/etc", "/dev", "/proc", "/sys", "/nix", "/snap" };
static const char *const broad_below_home[] = { ".local", ".cargo", ".config", ".cache" };

/* ---- What is shown ----------------------------------------------------------------------------- */

/* The length by which a rule is near to `path`, 0 = it is about something else.  What hides "/bin" hides
 * "/usr/bin", where that is a link. */
static size_t nearness(const sb_file_rule *rule, const char *path)
{
	char real[PATH_MAX];

	if (path_is_within(path, rule->path))
		return strlen(rule->path);
	if ((rule->access == SB_FILE_HIDE || rule->access == SB_FILE_TMPFS) &&
	    realpath(rule->path, real) && path_is_within(path, real))
		return strlen(real);
	return 0;
}

static bool is_shown(const interp_query *q, const char *path)
{
	size_t best = 0, i;
	bool shown = false;

	if (q->everything)
		return true;
	for (i = 0; i < BASE_ARRAY_LEN(system_dirs); i++)
		if (path_is_within(path, system_dirs[i])) {
			best = strlen(system_dirs[i]);
			shown = true;
		}
	if (q->workspace && path_is_within(path, q->workspace) && strlen(q->workspace) >= best) {
		best = strlen(q->workspace);
		shown = true;
	}
	for (i = 0; q->rules && q->rules[i]; i++) {
		const sb_file_rule *rule = q->rules[i];
		size_t len = nearness(rule, path);

		if (!len || len < best || rule->access == SB_FILE_PROTECT)
			continue;
		best = len;
		shown = (rule->access == SB_FILE_READ || rule->access == SB_FILE_WRITE) &&
			(!rule->source || !strcmp(rule->source, rule->path));
	}
	return shown;
}

/* Directories whose contents are the box's own: what the host has there is not seen. */
static const char *private_dir(const char *path)
{
	static const char *const dirs[] = { "/tmp", "/run", "/var/tmp", "/dev/shm" };
	size_t i;

	for (i = 0; i < BASE_ARRAY_LEN(dirs); i++)
		if (path_is_within(path, dirs[i]))
			return dirs[i];
	return NULL;
}

static int not_shown(const char *name, const char *path, sb_error *err)
{
	const char *dir = private_dir(path);

	if (dir)
		return error_set(err, SB_ERR_NOT_FOUND, "exec",
				 "\"%s\" lies in \"%s\", which is private inside the sandbox; add --ro %s",
				 path, dir, path);
	if (strcmp(name, path))
		return error_set(err, SB_ERR_NOT_FOUND, "exec",
				 "\"%s\" is \"%s\", which the sandbox does not show; add --ro %s", name, path,
				 path);
	return error_set(err, SB_ERR_NOT_FOUND, "exec",
			 "\"%s\" is not shown inside the sandbox; add --ro %s", path, path);
}

/* By the caller: it is not for us to show it again. */
static bool is_hidden_by_rule(const interp_query *q, const char *path)
{
	size_t best = 0, i;
	bool hidden = false;

	for (i = 0; q->rules && q->rules[i]; i++) {
		const sb_file_rule *rule = q->rules[i];
		size_t len = nearness(rule, path);

		if (!len || len < best)
			continue;
		best = len;
		hidden = rule->access == SB_FILE_HIDE || rule->access == SB_FILE_TMPFS;
	}
	return hidden;
}

/* ---- Prefixes ------------------------------------------------------------------------------------ */

static void dir_of(const char *path, char *out, size_t cap)
{
	const char *slash = strrchr(path, '/');

	snprintf(out, cap, "%.*s", slash && slash != path ? (int)(slash - path) : 1, path);
}

static bool too_broad(const interp_query *q, const char *dir)
{
	char below[PATH_MAX];
	size_t i;

	for (i = 0; i < BASE_ARRAY_LEN(broad_dirs); i++)
		if (!strcmp(dir, broad_dirs[i]))
			return true;
	if (!q->home)
		return false;
	if (path_is_within(q->home, dir))
		return true;
	for (i = 0; i < BASE_ARRAY_LEN(broad_below_home); i++) {
		snprintf(below, sizeof below, "%s/%s", q->home, broad_below_home[i]);
		if (!strcmp(dir, below))
			return true;
	}
	return false;
}

/* The directory that an installed interpreter needs: above its bin, or its own. */
static bool prefix_of(const interp_query *q, const char *program, char *out, size_t cap)
{
	char dir[PATH_MAX];

	dir_of(program, dir, sizeof dir);
	if (!strcmp(path_base(dir), "bin") || !strcmp(path_base(dir), "sbin"))
		dir_of(dir, out, cap);
	else
		snprintf(out, cap, "%s", dir);
	return !too_broad(q, out);
}

static bool in_virtual_env(const char *program, char *env, size_t cap)
{
	char dir[PATH_MAX], mark[PATH_MAX + 16];

	dir_of(program, dir, sizeof dir);
	if (strcmp(path_base(dir), "bin"))
		return false;
	dir_of(dir, env, cap);
	snprintf(mark, sizeof mark, "%s/pyvenv.cfg", env);
	return !access(mark, F_OK);
}

/* ---- One candidate --------------------------------------------------------------------------------- */

enum { TAKEN = 0, NEXT = 1 }; /* or a negative error */

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

static bool is_script(const char *path)
{
	int FD_AUTO fd = open_regular(AT_FDCWD, path);
	char head[2];

	return fd >= 0 && read(fd, head, 2) == 2 && head[0] == '#' && head[1] == '!';
}

static int give(interp_found *found, const char *program, const char *show, sb_error *err)
{
	found->program = program ? strdup(program) : NULL;
	found->show = show ? strdup(show) : NULL;
	if ((program && !found->program) || (show && !found->show)) {
		interp_release(found);
		return error_no_memory(err, "exec");
	}
	return TAKEN;
}

/* An interpreter whose file the box does not show. */
static int take_hidden(const interp_query *q, const char *name, const char *as_found,
		       const char *real, interp_found *found, sb_error *err)
{
	char prefix[PATH_MAX], env[PATH_MAX];
	bool linked = is_shown(q, as_found);

	if (is_hidden_by_rule(q, real))
		return error_set(err, SB_ERR_NOT_FOUND, "exec",
				 "\"%s\" is \"%s\", which a rule hides; leave that rule out, or name "
				 "something beneath it", name, real);
	if (!linked && in_virtual_env(as_found, env, sizeof env))
		return not_shown(name, env, err);
	if (!shim_family(path_base(real)) || !prefix_of(q, real, prefix, sizeof prefix))
		return not_shown(name, real, err);
	return give(found, linked ? as_found : real, prefix, err);
}

static int take_real(const interp_query *q, const char *name, const char *as_found,
		     const char *real, interp_found *found, sb_error *err)
{
	char env[PATH_MAX];

	if (!is_shown(q, real))
		return take_hidden(q, name, as_found, real, found, err);
	if (is_shown(q, as_found))
		return give(found, as_found, NULL, err);
	if (in_virtual_env(as_found, env, sizeof env) && !too_broad(q, env))
		return give(found, as_found, env, err);
	return give(found, real, NULL, err);
}

static const char *env_value(const char *const *env, const char *name)
{
	size_t len = strlen(name), i;

	for (i = 0; env && env[i]; i++)
		if (!strncmp(env[i], name, len) && env[i][len] == '=')
			return env[i] + len + 1;
	return NULL;
}

static bool lies_in(const char *path, const char *dir)
{
	return dir && path_is_clean_absolute(dir) && path_is_within(path, dir);
}

/* The current folder is what commands get as their workspace; one that holds the home directory is
 * never a workspace. */
static bool below_here(const interp_query *q, const char *path)
{
	char here[PATH_MAX];

	if (!getcwd(here, sizeof here) || !strcmp(here, "/") ||
	    (q->home && path_is_within(q->home, here)))
		return false;
	return path_is_within(path, here);
}

/* Where version managers keep their scripts: ~/.pyenv and its like, where their own variables say, or
 * with the system.  Anywhere else a script is as likely a guest's of before: a PATH may lead through a
 * project (.venv/bin), and what is asked runs as the caller, outside of every wall. */
static bool may_be_asked(const interp_query *q, const char *path)
{
	static const char *const roots[] = { "PYENV_ROOT", "RBENV_ROOT", "NODENV_ROOT", "ASDF_DIR",
		"ASDF_DATA_DIR" };
	static const char *const installed[] = { "/usr", "/opt" };
	bool found = false;
	size_t i;

	if (below_here(q, path))
		return false;
	for (i = 0; i < BASE_ARRAY_LEN(roots); i++)
		found |= lies_in(path, env_value(q->host_env, roots[i]));
	for (i = 0; i < BASE_ARRAY_LEN(installed); i++)
		found |= lies_in(path, installed[i]);
	return found || (lies_in(path, q->home) && !strncmp(path + strlen(q->home), "/.", 2));
}

static int take(const interp_query *q, const char *name, const char *as_found, interp_found *found,
		sb_error *err)
{
	char real[PATH_MAX], asked[PATH_MAX];
	const shim_language *family = shim_family(path_base(as_found));

	if (!realpath(as_found, real))
		return NEXT;
	if (q->everything)
		return give(found, as_found, NULL, err);
	if (is_shown(q, real) || !is_script(real))
		return take_real(q, name, as_found, real, found, err);
	if (!family)
		return not_shown(name, as_found, err);
	if (!may_be_asked(q, real))
		return NEXT;
	if (!shim_ask_once(q->kept, family, as_found, q->host_env, q->ask_ms, q->cancel_fd, asked, sizeof asked))
		return NEXT;
	if (!realpath(asked, real) || is_script(real))
		return NEXT;
	found->shim = strdup(as_found);
	return take_real(q, name, asked, real, found, err);
}

/* ---- Looking ----------------------------------------------------------------------------------------- */

static bool path_has(const char *list, const char *dir)
{
	size_t len = strlen(dir);

	while (list && *list) {
		size_t n = strcspn(list, ":");

		if (n == len && !memcmp(list, dir, n))
			return true;
		list += n + (list[n] == ':');
	}
	return false;
}

/* The guest would find the very same by itself: keep the name as it was given. */
static void keep_name(const interp_query *q, const char *name, interp_found *found)
{
	char dir[PATH_MAX];

	if (q->everything || !found->program || found->show || strcmp(path_base(found->program), name))
		return;
	dir_of(found->program, dir, sizeof dir);
	if (!path_has(q->guest_path, dir))
		return;
	free(found->program);
	found->program = NULL;
}

static int look_on_path(const interp_query *q, const char *name, bool first, interp_found *found,
			sb_error *err)
{
	const char *list = env_value(q->host_env, "PATH");
	char path[PATH_MAX];
	int rc = NEXT;

	for (list = list ? list : FALLBACK_PATH; rc == NEXT && *list;) {
		size_t n = strcspn(list, ":");

		/* relative entries lead to whatever lies in the current directory: not taken */
		if (*list == '/' &&
		    (size_t)snprintf(path, sizeof path, "%.*s/%s", (int)n, list, name) < sizeof path &&
		    is_program(path)) {
			rc = take(q, name, path, found, err);
			if (rc == TAKEN && first)
				keep_name(q, name, found);
		}
		list += n + (list[n] == ':');
	}
	return rc;
}

/* A name with a slash in it: what is not on the host may be inside. */
static int look_at_path(const interp_query *q, const char *name, interp_found *found,
			sb_error *err)
{
	char path[PATH_MAX], clean[PATH_MAX];
	int rc;

	if (q->everything)
		return TAKEN;
	if (*name == '/')
		snprintf(path, sizeof path, "%s", name);
	else if (!q->cwd || (size_t)snprintf(path, sizeof path, "%s/%s", q->cwd, name) >= sizeof path)
		return TAKEN;
	if (!is_program(path) || path_is_within(path, "/proc") || path_is_within(path, "/dev") ||
	    path_is_within(path, "/work") || path_is_within(path, "/in"))
		return TAKEN;
	/* "/ws/./x" and the like: compared by what they are */
	if (!path_is_clean_absolute(path)) {
		if (!realpath(path, clean))
			return TAKEN;
		snprintf(path, sizeof path, "%s", clean);
	}
	rc = take(q, name, path, found, err);
	if (rc == TAKEN && found->program && !found->show && is_shown(q, path)) {
		free(found->program);
		found->program = NULL;
	}
	return rc == NEXT ? not_shown(name, path, err) : rc;
}

int interp_find(const interp_query *q, interp_found *found, sb_error *err)
{
	sb_error first_refusal = { 0 }, refusal;
	size_t i;
	int rc = NEXT;

	memset(found, 0, sizeof *found);
	for (i = 0; rc != TAKEN && q->names && q->names[i]; i++) {
		refusal = (sb_error){ 0 };
		interp_release(found);
		if (strchr(q->names[i], '/'))
			rc = look_at_path(q, q->names[i], found, &refusal);
		else
			rc = look_on_path(q, q->names[i], i == 0, found, &refusal);
		if (rc < 0 && !first_refusal.code)
			first_refusal = refusal;
	}
	if (rc == TAKEN || !first_refusal.code)
		return 0;
	interp_release(found);
	if (err)
		*err = first_refusal;
	return first_refusal.code;
}

void interp_release(interp_found *found)
{
	free(found->program);
	free(found->show);
	free(found->shim);
	memset(found, 0, sizeof *found);
}

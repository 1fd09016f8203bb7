/* SPDX-License-Identifier: MIT */
/*
 * place.c - what a request names on the host: the workspace, file rules, the working directory.
 *
 * A workspace is resolved once, to a path without links and a descriptor of the very directory.
 * Rules are taken literally unless they say SB_FILE_GLOB; what is to be shown must be there, and is
 * named by its real path, so that no link is followed later.  What is to be protected but absent is
 * kept aside and looked for after the run; the same look notices a protected file whose directory
 * was moved away and replaced.
 */
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

void place_init(place *p)
{
	*p = (place){ .fd = -1 };
}

void place_release(place *p)
{
	if (!p->fd_borrowed)
		fd_close(&p->fd);
	files_release(&p->files);
	strv_free_list(p->appeared);
	place_init(p);
}

/* The path with every link resolved, in the arena; NULL with errno. */
static char *real_path(arena *mem, const char *path)
{
	char *real = realpath(path, NULL), *out = NULL;

	if (!real)
		return NULL;
	out = arena_text(mem, real);
	free(real);
	if (!out)
		errno = ENOMEM;
	return out;
}

/* ---- workspace ---------------------------------------------------------------------------- */

int place_workspace(place *p, const sb_sandbox *sandbox, arena *mem, const char *text,
		    const char *const *environ_now, sb_error *err)
{
	const char *name = text ? text : ".";

	if (!*name)
		return error_set(err, SB_ERR_INVALID_PATH, "workspace", "the workspace is empty text");
	p->home = workspace_home(mem, environ_now);
	p->workspace = real_path(mem, name);
	if (!p->workspace && !text && errno == ENOENT)
		return error_set(err, SB_ERR_NOT_FOUND, "workspace",
				 "the current directory is not there any more; go to one that is, or "
				 "name one (--workspace DIR)");
	if (!p->workspace && !text)
		return error_errno(err, error_code_of_errno(errno), errno, "workspace",
				   "the current directory cannot be the workspace (--workspace none does "
				   "without)");
	if (!p->workspace)
		return error_errno(err, error_code_of_errno(errno), errno, "workspace",
				   "the workspace \"%s\" cannot be used", name);
	int code = workspace_allowed(p->workspace, p->home, sandbox, err);

	if (code < 0)
		return code;
	p->fd = open_plain(AT_FDCWD, p->workspace, O_PATH | O_DIRECTORY);
	if (p->fd < 0)
		return error_errno(err, error_code_of_errno(errno), errno, "workspace",
				   "the workspace \"%s\" cannot be used", name);
	return workspace_owner_allowed(p->workspace, p->fd, mem, err);
}

/* ---- rules -------------------------------------------------------------------------------- */

static bool grants(uint32_t access)
{
	return access == SB_FILE_READ || access == SB_FILE_WRITE;
}

static int add(place *p, const sb_file_rule *rule, const char *path, uint32_t origin, sb_error *err)
{
	sb_file_rule one = *rule;

	one.path = path;
	one.flags &= ~(uint32_t)SB_FILE_GLOB;
	return files_add(&p->files, &one, origin, err);
}

/* Expanded once, here; a name with a bracket in it is meant so only with SB_FILE_GLOB. */
static int add_glob(place *p, const sb_file_rule *rule, uint32_t origin, sb_error *err)
{
	strv found = { 0 };
	int code;

	if (rule->source || rule->access == SB_FILE_TMPFS)
		return error_set(err, SB_ERR_INVALID_SPEC, "files",
				 "the pattern \"%s\" cannot have a source or be a tmpfs", rule->path);
	code = pattern_expand(rule->path, !grants(rule->access), &found, err);
	if (!code && !found.len && grants(rule->access) && !(rule->flags & SB_FILE_OPTIONAL))
		code = error_set(err, SB_ERR_NOT_FOUND, "files", "nothing matches the pattern \"%s\"", rule->path);
	for (size_t i = 0; code >= 0 && i < found.len; i++)
		code = add(p, rule, found.at[i], origin, err);
	strv_release(&found);
	return code < 0 ? code : 0;
}

static int add_rules(place *p, const sb_file_rule *const *rules, uint32_t origin, sb_error *err)
{
	for (size_t i = 0; rules && rules[i]; i++) {
		sb_file_rule rule = { .size = sizeof rule };
		int code = record_read(&rule, sizeof rule, rules[i], "sb_file_rule", err);

		if (code >= 0 && rule.flags & SB_FILE_GLOB)
			code = add_glob(p, &rule, origin, err);
		else if (code >= 0)
			code = add(p, &rule, rule.path, origin, err);
		if (code < 0)
			return code;
	}
	return 0;
}

int place_rules(place *p, const sb_file_rule *const *caller, const sb_file_rule *const *fixed,
		bool protect, sb_error *err)
{
	int code = add_rules(p, caller, FILES_CALLER, err);

	if (code >= 0)
		code = add_rules(p, fixed, FILES_OPERATOR, err);
	if (code >= 0 && protect && p->workspace)
		code = protect_add(p, err);
	return code;
}

static place_seen seen_of(const struct stat *st, bool link)
{
	place_seen seen = { .dev = st->st_dev, .ino = st->st_ino };

	if (link)
		seen.changed = st->st_ctim;
	return seen;
}

static bool seen_same(const place_seen *a, const place_seen *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->changed.tv_sec == b->changed.tv_sec &&
	       a->changed.tv_nsec == b->changed.tv_nsec;
}

/* What stands at `path` now: the link, if it is one, and what it leads to.  Most lie in the workspace,
 * and are looked up from there. */
static place_watch look_at(const place *p, const char *path)
{
	place_watch now = { .path = path };
	size_t len = p->workspace && p->fd >= 0 ? strlen(p->workspace) : 0;
	bool inside = len && !strncmp(path, p->workspace, len) && path[len] == '/';
	const char *name = inside ? path + len + 1 : path;
	struct stat st;

	if (fstatat(inside ? p->fd : AT_FDCWD, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return now;
	if (S_ISLNK(st.st_mode))
		now.link = seen_of(&st, true);
	if (!stat(path, &st))
		now.target = seen_of(&st, false);
	return now;
}

/* A path to protect, on the host as it is now.  What is to be bound for it: itself; what it leads to
 * through links, if that lies in the workspace, too; or nothing (NULL).  A link itself cannot be
 * bound: one that is put in its place shows after the run. */
static const char *watch_protected(place *p, arena *mem, const char *path)
{
	place_watch *w = &p->watch[p->watch_count++];
	struct stat st;

	*w = look_at(p, path);
	if (!w->link.ino && !w->target.ino)
		return NULL;
	/* without following a link anywhere */
	int fd = open_plain(AT_FDCWD, path, O_PATH | O_NOFOLLOW);
	bool plain = fd >= 0 && fstat(fd, &st) == 0 && !S_ISLNK(st.st_mode);

	fd_close(&fd);
	if (plain)
		return path;
	const char *real = real_path(mem, path), *name = strrchr(path, '/');

	if (name && !strcmp(name, "/.git")) /* a folder is git's own to write in */
		return NULL;
	return real && p->workspace && path_is_within(real, p->workspace) ? real : NULL;
}

/* A link below a place that guests may write to leads wherever a guest of before wanted. */
static int no_link_below(const char *base, const char *source, sb_error *err)
{
	struct stat st;
	int dir, fd, code = 0;

	if (!strcmp(base, source) || !path_is_within(source, base))
		return 0;
	dir = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return 0; /* it is not there, which is told elsewhere */
	fd = open_plain(dir, source + strlen(base) + 1, O_PATH | O_NOFOLLOW);
	if ((fd < 0 && errno == ELOOP) || (fd >= 0 && !fstat(fd, &st) && S_ISLNK(st.st_mode)))
		code = error_set(err, SB_ERR_FORBIDDEN, "files",
				 "\"%s\" leads through a link below \"%s\", where commands may "
				 "write; name what it points to",
				 source, base);
	fd_close(&fd);
	fd_close(&dir);
	return code;
}

static int grant_direct(const place *p, const char *source, sb_error *err)
{
	int code = p->workspace ? no_link_below(p->workspace, source, err) : 0;

	for (size_t i = 0; code >= 0 && i < p->files.len; i++) {
		const files_rule *rule = &p->files.at[i];

		if (rule->access == SB_FILE_WRITE)
			code = no_link_below(rule->source ? rule->source : rule->path, source, err);
	}
	return code;
}

/* The path of a rule that takes something away, as the backend gets it; NULL = nothing is there. */
static const char *restriction_path(place *p, arena *mem, const files_rule *rule)
{
	struct stat st;

	if (rule->access == SB_FILE_PROTECT)
		return watch_protected(p, mem, rule->path);
	return lstat(rule->path, &st) == 0 ? rule->path : NULL;
}

/* 1 = what it shows is there, 0 = absent and optional. */
static int rule_ready(place *p, arena *mem, files_rule *rule, sb_error *err)
{
	const char *source = rule->source ? rule->source : rule->path;

	if (!grants(rule->access))
		return 1;
	int code = rule->origin == FILES_BUILTIN ? 0 : grant_direct(p, source, err);

	if (code < 0)
		return code;
	char *real = real_path(mem, source);

	if (real) {
		/* the real path is the source, so that nobody can swap a link beneath us */
		if (strcmp(real, rule->path)) {
			char *copy = strdup(real);

			if (!copy)
				return error_no_memory(err, "files");
			free(rule->source);
			rule->source = copy;
		}
		return 1;
	}
	if (rule->flags & SB_FILE_OPTIONAL && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	return error_errno(err, error_code_of_errno(errno), errno, "files",
			   "\"%s\" cannot be shown to the command", source);
}

/* Sorted by path; the list has room. */
static void list_insert(place *p, const sb_file_rule *rule)
{
	size_t i = p->rule_count++;

	for (; i > 0 && strcmp(p->rules[i - 1]->path, rule->path) > 0; i--)
		p->rules[i] = p->rules[i - 1];
	p->rules[i] = rule;
}

/* A rule as the backend gets it; NULL = none is needed, or no memory. */
static const sb_file_rule *settled_rule(place *p, arena *mem, const files_rule *rule)
{
	bool restricts = rule->access == SB_FILE_PROTECT || rule->access == SB_FILE_HIDE;
	const char *path = restricts ? restriction_path(p, mem, rule) : rule->path;
	sb_file_rule *one = path ? arena_alloc(mem, sizeof *one) : NULL;

	/* behind a link: whoever has a rule for that very path is heard first */
	for (size_t i = 0; one && path != rule->path && i < p->files.len; i++)
		if (!strcmp(p->files.at[i].path, path))
			return NULL;
	if (one)
		*one = (sb_file_rule){ .size = sizeof *one, .path = path, .source = rule->source,
				       .max_bytes = rule->max_bytes, .access = rule->access,
				       .flags = rule->flags };
	return one;
}

int place_settle(place *p, arena *mem, sb_error *err)
{
	int code = files_settle(&p->files, err);
	size_t count = p->files.len;

	if (code < 0)
		return code;
	p->rules = arena_alloc(mem, (count + 2) * sizeof *p->rules);
	p->watch = arena_alloc(mem, (count + 1) * sizeof *p->watch);
	for (size_t i = 0; i < count; i++) {
		files_rule *rule = &p->files.at[i];
		int ready = mem->failed ? SB_ERR_NO_MEMORY : rule_ready(p, mem, rule, err);

		if (ready < 0)
			return mem->failed ? error_no_memory(err, "files") : ready;
		const sb_file_rule *one = ready ? settled_rule(p, mem, rule) : NULL;

		if (one)
			list_insert(p, one);
	}
	return mem->failed ? error_no_memory(err, "files") : 0;
}

int place_add(place *p, arena *mem, const sb_file_rule *const *rules, size_t count, sb_error *err)
{
	/* with room for one more: place_show() */
	const sb_file_rule **list = arena_alloc(mem, (p->rule_count + count + 2) * sizeof *list);

	if (!list)
		return error_no_memory(err, "files");
	memcpy(list, p->rules, p->rule_count * sizeof *list);
	p->rules = list;
	for (size_t i = 0; i < count; i++)
		list_insert(p, rules[i]);
	return 0;
}

int place_show(place *p, arena *mem, const char *path, sb_error *err)
{
	sb_file_rule *rule = arena_alloc(mem, sizeof *rule);
	char *copy = arena_text(mem, path);

	if (!rule || !copy)
		return error_no_memory(err, "files");
	*rule = (sb_file_rule){ .size = sizeof *rule, .path = copy, .access = SB_FILE_READ };
	list_insert(p, rule);
	return 0;
}

/* ---- working directory --------------------------------------------------------------------- */

/* /work is there for code, and for a command that has no workspace. */
static int outside(sb_error *err, const char *cwd, const place *p, bool code)
{
	bool both = p->workspace && code;

	return error_set(err, SB_ERR_PATH_TRAVERSAL, "cwd",
			 "the working directory \"%s\" is outside of \"%s\"%s; name one inside", cwd,
			 p->workspace ? p->workspace : "/work", both ? " and \"/work\"" : "");
}

/* base + "/" + text with "." and ".." taken out by their letters; ".." above "/" stays at "/". */
static char *join_clean(arena *mem, const char *base, const char *text)
{
	char *out = arena_fmt(mem, "%s/%s", *text == '/' ? "" : base, text), *to, *from;

	if (!out)
		return NULL;
	for (to = from = out; *from;) {
		size_t len;

		while (*from == '/')
			from++;
		len = strcspn(from, "/");
		if (len == 2 && !memcmp(from, "..", 2)) {
			while (to > out && *--to != '/')
				;
		} else if (len && !(len == 1 && *from == '.')) {
			*to++ = '/';
			memmove(to, from, len);
			to += len;
		}
		from += len;
	}
	if (to == out)
		*to++ = '/';
	*to = 0;
	return out;
}

int place_cwd(place *p, arena *mem, const char *cwd, bool code, const char **out, sb_error *err)
{
	const char *base = code || !p->workspace ? "/work" : p->workspace;

	if (!cwd) {
		*out = base;
		return 0;
	}
	if (!*cwd)
		return error_set(err, SB_ERR_INVALID_PATH, "cwd", "the working directory is empty text");
	char *path = join_clean(mem, base, cwd);

	if (!path)
		return error_no_memory(err, "cwd");
	if (strlen(path) >= PATH_MAX)
		return error_set(err, SB_ERR_INVALID_PATH, "cwd", "the working directory is too long");
	*out = path;
	if (!p->workspace || !path_is_within(path, p->workspace))
		return path_is_within(path, "/work") && (code || !p->workspace)
			       ? 0
			       : outside(err, cwd, p, code);
	const char *rest = path + strlen(p->workspace);
	int fd = open_beneath(p->fd, *rest ? rest + 1 : ".", O_PATH | O_DIRECTORY);

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	if (errno == EXDEV)
		return outside(err, cwd, p, code);
	return error_errno(err, error_code_of_errno(errno), errno, "cwd",
			   "the working directory \"%s\" cannot be used", cwd);
}

/* ---- after the run -------------------------------------------------------------------------- */

/* Something stands there that was not, or is not what it was. */
static bool has_appeared(const place *p, const place_watch *before)
{
	place_watch now = look_at(p, before->path);

	if (now.link.ino && !seen_same(&now.link, &before->link))
		return true;
	return now.target.ino && !seen_same(&now.target, &before->target);
}

int place_look_again(place *p, sb_error *err)
{
	strv found = { 0 };

	for (size_t i = 0; i < p->watch_count; i++) {
		const place_watch *w = &p->watch[i];

		if (!has_appeared(p, w))
			continue;
		if (strv_add(&found, w->path) < 0) {
			strv_release(&found);
			return error_no_memory(err, "files");
		}
	}
	if (found.len) {
		p->appeared = strv_take(&found);
		if (!p->appeared)
			return error_no_memory(err, "files");
	}
	strv_release(&found);
	return 0;
}

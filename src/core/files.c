/* SPDX-License-Identifier: MIT */
/*
 * files.c - rules over paths.  Their order does not matter: the nearest rule wins, of two for one
 * path the stricter.  Everything here is text; what lies on the disk is looked at by others.
 */
#include "core.h"

/* Files that programs of the caller's run, or obey, without being asked: a guest that writes one
 * of them would act outside its walls later.  Sorted, as files_settle() wants them. */
static const char *const files_protected[] = {
	".bash_aliases", ".bash_login", ".bash_logout", ".bash_profile", ".bashrc", ".envrc",
	".git/commondir", ".git/config", ".git/config.worktree", ".git/hooks", ".gitconfig",
	".gitmodules", ".husky", ".idea", ".mcp.json", ".profile", ".vscode", ".zlogin",
	".zlogout", ".zprofile", ".zshenv", ".zshrc",
	NULL,
};

const char *const *files_protected_names(void)
{
	return files_protected;
}

static int files_refuse(sb_error *err, const char *path, const char *why)
{
	return error_set(err, SB_ERR_INVALID_SPEC, "files", "file rule for \"%s\" %s", path, why);
}

static int files_check(const sb_file_rule *rule, sb_error *err)
{
	const char *path = rule->path;

	if (!path)
		return error_set(err, SB_ERR_INVALID_SPEC, "files", "a file rule has no path");
	if (rule->access < SB_FILE_READ || rule->access > SB_FILE_TMPFS)
		return files_refuse(err, path,
				    "has no known access; use read, write, hide, protect or tmpfs");
	if (rule->flags & ~(uint32_t)(SB_FILE_GLOB | SB_FILE_OPTIONAL | SB_FILE_NOEXEC))
		return error_set(err, SB_ERR_UNSUPPORTED, "files",
				 "file rule for \"%s\" has a flag that this library does not know",
				 path);
	if (rule->source && rule->access != SB_FILE_READ && rule->access != SB_FILE_WRITE)
		return files_refuse(err, path, "has a source; only read and write take one");
	if (rule->source && rule->flags & SB_FILE_GLOB)
		return files_refuse(err, path, "is a pattern and has a source; name one path");
	if (rule->access == SB_FILE_TMPFS && rule->flags & SB_FILE_GLOB)
		return files_refuse(err, path, "is a pattern for a tmpfs; name one path");
	if (rule->max_bytes != 0 && rule->access != SB_FILE_TMPFS)
		return files_refuse(err, path, "has max_bytes; only tmpfs takes it");
	if (rule->max_bytes > INT64_MAX && rule->max_bytes != SB_UNLIMITED)
		return files_refuse(err, path, "has a negative max_bytes");
	return 0;
}

static void files_rule_release(files_rule *rule)
{
	free(rule->path);
	free(rule->source);
	memset(rule, 0, sizeof *rule);
}

static int files_push(files_set *set, const files_rule *rule)
{
	files_rule *at = buf_grow(set->at, set->len, &set->cap, sizeof *at);

	if (!at)
		return SB_ERR_NO_MEMORY;
	set->at = at;
	set->at[set->len++] = *rule;
	return 0;
}

int files_add(files_set *set, const sb_file_rule *rule, uint32_t origin, sb_error *err)
{
	files_rule copy = { .max_bytes = rule->max_bytes,
			    .access = rule->access,
			    .flags = rule->flags,
			    .origin = origin };
	int rc = files_check(rule, err);

	if (rc == 0)
		rc = path_clean_absolute(rule->path, &copy.path, err);
	if (rc == 0 && rule->source)
		rc = path_clean_absolute(rule->source, &copy.source, err);
	if (rc == 0 && strcmp(copy.path, "/") == 0)
		rc = files_refuse(err, "/", "covers everything; name directories beneath it");
	if (rc == 0 && copy.source && strcmp(copy.source, copy.path) == 0) {
		free(copy.source); /* the same, said twice */
		copy.source = NULL;
	}
	if (rc == 0 && files_push(set, &copy) < 0)
		rc = error_no_memory(err, "files");
	if (rc < 0)
		files_rule_release(&copy);
	return rc;
}

int files_add_protected(files_set *set, const char *workspace, sb_error *err)
{
	for (const char *const *name = files_protected; *name; name++) {
		files_rule rule = { .access = SB_FILE_PROTECT,
				    .flags = SB_FILE_OPTIONAL,
				    .origin = FILES_BUILTIN };

		if (path_join(workspace, *name, &rule.path) < 0)
			return error_no_memory(err, "files");
		if (files_push(set, &rule) < 0) {
			free(rule.path);
			return error_no_memory(err, "files");
		}
	}
	return 0;
}

static int files_compare(const void *left, const void *right)
{
	const files_rule *a = left, *b = right;
	int order = strcmp(a->path, b->path);

	if (order == 0)
		order = (int)(a->flags & SB_FILE_GLOB) - (int)(b->flags & SB_FILE_GLOB);
	if (order == 0)
		order = (int)a->origin - (int)b->origin;
	return order;
}

static int files_strictness(uint32_t access)
{
	switch (access) {
	case SB_FILE_HIDE:
		return 4;
	case SB_FILE_PROTECT:
		return 3;
	case SB_FILE_READ:
		return 2;
	case SB_FILE_TMPFS:
		return 1;
	default:
		return 0;
	}
}

static bool files_is_grant(const files_rule *rule)
{
	return rule->access == SB_FILE_READ || rule->access == SB_FILE_WRITE;
}

static bool files_same_source(const files_rule *a, const files_rule *b)
{
	return strcmp(a->source ? a->source : a->path, b->source ? b->source : b->path) == 0;
}

/* Makes `keep` the stricter of the two, which are for one path; `drop` is released by the caller.
 */
static int files_merge(files_rule *keep, files_rule *drop, sb_error *err)
{
	files_rule swap;

	if (files_strictness(drop->access) > files_strictness(keep->access)) {
		swap = *keep;
		*keep = *drop;
		*drop = swap;
	}
	if (keep->access == SB_FILE_HIDE)
		return 0;
	if ((drop->access == SB_FILE_TMPFS) != (keep->access == SB_FILE_TMPFS) &&
	    drop->access != SB_FILE_WRITE)
		return files_refuse(err, keep->path,
				    "contradicts another: a tmpfs and the host's file");
	if (files_is_grant(keep) && files_is_grant(drop) && !files_same_source(keep, drop))
		return files_refuse(err, keep->path, "contradicts another with a different source");
	if (keep->access == SB_FILE_TMPFS && drop->max_bytes != 0 &&
	    (keep->max_bytes == 0 || drop->max_bytes < keep->max_bytes))
		keep->max_bytes = drop->max_bytes;
	/* to protect what a grant shows is to show it read-only: the grant must not get lost */
	if (keep->access == SB_FILE_PROTECT && files_is_grant(drop)) {
		swap = *keep;
		*keep = *drop;
		*drop = swap;
		keep->access = SB_FILE_READ;
	}
	keep->flags |= drop->flags & SB_FILE_NOEXEC;
	if (!(drop->flags & SB_FILE_OPTIONAL) && files_is_grant(drop))
		keep->flags &= ~(uint32_t)SB_FILE_OPTIONAL;
	return 0;
}

static bool files_same_key(const files_rule *a, const files_rule *b)
{
	return strcmp(a->path, b->path) == 0 &&
	       (a->flags & SB_FILE_GLOB) == (b->flags & SB_FILE_GLOB);
}

/* Most requests have no rules but the built-in ones. */
static bool files_sorted(const files_set *set)
{
	for (size_t i = 1; i < set->len; i++)
		if (files_compare(&set->at[i - 1], &set->at[i]) > 0)
			return false;
	return true;
}

int files_settle(files_set *set, sb_error *err)
{
	size_t kept = 0;
	int rc = 0;

	if (!files_sorted(set))
		qsort(set->at, set->len, sizeof *set->at, files_compare);
	for (size_t i = 0; i < set->len; i++) {
		files_rule *rule = &set->at[i], *last = kept ? &set->at[kept - 1] : NULL;

		if (rc < 0 || !last || !files_same_key(last, rule)) {
			files_rule moved = *rule;

			memset(rule, 0, sizeof *rule);
			set->at[kept++] = moved;
			continue;
		}
		if (last->origin == FILES_BUILTIN && rule->origin >= FILES_CALLER) {
			files_rule_release(last);
			*last = *rule;
			memset(rule, 0, sizeof *rule);
			continue;
		}
		rc = files_merge(last, rule, err);
		files_rule_release(rule);
	}
	set->len = kept;
	return rc;
}

const files_rule *files_nearest(const files_set *set, const char *path)
{
	const files_rule *nearest = NULL;

	/* sorted: of two that hold the path, the longer comes later */
	for (size_t i = 0; i < set->len; i++)
		if (!(set->at[i].flags & SB_FILE_GLOB) && path_is_within(path, set->at[i].path))
			nearest = &set->at[i];
	return nearest;
}

void files_release(files_set *set)
{
	for (size_t i = 0; i < set->len; i++)
		files_rule_release(&set->at[i]);
	free(set->at);
	memset(set, 0, sizeof *set);
}

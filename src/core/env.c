/* SPDX-License-Identifier: MIT */
/* env.c - the guest's environment, complete: nothing comes in that was not named. */
#include "core.h"

typedef struct env_entry {
	const char *text; /* "NAME=value", borrowed */
	size_t name_len;
	size_t rank; /* of two with one name the higher stays */
} env_entry;

typedef struct env_table {
	env_entry *at;
	size_t len, cap;
} env_table;

/* Names only are told: a value may be a secret. */
int env_check(const char *entry, bool name_only, sb_error *err)
{
	size_t n = strcspn(entry, "=");

	if (n == 0)
		return error_set(err, SB_ERR_INVALID_SPEC, "env",
				 "an environment entry has no name; write \"NAME=value\"");
	if (name_only && entry[n] != '\0')
		return error_set(
			err, SB_ERR_INVALID_SPEC, "env",
			"variable name \"%.*s=\" contains \"=\"; list names without values",
			(int)(n < 200 ? n : 200), entry);
	if (!name_only && entry[n] == '\0')
		return error_set(err, SB_ERR_INVALID_SPEC, "env",
				 "environment entry \"%s\" has no \"=\"; write \"NAME=value\"",
				 entry);
	return 0;
}

static int env_add(env_table *table, const char *text)
{
	env_entry *at = buf_grow(table->at, table->len, &table->cap, sizeof *at);

	if (!at)
		return SB_ERR_NO_MEMORY;
	table->at = at;
	table->at[table->len] = (env_entry){ text, strcspn(text, "="), table->len };
	table->len++;
	return 0;
}

static int env_add_list(env_table *table, const char *const *list, sb_error *err)
{
	for (; list && *list; list++) {
		int rc = env_check(*list, false, err);

		if (rc < 0)
			return rc;
		if (env_add(table, *list) < 0)
			return error_no_memory(err, "env");
	}
	return 0;
}

static bool env_listed(const char *const *allow, const char *entry, size_t name_len)
{
	for (; allow && *allow; allow++)
		if (strncmp(*allow, entry, name_len) == 0 && (*allow)[name_len] == '\0')
			return true;
	return false;
}

/* The host's own entries: what is not "NAME=value" there is nobody's mistake here, and dropped. */
static int env_add_host(env_table *table, const sb_env *env, const char *const *host, sb_error *err)
{
	if (env->base == SB_ENV_NONE)
		return 0;
	for (; host && *host; host++) {
		size_t n = strcspn(*host, "=");

		if (n == 0 || (*host)[n] == '\0')
			continue;
		if (env->base == SB_ENV_LIST && !env_listed(env->allow, *host, n))
			continue;
		if (env_add(table, *host) < 0)
			return error_no_memory(err, "env");
	}
	return 0;
}

static int env_compare(const void *left, const void *right)
{
	const env_entry *a = left, *b = right;
	size_t n = a->name_len < b->name_len ? a->name_len : b->name_len;
	int order = memcmp(a->text, b->text, n);

	if (order == 0 && a->name_len != b->name_len)
		return a->name_len < b->name_len ? -1 : 1;
	if (order == 0)
		return a->rank < b->rank ? -1 : 1;
	return order;
}

static int env_finish(env_table *table, char ***out, sb_error *err)
{
	strv list = { 0 };
	char **taken;

	if (table->len > 0)
		qsort(table->at, table->len, sizeof *table->at, env_compare);
	for (size_t i = 0; i < table->len; i++) {
		const env_entry *e = &table->at[i], *next = e + 1;

		if (i + 1 < table->len && e->name_len == next->name_len &&
		    memcmp(e->text, next->text, e->name_len) == 0)
			continue;
		if (strv_add(&list, e->text) < 0) {
			strv_release(&list);
			return error_no_memory(err, "env");
		}
	}
	taken = strv_take(&list);
	if (!taken)
		return error_no_memory(err, "env");
	*out = taken;
	return 0;
}

int env_build(const sb_env *env, const char *const *fixed, const char *const *host,
	      const char *const *command_env, char ***out, sb_error *err)
{
	env_table table = { 0 };
	int rc;

	if (env->base != SB_ENV_INHERIT && env->base != SB_ENV_NONE && env->base != SB_ENV_LIST)
		return error_set(err, SB_ERR_INVALID_SPEC, "env", "unknown environment base %llu",
				 (unsigned long long)env->base);
	rc = env_add_list(&table, fixed, err);
	if (rc == 0)
		rc = env_add_host(&table, env, host, err);
	if (rc == 0)
		rc = env_add_list(&table, env->inject, err);
	if (rc == 0)
		rc = env_add_list(&table, command_env, err);
	if (rc == 0)
		rc = env_finish(&table, out, err);
	free(table.at);
	return rc;
}

/* SPDX-License-Identifier: MIT */
/*
 * shim_kept.c - answers of shims that are known already: asking one costs a sixth of a second.
 *
 * An answer counts for the same shim, environment and version files, as long as what it names is the same
 * file, and for a minute at most: a shim may go by anything else as well.  Whoever uses it looks at the
 * program anew, as behind a question.  No lock is held while a shim is asked.
 */
#include "shim.h"
#include "../base/sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { KEPT = 8 };
#define KEPT_NS (60ull * 1000000000ull)

struct shim_kept {
	pthread_mutex_t lock;
	struct {
		char key[SHA256_HEX], target[SHA256_HEX];
		char *answer;         /* NULL = free */
		uint64_t at_ns;
	} at[KEPT];
	unsigned next;
};

shim_kept *shim_kept_new(void)
{
	shim_kept *kept = calloc(1, sizeof *kept);

	if (kept)
		pthread_mutex_init(&kept->lock, NULL);
	return kept;
}

void shim_kept_free(shim_kept *kept)
{
	if (!kept)
		return;
	for (unsigned i = 0; i < KEPT; i++)
		free(kept->at[i].answer);
	pthread_mutex_destroy(&kept->lock);
	free(kept);
}

/* ---- what an answer goes by ------------------------------------------------------------------------ */

static void add_text(sha256 *h, const char *text)
{
	sha256_add(h, text, strlen(text) + 1);
}

/* Which file it is, and since when it is as it is. */
static void add_file(sha256 *h, const char *path)
{
	struct stat st;
	uint64_t is[7] = { 0 };

	if (stat(path, &st) == 0) {
		const uint64_t seen[] = { 1, st.st_dev, st.st_ino, (uint64_t)st.st_size, (uint64_t)st.st_ctim.tv_sec,
			(uint64_t)st.st_ctim.tv_nsec, st.st_mode };

		memcpy(is, seen, sizeof is);
	}
	add_text(h, path);
	sha256_add(h, is, sizeof is);
}

static void add_below(sha256 *h, const char *dir, size_t len, const char *name)
{
	char path[4096];

	if ((size_t)snprintf(path, sizeof path, "%.*s/%s", (int)len, dir, name) < sizeof path)
		add_file(h, path);
}

/* Beside the folder of shims lie the version that is chosen and those that there are; others have both in a file
 * of the home directory. */
static void make_key(const shim_language *language, const char *shim, const char *const *env, char key[SHA256_HEX])
{
	const char *folder = strrchr(shim, '/');
	sha256 h;

	sha256_init(&h);
	add_text(&h, language->name);
	add_file(&h, shim);
	while (folder && folder > shim && *--folder != '/')
		;
	if (folder) {
		add_below(&h, shim, (size_t)(folder - shim), "version");
		add_below(&h, shim, (size_t)(folder - shim), "versions");
	}
	for (; env && *env; env++) {
		add_text(&h, *env);
		if (!strncmp(*env, "HOME=", 5))
			add_below(&h, *env + 5, strlen(*env + 5), ".tool-versions");
	}
	sha256_hex(&h, key);
}

static void make_target(const char *program, char target[SHA256_HEX])
{
	sha256 h;

	sha256_init(&h);
	add_file(&h, program);
	sha256_hex(&h, target);
}

/* ---- keeping ------------------------------------------------------------------------------------------ */

static bool find(shim_kept *kept, const char *key, char *out, size_t cap)
{
	char target[SHA256_HEX];
	bool found = false;

	pthread_mutex_lock(&kept->lock);
	for (unsigned i = 0; i < KEPT && !found; i++) {
		if (!kept->at[i].answer || strcmp(kept->at[i].key, key) ||
		    clock_now_ns() - kept->at[i].at_ns >= KEPT_NS)
			continue;
		make_target(kept->at[i].answer, target);
		found = !strcmp(target, kept->at[i].target) &&
			(size_t)snprintf(out, cap, "%s", kept->at[i].answer) < cap;
	}
	pthread_mutex_unlock(&kept->lock);
	return found;
}

static void keep(shim_kept *kept, const char *key, const char *answer)
{
	unsigned at = 0;

	pthread_mutex_lock(&kept->lock);
	while (at < KEPT && (!kept->at[at].answer || strcmp(kept->at[at].key, key)))
		at++;
	if (at == KEPT)
		at = kept->next++ % KEPT;
	free(kept->at[at].answer);
	kept->at[at].answer = strdup(answer); /* no memory: it is asked again */
	memcpy(kept->at[at].key, key, SHA256_HEX);
	make_target(answer, kept->at[at].target);
	kept->at[at].at_ns = clock_now_ns();
	pthread_mutex_unlock(&kept->lock);
}

bool shim_ask_once(shim_kept *kept, const shim_language *language, const char *shim, const char *const *env,
		   uint64_t ask_ms, int cancel_fd, char *out, size_t cap)
{
	char key[SHA256_HEX];

	if (!kept)
		return shim_ask(language, shim, env, ask_ms, cancel_fd, out, cap);
	make_key(language, shim, env, key);
	if (find(kept, key, out, cap))
		return true;
	if (!shim_ask(language, shim, env, ask_ms, cancel_fd, out, cap))
		return false;
	keep(kept, key, out);
	return true;
}

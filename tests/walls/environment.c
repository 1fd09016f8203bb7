/* SPDX-License-Identifier: MIT */
/*
 * The caller's environment: a secret that is in it must be nowhere inside, neither in the guest's
 * own nor in that of a process that the guest can look at.
 *
 * wall env
 * fixture secret-env peer
 * backends linux process
 * attempt variable: open bare
 * attempt own_file: open bare
 * attempt parent_file: open bare | linux
 * attempt peer_file: open bare | linux
 * attempt any_process: open bare | linux
 */
#include "attempt.h"
#include <dirent.h>

/* Put together here, so that this program does not hold it itself. */
static int is_secret(const char *entry)
{
	static const char name[] = "WALLS_SECRET_VARIABLE=";

	return strncmp(entry, name, sizeof name - 1) == 0;
}

static int search(const char *path)
{
	static char text[1 << 16];
	FILE *f = fopen(path, "re");

	if (f == NULL)
		return errno;
	size_t n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	for (size_t at = 0; at < n; at += strlen(text + at) + 1)
		if (is_secret(text + at))
			return 0;
	return ENOENT;
}

static int variable(void)
{
	for (char **e = environ; *e != NULL; e++)
		if (is_secret(*e))
			return 0;
	return ENOENT;
}

static int own_file(void)
{
	return search("/proc/self/environ");
}

static int parent_file(void)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%ld/environ", (long)getppid());
	return search(path);
}

static int peer_file(void)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/environ", number("PEER"));
	return search(path);
}

static int any_process(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int got = ENOENT;

	while (dir != NULL && got != 0 && (entry = readdir(dir)) != NULL) {
		char path[300];

		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof path, "/proc/%s/environ", entry->d_name);
		got = search(path) == 0 ? 0 : ENOENT;
	}
	if (dir != NULL)
		closedir(dir);
	return got;
}

ATTEMPTS({ "variable", variable }, { "own_file", own_file }, { "parent_file", parent_file },
	 { "peer_file", peer_file }, { "any_process", any_process })

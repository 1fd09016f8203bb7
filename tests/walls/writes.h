/* SPDX-License-Identifier: MIT */
/* writes.h - attempts to change a directory that may only be read: OUTSIDE or WORKSPACE, named by WRITES_IN. */
#ifndef WRITES_H
#define WRITES_H

#include "attempt.h"
#include <sys/stat.h>

static const char *in(const char *name)
{
	static char path[2][4096];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof path[turn], "%s/%s", target(WRITES_IN), name);
	return path[turn];
}

static int overwrite(void)
{
	return try_open(in("spare"), O_WRONLY);
}

static int do_truncate(void)
{
	return verdict(truncate(in("spare"), 1));
}

static int create(void)
{
	return try_open(in("made"), O_WRONLY | O_CREAT);
}

static int make_directory(void)
{
	return verdict(mkdir(in("made-directory"), 0700));
}

static int make_link(void)
{
	return verdict(symlink("/", in("made-link")));
}

static int do_remove(void)
{
	return verdict(unlink(in("to-remove")));
}

static int do_rename(void)
{
	return verdict(rename(in("to-rename"), in("renamed")));
}

#endif /* WRITES_H */

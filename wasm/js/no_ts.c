/* SPDX-License-Identifier: MIT */
/* no_ts.c - stands in for ts.c in the module that knows JavaScript alone. */
#include "js.h"

void ts_snapshot(JSRuntime *rt)
{
	(void)rt;
}

void ts_renew(const uint64_t seeds[2])
{
	(void)seeds;
}

void ts_rehearse(void)
{
}

bool ts_wanted(const char *path)
{
	(void)path;
	return false;
}

bool ts_translate(const char *path, char **text, size_t *len)
{
	(void)path, (void)text, (void)len;
	return false;
}

char *ts_stack(const char *stack)
{
	(void)stack;
	return NULL;
}

int ts_take(const char *name, char **text, size_t *len, bool partial, char **why)
{
	(void)name, (void)text, (void)len, (void)partial, (void)why;
	return TS_MADE;
}

/* SPDX-License-Identifier: MIT */
/* folder.h - a current folder of the suite's own, for what takes it as its workspace. */
#ifndef SB_TESTS_FOLDER_H
#define SB_TESTS_FOLDER_H

#include "unit.h"

#include <unistd.h>

static char folder_own[] = "/tmp/sbtest-suite.XXXXXX";

static int folder_enter(void **state)
{
	(void)state;
	return !mkdtemp(folder_own) || chdir(folder_own) < 0;
}

static int folder_leave(void **state)
{
	(void)state;
	return chdir("/") < 0 || rmdir(folder_own) < 0;
}

#endif /* SB_TESTS_FOLDER_H */

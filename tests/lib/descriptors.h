/* SPDX-License-Identifier: MIT */
/* descriptors.h - how many descriptors this process has open, for what must not leave one behind. */
#ifndef SB_TESTS_DESCRIPTORS_H
#define SB_TESTS_DESCRIPTORS_H

#include <dirent.h>
#include <stdlib.h>

/* A number to be compared with another of it: its own descriptor and two names more are in it. */
static inline int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	if (!dir)
		abort();
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

#endif /* SB_TESTS_DESCRIPTORS_H */

/* SPDX-License-Identifier: MIT */
/*
 * System V and POSIX shared memory, semaphores and queues that somebody on the host made and left
 * open to all.
 *
 * wall files
 * fixture ipc
 * attempt sysv_memory: open without ipcns
 * attempt sysv_queue: open without ipcns
 * attempt sysv_semaphore: open without ipcns
 * attempt sysv_list: open without ipcns
 * attempt posix_memory: open without root+landlock | shut without landlock
 * attempt posix_queue: open without ipcns+landlock | shut without ipcns | shut without landlock
 */
#include "attempt.h"
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

static int sysv_memory(void)
{
	return verdict(shmget((key_t)number("SYSV_KEY"), 0, 0));
}

static int sysv_queue(void)
{
	return verdict(msgget((key_t)number("SYSV_KEY"), 0));
}

static int sysv_semaphore(void)
{
	return verdict(semget((key_t)number("SYSV_KEY"), 0, 0));
}

static int sysv_list(void)
{
	char line[512];
	FILE *f = fopen("/proc/sysvipc/shm", "re");
	int found = 0;

	if (f == NULL)
		return errno;
	while (fgets(line, sizeof line, f) != NULL)
		found |= (int)strtol(line, NULL, 10) == number("SYSV_KEY");
	fclose(f);
	return found ? 0 : ENOENT;
}

static int posix_memory(void)
{
	return verdict(shm_open(target("POSIX_NAME"), O_RDONLY, 0));
}

static int posix_queue(void)
{
	return verdict(mq_open(target("POSIX_NAME"), O_RDONLY));
}

ATTEMPTS({ "sysv_memory", sysv_memory }, { "sysv_queue", sysv_queue },
	 { "sysv_semaphore", sysv_semaphore }, { "sysv_list", sysv_list },
	 { "posix_memory", posix_memory }, { "posix_queue", posix_queue })

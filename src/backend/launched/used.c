/* SPDX-License-Identifier: MIT */
/*
 * used.c - what a process that runs has used.
 *
 * Its own time is that of its clock, which knows nanoseconds; of its children, and of the kernel's part,
 * there are ticks.  The number may be another process's by now: the kernel knows when each began.
 */
#include "launched.h"
#include "../../launch/sample_proc.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

static uint64_t ticks_us(uint64_t ticks)
{
	long per_second = sysconf(_SC_CLK_TCK);

	return ticks * (1000000 / (uint64_t)(per_second > 0 ? per_second : 100));
}

static bool read_it(sb_guest *guest, sample_process *now)
{
	int FD_AUTO proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (!guest->pid || proc < 0 || sample_read(proc, (int)guest->pid, now))
		return false;
	if (!guest->born)
		guest->born = now->start;
	return guest->born == now->start;
}

void launched_used(sb_guest *guest, sb_usage *usage)
{
	struct timespec own;
	sample_process now;
	clockid_t clock;

	if (!read_it(guest, &now))
		return;
	uint64_t own_us = ticks_us(now.own_ticks), system_us = ticks_us(now.system_ticks);

	if (clock_getcpuclockid((pid_t)guest->pid, &clock) == 0 && clock_gettime(clock, &own) == 0)
		own_us = (uint64_t)own.tv_sec * 1000000 + (uint64_t)own.tv_nsec / 1000;
	uint64_t all_us = own_us + ticks_us(now.children_ticks);

	usage->system_us = system_us < all_us ? system_us : all_us;
	usage->user_us = all_us - usage->system_us;
}

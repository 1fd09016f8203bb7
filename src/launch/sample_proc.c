/* SPDX-License-Identifier: MIT */
/* sample_proc.c - one process, as /proc tells of it. */
#include "sample_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define UNLIMITED ((uint64_t)-1)
#define SHORTEST_US 5000u
/* What one cpu can fill in a microsecond, generously: 2 GiB/s. */
#define FILL_BYTES_PER_US 2147u

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#define SYS_pidfd_send_signal 424
#endif

/* ---- Reading one process ---------------------------------------------------------------------- */

/* Writes "PID/name", or "PID/task/TID/name" with a tid; "" where it does not fit. */
void sample_path(char *out, size_t cap, int pid, int tid, const char *name)
{
	char text[80], *at = text + sizeof text;
	size_t len = strlen(name) + 1;

	*out = 0;
	if (len > sizeof text / 2 || cap < sizeof text)
		return;
	memcpy(at -= len, name, len);
	*--at = '/';
	if (tid) {
		for (; tid; tid /= 10)
			*--at = (char)('0' + tid % 10);
		memcpy(at -= 6, "/task/", 6);
	}
	for (; pid; pid /= 10)
		*--at = (char)('0' + pid % 10);
	memcpy(out, at, (size_t)(text + sizeof text - at));
}

/* That file beneath proc, NUL-ended in text; number of bytes or -errno. */
static ssize_t read_proc(int proc_fd, int pid, int tid, const char *name, char *text, size_t cap)
{
	char path[80];
	ssize_t n;
	int fd;

	sample_path(path, sizeof path, pid, tid, name);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, cap - 1);
	if (n < 0)
		n = -errno;
	close(fd);
	text[n > 0 ? n : 0] = 0;
	return n;
}

static uint64_t next_number(char **at)
{
	uint64_t n = 0;

	while (**at == ' ' || **at == '-')
		++*at;
	for (; **at >= '0' && **at <= '9'; ++*at)
		n = n * 10 + (uint64_t)(**at - '0');
	return n;
}

/* 0, -errno. */
int sample_read(int proc_fd, int pid, sample_process *p)
{
	char text[1024], *at;
	ssize_t n = read_proc(proc_fd, pid, 0, "stat", text, sizeof text);
	int field;

	if (n < 0)
		return (int)n;
	at = strrchr(text, ')'); /* the name may hold anything */
	if (!at || at[1] != ' ' || !at[2])
		return -ESRCH;
	at += 2;
	*p = (sample_process){ .pid = pid };
	p->dead = *at == 'Z' || *at == 'X' || *at == 'x';
	at++;
	p->parent = (int)next_number(&at);
	p->group = (int)next_number(&at);
	for (field = 6; field <= 22; field++) {
		uint64_t value = next_number(&at);

		if (field == 14 || field == 15)
			p->own_ticks += value;
		else if (field == 16 || field == 17)
			p->children_ticks += value;
		if (field == 15 || field == 17)
			p->system_ticks += value;
		else if (field == 20)
			p->threads = value;
		else if (field == 22)
			p->start = value;
	}
	p->headless = p->dead && p->threads > 1; /* its first thread has ended, others run on */
	p->dead = p->dead && !p->headless;
	return 0;
}

bool sample_sleeps(int proc_fd, int pid, int tid)
{
	char text[256], *at;

	if (read_proc(proc_fd, pid, tid, "stat", text, sizeof text) <= 0)
		return false;
	at = strrchr(text, ')');
	return at && at[1] == ' ' && at[2] && at[2] != 'R';
}

/* The number behind each line "key" of a text, in KiB, as bytes. */
static uint64_t sum_lines(const char *text, const char *const *keys, size_t count)
{
	uint64_t kib = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		const char *at = strstr(text, keys[i]);

		if (at)
			kib += strtoull(at + strlen(keys[i]), NULL, 10);
	}
	return kib << 10;
}

int sample_number(const char *name)
{
	int n = 0;

	if (*name < '1' || *name > '9')
		return 0;
	for (; *name >= '0' && *name <= '9'; name++)
		n = n * 10 + (*name - '0');
	return *name ? 0 : n;
}

int sample_threads(int proc_fd, int pid, int (*each)(void *context, int tid), void *context)
{
	char path[80], buf[2048] __attribute__((aligned(8)));
	long n, at;
	int fd, rc = 0;

	sample_path(path, sizeof path, pid, 0, "task");
	fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (!rc && (n = syscall(SYS_getdents64, fd, buf, sizeof buf)) > 0) {
		for (at = 0; at < n && !rc;) {
			const struct sample_dirent *e = (const void *)(buf + at);
			int tid = sample_number(e->name);

			at += e->len;
			if (tid)
				rc = each(context, tid);
		}
	}
	close(fd);
	return rc;
}

static int is_another(void *pid, int tid)
{
	return tid == *(int *)pid ? 0 : tid;
}

/* A thread that has the process's memory: 0 = the process itself, else one that still runs where
 * the first has ended (its own status then shows no memory). */
static int memory_thread(int proc_fd, const sample_process *p)
{
	int pid = p->pid, found = p->headless ? sample_threads(proc_fd, pid, is_another, &pid) : 0;

	return found > 0 ? found : 0;
}

uint64_t sample_memory(int proc_fd, const sample_process *p)
{
	static const char *const keys[] = { "\nRssAnon:", "\nRssShmem:", "\nVmPTE:",
		"\nVmSwap:" };
	char text[4096];

	if (read_proc(proc_fd, p->pid, memory_thread(proc_fd, p), "status", text, sizeof text) <= 0)
		return 0;
	return sum_lines(text, keys, sizeof keys / sizeof keys[0]);
}

uint64_t sample_memory_exact(int proc_fd, const sample_process *p)
{
	static const char *const keys[] = { "\nPss_Anon:", "\nPss_Shmem:", "\nSwapPss:" };
	char text[4096];

	if (read_proc(proc_fd, p->pid, memory_thread(proc_fd, p), "smaps_rollup", text,
		      sizeof text) <= 0 ||
	    !strstr(text, "\nPss_Anon:"))
		return sample_memory(proc_fd, p);
	return sum_lines(text, keys, sizeof keys / sizeof keys[0]);
}

uint64_t sample_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* ---- When to look next ------------------------------------------------------------------------ */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t sample_next_us(const lp_plan *plan, const launch_sample *now, uint32_t cpus)
{
	uint64_t next = plan->sample_us, busy = now->took_us * 9;

	if (!cpus)
		cpus = 1;
	if (plan->cpu_us != UNLIMITED)
		next = least(next, plan->cpu_us > now->cpu_us ? (plan->cpu_us - now->cpu_us) / cpus : 0);
	if (plan->memory_bytes != UNLIMITED)
		next = least(next, plan->memory_bytes > now->memory_bytes
				? (plan->memory_bytes - now->memory_bytes) / (FILL_BYTES_PER_US * cpus)
				: 0);
	if (next < SHORTEST_US)
		next = SHORTEST_US;
	/* a large /proc: looking takes a tenth of one cpu at most */
	if (next < busy)
		next = busy;
	return least(next, plan->sample_us);
}

/* ---- Killing ------------------------------------------------------------------------------------ */

/* By pidfd, after making sure that the pid is still the process that was seen. */
void sample_kill(int proc_fd, const sample_process *p)
{
	int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	sample_process again;

	if (fd < 0 && errno != ENOSYS && errno != EPERM)
		return;
	if (!sample_read(proc_fd, p->pid, &again) && again.start == p->start) {
		if (fd >= 0)
			syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
		else
			kill(p->pid, SIGKILL);
	}
	if (fd >= 0)
		close(fd);
}

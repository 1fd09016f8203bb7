/* SPDX-License-Identifier: MIT */
/*
 * stray.c - ends what a command left behind while others go on.
 *
 * Only its session can be told apart: a process that has left it belongs to the box, and dies with
 * that.
 */
#include "box.h"
#include "sys.h"

#include <signal.h>
#include <string.h>

#define ROUNDS 20

typedef struct entry {          /* what getdents64 answers */
	uint64_t ino;
	int64_t off;
	unsigned short len;
	unsigned char type;
	char name[];
} entry;

static int number_of(const char *text)
{
	int value = 0;

	for (; *text >= '0' && *text <= '9' && value < 100000000; text++)
		value = value * 10 + (*text - '0');
	return *text ? 0 : value;
}

/* Field 6 of /proc/PID/stat, behind the name's last ")"; -1 for a dead one. */
static int session_of(int proc, const char *pid)
{
	char path[32], text[512], *at;
	int fd, field, session = 0;
	ssize_t n;
	size_t len = strlen(pid);

	if (len > 16)
		return -1;
	memcpy(path, pid, len);
	memcpy(path + len, "/stat", 6);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return -1;
	text[n] = 0;
	at = strrchr(text, ')');
	if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X')
		return -1;
	for (field = 2; at && field < 6; field++)
		at = strchr(at + 1, ' ');
	for (at = at ? at + 1 : text + n; *at >= '0' && *at <= '9'; at++)
		session = session * 10 + (*at - '0');
	return session;
}

static int kill_round(int proc, int session)
{
	char buffer[4096] __attribute__((aligned(8)));
	int killed = 0;
	long n;

	lseek(proc, 0, SEEK_SET);
	while ((n = syscall(SYS_getdents64, proc, buffer, sizeof buffer)) > 0) {
		long at = 0;

		while (at < n) {
			const entry *e = (const entry *)(void *)(buffer + at);
			int pid = number_of(e->name);

			if (pid > 1 && session_of(proc, e->name) == session && kill(pid, SIGKILL) == 0)
				killed++;
			at += e->len;
		}
	}
	return killed;
}

void stray_kill(const launch_box *box, int session)
{
	int proc = box->proc >= 0 ? fcntl(box->proc, F_DUPFD_CLOEXEC, 3) :
				    open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int round;

	kill(-session, SIGKILL);
	if (proc < 0)
		return;
	for (round = 0; round < ROUNDS && kill_round(proc, session); round++)
		;
	close(proc);
}

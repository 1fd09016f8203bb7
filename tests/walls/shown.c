/* SPDX-License-Identifier: MIT */
/*
 * Writing where the caller let it read: a world-writable directory that is shown read-only.  Two
 * walls, the mount and landlock, hold each by itself (the directory lies outside of /tmp: landlock's
 * rules hold for all beneath, and /tmp may be written).
 *
 * wall files
 * fixture canary
 * show outside
 * attempt read: no control, it is permitted and must work
 * attempt overwrite: open without readonly+landlock | shut without readonly | shut without landlock
 * attempt truncate: open without readonly+landlock | shut without readonly if landlock-truncate | shut without landlock
 * attempt create: open without readonly+landlock | shut without readonly | shut without landlock
 * attempt make_directory: open without readonly+landlock | shut without readonly | shut without landlock
 * attempt make_link: open without readonly+landlock | shut without readonly | shut without landlock
 * attempt remove: open without readonly+landlock | shut without readonly | shut without landlock
 * attempt rename: open without readonly+landlock | shut without readonly | shut without landlock
 * attempt rename_in: open without readonly+landlock | shut without readonly | shut without landlock
 * attempt make_fifo: open without readonly+landlock | shut without readonly | shut without landlock
 * attempt make_socket: open without readonly+landlock | shut without readonly | shut without landlock
 */
#define WRITES_IN "OUTSIDE"
#include "writes.h"
#include <sys/socket.h>
#include <sys/un.h>

/* Turned around: that it cannot be read would be the fault. */
static int do_read(void)
{
	return try_open(in("canary"), O_RDONLY) == 0 ? EROFS : 0;
}

/* From the workspace, another mount: the second answer of a kernel that was willing is EXDEV. */
static int rename_in(void)
{
	char own[4096];

	snprintf(own, sizeof own, "%s/own", target("WORKSPACE"));
	if (try_open(own, O_WRONLY | O_CREAT) != 0)
		return errno;
	if (rename(own, in("brought")) == 0 || errno == EXDEV)
		return try_open(in("brought"), O_WRONLY | O_CREAT);
	return errno;
}

static int make_fifo(void)
{
	return verdict(mkfifo(in("made-fifo"), 0600));
}

static int make_socket(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (chdir(target("OUTSIDE")) < 0)
		return errno;
	snprintf(at.sun_path, sizeof at.sun_path, "made-socket");
	return verdict(bind(fd, (struct sockaddr *)&at, sizeof at));
}

ATTEMPTS({ "read", do_read }, { "overwrite", overwrite }, { "truncate", do_truncate },
	 { "create", create }, { "make_directory", make_directory }, { "make_link", make_link },
	 { "remove", do_remove }, { "rename", do_rename }, { "rename_in", rename_in },
	 { "make_fifo", make_fifo }, { "make_socket", make_socket })

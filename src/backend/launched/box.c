/* SPDX-License-Identifier: MIT */
/*
 * box.c - a box behind an sb-launch: its answers, and its end.
 *
 * States: starting (no READY yet), ready, and then one of: gone (GONE came), lost (the socket ended
 * without it), failed (FAILED about the box itself).  A failure before READY means that nothing of a
 * guest ever ran.
 */
#include "launched.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CGROUP_ROUNDS 250u /* half a second in all */

const char *launched_dir_in_work(const sb_box_request *request)
{
	const char *cwd = request->guest ? request->guest->cwd : NULL;
	bool there = !cwd || !path_is_within(cwd, "/work") || !strcmp(cwd, "/work") ||
		     (request->workspace && path_is_within(cwd, request->workspace));

	return there ? NULL : cwd;
}

int launched_lacks_work(const sb_box_request *request, sb_error *err)
{
	const char *cwd = launched_dir_in_work(request);

	if (!cwd)
		return 0;
	return error_set(err, SB_ERR_UNSUPPORTED, "cwd",
			 "without namespaces there is no \"/work\" to make \"%s\" in; name a directory of a "
			 "workspace", cwd);
}

sb_box *launched_box_new(const sb_limits *limits)
{
	sb_box *box = calloc(1, sizeof *box);

	if (!box)
		return NULL;
	box->scratch = box->uid_lock = box->code_fd = box->workspace_fd = -1;
	box->chown_uid = box->chown_gid = -1;
	if (limits)
		box->limits = *limits;
	return box;
}

static sb_guest *guest_of(sb_box *box, uint32_t id)
{
	sb_guest *g;

	for (g = box->guests; g; g = g->next)
		if (g->id == id)
			return g;
	return NULL;
}

static void take_failed(sb_box *box, const lp_failed *failed)
{
	sb_guest *guest = failed->head.id ? guest_of(box, failed->head.id) : NULL;

	if (guest) {
		guest->refused = true;
		lh_failed_error(failed, &guest->failure);
	} else if (!failed->head.id && !box->failure.code) {
		lh_failed_error(failed, &box->failure);
	}
}

static void take_exited(sb_box *box, const lp_exited *exited)
{
	sb_guest *guest = guest_of(box, exited->head.id);

	box->usage = exited->usage;
	box->usage_known = true;
	if (!guest)
		return;
	guest->end = *exited;
	guest->ended = true;
}

static void take(sb_box *box, const lh_answer *answer, int *fd)
{
	sb_guest *guest;

	switch (answer->head.kind) {
	case LP_READY:
		box->ready = true;
		box->held = answer->ready.held;
		if (answer->ready.has_scratch) {
			fd_close(&box->scratch);
			box->scratch = *fd;
			*fd = -1;
		}
		break;
	case LP_FAILED:
		take_failed(box, &answer->failed);
		break;
	case LP_SPAWNED:
		guest = guest_of(box, answer->head.id);
		if (guest) {
			guest->started = true;
			guest->pid = answer->spawned.pid;
			fd_close(&guest->terminal); /* a pid 1 that was taken over may say it again and again */
			guest->terminal = *fd;
			*fd = -1;
		}
		break;
	case LP_PLACED:
		guest = guest_of(box, answer->head.id);
		if (guest) {
			guest->started = true;
			fd_close(&guest->terminal);
			guest->terminal = *fd; /* what was opened */
			*fd = -1;
		}
		break;
	case LP_EXITED:
		take_exited(box, &answer->exited);
		break;
	case LP_LIMIT:
		box->limit = answer->limit.limit;
		break;
	case LP_GONE:
		box->gone = true;
		box->leftovers = answer->gone.leftovers;
		break;
	default:
		break;
	}
}

int launched_box_hear(sb_box *box, const sb_call *call, bool wait, sb_error *err)
{
	lh_answer answer;
	int fd = -1;
	int rc = lh_next(box->launch, call, wait, &answer, &fd, err);

	if (rc)
		return rc;
	take(box, &answer, &fd);
	fd_close(&fd);
	return 0;
}

void launched_box_listen(sb_box *box)
{
	const sb_call now = { .size = sizeof now, .deadline_ns = SB_UNLIMITED, .cancel_fd = -1 };
	sb_error err = { 0 };
	int rc;

	if (!box->launch || box->gone || box->lost)
		return;
	do
		rc = launched_box_hear(box, &now, false, &err);
	while (!rc && !box->gone);
	if (!rc || rc == SB_ERR_AGAIN)
		return;
	box->lost = true;
	if (!box->failure.code)
		box->failure = err;
}

int launched_send_failed(sb_box *box, int rc, sb_error *err)
{
	launched_box_listen(box);
	if (box->failure.code && rc == SB_ERR_CONNECTION_LOST) {
		if (err)
			*err = box->failure;
		rc = box->failure.code;
	}
	return rc;
}

int launched_box_wait_ready(sb_box *box, const sb_call *call, sb_error *err)
{
	int rc = 0;

	while (!rc && !box->ready && !box->failure.code && !box->lost)
		rc = launched_box_hear(box, call, true, err);
	if (box->failure.code) {
		if (err)
			*err = box->failure;
		return box->failure.code;
	}
	return rc;
}

/* An sb-launch that was killed left them, with nothing in them but what is dying.  What stays. */
static size_t remove_cgroups(const sb_box *box)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	size_t i, stay = 0, busy = box->cgroups.len;
	unsigned round;

	for (round = 0; busy && round < CGROUP_ROUNDS; round++) {
		if (round)
			nanosleep(&pause, NULL);
		for (i = stay = busy = 0; i < box->cgroups.len; i++) {
			if (rmdir(box->cgroups.at[i]) == 0 || errno == ENOENT)
				continue;
			stay++;
			busy += errno == EBUSY;
		}
	}
	return stay;
}

void launched_box_teardown(sb_box *box, sb_teardown *report)
{
	launched_box_listen(box);
	/* the kernel takes the file system down with its last user: while pid 1 ends, not after it */
	fd_close(&box->scratch);
	if (box->launch && lh_ends(box->launch))
		launched_box_listen(box);
	bool removed = box->gone && !box->leftovers;

	lh_close(box->launch);
	box->launch = NULL;
	if (!removed)
		report->left = remove_cgroups(box);
	strv_release(&box->cgroups);
}

void launched_box_destroy(sb_box *box)
{
	sb_teardown unread;

	if (!box)
		return;
	launched_box_teardown(box, &unread);
	fd_close(&box->scratch);
	fd_close(&box->code_fd);
	fd_close(&box->workspace_fd);
	/* last: the uid is free only when nothing runs as it */
	fd_close(&box->uid_lock);
	free(box->workspace);
	free(box);
}

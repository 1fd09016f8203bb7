/* SPDX-License-Identifier: MIT */
/*
 * noop.c - runs nothing and enforces nothing: every command ends at once, empty and well.
 *
 * For programs that want to see what they would run, and for tests of what lies around a backend.
 */
#include "builtin.h"
#include "../base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

struct sb_state { int unused; };
struct sb_box { int unused; };
struct sb_guest { int unused; };

static int noop_probe(const sb_backend *self, const sb_call *call, sb_report *report,
		      sb_state **state, sb_error *err)
{
	const sb_check check = { .size = sizeof check, .backend = "noop", .what = "running nothing",
		.found = "always works; nothing is run, nothing is enforced", .remedy = "", .ok = 1 };
	int rc = report ? sb_report_add(report, &check, err) : 0;

	(void)self;
	(void)call;
	if (rc)
		return rc;
	*state = calloc(1, sizeof **state);
	return *state ? 0 : error_no_memory(err, "probe");
}

static int noop_plan(sb_state *state, const sb_box_request *request, sb_plan *plan, sb_error *err)
{
	const sb_enforcement held = { .size = sizeof held };
	uint32_t wall;
	int rc = 0;

	(void)state;
	(void)request;
	for (wall = 0; !rc && wall < SB_WALL_COUNT; wall++) {
		const sb_plan_line line = { .size = sizeof line, .wall = wall, .level = SB_LEVEL_NONE,
			.mechanism = "none", .caveat = "nothing is run", .subject = "", .test = "" };

		rc = sb_plan_add(plan, &line, err);
	}
	if (!rc)
		rc = sb_plan_set_caps(plan, SB_CAP_SPLIT_STREAMS);
	return rc ? rc : sb_plan_set_enforcement(plan, &held);
}

static int noop_create(sb_state *state, const sb_box_request *request, const sb_plan *plan,
		       const sb_call *call, sb_box **box, sb_error *err)
{
	(void)state;
	(void)request;
	(void)plan;
	(void)call;
	*box = calloc(1, sizeof **box);
	return *box ? 0 : error_no_memory(err, "create");
}

/* A pipe of which only our end is left: the end of file, or a reader that went away. */
static int half_pipe(int keep)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	close(fds[!keep]);
	return fds[keep];
}

static int noop_spawn(sb_box *box, const sb_guest_request *request, const sb_call *call,
		      sb_guest **guest, sb_guest_io *io, sb_error *err)
{
	int fds[4] = { -1, -1, -1, -1 }, i, rc = 0;

	(void)box;
	(void)call;
	for (i = request->flags & SB_GUEST_INPUT ? 0 : 1; !rc && i < 4; i++) {
		fds[i] = half_pipe(i == 0);
		rc = fds[i] < 0 ? fds[i] : 0;
	}
	*guest = rc ? NULL : calloc(1, sizeof **guest);
	if (!*guest) {
		for (i = 0; i < 4; i++)
			fd_close(&fds[i]);
		return rc ? error_errno(err, SB_ERR_IO, -rc, "spawn", "cannot make pipes")
			  : error_no_memory(err, "spawn");
	}
	io->in = fds[0];
	io->out = fds[1];
	io->err = fds[2];
	io->exited = fds[3];
	io->control = -1;
	return 0;
}

static int noop_signal(sb_guest *guest, int signal, const sb_call *call, sb_error *err)
{
	(void)guest;
	(void)signal;
	(void)call;
	(void)err;
	return 0;
}

static int noop_put(sb_box *box, const char *path, const sb_tree *tree, const sb_call *call,
		    sb_error *err)
{
	(void)box;
	(void)path;
	(void)tree;
	(void)call;
	(void)err;
	return 0;
}

static int noop_reap(sb_guest *guest, sb_guest_exit *end, sb_error *err)
{
	(void)guest;
	(void)err;
	end->outcome = SB_OUTCOME_EXITED;
	end->error = end->code = end->signal_number = 0;
	return 0;
}

static int noop_usage(sb_box *box, sb_guest *guest, sb_usage *usage)
{
	(void)box;
	(void)guest;
	(void)usage;
	return 0;
}

static void noop_release(sb_guest *guest)
{
	free(guest);
}

static void noop_destroy(sb_box *box)
{
	free(box);
}

static int noop_supports(const sb_backend *self, const sb_pack *pack)
{
	(void)self;
	(void)pack;
	return 1;
}

static void noop_forget(sb_state *state)
{
	free(state);
}

const sb_backend backend_noop = {
	.size = sizeof(sb_backend),
	.abi = SB_BACKEND_ABI,
	.name = "noop",
	.summary = "runs nothing, enforces nothing",
	.caps = SB_CAP_SPLIT_STREAMS,
	.probe = noop_probe,
	.supports = noop_supports,
	.plan = noop_plan,
	.create = noop_create,
	.spawn = noop_spawn,
	.signal = noop_signal,
	.put = noop_put,
	.reap = noop_reap,
	.usage = noop_usage,
	.release = noop_release,
	.destroy = noop_destroy,
	.forget = noop_forget,
};

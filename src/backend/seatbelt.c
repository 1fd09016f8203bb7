/* SPDX-License-Identifier: MIT */
/* seatbelt.c - the sandbox of macOS: known by name, never usable on Linux. */
#include "builtin.h"
#include "../base/base.h"

#define WHY "seatbelt is a mechanism of macOS and does not exist on Linux; use backend \"linux\""

static int seatbelt_probe(const sb_backend *self, const sb_call *call, sb_report *report,
			  sb_state **state, sb_error *err)
{
	const sb_check check = { .size = sizeof check, .backend = "seatbelt", .what = "macOS",
		.found = "this is Linux", .remedy = "use backend linux", .ok = 0 };
	int rc = report ? sb_report_add(report, &check, err) : 0;

	(void)self;
	(void)call;
	(void)state;
	return rc ? rc : error_set(err, SB_ERR_BACKEND_UNAVAILABLE, "seatbelt", WHY);
}

static int seatbelt_plan(sb_state *state, const sb_box_request *request, sb_plan *plan,
			 sb_error *err)
{
	(void)state;
	(void)request;
	(void)plan;
	return error_set(err, SB_ERR_BACKEND_UNAVAILABLE, "seatbelt", WHY);
}

static int seatbelt_create(sb_state *state, const sb_box_request *request, const sb_plan *plan,
			   const sb_call *call, sb_box **box, sb_error *err)
{
	(void)plan;
	(void)call;
	(void)box;
	return seatbelt_plan(state, request, NULL, err);
}

/* No box is ever made, so what follows is never called; the table is whole all the same. */
static int seatbelt_spawn(sb_box *box, const sb_guest_request *request, const sb_call *call,
			  sb_guest **guest, sb_guest_io *io, sb_error *err)
{
	(void)box;
	(void)request;
	(void)call;
	(void)guest;
	(void)io;
	return error_set(err, SB_ERR_BACKEND_UNAVAILABLE, "seatbelt", WHY);
}

static int seatbelt_signal(sb_guest *guest, int signal, const sb_call *call, sb_error *err)
{
	(void)guest;
	(void)signal;
	(void)call;
	return error_set(err, SB_ERR_BACKEND_UNAVAILABLE, "seatbelt", WHY);
}

static int seatbelt_reap(sb_guest *guest, sb_guest_exit *end, sb_error *err)
{
	(void)guest;
	(void)end;
	return error_set(err, SB_ERR_BACKEND_UNAVAILABLE, "seatbelt", WHY);
}

static int seatbelt_usage(sb_box *box, sb_guest *guest, sb_usage *usage)
{
	(void)box;
	(void)guest;
	(void)usage;
	return SB_ERR_BACKEND_UNAVAILABLE;
}

static void seatbelt_release(sb_guest *guest)
{
	(void)guest;
}

static void seatbelt_destroy(sb_box *box)
{
	(void)box;
}

static void seatbelt_forget(sb_state *state)
{
	(void)state;
}

const sb_backend backend_seatbelt = {
	.size = sizeof(sb_backend),
	.abi = SB_BACKEND_ABI,
	.name = "seatbelt",
	.summary = "the sandbox of macOS; not on Linux",
	.probe = seatbelt_probe,
	.plan = seatbelt_plan,
	.create = seatbelt_create,
	.spawn = seatbelt_spawn,
	.signal = seatbelt_signal,
	.reap = seatbelt_reap,
	.usage = seatbelt_usage,
	.release = seatbelt_release,
	.destroy = seatbelt_destroy,
	.forget = seatbelt_forget,
};

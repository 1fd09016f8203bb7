/* SPDX-License-Identifier: MIT */
/* answer.c - READY .. GONE, as the host hears them from a pid 1 that a guest may have taken over. */
#include "fuzz.h"

#include "../src/launch/host.h"

#define LEAD 8

static void use_answer(const lh_answer *a, size_t len, size_t fds)
{
	sb_error err;

	FUZZ_CHECK(len <= sizeof *a && fds <= 2);
	if (a->head.kind == LP_FAILED) {
		FUZZ_CHECK(lh_failed_error(&a->failed, &err) < 0);
		FUZZ_CHECK(memchr(err.message, 0, sizeof err.message) && !strchr(err.message, '\n'));
	}
	if (a->head.kind == LP_EXITED)
		FUZZ_CHECK(a->exited.code < 256 && (a->exited.code >= 0 || a->exited.signo > 0));
}

int fuzz_one(uint8_t *data, size_t len)
{
	const char *why = NULL;

	if (len < LEAD)
		return 0;
	if (lp_decode_answer(data + LEAD, len - LEAD, data[0], &why) < 0) {
		fuzz_check_why(why);
		return 0;
	}
	use_answer((const void *)(data + LEAD), len - LEAD, data[0]);
	return 1;
}

size_t fuzz_seed(size_t at, uint8_t *out, size_t cap)
{
	static lh_answer a;
	static const size_t sizes[] = { sizeof(lp_ready), sizeof(lp_failed), sizeof(lp_spawned),
		sizeof(lp_exited), sizeof(lp_limit), sizeof(lp_dialed), sizeof(lp_placed),
		sizeof(lp_gone) };

	if (at >= sizeof sizes / sizeof sizes[0] || LEAD + sizes[at] > cap)
		return 0;
	memset(&a, 0, sizeof a);
	a.head = (lp_head){ LP_VERSION, LP_READY + (uint32_t)at, (uint32_t)sizes[at], 1 };
	memset(out, 0, LEAD);
	switch (a.head.kind) {
	case LP_READY:
		a.ready.has_scratch = 1;
		out[0] = 1;
		break;
	case LP_FAILED:
		memcpy(a.failed.where, "userns", 6);
		memcpy(a.failed.message, "cannot\nmake it", 14);
		break;
	case LP_SPAWNED:
		a.spawned.pid_inside = 2;
		break;
	case LP_EXITED:
		a.exited.code = 3;
		break;
	case LP_LIMIT:
		a.limit.limit = LP_LIMIT_MEMORY;
		break;
	case LP_DIALED:
		out[0] = 1;
		break;
	}
	memcpy(out + LEAD, &a, sizes[at]);
	return LEAD + sizes[at];
}

/* SPDX-License-Identifier: MIT */
/* request.c - PUT, SPAWN, SIGNAL, RESIZE, STOP, DIAL, RELAY, OPEN, REMOVE, RENEW.  First byte: number of descriptors. */
#include "fuzz.h"

#include "../src/launch/protocol.h"

#define LEAD 8

static void use_request(const lp_head *head, size_t len, size_t fds)
{
	const lp_spawn *s = (const void *)head;

	FUZZ_CHECK(head->bytes == len);
	FUZZ_CHECK(head->kind >= LP_PUT && head->kind <= LP_RENEW);
	if (head->kind == LP_RELAY) {
		const lp_relay *r = (const void *)head;

		FUZZ_CHECK(r->len && r->len <= LP_MAX_RELAY && len == sizeof *r + r->len);
		FUZZ_CHECK(fds == 1 || fds == 2);
		return;
	}
	if (head->kind == LP_OPEN || head->kind == LP_REMOVE) {
		const lp_path *p = (const void *)head;

		FUZZ_CHECK(!fds && head->id && memchr(p->path, 0, sizeof p->path));
		FUZZ_CHECK(p->path[0] && p->path[0] != '/' && !strstr(p->path, "//"));
		return;
	}
	if (head->kind != LP_SPAWN) {
		FUZZ_CHECK(fds == (head->kind == LP_PUT));
		return;
	}
	bool inlined = s->flags & LP_S_INLINE;

	FUZZ_CHECK(len == sizeof *s + (inlined ? s->args_bytes : 0));
	FUZZ_CHECK(fds >= 5 - (size_t)inlined && fds <= 7 - (size_t)inlined);
	FUZZ_CHECK(memchr(s->cwd, 0, sizeof s->cwd) && s->cwd[0] == '/');
	FUZZ_CHECK(s->args_bytes <= LP_MAX_ARGS);
}

int fuzz_one(uint8_t *data, size_t len)
{
	const char *why = NULL;

	if (len < LEAD)
		return 0;
	if (lp_decode_request(data + LEAD, len - LEAD, data[0], &why) < 0) {
		fuzz_check_why(why);
		return 0;
	}
	use_request((const void *)(data + LEAD), len - LEAD, data[0]);
	return 1;
}

size_t fuzz_seed(size_t at, uint8_t *out, size_t cap)
{
	static union {
		lp_head head;
		lp_put put;
		lp_spawn spawn;
		lp_signal signal;
		lp_resize resize;
		lp_stop stop;
		lp_dial dial;
		lp_relay relay;
		lp_path path;
		lp_renew renew;
		char room[sizeof(lp_spawn) + 100];
	} r;
	static const size_t sizes[] = { sizeof(lp_put), sizeof(lp_spawn), sizeof(lp_signal),
		sizeof(lp_resize), sizeof(lp_stop), sizeof(lp_dial), sizeof(lp_spawn),
		sizeof(lp_spawn) + 100, sizeof(lp_relay) + 20, sizeof(lp_path), sizeof(lp_path),
		sizeof(lp_renew) };
	uint8_t fds = 0;

	if (at >= sizeof sizes / sizeof sizes[0] || LEAD + sizes[at] > cap)
		return 0;
	memset(&r, 0, sizeof r);
	r.head = (lp_head){ LP_VERSION, LP_PUT + (uint32_t)at, (uint32_t)sizes[at], 1 };
	switch (at) {
	case 0:
		r.put.archive_bytes = 4096;
		fds = 1;
		break;
	case 1:
	case 6:
	case 7:
		r.head.kind = LP_SPAWN;
		r.spawn.args_bytes = 100;
		r.spawn.cwd[0] = '/';
		r.spawn.flags = at == 6 ? LP_S_CONTROL | LP_S_CODE_FD | LP_S_TTY :
				at == 7 ? LP_S_INLINE | LP_S_LAST : 0;
		fds = at == 6 ? 7 : at == 7 ? 4 : 5;
		break;
	case 8:
		r.head.kind = LP_RELAY;
		r.relay.len = 20;
		fds = 2;
		break;
	case 9:
	case 10:
		r.head.kind = at == 9 ? LP_OPEN : LP_REMOVE;
		memcpy(r.path.path, "work/a", 7);
		break;
	case 11:
		r.head.kind = LP_RENEW;
		break;
	case 2:
		r.signal.signo = 15;
		break;
	case 5:
		r.dial.port = 80;
		r.dial.family = 2;
		break;
	}
	memset(out, 0, LEAD);
	out[0] = fds;
	memcpy(out + LEAD, &r, sizes[at]);
	return LEAD + sizes[at];
}

/* SPDX-License-Identifier: MIT */
/* driver.c - frames of a driver, as the host hears them from an interpreter that runs hostile code.
 * The first byte gives the flags of the evaluation, the second the size of the pieces. */
#include "fuzz.h"

#include "../src/core/driver.h"

#define LEAD 2
#define NONCE "0123456789abcdef0123456789abcdef"

static void check_frame(driver_reader *r, const driver_frame *f)
{
	FUZZ_CHECK(f->len <= DRIVER_TEXT_MAX && !f->payload[f->len]);
	FUZZ_CHECK(strchr("HQVXDU", f->kind) && f->kind);
	FUZZ_CHECK(f->status >= 0 && f->status <= 255);
	if (f->kind == 'Q')
		driver_answered(r);
}

/* 1 = all of it was frames. */
static int read_all(driver_reader *r, const uint8_t *data, size_t len, size_t piece)
{
	int ended = 0;

	while (len) {
		size_t n = piece < len ? piece : len, used;
		const char *why = NULL;
		driver_frame frame;
		int rc = driver_read(r, data, n, &used, &frame, &why);

		FUZZ_CHECK(used <= n && r->payload.len <= DRIVER_TEXT_MAX);
		if (rc < 0) {
			fuzz_check_why(why);
			FUZZ_CHECK(driver_read(r, data, n, &used, &frame, &why) < 0);
			return 0;
		}
		FUZZ_CHECK(rc == 1 || used == n);
		if (rc == 1)
			check_frame(r, &frame);
		ended = rc == 1 && r->state == DRIVER_IDLE;
		data += used;
		len -= used;
	}
	return ended;
}

int fuzz_one(uint8_t *data, size_t len)
{
	driver_reader r;
	int valid;

	if (len < LEAD)
		return 0;
	driver_init(&r);
	if (data[0] & 4)
		driver_expect_hello(&r);
	else
		driver_expect_end(&r, data[0] & 3);
	memcpy(r.nonce, NONCE, sizeof NONCE);
	valid = read_all(&r, data + LEAD, len - LEAD, data[1] ? data[1] : len);
	driver_release(&r);
	return valid;
}

size_t fuzz_seed(size_t at, uint8_t *out, size_t cap)
{
	static const char *const seeds[] = {
		"\004\001H " NONCE " 00000013\n1 ask python 3.11.2",
		"\001\377V " NONCE " 00000002\n42D " NONCE " 00000001\n0",
		"\001\007X " NONCE " 00000004\nE: xD " NONCE " 00000003\n255",
		"\003\003Q " NONCE " 00000008\n00000001Q " NONCE " 00000008\n00000002D " NONCE
		" 00000001\n1",
		"\001\055U " NONCE " 00000000\n",
	};

	return fuzz_seed_text(seeds, sizeof seeds / sizeof *seeds, at, out, cap);
}

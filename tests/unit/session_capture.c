/* SPDX-License-Identifier: MIT */
/* What is kept of an output: every cap over multi-byte text, pieces of every size, both streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../src/session/session.h"

static sb_limits limits(uint64_t total, uint64_t stream, uint32_t mode, uint32_t keep)
{
	return (sb_limits){ .size = sizeof(sb_limits), .out_total_bytes = total,
			    .out_stream_bytes = stream, .out_mode = mode, .out_keep = keep };
}

/* Text of one stream, given in pieces; into the buffer directly where there is room, as pump does. */
static void put_in(capture *c, int stream, const char *text, size_t len, size_t piece)
{
	while (len) {
		size_t n = len < piece ? len : piece;
		char *at;
		size_t room = capture_room(c, stream, n, &at);

		if (room) {
			n = room;
			memcpy(at, text, n);
			capture_commit(c, stream, n);
		} else {
			capture_add(c, stream, text, n);
		}
		text += n;
		len -= n;
	}
}

/* Text of whole characters: the longest beginning, and end, that the cap holds. */
static bool is_boundary(const char *text, size_t len, size_t at)
{
	return at == len || ((unsigned char)text[at] & 0xc0) != 0x80;
}

static void check(capture *c, int stream, const char *text, size_t len, uint64_t cap, bool tail)
{
	size_t got, gap, head = len, end = len;
	char *data = capture_take(c, stream, &got, &gap);

	assert_non_null(data);
	assert_int_equal(data[got], 0);
	if (len > cap) {
		head = tail ? (size_t)(cap / 2) : (size_t)cap;
		while (!is_boundary(text, len, head))
			head--;
		/* what the head had no use for is the tail's */
		end = tail ? len - ((size_t)cap - head) : len;
		while (!is_boundary(text, len, end))
			end++;
	}
	assert_int_equal(got, head + (len - end));
	assert_int_equal(gap, head);
	assert_memory_equal(data, text, head);
	assert_memory_equal(data + head, text + end, len - end);
	assert_int_equal(c->stream[stream].dropped, len - got);
	free(data);
}

/* The callback gets the same bytes, and never half a character. */
static void every_cap(void **state)
{
	static const char text[] = "a\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80"
				   "a\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80";
	const size_t len = sizeof text - 1;

	(void)state;
	for (int tail = 0; tail < 2; tail++)
		for (uint64_t cap = 0; cap <= len + 1; cap++)
			for (size_t piece = 1; piece <= len; piece++) {
				sb_limits l = limits(SB_UNLIMITED, cap, SB_OUT_TRUNCATE,
						     tail ? SB_KEEP_HEAD_TAIL : SB_KEEP_HEAD);
				char seen[sizeof text];
				size_t n, seen_len = 0, got, gap;
				const char *data;
				capture c;

				capture_init(&c, &l);
				put_in(&c, 0, text, len, piece);
				assert_false(c.over);
				check(&c, 0, text, len, cap, tail);
				capture_release(&c);
				capture_init(&c, &l);
				for (size_t at = 0; at < len; at += piece) {
					put_in(&c, 0, text + at, len - at < piece ? len - at : piece, piece);
					n = capture_next(&c, 0, &data, false);
					memcpy(seen + seen_len, data, n);
					seen_len += n;
				}
				n = capture_next(&c, 0, &data, true);
				memcpy(seen + seen_len, data, n);
				seen_len += n;
				char *whole = capture_take(&c, 0, &got, &gap);
				assert_int_equal(got, seen_len);
				assert_memory_equal(whole, seen, got);
				assert_int_equal(got + c.stream[0].dropped, len);
				assert_true(utf8_valid(whole, got));
				free(whole);
				capture_release(&c);
			}
}

static void stop_is_exact(void **state)
{
	(void)state;
	for (size_t len = 8; len <= 12; len++) {
		sb_limits l = limits(10, SB_UNLIMITED, SB_OUT_STOP, SB_KEEP_HEAD_TAIL);
		capture c;

		capture_init(&c, &l);
		put_in(&c, 0, "0123456789ab", len, 3);
		assert_int_equal(c.over, len > 10);
		assert_int_equal(c.stream[0].len, len < 10 ? len : 10);
		capture_release(&c);
	}
}

static void both_share(void **state)
{
	sb_limits l = limits(10, SB_UNLIMITED, SB_OUT_STOP, SB_KEEP_HEAD);
	capture c;

	(void)state;
	capture_init(&c, &l);
	put_in(&c, 0, "123456", 6, 6);
	put_in(&c, 1, "abcdef", 6, 6);
	assert_true(c.over);
	assert_int_equal(c.stream[0].len, 6);
	assert_int_equal(c.stream[1].len, 4);
	capture_release(&c);
}

/* Whatever comes in which order: no more than the cap, nothing lost that would have fit, each
 * stream its own first and last bytes, in order. */
static void any_order(void **state)
{
	static char text[2][4096];
	unsigned seed = 4711;

	(void)state;
	for (size_t i = 0; i < sizeof text[0]; i++) {
		text[0][i] = (char)(i * 7 + (i >> 8));
		text[1][i] = (char)(i * 13 + (i >> 8) + 1);
	}
	for (int round = 0; round < 4000; round++) {
		uint64_t total = (uint64_t)(rand_r(&seed) % 300), stream = (uint64_t)(rand_r(&seed) % 200);
		sb_limits l = limits(total, round & 1 ? stream : SB_UNLIMITED, SB_OUT_TRUNCATE,
				     SB_KEEP_HEAD_TAIL);
		size_t sent[2] = { 0, 0 }, kept = 0;
		capture c;

		capture_init(&c, &l);
		for (int i = rand_r(&seed) % 30; i > 0; i--) {
			int s = rand_r(&seed) & 1;
			size_t n = (size_t)(rand_r(&seed) % 60);

			put_in(&c, s, text[s] + sent[s], n, 1 + (size_t)(rand_r(&seed) % 60));
			sent[s] += n;
		}
		assert_true(c.kept <= total);
		for (int s = 0; s < 2; s++) {
			size_t got, gap;
			char *data = capture_take(&c, s, &got, &gap);
			uint64_t dropped = c.stream[s].dropped;

			kept += got;
			assert_true(got <= l.out_stream_bytes);
			assert_int_equal(got + dropped, sent[s]);
			assert_memory_equal(data, text[s], gap);
			assert_memory_equal(data + gap, text[s] + sent[s] - (got - gap), got - gap);
			if (sent[0] + sent[1] <= total && sent[s] <= l.out_stream_bytes)
				assert_int_equal(dropped, 0);
			free(data);
		}
		assert_true(kept <= total);
		capture_release(&c);
	}
}

/* What the callback sees is what is kept: the head as it comes, the tail at the end. */
static void shown_is_kept(void **state)
{
	sb_limits l = limits(SB_UNLIMITED, 10, SB_OUT_TRUNCATE, SB_KEEP_HEAD_TAIL);
	const char *data;
	capture c;

	(void)state;
	capture_init(&c, &l);
	put_in(&c, 0, "012", 3, 3);
	assert_int_equal(capture_next(&c, 0, &data, false), 3);
	assert_memory_equal(data, "012", 3);
	put_in(&c, 0, "3456789abcdefghi", 16, 16);
	assert_int_equal(capture_next(&c, 0, &data, false), 2);
	assert_memory_equal(data, "34", 2);
	assert_int_equal(capture_next(&c, 0, &data, false), 0);
	assert_int_equal(capture_next(&c, 0, &data, true), 5);
	assert_memory_equal(data, "efghi", 5);
	assert_int_equal(capture_next(&c, 0, &data, true), 0);
	capture_release(&c);
}

static void memory_is_bounded(void **state)
{
	static char piece[65536];
	sb_limits l = limits(SB_UNLIMITED, 1 << 20, SB_OUT_TRUNCATE, SB_KEEP_HEAD_TAIL);
	size_t len, gap;
	capture c;

	(void)state;
	capture_init(&c, &l);
	for (int i = 0; i < 4096; i++) {
		memset(piece, i, sizeof piece);
		put_in(&c, 0, piece, sizeof piece, sizeof piece);
	}
	assert_int_equal(c.stream[0].alloc, 1 << 20);
	assert_int_equal(c.stream[0].dropped, (4096ull << 16) - (1 << 20));
	char *data = capture_take(&c, 0, &len, &gap);

	assert_int_equal((unsigned char)data[0], 0);
	assert_int_equal((unsigned char)data[len - 1], 255);
	free(data);
	capture_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_cap),	 cmocka_unit_test(stop_is_exact),
		cmocka_unit_test(both_share),	 cmocka_unit_test(any_order),
		cmocka_unit_test(shown_is_kept), cmocka_unit_test(memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

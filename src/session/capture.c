/* SPDX-License-Identifier: MIT */
/*
 * capture.c - what is kept of a guest's output.
 *
 * A stream is one buffer.  While nothing had to be left out it is simply the bytes in order.  With
 * HEAD_TAIL the first half of the cap is the head; what comes behind it is the tail, and once the
 * cap is met the tail becomes a ring in the same buffer: the oldest tail byte gives way.  Under a
 * cap over both streams the longer tail gives way first.  So never more than the cap is held, and
 * exactly the cap is kept whole.
 *
 * A cut never goes through a character: what is left of one at the end of a head, or at the beginning
 * of a tail, is dropped with the rest (of bytes that are no text, three at most).  The callback does
 * not see such an end before it is known whether the rest of the character comes.
 */
#include "session.h"

enum { FIRST = 16384, LONGEST_HALF = 4 }; /* a character has four bytes at most */

void capture_init(capture *c, const sb_limits *limits)
{
	*c = (capture){ .cap_total = limits->out_total_bytes,
			.cap_stream = limits->out_stream_bytes,
			.mode = limits->out_mode,
			.keep = limits->out_keep };
	if (c->mode != SB_OUT_TRUNCATE) /* what ends the guest has no tail */
		c->keep = SB_KEEP_HEAD;
}

void capture_release(capture *c)
{
	free(c->stream[0].data);
	free(c->stream[1].data);
	c->stream[0].data = c->stream[1].data = NULL;
}

/* Bytes at the end that begin a character and do not end it. */
static size_t half_at_end(const char *data, size_t len)
{
	for (size_t n = 1; n < LONGEST_HALF && n <= len; n++) {
		unsigned char c = (unsigned char)data[len - n];

		if ((c & 0xc0) == 0x80)
			continue;
		return (c >= 0xf0 && c <= 0xf4) || (c >= 0xe0 && c < 0xf0 && n < 3) ||
				       (c >= 0xc2 && c < 0xe0 && n < 2)
			       ? n
			       : 0;
	}
	return 0;
}

/* The same of a stream; what the callback has seen stays. */
static size_t half_left(const capture_stream *s)
{
	size_t half = half_at_end(s->data, s->len), seen = s->len - (size_t)s->given;

	return half < seen ? half : seen;
}

/* Bytes at the beginning that end a character whose beginning is not there. */
static size_t half_at_start(const char *data, size_t len)
{
	size_t n = 0;

	while (n < len && ((unsigned char)data[n] & 0xc0) == 0x80)
		n++;
	return n < LONGEST_HALF ? n : 0;
}

static uint64_t stream_cap(const capture *c)
{
	return c->cap_stream < c->cap_total ? c->cap_stream : c->cap_total;
}

static size_t tail_len(const capture_stream *s)
{
	return s->spilled ? s->len - s->head : 0;
}

/* Bytes that may still be kept of this stream without anything giving way. */
static uint64_t room_left(const capture *c, const capture_stream *s)
{
	uint64_t own = stream_cap(c) - s->len, all = c->cap_total - c->kept;

	return own < all ? own : all;
}

static void reverse(char *data, size_t len)
{
	for (size_t i = 0; i < len / 2; i++) {
		char c = data[i];

		data[i] = data[len - 1 - i];
		data[len - 1 - i] = c;
	}
}

/* The ring's `room` bytes rotated so that its oldest byte comes first. */
static void straighten(capture_stream *s)
{
	size_t room = s->alloc - s->head;
	char *ring = s->data + s->head;

	if (!s->spilled || !s->start)
		return;
	reverse(ring, s->start);
	reverse(ring + s->start, room - s->start);
	reverse(ring, room);
	s->start = 0;
}

/* At least `need` bytes of buffer, straight; grows by doubling, never above the cap. */
static bool reserve(capture *c, capture_stream *s, size_t need)
{
	if (need <= s->alloc)
		return true;
	uint64_t want = s->alloc ? (uint64_t)s->alloc * 2 : FIRST;

	if (want < need)
		want = need;
	if (want > stream_cap(c))
		want = stream_cap(c);
	straighten(s);
	char *data = realloc(s->data, (size_t)want + 1);

	if (!data) {
		c->no_memory = true;
		return false;
	}
	s->data = data;
	s->alloc = (size_t)want;
	return true;
}

static void evict(capture *c, capture_stream *s, size_t len)
{
	size_t room = s->alloc - s->head;

	s->start = (s->start + len) % room;
	s->len -= len;
	s->dropped += len;
	c->kept -= len;
}

/* Space for `len` more bytes in the tail of `s`; len is at most its largest tail. */
static bool make_way(capture *c, capture_stream *s, size_t len)
{
	capture_stream *other = s == &c->stream[0] ? &c->stream[1] : &c->stream[0];

	if (s->len + len > stream_cap(c))
		evict(c, s, s->len + len - (size_t)stream_cap(c));
	while (c->kept + len > c->cap_total) {
		size_t over = (size_t)(c->kept + len - c->cap_total);
		size_t mine = tail_len(s), theirs = tail_len(other);

		if (theirs > mine)
			evict(c, other, over < theirs - mine ? over : theirs - mine);
		else if (mine)
			evict(c, s, over < mine ? over : mine);
		else
			return false; /* heads fill it all */
	}
	return true;
}

static void tail_write(capture_stream *s, const char *data, size_t len)
{
	size_t room = s->alloc - s->head, at = (s->start + tail_len(s)) % room;
	size_t first = len < room - at ? len : room - at;

	memcpy(s->data + s->head + at, data, first);
	memcpy(s->data + s->head, data + first, len - first);
	s->len += len;
}

static void tail_add(capture *c, capture_stream *s, const char *data, size_t len)
{
	uint64_t most = stream_cap(c) - s->head, all;

	if (!s->spilled) {
		/* half a character goes over to the tail: to stay with its other half, or to go first */
		s->spilled = true;
		s->head = s->len - half_left(s);
		s->start = 0;
		most = stream_cap(c) - s->head;
	}
	/* the heads of both streams stay: a tail can have what they leave */
	all = c->cap_total - (s->head + (c->kept - s->len - tail_len(s == &c->stream[0]
									 ? &c->stream[1]
									 : &c->stream[0])));
	if (most > all)
		most = all;
	if (len > most) { /* only the end of it can stay */
		size_t skip = len - (size_t)most;

		s->dropped += skip;
		data += skip;
		len = (size_t)most;
	}
	if (!len)
		return;
	if (!make_way(c, s, len) || !reserve(c, s, s->len + len)) {
		s->dropped += len;
		return;
	}
	tail_write(s, data, len);
	c->kept += len;
}

static void head_add(capture *c, capture_stream *s, const char *data, size_t len)
{
	if (!len || !reserve(c, s, s->len + len)) {
		s->dropped += len;
		return;
	}
	memcpy(s->data + s->len, data, len);
	s->len += len;
	c->kept += len;
}

/* Bytes that the head takes now. */
static uint64_t head_left(const capture *c, const capture_stream *s)
{
	uint64_t left = room_left(c, s), own, all, heads;

	if (s->cut)
		return 0;
	if (c->keep != SB_KEEP_HEAD_TAIL)
		return left;
	if (s->spilled)
		return 0;
	heads = c->kept - tail_len(&c->stream[0]) - tail_len(&c->stream[1]);
	own = stream_cap(c) == SB_UNLIMITED ? SB_UNLIMITED : stream_cap(c) / 2;
	all = c->cap_total == SB_UNLIMITED ? SB_UNLIMITED : c->cap_total / 2;
	own = own > s->len ? own - s->len : 0;
	all = all > heads ? all - heads : 0;
	return own < all ? own : all;
}

void capture_add(capture *c, int stream, const void *data, size_t len)
{
	capture_stream *s = &c->stream[stream];
	const char *bytes = data;
	uint64_t head = head_left(c, s);
	size_t first = head < len ? (size_t)head : len;

	if (first)
		head_add(c, s, bytes, first);
	if (first == len)
		return;
	if (c->keep == SB_KEEP_HEAD_TAIL) {
		tail_add(c, s, bytes + first, len - first);
		return;
	}
	if (!s->cut) {
		size_t half = half_left(s);

		s->cut = true; /* nothing more, so that what is kept has no hole but this */
		s->len -= half;
		s->dropped += half;
		c->kept -= half;
	}
	s->dropped += len - first;
	if (c->mode != SB_OUT_TRUNCATE)
		c->over = true;
}

size_t capture_room(capture *c, int stream, size_t want, char **at)
{
	capture_stream *s = &c->stream[stream];
	uint64_t head = head_left(c, s);

	if (s->spilled || !head)
		return 0;
	/* grown only when it is full: most outputs fit into the first piece */
	if (s->alloc == s->len && !reserve(c, s, s->len + 1))
		return 0;
	if (want > head)
		want = (size_t)head;
	*at = s->data + s->len;
	return want < s->alloc - s->len ? want : s->alloc - s->len;
}

void capture_commit(capture *c, int stream, size_t len)
{
	c->stream[stream].len += len;
	c->kept += len;
}

/* The ring as a plain run of bytes; after bytes were dropped it begins with a character. */
static void settle(capture *c, capture_stream *s)
{
	size_t half;

	straighten(s);
	if (!s->spilled || !s->dropped || s->settled)
		return;
	s->settled = true;
	if (!s->len) /* nothing is kept, and there may be no memory */
		return;
	half = half_at_start(s->data + s->head, s->len - s->head);
	memmove(s->data + s->head, s->data + s->head + half, s->len - s->head - half);
	s->len -= half;
	s->dropped += half;
	c->kept -= half;
}

size_t capture_next(capture *c, int stream, const char **data, bool at_end)
{
	capture_stream *s = &c->stream[stream];
	size_t upto = s->spilled ? s->head : s->len;

	if (at_end) {
		settle(c, s);
		upto = s->len;
	} else if (!s->spilled && head_left(c, s) < LONGEST_HALF) {
		upto -= half_left(s);
	}
	*data = s->data ? s->data + s->given : "";
	size_t len = upto - (size_t)s->given;

	s->given = upto;
	return len;
}

char *capture_take(capture *c, int stream, size_t *len, size_t *gap)
{
	capture_stream *s = &c->stream[stream];
	char *data = s->data;

	settle(c, s);
	*len = s->len;
	*gap = s->dropped && s->spilled ? s->head : s->len;
	s->data = NULL;
	if (!data)
		return calloc(1, 1);
	data[s->len] = 0;
	if (s->alloc - s->len > FIRST) { /* give back what doubling took too much */
		char *less = realloc(data, s->len + 1);

		data = less ? less : data;
	}
	return data;
}

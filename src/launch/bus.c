/* SPDX-License-Identifier: MIT */
/*
 * bus.c - D-Bus messages: two that are written, and what comes back.
 *
 * A message is a head of fixed size, an array of fields (a number, and a value with its type before it),
 * blanks up to a multiple of 8, and the body.  Each value lies at a multiple of its own size.  Only little
 * endian, which is what both ends of a socket on this machine write.
 */
#include "bus.h"

#include <string.h>

enum { FIELD_PATH = 1, FIELD_INTERFACE, FIELD_MEMBER, FIELD_ERROR, FIELD_REPLY, FIELD_DESTINATION,
       FIELD_SENDER, FIELD_SIGNATURE };
#define NO_AUTO_START 2           /* flag: whoever is not there is not started for us */
#define AT_BODY_LEN 4u
#define AT_FIELDS_LEN 12u

/* ---- Writing ------------------------------------------------------------------------------------- */

static void put(bus_out *o, const void *data, size_t len)
{
	if (o->full || len > sizeof o->data - o->len) {
		o->full = true;
		return;
	}
	memcpy(o->data + o->len, data, len);
	o->len += len;
}

static void align(bus_out *o, size_t to)
{
	static const uint8_t zeros[8];

	put(o, zeros, (to - o->len % to) % to);
}

static void number_at(uint8_t *at, uint32_t value)
{
	size_t i;

	for (i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}

static void number(bus_out *o, uint32_t value)
{
	uint8_t bytes[4];

	align(o, 4);
	number_at(bytes, value);
	put(o, bytes, 4);
}

static void text(bus_out *o, const char *s)
{
	number(o, (uint32_t)strlen(s));
	put(o, s, strlen(s) + 1);
}

static void signature(bus_out *o, const char *s)
{
	uint8_t len = (uint8_t)strlen(s);

	put(o, &len, 1);
	put(o, s, (size_t)len + 1);
}

static void field(bus_out *o, uint8_t code, const char *type, const char *value)
{
	align(o, 8);
	put(o, &code, 1);
	signature(o, type);
	if (*type == 'g')
		signature(o, value);
	else
		text(o, value);
}

/* Arrays say how many bytes they have; where that number stands is what this returns. */
static size_t begin_array(bus_out *o, size_t element)
{
	size_t at;

	number(o, 0);
	at = o->len;
	align(o, element);
	return at;
}

static void end_array(bus_out *o, size_t at, size_t element)
{
	if (!o->full)
		number_at(o->data + at - 4, (uint32_t)(o->len - (at + element - 1) / element * element));
}

typedef struct call {
	const char *destination, *path, *interface, *member, *body;
} call;

static void begin_call(bus_out *o, uint32_t serial, const call *c)
{
	const uint8_t head[] = { 'l', BUS_CALL, NO_AUTO_START, 1 };
	size_t at;

	*o = (bus_out){ .len = 0 };
	put(o, head, sizeof head);
	number(o, 0); /* the body's length: end_call() */
	number(o, serial);
	at = begin_array(o, 8);
	field(o, FIELD_PATH, "o", c->path);
	field(o, FIELD_INTERFACE, "s", c->interface);
	field(o, FIELD_MEMBER, "s", c->member);
	field(o, FIELD_DESTINATION, "s", c->destination);
	if (*c->body)
		field(o, FIELD_SIGNATURE, "g", c->body);
	end_array(o, at, 8);
	align(o, 8);
}

static void end_call(bus_out *o, size_t body)
{
	if (!o->full)
		number_at(o->data + AT_BODY_LEN, (uint32_t)(o->len - body));
}

void bus_hello(bus_out *out, uint32_t serial)
{
	static const call hello = { "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
		"Hello", "" };

	begin_call(out, serial, &hello);
	end_call(out, out->len);
}

static void property(bus_out *o, const char *name, const char *type)
{
	align(o, 8);
	text(o, name);
	signature(o, type);
}

void bus_start_scope(bus_out *out, uint32_t serial, const char *unit, bool oom)
{
	static const call start = { "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
		"org.freedesktop.systemd1.Manager", "StartTransientUnit", "ssa(sv)a(sa(sv))" };
	size_t body, properties, pids, other;

	begin_call(out, serial, &start);
	body = out->len;
	text(out, unit);
	text(out, "fail");
	properties = begin_array(out, 8);
	property(out, "Description", "s");
	text(out, "limits of a sandbox");
	property(out, "PIDs", "au");
	pids = begin_array(out, 4);
	number(out, 0); /* who sends this: no number of another pid namespace can be mistaken */
	end_array(out, pids, 4);
	property(out, "Delegate", "b");
	number(out, 1);
	property(out, "TasksMax", "t");
	align(out, 8);
	number(out, UINT32_MAX);
	number(out, UINT32_MAX);
	property(out, "CollectMode", "s");
	text(out, "inactive-or-failed");
	if (oom) {
		property(out, "OOMPolicy", "s");
		text(out, "continue");
	}
	end_array(out, properties, 8);
	other = begin_array(out, 8);
	end_array(out, other, 8);
	end_call(out, body);
}

/* ---- Reading --------------------------------------------------------------------------------------- */

typedef struct reader {
	const uint8_t *data;
	size_t at, end;
	bool bad;
} reader;

static uint32_t number_from(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void skip_to(reader *r, size_t multiple)
{
	size_t gap = (multiple - r->at % multiple) % multiple;

	if (r->bad || gap > r->end - r->at)
		r->bad = true;
	else
		r->at += gap;
}

static const uint8_t *take(reader *r, size_t len)
{
	const uint8_t *at = r->data + r->at;

	if (r->bad || len > r->end - r->at) {
		r->bad = true;
		return NULL;
	}
	r->at += len;
	return at;
}

static uint32_t take_number(reader *r)
{
	const uint8_t *at;

	skip_to(r, 4);
	at = take(r, 4);
	return at ? number_from(at) : 0;
}

/* NUL-ended and without another, into `out`, cut to what fits; or NULL: passed over. */
static void take_bytes(reader *r, size_t len, char *out, size_t cap)
{
	const uint8_t *at = len < BUS_MAX_MESSAGE ? take(r, len + 1) : NULL;

	if (!at || at[len] || memchr(at, 0, len)) {
		r->bad = true;
		return;
	}
	if (!out)
		return;
	len = len < cap ? len : cap - 1;
	memcpy(out, at, len);
	out[len] = 0;
}

static void take_text(reader *r, char *out, size_t cap)
{
	take_bytes(r, take_number(r), out, cap);
}

static void take_signature(reader *r, char *out, size_t cap)
{
	const uint8_t *len = take(r, 1);

	take_bytes(r, len ? *len : 0, out, cap);
}

static void read_field(reader *r, bus_message *m, char *body, size_t cap)
{
	const uint8_t *code;
	char type[8];

	skip_to(r, 8);
	code = take(r, 1);
	take_signature(r, type, sizeof type);
	if (r->bad)
		return;
	if (!strcmp(type, "u")) {
		uint32_t value = take_number(r);

		if (*code == FIELD_REPLY)
			m->serial = value;
	} else if (!strcmp(type, "g")) {
		if (*code == FIELD_SIGNATURE)
			take_signature(r, body, cap);
		else
			take_signature(r, NULL, 0);
	} else if (!strcmp(type, "s") || !strcmp(type, "o")) {
		if (*code == FIELD_MEMBER)
			take_text(r, m->member, sizeof m->member);
		else
			take_text(r, *code == FIELD_ERROR ? m->error : NULL, sizeof m->error);
	} else {
		r->bad = true; /* no field that a bus sends has another type */
	}
}

/* What of the body is strings and numbers, up to the first that is neither. */
static void read_body(reader *r, const char *types, bus_message *m)
{
	const size_t most = sizeof m->text / sizeof m->text[0];

	for (; *types && m->texts < most && !r->bad; types++) {
		if (*types == 's' || *types == 'o')
			take_text(r, m->text[m->texts++], sizeof m->text[0]);
		else if (*types == 'u')
			m->text[m->texts++][0] = take_number(r) ? '1' : '0';
		else
			return;
	}
}

size_t bus_length(const uint8_t *head)
{
	size_t fields = number_from(head + AT_FIELDS_LEN), body = number_from(head + AT_BODY_LEN), len;

	if (head[0] != 'l' || head[3] != 1 || fields > BUS_MAX_MESSAGE || body > BUS_MAX_MESSAGE)
		return 0;
	len = (BUS_HEAD_BYTES + fields + 7) / 8 * 8 + body;
	return len <= BUS_MAX_MESSAGE ? len : 0;
}

bool bus_read(const uint8_t *data, size_t len, bus_message *out)
{
	reader r = { data, BUS_HEAD_BYTES, len, false };
	char body[32] = "";

	*out = (bus_message){ .type = 0 };
	if (len < BUS_HEAD_BYTES || bus_length(data) != len || data[1] < BUS_CALL || data[1] > BUS_SIGNAL)
		return false;
	out->type = data[1];
	r.end = BUS_HEAD_BYTES + number_from(data + AT_FIELDS_LEN);
	while (!r.bad && r.at < r.end)
		read_field(&r, out, body, sizeof body);
	r.end = len;
	skip_to(&r, 8);
	read_body(&r, body, out);
	return !r.bad;
}

/* SPDX-License-Identifier: MIT */
/* driver.c - frames of the driver protocol: heads out, and a reader that believes nothing. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>

void driver_init(driver_reader *reader)
{
	memset(reader, 0, sizeof *reader);
	buf_init(&reader->payload, DRIVER_TEXT_MAX + 1);
}

void driver_release(driver_reader *reader)
{
	buf_release(&reader->payload);
}

static int expect(driver_reader *reader, int state, uint32_t flags)
{
	sb_error err;

	if (reader->state == DRIVER_BROKEN)
		return SB_ERR_CLOSED;
	if (random_id("", reader->nonce, sizeof reader->nonce, &err) < 0)
		return err.code;
	reader->state = state;
	reader->flags = flags;
	reader->asked = reader->value = reader->exception = false;
	reader->questions = 0;
	return 0;
}

int driver_expect_hello(driver_reader *reader)
{
	return expect(reader, DRIVER_STARTING, 0);
}

int driver_expect_end(driver_reader *reader, uint32_t flags)
{
	return expect(reader, DRIVER_RUNNING, flags);
}

void driver_answered(driver_reader *reader)
{
	reader->asked = false;
}

/* ---- What may come --------------------------------------------------------------------------- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* `digits` of them, at most 8; false = one is none. */
static bool read_hex(const char *text, size_t digits, uint32_t *out)
{
	*out = 0;
	for (size_t i = 0; i < digits; i++) {
		int digit = hex_digit(text[i]);

		if (digit < 0)
			return false;
		*out = *out << 4 | (uint32_t)digit;
	}
	return true;
}

static const char *running_refused(const driver_reader *r, char kind)
{
	if (r->asked && kind == 'Q')
		return "a second question before the first was answered";
	switch (kind) {
	case 'Q':
		return r->flags & DRIVER_ASK ? NULL : "a question, and none may be asked";
	case 'V':
		return r->value || r->exception ? "a second value" : NULL;
	case 'X':
		return r->value || r->exception ? "a second exception" : NULL;
	case 'U':
		if (r->value || r->exception || r->questions)
			return "unfinished code that has run";
		return r->flags & DRIVER_PARTIAL ? NULL
						 : "unfinished code where it counts as finished";
	case 'D':
		return NULL;
	default:
		return "an unknown kind of frame";
	}
}

/* NULL = a frame of this kind may come now. */
static const char *refused(const driver_reader *r, char kind)
{
	if (r->state == DRIVER_IDLE)
		return "a frame that nobody asked for";
	if (r->state == DRIVER_STARTING)
		return kind == 'H' ? NULL : "something else than a hello";
	return running_refused(r, kind);
}

static size_t kind_max(char kind)
{
	switch (kind) {
	case 'H':
		return DRIVER_HELLO_MAX;
	case 'Q':
		return DRIVER_ANSWER_HEAD;
	case 'V':
	case 'X':
		return DRIVER_TEXT_MAX;
	case 'D':
		return 3;
	default:
		return 0;
	}
}

static const char *take_head(driver_reader *r)
{
	const char *h = r->head, *why;
	uint32_t len;

	if (h[1] != ' ' || h[2 + DRIVER_NONCE] != ' ' || h[DRIVER_HEAD - 1] != '\n' ||
	    !read_hex(h + 3 + DRIVER_NONCE, 8, &len))
		return "bytes that are no frame";
	if (r->state == DRIVER_IDLE)
		return "a frame that nobody asked for";
	if (memcmp(h + 2, r->nonce, DRIVER_NONCE))
		return "a frame of another evaluation";
	why = refused(r, h[0]);
	if (why)
		return why;
	if (len > kind_max(h[0]))
		return "a frame that is too long";
	r->want = len;
	r->payload.len = 0;
	return NULL;
}

/* ---- What it says ---------------------------------------------------------------------------- */

static const char *take_status(driver_frame *f)
{
	int status = 0;

	for (size_t i = 0; i < f->len; i++) {
		if (f->payload[i] < '0' || f->payload[i] > '9')
			return "a status that is no number";
		status = status * 10 + (f->payload[i] - '0');
	}
	if (!f->len || status > 255)
		return "a status that is no number up to 255";
	f->status = status;
	return NULL;
}

static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
		if ((at == text || at[-1] == ' ') && (!at[len] || at[len] == ' '))
			return true;
	return false;
}

static const char *take_hello(driver_frame *f)
{
	if (f->len < 2 || f->payload[0] != '1' || f->payload[1] != ' ')
		return "a driver of another version";
	f->features = (has_word(f->payload, "ask") ? DRIVER_CAN_ASK : 0) |
		      (has_word(f->payload, "nul") ? DRIVER_CAN_NUL : 0) |
		      (has_word(f->payload, "int") ? DRIVER_CAN_INT : 0);
	return NULL;
}

static const char *take_question(driver_reader *r, const driver_frame *f)
{
	uint32_t number;

	if (f->len != DRIVER_ANSWER_HEAD || !read_hex(f->payload, f->len, &number))
		return "a question without a number";
	memcpy(r->question, f->payload, DRIVER_ANSWER_HEAD);
	r->asked = true;
	r->questions++;
	return NULL;
}

static const char *take_frame(driver_reader *r, driver_frame *f)
{
	*f = (driver_frame){ .kind = r->head[0],
			     .len = r->payload.len,
			     .payload = r->payload.data ? r->payload.data : "" };
	r->head_len = 0;
	switch (f->kind) {
	case 'H':
		r->state = DRIVER_IDLE;
		return take_hello(f);
	case 'Q':
		return take_question(r, f);
	case 'V':
		r->value = true;
		return NULL;
	case 'X':
		r->exception = true;
		return NULL;
	case 'D':
		r->state = DRIVER_IDLE;
		return take_status(f);
	default: /* 'U' */
		r->state = DRIVER_IDLE;
		return NULL;
	}
}

static int broken(driver_reader *r, const char *what, const char **why)
{
	r->state = DRIVER_BROKEN;
	*why = what;
	return -1;
}

int driver_read(driver_reader *r, const void *data, size_t len, size_t *used, driver_frame *frame,
		const char **why)
{
	const char *at = data, *end = at + len, *problem = NULL;

	*used = 0;
	if (r->state == DRIVER_BROKEN)
		return broken(r, "bytes behind a broken frame", why);
	while (!problem) {
		size_t head = DRIVER_HEAD - r->head_len, more;

		if (head) { /* of a new frame, or the rest of one */
			more = head < (size_t)(end - at) ? head : (size_t)(end - at);
			memcpy(r->head + r->head_len, at, more);
			r->head_len += more;
			at += more;
			*used += more;
			if (r->head_len < DRIVER_HEAD)
				return 0;
			problem = take_head(r);
			continue;
		}
		more = r->want - r->payload.len;
		more = more < (size_t)(end - at) ? more : (size_t)(end - at);
		buf_add(&r->payload, at, more);
		*used += more;
		at += more;
		if (r->payload.failed)
			return broken(r, "no memory for a frame", why);
		if (r->payload.len < r->want)
			return 0;
		if (r->payload.data)
			r->payload.data[r->payload.len] = 0;
		problem = take_frame(r, frame);
		if (!problem)
			return 1;
	}
	return broken(r, problem, why);
}

/* ---- To the driver --------------------------------------------------------------------------- */

static size_t head_text(const driver_reader *r, char kind, size_t len, char *out)
{
	int n = snprintf(out, DRIVER_HEAD + 1, "%c %s %08zx\n", kind, r->nonce, len);

	return n == DRIVER_HEAD ? DRIVER_HEAD : 0;
}

size_t driver_start_head(const driver_reader *r, char out[DRIVER_HEAD + DRIVER_CODE_HEAD + 1])
{
	return head_text(r, 'S', 0, out);
}

size_t driver_interrupt_head(const driver_reader *r, char out[DRIVER_HEAD + DRIVER_CODE_HEAD + 1])
{
	return head_text(r, 'I', 0, out);
}

size_t driver_code_head(const driver_reader *r, size_t code_len, size_t input_len,
			char out[DRIVER_HEAD + DRIVER_CODE_HEAD + 1])
{
	size_t n = head_text(r, 'E', DRIVER_CODE_HEAD + code_len + input_len, out);

	snprintf(out + n, DRIVER_CODE_HEAD + 1, "%02x%08zx", r->flags & 0xff, code_len);
	return n + DRIVER_CODE_HEAD;
}

size_t driver_answer_head(const driver_reader *r, size_t len,
			  char out[DRIVER_HEAD + DRIVER_CODE_HEAD + 1])
{
	size_t n = head_text(r, 'A', DRIVER_ANSWER_HEAD + len, out);

	memcpy(out + n, r->question, DRIVER_ANSWER_HEAD);
	out[n + DRIVER_ANSWER_HEAD] = 0;
	return n + DRIVER_ANSWER_HEAD;
}

/* SPDX-License-Identifier: MIT */
/*
 * twin.c - a branch of a guest, between two workers: the one gives all that its guest at rest is, the other takes it.
 *
 * Both speak with the host alone, which passes the bytes on.  The one that takes has closed its walls by then and
 * runs nothing of the guest's before all of it was looked at (branch.c): what comes was written by a worker that may be
 * in its guest's hands.
 */
#include "worker.h"
#include "build_id.h"

#include "../base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROOM 65536u

/* Small pieces go, and come, many at once. */
typedef struct channel {
	int fd;
	size_t at, len;
	uint64_t left;           /* to be read, of what the host has said */
	uint8_t data[ROOM];
} channel;

static ssize_t write_some(int fd, void *at, size_t len)
{
	return write(fd, at, len);
}

static bool flush(channel *c)
{
	bool fine = fd_move_all(c->fd, c->data, c->len, write_some, NULL, NULL) == 0;

	c->len = 0;
	return fine;
}

static bool put(void *user, const void *data, uint64_t len)
{
	channel *c = user;

	if (len > ROOM - c->len && !flush(c))
		return false;
	if (len > ROOM)
		return fd_move_all(c->fd, (void *)(uintptr_t)data, len, write_some, NULL, NULL) == 0;
	memcpy(c->data + c->len, data, len);
	c->len += len;
	return true;
}

static bool fill(channel *c)
{
	size_t most = c->left < ROOM ? (size_t)c->left : ROOM;
	ssize_t n;

	do
		n = most ? read(c->fd, c->data, most) : 0;
	while (n < 0 && errno == EINTR);
	c->at = 0;
	c->len = n > 0 ? (size_t)n : 0;
	c->left -= c->len;
	return n > 0;
}

static bool get(void *user, void *data, uint64_t len)
{
	channel *c = user;
	uint8_t *to = data;

	while (len) {
		size_t some = c->len - c->at;

		if (!some && len >= ROOM && len <= c->left) {
			c->left -= len;
			return fd_move_all(c->fd, to, len, read, NULL, NULL) == 0;
		}
		if (!some && !fill(c))
			return false;
		some = c->len - c->at;
		some = some < len ? some : (size_t)len;
		memcpy(to, c->data + c->at, some);
		c->at += some;
		to += some;
		len -= some;
	}
	return true;
}

static branch_parts parts_of(worker *k)
{
	return (branch_parts){ .build = JOB_MAGIC, .fs = k->fs, .w = &k->w, .memory = k->run.base,
			       .memory_bytes = engine_memory_bytes(k->e) };
}

/* ---- Giving -------------------------------------------------------------------------------------- */

static int begin(worker *k, branch_parts *p, branch_saving **saving)
{
	int globals;

	if (!engine_can_rest(k->e))
		return -EOPNOTSUPP;
	if (!k->rests)
		return -EBUSY;
	globals = engine_globals(k->e, p->global, BRANCH_GLOBALS_MAX);
	if (globals < 0)
		return -EOPNOTSUPP;
	p->globals = (uint32_t)globals;
	return branch_save_begin(p, saving);
}

static bool send(worker *k, const branch_saving *saving, ask_head *head)
{
	state_sink count = { .put = NULL }, to = { .put = put };
	channel *c = calloc(1, sizeof *c);
	bool fine;

	if (!c) {
		head->rc = -ENOMEM;
		return ask_tell(k, head);
	}
	branch_save(saving, &count);
	head->bytes += count.bytes;
	c->fd = k->ask;
	to.user = c;
	fine = ask_tell(k, head);
	if (fine)
		branch_save(saving, &to);
	fine = fine && flush(c) && !to.failed;
	free(c);
	return fine;
}

bool twin_give(worker *k, ask_head *head)
{
	branch_parts p = parts_of(k);
	engine_fresh *fresh = k->rests ? engine_fresh_new(k->e, &p.fresh, &p.fresh_bytes) : NULL;
	branch_saving *saving = NULL;
	bool fine;

	head->bytes = sizeof *head;
	head->rc = begin(k, &p, &saving);
	fine = head->rc ? ask_tell(k, head) : send(k, saving, head);
	branch_saved(saving);
	engine_fresh_free(fresh);
	return fine;
}

/* ---- Taking -------------------------------------------------------------------------------------- */

static int grow(void *user, uint64_t bytes)
{
	return engine_grow(((worker *)user)->e, bytes);
}

static int load(worker *k, uint64_t bytes)
{
	channel *c = calloc(1, sizeof *c);
	state_source from = { .get = get, .user = c, .left = bytes };
	branch_parts p = parts_of(k);
	int globals = engine_globals(k->e, p.global, BRANCH_GLOBALS_MAX), rc;

	if (!c || globals < 0) {
		free(c);
		return c ? -EOPNOTSUPP : -ENOMEM;
	}
	c->fd = k->ask;
	c->left = bytes;
	p.globals = (uint32_t)globals;
	p.grow = grow;
	p.user = k;
	rc = branch_load(&p, &from);
	free(c);
	if (!rc && engine_globals_set(k->e, p.global, p.globals) < 0)
		rc = -EPROTO;
	k->w.argv = (const char *const *)p.argv;
	k->w.env = (const char *const *)p.env;
	return rc;
}

static int take(worker *k, const ask_head *head)
{
	int kind = engine_rest(k->e, &k->run), rc;

	if (kind >= 0)
		return kind == ENGINE_NO_MEMORY ? -ENOMEM : -EOPNOTSUPP;
	k->run.in_host = true;
	rc = load(k, head->bytes - sizeof *head);
	k->run.in_host = false;
	if (rc || k->run.stop(k->run.user))
		return rc ? rc : -EINTR;
	return engine_renew(k->e, &k->run) == ENGINE_RESTS ? 0 : -EIO;
}

int twin_take(worker *k)
{
	ask_head head;

	if (!ask_hear(k, &head) || head.what != ASK_BEGIN)
		return ENGINE_STOPPED; /* the host thought better of it */
	head.rc = take(k, &head);
	head.bytes = sizeof head;
	if (!ask_tell(k, &head))
		return ENGINE_STOPPED;
	if (!head.rc)
		return ENGINE_RESTS;
	if (!k->run.why[0])
		memcpy(k->run.why, "the state of the branch cannot be taken", 40);
	return ENGINE_REFUSED;
}

/* SPDX-License-Identifier: MIT */
/*
 * backend_giver.c - a session's worker that is in its guest's hands, and asked by the host: it answers as it likes,
 * and without an end.  A host that listens for ever is a test that hangs.
 */
#include "unit.h"
#include "../../src/backend/wasm/wasm.h"
#include "../../src/wasm/job.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const sb_limits limits = { .size = sizeof limits, .memory_bytes = 1 << 20, .fs_bytes = 1 << 20, .fs_nodes = 9 };

typedef struct giver {
	pthread_t thread;
	int fd;
	ask_head answer;
	bool floods;             /* it goes on until nobody listens any more */
} giver;

static void *give(void *user)
{
	static const char rubbish[1 << 17];
	giver *g = user;
	char question[4096];

	if (recv(g->fd, question, sizeof question, 0) > 0 &&
	    send(g->fd, &g->answer, sizeof g->answer, MSG_NOSIGNAL) == sizeof g->answer)
		while (g->floods && send(g->fd, rubbish, sizeof rubbish, MSG_NOSIGNAL) > 0)
			;
	return NULL;
}

static sb_box *ask_it(giver *g)
{
	sb_box *box = box_new(&limits);
	int pair[2];

	assert_non_null(box);
	assert_int_equal(fd_pair(SOCK_STREAM, pair), 0);
	assert_int_equal(fd_nonblock(pair[0]), 0);
	box_own(box)->ask = pair[0];
	g->fd = pair[1];
	assert_int_equal(pthread_create(&g->thread, NULL, give, g), 0);
	return box;
}

static void await_end(giver *g, sb_box *box)
{
	pthread_join(g->thread, NULL);
	close(g->fd);
	box_destroy(box);
}

/* The branch fails before its answer is looked at: there is no such pack here. */
static int try_fork(giver *g, bool *asks_more)
{
	char dir[] = "/tmp/unit-giver-XXXXXX";
	const sb_artifact module = { .size = sizeof module, .url = "pack:lua" };
	const sb_pack_way way = { .size = sizeof way, .module = &module, .session_driver = "x" };
	const sb_pack pack = { .size = sizeof pack, .name = "lua" };
	const sb_spec spec = { .size = sizeof spec };
	const sb_box_request request = { .size = sizeof request, .limits = &limits, .spec = &spec, .way = &way,
					 .pack = &pack, .door = SB_DOOR_SESSION, .id = "s" };
	const sb_call call = { .size = sizeof call, .cancel_fd = -1, .deadline_ns = SB_UNLIMITED };
	sb_state state = { .key = "engine", .dir = mkdtemp(dir) };
	sb_box *box = ask_it(g), *branch = NULL;
	sb_guest guest = { .box = box }, *twin = NULL;
	sb_guest_io io = { .size = sizeof io };
	wasm_box *own = box_own(box);
	sb_error err = { 0 };

	assert_non_null(state.dir);
	own->state = &state;
	own->spawned = true;
	memcpy(own->pack, "lua", 4);
	int rc = wasm_fork(box, &guest, &request, &call, &branch, &twin, &io, &err);

	assert_null(branch);
	assert_null(twin);
	*asks_more = own->ask >= 0;
	await_end(g, box);
	rmdir(dir);
	return rc;
}

static void without_end(void **state)
{
	static const struct { uint64_t magic, bytes; int32_t rc; bool floods, asks_more; } row[] = {
		{ ASK_MAGIC, UINT64_MAX, 0, true, false },
		{ ASK_MAGIC, (uint64_t)1 << 40, 0, true, false },
		{ ASK_MAGIC, 0, 0, true, false },
		{ ASK_MAGIC, sizeof(ask_head) + 1, -EBUSY, true, false },
		{ 0, sizeof(ask_head), 0, true, false },
		{ ASK_MAGIC, sizeof(ask_head), 0, false, true },
		{ ASK_MAGIC, sizeof(ask_head), -EBUSY, false, true },
		{ ASK_MAGIC, sizeof(ask_head) + 5, 0, false, false }, /* and it goes */
	};

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(row); i++) {
		giver g = { .floods = row[i].floods,
			    .answer = { .magic = row[i].magic, .bytes = row[i].bytes, .rc = row[i].rc } };
		bool asks_more;

		unit_row(i, try_fork(&g, &asks_more) == SB_ERR_NOT_FOUND);
		unit_row(i, asks_more == row[i].asks_more);
	}
}

/* What it calls an error is none of Linux: no word of it reaches who asked. */
static void no_errno(void **state)
{
	static const int32_t rc[] = { INT32_MIN, -4096, 1, 5, INT32_MAX };
	const sb_call call = { .size = sizeof call, .cancel_fd = -1, .deadline_ns = SB_UNLIMITED };

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rc); i++) {
		giver g = { .answer = { .magic = ASK_MAGIC, .bytes = sizeof(ask_head), .rc = rc[i] } };
		sb_box *box = ask_it(&g);
		sb_error err = { 0 };

		unit_row(i, wasm_remove(box, "/out", &call, &err) == SB_ERR_IO);
		unit_row(i, err.os_errno == EPROTO);
		await_end(&g, box);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(without_end), cmocka_unit_test(no_errno) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

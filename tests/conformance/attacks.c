/* SPDX-License-Identifier: MIT */
/*
 * attacks.c - sessions that are held wrong: everything at once, in any order, from many threads; numbers that
 * are none; who waits for what is closed under them.  Each call has one of the answers that its words allow.
 *
 * usage: attacks BACKEND [DIRECTORY OF sb-launch]
 */
#include "sessions.h"

#include <poll.h>
#include <stdatomic.h>

sb_error err;
world w;

static const sb_wait at_once = { .size = sizeof at_once, .timeout_ms = SB_NO_WAIT };
static const sb_wait moment = { .size = sizeof moment, .timeout_ms = 2 };

static unsigned dice(unsigned *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 16;
}

/* What a thread finds wrong: an assertion may not leave it. */
static atomic_int wrong;
#define HOLDS(what, code)                                                                          \
	do {                                                                                       \
		if (!(what) && atomic_fetch_add(&wrong, 1) < 10)                                   \
			fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #what, sb_code_name(code)); \
	} while (0)

/* ---- everything at once ------------------------------------------------------------------------- */

enum { THREADS = 64, OPERATIONS = 25, PROCESSES = 4 };

static sb_process *shared[PROCESSES];

static bool one_of(int code, const int *allowed)
{
	if (code == 0)
		return true;
	for (; *allowed; allowed++)
		if (code == *allowed)
			return true;
	return false;
}
#define ONE_OF(code, ...) one_of(code, (const int[]){ __VA_ARGS__, 0 })

static void read_somewhere(sb_process *p, unsigned cursor)
{
	sb_chunk chunk = { .size = sizeof chunk };
	sb_error mine;
	char piece[100];
	int code = sb_output_read(sb_process_output(p), cursor, piece, sizeof piece, &moment, &chunk, &mine);

	HOLDS(ONE_OF(code, SB_ERR_AGAIN, SB_ERR_INVALID, SB_ERR_SEQUENCE_GAP, SB_ERR_PROCESS_CLOSED), code);
	HOLDS(code < 0 || (chunk.cursor == cursor && chunk.next == cursor + chunk.len), code);
}

static void watch_somewhere(sb_process *p)
{
	sb_event event = { .size = sizeof event };
	sb_watch *watch = NULL;
	sb_error mine;
	int code = sb_watch_new(sb_process_output(p), 0, 1000, &watch, &mine);

	HOLDS(ONE_OF(code, SB_ERR_PROCESS_CLOSED), code);
	for (int i = 0; code == 0 && i < 5; i++) {
		code = sb_watch_next(watch, &moment, &event, &mine);
		HOLDS(ONE_OF(code, SB_ERR_AGAIN, SB_ERR_CLOSED), code);
	}
	sb_watch_free(watch);
}

static void spawn_and_leave(void)
{
	sb_command command = { .size = sizeof command, .argv = LIST("sh", "-c", "echo more") };
	char steps[32];
	const char *const scripted[] = { "sh", FAKE_WORD, fake_argv(STEPS({ FAKE_OUT, 0, "more\n", 0 }), steps), NULL };
	sb_process *p = NULL;
	sb_error mine;

	if (w.is_fake)
		command.argv = scripted;
	int code = sb_session_spawn(w.session, &command, NULL, &p, &mine);

	HOLDS(ONE_OF(code, SB_ERR_SESSION_CLOSED), code);
	sb_process_free(p);
}

static void look_around(void)
{
	sb_usage usage = { .size = sizeof usage };
	sb_info info = { .size = sizeof info };
	sb_list *list = NULL;
	sb_error mine;
	int code = sb_sandbox_list(w.sandbox, SB_LIST_ALL, &list, &mine);

	HOLDS(code == 0, code);
	for (size_t i = 0; i < sb_list_count(list); i++)
		HOLDS(sb_list_at(list, i, &info) == 0, 0);
	sb_list_free(list);
	HOLDS(sb_session_state(w.session) >= 0, 0);
	sb_session_usage(w.session, &usage);
}

static void operate(sb_process *p, unsigned what, unsigned number)
{
	const bool tty = sb_process_caps(p) & SB_CAP_TTY;
	size_t written = 0;
	sb_exit end = { .size = sizeof end };
	sb_error mine;
	int code;

	switch (what) {
	case 0:
		code = sb_process_write(p, "line\n", 5, number % 2 ? &at_once : &moment, &written, &mine);
		HOLDS(ONE_OF(code, SB_ERR_AGAIN, SB_ERR_PROCESS_CLOSED), code);
		HOLDS(code < 0 ? written < 5 : written == 5, code);
		break;
	case 1:
		code = sb_process_resize(p, (uint16_t)(1 + number % 99), 80, NULL, &mine);
		HOLDS(tty ? ONE_OF(code, SB_ERR_PROCESS_CLOSED) : code == SB_ERR_UNSUPPORTED, code);
		break;
	case 2:
		code = sb_process_signal(p, SB_SIGNAL_INTERRUPT, NULL, &mine);
		HOLDS(ONE_OF(code, SB_ERR_PROCESS_CLOSED), code);
		break;
	case 3:
		code = sb_process_wait(p, &moment, &end, &mine);
		HOLDS(ONE_OF(code, SB_ERR_AGAIN), code);
		break;
	case 4:
		watch_somewhere(p);
		break;
	case 5:
		look_around();
		break;
	case 6:
		spawn_and_leave();
		break;
	default:
		read_somewhere(p, number % 3000);
	}
}

/* Each ends something in its own way when it has done its part, and goes on for a while. */
static void *attack(void *arg)
{
	unsigned number = (unsigned)(size_t)arg, seed = number + 1;
	sb_error mine;

	for (int i = 0; i < 2 * OPERATIONS; i++) {
		sb_process *p = shared[dice(&seed) % PROCESSES];
		int code = 0;

		if (i == OPERATIONS && number % 4 == 1)
			code = sb_process_terminate(p, &moment, &mine);
		else if (i == OPERATIONS && number % 4 == 2)
			code = sb_process_close(p, NULL, &mine);
		else if (i == OPERATIONS + 10 && number % 4 == 3)
			code = sb_session_close(w.session, NULL, &mine);
		else if (i == OPERATIONS && number == 4)
			code = sb_process_close_input(p, NULL, &mine) == SB_ERR_UNSUPPORTED ? 0 : code;
		else
			operate(p, dice(&seed) % 10, dice(&seed));
		HOLDS(code == 0, code);
	}
	return NULL;
}

static void everything_at_once(void **state)
{
	static const fake_step steps[] = { { FAKE_OUT, 500, "a line\n", 0 }, { FAKE_ECHO, 0, NULL, 0 }, { FAKE_END, 0, NULL, 0 } };
	pthread_t threads[THREADS];

	(void)state;
	w.limits.log_bytes = 4096;
	w.limits.grace_ms = 50;
	for (int i = 0; i < PROCESSES; i++)
		shared[i] = spawn(&(wish){ .line = "trap : INT; while :; do read x || sleep .01; echo $x; done; : @7761",
					   .steps = steps,
					   .command = { .flags = i == 0 && !w.is_fake ? SB_COMMAND_TTY : 0 } });
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, attack, (void *)i), 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&wrong), 0);
	assert_int_equal(sb_session_state(w.session), SB_STATE_CLOSED);
	for (int i = 0; i < PROCESSES; i++) {
		sb_exit end = { .size = sizeof end };

		assert_int_equal(sb_process_wait(shared[i], NULL, &end, &err), 0);
		sb_process_free(shared[i]);
	}
}

/* ---- readers ------------------------------------------------------------------------------------- */

static sb_process *endless_one(void)
{
	static const fake_step steps[] = { { FAKE_OUT, 1 << 30, "y\ny\ny\ny\ny\ny\ny\ny\n", 0 }, { FAKE_END, 0, NULL, 0 } };

	w.limits.log_bytes = 50000;
	return spawn(&(wish){ .line = "yes", .steps = steps });
}

static bool is_endless(const char *data, size_t len, uint64_t cursor)
{
	for (size_t i = 0; i < len; i++)
		if (data[i] != "y\n"[(cursor + i) % 2])
			return false;
	return true;
}

/* Comes back somewhere else each time: what is there is what was written there, or it is told that it is not. */
static void *reconnect(void *arg)
{
	sb_output *output = sb_process_output(arg);
	static atomic_uint who;
	unsigned seed = atomic_fetch_add(&who, 1);
	sb_chunk chunk = { .size = sizeof chunk };
	uint64_t oldest = 0, end = 0;
	char piece[3000];
	sb_error mine;

	for (int i = 0; i < 300; i++) {
		HOLDS(sb_output_range(output, &oldest, &end, &mine) == 0, mine.code);
		HOLDS(oldest <= end && end - oldest <= 50000, 0);
		uint64_t cursor = oldest + dice(&seed) % (unsigned)(end - oldest + 1);
		int code = sb_output_read(output, cursor, piece, 1 + dice(&seed) % sizeof piece, &moment, &chunk, &mine);

		HOLDS(ONE_OF(code, SB_ERR_AGAIN, SB_ERR_SEQUENCE_GAP), code);
		HOLDS(code < 0 || (chunk.cursor == cursor && is_endless(piece, chunk.len, cursor)), code);
	}
	return NULL;
}

static void readers_that_reconnect(void **state)
{
	sb_process *p = endless_one();
	pthread_t threads[6];

	(void)state;
	for (size_t i = 0; i < COUNT(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reconnect, p), 0);
	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&wrong), 0);
	sb_process_free(p);
}

/* Byte by byte it falls behind, is told how far, and goes on there; the writer does not wait for it. */
static void slow_reader(void **state)
{
	sb_process *p = endless_one();
	sb_output *output = sb_process_output(p);
	sb_chunk chunk = { .size = sizeof chunk };
	uint64_t oldest = 0, end = 0, cursor = 0, lost = 0;
	int gaps = 0;
	char byte;

	(void)state;
	for (uint64_t start = now_ms(); gaps < 5 && now_ms() - start < HANG_MS;) {
		int code = sb_output_read(output, cursor, &byte, 1, NULL, &chunk, &err);

		if (code == SB_ERR_SEQUENCE_GAP) {
			gaps++;
			assert_int_equal(sb_output_range(output, &oldest, &end, &err), 0);
			assert_true(oldest > cursor);
			lost += oldest - cursor;
			cursor = oldest;
			continue;
		}
		assert_int_equal(code, 0);
		assert_int_equal(chunk.len, 1);
		assert_true(is_endless(&byte, 1, cursor));
		cursor = chunk.next;
	}
	assert_int_equal(gaps, 5);
	assert_true(lost > 0);
	sb_process_free(p);
}

/* ---- closed under who waits ------------------------------------------------------------------------- */

typedef struct waiter {
	int (*wait)(sb_process *p, sb_watch *watch);
	sb_process *process;
	sb_watch *watch;
	int code;
} waiter;
static atomic_int waiting;

static int wait_read(sb_process *p, sb_watch *watch)
{
	sb_chunk chunk = { .size = sizeof chunk };
	char piece[4];
	sb_error mine;

	(void)watch;
	return sb_output_read(sb_process_output(p), 0, piece, 4, NULL, &chunk, &mine);
}

static int wait_write(sb_process *p, sb_watch *watch)
{
	static char much[1 << 20];
	sb_error mine;

	(void)watch;
	return sb_process_write(p, much, sizeof much, NULL, NULL, &mine);
}

static int wait_end(sb_process *p, sb_watch *watch)
{
	sb_exit end = { .size = sizeof end };
	sb_error mine;

	(void)watch;
	return sb_process_wait(p, NULL, &end, &mine);
}

static int wait_event(sb_process *p, sb_watch *watch)
{
	sb_event event = { .size = sizeof event };
	sb_error mine;
	int code = 0;

	(void)p;
	while (code == 0)
		code = sb_watch_next(watch, NULL, &event, &mine);
	return code;
}

static void *wait_for_it(void *arg)
{
	waiter *one = arg;

	atomic_fetch_add(&waiting, 1);
	one->code = one->wait(one->process, one->watch);
	return NULL;
}

static void closed_under_who_waits(void **state)
{
	static int (*const all[])(sb_process *, sb_watch *) = { wait_read, wait_write, wait_end, wait_event };
	static const int codes[] = { SB_ERR_PROCESS_CLOSED, SB_ERR_PROCESS_CLOSED, 0, SB_ERR_CLOSED };
	pthread_t threads[COUNT(all)];
	waiter waiters[COUNT(all)];

	(void)state;
	for (int round = 0; round < 4; round++) {
		sb_process *p = spawn(&(wish){ .line = "exec sleep @7762", .steps = STEPS({ FAKE_SLEEP, 600000, NULL, 0 }) });
		sb_watch *watch = NULL;

		assert_int_equal(sb_watch_new(sb_process_output(p), 0, 0, &watch, &err), 0);
		atomic_store(&waiting, 0);
		for (size_t i = 0; i < COUNT(all); i++) {
			waiters[i] = (waiter){ .wait = all[i], .process = p, .watch = watch };
			assert_int_equal(pthread_create(&threads[i], NULL, wait_for_it, &waiters[i]), 0);
		}
		while (atomic_load(&waiting) < (int)COUNT(all) || (round % 2 && usleep(20000)))
			sched_yield(); /* in every other round they are asleep, mostly */
		if (round < 2)
			assert_int_equal(sb_process_close(p, NULL, &err), 0);
		else
			assert_int_equal(sb_session_close(w.session, NULL, &err), 0);
		for (size_t i = 0; i < COUNT(all); i++) {
			pthread_join(threads[i], NULL);
			/* before it is closed it has ended, and its output: who reads may see that */
			if (waiters[i].code != codes[i] && (all[i] != wait_read || waiters[i].code))
				fail_msg("round %d, waiter %zu: %s", round, i, sb_code_name(waiters[i].code));
		}
		sb_watch_free(watch);
		sb_process_free(p);
		if (round >= 2) {
			sb_session_free(w.session);
			w.session = open_session();
		}
	}
}

/* ---- numbers ------------------------------------------------------------------------------------------ */

static void numbers_that_are_none(void **state)
{
	const sb_wait negative = { .size = sizeof negative, .timeout_ms = (uint64_t)-5 };
	sb_process *p = spawn(&(wish){ .line = "printf 0123456789; exec cat",
				       .steps = STEPS({ FAKE_OUT, 0, "0123456789", 0 }, { FAKE_ECHO, 0, NULL, 0 }) });
	sb_output *output = sb_process_output(p);
	sb_chunk chunk = { .size = sizeof chunk };
	sb_exit end = { .size = sizeof end };
	sb_event event = { .size = sizeof event };
	sb_watch *watch = NULL;
	sb_session *none = NULL;
	size_t written = 7;
	char piece[16];

	(void)state;
	await_text(p, "0123456789");
	/* cursors, and rooms */
	assert_int_equal(sb_output_read(output, 11, piece, 4, &at_once, &chunk, &err), SB_ERR_INVALID);
	assert_int_equal(sb_output_read(output, (uint64_t)-1, piece, 4, &at_once, &chunk, &err), SB_ERR_INVALID);
	assert_int_equal(sb_output_read(output, 10, piece, 4, &at_once, &chunk, &err), SB_ERR_AGAIN);
	assert_int_equal(sb_output_read(output, 0, piece, 0, &at_once, &chunk, &err), SB_ERR_INVALID);
	assert_int_equal(sb_output_read(output, 0, NULL, 4, &at_once, &chunk, &err), SB_ERR_INVALID);
	assert_int_equal(sb_output_read(output, 0, piece, 4, &at_once, NULL, &err), SB_ERR_INVALID);
	assert_int_equal(sb_watch_new(output, 11, 0, &watch, &err), SB_ERR_INVALID);
	assert_int_equal(sb_watch_new(output, 0, (uint64_t)-5, &watch, &err), SB_ERR_INVALID);
	assert_null(watch);
	/* nothing is written, and that is no error; of nowhere it is one */
	assert_int_equal(sb_process_write(p, "", 0, NULL, &written, &err), 0);
	assert_int_equal(written, 0);
	assert_int_equal(sb_process_write(p, NULL, 5, NULL, &written, &err), SB_ERR_INVALID);
	/* times */
	assert_int_equal(sb_process_write(p, "x", 1, &negative, &written, &err), SB_ERR_INVALID);
	assert_int_equal(sb_output_read(output, 0, piece, 4, &negative, &chunk, &err), SB_ERR_INVALID);
	assert_int_equal(sb_process_wait(p, &negative, &end, &err), SB_ERR_INVALID);
	assert_int_equal(sb_process_terminate(p, &negative, &err), SB_ERR_INVALID);
	assert_int_equal(sb_process_close(p, &negative, &err), SB_ERR_INVALID);
	/* a pipe has no size */
	assert_int_equal(sb_process_resize(p, 40, 100, NULL, &err), SB_ERR_UNSUPPORTED);
	assert_int_equal(sb_process_resize(p, 0, 0, NULL, &err), SB_ERR_UNSUPPORTED);
	/* NULL for everything */
	assert_int_equal(sb_process_write(NULL, "x", 1, NULL, NULL, &err), SB_ERR_INVALID);
	assert_int_equal(sb_process_signal(NULL, SB_SIGNAL_KILL, NULL, &err), SB_ERR_INVALID);
	assert_int_equal(sb_process_wait(p, &at_once, NULL, &err), SB_ERR_INVALID);
	assert_int_equal(sb_watch_next(NULL, NULL, &event, &err), SB_ERR_INVALID);
	sb_watch_close(NULL);
	/* limits below zero are refused where they are given */
	w.limits.log_bytes = (uint64_t)-7;
	assert_int_equal(try_session(&none), SB_ERR_INVALID_LIMITS);
	assert_null(none);
	w.limits.log_bytes = 0;
	/* none of it has done anything */
	assert_int_equal(sb_process_write(p, "abc", 3, NULL, &written, &err), 0);
	assert_int_equal(sb_process_close_input(p, NULL, &err), 0);
	says(p, "0123456789abc");
}

/* Closed is closed, for each call; what is remembered stays. */
static void after_the_close(void **state)
{
	sb_process *p = spawn(&(wish){ .line = "exec cat", .steps = STEPS({ FAKE_ECHO, 0, NULL, 0 }) });
	sb_output *output = sb_process_output(p);
	sb_chunk chunk = { .size = sizeof chunk };
	sb_watch *watch = NULL;
	uint64_t oldest, end;
	size_t written = 7;
	char piece[4];

	(void)state;
	assert_int_equal(sb_process_close(p, NULL, &err), 0);
	assert_int_equal(sb_process_close(p, NULL, &err), 0);
	assert_int_equal(sb_process_write(p, "x", 1, NULL, &written, &err), SB_ERR_PROCESS_CLOSED);
	assert_int_equal(written, 0);
	assert_int_equal(sb_process_write(p, "", 0, NULL, NULL, &err), SB_ERR_PROCESS_CLOSED);
	assert_int_equal(sb_process_signal(p, SB_SIGNAL_INTERRUPT, NULL, &err), SB_ERR_PROCESS_CLOSED);
	assert_int_equal(sb_process_close_input(p, NULL, &err), 0);
	assert_int_equal(sb_process_terminate(p, NULL, &err), 0);
	assert_int_equal(sb_output_read(output, 0, piece, 4, NULL, &chunk, &err), SB_ERR_PROCESS_CLOSED);
	assert_int_equal(sb_output_range(output, &oldest, &end, &err), SB_ERR_PROCESS_CLOSED);
	assert_int_equal(sb_watch_new(output, 0, 0, &watch, &err), SB_ERR_PROCESS_CLOSED);
	ended(p, SB_OUTCOME_TERMINATED, -1, 0, 0);
	sb_process_free(p);
	if (w.is_fake)
		return;
	p = spawn(&(wish){ .line = "exec cat", .command = { .flags = SB_COMMAND_TTY } });
	assert_int_equal(sb_process_close(p, NULL, &err), 0);
	assert_int_equal(sb_process_resize(p, 40, 100, NULL, &err), SB_ERR_PROCESS_CLOSED);
	assert_int_equal(sb_process_write(p, "x", 1, NULL, &written, &err), SB_ERR_PROCESS_CLOSED);
	assert_int_equal(sb_process_signal(p, SB_SIGNAL_INTERRUPT, NULL, &err), SB_ERR_PROCESS_CLOSED);
	sb_process_free(p);
}

/* A session that two close at once, while a third opens processes in it. */
static void *close_session(void *arg)
{
	sb_error mine;
	int code = sb_session_close(arg, NULL, &mine);

	HOLDS(code == 0, code);
	return NULL;
}

static void *spawn_until_closed(void *arg)
{
	(void)arg;
	for (int i = 0; i < 200 && sb_session_state(w.session) != SB_STATE_CLOSED; i++)
		spawn_and_leave();
	return NULL;
}

static void session_closed_at_once(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		pthread_t threads[4];

		pthread_create(&threads[0], NULL, spawn_until_closed, NULL);
		usleep((useconds_t)i * 3000);
		for (int t = 1; t < 4; t++)
			pthread_create(&threads[t], NULL, close_session, w.session);
		for (int t = 0; t < 4; t++)
			pthread_join(threads[t], NULL);
		assert_int_equal(atomic_load(&wrong), 0);
		assert_int_equal(sb_session_state(w.session), SB_STATE_CLOSED);
		sb_session_free(w.session);
		w.session = open_session();
	}
}

#define RUN_TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		RUN_TEST(everything_at_once), RUN_TEST(readers_that_reconnect), RUN_TEST(slow_reader),
		RUN_TEST(closed_under_who_waits), RUN_TEST(numbers_that_are_none), RUN_TEST(after_the_close),
		RUN_TEST(session_closed_at_once),
	};

	if (argc < 2) {
		fprintf(stderr, "usage: attacks BACKEND [DIRECTORY OF sb-launch]\n");
		return 2;
	}
	w.backend = argv[1];
	w.helper_dir = argc > 2 ? argv[2] : NULL;
	w.is_fake = !strcmp(w.backend, "fake");
	return cmocka_run_group_tests_name(w.backend, tests, world_make, world_remove);
}

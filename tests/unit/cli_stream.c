/* SPDX-License-Identifier: MIT */
/* cli_stream.c - output to a reader that is quick, slow, stuck, or gone. */
#include "unit.h"

#include "../../src/cli/cli.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BIG = 1 << 20, MS = 1000000 };
static char big[BIG];
static const volatile sig_atomic_t never = 0;

static size_t drain(int fd)
{
	char buf[4096];
	size_t sum = 0;
	ssize_t n;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	while ((n = read(fd, buf, sizeof buf)) > 0)
		sum += (size_t)n;
	return sum;
}

static void stuck_reader_keeps_the_rest(void **state)
{
	static const int kinds[] = { 0, 1 }; /* pipe, socket pair */

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(kinds); i++) {
		cli_stream s;
		int fds[2];
		assert_int_equal(kinds[i] ? socketpair(AF_UNIX, SOCK_STREAM, 0, fds) : pipe(fds), 0);
		stream_init(&s, fds[1]);
		uint64_t start = stream_now_ns();
		unit_row(i, stream_write(&s, big, BIG, start + 50 * MS, &never) == STREAM_LATE);
		uint64_t took = stream_now_ns() - start;
		unit_row(i, took >= 50 * (uint64_t)MS && took < 5000 * (uint64_t)MS);
		/* what comes behind the deadline waits for nothing, and is kept, too */
		unit_row(i, stream_write(&s, "x", 1, start, &never) == STREAM_LATE && s.lost == 0);
		size_t first = drain(fds[0]);
		unit_row(i, first > 0 && first + s.late.len == BIG + 1);
		/* the reader took some: a flush gives as much again, then gives up */
		unit_row(i, stream_flush(&s, 50, &never) == STREAM_LATE);
		unit_row(i, s.late.data == NULL);
		size_t second = drain(fds[0]);
		unit_row(i, second > 0 && first + second + s.lost == BIG + 1);
		close(fds[0]);
		close(fds[1]);
	}
}

static void late_data_arrives_whole(void **state)
{
	cli_stream s;
	char buf[8] = "";
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	while (fcntl(fds[1], F_SETPIPE_SZ, 4096) < 0)
		fail();
	assert_int_equal(write(fds[1], big, 4096), 4096);
	stream_init(&s, fds[1]);
	assert_int_equal(stream_write(&s, "abc", 3, 0, &never), STREAM_LATE);
	assert_int_equal(stream_write(&s, "def", 3, SB_UNLIMITED, &never), STREAM_LATE);
	assert_int_equal(drain(fds[0]), 4096);
	assert_int_equal(stream_flush(&s, 5000, &never), STREAM_OK);
	assert_int_equal(read(fds[0], buf, sizeof buf), 6);
	assert_string_equal(buf, "abcdef");
	assert_int_equal(s.lost, 0);
	close(fds[0]);
	close(fds[1]);
}

static void gone_reader(void **state)
{
	cli_stream s;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	stream_init(&s, fds[1]);
	assert_int_equal(stream_write(&s, "abc", 3, SB_UNLIMITED, &never), STREAM_GONE);
	assert_int_equal(stream_write(&s, "def", 3, SB_UNLIMITED, &never), STREAM_GONE);
	assert_int_equal(stream_flush(&s, 10, &never), STREAM_GONE);
	assert_int_equal(s.lost, 6);
	close(fds[1]);
}

static void signal_ends_the_wait(void **state)
{
	static const volatile sig_atomic_t stop = SIGINT;
	cli_stream s;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	stream_init(&s, fds[1]);
	assert_int_equal(stream_write(&s, big, BIG, SB_UNLIMITED, &stop), STREAM_STOPPED);
	assert_int_equal(s.lost, BIG);
	close(fds[0]);
	close(fds[1]);
}

/* The descriptor is shared with others: its flags are theirs. */
static void flags_stay(void **state)
{
	cli_stream s;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	int before = fcntl(fds[1], F_GETFL);
	stream_init(&s, fds[1]);
	assert_int_equal(stream_write(&s, "abc", 3, SB_UNLIMITED, &never), STREAM_OK);
	assert_int_equal(fcntl(fds[1], F_GETFL), before);
	close(fds[0]);
	close(fds[1]);
}

/* A non-blocking descriptor, made so by whoever shares it, is waited for. */
static void nonblocking_descriptor(void **state)
{
	cli_stream s;
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	stream_init(&s, fds[1]);
	assert_int_equal(stream_write(&s, big, BIG, stream_now_ns() + 20 * MS, &never), STREAM_LATE);
	assert_int_equal(drain(fds[0]) + s.late.len, BIG);
	text_release(&s.late);
	close(fds[0]);
	close(fds[1]);
}

static void full_disk(void **state)
{
	cli_stream s;
	int fd = open("/dev/full", O_WRONLY);

	(void)state;
	assert_true(fd >= 0);
	stream_init(&s, fd);
	assert_int_equal(stream_write(&s, "abc", 3, SB_UNLIMITED, &never), STREAM_ERROR);
	assert_int_equal(s.os_errno, ENOSPC);
	assert_int_equal(s.lost, 3);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stuck_reader_keeps_the_rest), cmocka_unit_test(late_data_arrives_whole),
		cmocka_unit_test(gone_reader), cmocka_unit_test(signal_ends_the_wait),
		cmocka_unit_test(flags_stay), cmocka_unit_test(nonblocking_descriptor),
		cmocka_unit_test(full_disk),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* evals_played.c - a driver that plays, well and badly: what it may say and what ends the session. */
#include "evals.h"
#include "../unit/folder.h"

#define HELLO                                                                                      \
	{ FAKE_HEAR, 0, NULL, 0 },                                                                 \
	{                                                                                          \
		FAKE_TELL, 0, "H @ 00000009\n1 ask nul", 0                                         \
	}
#define HEAR                                                                                       \
	{                                                                                          \
		FAKE_HEAR, 0, NULL, 0                                                              \
	}
#define TELL(text)                                                                                 \
	{                                                                                          \
		FAKE_TELL, 0, text, 0                                                              \
	}
#define WAIT                                                                                       \
	{                                                                                          \
		FAKE_SLEEP, 60000, NULL, 0                                                         \
	}

static void play(const fake_step *steps)
{
	if (!w.is_fake)
		skip();
	script = steps;
	session = open_one();
}

static void played_evaluations(void **state)
{
	static const fake_step steps[] = {
		HELLO,
		HEAR,
		{ FAKE_OUT, 0, "said\n", 0 },
		TELL("V @ 00000002\n42"),
		TELL("D @ 00000001\n0"),
		HEAR,
		{ FAKE_ERR, 0, "bad\n", 0 },
		TELL("X @ 00000004\nE: x"),
		TELL("D @ 00000001\n1"),
		HEAR,
		{ FAKE_OUT_FILE, 0, "left", 0 },
		TELL("D @ 00000003\n255"),
		HEAR,
		TELL("V @ 00000005\na\0b"),
		{ FAKE_TELL, 0, "\377c", 0 },
		WAIT,
		{ FAKE_END, 0, NULL, 0 },
	};

	(void)state;
	play(steps);
	answer a = eval("one");

	ok(a, "said\n");
	assert_string_equal(a.value, "42");
	a = eval("two");
	assert_int_equal(a.code, 1);
	assert_string_equal(a.exception, "E: x");
	assert_string_equal(a.err, "bad\n");
	a = eval("three");
	assert_int_equal(a.code, 255);
	assert_int_equal(a.files, 1);
}

/* What may not come ends the session, with words that say what it was. */
static void broken_frames(void **state)
{
	static const struct {
		const char *text, *why;
	} all[] = {
		{ "nonsense that is no frame at all, but quite long enough", "no frame" },
		{ "D 00000000000000000000000000000000 00000001\n0", "another evaluation" },
		{ "V @ 00100001\n", "too long" },
		{ "D @ ffffffff\n", "too long" },
		{ "D @ 00000003\n999", "no number" },
		{ "Q @ 00000008\n00000001", "none may be asked" },
		{ "U @ 00000000\n", "unfinished" },
		{ "V @ 00000001\n1V @ 00000001\n1", "second value" },
		{ "H @ 00000009\n1 ask nul", "unknown kind" },
		{ "D @ 00000001\n0D @ 00000001\n0", "behind the end" },
	};
	fake_step steps[] = { HELLO, HEAR, TELL(NULL), WAIT, { FAKE_END, 0, NULL, 0 } };

	(void)state;
	if (!w.is_fake)
		skip();
	for (size_t i = 0; i < COUNT(all); i++) {
		steps[3].text = all[i].text;
		play(steps);
		answer a = eval("code");

		assert_int_equal(a.rc, 0);
		if (!strstr(a.message, all[i].why))
			fail_msg("\"%s\" has no \"%s\"", a.message, all[i].why);
		assert_int_equal(a.outcome, SB_OUTCOME_VIOLATION);
		killed(a, SB_ERR_FORBIDDEN);
		sb_session_free(session);
		session = NULL;
	}
}

static void flood_of_frames(void **state)
{
	static const fake_step steps[] = { HELLO,
					   HEAR,
					   { FAKE_TELL, 0, "V @ 00000001\n1", 0 },
					   { FAKE_OUT, 100000, "x", 0 },
					   TELL("V @ 00000001\n1"),
					   WAIT,
					   { FAKE_END, 0, NULL, 0 } };

	(void)state;
	play(steps);
	answer a = eval("code");

	assert_int_equal(a.outcome, SB_OUTCOME_VIOLATION);
	assert_int_equal(a.out_len, 100000);
}

/* A driver that knows the frame gets one, behind the code and before the first signal, under the code's own
 * nonce (which its answers have from then on); another gets signals alone. */
static void interrupts_are_told(void **state)
{
	static const fake_step told[] = {
		{ FAKE_HEAR, 0, NULL, 0 },
		TELL("H @ 0000000d\n1 ask nul int"),
		HEAR,
		HEAR,
		{ FAKE_INTERRUPT, 0, NULL, 0 },
		TELL("X @ 00000004\nstop"),
		TELL("D @ 00000001\n1"),
		HEAR,
		TELL("D @ 00000001\n0"),
		WAIT,
		{ FAKE_END, 0, NULL, 0 },
	};
	static const fake_step untold[] = {
		HELLO,
		HEAR,
		{ FAKE_INTERRUPT, 0, NULL, 0 },
		TELL("X @ 00000004\nstop"),
		TELL("D @ 00000001\n1"),
		HEAR,
		TELL("D @ 00000001\n0"),
		WAIT,
		{ FAKE_END, 0, NULL, 0 },
	};
	static const fake_step *const all[] = { told, untold };

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++) {
		other o = { .code = "code" };

		play(all[i]);
		start(&o);
		interrupt_after(0);
		join(&o);
		assert_string_equal(o.got.exception, "stop");
		ok(eval("next"), "");
		sb_session_free(session);
		session = NULL;
	}
}

static void hung_up(void **state)
{
	static const fake_step steps[] = {
		HELLO, HEAR, { FAKE_HANG_UP, 0, NULL, 0 }, WAIT, { FAKE_END, 0, NULL, 0 }
	};

	(void)state;
	play(steps);
	answer a = eval("code");

	assert_int_equal(a.outcome, SB_OUTCOME_VIOLATION);
	killed(a, SB_ERR_FORBIDDEN);
}

static void played_endings(void **state)
{
	static const struct {
		fake_step end;
		int outcome, error, cause;
	} all[] = {
		{ { FAKE_END, 3, NULL, 0 },
		  SB_OUTCOME_EXITED,
		  SB_ERR_SESSION_CLOSED,
		  SB_ERR_PROCESS_CLOSED },
		{ { FAKE_SIGNALED, 11, NULL, 0 }, SB_OUTCOME_SIGNALED, SB_ERR_SESSION_KILLED, 0 },
		{ { FAKE_LIMIT, SB_ERR_CPU_LIMIT, NULL, 0 },
		  SB_OUTCOME_BUDGET_EXCEEDED,
		  SB_ERR_SESSION_KILLED,
		  SB_ERR_CPU_LIMIT },
		{ { FAKE_LOSE, 0, NULL, 0 },
		  SB_OUTCOME_LOST,
		  SB_ERR_SESSION_KILLED,
		  SB_ERR_CONNECTION_LOST },
	};
	fake_step steps[] = {
		HELLO, HEAR, { FAKE_OUT, 0, "partial", 0 }, WAIT, { FAKE_END, 0, NULL, 0 }
	};

	(void)state;
	if (!w.is_fake)
		skip();
	for (size_t i = 0; i < COUNT(all); i++) {
		steps[4] = all[i].end;
		play(steps);
		answer a = eval("code");

		assert_int_equal(a.outcome, all[i].outcome);
		assert_int_equal(a.error, all[i].error);
		assert_int_equal(a.cause, all[i].cause);
		assert_string_equal(a.out, "partial");
		sb_session_free(session);
		session = NULL;
	}
}

static void bad_starts(void **state)
{
	static const fake_step silent[] = { { FAKE_ERR, 0, "no such module\n", 0 },
					    { FAKE_END, 1, NULL, 0 } };
	static const fake_step rude[] = {
		HEAR, TELL("D @ 00000001\n0"), WAIT, { FAKE_END, 0, NULL, 0 }
	};
	static const fake_step lost[] = { { FAKE_LOSE, 0, NULL, 0 }, { FAKE_END, 0, NULL, 0 } };
	static const fake_step limited[] = { { FAKE_LIMIT, SB_ERR_MEMORY_LIMIT, NULL, 0 }, { FAKE_END, 0, NULL, 0 } };
	static const fake_step struck[] = { { FAKE_SIGNALED, 9, NULL, 0 }, { FAKE_END, 0, NULL, 0 } };
	sb_session *none = NULL;

	(void)state;
	if (!w.is_fake)
		skip();
	script = struck;
	assert_int_equal(try_open(&none), SB_ERR_SESSION_KILLED);
	assert_non_null(strstr(err.message, "signal 9"));
	script = lost;
	assert_int_equal(try_open(&none), SB_ERR_CONNECTION_LOST);
	assert_null(strstr(err.message, "limit"));
	script = limited;
	assert_int_equal(try_open(&none), SB_ERR_MEMORY_LIMIT);
	assert_non_null(strstr(err.message, "allow more"));
	script = silent;
	assert_int_equal(try_open(&none), SB_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "no such module"));
	script = rude;
	assert_int_equal(try_open(&none), SB_ERR_UNSUPPORTED);
	how.language = "mute";
	assert_int_equal(try_open(&none), SB_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "no sessions"));
	how.language = "scripted";
	fake.fail_at = FAKE_AT_SPAWN;
	fake.fail_code = SB_ERR_NOT_FOUND;
	assert_int_equal(try_open(&none), SB_ERR_NOT_FOUND);
	fake.fail_at = FAKE_AT_PUT;
	fake.fail_code = SB_ERR_FS_QUOTA;
	assert_int_equal(try_open(&none), SB_ERR_FS_QUOTA);
	fake.fail_at = fake.fail_code = 0;
}

EVALS_MAIN(TEST(played_evaluations), TEST(broken_frames), TEST(flood_of_frames), TEST(hung_up), TEST(interrupts_are_told),
	   TEST(played_endings), TEST(bad_starts));

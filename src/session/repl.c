/* SPDX-License-Identifier: MIT */
/*
 * repl.c - the interpreter of a session: its start, one exchange with its driver, its end.
 *
 * An exchange is a pump (output, clocks, cancel, the guest's end) that also sends the parts of a
 * frame as the driver takes them, and reads frames until one ends the exchange.
 */
#include "repl.h"
#include "live.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { GONE_MS = 1000, FINISH_MS = 10000, START_MS = 60000, READ_PIECE = 16384, LINE_MOST = 200 };

static const sb_guest_io no_io = {
	.size = sizeof no_io, .in = -1, .out = -1, .err = -1, .exited = -1, .control = -1
};

/* ---- memory -------------------------------------------------------------------------------- */

repl *repl_new(sb_error *err)
{
	repl *r = calloc(1, sizeof *r);

	if (!r) {
		error_no_memory(err, "session");
		return NULL;
	}
	driver_init(&r->reader);
	r->io = no_io;
	r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->wake_fd >= 0 && r->stop_fd >= 0)
		return r;
	error_errno(err, SB_ERR_IO, errno, "session", "cannot make a session's descriptors");
	repl_free(r);
	return NULL;
}

static void close_io(repl *r)
{
	int32_t *fds[] = { &r->io.in, &r->io.out, &r->io.err, &r->io.exited, &r->io.control };

	for (size_t i = 0; i < BASE_ARRAY_LEN(fds); i++)
		fd_close(fds[i]);
}

void repl_free(repl *r)
{
	if (!r)
		return;
	close_io(r);
	driver_release(&r->reader);
	fd_close(&r->wake_fd);
	fd_close(&r->stop_fd);
	free(r->answer);
	free(r);
}

repl_talk *repl_talk_new(void)
{
	repl_talk *t = calloc(1, sizeof *t);

	if (t)
		t->pump.io = no_io;
	return t;
}

void repl_talk_free(repl_talk *t)
{
	if (!t)
		return;
	free(t->value);
	free(t->exception);
	pump_release(&t->pump);
	free(t);
}

/* ---- calls on the box: one at a time ----------------------------------------------------------
 */

static sb_call finish_call(void)
{
	return (sb_call){ .size = sizeof(sb_call),
			  .cancel_fd = -1,
			  .deadline_ns = clock_deadline_ns(clock_now_ns(), FINISH_MS) };
}

static int send_signal(sb_session *s, int signal, uint64_t deadline_ns)
{
	sb_call call = finish_call();
	int code;

	if (deadline_ns < call.deadline_ns)
		call.deadline_ns = deadline_ns;
	pthread_mutex_lock(&s->lock);
	code = turn_take(s, &call, NULL);
	if (code >= 0) {
		pthread_mutex_unlock(&s->lock);
		code = session_table(s)->signal(s->repl->guest, signal, &call, NULL);
		pthread_mutex_lock(&s->lock);
		turn_give(s);
	}
	pthread_mutex_unlock(&s->lock);
	return code;
}

static int on_signal(void *user, int signal)
{
	repl_talk *t = user;

	return send_signal(t->session, signal, SB_UNLIMITED);
}

static void take_turn(sb_session *s)
{
	const sb_call call = { .size = sizeof call, .cancel_fd = -1, .deadline_ns = SB_UNLIMITED };

	pthread_mutex_lock(&s->lock);
	turn_take(s, &call, NULL);
	pthread_mutex_unlock(&s->lock);
}

static void give_turn(sb_session *s)
{
	pthread_mutex_lock(&s->lock);
	turn_give(s);
	pthread_mutex_unlock(&s->lock);
}

/* With the turn. */
static void look_at_usage(sb_session *s, sb_usage *used)
{
	if (session_table(s)->usage)
		session_table(s)->usage(s->box, s->repl->guest, used);
}

/* Telling wakes pid 1 and the watcher.  One that was told a moment ago is as good: in that time no more than a
 * hundredth of the budget can have been used, on all processors together. */
static bool must_renew(const sb_session *s)
{
	uint64_t cpu_ms = s->e.limits.cpu_ms;

	if (!session_table(s)->renew || !cpu_ms || cpu_ms == SB_UNLIMITED)
		return false;
	return (clock_now_ns() - s->repl->renewed_ns) / 10000 >= cpu_ms / s->repl->processors;
}

void repl_renew(sb_session *s, sb_usage *used)
{
	take_turn(s);
	look_at_usage(s, used);
	if (must_renew(s)) {
		session_table(s)->renew(s->repl->guest);
		s->repl->renewed_ns = clock_now_ns();
	}
	give_turn(s);
}

void repl_usage(sb_session *s, sb_usage *used)
{
	take_turn(s);
	look_at_usage(s, used);
	give_turn(s);
}

bool repl_has_ended(const repl *r)
{
	struct pollfd fd = { .fd = r->io.exited, .events = POLLIN };

	return r->guest && poll(&fd, 1, 0) > 0;
}

int repl_reap(repl_talk *t, sb_guest_exit *end, sb_error *err)
{
	sb_session *s = t->session;
	const sb_backend *table = session_table(s);
	repl *r = s->repl;

	take_turn(s);
	int code = table->reap(r->guest, end, err);

	table->release(r->guest);
	r->guest = NULL;
	give_turn(s);
	close_io(r);
	return code;
}

/* 0, and how it ended; else nobody knows. */
static int end_and_tell(sb_session *s, sb_guest_exit *end)
{
	const sb_backend *table = session_table(s);
	repl *r = s->repl;
	const sb_call call = finish_call();
	struct pollfd exited;
	int code = SB_ERR_CONNECTION_LOST;

	take_turn(s);
	table->signal(r->guest, SB_SIGNAL_KILL, &call, NULL);
	exited = (struct pollfd){ .fd = r->io.exited, .events = POLLIN };
	while (poll(&exited, 1, clock_poll_ms(clock_now_ns(), call.deadline_ns)) < 0 &&
	       errno == EINTR)
		;
	if (exited.revents)
		code = table->reap(r->guest, end, NULL);
	table->release(r->guest);
	r->guest = NULL;
	give_turn(s);
	close_io(r);
	return code;
}

void repl_end(sb_session *s)
{
	sb_usage usage = { .size = sizeof usage };
	sb_guest_exit end = { .size = sizeof end, .usage = &usage };

	if (s->repl && s->repl->guest)
		end_and_tell(s, &end);
}

bool repl_was_killed(sb_session *s)
{
	sb_usage usage = { .size = sizeof usage };
	sb_guest_exit end = { .size = sizeof end, .usage = &usage };

	return end_and_tell(s, &end) < 0 || end.outcome != SB_OUTCOME_EXITED || ending_error(&end);
}

/* ---- what is sent ------------------------------------------------------------------------------
 */

static bool all_sent(const repl_talk *t)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(t->lens); i++)
		if (t->lens[i])
			return false;
	return true;
}

/* Bytes that went, in their order. */
static void sent(repl_talk *t, size_t n)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(t->parts); i++) {
		size_t of_it = n < t->lens[i] ? n : t->lens[i];

		if (of_it)
			t->parts[i] = (const char *)t->parts[i] + of_it;
		t->lens[i] -= of_it;
		n -= of_it;
	}
}

/* As much as it takes now, in one piece: a driver that is woken finds all of a short frame.  False: it takes no
 * more, ever. */
static bool send_parts(repl_talk *t)
{
	pump *p = &t->pump;

	p->control_full = false;
	while (!all_sent(t)) {
		struct iovec iov[BASE_ARRAY_LEN(t->parts)];
		struct msghdr message = { .msg_iov = iov };

		for (size_t i = 0; i < BASE_ARRAY_LEN(t->parts); i++)
			iov[message.msg_iovlen++] = (struct iovec){ (void *)(uintptr_t)t->parts[i], t->lens[i] };
		ssize_t n = sendmsg(p->io.control, &message, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			p->control_full = true;
			return true;
		}
		if (n < 0)
			return false;
		sent(t, (size_t)n);
	}
	return true;
}

static void answer(repl_talk *t, size_t len)
{
	repl *r = t->session->repl;

	t->parts[1] = t->answer_head;
	t->lens[1] = driver_answer_head(&r->reader, len, t->answer_head);
	t->parts[2] = t->piece;
	t->lens[2] = len;
	driver_answered(&r->reader);
}

/* ---- interrupts --------------------------------------------------------------------------------
 *
 * A signal is about whatever runs when it arrives, and code that has not begun cannot be struck.  So the
 * first one of an evaluation is told in a frame as well, behind the code and before the signal: a driver
 * that begins looks for it.  From then on signals alone do.  A signal has arrived before the next
 * evaluation is sent (sb_backend.signal says when), so none is another's.
 */

/* An interrupt that was asked for, as far as it can be passed on now. */
static void pass_interrupt(repl_talk *t)
{
	sb_session *s = t->session;
	repl *r = s->repl;

	if (!t->evaluates || t->strike || !all_sent(t))
		return;
	pthread_mutex_lock(&s->lock);
	t->strike = r->interrupted;
	r->interrupted = false;
	pthread_mutex_unlock(&s->lock);
	if (!t->strike || t->told || !(r->features & DRIVER_CAN_INT))
		return;
	t->told = true;
	t->parts[0] = t->interrupt_head;
	t->lens[0] = driver_interrupt_head(&r->reader, t->interrupt_head);
}

/* All that is to be told, as far as the driver takes it now.  False: it takes no more, ever. */
static bool tell(repl_talk *t)
{
	if (!send_parts(t))
		return false;
	pass_interrupt(t);
	if (!send_parts(t))
		return false;
	if (t->strike && all_sent(t)) {
		t->strike = false;
		send_signal(t->session, SB_SIGNAL_INTERRUPT, t->pump.deadline_ns);
	}
	return true;
}

/* ---- questions
 * ----------------------------------------------------------------------------------- */

static void ask_callback(repl_talk *t)
{
	int64_t n = t->command->read_input(t->command->user, t->piece, sizeof t->piece);

	if (n < 0 || n > (int64_t)sizeof t->piece)
		pump_stop(&t->pump, PUMP_CALLBACK);
	else
		answer(t, (size_t)n);
}

static void ask_session(repl_talk *t)
{
	sb_session *s = t->session;

	pthread_mutex_lock(&s->lock);
	s->repl->asking = true;
	topic_wake(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

/* Somebody called sb_session_answer(). */
static void take_answer(repl_talk *t)
{
	sb_session *s = t->session;
	repl *r = s->repl;
	uint64_t count;
	size_t len = 0;
	char *text;

	if (read(r->wake_fd, &count, sizeof count) < 0)
		return;
	pthread_mutex_lock(&s->lock);
	text = r->answer;
	len = r->answer_len;
	r->answer = NULL;
	pthread_mutex_unlock(&s->lock);
	if (text && r->reader.asked) {
		memcpy(t->piece, text, len);
		answer(t, len);
	}
	free(text);
}

/* ---- what comes
 * ------------------------------------------------------------------------------------ */

static void keep_text(repl_talk *t, char **at, const driver_frame *f)
{
	buf text;

	buf_init(&text, 4 * DRIVER_TEXT_MAX);
	for (size_t i = 0; i < f->len;) {
		size_t n = utf8_sequence(f->payload + i, f->len - i);

		if (n && f->payload[i])
			buf_add(&text, f->payload + i, n);
		else
			buf_add_str(&text, "\xef\xbf\xbd");
		i += n ? n : 1;
	}
	free(*at);
	*at = buf_take(&text, NULL);
	t->no_memory |= !*at;
	buf_release(&text);
}

/* True: the exchange is over. */
static bool take_frame(repl_talk *t, const driver_frame *f)
{
	switch (f->kind) {
	case 'H':
		t->session->repl->features = f->features;
		return true;
	case 'V':
		keep_text(t, &t->value, f);
		return false;
	case 'X':
		keep_text(t, &t->exception, f);
		return false;
	case 'Q':
		if (t->command->input_kind == SB_INPUT_CALLBACK)
			ask_callback(t);
		else
			ask_session(t);
		return false;
	case 'U':
		t->unfinished = true;
		return true;
	default: /* 'D' */
		t->status = f->status;
		return true;
	}
}

static bool breach(repl_talk *t, const char *why)
{
	t->broken = why;
	pump_stop(&t->pump, PUMP_BROKEN);
	return false;
}

/* Perhaps only the first sign of its end, which is told in a moment. */
static void hung_up(repl_talk *t)
{
	uint64_t soon = clock_deadline_ns(clock_now_ns(), GONE_MS);

	fd_close(&t->pump.io.control);
	t->broken = "it closed the control descriptor, or another program took its place";
	t->pump.grace_ms = 0;
	if (soon < t->pump.deadline_ns)
		t->pump.deadline_ns = soon;
}

/* One piece; true: the exchange is over. */
static bool hear(repl_talk *t)
{
	char piece[READ_PIECE];
	driver_reader *reader = &t->session->repl->reader;
	ssize_t n = read(t->pump.io.control, piece, sizeof piece);
	size_t at = 0, used;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		hung_up(t);
		return false;
	}
	while (at < (size_t)n) {
		driver_frame frame;
		const char *why = NULL;
		int rc = driver_read(reader, piece + at, (size_t)n - at, &used, &frame, &why);

		at += used;
		if (rc < 0)
			return breach(t, why);
		if (rc == 0)
			return false;
		if (!take_frame(t, &frame))
			continue;
		if (at < (size_t)n)
			return breach(t, "bytes behind the end of an evaluation");
		return true;
	}
	return false;
}

static bool on_control(void *user)
{
	repl_talk *t = user;
	pump *p = &t->pump;
	const repl *r = t->session->repl;
	struct pollfd fds[2] = { { .fd = p->io.control, .events = POLLIN },
				 { .fd = r->wake_fd, .events = POLLIN } };

	if (poll(fds, 2, 0) < 0)
		return false;
	if (fds[0].revents && hear(t))
		return true;
	if (fds[1].revents)
		take_answer(t);
	if (p->io.control >= 0 && !p->killed)
		tell(t); /* if it reads no more, what it still says, or its end, is told */
	return false;
}

/* ---- an exchange
 * ------------------------------------------------------------------------------------- */

void repl_exchange(repl_talk *t)
{
	sb_session *s = t->session;
	repl *r = s->repl;
	pump *p = &t->pump;

	p->io = r->io;
	r->io = no_io;
	p->call = t->call;
	p->stop_fd = r->stop_fd;
	p->wake_fd = r->wake_fd;
	p->grace_ms = s->e.limits.grace_ms;
	p->signal = on_signal;
	p->on_control = on_control;
	p->user = t;
	t->start_ns = clock_now_ns();
	if (!p->deadline_ns)
		p->deadline_ns = clock_deadline_ns(t->start_ns, s->e.limits.wall_ms);
	capture_init(&p->out, &s->e.limits);
	tell(t);
	pump_evaluate(p);
	r->io = p->io;
	p->io = no_io;
	pthread_mutex_lock(&s->lock);
	r->asking = false;
	free(r->answer);
	r->answer = NULL;
	pthread_mutex_unlock(&s->lock);
}

/* ---- start
 * --------------------------------------------------------------------------------------------- */

static int spawn(sb_session *s, const sb_call *call, sb_error *err)
{
	const sb_backend *table = session_table(s);
	effective *e = &s->e;
	const char *driver = e->way->session_driver;
	int code = 0;

	if (!e->argv)
		code = effective_code_argv(e, err);
	if (code < 0)
		return code;
	sb_guest_request request = e->guest;

	request.argv = (const char *const *)e->argv;
	request.flags = SB_GUEST_CONTROL;
	take_turn(s);
	code = carry_code(table, s->box, e->code_path, driver, strlen(driver), call, err);
	if (code >= 0)
		code = table->spawn(s->box, &request, call, &s->repl->guest, &s->repl->io, err);
	give_turn(s);
	return code;
}

/* The last line that it wrote to standard error, as words. */
static const char *last_words(repl_talk *t, char out[LINE_MOST])
{
	size_t len, gap;
	char *text = capture_take(&t->pump.out, 1, &len, &gap);
	const char *line = text;

	out[0] = 0;
	if (!text)
		return "";
	while (len && text[len - 1] == '\n')
		text[--len] = 0;
	for (const char *at = text; (at = strchr(at, '\n'));)
		line = ++at;
	snprintf(out, LINE_MOST, "%s%s", *line ? ": " : "", line);
	utf8_make_plain(out);
	free(text);
	return out;
}

static int not_started(repl_talk *t, sb_error *err)
{
	const char *name = t->session->e.pack->name;
	sb_guest_exit end = { .size = sizeof end };
	sb_usage usage = { .size = sizeof usage };
	char line[LINE_MOST];

	end.usage = &usage;
	if (t->pump.why == PUMP_CANCELLED) {
		repl_end(t->session);
		return error_set(err, SB_ERR_CANCELLED, "session", "cancelled while \"%s\" started",
				 name);
	}
	if (t->pump.why == PUMP_TIME || t->pump.why == PUMP_WAIT_OVER) {
		repl_end(t->session);
		return error_set(err, SB_ERR_TIMEOUT, "session",
				 "the interpreter of \"%s\" did not start in "
				 "time",
				 name);
	}
	if (t->pump.why == PUMP_NO_MEMORY || t->session->repl->reader.payload.failed) {
		repl_end(t->session);
		return error_no_memory(err, "session");
	}
	int code = t->pump.ended ? repl_reap(t, &end, err) : 0;

	repl_end(t->session);
	if (code < 0)
		return code;
	code = ending_error(&end);
	if (code && sb_error_kind(code) == SB_KIND_BUDGET_EXCEEDED)
		return error_set(err, code, "session",
				 "the interpreter of \"%s\" met a limit at its "
				 "start: %s; allow more",
				 name, sb_code_name(code));
	if (code)
		return error_set(err, code, "session",
				 "the interpreter of \"%s\" was taken away at its "
				 "start: %s%s",
				 name, sb_code_name(code),
				 code == SB_ERR_CONNECTION_LOST ? "; try again" : "");
	/* a crash, or somebody else: not what it can or cannot do */
	if (t->pump.ended && !t->pump.killed && end.outcome == SB_OUTCOME_SIGNALED)
		return error_set(err, SB_ERR_SESSION_KILLED, "session",
				 "the interpreter of \"%s\" was ended by signal %d at its start%s", name,
				 end.signal_number, last_words(t, line));
	return error_set(err, SB_ERR_UNSUPPORTED, "session",
			 "the interpreter of \"%s\" cannot hold a session "
			 "here%s",
			 name, last_words(t, line));
}

/* A new one, of which nothing is known. */
static void begin(repl *r)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	driver_release(&r->reader);
	driver_init(&r->reader);
	r->processors = processors > 0 ? (uint64_t)processors : 1;
	r->renewed_ns = 0;
}

/* Its driver says hello: it is there, and can hold a session. */
static int greet(sb_session *s, const sb_call *call, sb_error *err)
{
	static const sb_command nothing = { .size = sizeof nothing, .input_kind = SB_INPUT_NONE };
	repl *r = s->repl;
	char head[DRIVER_HEAD + DRIVER_CODE_HEAD + 1];
	repl_talk *t = repl_talk_new();
	int code = 0;

	if (!t)
		return error_no_memory(err, "session");
	if (driver_expect_hello(&r->reader) < 0) {
		repl_talk_free(t);
		return error_set(err, SB_ERR_INTERNAL, "session", "cannot get random bytes");
	}
	t->session = s;
	t->command = t->pump.command = &nothing;
	t->call = call;
	t->parts[1] = head;
	t->lens[1] = driver_start_head(&r->reader, head);
	t->pump.deadline_ns = clock_deadline_ns(clock_now_ns(), START_MS);
	repl_exchange(t);
	if (t->pump.why != PUMP_DONE)
		code = not_started(t, err);
	repl_talk_free(t);
	return code;
}

int repl_start(sb_session *s, const sb_call *call, sb_error *err)
{
	begin(s->repl);
	int code = spawn(s, call, err);

	if (code >= 0)
		code = greet(s, call, err);
	if (code < 0)
		repl_end(s);
	return code;
}

int repl_branch(sb_session *s, sb_session *of, const sb_call *call, sb_error *err)
{
	repl *r = s->repl;

	begin(r);
	pthread_mutex_lock(&of->lock);
	int code = turn_take(of, call, err);

	if (code >= 0) {
		pthread_mutex_unlock(&of->lock);
		code = session_table(of)->fork(of->box, of->repl->guest, &s->e.box, call, &s->box, &r->guest, &r->io,
					       err);
		pthread_mutex_lock(&of->lock);
		turn_give(of);
	}
	pthread_mutex_unlock(&of->lock);
	if (code >= 0)
		code = greet(s, call, err);
	if (code < 0)
		repl_end(s);
	return code;
}

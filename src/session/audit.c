/* SPDX-License-Identifier: MIT */
/*
 * audit.c - what was asked, decided, started and ended, for the callback and as JSON lines.
 *
 * Nothing is built where nobody listens.  A line stays below PIPE_BUF, so that it enters a pipe
 * whole, and is dropped where the reader is behind: the log never holds up a run.
 */
#include "session.h"

#include <errno.h>
#include <poll.h>

enum { MAX_TEXT = 240, MAX_LINE = 4096 };

static void add_text(json *j, const char *name, const char *text)
{
	size_t len = text ? strlen(text) : 0;

	json_name(j, name);
	json_bytes(j, text ? text : "", len < MAX_TEXT ? len : MAX_TEXT);
}

static void build(buf *out, const sb_audit *a)
{
	json j;

	json_init(&j, out);
	json_open(&j, '{');
	json_member_uint(&j, "schema", 1);
	json_member_int(&j, "time_unix_ns", a->time_unix_ns);
	add_text(&j, "what", sb_audit_name((int)a->what));
	add_text(&j, "action", sb_action_name((int)a->action));
	add_text(&j, "session", a->session);
	add_text(&j, "process", a->process);
	add_text(&j, "subject", a->subject);
	add_text(&j, "rule", a->rule);
	add_text(&j, "text", a->text);
	json_member_text(&j, "wall", a->wall < SB_WALL_COUNT ? sb_wall_name((int)a->wall) : NULL);
	json_member_text(&j, "code", a->code ? sb_code_name(a->code) : NULL);
	json_close(&j, '}');
	buf_add_char(out, '\n');
}

static bool write_line(int fd, const buf *line)
{
	struct pollfd ready = { .fd = fd, .events = POLLOUT };

	if (poll(&ready, 1, 0) <= 0 || !(ready.revents & POLLOUT))
		return false;
	return feed_write(fd, line->data, line->len) == (ssize_t)line->len;
}

int audit_write(const sb_sandbox *sandbox, const audit_note *note, sb_error *err)
{
	bool kept = true;
	buf line;

	if (!sandbox->audit && sandbox->audit_fd < 0)
		return 0;
	sb_audit a = { .size = sizeof a, .time_unix_ns = clock_unix_ns(),
		       .session = note->session ? note->session : "",
		       .process = note->process ? note->process : "",
		       .subject = note->subject ? note->subject : "",
		       .rule = note->rule ? note->rule : "", .text = note->text ? note->text : "",
		       .what = note->what, .action = note->action, .wall = note->wall,
		       .code = note->code };

	buf_init(&line, MAX_LINE);
	build(&line, &a);
	if (line.failed) {
		kept = false;
	} else {
		if (sandbox->audit_fd >= 0)
			kept = write_line(sandbox->audit_fd, &line);
		line.data[line.len - 1] = 0; /* the callback's has no end of line */
		a.json = line.data;
		if (sandbox->audit && sandbox->audit(sandbox->audit_user, &a) != 0)
			kept = false;
	}
	buf_release(&line);
	if (!kept)
		sandbox_log(sandbox, SB_LOG_WARNING, "audit", "the record of \"%s\" was not kept",
			    sb_audit_name((int)note->what));
	if (kept || !(sandbox->flags & SB_SANDBOX_AUDIT_REQUIRED))
		return 0;
	return error_set(err, SB_ERR_POLICY_DENIED, "audit",
			 "the audit did not keep the record of \"%s\", and nothing runs without one",
			 sb_audit_name((int)note->what));
}

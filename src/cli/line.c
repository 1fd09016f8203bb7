/* SPDX-License-Identifier: MIT */
/*
 * line.c - lines that somebody types or a pipe brings.
 *
 * At a terminal linenoise edits them and knows the ones before; it has the terminal only while it reads
 * one, so that an evaluation finds it as the caller left it.  Built without it, or at a terminal that
 * cannot move its cursor, the kernel's own editing serves.
 */
#include "cli.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#ifdef CLI_LINENOISE
#include <linenoise.h>
#endif

enum { HISTORY = 1000 };

#ifdef CLI_LINENOISE
/* ---- a terminal in the editor's hands --------------------------------------------------------- */

static struct termios before;          /* how we found it */
static volatile sig_atomic_t is_lent;  /* and it is to be set back */

/* The end of this very process: the terminal as before, and then the signal's own way. */
static void on_end(int number)
{
	if (is_lent)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
	raise(number);
}
#endif

void line_init(cli_lines *in, bool terminal)
{
	const char *term = getenv("TERM");

	*in = (cli_lines){ .terminal = terminal };
#ifdef CLI_LINENOISE
	struct winsize size = { 0 };

	/* of one that does not know its width it would ask, and take what is typed for the answer */
	in->edit = terminal && term != NULL && strcmp(term, "dumb") != 0 &&
		   ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
	if (!in->edit)
		return;
	linenoiseHistorySetMaxLen(HISTORY);
	terminal_catch_ends(on_end);
#else
	(void)term;
#endif
}

void line_release(cli_lines *in)
{
	free(in->buffer);
	in->buffer = NULL;
#ifdef CLI_LINENOISE
	if (in->edit)
		linenoiseHistoryFree();
#endif
}

void line_remember(cli_lines *in, const char *line)
{
#ifdef CLI_LINENOISE
	if (in->edit && *line != '\0')
		linenoiseHistoryAdd(line);
#else
	(void)in;
	(void)line;
#endif
}

/* ---- without an editor ---------------------------------------------------------------------- */

/* LINE_READ: there is something; what waits for `also` as well is told by it. */
static int wait_input(int also)
{
	struct pollfd fds[2] = { { .fd = STDIN_FILENO, .events = POLLIN },
				 { .fd = also, .events = POLLIN } };

	while (poll(fds, 2, -1) < 0)
		if (errno != EINTR)
			return LINE_END;
	return fds[1].revents != 0 ? LINE_BROKEN : LINE_READ;
}

static int refill(cli_lines *in, int also)
{
	if (in->buffer == NULL)
		in->buffer = malloc(LINE_BUFFER);
	if (in->buffer == NULL)
		return LINE_END;
	int state = wait_input(also);

	if (state != LINE_READ)
		return state;
	ssize_t n = read(STDIN_FILENO, in->buffer, LINE_BUFFER);

	if (n < 0 && errno == EINTR)
		return LINE_READ;
	if (n <= 0)
		return LINE_END;
	in->at = 0;
	in->len = (size_t)n;
	return LINE_READ;
}

int line_raw(cli_lines *in, cli_text *line, int also)
{
	for (;;) {
		const char *from = in->buffer + in->at;
		size_t left = in->len - in->at;
		const char *end = left > 0 ? memchr(from, '\n', left) : NULL;
		size_t n = end != NULL ? (size_t)(end - from) : left;

		text_add_len(line, left > 0 ? from : "", n);
		in->at += n + (end != NULL);
		if (line->failed || line->len > SOURCE_MAX_BYTES)
			return LINE_LONG;
		if (end != NULL)
			return LINE_READ;
		int state = refill(in, also);

		if (state == LINE_END && line->len > 0)
			return LINE_READ; /* the last, without its end */
		if (state != LINE_READ)
			return state;
	}
}

/* ---- a line ----------------------------------------------------------------------------------- */

#ifdef CLI_LINENOISE
static int edited(const char *prompt, cli_text *line)
{
	is_lent = tcgetattr(STDIN_FILENO, &before) == 0;
	errno = 0;
	char *text = linenoise(prompt);
	int why = errno;

	is_lent = 0;

	if (text == NULL)
		return why == EAGAIN ? LINE_BROKEN : LINE_END;
	text_add(line, text);
	free(text);
	return line->failed ? LINE_LONG : LINE_READ;
}
#endif

int line_next(cli_lines *in, const char *prompt, cli_text *line)
{
	line->len = 0;
	if (line->data != NULL)
		line->data[0] = '\0';
#ifdef CLI_LINENOISE
	if (in->edit)
		return edited(prompt, line);
#endif
	if (in->terminal)
		(void)output_write(STDOUT_FILENO, prompt, strlen(prompt));
	return line_raw(in, line, -1);
}

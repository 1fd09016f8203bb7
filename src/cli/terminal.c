/* SPDX-License-Identifier: MIT */
/*
 * terminal.c - `shell` and `run --tty`: a terminal inside, and ours passed on to it.
 *
 * The guest's terminal is one of the box.  Ours is set to raw, so that every key is a byte for it
 * (^C and ^Z, too, which mean there what they mean), and bytes come back; nothing else crosses.  What
 * was set is set back on every way out: at the end, when a signal ends us, and while we are stopped.
 * A slow terminal holds the guest up, as it would without us.
 */
#include "cli.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { PIECE = 4096, INPUT_WAIT_MS = 50, END_OF_FILE = 4, BELL = 7 };

typedef struct terminal {
	const cli_options *options;
	sb_sandbox *sandbox;
	sb_session *session;
	sb_process *process;
	cli_stream out;
	uint64_t cursor, room;        /* room: for output, where it stops at a cap */
	bool input_over, ended;
	char input[PIECE];
	size_t input_at, input_len;   /* not yet taken by the guest */
} terminal;

/* ---- Our own terminal ---------------------------------------------------------------------- */

static struct termios before;         /* how we found it */
static volatile sig_atomic_t is_raw;  /* it is to be set back */
static volatile sig_atomic_t ending, resized, stopped;

static void set_back(void)
{
	if (is_raw)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
	is_raw = 0;
}

/*
 * In the background this stops us, as it does everybody who sets a terminal: looked at only once it is ours,
 * for until then it is as the shell wants it while a line is typed.
 */
static void await_front(void)
{
	while (tcdrain(STDIN_FILENO) < 0 && errno == EINTR && ending == 0)
		;
}

static void set_raw(void)
{
	struct termios raw;

	if (is_raw)
		return;
	await_front();
	if (tcgetattr(STDIN_FILENO, &before) < 0)
		return;
	raw = before;
	cfmakeraw(&raw);
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0)
		is_raw = 1;
}

/* Of whichever standard descriptor is a terminal; 0 x 0 if none is. */
static struct winsize own_size(void)
{
	struct winsize size = { 0 };

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row != 0 && size.ws_col != 0)
			return size;
	return (struct winsize){ 0 };
}

/* ---- Signals --------------------------------------------------------------------------------- */

static int wake[2] = { -1, -1 };

static void on_event(int number)
{
	int saved = errno;

	if (number == SIGWINCH || number == SIGCONT)
		resized = 1;
	else if (number == SIGTSTP)
		stopped = 1;
	else
		ending = number;
	if (write(wake[1], "", 1) < 0)
		errno = saved; /* full: it is readable already */
	errno = saved;
}

/* The end of this very process: as before, and then the signal's own way. */
static void on_end(int number)
{
	set_back();
	raise(number);
}

/* By default, and not by force. */
static bool ends_us(int number)
{
	static const int others[] = { SIGKILL, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGCHLD, SIGURG, SIGWINCH };

	for (size_t i = 0; i < CLI_LEN(others); i++)
		if (number == others[i])
			return false;
	return true;
}

void terminal_catch_ends(void (*handler)(int))
{
	const struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESETHAND | SA_NODEFER };
	struct sigaction old;

	for (int number = 1; number <= SIGRTMAX; number++)
		if (ends_us(number) && sigaction(number, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
			sigaction(number, &action, NULL);
}

static int catch_events(void)
{
	static const int events[] = { SIGWINCH, SIGCONT, SIGTSTP, SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	const struct sigaction event = { .sa_handler = on_event };
	struct sigaction old;

	if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	for (size_t i = 0; i < CLI_LEN(events); i++)
		if (sigaction(events[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(events[i], &event, NULL);
	terminal_catch_ends(on_end);
	return 0;
}

static void pass_size(const terminal *t)
{
	struct winsize size = own_size();

	if (t->options->size == NULL && size.ws_row != 0)
		(void)sb_process_resize(t->process, size.ws_row, size.ws_col, NULL, NULL);
}

/* Somebody stops us: the terminal is the shell's again until we go on. */
static void stop(void)
{
	bool was_raw = is_raw;

	stopped = 0;
	set_back();
	kill(getpid(), SIGSTOP);
	if (was_raw)
		set_raw();
	resized = 1;
}

static void serve_signals(const terminal *t)
{
	char bytes[64];

	while (read(wake[0], bytes, sizeof bytes) > 0)
		;
	if (stopped)
		stop();
	if (resized) {
		resized = 0;
		if (is_raw) { /* a stop that nobody asks about leaves the terminal in others' hands */
			is_raw = 0;
			tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
			set_raw();
		}
		pass_size(t);
	}
}

/* ---- Bytes ------------------------------------------------------------------------------------- */

/* All that is there; true once it is at its end. */
static int show_output(terminal *t, sb_error *err)
{
	const sb_wait at_once = { .size = sizeof at_once, .timeout_ms = SB_NO_WAIT };
	sb_chunk chunk = { .size = sizeof chunk };
	char piece[16384];

	for (;;) {
		int rc = sb_output_read(sb_process_output(t->process), t->cursor, piece, sizeof piece,
					&at_once, &chunk, err);
		if (rc == SB_ERR_AGAIN)
			return 0;
		if (rc < 0)
			return rc;
		t->cursor = chunk.next;
		size_t len = chunk.len < t->room ? chunk.len : (size_t)t->room;
		if (len > 0 && stream_write(&t->out, piece, len, SB_UNLIMITED, &ending) != STREAM_OK)
			ending = ending != 0 ? ending : SIGPIPE;
		t->room -= t->room == SB_UNLIMITED ? 0 : len;
		if (chunk.eof || ending != 0) {
			t->ended = chunk.eof != 0;
			return 0;
		}
	}
}

static void read_input(terminal *t)
{
	ssize_t n = read(STDIN_FILENO, t->input, sizeof t->input);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		/* nothing more will come: as ^D says it to whoever reads lines */
		t->input_over = true;
		t->input[0] = END_OF_FILE;
		n = 1;
	}
	t->input_at = 0;
	t->input_len = (size_t)n;
}

static void give_input(terminal *t)
{
	const sb_wait moment = { .size = sizeof moment, .timeout_ms = SB_NO_WAIT };
	size_t written = 0;
	int rc = sb_process_write(t->process, t->input + t->input_at, t->input_len - t->input_at, &moment,
				  &written, NULL);

	t->input_at += written;
	if (rc == SB_ERR_INVALID) { /* a line that no terminal takes: what is too much of it is told */
		t->input_at++;
		stream_write(&t->out, (const char[]){ BELL }, 1, SB_UNLIMITED, &ending);
	} else if (rc < 0 && rc != SB_ERR_AGAIN) {
		t->input_at = t->input_len;
		t->input_over = true;
	}
}

static int loop(terminal *t, sb_error *err)
{
	int output = sb_output_fd(sb_process_output(t->process));

	while (!t->ended && ending == 0) {
		bool waiting = t->input_at < t->input_len;
		struct pollfd fds[3] = {
			{ .fd = t->input_over || waiting ? -1 : STDIN_FILENO, .events = POLLIN },
			{ .fd = output, .events = POLLIN },
			{ .fd = wake[0], .events = POLLIN },
		};
		int rc = 0;

		if (poll(fds, 3, waiting ? INPUT_WAIT_MS : -1) < 0 && errno != EINTR)
			return error_fill(err, SB_ERR_IO, "terminal", "cannot wait for the terminal");
		if (fds[2].revents != 0 || resized || stopped)
			serve_signals(t);
		if (fds[1].revents != 0)
			rc = show_output(t, err);
		if (rc < 0)
			return rc;
		if (fds[0].revents != 0)
			read_input(t);
		if (t->input_at < t->input_len)
			give_input(t);
	}
	return 0;
}

/* ---- The command ---------------------------------------------------------------------------------- */

static int parse_size(const cli_options *options, sb_command *command, sb_error *err)
{
	struct winsize size = own_size();
	unsigned long cols = size.ws_col, rows = size.ws_row;
	char *end = NULL;

	if (options->size != NULL) {
		cols = strtoul(options->size, &end, 10);
		rows = end != options->size && (*end == 'x' || *end == 'X') ? strtoul(end + 1, &end, 10) : 0;
		if (cols == 0 || rows == 0 || cols > UINT16_MAX || rows > UINT16_MAX || *end != '\0' ||
		    options->size[0] < '0' || options->size[0] > '9')
			return error_fill(err, SB_ERR_INVALID, "size",
					  "--size \"%.60s\" is not COLUMNSxROWS: write 80x24", options->size);
	}
	command->cols = (uint16_t)cols;
	command->rows = (uint16_t)rows;
	return 0;
}

/* What our terminal is called, so that programs know what it can show; whoever names another wins. */
static int add_term(sb_command *command, char text[128], const char **list)
{
	const char *term = getenv("TERM");
	size_t len = term != NULL ? strlen(term) : 0;

	if (len == 0 || len > 100)
		return 0;
	memcpy(text, "TERM=", 5);
	memcpy(text + 5, term, len + 1);
	list[0] = text;
	list[1] = NULL;
	command->env = list;
	return 0;
}

static bool names_term(const cli_options *options)
{
	for (size_t i = 0; i < options->env.len; i++)
		if (strncmp(options->env.at[i], "TERM", 4) == 0 &&
		    (options->env.at[i][4] == '=' || options->env.at[i][4] == '\0'))
			return true;
	return false;
}

static int start(terminal *t, const cli_request *request, sb_error *err)
{
	sb_command command = request->command;
	char term[128];
	const char *env[2];
	int rc;

	command.flags |= SB_COMMAND_TTY | SB_COMMAND_HOLD;
	command.input_kind = SB_INPUT_OPEN;
	if ((rc = parse_size(t->options, &command, err)) < 0)
		return rc;
	if (!names_term(t->options))
		add_term(&command, term, env);
	if ((rc = cli_sandbox(t->options, &t->sandbox, err)) < 0 ||
	    (rc = sb_session_open(t->sandbox, &request->spec, NULL, NULL, &t->session, err)) < 0)
		return rc;
	return sb_session_spawn(t->session, &command, NULL, &t->process, err);
}

static int told(const terminal *t, const sb_exit *end)
{
	const sb_error why = { .code = end->error };
	sb_limits limits = { .size = sizeof limits };
	cli_text line = { 0 };

	sb_plan_limits(sb_session_plan(t->session), &limits);
	if (end->error != 0)
		ending_describe(&why, &limits, &line);
	if (line.len > 0 && !t->options->quiet)
		output_line("%s", line.data);
	text_release(&line);
	return ending_exit(end);
}

/* What came in one piece with the byte that was too much is not shown. */
static uint64_t output_room(const terminal *t)
{
	sb_limits limits = { .size = sizeof limits };

	if (t->options->out_mode != SB_OUT_STOP)
		return SB_UNLIMITED;
	sb_plan_limits(sb_session_plan(t->session), &limits);
	return limits.out_total_bytes < limits.out_stream_bytes ? limits.out_total_bytes : limits.out_stream_bytes;
}

static int talk(terminal *t)
{
	sb_exit end = { .size = sizeof end };
	sb_error err;
	int rc;

	t->room = output_room(t);
	set_raw();
	rc = loop(t, &err);
	if (rc >= 0 && t->ended)
		rc = sb_process_wait(t->process, NULL, &end, &err);
	set_back();
	if (rc < 0)
		return cli_fail(&err, false, t->options->quiet);
	return t->ended ? told(t, &end) : 128 + ending;
}

int terminal_run(const cli_options *options, cli_request *request)
{
	terminal t = { .options = options };
	sb_error err;
	int code;

	if (heap_share != NULL)
		heap_share();
	stream_init(&t.out, STDOUT_FILENO);
	if (catch_events() < 0) {
		output_line("cannot make a pipe");
		return CLI_EXIT_OURS;
	}
	code = start(&t, request, &err) < 0 ? cli_fail(&err, false, options->quiet) : talk(&t);
	sb_process_free(t.process);
	sb_session_free(t.session);
	sb_sandbox_free(t.sandbox);
	return code;
}

/* ---- `shell` -------------------------------------------------------------------------------------------- */

/* Yours, if it is one of the system's: what lies elsewhere is not there inside. */
static char *own_shell(void)
{
	static char bash[] = "/bin/bash", sh[] = "/bin/sh";
	char *shell = getenv("SHELL");

	if (shell != NULL && (strncmp(shell, "/bin/", 5) == 0 || strncmp(shell, "/usr/bin/", 9) == 0) &&
	    access(shell, X_OK) == 0)
		return shell;
	return access(bash, X_OK) == 0 ? bash : sh;
}

static int shell_refused(const cli_options *options, sb_error *err)
{
	if (options->rest_count > 0 && !options->dashes)
		return error_fill(err, SB_ERR_INVALID, "command",
				  "\"%.160s\" is no option: a command stands behind --, as in `sandbox shell -- "
				  "%.160s`", options->rest[0], options->rest[0]);
	if (isatty(STDIN_FILENO) == 0)
		return error_fill(err, SB_ERR_INVALID, "terminal",
				  "standard input is no terminal: for a script use `sandbox run -- sh FILE`");
	return 0;
}

int shell_main(char **words)
{
	cli_options options;
	cli_request request = { 0 };
	char *command[2] = { NULL, NULL };
	sb_error err;
	int code;

	if (options_parse(CLI_SHELL, words, &options, &err) < 0) {
		code = cli_fail(&err, false, false);
	} else if (options.help) {
		code = help_show(CLI_SHELL);
	} else if (shell_refused(&options, &err) < 0) {
		code = cli_fail(&err, false, options.quiet);
	} else {
		if (options.rest_count == 0) {
			command[0] = own_shell();
			options.rest = command;
			options.rest_count = 1;
		}
		options.dashes = true;
		code = request_build(&request, &options, true, &err) < 0
			       ? cli_fail(&err, false, options.quiet)
			       : terminal_run(&options, &request);
	}
	request_release(&request);
	options_release(&options);
	return code;
}

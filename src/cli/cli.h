/* SPDX-License-Identifier: MIT */
/*
 * cli.h - the `sandbox` command: words of a command line in, records of the public API out.
 *
 *   main.c      standard descriptors, the commands
 *   units.c     sizes, durations, counts: strict text to numbers, and back for people
 *   options.c   one table: parsing, usage errors, help
 *   request.c   options -> sb_spec and sb_command
 *   source.c    where code comes from, and in which language it is
 *   repl.c      `repl`: lines in, evaluations out;  line.c  lines, edited at a terminal
 *   run.c       `run`: start, stop on signals, exit code, the one line on stderr
 *   terminal.c  `shell`, `run --tty`: a terminal inside, ours passed on to it
 *   ending.c    how a guest ended, as exit code and line
 *   stream.c    the guest's output to our own descriptors, without ever outliving a deadline
 *   outdir.c    --out: result files, never through a link
 *   packs.c     `packs`: the modules of the languages on board
 *   explain.c   `explain`;  doctor.c  `doctor`;  help.c  `help`, `version`
 *   completion.c  what shells need to know of commands and options
 *   output.c    text, error lines and the JSON of an error
 *   heap.c      memory of a program that runs once; malloc.c puts it in place of the C library's
 *
 * Uses <sandbox/sandbox.h> alone, so that the public API is in daily use.
 */
#ifndef SB_CLI_H
#define SB_CLI_H

#include <sandbox/sandbox.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* src/launch/self.c: the other role of this one file, the supervisor of a sandbox.  The exit code of that;
 * -1: it is the command that was started.  argv is looked at later, too. */
int launch_self(char **argv);

#define CLI_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define CLI_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* What `sandbox` itself exits with; every other number is the guest's own, or 128 + a signal. */
enum { CLI_EXIT_TIME = 124, CLI_EXIT_OURS = 125, CLI_EXIT_NOT_EXECUTABLE = 126,
       CLI_EXIT_NOT_FOUND = 127, CLI_EXIT_MEMORY = 137, CLI_EXIT_PIPE = 141, CLI_EXIT_CPU = 152,
       CLI_EXIT_OUTPUT = 153 };

/* ---- units.c ------------------------------------------------------------------------------ */
enum { UNITS_OK = 0, UNITS_EMPTY, UNITS_NEGATIVE, UNITS_SYNTAX, UNITS_NO_UNIT, UNITS_UNIT,
       UNITS_RANGE, UNITS_ZERO };
/* "64M" "64MB" "64MiB": powers of 1024, any case; a bare whole number is bytes. */
int units_size(const char *text, uint64_t *bytes);
/* "300ms" "1.5s" "2m" "1h" "1m30s": a unit is needed; rounded up to whole milliseconds. */
int units_duration(const char *text, uint64_t *ms);
int units_count(const char *text, uint64_t *count);
const char *units_problem(int code); /* "has no unit" */
/* For people: "64 MiB", "1.5 s"; SB_UNLIMITED "unlimited". */
enum { UNITS_TEXT = 64 };
/* strerror, in lower case as our messages are. */
const char *units_errno_text(int os_errno, char text[UNITS_TEXT]);
const char *units_size_text(uint64_t bytes, char text[UNITS_TEXT]);
const char *units_duration_text(uint64_t ms, char text[UNITS_TEXT]);

/* ---- output.c ----------------------------------------------------------------------------- */
/* Growing text; memory that runs out makes it `failed`, and every later add does nothing. */
typedef struct cli_text {
	char *data; /* NULL while empty */
	size_t len, cap;
	bool failed;
} cli_text;
void text_add(cli_text *text, const char *words);
void text_add_len(cli_text *text, const char *words, size_t len);
void text_add_fmt(cli_text *text, const char *fmt, ...) CLI_PRINTF(2, 3);
/* In double quotes, for JSON: control characters escaped, what is not UTF-8 as U+FFFD. */
void text_add_json(cli_text *text, const char *words);
/* Of what others chose: what is not UTF-8, and what a terminal would obey, becomes '?'. */
void text_add_plain(cli_text *text, const char *words);
void text_release(cli_text *text);
/* Writes all of it; 0, or -errno (EPIPE once the reader has gone). */
int output_write(int fd, const void *data, size_t len);
/* Writes and releases it; the exit code `ok`, or CLI_EXIT_PIPE / _OURS where that failed. */
int output_text(int fd, cli_text *text, int ok);
/* "sandbox: ..." as one plain line on stderr. */
void output_line(const char *fmt, ...) CLI_PRINTF(1, 2);
/* {"schema":1,"outcome":null,"error":{...}} */
void text_add_error_json(cli_text *text, const sb_error *err);
/* Colours: a terminal, and no NO_COLOR. */
bool output_colour(int fd);
/* Fills *err and returns code. */
int error_fill(sb_error *err, int code, const char *where, const char *fmt, ...) CLI_PRINTF(4, 5);

/* ---- options.c ---------------------------------------------------------------------------- */
/* main.c: what can stand behind `sandbox`. */
typedef struct cli_command {
	const char *name;
	int (*main)(char **words); /* of the words behind it */
	int options;               /* CLI_*: those of option_table; 0 = none */
	const char *help;          /* a few words without quotes */
} cli_command;
extern const cli_command command_table[];
extern const size_t command_count;

enum { CLI_RUN = 1, CLI_EXPLAIN = 2, CLI_DOCTOR = 4, CLI_SHELL = 8, CLI_REPL = 16 }; /* commands, as bits */

typedef struct cli_list {
	const char **at; /* NULL-ended once not empty */
	size_t len, cap;
} cli_list;

typedef struct cli_rule {
	const char *path;
	uint32_t access; /* SB_FILE_* */
} cli_rule;

/* What the words of a command line said, and nothing more: unset is 0, NULL or false. */
typedef struct cli_options {
	uint64_t timeout_ms, grace_ms, cpu_ms, memory_bytes, procs, disk_bytes, disk_files;
	uint64_t output_bytes;
	uint64_t require, allow_weaker;             /* SB_WALL_BITs */
	uint32_t out_mode, out_keep, net, workspace_mode; /* SB_OUT_*, SB_KEEP_*, SB_NET_*, ... */
	const char *lang, *code, *workspace, *workdir, *out, *cgroup, *path;
	char *backends_text;                        /* what `backends` points into */
	cli_list backends, env, files;
	cli_rule *rules;
	size_t rule_count;
	const char *size;                           /* COLUMNSxROWS */
	bool json, quiet, debug, seccomp, help, tty;
	bool dashes;                                /* "--" stood before `rest` */
	char **rest;                                /* from the first word that is no option */
	size_t rest_count;
} cli_options;

/* `words`: NULL-ended, behind the command's name.  INVALID: one line that names the option, the
 * value and an example; *options is then still to be released. */
int options_parse(int command, char **words, cli_options *options, sb_error *err);
void options_release(cli_options *options);
/* True if "--json" stands among the options: for errors met before it was read. */
bool options_want_json(char **words);
/* The lines of `sandbox help run` and the like. */
void options_help(int command, cli_text *text);
/* The one of `count` names that `word` begins, or else the nearest to it, or NULL: "did you mean". */
const char *options_nearest(const char *word, const char *const *names, size_t count);

/* ---- source.c ----------------------------------------------------------------------------- */
enum { SOURCE_MAX_BYTES = 64 << 20 };
typedef struct cli_source {
	char *code;
	size_t code_len;
	const char *language; /* as named, or of the pack that was found */
} cli_source;
/* Reads a file ("-" = standard input) to its end. */
int source_read(const char *path, size_t max, char **data, size_t *len, sb_error *err);
/* By file name, then by the "#!" line; NULL = not known. */
const char *source_language(const char *path, const char *code, size_t len);
/* Names of the packs, for messages: "bash, js, python". */
void source_languages(cli_text *text);

/* ---- request.c ---------------------------------------------------------------------------- */
typedef struct cli_request {
	sb_spec spec;
	sb_command command;
	sb_limits limits;
	sb_env env;
	sb_network network;
	sb_linux_options linux_options;
	sb_wasm_options wasm_options;
	cli_source source;
	char *workspace;              /* made absolute */
	char *module;                 /* of a command, its file's whole path */
	char **inject;                /* "NAME=value" */
	sb_file *files;
	const sb_file **file_list;
	sb_file_rule *rules;
	const sb_file_rule **rule_list;
	size_t inject_count, file_count;
} cli_request;
/* `options` must outlive it.  Without `with_command`, command.size stays 0.  *request is to be
 * released also after an error. */
int request_build(cli_request *request, const cli_options *options, bool with_command,
		  sb_error *err);
void request_release(cli_request *request);

/* ---- stream.c ----------------------------------------------------------------------------- */
enum { STREAM_OK = 0, STREAM_GONE, STREAM_LATE, STREAM_STOPPED, STREAM_ERROR };
typedef struct cli_stream {
	int fd;
	int state;        /* sticky STREAM_*: once it is not OK, nothing more is written */
	int os_errno;     /* of STREAM_ERROR */
	bool pipe, file;
	bool open_line;   /* what was written last is no end of a line */
	cli_text late;    /* what came after the deadline, for stream_flush() */
	uint64_t lost;    /* bytes that nobody took */
} cli_stream;
void stream_init(cli_stream *stream, int fd);
/* Writes what the reader takes; waits for it until deadline_ns (CLOCK_MONOTONIC, SB_UNLIMITED =
 * none) or until *stop is not 0.  LATE keeps the rest; every other end counts it as lost. */
int stream_write(cli_stream *stream, const void *data, size_t len, uint64_t deadline_ns,
		 const volatile sig_atomic_t *stop);
/* One more try for what is kept, of at most patience_ms. */
int stream_flush(cli_stream *stream, uint64_t patience_ms, const volatile sig_atomic_t *stop);
uint64_t stream_now_ns(void);

/* ---- ending.c ----------------------------------------------------------------------------- */
int ending_exit(const sb_exit *end);
/* What was stopped, why, and which option changes it; nothing if nothing was. */
void ending_describe(const sb_error *failure, const sb_limits *limits, cli_text *line);

/* ---- terminal.c --------------------------------------------------------------------------- */
/* The command of the request on a terminal of its own, ours passed on to it; the exit code. */
int terminal_run(const cli_options *options, cli_request *request);
/* Before a signal that would end us does so, `handler`, once: of those that may be caught and nobody handles. */
void terminal_catch_ends(void (*handler)(int));
/* heap.c: the command gets a second thread.  Not there with the C library's heap, which needs no word. */
void heap_share(void) __attribute__((weak));

/* ---- line.c ------------------------------------------------------------------------------- */
enum { LINE_BUFFER = 65536 };
enum { LINE_READ = 0, LINE_END,
       LINE_BROKEN, /* Ctrl-C, or what also was waited for */
       LINE_LONG };
typedef struct cli_lines {
	bool terminal, edit;
	bool asks;        /* code may be given lines as well */
	char *buffer;     /* of what is not edited */
	size_t at, len;
} cli_lines;
void line_init(cli_lines *in, bool terminal);
void line_release(cli_lines *in);
/* The next line, without its end.  LINE_*; prompt: at a terminal only. */
int line_next(cli_lines *in, const char *prompt, cli_text *line);
/* Not edited, behind what `line` has already; BROKEN once `also` (-1 = none) is readable. */
int line_raw(cli_lines *in, cli_text *line, int also);
void line_remember(cli_lines *in, const char *line);

/* ---- outdir.c ----------------------------------------------------------------------------- */
typedef struct cli_outdir {
	int fd;           /* -1 = none */
	bool made;        /* by us */
	const char *path;
} cli_outdir;
/* Opens or makes the folder before anything runs, so that the guest cannot put a link there. */
int outdir_open(cli_outdir *dir, const char *path, sb_error *err);
int outdir_write(const cli_outdir *dir, const sb_tree *files, sb_error *err);
/* `undo`: takes away what outdir_open() made, if it is empty. */
void outdir_close(cli_outdir *dir, bool undo);

/* ---- commands: argv behind their name, the exit code back ---------------------------------- */
int run_main(char **words);
int shell_main(char **words);
int explain_main(char **words);
int doctor_main(char **words);
int packs_main(char **words);
int repl_main(char **words);
int completion_main(char **words);
int version_main(char **words);
int help_main(char **words);
/* Help of one command, on stdout (asked for). */
int help_show(int command);
/* An error of ours: the line on stderr (not if quiet, or in JSON), the object on stdout if json;
 * returns the exit code that stands for it. */
int cli_fail(const sb_error *err, bool json, bool quiet);
int cli_error_exit(const sb_error *err); /* that exit code alone */
/* A sandbox object as the options want it; --debug sets its log. */
int cli_sandbox(const cli_options *options, sb_sandbox **sandbox, sb_error *err);
/* --debug: a step and the time since the start, on stderr. */
void cli_debug(const cli_options *options, const char *fmt, ...) CLI_PRINTF(2, 3);

#endif /* SB_CLI_H */

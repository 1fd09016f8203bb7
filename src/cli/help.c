/* SPDX-License-Identifier: MIT */
/* help.c - `help` and `version`. */
#include "cli.h"
#include <string.h>
#include <unistd.h>

static const char overview[] =
	"sandbox: run code that nobody has read, behind walls that can be inspected\n"
	"\n"
	"  sandbox run [options] FILE [args]                 code, by its extension or #! line\n"
	"  sandbox run [options] --lang python -e CODE       code from the command line\n"
	"  sandbox run [options] --lang python -             code from standard input\n"
	"  sandbox run [options] -- COMMAND [args]           a command in this folder\n"
	"  sandbox shell [options]                           a terminal behind walls\n"
	"  sandbox repl [options] --lang python              a language's console, line by line\n"
	"  sandbox explain [options] ...                     what would hold, without running it\n"
	"  sandbox explain PATH                              what becomes of a path inside\n"
	"  sandbox doctor [--json]                           what works on this machine\n"
	"  sandbox completion bash|zsh|fish                  completion for a shell\n"
	"  sandbox packs list|verify|path|build              the languages on board\n"
	"  sandbox version\n"
	"  sandbox help [command]\n"
	"\n"
	"Code sees /in, /work and /out and nothing of yours; a command sees this folder, writable, and\n"
	"a read-only system. Neither has a network unless you say so.\n";

static const char exit_codes[] =
	"\n"
	"Exit code: the guest's own; 128 + n killed by signal n; 124 time; 137 memory; 152 CPU time;\n"
	"153 output, disk or processes; 125 our own failure; 126 not executable; 127 not found.\n"
	"Scripts that must tell these from the guest's own codes use --json.\n";

static const char sizes[] =
	"\n"
	"SIZE: 64M = 64MB = 64MiB (powers of 1024), 2G, or bytes. DURATION: 300ms, 1.5s, 2m, 1h30m.\n"
	"Either, and NUMBER, may be unlimited.\n"
	"WALL: ";

static void add_walls(cli_text *text)
{
	for (int wall = 0; wall < SB_WALL_COUNT; wall++)
		text_add_fmt(text, "%s%s%s", wall == 0 ? "" : wall == 6 ? ",\n" : ", ", sb_wall_name(wall),
			     wall == SB_WALL_COUNT - 1 ? ".\n" : "");
}

static void help_run(cli_text *text)
{
	text_add(text, "usage: sandbox run [options] FILE [args]\n"
		       "       sandbox run [options] --lang LANGUAGE -e CODE [args]\n"
		       "       sandbox run [options] --lang LANGUAGE -        (code from standard input)\n"
		       "       sandbox run [options] -- COMMAND [args]\n"
		       "\n"
		       "Options end at the first word that is none. Of one that is given twice, the last\n"
		       "counts. In brackets: what holds without it.\n"
		       "\n");
	options_help(CLI_RUN, text);
	text_add(text, sizes);
	add_walls(text);
	text_add(text, exit_codes);
}

static void help_shell(cli_text *text)
{
	text_add(text, "usage: sandbox shell [options] [-- COMMAND [args]]\n"
		       "\n"
		       "A shell, or COMMAND, on a terminal of its own behind walls, in this folder. Keys and\n"
		       "the size of your terminal are passed on, ^C and ^Z mean inside what they mean, and\n"
		       "your terminal is as it was when it ends.\n"
		       "\n");
	options_help(CLI_SHELL, text);
	text_add(text, sizes);
	add_walls(text);
	text_add(text, exit_codes);
}

static void help_explain(cli_text *text)
{
	text_add(text, "usage: sandbox explain [options] -- COMMAND [args]\n"
		       "       sandbox explain [options] --lang LANGUAGE FILE|-e CODE\n"
		       "       sandbox explain [options] PATH\n"
		       "\n"
		       "Says wall by wall what would hold for `sandbox run` with the same options, by\n"
		       "which mechanism and with what caveat; or what becomes of PATH inside. Starts\n"
		       "nothing. Exit code: 0 if it would run, else 125.\n"
		       "\n");
	options_help(CLI_EXPLAIN, text);
}

static void help_doctor(cli_text *text)
{
	text_add(text, "usage: sandbox doctor [options]\n"
		       "\n"
		       "Tries the real operations on this machine, as this user, and says what works, by\n"
		       "which mechanism, and the one thing to change where it does not. Exit code: 0 if a\n"
		       "backend that isolates is usable, else 125.\n"
		       "\n");
	options_help(CLI_DOCTOR, text);
}

static void help_repl(cli_text *text)
{
	text_add(text, "usage: sandbox repl [options] --lang LANGUAGE\n"
		       "\n"
		       "A language's own console behind the walls of `sandbox run`: what one line defines, the\n"
		       "next one has; Ctrl-C stops what runs. --timeout and --output hold for each evaluation.\n"
		       "At a terminal lines are edited and a killed session is replaced by a new one; from a\n"
		       "pipe it ends there. Lines of its own: :help, :reset, :limits, :quit. Languages: python,\n"
		       "js, ts, lua, bash.\n"
		       "\n");
	options_help(CLI_REPL, text);
	text_add(text, sizes);
	add_walls(text);
	text_add(text, "\nExit code: 0 at the end of the input or :quit; the interpreter's own, if it ended; else as\n"
		       "that of `sandbox run`.\n");
}

int help_show(int command)
{
	cli_text text = { 0 };

	if (command == CLI_RUN)
		help_run(&text);
	else if (command == CLI_SHELL)
		help_shell(&text);
	else if (command == CLI_EXPLAIN)
		help_explain(&text);
	else if (command == CLI_DOCTOR)
		help_doctor(&text);
	else if (command == CLI_REPL)
		help_repl(&text);
	else {
		text_add(&text, overview);
		text_add(&text, exit_codes);
	}
	return output_text(STDOUT_FILENO, &text, 0);
}

int help_main(char **words)
{
	static const struct { const char *name; int command; } topics[] = {
		{ "run", CLI_RUN }, { "shell", CLI_SHELL }, { "repl", CLI_REPL },
		 { "explain", CLI_EXPLAIN }, { "doctor", CLI_DOCTOR },
		{ "version", 0 },   { "help", 0 },
	};
	sb_error err;

	if (words[0] == NULL || strcmp(words[0], "--help") == 0 || strcmp(words[0], "-h") == 0)
		return help_show(0);
	if (strcmp(words[0], "packs") == 0) {
		char asks[] = "--help";
		return packs_main((char *[]){ asks, NULL });
	}
	for (size_t i = 0; i < CLI_LEN(topics); i++)
		if (strcmp(topics[i].name, words[0]) == 0)
			return help_show(topics[i].command);
	error_fill(&err, SB_ERR_INVALID, "command",
		   "no help on \"%.160s\": there is run, shell, repl, explain, doctor and packs",
		   words[0]);
	return cli_fail(&err, options_want_json(words), false);
}

int version_main(char **words)
{
	cli_text text = { 0 };
	sb_error err;

	if (words[0] != NULL) {
		error_fill(&err, SB_ERR_INVALID, "option", "version takes no \"%.160s\"", words[0]);
		return cli_fail(&err, options_want_json(words), false);
	}
	text_add(&text, "sandbox " SB_VERSION_TEXT "\n");
	return output_text(STDOUT_FILENO, &text, 0);
}

/* SPDX-License-Identifier: MIT */
/* option_table.c - every option: its name, how its value is read, where that goes, its help. */
#include "options.h"
#include <string.h>

#define AT(member) offsetof(cli_options, member)
#define BOTH (CLI_RUN | CLI_EXPLAIN)
#define CODE (CLI_RUN | CLI_EXPLAIN | CLI_REPL)
#define RUNS (CLI_RUN | CLI_EXPLAIN | CLI_SHELL | CLI_REPL)
#define TERMINAL (CLI_RUN | CLI_SHELL)
#define ALL (CLI_RUN | CLI_EXPLAIN | CLI_DOCTOR | CLI_SHELL | CLI_REPL)

static const cli_word out_modes[] = {
	{ "stop", SB_OUT_STOP }, { "truncate", SB_OUT_TRUNCATE }, { NULL, 0 }
};
static const cli_word out_keeps[] = {
	{ "head", SB_KEEP_HEAD }, { "head-tail", SB_KEEP_HEAD_TAIL }, { NULL, 0 }
};
static const cli_word nets[] = {
	{ "none", SB_NET_DENY_ALL }, { "deny_all", SB_NET_DENY_ALL }, { "host", SB_NET_HOST },
	{ NULL, 0 }
};
static const cli_word workspace_modes[] = {
	{ "ro", SB_WORKSPACE_READ }, { "rw", SB_WORKSPACE_WRITE }, { NULL, 0 }
};

static const cli_word backends[] = {
	{ "linux", 0 }, { "wasm", 0 }, { "process", 0 }, { "WasmOnly", 0 }, { "PreferWasm", 0 }, { NULL, 0 },
};

const cli_option option_table[] = {
	{ "lang", 0, OPTION_TEXT, CODE, "LANGUAGE", AT(lang), 0, NULL,
	  "python, js, ts, bash, lua, ruby, perl, wasm; else by file name or \"#!\" line" },
	{ "eval", 'e', OPTION_TEXT, BOTH, "CODE", AT(code), 0, NULL,
	  "the code itself; behind --lang, all that follows it is the guest's" },
	{ "backend", 0, OPTION_BACKENDS, RUNS, "LIST", AT(backends), 0, backends,
	  "only these, most wanted first: linux, wasm, process; WasmOnly, PreferWasm" },
	{ "timeout", 0, OPTION_DURATION, RUNS, "DURATION", AT(timeout_ms), 0, NULL,
	  "wall time until it is stopped (code: 10s; command: none)" },
	{ "grace", 0, OPTION_DURATION, RUNS, "DURATION", AT(grace_ms), 0, NULL,
	  "from TERM to KILL at the timeout (none: KILL at once)" },
	{ "cpu", 0, OPTION_DURATION, RUNS, "DURATION", AT(cpu_ms), 0, NULL,
	  "CPU time of everything it starts (code: 10s)" },
	{ "mem", 0, OPTION_SIZE, RUNS, "SIZE", AT(memory_bytes), 1 << 20, NULL,
	  "memory of everything it starts (code: 128M; command: 2G or half of RAM)" },
	{ "pids", 0, OPTION_COUNT, RUNS, "NUMBER", AT(procs), 0, NULL,
	  "processes and threads (code: 64; command: 512)" },
	{ "disk", 0, OPTION_SIZE, RUNS, "SIZE", AT(disk_bytes), 0, NULL,
	  "all it can write beside a workspace (code: 16M; command: half of --mem)" },
	{ "disk-files", 0, OPTION_COUNT, RUNS, "NUMBER", AT(disk_files), 0, NULL,
	  "files and folders that it can make there (code: 256)" },
	{ "output", 0, OPTION_SIZE, CODE, "SIZE", AT(output_bytes), 0, NULL,
	  "output kept (code: 1M, both streams together; command: 10M each)" },
	{ "output-mode", 0, OPTION_WORD, CODE, "stop|truncate", AT(out_mode), 0, out_modes,
	  "at that cap: stop it, or let it go on (code: stop; command: truncate)" },
	{ "output-keep", 0, OPTION_WORD, BOTH, "head|head-tail", AT(out_keep), 0, out_keeps,
	  "what is kept of too much (code: head; command: head-tail)" },
	{ "env", 0, OPTION_LIST, RUNS, "NAME[=VALUE]", AT(env), 0, NULL,
	  "a variable for the guest; without =VALUE, yours. Repeatable" },
	{ "workspace", 0, OPTION_TEXT, RUNS, "DIR|none", AT(workspace), 0, NULL,
	  "folder seen at its own path (code: none; command: the current one)" },
	{ "workspace-mode", 0, OPTION_WORD, RUNS, "ro|rw", AT(workspace_mode), 0, workspace_modes,
	  "may it write there (code: ro; command: rw)" },
	{ "workdir", 0, OPTION_TEXT, CLI_RUN | CLI_EXPLAIN | CLI_SHELL, "DIR", AT(workdir), 0, NULL,
	  "where it starts, inside" },
	{ "ro", 0, OPTION_RULE, RUNS, "PATH", 0, SB_FILE_READ, NULL,
	  "show a host path, read-only. Repeatable, as the next three" },
	{ "rw", 0, OPTION_RULE, RUNS, "PATH", 0, SB_FILE_WRITE, NULL,
	  "show a host path, writable" },
	{ "hide", 0, OPTION_RULE, RUNS, "PATH", 0, SB_FILE_HIDE, NULL,
	  "a file: no access; a folder: empty" },
	{ "tmpfs", 0, OPTION_RULE, RUNS, "PATH", 0, SB_FILE_TMPFS, NULL,
	  "an empty folder of its own there" },
	{ "net", 0, OPTION_WORD, RUNS, "none|deny_all|host", AT(net), 0, nets,
	  "network: nothing (none, deny_all), or all that you reach (none)" },
	{ "file", 0, OPTION_LIST, CODE, "NAME=PATH", AT(files), 0, NULL,
	  "copy of a file, read-only at /in/NAME. Repeatable" },
	{ "out", 0, OPTION_TEXT, CODE, "DIR", AT(out), 0, NULL,
	  "where the files that code left in /out are written" },
	{ "cgroup", 0, OPTION_TEXT, RUNS, "PARENT", AT(cgroup), 0, NULL,
	  "cgroup folder to make ours in; else one is found" },
	{ "allow-weaker", 0, OPTION_WALLS, RUNS, "WALL", AT(allow_weaker), 0, NULL,
	  "run even if this wall holds less than asked for. Repeatable" },
	{ "require", 0, OPTION_WALLS, RUNS, "WALL", AT(require), 0, NULL,
	  "refuse to run without this wall. Repeatable" },
	{ "tty", 't', OPTION_FLAG, CLI_RUN, NULL, AT(tty), 0, NULL,
	  "a terminal of its own for a command, yours passed on to it" },
	{ "size", 0, OPTION_TEXT, TERMINAL, "COLUMNSxROWS", AT(size), 0, NULL,
	  "of that terminal (that of yours, or 80x24)" },
	{ "json", 0, OPTION_FLAG, CLI_RUN | CLI_EXPLAIN | CLI_DOCTOR, NULL, AT(json), 0, NULL,
	  "one JSON object on standard output instead" },
	{ "seccomp", 0, OPTION_FLAG, CLI_EXPLAIN, NULL, AT(seccomp), 0, NULL,
	  "the system call filter, as OCI JSON" },
	{ "path", 0, OPTION_TEXT, CLI_EXPLAIN, "PATH", AT(path), 0, NULL,
	  "what becomes of this path inside" },
	{ "quiet", 'q', OPTION_FLAG, TERMINAL | CLI_REPL, NULL, AT(quiet), 0, NULL,
	  "no line on standard error when it was stopped, cut or refused" },
	{ "debug", 0, OPTION_FLAG, ALL, NULL, AT(debug), 0, NULL,
	  "steps, times and caveats on standard error" },
	{ "help", 'h', OPTION_FLAG, ALL, NULL, AT(help), 0, NULL, "this text" },
};
const size_t option_count = CLI_LEN(option_table);
_Static_assert(CLI_LEN(option_table) <= CLI_OPTIONS_MAX, "room for every name");

const cli_option *option_find(int command, const char *name, size_t len)
{
	for (size_t i = 0; i < option_count; i++) {
		const cli_option *option = &option_table[i];
		if ((option->commands & command) == 0)
			continue;
		if (len > 2 && strlen(option->name) == len - 2 &&
		    memcmp(name, "--", 2) == 0 && memcmp(option->name, name + 2, len - 2) == 0)
			return option;
		if (len == 2 && option->letter != 0 && name[1] == option->letter)
			return option;
	}
	return NULL;
}

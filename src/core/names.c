/* SPDX-License-Identifier: MIT */
/* names.c - the stable words of documents and JSON, and what kind of error a code is. */
#include "core.h"

#include <strings.h>

typedef struct names_word {
	int value;
	const char *word;
} names_word;

static const char *names_find(const names_word *words, size_t count, int value)
{
	for (size_t i = 0; i < count; i++)
		if (words[i].value == value)
			return words[i].word;
	return "?";
}

static int names_parse(const names_word *words, size_t count, const char *word, int *value)
{
	for (size_t i = 0; word && i < count; i++) {
		if (strcmp(words[i].word, word) == 0) {
			*value = words[i].value;
			return 0;
		}
	}
	return SB_ERR_NOT_FOUND;
}

/* Both functions over one table: what can be written can be read. */
#define NAMES_DEFINE(noun, table)                                                                  \
	const char *sb_##noun##_name(int value)                                                    \
	{                                                                                          \
		return names_find(table, BASE_ARRAY_LEN(table), value);                            \
	}                                                                                          \
	int sb_##noun##_parse(const char *word, int *value)                                        \
	{                                                                                          \
		return names_parse(table, BASE_ARRAY_LEN(table), word, value);                     \
	}

static const names_word names_codes[] = {
	{ SB_OK, "ok" },
	{ SB_ERR_INVALID, "invalid" },
	{ SB_ERR_INVALID_SPEC, "invalid_spec" },
	{ SB_ERR_INVALID_LIMITS, "invalid_limits" },
	{ SB_ERR_INVALID_PACK, "invalid_pack" },
	{ SB_ERR_INVALID_PATH, "invalid_path" },
	{ SB_ERR_IS_DIR, "is_dir" },
	{ SB_ERR_NOT_DIR, "not_dir" },
	{ SB_ERR_CHECKSUM, "checksum" },
	{ SB_ERR_NOT_FOUND, "not_found" },
	{ SB_ERR_UNKNOWN_LANGUAGE, "unknown_language" },
	{ SB_ERR_SESSION_NOT_FOUND, "session_not_found" },
	{ SB_ERR_SEQUENCE_GAP, "sequence_gap" },
	{ SB_ERR_FORBIDDEN, "forbidden" },
	{ SB_ERR_PATH_TRAVERSAL, "path_traversal" },
	{ SB_ERR_CONFLICT, "conflict" },
	{ SB_ERR_TIMEOUT, "timeout" },
	{ SB_ERR_AGAIN, "again" },
	{ SB_ERR_CANCELLED, "cancelled" },
	{ SB_ERR_UNSUPPORTED, "unsupported" },
	{ SB_ERR_BACKEND_UNAVAILABLE, "backend_unavailable" },
	{ SB_ERR_UNENFORCEABLE, "unenforceable" },
	{ SB_ERR_TOO_MANY_SESSIONS, "too_many_sessions" },
	{ SB_ERR_MEMORY_LIMIT, "memory_limit" },
	{ SB_ERR_CPU_LIMIT, "cpu_limit" },
	{ SB_ERR_OUTPUT_LIMIT, "output_limit" },
	{ SB_ERR_FS_QUOTA, "fs_quota" },
	{ SB_ERR_TOO_MANY_FILES, "too_many_files" },
	{ SB_ERR_PIDS_LIMIT, "pids_limit" },
	{ SB_ERR_POLICY_DENIED, "policy_denied" },
	{ SB_ERR_NETWORK_DENIED, "network_denied" },
	{ SB_ERR_CLOSED, "closed" },
	{ SB_ERR_PROCESS_CLOSED, "process_closed" },
	{ SB_ERR_SESSION_CLOSED, "session_closed" },
	{ SB_ERR_SESSION_KILLED, "session_killed" },
	{ SB_ERR_MANAGER_CLOSED, "manager_closed" },
	{ SB_ERR_POOL_CLOSED, "pool_closed" },
	{ SB_ERR_INTERNAL, "internal" },
	{ SB_ERR_NO_MEMORY, "no_memory" },
	{ SB_ERR_IO, "io" },
	{ SB_ERR_CONNECTION_LOST, "connection_lost" },
};
NAMES_DEFINE(code, names_codes)

static const names_word names_kinds[] = {
	{ SB_KIND_NONE, "none" },
	{ SB_KIND_VALIDATION, "validation" },
	{ SB_KIND_NOT_FOUND, "not_found" },
	{ SB_KIND_FORBIDDEN, "forbidden" },
	{ SB_KIND_CONFLICT, "conflict" },
	{ SB_KIND_TIMEOUT, "timeout" },
	{ SB_KIND_ABORTED, "aborted" },
	{ SB_KIND_NOT_AVAILABLE, "not_available" },
	{ SB_KIND_BUDGET_EXCEEDED, "budget_exceeded" },
	{ SB_KIND_POLICY_DENIED, "policy_denied" },
	{ SB_KIND_CLOSED, "closed" },
	{ SB_KIND_INTERNAL, "internal" },
};
NAMES_DEFINE(kind, names_kinds)

static const names_word names_walls[] = {
	{ SB_WALL_FILES, "files" },
	{ SB_WALL_NETWORK, "network" },
	{ SB_WALL_SYSCALLS, "syscalls" },
	{ SB_WALL_PRIVILEGES, "privileges" },
	{ SB_WALL_PROCESSES, "processes" },
	{ SB_WALL_MEMORY, "memory" },
	{ SB_WALL_CPU, "cpu" },
	{ SB_WALL_PIDS, "pids" },
	{ SB_WALL_DISK, "disk" },
	{ SB_WALL_TIME, "time" },
	{ SB_WALL_OUTPUT, "output" },
	{ SB_WALL_ENV, "env" },
};
NAMES_DEFINE(wall, names_walls)

static const names_word names_levels[] = {
	{ SB_LEVEL_NONE, "none" },
	{ SB_LEVEL_COOPERATIVE, "cooperative" },
	{ SB_LEVEL_SAMPLED, "sampled" },
	{ SB_LEVEL_HARD, "hard" },
};
NAMES_DEFINE(level, names_levels)

static const names_word names_profiles[] = {
	{ SB_PROFILE_DEFAULT, "default" },     { SB_PROFILE_CODE, "code" },
	{ SB_PROFILE_COMMAND, "command" },     { SB_PROFILE_RUNNER, "runner" },
	{ SB_PROFILE_CONTAINER, "container" },
};
NAMES_DEFINE(profile, names_profiles)

static const names_word names_outcomes[] = {
	{ SB_OUTCOME_EXITED, "exited" },
	{ SB_OUTCOME_SIGNALED, "signaled" },
	{ SB_OUTCOME_TERMINATED, "terminated" },
	{ SB_OUTCOME_TIMED_OUT, "timed_out" },
	{ SB_OUTCOME_BUDGET_EXCEEDED, "budget_exceeded" },
	{ SB_OUTCOME_UNENFORCEABLE, "unenforceable" },
	{ SB_OUTCOME_CANCELLED, "cancelled" },
	{ SB_OUTCOME_VIOLATION, "violation" },
	{ SB_OUTCOME_LOST, "lost" },
};
NAMES_DEFINE(outcome, names_outcomes)

static const names_word names_streams[] = {
	{ SB_STDIN, "stdin" },
	{ SB_STDOUT, "stdout" },
	{ SB_STDERR, "stderr" },
	{ SB_TTY, "tty" },
};
NAMES_DEFINE(stream, names_streams)

static const names_word names_events[] = {
	{ SB_EVENT_OUTPUT, "output" },
	{ SB_EVENT_EXITED, "exited" },
	{ SB_EVENT_CLOSED, "closed" },
	{ SB_EVENT_LAG, "lag" },
};
NAMES_DEFINE(event, names_events)

static const names_word names_states[] = {
	{ SB_STATE_IDLE, "idle" },     { SB_STATE_BUSY, "busy" },     { SB_STATE_INPUT, "input" },
	{ SB_STATE_KILLED, "killed" }, { SB_STATE_CLOSED, "closed" },
};
NAMES_DEFINE(state, names_states)

static const names_word names_signals[] = {
	{ SB_SIGNAL_INTERRUPT, "interrupt" }, { SB_SIGNAL_TERMINATE, "terminate" },
	{ SB_SIGNAL_KILL, "kill" },	      { SB_SIGNAL_HANGUP, "hangup" },
	{ SB_SIGNAL_QUIT, "quit" },	      { SB_SIGNAL_USER1, "user1" },
	{ SB_SIGNAL_USER2, "user2" },	      { SB_SIGNAL_STOP, "stop" },
	{ SB_SIGNAL_CONTINUE, "continue" },
};
NAMES_DEFINE(signal, names_signals)

static const names_word names_net_modes[] = {
	{ SB_NET_DEFAULT, "default" },	 { SB_NET_HOST, "host" },
	{ SB_NET_DENY_ALL, "deny_all" }, { SB_NET_ALLOW_LIST, "allow_list" },
	{ SB_NET_PROXY, "proxy" },
};
NAMES_DEFINE(net_mode, names_net_modes)

static const names_word names_actions[] = {
	{ SB_DENY, "deny" },
	{ SB_ALLOW, "allow" },
	{ SB_LATER, "later" },
};
NAMES_DEFINE(action, names_actions)

static const names_word names_env_bases[] = {
	{ SB_ENV_DEFAULT, "default" },
	{ SB_ENV_INHERIT, "inherit" },
	{ SB_ENV_NONE, "none" },
	{ SB_ENV_LIST, "list" },
};
NAMES_DEFINE(env_base, names_env_bases)

static const names_word names_accesses[] = {
	{ SB_FILE_READ, "read" },	{ SB_FILE_WRITE, "write" }, { SB_FILE_HIDE, "hide" },
	{ SB_FILE_PROTECT, "protect" }, { SB_FILE_TMPFS, "tmpfs" },
};
NAMES_DEFINE(access, names_accesses)

static const names_word names_lefts[] = {
	{ SB_LEFT_LINK, "link" },
	{ SB_LEFT_SPECIAL, "special" },
	{ SB_LEFT_TOO_DEEP, "too_deep" },
	{ SB_LEFT_UNREADABLE, "unreadable" },
};
NAMES_DEFINE(left, names_lefts)

static const names_word names_audits[] = {
	{ SB_AUDIT_REQUEST, "request" },     { SB_AUDIT_APPROVAL, "approval" },
	{ SB_AUDIT_START, "start" },	     { SB_AUDIT_NETWORK, "network" },
	{ SB_AUDIT_DENIAL, "denial" },	     { SB_AUDIT_LIMIT, "limit" },
	{ SB_AUDIT_FILES, "files" },	     { SB_AUDIT_EXIT, "exit" },
	{ SB_AUDIT_OVERRULED, "overruled" },
};
NAMES_DEFINE(audit, names_audits)

static const names_word names_caps[] = {
	{ SB_CAP_SESSIONS, "sessions" },
	{ SB_CAP_TTY, "tty" },
	{ SB_CAP_SIGNAL, "signal" },
	{ SB_CAP_EVENTS, "events" },
	{ SB_CAP_EVAL, "eval" },
	{ SB_CAP_SERVE_SOCKET, "serve_socket" },
	{ SB_CAP_SERVE_HANDLER, "serve_handler" },
	{ SB_CAP_NETWORK, "network" },
	{ SB_CAP_FORK, "fork" },
	{ SB_CAP_FILES, "files" },
	{ SB_CAP_COPY, "copy" },
	{ SB_CAP_SPLIT_STREAMS, "split_streams" },
	{ SB_CAP_COMPILES, "compiles" },
};
NAMES_DEFINE(cap, names_caps)

/* The stable name first. */
static const char *const names_backends[][4] = {
	{ "process", "proc" },
	{ "linux" },
	{ "container", "docker" },
	{ "wasm", "wasi" },
	{ "k8s", "kubernetes", "job" },
	{ "seatbelt" },
	{ "noop" },
};

int sb_backend_parse(const char *text, const char **name)
{
	*name = text;
	for (size_t i = 0; text && i < BASE_ARRAY_LEN(names_backends); i++) {
		for (size_t j = 0; j < 4 && names_backends[i][j]; j++) {
			if (strcasecmp(text, names_backends[i][j]) == 0) {
				*name = names_backends[i][0];
				return 0;
			}
		}
	}
	return SB_ERR_NOT_FOUND;
}

/* Upper and lower case and hyphens aside. */
static bool names_same(const char *a, const char *b)
{
	for (;; a++, b++) {
		a += strspn(a, "-_");
		b += strspn(b, "-_");
		if (strncasecmp(a, b, 1) != 0)
			return false;
		if (!*a)
			return true;
	}
}

int sb_policy_parse(const char *text, const char *const **names)
{
	static const char *const only[] = { "wasm", NULL };
	static const char *const prefer[] = { "wasm", "linux", "container", NULL };
	static const struct {
		const char *name;
		const char *const *names;
	} all[] = { { "WasmOnly", only }, { "PreferWasm", prefer } };

	*names = NULL;
	for (size_t i = 0; text && i < BASE_ARRAY_LEN(all); i++) {
		if (names_same(text, all[i].name)) {
			*names = all[i].names;
			return 0;
		}
	}
	return SB_ERR_NOT_FOUND;
}

int sb_error_kind(int code)
{
	if (code == 0)
		return SB_KIND_NONE;
	if (code > -100 || code <= -100 * (SB_KIND_INTERNAL + 1))
		return SB_KIND_INTERNAL;
	return -code / 100;
}

/* What a caller that does not know the finer code can look for; 0 = none. */
static int names_parent(int code)
{
	switch (code) {
	case SB_ERR_INVALID_SPEC:
	case SB_ERR_INVALID_LIMITS:
	case SB_ERR_INVALID_PACK:
	case SB_ERR_INVALID_PATH:
		return SB_ERR_INVALID;
	case SB_ERR_UNKNOWN_LANGUAGE:
	case SB_ERR_SESSION_NOT_FOUND:
		return SB_ERR_NOT_FOUND;
	case SB_ERR_PATH_TRAVERSAL:
		return SB_ERR_FORBIDDEN;
	case SB_ERR_TOO_MANY_FILES:
		return SB_ERR_FS_QUOTA;
	case SB_ERR_NETWORK_DENIED:
		return SB_ERR_POLICY_DENIED;
	case SB_ERR_PROCESS_CLOSED:
	case SB_ERR_SESSION_CLOSED:
	case SB_ERR_SESSION_KILLED:
	case SB_ERR_MANAGER_CLOSED:
	case SB_ERR_POOL_CLOSED:
		return SB_ERR_CLOSED;
	default:
		return 0;
	}
}

int sb_error_is(const sb_error *error, int code)
{
	if (!error)
		return 0;
	if (error->code == code)
		return 1;
	return code != 0 && (error->cause == code || names_parent(error->code) == code ||
			     names_parent(error->cause) == code);
}

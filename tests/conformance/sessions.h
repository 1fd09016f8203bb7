/* SPDX-License-Identifier: MIT */
/* sessions.h - what the tests of sessions share: a sandbox with one open session, short ways to ask. */
#ifndef SB_TESTS_SESSIONS_H
#define SB_TESTS_SESSIONS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../fake/fake.h"

#define STEPS(...) ((const fake_step[]){ __VA_ARGS__, { FAKE_END, 0, NULL, 0 } })
#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

typedef struct world {
	const char *backend, *helper_dir;
	bool is_fake;
	char workspace[PATH_MAX];
	sb_limits limits;             /* of sessions that are opened from now on */
	sb_limits opened_with;
	sb_sandbox *sandbox;
	sb_session *session;
	int descriptors;
} world;
extern world w;
extern sb_error err;

int world_make(void **state);         /* of a group of tests */
int world_remove(void **state);
int world_begin(void **state);        /* of each test */
int world_end(void **state);
void world_open(world *w);

typedef struct wish {
	const char *line;             /* for sh -c; "@" becomes this process's number; or */
	const char *const *argv;
	const fake_step *steps;
	sb_command command;
} wish;
int try_session(sb_session **session);
sb_session *open_session(void);
int try_spawn(const wish *it, sb_process **process);
/* In w.session, which is opened anew where w.limits have changed. */
sb_process *spawn(const wish *it);

typedef struct seen {
	char *text[4];                /* by stream, with a NUL; the test's memory ends with it */
	size_t len[4], total;
	char *into;                   /* all of it here instead */
	size_t room;
	/* of a watch */
	uint64_t replayed, lag_at;
	bool lagged, closed, exited;
	int exit_code;
} seen;
void read_all(sb_process *p, uint64_t cursor, size_t cap, seen *all); /* to the end */
void watch_all(sb_watch *watch, seen *all);
void await_text(sb_process *p, const char *text); /* until the output has it */
void await_eof(sb_process *p);
void ended(sb_process *p, int outcome, int code, int signal, int error);
/* All that it says on its output; consumes it. */
void says(sb_process *p, const char *text);
void says_tty(sb_process *p, const char *text);

uint64_t now_ms(void);

/* A hang alone takes so long, on a machine that does much else besides. */
enum { HANG_MS = 30000 };
int processes(const char *mark);      /* with that word among their arguments; "@" as above */
int processes_of(pid_t pid, const char *mark);

#endif /* SB_TESTS_SESSIONS_H */

/* SPDX-License-Identifier: MIT */
/*
 * shim.c - asks a script in front of an interpreter (pyenv, rbenv, nodenv...) which one it means.
 *
 * It is a program of the caller's that the caller's shell would run as well; it runs as the caller, outside
 * of every wall.  So it stands in "/": in the current folder, which is the next guest's workspace, files that
 * a guest has left (.python-version, .tool-versions) would choose what runs here.  It is in a process group
 * of its own that is killed when it answered or took too long.  No signal handler,
 * no need for SIGCHLD: the end of its output is the end of the answer.
 */
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define ASK_MS 3000u

static const shim_language languages[] = {
	{ "python", "-c", "import sys; print(sys.executable)" },
	{ "pypy", "-c", "import sys; print(sys.executable)" },
	{ "nodejs", "-p", "process.execPath" },
	{ "node", "-p", "process.execPath" },
	{ "ruby", "-e", "require 'rbconfig'; puts RbConfig.ruby" },
	{ "perl", "-e", "print $^X, qq(\\n)" },
	{ "php", "-r", "echo PHP_BINARY, PHP_EOL;" },
	{ "deno", "eval", "console.log(Deno.execPath())" },
	{ "bun", "-e", "console.log(process.execPath)" },
	{ "bash", "-c", "echo \"$BASH\"" },
	{ "luajit", NULL, NULL },
	{ "lua", NULL, NULL },
};

const shim_language *shim_family(const char *program)
{
	size_t i;

	for (i = 0; i < BASE_ARRAY_LEN(languages); i++) {
		size_t len = strlen(languages[i].name);

		if (strncmp(program, languages[i].name, len))
			continue;
		/* "python3.11", "lua5.4", but not "node-gyp" */
		if (!program[len + strspn(program + len, "0123456789.-")])
			return &languages[i];
	}
	return NULL;
}

/* The environment without what tells the current folder; free() it.  NULL = no memory. */
static char **env_elsewhere(const char *const *env)
{
	size_t count = 0, kept = 0, i;
	char **out;

	while (env && env[count])
		count++;
	out = calloc(count + 1, sizeof *out);
	for (i = 0; out && i < count; i++)
		if (strncmp(env[i], "PWD=", 4) && strncmp(env[i], "OLDPWD=", 7))
			out[kept++] = (char *)env[i];
	return out;
}

static int spawn(const shim_language *language, const char *shim, char *const *env, int out, pid_t *pid)
{
	char *argv[] = { (char *)shim, (char *)language->flag, (char *)language->question, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t empty, all;
	int rc;

	if (posix_spawn_file_actions_init(&files))
		return ENOMEM;
	if (posix_spawnattr_init(&attr)) {
		posix_spawn_file_actions_destroy(&files);
		return ENOMEM;
	}
	sigemptyset(&empty);
	sigfillset(&all);
	sigdelset(&all, SIGKILL);
	sigdelset(&all, SIGSTOP);
	rc = posix_spawn_file_actions_addchdir_np(&files, "/");
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, out, 1);
	posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setsigmask(&attr, &empty);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
				 POSIX_SPAWN_SETSIGDEF);
	if (!rc)
		rc = posix_spawn(pid, shim, &files, &attr, argv, env);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return rc;
}

static int start(const shim_language *language, const char *shim, const char *const *env, int out,
		 pid_t *pid)
{
	char **elsewhere = env_elsewhere(env);
	int rc = elsewhere ? spawn(language, shim, elsewhere, out, pid) : ENOMEM;

	free(elsewhere);
	return rc;
}

/* One line within the time; false: none. */
static bool read_line(int fd, uint64_t deadline, int cancel_fd, char *out, size_t cap)
{
	struct pollfd p[2] = { { .fd = fd, .events = POLLIN }, { .fd = cancel_fd, .events = POLLIN } };
	size_t len = 0;

	for (;;) {
		uint64_t now = clock_now_ns();
		ssize_t n;

		if (now >= deadline || len + 1 >= cap)
			return false;
		if (poll(p, 2, clock_poll_ms(now, deadline)) < 0) {
			if (errno == EINTR)
				continue; /* what `p` says is of the time before: reading by it would wait */
			return false;
		}
		if (p[1].revents)
			return false;
		if (!p[0].revents)
			continue;
		n = read(fd, out + len, cap - 1 - len);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return false;
		len += (size_t)n;
		out[len] = 0;
		if (strchr(out, '\n')) {
			out[strcspn(out, "\n")] = 0;
			return true;
		}
	}
}

static void finish(pid_t pid)
{
	/* the group's leader is not reaped yet, so its number is still its own */
	kill(-pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

bool shim_ask(const shim_language *language, const char *shim, const char *const *env,
	      uint64_t ask_ms, int cancel_fd, char *out, size_t cap)
{
	uint64_t deadline = clock_deadline_ns(clock_now_ns(), ask_ms ? ask_ms : ASK_MS);
	int fds[2];
	pid_t pid;
	bool answered;

	if (!language->question || pipe2(fds, O_CLOEXEC) < 0)
		return false;
	if (start(language, shim, env, fds[1], &pid)) {
		close(fds[0]);
		close(fds[1]);
		return false;
	}
	close(fds[1]);
	answered = read_line(fds[0], deadline, cancel_fd, out, cap);
	close(fds[0]);
	finish(pid);
	return answered && path_is_clean_absolute(out) && !access(out, X_OK);
}

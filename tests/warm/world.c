/* SPDX-License-Identifier: MIT */
/* world.c - see world.h */
#include "world.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 20.0

bool world_root;
sb_error world_error;
static const char *helper_dir;
static char copied[64];

/* A plain user may not be able to reach where this was built. */
static void copy_remove(void)
{
	char path[128];

	snprintf(path, sizeof path, "%s/sb-launch", copied);
	unlink(path);
	rmdir(copied);
}

static int become_user(void)
{
	char from[512], to[128];
	static char bytes[1 << 16];
	int in, out;
	ssize_t n = -1;

	snprintf(copied, sizeof copied, "/tmp/warm.%d.XXXXXX", (int)getpid());
	if (!mkdtemp(copied) || chown(copied, 1000, 1000) < 0 || chmod(copied, 0755) < 0)
		return -1;
	snprintf(from, sizeof from, "%s/sb-launch", helper_dir);
	snprintf(to, sizeof to, "%s/sb-launch", copied);
	in = open(from, O_RDONLY | O_CLOEXEC);
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	while (in >= 0 && out >= 0 && (n = read(in, bytes, sizeof bytes)) > 0)
		if (write(out, bytes, (size_t)n) != n)
			return -1;
	close(in);
	close(out);
	if (n < 0 || setgroups(0, NULL) < 0 || setgid(1000) < 0 || setuid(1000) < 0)
		return -1;
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* else /proc/PID of ours would not be ours */
	helper_dir = copied;
	return atexit(copy_remove);
}

int world_begin(int argc, char **argv)
{
	bool user = argc > 1 && !strcmp(argv[1], "user");
	char path[512];

	if (argc < 3) {
		fprintf(stderr, "usage: warm root|user DIRECTORY-OF-SB-LAUNCH\n");
		return 2;
	}
	helper_dir = argv[2];
	snprintf(path, sizeof path, "%s/sb-launch", helper_dir);
	if (access(path, X_OK) < 0) {
		fprintf(stderr, "no sb-launch in %s: run `make programs` first\n", helper_dir);
		return 77;
	}
	if (access("/usr/bin/python3", X_OK) < 0) {
		fprintf(stderr, "there is no /usr/bin/python3\n");
		return 77;
	}
	if (user && geteuid() == 0 && become_user() < 0) {
		perror("cannot become a plain user");
		return 1;
	}
	world_root = geteuid() == 0;
	if (!strcmp(argv[1], "root") && !world_root) {
		fprintf(stderr, "not started by root\n");
		return 77;
	}
	setenv("PATH", "/usr/bin:/bin", 1);
	return chdir("/") < 0;
}

const char *world_helpers(void)
{
	return helper_dir;
}

/* ---- runs ------------------------------------------------------------------------------------------ */

sb_sandbox *world_sandbox(uint32_t flags)
{
	static const char *const order[] = { "linux", NULL };
	const sb_sandbox_options options = { .size = sizeof options, .order = order, .flags = flags,
		.helper_dir = helper_dir };
	sb_sandbox *sandbox = NULL;

	if (sb_sandbox_new(&options, NULL, &sandbox, &world_error) < 0)
		fail_msg("%s: %s", world_error.where, world_error.message);
	return sandbox;
}

int world_try(sb_sandbox *sandbox, const world_run *run, sb_result **result)
{
	sb_command command = run->command;
	sb_limits limits = run->limits;
	const sb_spec spec = { .size = sizeof spec, .limits = &limits };

	command.size = sizeof command;
	command.language = "python";
	command.code = run->code;
	command.code_len = run->len ? run->len : strlen(run->code);
	limits.size = sizeof limits;
	*result = NULL;
	return sb_run(sandbox, &spec, &command, run->wait, result, &world_error);
}

sb_result *world_do(sb_sandbox *sandbox, const world_run *run)
{
	sb_result *result;

	if (world_try(sandbox, run, &result) < 0)
		fail_msg("%.60s: %s: %s", run->code, world_error.where, world_error.message);
	return result;
}

const char *world_out(const sb_result *result)
{
	size_t len;

	return sb_result_output(result, SB_STDOUT, &len);
}

const char *world_err(const sb_result *result)
{
	size_t len;

	return sb_result_output(result, SB_STDERR, &len);
}

void world_says(sb_sandbox *sandbox, const char *code, const char *expected)
{
	sb_result *r = world_do(sandbox, &(world_run){ .code = code });

	if (sb_result_code(r) || strcmp(world_out(r), expected))
		fail_msg("%.80s: %s", code, sb_result_json(r));
	sb_result_free(r);
}

/* ---- outside ---------------------------------------------------------------------------------------- */

static bool read_stat(pid_t pid, char name[64], pid_t *parent)
{
	char path[64], text[512], *open, *close, state;
	FILE *f;
	int ppid;
	size_t n;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	text[n] = 0;
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (!open || !close || sscanf(close + 1, " %c %d", &state, &ppid) != 2 || state == 'Z')
		return false;
	snprintf(name, 64, "%.*s", (int)(close - open - 1), open + 1);
	*parent = ppid;
	return true;
}

static bool descends(pid_t pid)
{
	char name[64];
	pid_t parent;

	for (int depth = 0; depth < 8 && read_stat(pid, name, &parent); depth++) {
		if (parent == getpid())
			return true;
		pid = parent;
	}
	return false;
}

size_t world_children(const char *name, pid_t *pids, size_t cap)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;
	size_t n = 0;

	while (proc && (e = readdir(proc))) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10), parent;
		char own[64];

		if (pid <= 0 || !read_stat(pid, own, &parent) || strcmp(own, name) || !descends(pid))
			continue;
		if (n < cap)
			pids[n] = pid;
		n++;
	}
	if (proc)
		closedir(proc);
	return n;
}

/* Sleeps in recvmsg; that cannot be read of others, so: it sleeps, and has only itself to wait for. */
static size_t asleep(void)
{
	pid_t pids[32];
	size_t n = world_children("python3", pids, 32), sleeping = 0;

	for (size_t i = 0; i < n && i < 32; i++) {
		char path[64], text[512] = "";

		snprintf(path, sizeof path, "/proc/%d/wchan", (int)pids[i]);
		FILE *f = fopen(path, "re");

		if (f && fgets(text, sizeof text, f) && strstr(text, "unix_stream_data_wait") == NULL &&
		    (strstr(text, "recv") || strstr(text, "skb") || strstr(text, "wait_for_more")))
			sleeping++;
		if (f)
			fclose(f);
	}
	return sleeping;
}

static void await(const char *what, size_t (*look)(const char *what), size_t count, size_t most)
{
	struct timespec pause = { .tv_nsec = 5000000 }, now, began;
	size_t there = 0;

	clock_gettime(CLOCK_MONOTONIC, &began);
	do {
		there = look(what);
		if (there >= count && there <= most)
			return;
		nanosleep(&pause, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((double)(now.tv_sec - began.tv_sec) < PATIENCE_S);
	fail_msg("%zu of \"%s\", not %zu", there, what, count);
}

static size_t by_name(const char *name)
{
	return world_children(name, NULL, 0);
}

static size_t waiting(const char *unused)
{
	(void)unused;
	return asleep();
}

void world_await(const char *name, size_t count)
{
	await(name, by_name, count, count);
}

void world_ready(size_t count)
{
	await("waiting python3", waiting, count, SIZE_MAX);
}

/* SPDX-License-Identifier: MIT */
/*
 * launch_host.c - the host's side against a peer of its own: this program again, started by the name
 * sb-launch, which tells in its answers what it found.
 */
#include "unit.h"

#include "../../src/launch/host.h"
#include "places.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The library's own lies in a layer above. */
int sb_call_wait(const sb_call *call, int fd, short events, sb_error *err)
{
	struct pollfd p = { .fd = fd, .events = events };

	(void)err;
	return poll(&p, 1, call->deadline_ns == SB_UNLIMITED ? 20000 : 50) > 0 ? 0 : SB_ERR_TIMEOUT;
}

/* ---- The peer ------------------------------------------------------------------------------- */

static void peer_answer(void *record, size_t bytes, uint32_t kind, uint32_t id)
{
	*(lp_head *)record = (lp_head){ LP_VERSION, kind, (uint32_t)bytes, id };
	if (send(3, record, bytes, MSG_NOSIGNAL) < 0)
		_exit(9);
}

static void peer_failed(const char *where, const char *message)
{
	lp_failed f = { .os_errno = EPERM };

	snprintf(f.where, sizeof f.where, "%s", where);
	snprintf(f.message, sizeof f.message, "%s", message);
	peer_answer(&f, sizeof f, LP_FAILED, 0);
}

/* NULL, or what a helper must not find at its start. */
static const char *peer_world(size_t received)
{
	struct stat st, null;
	struct dirent *entry;
	sigset_t mask;
	size_t count = 0;
	int i;
	DIR *dir;

	if (environ[0])
		return "environment";
	if (stat("/dev/null", &null))
		return "no /dev/null";
	for (i = 0; i < 3; i++)
		if (fstat(i, &st) || st.st_rdev != null.st_rdev)
			return "standard descriptors";
	if (fstat(3, &st) || !S_ISSOCK(st.st_mode))
		return "socket";
	dir = opendir("/proc/self/fd");
	while (dir && (entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	if (count != 5 + received) /* 0 to 3 and the directory */
		return "other descriptors";
	closedir(dir);
	sigprocmask(SIG_BLOCK, NULL, &mask);
	for (i = 1; i < 32; i++) {
		struct sigaction old;

		if (sigismember(&mask, i))
			return "blocked signals";
		if (i != SIGKILL && i != SIGSTOP && (sigaction(i, NULL, &old) || old.sa_handler == SIG_IGN))
			return "ignored signals";
	}
	return NULL;
}

static size_t peer_receive(void *data, size_t cap, int *fds, size_t *fd_count)
{
	char control[CMSG_SPACE(sizeof(int) * 250)] __attribute__((aligned(16)));
	struct iovec iov = { data, cap };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof control };
	ssize_t n = recvmsg(3, &msg, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c;

	if (n <= 0)
		_exit(0);
	*fd_count = 0;
	c = CMSG_FIRSTHDR(&msg);
	if (c) {
		*fd_count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(c), *fd_count * sizeof(int));
	}
	return (size_t)n;
}

/* A sum over the archive's names and bytes. */
static void peer_put(const lp_put *put, int fd)
{
	const char *why = "?", *path;
	const lp_put_entry *entry;
	const void *content;
	size_t at = 0, len = (size_t)put->archive_bytes;
	void *data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	char text[400] = "";
	int rc;

	while ((rc = lp_decode_put(data, len, &at, &entry, &path, &content, &why)) == 1) {
		size_t used = strlen(text);

		snprintf(text + used, sizeof text - used, "%s=%.*s:%o;", path, (int)entry->data_len,
			 (const char *)content, entry->mode);
	}
	peer_failed("put", rc ? why : text);
}

static void peer_spawn(const lp_spawn *spawn, const int *fds, size_t count)
{
	static char data[LP_MAX_ARGS];
	static char *argv[1000], *envp[1000];
	lp_exited e = { .code = 0, .empty = 1 };
	const char *why = "?";
	uint32_t argc, envc;
	bool inlined = spawn->flags & LP_S_INLINE;
	const int *ends = inlined ? fds - 1 : fds;
	ssize_t n = inlined ? (ssize_t)spawn->args_bytes : pread(fds[0], data, sizeof data, 0);

	if (inlined)
		memcpy(data, spawn + 1, spawn->args_bytes);
	if (n != (ssize_t)spawn->args_bytes ||
	    lp_decode_args(data, (size_t)n, argv, 1000, envp, 1000, &argc, &envc, &why)) {
		peer_failed("spawn", why);
		return;
	}
	if (write(ends[3], argv[0], strlen(argv[0])) < 0)
		_exit(8);
	e.code = (int)(argc + 10 * envc + 100 * (count + inlined - 5) + 50 * inlined);
	peer_answer(&e, sizeof e, LP_EXITED, spawn->head.id);
	while (count)
		close(fds[--count]);
}

static void peer_plan(const lp_plan_view *v, const int *fds)
{
	lp_ready r = { .held = v->plan->steps, .pid1 = getpid() };
	const char *wrong = peer_world(v->plan->fd_count);

	if (strcmp(v->strings + v->plan->hostname, "inside"))
		wrong = "host name";
	if (v->plan->mount_count && fcntl(fds[v->mounts[0].source_fd], F_GETFD) < 0)
		wrong = "mount's descriptor";
	if (wrong)
		peer_failed("world", wrong);
	else
		peer_answer(&r, sizeof r, LP_READY, 0);
}

static int peer(void)
{
	static uint64_t record[LP_MAX_MESSAGE / 8];
	int fds[250];

	for (;;) {
		const lp_head *head = (const void *)record;
		size_t count, n = peer_receive(record, sizeof record, fds, &count);
		const char *why = "?";
		lp_plan_view v;
		lp_gone gone = { .leftovers = 3 };

		if (head->kind == LP_PLAN && !lp_decode_plan(record, n, count, &v, &why))
			peer_plan(&v, fds);
		else if (head->kind == LP_PLAN || lp_decode_request(record, n, count, &why))
			peer_failed("decode", why);
		else if (head->kind == LP_PUT)
			peer_put((const void *)record, fds[0]);
		else if (head->kind == LP_SPAWN)
			peer_spawn((const void *)record, fds, count);
		else if (head->kind == LP_STOP) {
			peer_answer(&gone, sizeof gone, LP_GONE, 0);
			return 0;
		} else if (head->kind == LP_RESIZE) {
			send(3, "rubbish", 7, MSG_NOSIGNAL);
		} else if (head->kind == LP_SIGNAL) {
			kill(getpid(), ((const lp_signal *)head)->signo);
		}
	}
}

/* ---- The host -------------------------------------------------------------------------------- */

static const sb_call endless = { .size = sizeof endless, .deadline_ns = SB_UNLIMITED, .cancel_fd = -1 };

static lh_plan *plan_make(void)
{
	lh_plan *plan = lh_plan_new();

	assert_non_null(plan);
	plan->fixed.hostname = lh_plan_string(plan, "inside");
	plan->fixed.steps = LP_NO_NEW_PRIVS;
	return plan;
}

static lh_box *box_start(lh_plan *plan)
{
	sb_error err = { 0 };
	lh_box *box;

	if (lh_start("/proc/self/exe", plan, &box, &err))
		fail_msg("%s", err.message);
	lh_plan_free(plan);
	return box;
}

static int box_next(lh_box *box, lh_answer *answer, sb_error *err)
{
	int fd, rc = lh_next(box, &endless, true, answer, &fd, err);

	assert_int_equal(fd, -1);
	return rc;
}

static void expect_ready(lh_box *box)
{
	sb_error err = { 0 };
	lh_answer a;

	assert_int_equal(box_next(box, &a, &err), 0);
	if (a.head.kind == LP_FAILED)
		fail_msg("%s: %s", a.failed.where, a.failed.message);
	assert_int_equal(a.head.kind, LP_READY);
	assert_true(a.ready.held == LP_NO_NEW_PRIVS);
	assert_int_equal(a.ready.pid1, lh_pid(box));
}

static void expect_stop(lh_box *box)
{
	sb_error err = { 0 };
	lh_answer a;

	assert_int_equal(lh_stop(box, 0, &err), 0);
	assert_int_equal(box_next(box, &a, &err), 0);
	assert_int_equal(a.head.kind, LP_GONE);
	assert_int_equal(a.gone.leftovers, 3);
	assert_int_equal(box_next(box, &a, &err), SB_ERR_CLOSED);
}

static bool no_child_left(void)
{
	return waitpid(-1, NULL, WNOHANG | __WALL) == -1 && errno == ECHILD;
}

static void life_of_a_box(void **state)
{
	lh_box *box = box_start(plan_make());

	(void)state;
	expect_ready(box);
	expect_stop(box);
	lh_close(box);
	assert_true(no_child_left());
	lh_close(NULL);
}

static void mounts_and_descriptors_travel(void **state)
{
	int fd = open("/", O_PATH | O_CLOEXEC);
	lh_plan *plan = plan_make();
	lh_box *box;
	int i;

	(void)state;
	for (i = 0; i < (int)LP_MAX_MOUNTS; i++)
		lh_plan_mount_fd(plan, LP_M_BIND, fd, "/usr", "/usr", LP_F_READONLY, 0);
	assert_int_equal(plan->fd_count, 1);
	box = box_start(plan);
	close(fd);
	expect_ready(box);
	lh_close(box);
	assert_true(no_child_left());
}

static void too_much_for_a_plan(void **state)
{
	sb_error err = { 0 };
	lh_plan *plan = plan_make();
	lh_box *box;
	int i;

	(void)state;
	for (i = 0; i <= (int)LP_MAX_MOUNTS; i++)
		lh_plan_mount(plan, LP_M_DIR, NULL, "/x", 0, 0755);
	assert_int_equal(lh_plan_check(plan, &err), SB_ERR_INVALID_SPEC);
	assert_non_null(strstr(err.message, "384"));
	assert_int_equal(lh_start("/proc/self/exe", plan, &box, &err), SB_ERR_INVALID_SPEC);
	assert_null(box);
	lh_plan_free(plan);
	plan = plan_make();
	for (i = 0; i < 20000; i++)
		lh_plan_string(plan, "abc");
	assert_int_equal(lh_plan_check(plan, NULL), SB_ERR_INVALID_SPEC);
	assert_true(plan->string_bytes <= LP_MAX_STRINGS);
	lh_plan_free(plan);
}

static void files_travel(void **state)
{
	const lh_file files[] = { { "in/a", "hello", 5, 0644 }, { "in/deep/er/b", "", 0, 0600 },
		{ "code/main.py", "12345678", 8, 0444 } };
	const lh_file dots = { "in/../a", "x", 1, 0644 }, empty = { "", "x", 1, 0644 };
	lh_box *box = box_start(plan_make());
	sb_error err = { 0 };
	lh_answer a;

	(void)state;
	expect_ready(box);
	assert_int_equal(lh_put(box, files, 3, 0, &err), 0);
	assert_int_equal(box_next(box, &a, &err), 0);
	assert_string_equal(a.failed.message,
			    "in/a=hello:644;in/deep/er/b=:600;code/main.py=12345678:444;");
	assert_int_equal(lh_put(box, &dots, 1, 0, &err), 0);
	assert_int_equal(box_next(box, &a, &err), 0);
	assert_non_null(strstr(a.failed.message, "clean"));
	assert_int_equal(lh_put(box, &empty, 1, 0, &err), SB_ERR_INVALID_PATH);
	lh_close(box);
}

static void commands_travel(void **state)
{
	static char text_of_5000[5000];
	const char *const argv[] = { "prog", "", "a b", NULL }, *const env[] = { "A=1", "B=2", NULL };
	const char *const much[] = { text_of_5000, NULL };
	int out[2], exited[2];
	lh_spawn spawn = { .argv = argv, .env = env, .cwd = "/", .in = -1, .err = -1, .control = -1,
		.code = -1, .id = 7 };
	lh_box *box = box_start(plan_make());
	sb_error err = { 0 };
	lh_answer a;
	char text[16] = "";

	(void)state;
	assert_int_equal(pipe2(out, O_CLOEXEC) | pipe2(exited, O_CLOEXEC), 0);
	spawn.out = out[1];
	spawn.exit_pipe = exited[1];
	assert_int_equal(lh_spawn_send(box, &spawn, &err), 0);
	spawn.flags = LP_S_CONTROL;
	assert_int_equal(lh_spawn_send(box, &spawn, &err), SB_ERR_INVALID);
	spawn.control = out[1];
	spawn.id = 8;
	assert_int_equal(lh_spawn_send(box, &spawn, &err), 0);
	memset(text_of_5000, 'x', sizeof text_of_5000 - 1);
	spawn.env = much; /* too long to go along */
	spawn.id = 9;
	assert_int_equal(lh_spawn_send(box, &spawn, &err), 0);
	close(out[1]);
	close(exited[1]);
	expect_ready(box); /* all was sent without waiting for it */
	assert_int_equal(box_next(box, &a, &err), 0);
	assert_int_equal(a.head.kind, LP_EXITED);
	assert_int_equal(a.head.id, 7);
	assert_int_equal(a.exited.code, 73);
	assert_int_equal(box_next(box, &a, &err), 0);
	assert_int_equal(a.head.id, 8);
	assert_int_equal(a.exited.code, 173);
	assert_int_equal(box_next(box, &a, &err), 0);
	assert_int_equal(a.head.id, 9);
	assert_int_equal(a.exited.code, 113);
	assert_int_equal(read(out[0], text, sizeof text), 12);
	assert_string_equal(text, "progprogprog");
	assert_int_equal(read(exited[0], text, 1), 0); /* the peer closed its end */
	close(out[0]);
	close(exited[0]);
	lh_close(box);
}

static void arguments_have_a_maximum(void **state)
{
	char *big = malloc(LP_MAX_ARGS);
	const char *argv[] = { "prog", big, NULL }, *const none[] = { NULL };
	lh_spawn spawn = { .argv = argv, .cwd = "/", .in = -1, .out = -1, .err = -1, .exit_pipe = 1,
		.id = 1 };
	lh_box *box = box_start(plan_make());
	sb_error err = { 0 };

	(void)state;
	memset(big, 'x', LP_MAX_ARGS - 1);
	big[LP_MAX_ARGS - 1] = 0;
	assert_int_equal(lh_spawn_send(box, &spawn, &err), SB_ERR_INVALID);
	assert_non_null(strstr(err.message, "8388608"));
	spawn.argv = none;
	assert_int_equal(lh_spawn_send(box, &spawn, &err), SB_ERR_INVALID);
	spawn.argv = argv;
	spawn.cwd = "relative";
	assert_int_equal(lh_spawn_send(box, &spawn, &err), SB_ERR_INVALID_PATH);
	lh_close(box);
	free(big);
}

static void peer_that_fails(void **state)
{
	lh_box *box = box_start(plan_make());
	sb_error err = { 0 };
	lh_answer a;
	int fd;

	(void)state;
	expect_ready(box);
	assert_int_equal(lh_next(box, &endless, false, &a, &fd, &err), SB_ERR_AGAIN);
	assert_int_equal(lh_resize(box, 1, 2, 3, &err), 0);
	assert_int_equal(box_next(box, &a, &err), SB_ERR_CONNECTION_LOST);
	assert_non_null(strstr(err.message, "shorter than its head"));
	assert_int_equal(lh_signal(box, 1, SIGKILL, false, 0, &err), 0);
	assert_int_equal(box_next(box, &a, &err), SB_ERR_CONNECTION_LOST);
	assert_int_equal(lh_stop(box, 0, &err), SB_ERR_CONNECTION_LOST); /* and no SIGPIPE */
	lh_close(box);
	assert_true(no_child_left());
}

static void program_that_is_not_there(void **state)
{
	lh_plan *plan = plan_make();
	sb_error err = { 0 };
	lh_box *box;

	(void)state;
	assert_int_equal(lh_start("/nonexistent/sb-launch", plan, &box, &err),
			 SB_ERR_BACKEND_UNAVAILABLE);
	assert_non_null(strstr(err.message, "\"/nonexistent/sb-launch\""));
	assert_int_equal(err.os_errno, ENOENT);
	lh_plan_free(plan);
	assert_true(no_child_left());
}

/* In a child of its own: the host's descriptors and signals as they may be. */
static void run_apart(void (*prepare)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		lh_plan *plan = lh_plan_new();
		sb_error err = { 0 };
		lh_answer a = { 0 };
		lh_box *box;
		int fd;

		prepare();
		plan->fixed.hostname = lh_plan_string(plan, "inside");
		if (lh_start("/proc/self/exe", plan, &box, &err))
			_exit(1);
		if (lh_next(box, &endless, true, &a, &fd, &err) || a.head.kind != LP_READY)
			_exit(2);
		lh_close(box);
		_exit(no_child_left() ? 0 : 3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void prepare_closed(void)
{
	close(0);
	close(1);
	close(2);
}

static void prepare_one_closed(void)
{
	close(1);
}

static void prepare_taken(void)
{
	int i;

	for (i = 3; i < 40; i++)
		if (dup2(0, i) < 0)
			_exit(4);
}

static void prepare_ignored(void)
{
	sigset_t all;

	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
}

static void odd_hosts(void **state)
{
	(void)state;
	run_apart(prepare_closed);
	run_apart(prepare_one_closed);
	run_apart(prepare_taken);
	run_apart(prepare_ignored);
}

static void *thread_run(void *data)
{
	int i;

	for (i = 0; i < 20; i++) {
		lh_box *box = box_start(plan_make());

		expect_ready(box);
		expect_stop(box);
		lh_close(box);
	}
	return data;
}

static void many_threads(void **state)
{
	pthread_t threads[8];
	int i;

	(void)state;
	for (i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, thread_run, NULL), 0);
	for (i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	assert_true(no_child_left());
}

static const char *beside_program(void)
{
	static char path[4200];
	ssize_t n = readlink("/proc/self/exe", path, 4096);
	char *slash;

	path[n > 0 ? n : 0] = 0;
	slash = strrchr(path, '/');
	assert_non_null(slash);
	snprintf(slash, 16, "/sb-launch");
	return path;
}

static void finding(void **state)
{
	char dir[] = "/tmp/unit-find-XXXXXX", file[64], *path;
	sb_error err = { 0 };
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof file, "%s/sb-launch", dir);
	fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
	close(fd);
	assert_int_equal(lh_find(dir, &path, &err), 0);
	assert_string_equal(path, file);
	free(path);
	unlink(file);
	rmdir(dir);
	assert_int_equal(lh_find("relative", &path, &err), SB_ERR_INVALID_PATH);
	if (access(SB_LIBEXEC "/sb-launch", X_OK) && access(beside_program(), X_OK)) {
		assert_int_equal(lh_find(dir, &path, &err), SB_ERR_BACKEND_UNAVAILABLE);
		assert_non_null(strstr(err.message, dir));
		assert_non_null(strstr(err.message, SB_LIBEXEC));
	}
}

static void failures_as_errors(void **state)
{
	static const struct {
		lp_failed failed;
		int code;
		const char *says;
	} rows[] = {
		{ { .exec = 1, .os_errno = ENOENT, .where = "exec", .message = "\"x\" is not there" },
		  SB_ERR_NOT_FOUND, "\"x\"" },
		{ { .exec = 1, .os_errno = EACCES }, SB_ERR_FORBIDDEN, "" },
		{ { .exec = 1, .os_errno = ENOEXEC }, SB_ERR_FORBIDDEN, "" },
		{ { .exec = 1, .os_errno = E2BIG, .message = "cannot run" }, SB_ERR_INVALID_SPEC,
		  "cannot run; pass" },
		{ { .exec = 2, .os_errno = ENOENT }, SB_ERR_NOT_FOUND, "" },
		{ { .exec = 2, .os_errno = ENOTDIR }, SB_ERR_NOT_DIR, "" },
		{ { .os_errno = ENOSPC, .where = "put" }, SB_ERR_FS_QUOTA, "--disk" },
		{ { .os_errno = EPERM, .where = "userns" }, SB_ERR_BACKEND_UNAVAILABLE, "amespaces" },
		{ { .os_errno = EINVAL, .where = "idmap.workspace" }, SB_ERR_BACKEND_UNAVAILABLE,
		  "--workspace-mode ro" },
		{ { .os_errno = EPERM, .where = "landlock", .message = "two\nlines" },
		  SB_ERR_BACKEND_UNAVAILABLE, "two?lines; boot" },
		{ { .os_errno = EMFILE, .where = "mount.source" }, SB_ERR_BACKEND_UNAVAILABLE, "ulimit -n" },
		{ { .os_errno = EAGAIN, .where = "userns" }, SB_ERR_BACKEND_UNAVAILABLE, "ulimit -u" },
		{ { .os_errno = EFBIG, .where = "put" }, SB_ERR_IO, "ulimit -f" },
		{ { .exec = 1, .os_errno = EAGAIN }, SB_ERR_IO, "ulimit -u" },
		{ { .os_errno = EROFS, .where = "userns" }, SB_ERR_BACKEND_UNAVAILABLE, "/proc is read-only" },
		{ { .os_errno = EPERM, .where = "idmap" }, SB_ERR_BACKEND_UNAVAILABLE, "as the owner" },
		{ { .where = "build-id" }, SB_ERR_BACKEND_UNAVAILABLE, "different builds" },
		{ { .where = "what.ever" }, SB_ERR_BACKEND_UNAVAILABLE, "doctor" },
	};
	sb_error err;
	size_t i;

	(void)state;
	for (i = 0; i < BASE_ARRAY_LEN(rows); i++) {
		assert_int_equal(lh_failed_error(&rows[i].failed, &err), rows[i].code);
		assert_int_equal(err.code, rows[i].code);
		assert_int_equal(err.os_errno, rows[i].failed.os_errno);
		assert_non_null(strstr(err.message, rows[i].says));
		assert_null(strchr(err.message, '\n'));
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(life_of_a_box), cmocka_unit_test(mounts_and_descriptors_travel),
		cmocka_unit_test(too_much_for_a_plan), cmocka_unit_test(files_travel),
		cmocka_unit_test(commands_travel), cmocka_unit_test(arguments_have_a_maximum),
		cmocka_unit_test(peer_that_fails), cmocka_unit_test(program_that_is_not_there),
		cmocka_unit_test(odd_hosts), cmocka_unit_test(many_threads),
		cmocka_unit_test(finding), cmocka_unit_test(failures_as_errors),
	};

	if (argc && !strcmp(argv[0], "sb-launch"))
		return peer();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

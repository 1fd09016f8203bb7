/* SPDX-License-Identifier: MIT */
/*
 * launch_decode.c - each rule of the decoders: one good record, one thing spoiled at a time.
 */
#include "unit.h"

#include "../../src/launch/protocol.h"

#include <sys/socket.h>

/* ---- PLAN ---------------------------------------------------------------------------------- */

enum { MOUNTS = 8, FDS = 2 };
typedef struct record {
	lp_plan p;
	lp_mount m[MOUNTS];
	char strings[512];
} record;
static record good;
static uint32_t s_dots, s_relative, s_slashed, s_tail, s_usr, s_long_name;

static uint32_t add(const char *text)
{
	uint32_t at = good.p.string_bytes;

	memcpy(good.strings + at, text, strlen(text) + 1);
	good.p.string_bytes += (uint32_t)strlen(text) + 1;
	return at;
}

static void row(int at, int kind, int fd, int flags, const char *source, const char *target,
		uint64_t arg)
{
	good.m[at] = (lp_mount){ (uint16_t)kind, (uint16_t)flags, fd, *source ? add(source) : 0,
		*target ? add(target) : 0, arg };
}

static void make_good(void)
{
	char long_name[70];

	memset(&good, 0, sizeof good);
	good.p.string_bytes = 1;
	good.p.steps = LP_USERNS | LP_MOUNTNS | LP_ROOT | LP_NETNS | LP_LO_UP;
	good.p.memory_bytes = good.p.pids = good.p.cpu_us = good.p.cpu_millicores = UINT64_MAX;
	good.p.open_files = good.p.user_procs = good.p.file_bytes = UINT64_MAX;
	good.p.tmpfs_bytes = 1 << 20;
	good.p.tmpfs_nodes = 100;
	good.p.hostname = add("sandbox");
	good.p.cgroup_kind = LP_CG_V1;
	good.p.cgroup_name = add("sandbox-1-2");
	good.p.cgroup_count = 2;
	good.p.cgroups[0] = (lp_cgroup){ add("/sys/fs/cgroup/memory"), LP_CTL_MEMORY };
	good.p.cgroups[1] = (lp_cgroup){ add("/sys/fs/cgroup/pids"), LP_CTL_PIDS };
	good.p.fd_count = FDS;
	good.p.mount_count = MOUNTS;
	row(0, LP_M_DIR, -1, 0, "", "/etc", 0755);
	row(1, LP_M_BIND, -1, LP_F_READONLY, "/usr", "/usr", 0);
	row(2, LP_M_BIND, 1, LP_F_FD | LP_F_WRITE | LP_F_IDMAP, "/w", "/w", 0);
	row(3, LP_M_SCRATCH, -1, 0, "tmp", "/tmp", 01777);
	row(4, LP_M_SYMLINK, -1, 0, "usr/bin", "/bin", 0);
	row(5, LP_M_FILE, -1, 0, "text\n", "/etc/hosts", 0644);
	row(6, LP_M_DEVICE, -1, 0, "/dev/null", "/dev/null", 0);
	row(7, LP_M_REMOUNT_RO, -1, 0, "", "", 0);
	s_dots = add("/a/../b");
	s_relative = add("a/b");
	s_slashed = add("/a//b");
	s_tail = add("/a/");
	s_usr = add("/usr");
	memset(long_name, 'x', sizeof long_name - 1);
	long_name[sizeof long_name - 1] = 0;
	s_long_name = add(long_name);
}

/* Packed as it travels, and then decoded; NULL = fine, else why not. */
static const char *decode(const record *r, size_t fds)
{
	static uint64_t bytes[sizeof(record) / 8 + 8];
	size_t mounts = r->p.mount_count <= MOUNTS ? r->p.mount_count * sizeof(lp_mount) : 0;
	size_t strings = r->p.string_bytes <= sizeof r->strings ? r->p.string_bytes : 0;
	size_t len = sizeof r->p + mounts + strings;
	lp_plan *p = (lp_plan *)bytes;
	const char *why = NULL;
	lp_plan_view v;

	memcpy(p, &r->p, sizeof *p);
	memcpy(p + 1, r->m, mounts);
	memcpy((char *)(p + 1) + mounts, r->strings, strings);
	p->head = (lp_head){ LP_VERSION, LP_PLAN, (uint32_t)len, 0 };
	if (!lp_decode_plan(p, len, fds, &v, &why)) {
		assert_ptr_equal(v.plan, p);
		assert_ptr_equal(v.mounts, p + 1);
		assert_ptr_equal(v.strings, (char *)(p + 1) + mounts);
		return NULL;
	}
	assert_null(v.plan);
	assert_non_null(why);
	return why;
}

static void good_plan(void **state)
{
	record r;

	(void)state;
	assert_null(decode(&good, FDS));
	r = good;
	r.p.mount_count = 0;
	r.p.fd_count = 0;
	r.p.cgroup_kind = LP_CG_NONE;
	r.p.cgroup_count = 0;
	assert_null(decode(&r, 0));
	r = good;
	r.p.cgroup_kind = LP_CG_V2;
	r.p.cgroup_count = 1;
	r.p.cgroups[0].controllers = LP_CTL_MEMORY | LP_CTL_PIDS | LP_CTL_CPU;
	assert_null(decode(&r, FDS));
}

#define SPOIL(what, text) \
	do { \
		record r = good; \
		what; \
		check_spoiled(decode(&r, FDS), text, #what); \
	} while (0)

static void check_spoiled(const char *why, const char *text, const char *what)
{
	if (!why || !strstr(why, text))
		fail_msg("%s: %s", what, why ? why : "accepted");
}

static void spoiled_scalars(void **state)
{
	(void)state;
	SPOIL(r.p.steps |= (uint64_t)LP_WORKER << 1, "step is unknown");
	SPOIL(r.p.steps |= LP_IN_PLACE, "needs a filter");
	SPOIL(r.p.steps = LP_IN_PLACE | LP_SUBREAPER | LP_SECCOMP, "needs a filter");
	SPOIL(r.p.steps |= LP_HOST_NET, "not asked for");
	SPOIL(r.p.steps |= LP_WORKER, "a worker needs");
	SPOIL(r.p.steps |= (uint64_t)1 << 63, "step is unknown");
	SPOIL(r.p.steps |= LP_SUBREAPER, "subreaper");
	SPOIL(r.p.steps = LP_NESTED_USERNS, "nested");
	SPOIL(r.p.steps = LP_LO_UP, "loopback");
	SPOIL(r.p.steps = LP_ROOT, "mount namespace");
	SPOIL(r.p.steps |= LP_LANDLOCK_SCOPE, "scope");
	SPOIL(r.p.steps |= LP_SAMPLE, "interval");
	SPOIL(memset(r.p.build_id, 'x', sizeof r.p.build_id), "build id");
	SPOIL(r.p.uid_outside = UINT32_MAX, "id is none");
	SPOIL(r.p.gid_inside = UINT32_MAX, "id is none");
	SPOIL(r.p.tmpfs_nodes = 0, "nodes");
	SPOIL(r.p.tmpfs_bytes = 0, "nodes");
	SPOIL(r.p.memory_bytes = 0, "limit is zero");
	SPOIL(r.p.pids = 0, "limit is zero");
	SPOIL(r.p.seccomp_extra_fd = 1, "reserved");
	SPOIL(r.p.hostname = r.p.string_bytes, "outside the arena");
	SPOIL(r.p.hostname = s_long_name, "host name");
	SPOIL(r.p.fd_count = 1, "descriptors");
	SPOIL(r.p.mount_count = LP_MAX_MOUNTS + 1, "too many");
	SPOIL(r.p.string_bytes = LP_MAX_STRINGS + 1, "too many");
	SPOIL(r.p.string_bytes = 0, "too many");
	SPOIL(r.strings[0] = 'x', "NUL");
	SPOIL(r.strings[r.p.string_bytes - 1] = 'x', "NUL");
}

static void spoiled_cgroups(void **state)
{
	(void)state;
	SPOIL(r.p.cgroup_kind = 4, "kind");
	SPOIL(r.p.cgroup_kind = LP_CG_NONE, "fit the kind");
	SPOIL(r.p.cgroup_kind = LP_CG_V2, "fit the kind");
	SPOIL(r.p.cgroup_kind = LP_CG_SCOPE, "fit the kind");
	SPOIL(r.p.cgroup_count = 0, "fit the kind");
	SPOIL(r.p.cgroup_count = LP_MAX_CGROUPS + 1, "count");
	SPOIL(r.p.cgroup_name = 0, "not a name");
	SPOIL(r.p.cgroup_name = s_relative, "not a name");
	SPOIL(r.p.cgroup_name = s_long_name, "not a name");
	SPOIL(r.p.cgroups[0].parent = 0, "parent");
	SPOIL(r.p.cgroups[0].parent = s_dots, "parent");
	SPOIL(r.p.cgroups[1].parent = UINT32_MAX, "parent");
	SPOIL(r.p.cgroups[0].controllers = 0, "controllers");
	SPOIL(r.p.cgroups[0].controllers = 16, "controllers");
	SPOIL(r.p.cgroups[1].controllers = LP_CTL_MEMORY, "controllers");
}

static void spoiled_mounts(void **state)
{
	(void)state;
	SPOIL(r.m[0].kind = 0, "kind");
	SPOIL(r.m[0].kind = LP_M_REMOUNT_RO + 1, "kind");
	SPOIL(r.m[0].flags = LP_F_DIR * 2, "flag");
	SPOIL(r.m[1].source = r.p.string_bytes, "outside the arena");
	SPOIL(r.m[1].target = UINT32_MAX, "outside the arena");
	SPOIL(r.m[2].source_fd = FDS, "descriptor");
	SPOIL(r.m[2].source_fd = -2, "descriptor");
	SPOIL(r.m[2].source_fd = -1, "descriptor");
	SPOIL(r.m[1].source_fd = 0, "descriptor");
	SPOIL(r.m[0].flags = LP_F_IDMAP, "only a bind");
	SPOIL(r.m[0].target = s_dots, "target");
	SPOIL(r.m[0].target = s_relative, "target");
	SPOIL(r.m[0].target = s_slashed, "target");
	SPOIL(r.m[0].target = s_tail, "target");
	SPOIL(r.m[0].target = 0, "target");
	SPOIL(r.m[1].source = s_dots, "source");
	SPOIL(r.m[1].source = 0, "source");
	SPOIL(r.m[6].source = s_relative, "source");
	SPOIL(r.m[4].source = 0, "nowhere");
	SPOIL(r.m[3].source = 0, "plain name");
	SPOIL(r.m[3].source = s_usr, "plain name");
	SPOIL(r.m[0].arg = 010000, "mode");
	SPOIL(r.m[3].arg = UINT64_MAX, "mode");
	SPOIL((r.p.tmpfs_bytes = 0, r.p.tmpfs_nodes = 0), "no scratch");
	SPOIL(r.m[6].kind = LP_M_REMOUNT_RO, "behind the last");
}

static void lengths(void **state)
{
	static uint64_t bytes[sizeof(record) / 8 + 8];
	const char *why = NULL;
	const lp_head *head;
	lp_plan_view v;
	size_t len = sizeof good.p + sizeof good.m + good.p.string_bytes, n;

	(void)state;
	memcpy(bytes, &good.p, sizeof good.p);
	memcpy((char *)bytes + sizeof good.p, good.m, sizeof good.m);
	memcpy((char *)bytes + sizeof good.p + sizeof good.m, good.strings, good.p.string_bytes);
	for (n = 0; n < len + 8; n++) {
		*(lp_head *)bytes = (lp_head){ LP_VERSION, LP_PLAN, (uint32_t)n, 0 };
		assert_int_equal(lp_decode_plan(bytes, n, FDS, &v, &why), n == len ? 0 : -1);
	}
	*(lp_head *)bytes = (lp_head){ LP_VERSION, LP_PLAN, (uint32_t)len, 0 };
	assert_int_equal(lp_decode_plan(bytes, len, LP_MAX_FDS + 1, &v, &why), -1);
	assert_int_equal(lp_decode_head((char *)bytes + 4, len, &head, &why), -1);
	assert_non_null(strstr(why, "aligned"));
	assert_int_equal(lp_decode_head(bytes, LP_MAX_MESSAGE + 1, &head, &why), -1);
	((lp_head *)bytes)->version++;
	assert_int_equal(lp_decode_head(bytes, len, &head, &why), -1);
	assert_non_null(strstr(why, "version"));
	assert_null(head);
}

/* ---- Requests and answers --------------------------------------------------------------------- */

static union {
	lp_head head;
	lp_put put;
	lp_spawn spawn;
	lp_signal signal;
	lp_resize resize;
	lp_stop stop;
	lp_dial dial;
	lp_path path;
	lp_renew renew;
	lp_ready ready;
	lp_failed failed;
	lp_spawned spawned;
	lp_exited exited;
	lp_limit limit;
	lp_dialed dialed;
	lp_gone gone;
	char room[sizeof(lp_spawn) + LP_INLINE_ARGS + 8];
} m;

static void begin(uint32_t kind, size_t bytes)
{
	memset(&m, 0, sizeof m);
	m.head = (lp_head){ LP_VERSION, kind, (uint32_t)bytes, 1 };
}

static bool request(size_t fds)
{
	const char *why = NULL;
	int rc = lp_decode_request(&m, m.head.bytes, fds, &why);

	assert_true((rc == 0) == (why == NULL));
	return rc == 0;
}

static bool answer(size_t fds)
{
	const char *why = NULL;
	int rc = lp_decode_answer(&m, m.head.bytes, fds, &why);

	assert_true((rc == 0) == (why == NULL));
	return rc == 0;
}

static void spawn_begin(void)
{
	begin(LP_SPAWN, sizeof m.spawn);
	m.spawn.args_bytes = 8;
	m.spawn.cwd[0] = '/';
}

static void spawns(void **state)
{
	(void)state;
	spawn_begin();
	assert_true(request(5));
	assert_false(request(4) || request(6) || request(0));
	m.spawn.flags = LP_S_CONTROL;
	assert_true(request(6));
	m.spawn.flags = LP_S_CONTROL | LP_S_CODE_FD | LP_S_TTY | LP_S_DETACHED;
	assert_true(request(7));
	m.spawn.flags = LP_S_LAST;
	assert_true(request(5));
	m.spawn.flags = LP_S_RENEWED | LP_S_PIDFD | LP_S_HELD;
	assert_true(request(5));
	m.spawn.flags = LP_S_HELD * 2;
	assert_false(request(5));
	spawn_begin();
	m.head.id = 0;
	assert_false(request(5));
	spawn_begin();
	m.spawn.args_bytes = 7;
	assert_false(request(5));
	m.spawn.args_bytes = LP_MAX_ARGS + 1;
	assert_false(request(5));
	spawn_begin();
	m.spawn.cwd[0] = 'x';
	assert_false(request(5));
	memset(m.spawn.cwd, '/', sizeof m.spawn.cwd);
	assert_false(request(5));
	spawn_begin();
	m.head.bytes--;
	assert_false(request(5));
	m.head.bytes += 2;
	assert_false(request(5));
}

static void spawns_with_their_arguments(void **state)
{
	(void)state;
	spawn_begin();
	m.spawn.flags = LP_S_INLINE;
	assert_false(request(4)); /* the block is missing */
	m.head.bytes += m.spawn.args_bytes;
	assert_true(request(4));
	assert_false(request(5)); /* and no memory file comes */
	m.head.bytes++;
	assert_false(request(4));
	m.head.bytes -= 2;
	assert_false(request(4));
	spawn_begin();
	m.spawn.flags = LP_S_INLINE;
	m.spawn.args_bytes = LP_INLINE_ARGS;
	m.head.bytes += LP_INLINE_ARGS;
	assert_true(request(4));
	m.spawn.args_bytes++;
	m.head.bytes++;
	assert_false(request(4));
}

static void other_requests(void **state)
{
	(void)state;
	begin(LP_PUT, sizeof m.put);
	m.put.archive_bytes = LP_MAX_PUT;
	assert_true(request(1));
	assert_false(request(0) || request(2));
	m.put.archive_bytes++;
	assert_false(request(1));
	begin(LP_SIGNAL, sizeof m.signal);
	assert_false(request(0));
	m.signal.signo = 64;
	assert_true(request(0));
	m.signal.answer = UINT32_MAX;
	assert_true(request(0));
	m.signal.reserved = 1;
	assert_false(request(0));
	m.signal.reserved = 0;
	assert_false(request(1));
	m.head.id = 0;
	assert_false(request(0));
	m.signal.whole_box = 1;
	assert_true(request(0));
	m.signal.signo = 65;
	assert_false(request(0));
	m.signal.signo = -1;
	assert_false(request(0));
	begin(LP_RESIZE, sizeof m.resize);
	assert_true(request(0));
	m.head.id = 0;
	assert_false(request(0));
	begin(LP_STOP, sizeof m.stop);
	assert_true(request(0));
	begin(LP_DIAL, sizeof m.dial);
	m.dial = (lp_dial){ m.head, 65535, AF_INET6 };
	assert_true(request(0));
	m.dial.family = AF_UNIX;
	assert_false(request(0));
	m.dial = (lp_dial){ m.head, 65536, AF_INET };
	assert_false(request(0));
	begin(LP_READY, sizeof m.ready);
	assert_false(request(0));
	begin(LP_PLAN, sizeof m.stop);
	assert_false(request(0));
	begin(LP_RENEW + 1, sizeof m.stop);
	assert_false(request(0));
}

static void files_anywhere(void **state)
{
	static const char *const bad[] = { "", "/a", "a/", "a//b", "./a", "a/..", "..", "." };

	(void)state;
	begin(LP_PUT, sizeof m.put);
	m.put.from_root = 1;
	assert_true(request(1));
	m.head.id = 0; /* nobody would hear of it */
	assert_false(request(1));
	m.head.id = 1;
	m.put.from_root = 2;
	assert_false(request(1));
	for (uint32_t kind = LP_OPEN; kind <= LP_REMOVE; kind++) {
		begin(kind, sizeof m.path);
		strcpy(m.path.path, "work/a");
		assert_true(request(0));
		assert_false(request(1));
		m.head.id = 0;
		assert_false(request(0));
		m.head.id = 1;
		for (size_t i = 0; i < UNIT_LEN(bad); i++) {
			strcpy(m.path.path, bad[i]);
			assert_false(request(0));
		}
		memset(m.path.path, 'a', sizeof m.path.path); /* no end */
		assert_false(request(0));
	}
	begin(LP_RENEW, sizeof m.renew);
	assert_true(request(0));
	assert_false(request(1));
	begin(LP_PLACED, sizeof(lp_placed));
	assert_true(answer(0));
	assert_true(answer(1)); /* what was to be opened */
	assert_false(answer(2));
	begin(LP_SPAWNED, sizeof m.spawned);
	m.spawned.pid_inside = 2;
	assert_true(answer(0) && answer(1));
	assert_false(answer(2));
	m.spawned.has_pidfd = 1;
	assert_true(answer(1) && answer(2));
	assert_false(answer(0) || answer(3));
	m.spawned.has_pidfd = 2;
	assert_false(answer(2));
}

static void answers(void **state)
{
	(void)state;
	begin(LP_READY, sizeof m.ready);
	assert_true(answer(0));
	assert_false(answer(1));
	m.ready.has_scratch = 1;
	assert_true(answer(1));
	assert_false(answer(0) || answer(2));
	m.ready.has_scratch = 2;
	assert_false(answer(2));
	begin(LP_READY, sizeof m.ready);
	m.ready.held = UINT64_MAX;
	assert_false(answer(0));
	begin(LP_FAILED, sizeof m.failed);
	assert_true(answer(0));
	assert_false(answer(1));
	m.failed.exec = 3;
	assert_false(answer(0));
	begin(LP_FAILED, sizeof m.failed);
	memset(m.failed.where, 'x', sizeof m.failed.where);
	assert_false(answer(0));
	begin(LP_FAILED, sizeof m.failed);
	memset(m.failed.message, 'x', sizeof m.failed.message);
	assert_false(answer(0));
	begin(LP_EXITED, sizeof m.exited);
	assert_true(answer(0));
	m.exited.code = 256;
	assert_false(answer(0));
	m.exited.code = -1;
	assert_false(answer(0));
	m.exited.signo = 9;
	assert_true(answer(0));
	m.exited.code = 0;
	assert_false(answer(0));
	begin(LP_EXITED, sizeof m.exited);
	m.exited.limit = LP_LIMIT_UNENFORCEABLE + 1;
	assert_false(answer(0));
	begin(LP_LIMIT, sizeof m.limit);
	assert_false(answer(0));
	m.limit.limit = LP_LIMIT_CPU;
	assert_true(answer(0));
	begin(LP_SPAWNED, sizeof m.spawned);
	assert_false(answer(0));
	m.spawned.pid_inside = 2;
	assert_true(answer(0));
	begin(LP_DIALED, sizeof m.dialed);
	assert_true(answer(1));
	assert_false(answer(0));
	m.dialed.os_errno = 111;
	assert_true(answer(0));
	assert_false(answer(1));
	begin(LP_GONE, sizeof m.gone);
	assert_true(answer(0));
	begin(LP_GONE + 1, sizeof m.gone);
	assert_false(answer(0));
	begin(LP_SPAWN, sizeof m.spawn);
	assert_false(answer(0));
}

/* ---- Blocks -------------------------------------------------------------------------------------- */

static int args(const char *text, size_t len, uint32_t argc, uint32_t envc, char **argv, char **envp)
{
	static char block[256];
	const char *why = NULL;
	uint32_t counts[2] = { argc, envc };
	int rc;

	memcpy(block, counts, 8);
	memcpy(block + 8, text, len);
	rc = lp_decode_args(block, 8 + len, argv, 4, envp, 3, &argc, &envc, &why);
	if (!rc) {
		assert_int_equal(argc, counts[0]);
		assert_int_equal(envc, counts[1]);
		assert_null(argv[argc]);
		assert_null(envp[envc]);
	}
	return rc;
}

static void argument_blocks(void **state)
{
	char *argv[4], *envp[3];
	uint32_t argc, envc;
	const char *why;
	char tiny[4] = { 1, 0, 0, 0 };

	(void)state;
	assert_int_equal(args("a\0bc\0\0A=1\0", 10, 3, 1, argv, envp), 0);
	assert_string_equal(argv[0], "a");
	assert_string_equal(argv[1], "bc");
	assert_string_equal(argv[2], "");
	assert_string_equal(envp[0], "A=1");
	assert_int_equal(args("", 1, 1, 0, argv, envp), 0);
	assert_int_equal(args("A=1", 4, 0, 1, argv, envp), -1);       /* no program */
	assert_int_equal(args("a\0b\0", 4, 1, 0, argv, envp), -1);    /* a tail */
	assert_int_equal(args("a\0b", 3, 2, 0, argv, envp), -1);      /* no end */
	assert_int_equal(args("a\0", 2, 2, 0, argv, envp), -1);       /* one too few */
	assert_int_equal(args("a\0b\0c\0d\0", 8, 4, 0, argv, envp), -1); /* no room for the NULL */
	assert_int_equal(args("a\0b\0c\0d\0", 8, 1, 3, argv, envp), -1);
	assert_int_equal(args("a", 2, UINT32_MAX, UINT32_MAX, argv, envp), -1);
	assert_int_equal(lp_decode_args(tiny, 4, argv, 4, envp, 3, &argc, &envc, &why), -1);
}

static int put(uint32_t path_len, const char *path, uint32_t mode, uint64_t data_len, size_t len)
{
	static uint64_t block[64];
	lp_put_entry e = { path_len, mode, data_len };
	const lp_put_entry *entry;
	const char *out, *why = NULL;
	const void *content;
	size_t at = 0;
	int rc;

	memset(block, 0, sizeof block);
	memcpy(block, &e, sizeof e);
	memcpy(block + 2, path, strlen(path));
	rc = lp_decode_put(block, len, &at, &entry, &out, &content, &why);
	if (rc == 1) {
		assert_string_equal(out, path);
		assert_int_equal(at, len);
		assert_int_equal(lp_decode_put(block, len, &at, &entry, &out, &content, &why), 0);
	}
	return rc;
}

static void archives(void **state)
{
	char deep[8];

	(void)state;
	assert_int_equal(put(5, "in/a", 0644, 5, 32), 1);
	assert_int_equal(put(5, "in/a", 0644, 8, 32), 1);
	assert_int_equal(put(5, "in/a", 0644, 0, 24), 1);
	assert_int_equal(put(8, "in/abcd", 0644, 0, 24), 1);
	assert_int_equal(put(5, "in/a", 0644, 9, 32), -1);          /* data cut */
	assert_int_equal(put(5, "in/a", 0644, 5, 31), -1);          /* padding cut */
	assert_int_equal(put(5, "in/a", 0644, UINT64_MAX, 32), -1);
	assert_int_equal(put(5, "in/a", 0644, UINT64_MAX - 6, 32), -1);
	assert_int_equal(put(6, "in/a", 0644, 5, 32), -1);          /* NUL inside */
	assert_int_equal(put(4, "in/a", 0644, 5, 32), -1);          /* no NUL */
	assert_int_equal(put(1, "", 0644, 5, 32), -1);
	assert_int_equal(put(UINT32_MAX, "in/a", 0644, 5, 32), -1);
	assert_int_equal(put(5, "/n/a", 0644, 5, 32), -1);
	assert_int_equal(put(5, "../a", 0644, 5, 32), -1);
	assert_int_equal(put(5, "a/..", 0644, 5, 32), -1);
	assert_int_equal(put(5, "a//b", 0644, 5, 32), -1);
	assert_int_equal(put(5, "./ab", 0644, 5, 32), -1);
	assert_int_equal(put(5, "abc/", 0644, 5, 32), -1);
	assert_int_equal(put(5, "in/a", 01000, 5, 32), -1);
	assert_int_equal(put(5, "in/a", 0644, 5, 15), -1);
	memcpy(deep, "...\0", 4);
	assert_int_equal(put(4, deep, 0644, 0, 24), 1); /* a name like any other */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_plan), cmocka_unit_test(spoiled_scalars),
		cmocka_unit_test(spoiled_cgroups), cmocka_unit_test(spoiled_mounts),
		cmocka_unit_test(lengths), cmocka_unit_test(spawns),
		cmocka_unit_test(spawns_with_their_arguments),
		cmocka_unit_test(other_requests), cmocka_unit_test(files_anywhere), cmocka_unit_test(answers),
		cmocka_unit_test(argument_blocks), cmocka_unit_test(archives),
	};

	make_good();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

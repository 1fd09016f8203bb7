/* SPDX-License-Identifier: MIT */
/*
 * plan.c - the design in words: a line or more for each wall, never more than what box.c builds.
 *
 * The plan keeps the design, so that box.c need not make it again.  What no decision rests on (what
 * becomes of each path, mounts below the workspace) is written later, while the guest runs already.
 */
#include "linux.h"
#include "../../core/core.h"
#include "../../launch/proc_parts.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct writer {
	sb_plan *plan;
	const sb_box_request *request;
	const linux_design *d;
	sb_enforcement held;
	sb_error *err;
	int rc;
} writer;

typedef struct line {
	uint32_t wall, level;
	const char *mechanism, *caveat, *subject, *test;
} line;

static void put(writer *w, const line *l)
{
	const sb_plan_line out = { .size = sizeof out, .wall = l->wall, .level = l->level,
		.mechanism = l->mechanism, .caveat = l->caveat ? l->caveat : "",
		.subject = l->subject ? l->subject : "", .test = l->test ? l->test : "" };

	if (!w->rc)
		w->rc = sb_plan_add(w->plan, &out, w->err);
}

static void unlimited(writer *w, uint32_t wall)
{
	put(w, &(line){ .wall = wall, .level = SB_LEVEL_NONE, .mechanism = "no limit",
			.subject = "unlimited" });
}

/* ---- Files --------------------------------------------------------------------------------------- */

static const char *const access_words[] = { "", "read-only", "read and write", "hidden",
	"read-only within what can be written", "empty at the start" };

/* What proves the row: the file with its attempts. */
static const char *row_test(const mount_row *row)
{
	if (row->access == SB_FILE_HIDE || row->access == SB_FILE_TMPFS)
		return "tests/walls/hidden.c";
	if (row->access == SB_FILE_READ && row->origin == MOUNT_RULE)
		return "tests/walls/shown.c";
	if (row->access == SB_FILE_READ && row->origin == MOUNT_WORKSPACE)
		return "tests/walls/workspace_ro.c";
	return "tests/walls/workspace.c";
}

static const char *row_caveat(const writer *w, const mount_row *row)
{
	const linux_facts *facts = w->d->wish.facts;

	if (row->origin == MOUNT_WORKSPACE && w->d->workspace_unmapped)
		return facts->no_userns ?
			       "read-only: without user namespaces a guest of root could not write as its owner" :
			       "read-only: its file system does not support id-mapped mounts, so a guest of root "
			       "could not write as its owner";
	return mounts_owner_caveat(&w->d->wish, &w->d->table, row);
}

/* In place there is nothing but landlock. */
static uint32_t held_by_landlock(const writer *w)
{
	return !w->d->wish.in_place || (w->d->steps & LP_LANDLOCK) ? SB_LEVEL_HARD : SB_LEVEL_NONE;
}

static void row_line(writer *w, const mount_row *row)
{
	char mechanism[64];

	if (row->origin != MOUNT_WORKSPACE && row->origin != MOUNT_RULE)
		return;
	snprintf(mechanism, sizeof mechanism, "%s, %s",
		 w->d->wish.in_place         ? "landlock, where it lies" :
		 row->kind == LP_M_TMPFS     ? "tmpfs with a size of its own" :
		 row->kind == LP_M_SCRATCH   ? "part of the one tmpfs" :
		 row->flags & LP_F_IDMAP     ? "id-mapped bind mount" :
					       "bind mount",
		 access_words[row->access]);
	put(w, &(line){ .wall = SB_WALL_FILES, .level = held_by_landlock(w), .mechanism = mechanism,
			.subject = row->target, .caveat = row_caveat(w, row),
			.test = row_test(row) });
}

#define COVERED "the machine's, and covered"

static void add_path(writer *w, const char *path, int access, const char *why)
{
	if (!w->rc)
		w->rc = plan_add_path(w->plan, path, access, why, w->err);
}

static void proc_paths(writer *w, const char *const *names, size_t count, int access, const char *why)
{
	char path[64];
	size_t i;

	for (i = 0; i < count; i++) {
		snprintf(path, sizeof path, "/proc/%s", names[i]);
		add_path(w, path, access, why);
	}
}

static void row_path(writer *w, const mount_row *row)
{
	if (row->access)
		add_path(w, row->target, row->access, row->why);
	if (row->kind != LP_M_PROC)
		return;
	proc_paths(w, proc_read_only, BASE_ARRAY_LEN(proc_read_only), SB_FILE_READ, "the machine's");
	proc_paths(w, proc_covered_files, BASE_ARRAY_LEN(proc_covered_files), SB_FILE_HIDE, COVERED);
	proc_paths(w, proc_covered_dirs, BASE_ARRAY_LEN(proc_covered_dirs), SB_FILE_HIDE, COVERED);
}

static void submount(writer *w, const char *point, size_t len)
{
	char path[512];

	if (len >= sizeof path)
		return;
	memcpy(path, point, len);
	path[len] = 0;
	put(w, &(line){ .wall = SB_WALL_FILES, .level = SB_LEVEL_HARD, .subject = path,
			.mechanism = "mount below the workspace, with its flags",
			.caveat = "another file system of the host, visible as part of the workspace" });
}

/* Mounts below the workspace come along: said, so that nobody is surprised. */
static void submounts(writer *w)
{
	const char *workspace = w->request->workspace;
	size_t within = workspace ? strlen(workspace) : 0;
	int FD_AUTO fd = workspace ? openat(AT_FDCWD, "/proc/self/mountinfo", O_RDONLY | O_CLOEXEC) : -1;
	const char *at;
	buf text;

	if (fd < 0)
		return;
	buf_init(&text, 1 << 22);
	at = fd_read_file(fd, 1 << 22, &text) ? NULL : text.data;
	while (at && *at) {
		const char *end = strchr(at, '\n'), *point = at;
		size_t i;

		for (i = 0; point && i < 4; i++) {
			point = strchr(point, ' ');
			point = point ? point + 1 : NULL;
		}
		if (point && !strncmp(point, workspace, within) && point[within] == '/')
			submount(w, point, strcspn(point, " \n"));
		at = end ? end + 1 : NULL;
	}
	buf_release(&text);
}

/* The host's own root, and what landlock lets be opened in it. */
static void files_in_place(writer *w)
{
	const sb_spec *spec = w->request->spec;
	uint32_t level = held_by_landlock(w);
	bool held = level == SB_LEVEL_HARD;
	size_t i;

	put(w, &(line){ .wall = SB_WALL_FILES, .level = level, .subject = "/",
			.mechanism = held ? "landlock in the host's root: only what is named can be opened" : "none",
			.caveat = held ? "no user namespaces: names, sizes, times and attributes of other files can "
					 "be seen; "
					 "there is no private /tmp, /dev/shm, /proc or home" :
				  w->d->wish.facts->landlock_abi ? "landlock left out, as asked" :
				  "neither user namespaces nor landlock: whatever the caller may",
			.test = held ? "tests/walls/files_read.c" : "" });
	put(w, &(line){ .wall = SB_WALL_FILES, .level = level, .subject = "/usr",
			.mechanism = held ? "landlock, read-only: /usr, and a list of files of /etc" : "none",
			.test = held ? "tests/walls/files_write.c" : "" });
	if (held && spec && (spec->allow_weaker & SB_WALL_BIT(SB_WALL_FILES)))
		put(w, &(line){ .wall = SB_WALL_FILES, .level = SB_LEVEL_NONE, .mechanism = "none",
				.subject = "protected and hidden",
				.caveat = "nothing beneath what is shown can be hidden or protected without user "
					  "namespaces" });
	for (i = 0; i < w->d->table.len; i++)
		row_line(w, &w->d->table.at[i]);
	w->held.fs_bounds = level;
}

static void files(writer *w)
{
	bool landlock = w->d->steps & LP_LANDLOCK;
	size_t i;

	put(w, &(line){ .wall = SB_WALL_FILES, .level = SB_LEVEL_HARD,
			.mechanism = landlock ? "mount namespace with a root of its own, and landlock" :
						"mount namespace with a root of its own",
			.caveat = landlock ? "denials show as the guest's own error, not as an event" :
				  w->d->wish.facts->landlock_abi ? "landlock left out, as asked" :
				  "no landlock in this kernel: the mounts stand alone",
			.subject = "/", .test = "tests/walls/files_read.c" });
	put(w, &(line){ .wall = SB_WALL_FILES, .level = SB_LEVEL_HARD,
			.mechanism = "read-only system: /usr, and a list of files of /etc",
			.subject = "/usr", .test = "tests/walls/files_write.c" });
	if (!w->d->wish.facts->proc_fresh)
		put(w, &(line){ .wall = SB_WALL_FILES, .level = SB_LEVEL_HARD, .subject = "/proc",
				.mechanism = "empty directory", .caveat = "other mounts cover parts of /proc, "
				"as in a container, so no fresh one may be mounted: programs that read it fail" });
	for (i = 0; i < w->d->table.len; i++)
		row_line(w, &w->d->table.at[i]);
	w->held.fs_bounds = SB_LEVEL_HARD;
}

static void limits_above(writer *w);

static int files_rest(sb_plan *plan, void *kept, sb_error *err)
{
	const linux_design *d = kept;
	writer w = { .plan = plan, .request = d->wish.request, .d = d, .err = err };
	size_t i;

	for (i = 0; i < d->table.len; i++)
		row_path(&w, &d->table.at[i]);
	submounts(&w);
	limits_above(&w);
	if (!w.rc && held_by_landlock(&w) == SB_LEVEL_NONE)
		w.rc = plan_add_path(plan, "/", SB_FILE_WRITE, "no wall: whatever the caller may", err);
	else if (!w.rc)
		w.rc = plan_add_path(plan, "/", SB_FILE_HIDE, d->wish.in_place ?
				     "cannot be opened unless named (--ro, --rw)" :
				     "not there unless named (--ro, --rw)", err);
	if (!d->wish.in_place)
		plan_set_above(plan, "only what is shown beneath it");
	return w.rc;
}

/* ---- The walls without numbers --------------------------------------------------------------------- */

/* Of the host's: where a socket may lie, or be made. */
static bool shows_directories(const writer *w)
{
	struct stat st;
	size_t i;

	for (i = 0; i < w->d->table.len; i++) {
		const mount_row *row = &w->d->table.at[i];

		if (row->kind == LP_M_BIND && (row->origin == MOUNT_WORKSPACE || row->origin == MOUNT_RULE) &&
		    row->fd >= 0 && !fstat(row->fd, &st) && S_ISDIR(st.st_mode))
			return true;
	}
	return false;
}

static void network(writer *w)
{
	if (w->d->wish.net) {
		put(w, &(line){ .wall = SB_WALL_NETWORK, .level = SB_LEVEL_NONE, .subject = "host",
				.mechanism = "the host's network, as asked",
				.caveat = "reaches all that the caller reaches, this machine's own services "
					  "included" });
		return;
	}
	if (w->d->wish.in_place) {
		put(w, &(line){ .wall = SB_WALL_NETWORK, .level = SB_LEVEL_HARD, .subject = "deny_all",
				.mechanism = "seccomp: no socket but pairs of unix ones",
				.caveat = "no loopback either: refused with EPERM",
				.test = "tests/walls/network.c" });
		w->held.net_modes = 1u << SB_NET_DENY_ALL;
		w->held.unix_sockets = 1;
		return;
	}
	put(w, &(line){ .wall = SB_WALL_NETWORK, .level = SB_LEVEL_HARD, .subject = "deny_all",
			.mechanism = "empty network namespace, own loopback only",
			.caveat = shows_directories(w) ? "a unix socket that a program of this machine makes "
				  "later in a directory that is shown can be dialled; those of the start are "
				  "hidden" : "",
			.test = "tests/walls/network.c" });
	w->held.net_modes = 1u << SB_NET_DENY_ALL;
	w->held.unix_sockets = !shows_directories(w);
}

static void confinement(writer *w)
{
	const linux_facts *facts = w->d->wish.facts;
	char subject[64];

	put(w, &(line){ .wall = SB_WALL_SYSCALLS, .level = SB_LEVEL_HARD,
			.mechanism = "seccomp allow list", .test = "tests/walls/syscalls.c",
			.caveat = "what is not on the list fails with ENOSYS, what is dangerous with EPERM; other "
				  "ABIs are killed" });
	if (w->d->apart)
		snprintf(subject, sizeof subject, "one of %u uids from %u", w->d->uid_count,
			 w->d->uid_first);
	else
		snprintf(subject, sizeof subject, "uid %u", (unsigned)facts->uid);
	put(w, &(line){ .wall = SB_WALL_PRIVILEGES, .level = SB_LEVEL_HARD, .subject = subject,
			.mechanism = facts->no_userns ? "no capability, no new privileges" :
				     "no capability, no new privileges, nested user namespace",
			.caveat = w->d->apart ? "the guest's uid owns nothing on this machine" :
				  w->d->wish.in_place ? "the guest has the caller's uid and groups, behind landlock" :
				  "the guest has the caller's uid and groups, behind mounts and landlock",
			.test = "tests/walls/setuid.c" });
	if (w->d->wish.in_place)
		put(w, &(line){ .wall = SB_WALL_PROCESSES, .level = SB_LEVEL_NONE, .mechanism = "none",
				.caveat = w->d->apart || (w->d->steps & LP_LANDLOCK_SCOPE) ?
					  "no user namespaces: learns of the machine's processes, and cannot signal "
					  "them" :
					  "no user namespaces: learns of the machine's processes, and may signal the "
					  "caller's, but for sb-launch" });
	else
		put(w, &(line){ .wall = SB_WALL_PROCESSES, .level = SB_LEVEL_HARD,
				.mechanism = "pid, ipc and uts namespaces; all end with pid 1",
				.caveat = w->d->steps & LP_LANDLOCK_SCOPE || !w->d->wish.net ? "" :
					  "abstract sockets of the host's network namespace can be reached",
				.test = "tests/walls/processes.c" });
	put(w, &(line){ .wall = SB_WALL_ENV, .level = SB_LEVEL_HARD, .mechanism = "complete environment, "
			"built anew", .caveat = "nothing of the caller's but what was named",
			.test = "tests/walls/environment.c" });
	w->held.env_allow_list = 1;
}

/* ---- The walls with numbers ------------------------------------------------------------------------- */

/* In place the caller's cgroup lies open to whoever has the caller's uid, unless landlock closes it. */
static uint32_t cgroup_level(const writer *w)
{
	return held_by_landlock(w) == SB_LEVEL_HARD || w->d->apart ? SB_LEVEL_HARD : SB_LEVEL_COOPERATIVE;
}

static void memory_caveat(const writer *w, uint64_t limit, char *out, size_t cap)
{
	const char *netlink = w->d->wish.net ? "; queues of netlink sockets count nowhere" : "";
	char size[32];

	if (w->d->memory_sampled)
		snprintf(out, cap, "no cgroup to be had: a burst between two looks gets through; memory files, "
			 "shared memory that nobody has mapped, pipes and socket buffers are not seen (each "
			 "file is bounded by RLIMIT_FSIZE)");
	else if (w->d->cgroup.kind != LP_CG_V1)
		snprintf(out, cap, "tmpfs, page cache and socket buffers count in it%s", netlink);
	else
		snprintf(out, cap, "tmpfs and page cache count in it; buffers of TCP and UDP apart, up to %s, which a "
			 "crowd of TCP sockets may exceed until a watcher sees it%s",
			 size_text(LP_SOCKET_BYTES(limit), size), netlink);
}

static void memory(writer *w)
{
	const sb_limits *limits = w->request->limits;
	bool v2 = w->d->cgroup.kind != LP_CG_V1;
	char text[32], caveat[240];
	line l = { .wall = SB_WALL_MEMORY, .level = cgroup_level(w), .subject = text, .caveat = caveat,
		.mechanism = v2 ? "cgroup2 memory.max" : "cgroup1 memory.limit_in_bytes",
		.test = "tests/walls/memory.c" };

	if (!limits_is_set(limits->memory_bytes)) {
		unlimited(w, SB_WALL_MEMORY);
		return;
	}
	size_text(limits->memory_bytes, text);
	memory_caveat(w, limits->memory_bytes, caveat, sizeof caveat);
	if (w->d->memory_sampled) {
		l.level = SB_LEVEL_SAMPLED;
		l.mechanism = "watcher over /proc, the tree killed";
	}
	w->held.memory_cap = l.level;
	put(w, &l);
}

static void cpu_budget(writer *w, uint64_t cpu_ms)
{
	static const char *const mechanisms[3][2] = {
		{ "watcher over /proc, RLIMIT_CPU behind it", "" },
		{ "watcher of cgroup1 cpuacct.usage, RLIMIT_CPU behind it",
		  "cgroup1 cpu.cfs_quota_us: what is left of it, lent for a second at a time" },
		{ "watcher of cgroup2 cpu.stat, RLIMIT_CPU behind it",
		  "cgroup2 cpu.max: what is left of it, lent for a second at a time" } };
	uint32_t have = w->d->cgroup.controllers;
	bool counted = have & LP_CTL_CPUACCT, lent = counted && (have & LP_CTL_CPU);
	uint32_t level = lent ? cgroup_level(w) : SB_LEVEL_SAMPLED;
	char text[48];

	clock_text(cpu_ms, text);
	put(w, &(line){ .wall = SB_WALL_CPU, .level = level, .subject = text,
			.mechanism = mechanisms[!counted ? 0 : w->d->cgroup.kind == LP_CG_V1 ? 1 : 2][lent],
			.caveat = lent ? "the kernel gives no more than that and 10 ms, a watcher then kills; if it "
					 "is late, the same once more in each further second" :
				  counted ? "killed at the first look after the limit" :
				  "children whose parent ignores SIGCHLD are not counted once they ended",
			.test = "tests/walls/cpu.c" });
	w->held.cpu_cap = level;
}

static void cpu(writer *w)
{
	const sb_limits *limits = w->request->limits;
	bool rate = w->d->cgroup.controllers & LP_CTL_CPU;
	char text[48];

	if (!limits_is_set(limits->cpu_ms) && !limits_is_set(limits->cpu_millicores)) {
		unlimited(w, SB_WALL_CPU);
		return;
	}
	if (limits_is_set(limits->cpu_ms))
		cpu_budget(w, limits->cpu_ms);
	if (limits_is_set(limits->cpu_millicores)) {
		snprintf(text, sizeof text, "%llu thousandths of a core",
			 (unsigned long long)limits->cpu_millicores);
		put(w, &(line){ .wall = SB_WALL_CPU, .level = rate ? SB_LEVEL_HARD : SB_LEVEL_NONE,
				.subject = text,
				.mechanism = !rate ? "none" : w->d->cgroup.kind == LP_CG_V1 ?
					     "cgroup1 cpu.cfs_quota_us" : "cgroup2 cpu.max",
				.caveat = rate ? "" : "a rate needs a cgroup, and none is to be had here" });
	}
}

static void pids(writer *w)
{
	const sb_limits *limits = w->request->limits;
	const linux_facts *facts = w->d->wish.facts;
	/* counted by user namespace since Linux 5.14; before, all that the caller runs is counted */
	bool own = facts->no_userns || facts->kernel[0] > 5 || (facts->kernel[0] == 5 && facts->kernel[1] >= 14);
	char text[32];

	if (!limits_is_set(limits->procs)) {
		unlimited(w, SB_WALL_PIDS);
		return;
	}
	snprintf(text, sizeof text, "%llu", (unsigned long long)limits->procs);
	if (w->d->pids_watched)
		put(w, &(line){ .wall = SB_WALL_PIDS, .level = SB_LEVEL_SAMPLED, .subject = text,
				.mechanism = "RLIMIT_NPROC, and a watcher over /proc, the tree killed",
				.caveat = w->d->apart ? "threads count" :
					  "what else the caller starts meanwhile counts in the first, so more may "
					  "be had for a moment, or less",
				.test = "tests/walls/pids.c" });
	else if (w->d->pids_rlimit)
		put(w, &(line){ .wall = SB_WALL_PIDS, .level = own ? SB_LEVEL_HARD : SB_LEVEL_COOPERATIVE,
				.subject = text,
				.mechanism = facts->no_userns ? "RLIMIT_NPROC of a uid of its own" :
					     "RLIMIT_NPROC in a user namespace of its own",
				.caveat = own ? "refused forks are not counted" :
					  "before Linux 5.14 all processes of the caller count in it",
				.test = "tests/walls/pids.c" });
	else
		put(w, &(line){ .wall = SB_WALL_PIDS, .level = cgroup_level(w), .subject = text,
				.mechanism = w->d->cgroup.kind == LP_CG_V1 ? "cgroup1 pids.max" :
									     "cgroup2 pids.max",
				.caveat = "threads count", .test = "tests/walls/pids.c" });
}

/* Cgroups above ours that allow less than was asked for: what they allow is what the guest gets. */
static void limits_above(writer *w)
{
	const sb_limits *limits = w->request->limits;
	const cgroup_place *place = &w->d->cgroup;
	uint64_t memory = SB_UNLIMITED, processes = SB_UNLIMITED;
	char text[32];
	size_t i;

	for (i = 0; i < place->count; i++) {
		if (place->at[i].controllers & LP_CTL_MEMORY)
			memory = cgroup_above("", place->at[i].path, place->kind == LP_CG_V1 ?
					      "memory.limit_in_bytes" : "memory.max");
		if (place->at[i].controllers & LP_CTL_PIDS)
			processes = cgroup_above("", place->at[i].path, "pids.max");
	}
	if (limits_is_set(limits->memory_bytes) && memory < limits->memory_bytes)
		put(w, &(line){ .wall = SB_WALL_MEMORY, .level = cgroup_level(w), .subject = size_text(memory, text),
				.mechanism = "a limit of a cgroup above",
				.caveat = "less than was asked for, and shared with all that is in there",
				.test = "tests/vm/v2.case" });
	if (limits_is_set(limits->procs) && processes < limits->procs) {
		snprintf(text, sizeof text, "%llu", (unsigned long long)processes);
		put(w, &(line){ .wall = SB_WALL_PIDS, .level = cgroup_level(w), .subject = text,
				.mechanism = "a limit of a cgroup above",
				.caveat = "less than was asked for, and shared with all that is in there",
				.test = "tests/vm/v2.case" });
	}
}

static void disk(writer *w)
{
	const sb_limits *limits = w->request->limits;
	bool limited = limits_is_set(limits->fs_bytes) || limits_is_set(limits->fs_nodes);
	char text[96], size[32];
	size_t i;

	if (w->d->wish.in_place)
		put(w, &(line){ .wall = SB_WALL_DISK, .level = SB_LEVEL_NONE, .mechanism = "none",
				.caveat = "no user namespaces: no file system of its own" });
	size_text(w->d->scratch_bytes, size);
	if (limits_is_set(limits->fs_nodes))
		snprintf(text, sizeof text, "%s, %llu files", size, (unsigned long long)limits->fs_nodes);
	else
		snprintf(text, sizeof text, "%s", size);
	if (!w->d->wish.in_place)
		put(w, &(line){ .wall = SB_WALL_DISK, .level = SB_LEVEL_HARD, .subject = text,
				.mechanism = "one tmpfs with size and inode limits",
				.caveat = limited ? "counted in pages of 4 KiB; refused writes are known only if "
					  "it is full at the end" : "half of the memory, and counted in it",
				.test = "tests/walls/disk.c" });
	for (i = 0; i < w->d->table.len; i++) {
		const mount_row *row = &w->d->table.at[i];

		if (row->access == SB_FILE_WRITE && row->kind == LP_M_BIND &&
		    (row->origin == MOUNT_WORKSPACE || row->origin == MOUNT_RULE))
			put(w, &(line){ .wall = SB_WALL_DISK, .level = SB_LEVEL_NONE, .mechanism = "none",
					.subject = row->target,
					.caveat = "a directory of the host has no quota of ours" });
	}
	w->held.disk_cap = limited && !w->d->wish.in_place ? SB_LEVEL_HARD : SB_LEVEL_NONE;
}

static void time_line(writer *w, const char *text)
{
	/* cgroup.kill: since Linux 5.14 */
	bool all = w->d->cgroup.kind >= LP_CG_V2 && cgroup_level(w) == SB_LEVEL_HARD &&
		   (w->d->wish.facts->kernel[0] > 5 ||
		    (w->d->wish.facts->kernel[0] == 5 && w->d->wish.facts->kernel[1] >= 14));

	if (!w->d->wish.in_place)
		put(w, &(line){ .wall = SB_WALL_TIME, .level = SB_LEVEL_HARD, .subject = text,
				.mechanism = "deadline outside the walls, the pid namespace killed",
				.test = "tests/walls/time.c" });
	else
		put(w, &(line){ .wall = SB_WALL_TIME, .subject = text,
				.level = all ? SB_LEVEL_HARD : SB_LEVEL_SAMPLED,
				.mechanism = all ? "deadline outside the walls, cgroup.kill" :
						   "deadline outside the walls, the tree killed",
				.caveat = all ? "" : "descendants are looked for over /proc until none is left",
				.test = "tests/walls/time.c" });
}

static void host_walls(writer *w)
{
	const sb_limits *limits = w->request->limits;
	char text[64];

	if (limits_is_set(limits->wall_ms)) {
		clock_text(limits->wall_ms, text);
		time_line(w, text);
	} else {
		unlimited(w, SB_WALL_TIME);
	}
	if (limits_is_set(limits->out_total_bytes) || limits_is_set(limits->out_stream_bytes)) {
		bool total = limits_is_set(limits->out_total_bytes);
		char size[32];

		size_text(total ? limits->out_total_bytes : limits->out_stream_bytes, size);
		snprintf(text, sizeof text, "%s%s", size, total ? " in all" : " a stream");
		put(w, &(line){ .wall = SB_WALL_OUTPUT, .level = SB_LEVEL_HARD, .subject = text,
				.mechanism = limits->out_mode == SB_OUT_STOP ?
					     "bounded reader outside the walls, ends the guest" :
					     "bounded reader outside the walls, drops what is more",
				.test = "tests/walls/output.c" });
	} else {
		unlimited(w, SB_WALL_OUTPUT);
	}
}

static void release(void *kept)
{
	design_release(kept);
	free(kept);
}

const linux_design *linux_plan_design(const sb_plan *plan, const sb_box_request *request)
{
	const linux_design *d = plan_kept(plan, release);

	return d && d->wish.request == request ? d : NULL;
}

static const char *seccomp_text(const linux_design *d)
{
	if (d->wish.in_place)
		return d->wish.net ? lh_seccomp_oci_place_net : lh_seccomp_oci_place;
	return d->wish.net ? lh_seccomp_oci_host_net : lh_seccomp_oci_json;
}

int linux_plan(sb_state *state, const sb_box_request *request, sb_plan *plan, sb_error *err)
{
	linux_design *d = malloc(sizeof *d);
	writer w = { .plan = plan, .request = request, .d = d, .err = err,
		.held = { .size = sizeof w.held } };

	if (!d)
		return error_no_memory(err, "plan");
	w.rc = design_make(state, request, d, err);
	if (w.rc) {
		free(d);
		return w.rc;
	}
	plan_keep(plan, d, files_rest, release);
	if (d->wish.in_place)
		files_in_place(&w);
	else
		files(&w);
	network(&w);
	confinement(&w);
	memory(&w);
	cpu(&w);
	pids(&w);
	disk(&w);
	host_walls(&w);
	if (!w.rc)
		w.rc = sb_plan_set_caps(plan, d->wish.in_place ? LINUX_CAPS & ~SB_CAP_FILES : LINUX_CAPS);
	if (!w.rc)
		w.rc = sb_plan_set_enforcement(plan, &w.held);
	if (!w.rc)
		w.rc = plan_set_constant(plan, "seccomp", seccomp_text(d), err);
	return w.rc;
}

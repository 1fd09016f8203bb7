/* SPDX-License-Identifier: MIT */
/* plan.c - PLAN.  The first byte is the number of descriptors, seven more keep the record aligned. */
#include "fuzz.h"

#include "../src/launch/protocol.h"

#define LEAD 8

static void use_string(const lp_plan_view *v, uint32_t at)
{
	FUZZ_CHECK(at < v->plan->string_bytes);
	FUZZ_CHECK(strlen(v->strings + at) < v->plan->string_bytes - at);
}

/* All that sb-launch may rely on. */
static void use_plan(const lp_plan_view *v, size_t fds)
{
	const lp_plan *p = v->plan;
	uint32_t i;

	use_string(v, p->hostname);
	use_string(v, p->cgroup_name);
	FUZZ_CHECK(memchr(p->build_id, 0, sizeof p->build_id));
	FUZZ_CHECK(p->cgroup_count <= LP_MAX_CGROUPS);
	for (i = 0; i < p->cgroup_count; i++)
		use_string(v, p->cgroups[i].parent);
	for (i = 0; i < p->mount_count; i++) {
		const lp_mount *m = &v->mounts[i];

		use_string(v, m->source);
		use_string(v, m->target);
		FUZZ_CHECK(m->kind >= LP_M_DIR && m->kind <= LP_M_REMOUNT_RO);
		FUZZ_CHECK(m->source_fd >= -1 && m->source_fd < (int32_t)fds);
		if (m->kind != LP_M_REMOUNT_RO) {
			FUZZ_CHECK(v->strings[m->target] == '/');
			FUZZ_CHECK(!strstr(v->strings + m->target, "/../"));
		}
	}
}

int fuzz_one(uint8_t *data, size_t len)
{
	const char *why = NULL;
	lp_plan_view view;
	size_t fds;

	if (len < LEAD)
		return 0;
	fds = data[0];
	if (lp_decode_plan(data + LEAD, len - LEAD, fds, &view, &why) < 0) {
		fuzz_check_why(why);
		return 0;
	}
	use_plan(&view, fds);
	return 1;
}

/* ---- Seeds ----------------------------------------------------------------------------------- */

typedef struct draft {
	lp_plan p;
	lp_mount mounts[32];
	char strings[2048];
} draft;

static uint32_t string_add(draft *d, const char *text)
{
	uint32_t at = d->p.string_bytes;

	memcpy(d->strings + at, text, strlen(text) + 1);
	d->p.string_bytes += (uint32_t)strlen(text) + 1;
	return at;
}

static void mount_add(draft *d, int kind, int fd, const char *source, const char *target, int flags,
		      uint64_t arg)
{
	d->mounts[d->p.mount_count++] = (lp_mount){ .kind = (uint16_t)kind, .flags = (uint16_t)flags,
		.source_fd = fd, .source = string_add(d, source), .target = string_add(d, target),
		.arg = arg };
}

static void draft_begin(draft *d)
{
	memset(d, 0, sizeof *d);
	d->p.string_bytes = 1;
	memcpy(d->p.build_id, "0.1.0-seed", 10);
	d->p.memory_bytes = d->p.pids = d->p.cpu_us = d->p.cpu_millicores = (uint64_t)-1;
	d->p.open_files = d->p.user_procs = d->p.file_bytes = (uint64_t)-1;
}

static void draft_full(draft *d)
{
	d->p.steps = (LP_OWN_GROUP * 2 - 1) & ~LP_SUBREAPER;
	d->p.uid_outside = 1879048192;
	d->p.uid_inside = 1000;
	d->p.tmpfs_bytes = 64 << 20;
	d->p.tmpfs_nodes = 1000;
	d->p.memory_bytes = 128 << 20;
	d->p.sample_us = 50000;
	d->p.hostname = string_add(d, "sandbox");
	d->p.fd_count = 2;
	mount_add(d, LP_M_DIR, -1, "", "/etc", 0, 0755);
	mount_add(d, LP_M_SYMLINK, -1, "usr/bin", "/bin", 0, 0);
	mount_add(d, LP_M_FILE, -1, "root:x:0:0::/:/bin/sh\n", "/etc/passwd", 0, 0644);
	mount_add(d, LP_M_BIND, -1, "/usr", "/usr", LP_F_READONLY, 0);
	mount_add(d, LP_M_BIND, 1, "/home/u/w", "/home/u/w", LP_F_FD | LP_F_IDMAP | LP_F_WRITE, 0);
	mount_add(d, LP_M_SCRATCH, -1, "tmp", "/tmp", LP_F_WRITE, 01777);
	mount_add(d, LP_M_TMPFS, -1, "", "/var/tmp", 0, 1 << 20);
	mount_add(d, LP_M_PROC, -1, "", "/proc", 0, 0);
	mount_add(d, LP_M_DEVPTS, -1, "", "/dev/pts", 0, 0);
	mount_add(d, LP_M_DEVICE, -1, "/dev/null", "/dev/null", 0, 0);
	mount_add(d, LP_M_HIDE, -1, "", "/usr/share/x", LP_F_OPTIONAL, 0);
	mount_add(d, LP_M_PROTECT, -1, "", "/home/u/w/.git/hooks", LP_F_OPTIONAL, 0);
	mount_add(d, LP_M_REMOUNT_RO, -1, "", "/", 0, 0);
}

static void draft_cgroups(draft *d, uint32_t kind)
{
	d->p.cgroup_kind = kind;
	d->p.cgroup_name = string_add(d, "sandbox-12-3456");
	d->p.cgroups[0] = (lp_cgroup){ string_add(d, "/sys/fs/cgroup/memory/x"), LP_CTL_MEMORY };
	d->p.cgroups[1] = (lp_cgroup){ string_add(d, "/sys/fs/cgroup/pids"), LP_CTL_PIDS };
	d->p.cgroup_count = kind == LP_CG_V1 ? 2 : 1;
}

size_t fuzz_seed(size_t at, uint8_t *out, size_t cap)
{
	static draft d;
	size_t mounts, len;

	draft_begin(&d);
	if (at == 1 || at == 2)
		draft_full(&d);
	if (at == 2 || at == 3)
		draft_cgroups(&d, at == 2 ? LP_CG_V1 : LP_CG_V2);
	if (at == 4)
		d.p.steps = LP_SUBREAPER | LP_SAMPLE | LP_CLOSE_FDS, d.p.sample_us = 5000;
	mounts = d.p.mount_count * sizeof(lp_mount);
	len = LEAD + sizeof d.p + mounts + d.p.string_bytes;
	if (at > 4 || len > cap)
		return 0;
	d.p.head = (lp_head){ LP_VERSION, LP_PLAN, (uint32_t)(len - LEAD), 0 };
	memset(out, 0, LEAD);
	out[0] = (uint8_t)d.p.fd_count;
	memcpy(out + LEAD, &d.p, sizeof d.p);
	memcpy(out + LEAD + sizeof d.p, d.mounts, mounts);
	memcpy(out + LEAD + sizeof d.p + mounts, d.strings, d.p.string_bytes);
	return len;
}

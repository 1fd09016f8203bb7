/* SPDX-License-Identifier: MIT */
/*
 * host_plan.c - a PLAN under construction: fixed part, mount table, arena of strings, descriptors.
 */
#include "host.h"

lh_plan *lh_plan_new(void)
{
	lh_plan *plan = malloc(sizeof *plan);
	lp_plan *p;

	if (!plan)
		return NULL;
	/* mounts, strings and fds are written before they count: no need to touch 56 KiB here */
	plan->mount_count = plan->fd_count = 0;
	plan->failed = 0;
	plan->strings[0] = 0;
	plan->string_bytes = 1;
	p = &plan->fixed;
	memset(p, 0, sizeof *p);
	p->memory_bytes = p->pids = p->cpu_us = p->cpu_millicores = SB_UNLIMITED;
	p->open_files = p->user_procs = p->file_bytes = SB_UNLIMITED;
	return plan;
}

void lh_plan_free(lh_plan *plan)
{
	free(plan);
}

uint32_t lh_plan_string(lh_plan *plan, const char *text)
{
	size_t bytes;
	uint32_t at = plan->string_bytes;

	if (plan->failed || !text || !*text)
		return 0;
	bytes = strlen(text) + 1;
	if (bytes > LP_MAX_STRINGS - at) {
		plan->failed = SB_ERR_INVALID_SPEC;
		return 0;
	}
	memcpy(plan->strings + at, text, bytes);
	plan->string_bytes += (uint32_t)bytes;
	return at;
}

int32_t lh_plan_fd(lh_plan *plan, int fd)
{
	uint32_t i;

	if (plan->failed)
		return -1;
	if (fd < 0) {
		plan->failed = SB_ERR_INVALID;
		return -1;
	}
	for (i = 0; i < plan->fd_count; i++)
		if (plan->fds[i] == fd)
			return (int32_t)i;
	if (plan->fd_count == LP_MAX_FDS) {
		plan->failed = SB_ERR_INVALID_SPEC;
		return -1;
	}
	plan->fds[plan->fd_count] = fd;
	return (int32_t)plan->fd_count++;
}

static void mount_add(lh_plan *plan, int kind, int32_t fd, const char *source, const char *target,
		      int flags, uint64_t arg)
{
	lp_mount *m = &plan->mounts[plan->mount_count];
	uint32_t from = lh_plan_string(plan, source), to = lh_plan_string(plan, target);

	if (plan->failed)
		return;
	if (plan->mount_count == LP_MAX_MOUNTS) {
		plan->failed = SB_ERR_INVALID_SPEC;
		return;
	}
	memset(m, 0, sizeof *m);
	m->kind = (uint16_t)kind;
	m->flags = (uint16_t)flags;
	m->source_fd = fd;
	m->source = from;
	m->target = to;
	m->arg = arg;
	plan->mount_count++;
}

void lh_plan_mount(lh_plan *plan, int kind, const char *source, const char *target, int flags,
		   uint64_t arg)
{
	mount_add(plan, kind, -1, source, target, flags & ~LP_F_FD, arg);
}

void lh_plan_mount_fd(lh_plan *plan, int kind, int fd, const char *source, const char *target,
		      int flags, uint64_t arg)
{
	int32_t index = lh_plan_fd(plan, fd);

	mount_add(plan, kind, index, source, target, flags | LP_F_FD, arg);
}

void lh_plan_cgroup(lh_plan *plan, const char *parent, uint32_t controllers)
{
	lp_plan *p = &plan->fixed;
	uint32_t at = lh_plan_string(plan, parent);

	if (plan->failed)
		return;
	if (p->cgroup_count == LP_MAX_CGROUPS) {
		plan->failed = SB_ERR_INVALID_SPEC;
		return;
	}
	p->cgroups[p->cgroup_count].parent = at;
	p->cgroups[p->cgroup_count++].controllers = controllers;
}

int lh_plan_too_large(sb_error *err)
{
	return error_set(err, SB_ERR_INVALID_SPEC, "plan",
			 "too many file rules: at most %u entries, %u descriptors and %u bytes of paths "
			 "fit into one sandbox; name directories instead of files",
			 LP_MAX_MOUNTS, LP_MAX_FDS, LP_MAX_STRINGS);
}

int lh_plan_check(const lh_plan *plan, sb_error *err)
{
	if (!plan->failed)
		return 0;
	if (plan->failed == SB_ERR_INVALID_SPEC)
		return lh_plan_too_large(err);
	return error_set(err, plan->failed, "plan", "the plan cannot be built");
}

/* SPDX-License-Identifier: MIT */
/*
 * trial.c - what only doing tells: can there be user namespaces at all?  Does the user's systemd do what it
 * is asked for?  (Mapped ids: idmap.c.)
 *
 * An sb-launch with the smallest plan that has it in it: READY or FAILED is the answer, about 2 ms later.
 */
#include "linux.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIAL_MS 5000u
#define SCOPE_MS 6000u         /* sb-launch gives up before it */

bool trial_plan(const char *helper, const lh_plan *plan, unsigned ms, sb_error *err)
{
	const sb_call call = { .size = sizeof call, .cancel_fd = -1,
		.deadline_ns = clock_deadline_ns(clock_now_ns(), ms) };
	sb_box *box = launched_box_new(NULL);
	bool works = box && !lh_start(helper, plan, &box->launch, err) &&
		     !launched_box_wait_ready(box, &call, err);

	launched_box_destroy(box);
	return works;
}

/* ---- User namespaces ------------------------------------------------------------------------------- */

static bool is_on(const char *path)
{
	int FD_AUTO fd = open_regular(AT_FDCWD, path);
	char first;

	return fd >= 0 && read(fd, &first, 1) == 1 && first != '0';
}

/* Does this say that it is forbidden, and not that something has run out or is amiss elsewhere? */
static bool is_forbidden(const sb_error *err, bool apparmor)
{
	if (!apparmor && strncmp(err->where, "userns", 6) && strncmp(err->where, "namespaces", 10))
		return false;
	return err->os_errno == EPERM || err->os_errno == EACCES || err->os_errno == ENOSYS ||
	       err->os_errno == EINVAL;
}

bool trial_userns(sb_state *state)
{
	const linux_facts *facts = &state->facts;
	sb_error err = { 0 };
	lh_plan *plan;
	bool works, apparmor;
	int i;

	if (facts->root_caller || !state->helper)
		return true;
	apparmor = is_on("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
	if (prctl(PR_GET_SECCOMP) != 2 && !apparmor)
		return true;
	plan = lh_plan_new();
	if (!plan)
		return true;
	/* AppArmor lets one be made, and takes every capability in it */
	plan->fixed.steps = LP_USERNS | (apparmor ? LP_PIDNS | LP_MOUNTNS | LP_ROOT : 0);
	plan->fixed.uid_outside = plan->fixed.uid_outer = plan->fixed.uid_inside = facts->uid;
	plan->fixed.gid_outside = plan->fixed.gid_outer = plan->fixed.gid_inside = facts->gid;
	/* What is forbidden stays so: one refusal alone is no reason to go without these walls. */
	for (i = 0, works = false; i < 2 && !works; i++)
		works = trial_plan(state->helper, plan, TRIAL_MS, &err) || !is_forbidden(&err, apparmor);
	lh_plan_free(plan);
	return works;
}

/* ---- A scope ------------------------------------------------------------------------------------------- */

bool trial_scope(sb_state *state)
{
	const cgroup_place *place = &state->facts.cgroup;
	lh_plan *plan = state->helper ? lh_plan_new() : NULL;
	char *remedy;
	bool works;

	if (!plan)
		return !state->helper; /* explain without sb-launch: create() tells */
	plan->fixed.steps = LP_SUBREAPER;
	plan->fixed.cgroup_kind = place->kind;
	linux_cgroup_name(plan);
	lh_plan_cgroup(plan, cgroup_parent_of(place, 0), place->at[0].controllers);
	plan->fixed.memory_bytes = 64 << 20;
	plan->fixed.pids = 64;
	works = !plan->failed && trial_plan(state->helper, plan, SCOPE_MS, &state->no_scope);
	lh_plan_free(plan);
	remedy = works ? NULL : strstr(state->no_scope.message, "; "); /* doctor has another */
	if (remedy)
		*remedy = 0;
	return works;
}

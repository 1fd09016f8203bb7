/* SPDX-License-Identifier: MIT */
/*
 * probe.c - before a run: the cheap facts.  For doctor: the real operations, one box for each thing
 * that may be missing and one with everything.
 */
#include "warm.h"
#include "../../launch/launch.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define TRY_MS 5000u

typedef struct doctor {
	sb_state *state;
	sb_report *report;
	const sb_call *call;
	sb_error *err;
	bool userns;                  /* works, or root does without: nothing else can be tried else */
	bool usable;                  /* something can be run behind walls */
	int rc;
} doctor;

static void told(doctor *doc, const char *what, bool ok, const char *found, const char *remedy)
{
	const sb_check check = { .size = sizeof check, .backend = "linux", .what = what,
		.found = found, .remedy = ok || !remedy ? "" : remedy, .ok = ok };

	if (!doc->rc)
		doc->rc = sb_report_add(doc->report, &check, doc->err);
}

/* What failed, and what to do, are one message: told apart here. */
static void told_failure(doctor *doc, const char *what, const sb_error *failure)
{
	char found[sizeof failure->message];
	char *remedy;

	memcpy(found, failure->message, sizeof found);
	remedy = strstr(found, "; ");
	if (remedy) {
		*remedy = 0;
		remedy += 2;
	}
	told(doc, what, false, found, remedy);
}

/* ---- One step, really done --------------------------------------------------------------------------- */

static lh_plan *small_plan(const doctor *doc, uint64_t steps)
{
	const linux_facts *facts = &doc->state->facts;
	lh_plan *plan = lh_plan_new();

	if (!plan)
		return NULL;
	plan->fixed.steps = steps | (facts->root_caller ? LP_OWN_GROUP : 0);
	if (!(steps & LP_SUBREAPER))
		plan->fixed.steps |= LP_PIDNS | (linux_unmapped(facts) ? 0 : LP_USERNS);
	if (facts->root_caller) {
		plan->fixed.uid_outside = plan->fixed.gid_outside = facts->uid_first;
		plan->fixed.uid_inside = plan->fixed.gid_inside = 1000;
		if (linux_unmapped(facts))
			plan->fixed.uid_outer = plan->fixed.gid_outer = facts->uid_first;
	} else {
		plan->fixed.uid_outside = plan->fixed.uid_outer = plan->fixed.uid_inside = facts->uid;
		plan->fixed.gid_outside = plan->fixed.gid_outer = plan->fixed.gid_inside = facts->gid;
	}
	return plan;
}

/* Starts it; ok = READY came.  The error tells what did not go, and what to do. */
static bool try_plan(const doctor *doc, lh_plan *plan, lp_ready *ready, sb_error *err)
{
	sb_call call = *doc->call;
	uint64_t bound = clock_deadline_ns(clock_now_ns(), TRY_MS);
	sb_box *box = launched_box_new(NULL);
	bool ok;

	*err = (sb_error){ 0 };
	if (bound < call.deadline_ns)
		call.deadline_ns = bound;
	ok = plan && box && !lh_start(doc->state->helper, plan, &box->launch, err) &&
	     !launched_box_wait_ready(box, &call, err);
	if (ok && ready)
		ready->held = box->held;
	launched_box_destroy(box);
	lh_plan_free(plan);
	return ok;
}

static void try_step(doctor *doc, const char *what, uint64_t steps, const char *works)
{
	sb_error err;
	bool ok;

	if (!doc->userns) {
		told(doc, what, false, "not tried: there are no user namespaces", "see user namespaces");
		return;
	}
	ok = try_plan(doc, small_plan(doc, steps), NULL, &err);
	if (ok)
		told(doc, what, true, works, "");
	else
		told_failure(doc, what, &err);
}

/* ---- The single checks --------------------------------------------------------------------------------- */

static void check_helper(doctor *doc)
{
	const char *path = doc->state->helper;

	told(doc, "sb-launch", path != NULL, path ? lh_place(path) : doc->state->helper_missing.message,
	     "install sandbox and sb-launch together");
}

/* Is there a uid for a guest of this caller? */
static bool may_run(const linux_facts *facts)
{
	return !facts->map_errno && !facts->no_spare_uid &&
	       (!facts->root_helpless || (facts->apart_ids && facts->no_userns));
}

static void check_caller(doctor *doc)
{
	const linux_facts *facts = &doc->state->facts;
	char text[128];

	if (facts->map_errno) {
		told(doc, "caller", false, "root, but \"/proc/self/uid_map\" cannot be read",
		     "mount /proc (`mount -t proc proc /proc`)");
		return;
	}
	if (!may_run(facts)) {
		told(doc, "caller", false, facts->root_helpless ?
		     "root without CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID" :
		     "root of a user namespace that maps no other uid",
		     "run it as a plain user");
		return;
	}
	if (facts->root_caller || facts->apart_ids)
		snprintf(text, sizeof text, "root; guests run as one of %u uids from %u",
			 facts->uid_count, facts->uid_first);
	else
		snprintf(text, sizeof text, "uid %u; guests keep it", (unsigned)facts->uid);
	told(doc, "caller", true, text, "");
}

static void check_userns(doctor *doc)
{
	sb_error err;

	if (doc->state->helper && linux_unmapped(&doc->state->facts)) {
		told(doc, "user namespaces", false,
		     "switched off: root's guests get the others, and a uid of their own",
		     "run `sysctl -w user.max_user_namespaces=15000`, so that they can write in a workspace");
		doc->userns = try_plan(doc, small_plan(doc, 0), NULL, &err);
		return;
	}
	doc->userns = doc->state->helper && try_plan(doc, small_plan(doc, 0), NULL, &err);
	if (doc->userns)
		told(doc, "user namespaces", true, "one was made, and mapped", "");
	else if (doc->state->helper)
		told_failure(doc, "user namespaces", &err);
	else
		told(doc, "user namespaces", false, "not tried: there is no sb-launch", "install sb-launch");
}

static void check_proc(doctor *doc)
{
	lh_plan *plan;
	sb_error err;
	bool ok;

	if (!doc->userns)
		return;
	plan = small_plan(doc, LP_MOUNTNS | LP_ROOT | LP_MASK_PROC);
	if (plan)
		lh_plan_mount(plan, LP_M_PROC, "", "/proc", 0, 0);
	ok = try_plan(doc, plan, NULL, &err);
	told(doc, "fresh /proc", ok, ok ? "mounted, and its dangerous parts covered" : err.message,
	     "without one /proc is an empty directory inside; start the container with `--security-opt "
	     "systempaths=unconfined`");
	doc->state->facts.proc_fresh = ok;
}

static void check_landlock(doctor *doc)
{
	uint32_t abi = doc->state->facts.landlock_abi;
	char text[64];

	snprintf(text, sizeof text, abi ? "ABI %u" : "not in this kernel", abi);
	told(doc, "landlock", abi >= 1, text, "boot a kernel with CONFIG_SECURITY_LANDLOCK and "
	     "lsm=landlock,...; the mounts hold without it");
}

static void check_quota(doctor *doc)
{
	lh_plan *plan;
	sb_error err;
	bool ok;

	if (!doc->userns)
		return;
	plan = small_plan(doc, LP_MOUNTNS | LP_ROOT);
	if (plan) {
		plan->fixed.tmpfs_bytes = 1 << 20;
		plan->fixed.tmpfs_nodes = 64;
	}
	ok = try_plan(doc, plan, NULL, &err);
	if (ok)
		told(doc, "tmpfs quota", true, "a tmpfs of 1 MiB and 64 inodes was mounted", "");
	else
		told_failure(doc, "tmpfs quota", &err);
}

static void check_idmap(doctor *doc)
{
	char cwd[4096];
	int FD_AUTO fd = -1;
	bool ok;

	if (!doc->userns || !doc->state->facts.root_caller || doc->state->facts.no_userns || !getcwd(cwd, sizeof cwd))
		return;
	fd = open(cwd, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	ok = idmap_try(&(idmap_asker){ .facts = &doc->state->facts, .helper = doc->state->helper }, cwd, fd);
	told(doc, "id-mapped mounts", ok, ok ? "work where you are" : "not on the file system where you are",
	     "a workspace here is read-only for guests of root; use ext4, xfs, btrfs or tmpfs, or run as "
	     "the owner");
}

static void check_cgroup(doctor *doc)
{
	const cgroup_place *place = &doc->state->facts.cgroup;
	lh_plan *plan;
	char text[640];
	sb_error err;
	uint32_t i;
	bool ok;

	if (place->kind == LP_CG_NONE) {
		snprintf(text, sizeof text, "none that may be written: memory, CPU and processes are watched over "
			 "/proc%s%.300s", doc->state->no_scope.message[0] ? "; " : "",
			 doc->state->no_scope.message);
		told(doc, "cgroup", false, text, "start it under `systemd-run --user --scope -p Delegate=yes`, "
		     "or name a delegated one with --cgroup");
		return;
	}
	if (!doc->userns && !linux_in_place(&doc->state->facts))
		return;
	plan = small_plan(doc, doc->userns ? 0 : LP_SUBREAPER);
	if (plan) {
		linux_cgroup_name(plan);
		plan->fixed.cgroup_kind = place->kind;
		for (i = 0; i < place->count; i++)
			lh_plan_cgroup(plan, cgroup_parent_of(place, i), place->at[i].controllers);
		plan->fixed.memory_bytes = 64 << 20;
		plan->fixed.pids = 64;
	}
	ok = try_plan(doc, plan, NULL, &err);
	for (i = 0; i + 1 < place->count && !(place->at[i].controllers & LP_CTL_MEMORY); i++)
		;
	snprintf(text, sizeof text, "version %d%s below \"%.400s\":%s%s%s", place->kind == LP_CG_V1 ? 1 : 2,
		 place->kind == LP_CG_SCOPE ? ", a scope that your systemd makes" : "", place->at[i].path,
		 place->controllers & LP_CTL_MEMORY ? " memory" : "",
		 place->controllers & LP_CTL_PIDS ? " pids" : "",
		 place->controllers & LP_CTL_CPU ? " cpu" : "");
	if (ok)
		told(doc, "cgroup", true, text, "");
	else
		told_failure(doc, "cgroup", &err);
}

/* ---- Everything at once ---------------------------------------------------------------------------------- */

static void check_whole(doctor *doc)
{
	static const sb_pack pack = { .size = sizeof pack, .name = "probe" };
	const sb_network network = { .size = sizeof network, .mode = SB_NET_DENY_ALL };
	const sb_spec spec = { .size = sizeof spec, .workspace_mode = SB_WORKSPACE_NONE };
	bool in_place = linux_in_place(&doc->state->facts);
	sb_limits limits = { .size = sizeof limits };
	const sb_box_request request = { .size = sizeof request, .spec = &spec, .limits = &limits,
		.network = &network, .pack = in_place ? NULL : &pack, .workspace_fd = -1 };
	sb_box *box = NULL;
	sb_error err = { 0 };

	if (!doc->userns && !in_place)
		return;
	doc->usable = !sb_limits_default(in_place ? SB_PROFILE_COMMAND : SB_PROFILE_CODE, &limits, &err) &&
		      !linux_create(doc->state, &request, NULL, doc->call, &box, &err) &&
		      !launched_box_wait_ready(box, doc->call, &err);
	launched_box_destroy(box);
	if (!doc->usable)
		told_failure(doc, "a sandbox with every wall", &err);
	else if (in_place)
		told(doc, "a sandbox without namespaces", true, "commands can be run in it, code cannot", "");
	else
		told(doc, "a sandbox with every wall", true, "was built and taken down", "");
}

static int report_all(doctor *doc)
{
	const linux_facts *facts = &doc->state->facts;

	check_helper(doc);
	check_caller(doc);
	if (!may_run(facts))
		return doc->rc;
	check_userns(doc);
	check_proc(doc);
	if (!linux_in_place(facts)) {
		try_step(doc, "network namespace", LP_NETNS | LP_LO_UP, "made, loopback up");
		try_step(doc, "ipc, uts and cgroup namespaces", LP_IPCNS | LP_UTSNS | LP_CGROUPNS, "made");
		try_step(doc, "no privileges",
			 (linux_unmapped(facts) ? 0 : LP_NESTED_USERNS) | LP_NO_CAPS | LP_NO_NEW_PRIVS | LP_UNDUMPABLE,
			 linux_unmapped(facts) ? "capabilities dropped" :
						 "nested user namespace, capabilities dropped");
		try_step(doc, "seccomp", LP_NO_NEW_PRIVS | LP_SECCOMP, "the filter was loaded");
	}
	check_landlock(doc);
	check_quota(doc);
	check_idmap(doc);
	check_cgroup(doc);
	check_whole(doc);
	return doc->rc;
}

/* ---- Members ---------------------------------------------------------------------------------------------- */

static int unusable(const doctor *doc, sb_error *err)
{
	if (doc->report && !doc->usable)
		return error_set(err, SB_ERR_BACKEND_UNAVAILABLE, "linux",
				 "a sandbox cannot be built here; `sandbox doctor` tells which step fails and "
				 "what to change");
	return 0;
}

void linux_facts_once(sb_state *state)
{
	pthread_mutex_lock(&state->facts_lock);
	if (!state->facts_known) {
		linux_facts_read("", &state->facts);
		if (!state->facts.no_userns)
			state->facts.no_userns = !trial_userns(state);
		if (state->facts.cgroup.kind == LP_CG_SCOPE && !trial_scope(state))
			state->facts.cgroup = (cgroup_place){ .kind = LP_CG_NONE };
	}
	state->facts_known = true;
	pthread_mutex_unlock(&state->facts_lock);
}

int linux_probe(const sb_backend *self, const sb_call *call, sb_report *report, sb_state **out,
		sb_error *err)
{
	sb_state *state = calloc(1, sizeof *state);
	doctor doc = { .state = state, .report = report, .call = call, .err = err };
	int rc;

	(void)self;
	if (!state)
		return error_no_memory(err, "probe");
	pthread_mutex_init(&state->lock, NULL);
	pthread_mutex_init(&state->idmap.lock, NULL);
	launched_begins_init(&state->begun);
	pthread_mutex_init(&state->facts_lock, NULL);
	/* plans can be made without it: create() tells */
	lh_find_own(call->helper_dir, &state->helper, &state->helper_missing);
	/* before a run, there is something to begin first */
	if (report)
		linux_facts_once(state);
	rc = report ? report_all(&doc) : 0;
	if (!rc)
		rc = unusable(&doc, err);
	if (rc) {
		linux_forget(state);
		return rc;
	}
	*out = state;
	return 0;
}

void linux_forget(sb_state *state)
{
	if (!state)
		return;
	stock_forget(&state->warm);
	launched_begins_release(&state->begun);
	pthread_mutex_destroy(&state->facts_lock);
	pthread_mutex_destroy(&state->lock);
	pthread_mutex_destroy(&state->idmap.lock);
	free(state->helper);
	free(state);
}

int linux_sweep(sb_state *state, const sb_call *call, uint64_t *removed, sb_error *err)
{
	const cgroup_place *place = &state->facts.cgroup;
	uint32_t i;
	int rc = 0;

	linux_facts_once(state);

	for (i = 0; !rc && place->kind != LP_CG_SCOPE && i < place->count; i++) {
		*removed += cgroup_sweep(place->at[i].path);
		rc = sb_call_check(call, err);
	}
	return rc;
}

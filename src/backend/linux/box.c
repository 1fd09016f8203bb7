/* SPDX-License-Identifier: MIT */
/*
 * box.c - the design as a plan of sb-launch; create, put, spawn.
 *
 * Nothing here waits: the plan, the files and the spawn are sent one behind the other, and pid 1
 * looks at them once every wall stands.
 */
#include "warm.h"
#include "../../launch/launch.h"

#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

/* ---- Plan ------------------------------------------------------------------------------------------ */

static void add_rows(const linux_design *d, lh_plan *plan)
{
	size_t i;

	for (i = 0; i < d->table.len; i++) {
		const mount_row *row = &d->table.at[i];
		bool cover = row->kind == LP_M_HIDE || row->kind == LP_M_PROTECT;
		uint64_t arg = cover ? 0 : row->arg;

		if (row->fd >= 0)
			lh_plan_mount_fd(plan, row->kind, row->fd, row->source, row->target, row->flags, arg);
		else
			lh_plan_mount(plan, row->kind, row->source, row->target, row->flags, arg);
	}
}

static void add_limits(const sb_limits *limits, const linux_design *d, lp_plan *p)
{
	p->memory_bytes = limits_is_set(limits->memory_bytes) ? limits->memory_bytes : SB_UNLIMITED;
	p->pids = limits_is_set(limits->procs) ? limits->procs : SB_UNLIMITED;
	p->cpu_us = limits_is_set(limits->cpu_ms) && limits->cpu_ms < SB_UNLIMITED / 1000 ?
			    limits->cpu_ms * 1000 : SB_UNLIMITED;
	p->cpu_millicores = limits_is_set(limits->cpu_millicores) ? limits->cpu_millicores :
								      SB_UNLIMITED;
	p->open_files = limits_is_set(limits->open_files) ? limits->open_files : SB_UNLIMITED;
	p->user_procs = limits_is_set(limits->user_procs) ? limits->user_procs : SB_UNLIMITED;
	p->file_bytes = d->file_bytes;
	p->tmpfs_bytes = d->tmpfs_bytes;
	p->tmpfs_nodes = d->tmpfs_nodes;
	p->sample_us = d->sample_us;
}

static void add_ids(const linux_design *d, lp_plan *p)
{
	const linux_facts *facts = d->wish.facts;

	if (d->apart && !facts->no_userns) {
		/* on disk the workspace's owner; to the kernel what linux_launch() finds */
		p->uid_outer = d->table.owner_uid;
		p->gid_outer = d->table.owner_gid;
	} else {
		p->uid_outside = p->uid_outer = facts->uid;
		p->gid_outside = p->gid_outer = facts->gid;
	}
	p->uid_inside = d->wish.uid_inside;
	p->gid_inside = d->wish.gid_inside;
}

void linux_cgroup_name(lh_plan *plan)
{
	uint64_t serial = 0;
	char name[80];

	/* one of many boxes of this process; without randomness the clock tells them apart */
	if (getrandom(&serial, sizeof serial, GRND_NONBLOCK) != sizeof serial)
		serial = clock_now_ns();
	snprintf(name, sizeof name, "sandbox-%d-%llu-%016llx", (int)getpid(),
		 (unsigned long long)cgroup_start_time((int)getpid()), (unsigned long long)serial);
	plan->fixed.cgroup_name = lh_plan_string(plan, name);
}

int linux_fill_plan(const sb_box_request *request, const linux_design *d, lh_plan *plan, sb_error *err)
{
	const sb_linux_options *options = request->options;
	uint32_t i;

	plan->fixed.steps = d->steps;
	add_ids(d, &plan->fixed);
	add_limits(request->limits, d, &plan->fixed);
	plan->fixed.hostname = lh_plan_string(plan, options && options->hostname ? options->hostname :
										   "sandbox");
	plan->fixed.cgroup_kind = d->cgroup.kind;
	for (i = 0; i < d->cgroup.count; i++)
		lh_plan_cgroup(plan, cgroup_parent_of(&d->cgroup, i), d->cgroup.at[i].controllers);
	add_rows(d, plan);
	return lh_plan_check(plan, err);
}

void linux_begin(sb_state *state, const char *id, const sb_network *network)
{
	uint64_t namespaces = LP_NAMESPACES;

	if (!network)
		namespaces = 0;
	else if (network->mode == SB_NET_HOST)
		namespaces &= ~(uint64_t)LP_NETNS;
	launched_begin(&state->begun, state->helper, id, namespaces);
}

/* ---- Create ------------------------------------------------------------------------------------------ */

static int note_cgroups(const lh_plan *plan, sb_box *box, sb_error *err)
{
	const lp_plan *p = &plan->fixed;
	uint32_t i;

	for (i = 0; p->cgroup_kind != LP_CG_SCOPE && i < p->cgroup_count; i++) /* that is systemd's to remove */
		if (strv_add_fmt(&box->cgroups, "%s/%s", plan->strings + p->cgroups[i].parent,
				 plan->strings + p->cgroup_name))
			return error_no_memory(err, "create");
	return 0;
}

linux_uids linux_uids_of(const linux_design *d)
{
	return (linux_uids){ .apart = d->apart, .outer_too = d->wish.facts->no_userns, .first = d->uid_first,
		.count = d->uid_count };
}

static int take_uid(const linux_uids *uids, uint64_t deadline_ns, lh_plan *plan,
		    sb_box *box, sb_error *err)
{
	uint32_t outside = 0;
	int rc;

	if (!uids->apart)
		return 0;
	/* a uid that owns nothing */
	rc = ids_reserve(uids->first, uids->count, deadline_ns, &outside, &box->uid_lock, err);
	box->chown_uid = box->chown_gid = outside;
	plan->fixed.uid_outside = plan->fixed.gid_outside = outside;
	if (uids->outer_too)
		plan->fixed.uid_outer = plan->fixed.gid_outer = outside;
	return rc;
}

int linux_launch(sb_state *state, const char *id, const linux_uids *uids, uint64_t deadline_ns,
		 lh_plan *plan, sb_box *box, sb_error *err)
{
	int rc = take_uid(uids, deadline_ns, plan, box, err);

	if (!rc && plan->fixed.cgroup_count)
		linux_cgroup_name(plan);
	if (!rc)
		rc = lh_plan_check(plan, err);
	if (!rc)
		rc = note_cgroups(plan, box, err);
	return rc ? rc : launched_start(&state->begun, state->helper, id, plan, box, err);
}

static int start(sb_state *state, const sb_box_request *request, const linux_design *d,
		 const sb_call *call, linux_edit_fn edit, void *user, sb_box *box, sb_error *err)
{
	const linux_uids uids = linux_uids_of(d);
	lh_plan *plan = lh_plan_new();
	int rc;

	if (!plan)
		return error_no_memory(err, "create");
	rc = linux_fill_plan(request, d, plan, err);
	if (!rc && edit)
		edit(plan, user);
	box->in_place = d->wish.in_place;
	if (!rc)
		rc = linux_launch(state, request->id, &uids, call->deadline_ns, plan, box, err);
	lh_plan_free(plan);
	return rc;
}

int linux_box_create_edited(sb_state *state, const sb_box_request *request, const sb_plan *plan,
			    const sb_call *call, linux_edit_fn edit, void *user, sb_box **out,
			    sb_error *err)
{
	const linux_design *d = linux_plan_design(plan, request);
	linux_design fresh;
	sb_box *box;
	int rc;

	if (!state->helper) {
		if (err)
			*err = state->helper_missing;
		return state->helper_missing.code;
	}
	rc = sb_call_check(call, err);
	if (!rc && !d)
		rc = design_make(state, request, &fresh, err);
	if (rc)
		return rc;
	box = launched_box_new(request->limits);
	rc = box ? start(state, request, d ? d : &fresh, call, edit, user, box, err)
		 : error_no_memory(err, "create");
	if (!d)
		design_release(&fresh);
	if (!rc && request->door == SB_DOOR_SESSION) /* whoever opens one hears at once what is wrong */
		rc = launched_box_wait_ready(box, call, err);
	if (rc) {
		launched_box_destroy(box);
		return rc;
	}
	*out = box;
	return 0;
}

int linux_create(sb_state *state, const sb_box_request *request, const sb_plan *plan,
		 const sb_call *call, sb_box **box, sb_error *err)
{
	warm_kind *kind = request->flags & SB_BOX_WARM ? warm_kind_of(state, request, plan) : NULL;
	int rc;

	if (kind && warm_take(kind, request->limits, call, box))
		return 0;
	rc = linux_box_create_edited(state, request, plan, call, NULL, NULL, box, err);
	if (!rc)
		stock_seat(*box, (stock_kind *)kind);
	else
		stock_kind_drop((stock_kind *)kind);
	return rc;
}

void linux_destroy(sb_box *box)
{
	stock_leave(box);
	launched_box_destroy(box);
}

/* ---- Put ------------------------------------------------------------------------------------------ */

/* What is put there from outside: the guest itself may not write it.  NULL = elsewhere. */
static const char *scratch_part(const char *path, size_t *skip)
{
	static const char *const parts[][2] = { { "/in", "in" }, { "/run/code", "code" } };
	size_t i;

	for (i = 0; i < BASE_ARRAY_LEN(parts); i++)
		if (path_is_within(path, parts[i][0])) {
			*skip = strlen(parts[i][0]);
			return parts[i][1];
		}
	return NULL;
}

static int put_node(const sb_node *node, const char *part, const char *below, strv *paths,
		    lh_file *file, sb_error *err)
{
	bool dir = node->what == SB_NODE_DIR;

	if (strv_add_fmt(paths, "%s%s/%s%s", part, below, node->path, dir ? "/" : ""))
		return error_no_memory(err, "put");
	*file = (lh_file){ .path = paths->at[paths->len - 1], .data = node->data, .len = node->len,
		.mode = node->mode ? node->mode : dir ? 0755 : 0644 };
	return 0;
}

static int put_files(sb_box *box, const sb_tree *tree, const char *part, const char *below,
		     const sb_call *call, sb_error *err)
{
	size_t count = sb_tree_count(tree), used = 0, i;
	lh_file *files = calloc(count ? count : 1, sizeof *files);
	strv paths = { 0 };
	int rc = files ? 0 : error_no_memory(err, "put");

	for (i = 0; !rc && i < count; i++) {
		sb_node node = { .size = sizeof node };

		rc = sb_tree_at(tree, i, &node);
		/* directories come with what is in them */
		if (!rc && node.what == SB_NODE_FILE)
			rc = put_node(&node, part, below, &paths, &files[used++], err);
	}
	if (!rc && used)
		rc = launched_put(box, files, used, call, err);
	strv_release(&paths);
	free(files);
	return rc;
}

int linux_no_files(sb_error *err)
{
	return error_set(err, SB_ERR_UNSUPPORTED, "put",
			 "files cannot be put into a sandbox without namespaces, which cannot be made here, nor "
			 "taken out of it; name them by their own path (--ro)");
}

int linux_put(sb_box *box, const char *path, const sb_tree *tree, const sb_call *call,
	      sb_error *err)
{
	size_t skip = 0;
	const char *part = scratch_part(path, &skip);
	int rc = sb_call_check(call, err);

	if (rc)
		return rc;
	if (box->in_place)
		return linux_no_files(err);
	rc = part ? put_files(box, tree, part, path + skip, call, err)
		  : launched_put_tree(box, path, tree, call, err);
	/* a worker that is gone has seen nothing of the run */
	return rc == SB_ERR_CONNECTION_LOST && stock_waits(box) ? stock_ended(err) : rc;
}

int linux_spawn(sb_box *box, const sb_guest_request *request, const sb_call *call,
		sb_guest **guest, sb_guest_io *io, sb_error *err)
{
	lh_spawn spawn = { .code = -1 };
	sb_guest_request here = *request;
	int rc = sb_call_check(call, err);

	if (box->in_place && here.cwd && !strcmp(here.cwd, "/work"))
		here.cwd = "/";
	if (!rc && stock_waits(box))
		rc = warm_go(box, request, call, guest, io, err);
	else if (!rc)
		rc = launched_spawn(box, &here, &spawn, call, guest, io, err);
	if (!rc)
		stock_refill(box);
	return rc;
}

/* SPDX-License-Identifier: MIT */
/*
 * linux.h - the backend `linux`: from a request to a plan of sb-launch.
 *
 *   facts.c cgroup_find.c ids.c   what the machine has
 *   design.c                      request + facts -> every decision, as data
 *   rootfs.c mounts.c rules.c     the file system of it; inplace.c where there are no mounts
 *   plan.c                        the decisions in words
 *   box.c                         the decisions as an lh_plan; create, put, spawn
 *   warm.c                        interpreters that wait in boxes for one run each
 *   begin.c                       an sb-launch ahead of its plan
 *   collect.c                     what is left in the scratch tmpfs at the end
 *   probe.c trial.c               what can be had only by trying
 *   linux.c                       the table
 */
#ifndef SB_BACKEND_LINUX_H
#define SB_BACKEND_LINUX_H

#include "../launched/launched.h"
#include "../../core/core.h"
#include "facts.h"
#include "idmap.h"
#include "mounts.h"

#include <pthread.h>

#define LINUX_CAPS                                                                             \
	(SB_CAP_SESSIONS | SB_CAP_TTY | SB_CAP_SIGNAL | SB_CAP_EVENTS | SB_CAP_FILES |         \
	 SB_CAP_SPLIT_STREAMS)

struct sb_state {
	pthread_mutex_t facts_lock;
	linux_facts facts;            /* linux_facts_once() */
	sb_error no_scope;            /* why the user's systemd made none, if it was asked */
	char *helper;                 /* path of sb-launch; NULL: only plans can be made */
	sb_error helper_missing;      /* why */
	idmap_known idmap;
	pthread_mutex_t lock;         /* over what follows */
	struct stock *warm;           /* warm.h; NULL = never needed */
	bool facts_known;
	launched_begins begun;
};

/* ---- design.c: pure but for looking at the paths that the request names ---------------------- */
typedef struct linux_design {
	mount_wish wish;
	mount_table table;
	cgroup_place cgroup;          /* the directories that are used, LP_CG_NONE = none */
	uint64_t steps;               /* LP_* */
	uint64_t scratch_bytes;       /* of it for the guest, rules with a tmpfs of their own included */
	uint64_t tmpfs_bytes, tmpfs_nodes; /* of the one tmpfs, with what is ours in it */
	uint64_t sample_us, file_bytes;
	uint32_t uid_first, uid_count;
	bool workspace_unmapped;      /* read-only because its file system cannot be mapped */
	bool memory_sampled, pids_rlimit, pids_watched, cpu_watched;
	bool apart;                   /* the guest gets a host id of its own */
} linux_design;
int design_make(sb_state *state, const sb_box_request *request, linux_design *design,
		sb_error *err);
void design_release(linux_design *design);

/* ---- plan.c ------------------------------------------------------------------------------------ */
int linux_plan(sb_state *state, const sb_box_request *request, sb_plan *plan, sb_error *err);
/* The design that this plan of the very same request keeps; NULL = none, or not any more. */
const linux_design *linux_plan_design(const sb_plan *plan, const sb_box_request *request);

/* ---- box.c ------------------------------------------------------------------------------------- */
int linux_create(sb_state *state, const sb_box_request *request, const sb_plan *plan,
		 const sb_call *call, sb_box **box, sb_error *err);
/* The same, but `edit` may change the plan before it is sent: a wall's test leaves that wall out and
 * shows that the attempt then gets through.  edit NULL = linux_create(). */
typedef void (*linux_edit_fn)(lh_plan *plan, void *user);
int linux_box_create_edited(sb_state *state, const sb_box_request *request, const sb_plan *plan,
			    const sb_call *call, linux_edit_fn edit, void *user, sb_box **box,
			    sb_error *err);
/* The design as a plan, but for what each box has of its own: uid and name. */
int linux_fill_plan(const sb_box_request *request, const linux_design *d, lh_plan *plan, sb_error *err);
/* These two added to `plan`, and an sb-launch of it started for `box`; id: of the request, whose begun one
 * it may be, or NULL. */
typedef struct linux_uids {
	bool apart, outer_too;        /* not the caller's; inside the outer namespace, too */
	uint32_t first, count;
} linux_uids;
linux_uids linux_uids_of(const linux_design *design);
int linux_launch(sb_state *state, const char *id, const linux_uids *uids, uint64_t deadline_ns,
		 lh_plan *plan, sb_box *box, sb_error *err);
void linux_destroy(sb_box *box);
/* The name of our directories: owner's pid and start time, so that a sweep can tell that it is dead. */
void linux_cgroup_name(lh_plan *plan);
int linux_no_files(sb_error *err); /* UNSUPPORTED, without namespaces */
int linux_put(sb_box *box, const char *path, const sb_tree *tree, const sb_call *call,
	      sb_error *err);
int linux_spawn(sb_box *box, const sb_guest_request *request, const sb_call *call,
		sb_guest **guest, sb_guest_io *io, sb_error *err);

/* ---- collect.c --------------------------------------------------------------------------------- */
int linux_collect(sb_box *box, const sb_call *call, sb_tree *tree, sb_error *err);
int linux_get(sb_box *box, const char *path, const sb_call *call, sb_tree *tree, sb_error *err);
int linux_remove(sb_box *box, const char *path, const sb_call *call, sb_error *err);
/* Sizes and nodes (files and directories, `dir` itself included) of everything beneath. */
int collect_sizes(int dir, uint64_t *bytes, uint64_t *nodes);

/* ---- trial.c ----------------------------------------------------------------------------------- */
/* A box of that plan comes up, within `ms`. */
bool trial_plan(const char *helper, const lh_plan *plan, unsigned ms, sb_error *err);

/* Can a user namespace be made, and anything be mounted in it?  Tried only where something may forbid it:
 * a filter around us, or AppArmor.  What fails for another reason counts as a yes: the run tells. */
bool trial_userns(sb_state *state);
/* Does the user's systemd make a scope?  One is made, and is gone again. */
bool trial_scope(sb_state *state);

/* ---- begin.c ----------------------------------------------------------------------------------- */
void linux_begin(sb_state *state, const char *id, const sb_network *network); /* of the table */

/* ---- probe.c ----------------------------------------------------------------------------------- */
int linux_probe(const sb_backend *self, const sb_call *call, sb_report *report, sb_state **state,
		sb_error *err);
void linux_forget(sb_state *state);
void linux_facts_once(sb_state *state); /* before anything looks at state->facts */
/* Removes the cgroups of dead sb-launches. */
int linux_sweep(sb_state *state, const sb_call *call, uint64_t *removed, sb_error *err);

#endif /* SB_BACKEND_LINUX_H */

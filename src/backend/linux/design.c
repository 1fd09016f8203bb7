/* SPDX-License-Identifier: MIT */
/*
 * design.c - every decision about a box, as data.  Plan and box are made from the same design, so
 * the plan cannot say what the box does not do.
 */
#include "linux.h"

#include <sys/stat.h>

#define SAMPLE_MEMORY_US 10000u  /* a watcher of memory looks this often at the least */
#define SAMPLE_CPU_US 100000u
#define SCRATCH_LEAST (1u << 20)
#define NODES_UNLIMITED (1u << 20)
#define CODE_FOLDERS 3 /* that count as nodes of the guest's */
#define NODE_BYTES 1024u /* as a tmpfs counts an inode, and each so many bytes of attributes */
#define PAGE 4096u
#define PLAN_STRINGS_OURS 128u   /* the name of our cgroups, and ends */

static int refuse(sb_error *err, const char *where, const char *what, const char *instead)
{
	return error_set(err, SB_ERR_UNSUPPORTED, where, "%s is not available yet on backend \"linux\"; %s",
			 what, instead);
}

static int check_options(const sb_linux_options *options, sb_error *err)
{
	if (!options)
		return 0;
	if (options->root)
		return refuse(err, "files", "a root file system of your own", "leave it out");
	if (options->seccomp_file)
		return refuse(err, "seccomp", "a seccomp file besides ours", "leave it out");
	if (options->flags & SB_LINUX_ALLOW_USERNS)
		return refuse(err, "seccomp", "creating user namespaces inside", "leave the flag out");
	if (options->flags & ~(uint64_t)(SB_LINUX_ALLOW_USERNS | SB_LINUX_NO_LANDLOCK))
		return error_set(err, SB_ERR_UNSUPPORTED, "options", "an unknown flag for backend \"linux\"");
	if (options->uid_first && options->uid_first < LINUX_UID_LEAST)
		return error_set(err, SB_ERR_INVALID_SPEC, "ids",
				 "guests may not run as uid %u: a range begins at %u or above",
				 options->uid_first, LINUX_UID_LEAST);
	if (options->uid_count && (!options->uid_first ||
				   (uint64_t)options->uid_first + options->uid_count > UINT32_MAX))
		return error_set(err, SB_ERR_INVALID_SPEC, "ids",
				 "%u uids from %u are no range; name its first and their number",
				 options->uid_count, options->uid_first);
	return 0;
}

/* Code brings no file system along, and in the host's own there is no quota for what it writes. */
static int check_in_place(const linux_facts *facts, const sb_box_request *request, sb_error *err)
{
	const sb_spec *spec = request->spec;
	const sb_limits *limits = request->limits;
	bool disk = limits->fs_bytes && limits->fs_bytes != SB_UNLIMITED;

	if (!linux_in_place(facts))
		return 0;
	if (request->pack)
		return error_set(err, SB_ERR_UNENFORCEABLE, "disk",
				 "code needs a file system of its own with a quota, and user namespaces cannot be "
				 "made here (`sandbox doctor` tells why); allow them, or run the interpreter as "
				 "a command (`sandbox run -- python3 FILE`)");
	if ((disk || (limits->fs_nodes && limits->fs_nodes != SB_UNLIMITED)) &&
	    !(spec && (spec->allow_weaker & SB_WALL_BIT(SB_WALL_DISK))))
		return error_set(err, SB_ERR_UNENFORCEABLE, "disk",
				 "there is no quota without user namespaces, which cannot be made here (`sandbox "
				 "doctor` tells why); leave --disk out, or --allow-weaker disk");
	return 0;
}

static int check_request(const linux_facts *facts, const sb_box_request *request, sb_error *err)
{
	const sb_network *network = request->network;
	const sb_spec *spec = request->spec;
	int rc;

	if (facts->root_helpless && !facts->apart_ids)
		return error_set(err, SB_ERR_BACKEND_UNAVAILABLE, "ids",
				 "root without CAP_SETUID and CAP_SETGID cannot give the guest another uid; run it "
				 "as a plain user, e.g. by `setpriv --reuid 1000 --regid 1000 --clear-groups`");
	if (facts->map_errno)
		return error_errno(err, SB_ERR_BACKEND_UNAVAILABLE, facts->map_errno, "ids",
				   "cannot read \"/proc/self/uid_map\", which needs /proc mounted");
	if (facts->root_helpless && !facts->no_userns)
		return error_set(err, SB_ERR_BACKEND_UNAVAILABLE, "ids",
				 "root without CAP_SYS_ADMIN cannot give the guest another uid in a namespace; run "
				 "it as a plain user, e.g. by `setpriv --reuid 1000 --regid 1000 --clear-groups`");
	if (facts->no_spare_uid)
		return error_set(err, SB_ERR_BACKEND_UNAVAILABLE, "ids",
				 "this user namespace maps no uid that a guest could have; map more "
				 "(newuidmap), or run it outside as a plain user");
	if (network && network->mode == SB_NET_ALLOW_LIST)
		return refuse(err, "network", "the allow-list network", "use deny_all or host");
	if (network && network->mode == SB_NET_PROXY)
		return refuse(err, "network", "the proxy network", "use deny_all or host");
	if (network && network->mode == SB_NET_HOST && network->rules && network->rules[0])
		return error_set(err, SB_ERR_INVALID_SPEC, "network",
				 "rules do not apply to the host's network; leave them out");
	if (spec && spec->workspace_mode == SB_WORKSPACE_COPY)
		return refuse(err, "files", "a copy-on-write workspace", "use ro or rw");
	rc = check_in_place(facts, request, err);
	return rc ? rc : check_options(request->options, err);
}

static idmap_asker linux_idmap(sb_state *state)
{
	return (idmap_asker){ .facts = &state->facts, .helper = state->helper, .known = &state->idmap };
}

/* ---- Workspace ----------------------------------------------------------------------------------- */

static int decide_workspace(sb_state *state, const sb_box_request *request, linux_design *d,
			    sb_error *err)
{
	const sb_spec *spec = request->spec;
	uint32_t mode = spec ? spec->workspace_mode : SB_WORKSPACE_DEFAULT;
	const idmap_asker by = linux_idmap(state);
	bool write = mode == SB_WORKSPACE_WRITE || (mode == SB_WORKSPACE_DEFAULT && !request->pack);
	bool mapped = !d->apart || !request->workspace ||
		      (!d->wish.facts->no_userns &&
		       idmap_works(&by, request->workspace, request->workspace_fd));

	d->wish.workspace_idmap = mapped;
	if (write && !mapped) {
		if (mode == SB_WORKSPACE_WRITE && d->wish.facts->no_userns)
			return error_set(err, SB_ERR_UNENFORCEABLE, "files",
					 "a guest of root cannot write in \"%s\" without user namespaces, which "
					 "cannot be made here; use --workspace-mode ro, or run as the owner",
					 request->workspace);
		if (mode == SB_WORKSPACE_WRITE)
			return mounts_unmapped(request->workspace, "use --workspace-mode ro", err);
		d->workspace_unmapped = true;
		write = false;
	}
	d->wish.workspace_write = write;
	return 0;
}

/* ---- Limits ------------------------------------------------------------------------------------- */

/* Of the cgroup directories, those that some limit needs. */
static void decide_cgroup(const cgroup_place *found, const sb_limits *limits, linux_design *d)
{
	uint32_t wanted = 0;
	size_t i;

	if (limits_is_set(limits->memory_bytes))
		wanted |= LP_CTL_MEMORY;
	if (limits_is_set(limits->procs))
		wanted |= LP_CTL_PIDS;
	if (limits_is_set(limits->cpu_millicores))
		wanted |= LP_CTL_CPU;
	if (limits_is_set(limits->cpu_ms)) /* counted, and lent second by second */
		wanted |= LP_CTL_CPUACCT | LP_CTL_CPU;
	d->cgroup = (cgroup_place){ .kind = found->kind };
	memcpy(d->cgroup.bus, found->bus, sizeof found->bus);
	for (i = 0; i < found->count; i++) {
		uint32_t bits = found->at[i].controllers & wanted;

		if (!bits)
			continue;
		d->cgroup.at[d->cgroup.count] = found->at[i];
		d->cgroup.at[d->cgroup.count++].controllers = bits;
		d->cgroup.controllers |= bits;
	}
	if (!d->cgroup.count)
		d->cgroup.kind = LP_CG_NONE;
}

static void decide_limits(const sb_limits *limits, linux_design *d)
{
	uint32_t have = d->cgroup.controllers;

	d->memory_sampled = limits_is_set(limits->memory_bytes) && !(have & LP_CTL_MEMORY);
	d->pids_rlimit = limits_is_set(limits->procs) && !(have & LP_CTL_PIDS);
	d->pids_watched = d->pids_rlimit && d->wish.in_place;
	d->cpu_watched = limits_is_set(limits->cpu_ms);
	d->sample_us = d->memory_sampled || d->pids_watched ? SAMPLE_MEMORY_US : SAMPLE_CPU_US;
	/* what a watcher of memory does not see, a memfd, is bounded file by file */
	d->file_bytes = d->memory_sampled ? limits->memory_bytes : SB_UNLIMITED;
}

/* The quota is one over all that is not on disk: a tmpfs with a size of its own takes its share. */
static int own_shares(const sb_limits *limits, linux_design *d, uint64_t *bytes, sb_error *err)
{
	uint64_t shares = 0;
	size_t i;

	for (i = 0; i < d->table.len; i++)
		if (d->table.at[i].kind == LP_M_TMPFS && d->table.at[i].origin == MOUNT_RULE)
			shares += d->table.at[i].arg;
	if (!limits_is_set(limits->fs_bytes))
		return 0;
	if (shares >= *bytes)
		return error_set(err, SB_ERR_INVALID_LIMITS, "disk",
				 "the tmpfs rules ask for %llu bytes, and the disk limit is %llu; raise it, or "
				 "make them smaller", (unsigned long long)shares, (unsigned long long)*bytes);
	*bytes -= shares;
	return 0;
}

static int decide_scratch(const sb_box_request *request, linux_design *d, sb_error *err)
{
	const sb_limits *limits = request->limits;
	uint64_t bytes, nodes, pages = 0, ours;
	size_t i;
	int rc;

	if (limits_is_set(limits->fs_bytes))
		bytes = limits->fs_bytes;
	else if (limits_is_set(limits->memory_bytes))
		bytes = limits->memory_bytes / 2;
	else
		bytes = d->wish.facts->ram_bytes / 4;
	if (bytes < SCRATCH_LEAST && !limits_is_set(limits->fs_bytes))
		bytes = SCRATCH_LEAST;
	d->scratch_bytes = bytes;
	rc = own_shares(limits, d, &bytes, err);
	if (rc)
		return rc;
	for (i = 0; i < d->table.len; i++)
		pages += d->table.at[i].kind == LP_M_FILE;
	d->tmpfs_bytes = (bytes + PAGE - 1) / PAGE * PAGE + pages * PAGE;
	if (d->wish.code && limits->fs_nodes < CODE_FOLDERS)
		return error_set(err, SB_ERR_INVALID_LIMITS, "disk",
				 "the limit of files and folders is %llu, and /in, /work and /out are %d of "
				 "them; raise it (--disk-files)",
				 (unsigned long long)limits->fs_nodes, CODE_FOLDERS);
	/* of a code run in, work and out count as nodes of the guest's; the code file is ours */
	ours = mounts_nodes(&d->table) - (d->wish.code ? 2 : 0);
	if (d->table.failed)
		return error_no_memory(err, "files");
	/* without a limit of their own no more than the bytes hold: else attributes, which a tmpfs takes
	 * from its inodes, would come to 1 GiB beside any number of bytes */
	nodes = bytes / NODE_BYTES < NODES_UNLIMITED ? bytes / NODE_BYTES + 1 : NODES_UNLIMITED;
	if (limits_is_set(limits->fs_nodes))
		nodes = limits->fs_nodes;
	d->tmpfs_nodes = ours + nodes;
	return 0;
}

static void decide_steps(const sb_box_request *request, linux_design *d)
{
	const linux_facts *facts = d->wish.facts;
	const sb_linux_options *options = request->options;
	bool landlock = facts->landlock_abi && !(options && (options->flags & SB_LINUX_NO_LANDLOCK));

	if (landlock)
		d->steps |= LP_LANDLOCK | (facts->landlock_abi >= 6 ? LP_LANDLOCK_SCOPE : 0);
	if (d->memory_sampled || d->cpu_watched || d->pids_watched)
		d->steps |= LP_SAMPLE;
	if (d->apart)
		d->steps |= LP_OWN_GROUP;
	if (d->wish.in_place) {
		d->steps |= LP_SUBREAPER | LP_IN_PLACE | LP_NO_CAPS | LP_NO_NEW_PRIVS | LP_UNDUMPABLE |
			    LP_SECCOMP | LP_SESSION | LP_CLOSE_FDS | (d->wish.net ? LP_HOST_NET : 0);
		return;
	}
	if (!linux_unmapped(facts))
		d->steps |= LP_USERNS | LP_NESTED_USERNS;
	d->steps |= LP_PIDNS | LP_MOUNTNS | LP_IPCNS | LP_UTSNS | LP_CGROUPNS | LP_ROOT |
		   LP_NO_CAPS | LP_NO_NEW_PRIVS | LP_UNDUMPABLE | LP_SECCOMP | LP_SESSION |
		   LP_CLOSE_FDS;
	if (!d->wish.net)
		d->steps |= LP_NETNS | LP_LO_UP;
	if (facts->proc_fresh)
		d->steps |= LP_MASK_PROC;
}

/* ---- The whole ------------------------------------------------------------------------------------ */

static void decide_ids(const sb_box_request *request, linux_design *d)
{
	const linux_facts *facts = d->wish.facts;
	const sb_linux_options *options = request->options;
	bool own = !d->apart && !request->pack;

	d->wish.uid_inside = own ? facts->uid : 1000;
	d->wish.gid_inside = own ? facts->gid : 1000;
	d->uid_first = facts->uid_first;
	d->uid_count = facts->uid_count;
	if (options && options->uid_first) {
		d->uid_first = options->uid_first;
		d->uid_count = options->uid_count ? options->uid_count : 1;
	}
}

/* Does it all fit into one PLAN?  Told by explain, too, not only once it is to be sent. */
static int check_size(const sb_box_request *request, const linux_design *d, sb_error *err)
{
	const sb_linux_options *options = request->options;
	size_t strings = PLAN_STRINGS_OURS, fds = 0, i;

	if (options && options->hostname)
		strings += strlen(options->hostname);
	for (i = 0; i < d->cgroup.count; i++)
		strings += strlen(cgroup_parent_of(&d->cgroup, i)) + 1;
	for (i = 0; i < d->table.len; i++) {
		const mount_row *row = &d->table.at[i];

		fds += row->fd >= 0;
		strings += strlen(row->target) + 1 + (row->source ? strlen(row->source) + 1 : 0);
	}
	if (d->table.len > LP_MAX_MOUNTS || fds > LP_MAX_FDS || strings > LP_MAX_STRINGS)
		return lh_plan_too_large(err);
	return 0;
}

static int fill(sb_state *state, const sb_box_request *request, linux_design *d, sb_error *err)
{
	const sb_linux_options *options = request->options;
	cgroup_place named;
	const cgroup_place *place = &state->facts.cgroup;
	const idmap_asker by = linux_idmap(state);
	int rc = decide_workspace(state, request, d, err);

	if (!rc)
		rc = rules_check_disk(&d->wish, err);
	if (!rc && options && options->cgroup_parent) {
		rc = cgroup_find_parent("", options->cgroup_parent, &named, err);
		place = &named;
	}
	if (rc)
		return rc;
	decide_ids(request, d);
	decide_cgroup(place, request->limits, d);
	decide_limits(request->limits, d);
	rc = d->wish.in_place ? launched_lacks_work(d->wish.request, err) : 0;
	if (!rc)
		rc = mounts_build(&d->wish, &d->table, err);
	if (!rc)
		rc = idmap_rules(&by, &d->table, err);
	if (!rc)
		rc = check_size(request, d, err);
	if (!rc && !d->wish.in_place)
		rc = decide_scratch(request, d, err);
	if (!rc)
		decide_steps(request, d);
	return rc;
}

int design_make(sb_state *state, const sb_box_request *request, linux_design *d, sb_error *err)
{
	int rc;

	linux_facts_once(state);
	memset(d, 0, sizeof *d);
	mounts_init(&d->table);
	d->wish.facts = &state->facts;
	d->wish.request = request;
	d->wish.code = request->pack != NULL;
	d->wish.net = request->network && request->network->mode == SB_NET_HOST;
	d->wish.in_place = linux_in_place(&state->facts);
	d->apart = state->facts.root_caller || state->facts.apart_ids;
	rc = check_request(&state->facts, request, err);
	if (!rc)
		rc = fill(state, request, d, err);
	if (rc)
		design_release(d);
	return rc;
}

void design_release(linux_design *d)
{
	mounts_release(&d->table);
}

/* SPDX-License-Identifier: MIT */
/*
 * decode.c - looks at every byte of a record before anyone uses it.
 *
 * Linked into the library and into sb-launch, so it needs nothing but libc's string functions.  Each
 * decoder is total: whatever the bytes, it answers 0 or -1 and reads inside [data, data + len).
 */
#include "protocol.h"

#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#define STEPS_KNOWN ((uint64_t)LP_WORKER * 2 - 1)
#define MOUNT_FLAGS_KNOWN (LP_F_DIR * 2 - 1)
#define SPAWN_FLAGS_KNOWN (LP_S_HELD * 2 - 1)
#define CONTROLLERS_KNOWN (LP_CTL_CPUACCT * 2 - 1)
#define PATH_BYTES 4096u

static int refuse(const char **why, const char *text)
{
	if (why)
		*why = text;
	return -1;
}

/* The elements of a path: none empty, ".", "..".  A trailing "/" makes an empty one. */
static bool elements_clean(const char *path)
{
	const char *end;

	for (;; path = end + 1) {
		end = path;
		while (*end && *end != '/')
			end++;
		if (end == path || (end - path == 1 && path[0] == '.') ||
		    (end - path == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		if (!*end)
			return true;
	}
}

static bool absolute_clean(const char *path)
{
	if (path[0] != '/' || strlen(path) >= PATH_BYTES)
		return false;
	return !path[1] || elements_clean(path + 1);
}

static bool relative_clean(const char *path)
{
	return strlen(path) < PATH_BYTES && elements_clean(path);
}

static bool single_name(const char *name)
{
	size_t len = strlen(name);

	return len && len < 256 && !strchr(name, '/') && elements_clean(name);
}

static bool ends_inside(const char *text, size_t cap)
{
	return memchr(text, 0, cap) != NULL;
}

int lp_decode_head(const void *data, size_t len, const lp_head **head, const char **why)
{
	const lp_head *h = data;

	*head = NULL;
	if (len < sizeof *h)
		return refuse(why, "the record is shorter than its head");
	if (len > LP_MAX_MESSAGE)
		return refuse(why, "the record is too long");
	if ((uintptr_t)data % _Alignof(lp_plan))
		return refuse(why, "the record is not aligned");
	if (h->version != LP_VERSION)
		return refuse(why, "the protocol version is another one");
	if (h->bytes != len)
		return refuse(why, "the record's length is not what it says");
	if (!((h->kind >= LP_PLAN && h->kind <= LP_RENEW) ||
	      (h->kind >= LP_READY && h->kind <= LP_GONE)))
		return refuse(why, "the record's kind is unknown");
	*head = h;
	return 0;
}

/* ---- PLAN --------------------------------------------------------------------------------- */

static int check_steps(const lp_plan *p, const char **why)
{
	if (p->steps & ~STEPS_KNOWN)
		return refuse(why, "a step is unknown");
	if ((p->steps & LP_SUBREAPER) && (p->steps & LP_NAMESPACES))
		return refuse(why, "a subreaper has no namespaces");
	if ((p->steps & LP_IN_PLACE) &&
	    (p->steps & (LP_SUBREAPER | LP_SECCOMP | LP_NO_NEW_PRIVS)) !=
		    (LP_SUBREAPER | LP_SECCOMP | LP_NO_NEW_PRIVS))
		return refuse(why, "a guest without namespaces needs a filter");
	if ((p->steps & LP_HOST_NET) && !(p->steps & LP_IN_PLACE))
		return refuse(why, "the host's network is allowed by a filter that is not asked for");
	if ((p->steps & LP_WORKER) && (p->steps & (LP_SECCOMP | LP_IN_PLACE)) != LP_SECCOMP)
		return refuse(why, "a worker needs a filter, and namespaces");
	if ((p->steps & LP_NESTED_USERNS) && !(p->steps & LP_USERNS))
		return refuse(why, "a nested user namespace needs an outer one");
	if ((p->steps & LP_LO_UP) && !(p->steps & LP_NETNS))
		return refuse(why, "loopback needs a network namespace");
	if ((p->steps & (LP_ROOT | LP_MASK_PROC)) && !(p->steps & LP_MOUNTNS))
		return refuse(why, "mounts need a mount namespace");
	if ((p->steps & LP_LANDLOCK_SCOPE) && !(p->steps & LP_LANDLOCK))
		return refuse(why, "landlock's scope needs landlock");
	return 0;
}

static int check_scalars(const lp_plan *p, const char **why)
{
	if (!ends_inside(p->build_id, sizeof p->build_id))
		return refuse(why, "the build id has no end");
	if (p->uid_outside == UINT32_MAX || p->gid_outside == UINT32_MAX ||
	    p->uid_outer == UINT32_MAX || p->gid_outer == UINT32_MAX ||
	    p->uid_inside == UINT32_MAX || p->gid_inside == UINT32_MAX)
		return refuse(why, "an id is none");
	if (!p->tmpfs_bytes != !p->tmpfs_nodes)
		return refuse(why, "the scratch tmpfs has bytes without nodes, or nodes without bytes");
	if (!p->memory_bytes || !p->pids || !p->cpu_us || !p->cpu_millicores || !p->open_files ||
	    !p->user_procs)
		return refuse(why, "a limit is zero");
	if ((p->steps & LP_SAMPLE) && !p->sample_us)
		return refuse(why, "the sampler has no interval");
	if (p->seccomp_extra_fd)
		return refuse(why, "a reserved member is set");
	return 0;
}

static int check_cgroups(const lp_plan_view *v, const char **why)
{
	const lp_plan *p = v->plan;
	uint32_t i, seen = 0;

	if (p->cgroup_kind > LP_CG_SCOPE || p->cgroup_count > LP_MAX_CGROUPS)
		return refuse(why, "the cgroup kind or count is unknown");
	if (!p->cgroup_count != (p->cgroup_kind == LP_CG_NONE) ||
	    (p->cgroup_kind >= LP_CG_V2 && p->cgroup_count != 1))
		return refuse(why, "the cgroup count does not fit the kind");
	if (p->cgroup_count && (!single_name(v->strings + p->cgroup_name) ||
				strlen(v->strings + p->cgroup_name) > 64))
		return refuse(why, "the cgroup name is not a name");
	for (i = 0; i < p->cgroup_count; i++) {
		const lp_cgroup *c = &p->cgroups[i];

		if (c->parent >= p->string_bytes || !absolute_clean(v->strings + c->parent) ||
		    strlen(v->strings + c->parent) > 400)
			return refuse(why, "a cgroup parent is not a clean absolute path");
		if (!c->controllers || (c->controllers & ~(uint32_t)CONTROLLERS_KNOWN) ||
		    (c->controllers & seen))
			return refuse(why, "a cgroup's controllers are unknown or named twice");
		seen |= c->controllers;
	}
	return 0;
}

static int check_mount_source(const lp_mount *m, const char *source, const char **why)
{
	switch (m->kind) {
	case LP_M_BIND:
	case LP_M_DEVICE:
		if (!absolute_clean(source) && !(m->source_fd >= 0 && !*source))
			return refuse(why, "a mount's source is not a clean absolute path");
		return 0;
	case LP_M_SYMLINK:
		if (!*source || strlen(source) >= PATH_BYTES)
			return refuse(why, "a symbolic link leads nowhere");
		return 0;
	case LP_M_SCRATCH:
		if (!single_name(source))
			return refuse(why, "a part of the scratch tmpfs has no plain name");
		return 0;
	default:
		return 0;
	}
}

static int check_mount(const lp_plan_view *v, uint32_t at, const char **why)
{
	const lp_plan *p = v->plan;
	const lp_mount *m = &v->mounts[at];
	bool has_mode;

	if (m->kind < LP_M_DIR || m->kind > LP_M_REMOUNT_RO || (m->flags & ~MOUNT_FLAGS_KNOWN))
		return refuse(why, "a mount's kind or flag is unknown");
	if (m->source >= p->string_bytes || m->target >= p->string_bytes)
		return refuse(why, "a mount's string lies outside the arena");
	if (m->source_fd < -1 || m->source_fd >= (int32_t)p->fd_count ||
	    (m->source_fd >= 0) != !!(m->flags & LP_F_FD))
		return refuse(why, "a mount's descriptor did not come along");
	if ((m->flags & (LP_F_FD | LP_F_IDMAP)) && m->kind != LP_M_BIND && m->kind != LP_M_DEVICE)
		return refuse(why, "only a bind has a descriptor or an id map");
	if (m->kind == LP_M_REMOUNT_RO) {
		if (at + 1 != p->mount_count)
			return refuse(why, "a row stands behind the last one");
		return 0;
	}
	if (m->kind == LP_M_SCRATCH && !p->tmpfs_bytes)
		return refuse(why, "there is no scratch tmpfs");
	has_mode = m->kind == LP_M_DIR || m->kind == LP_M_FILE || m->kind == LP_M_SCRATCH;
	if (has_mode && m->arg > 07777)
		return refuse(why, "a mode is none");
	if (!absolute_clean(v->strings + m->target))
		return refuse(why, "a mount's target is not a clean absolute path");
	return check_mount_source(m, v->strings + m->source, why);
}

int lp_decode_plan(const void *data, size_t len, size_t fds, lp_plan_view *view, const char **why)
{
	const lp_head *head;
	const lp_plan *p = data;
	lp_plan_view v;
	uint32_t i;

	memset(view, 0, sizeof *view);
	if (lp_decode_head(data, len, &head, why) < 0)
		return -1;
	if (head->kind != LP_PLAN || len < sizeof *p)
		return refuse(why, "the record is no whole plan");
	if (p->fd_count != fds || fds > LP_MAX_FDS)
		return refuse(why, "the plan came with another number of descriptors");
	if (p->mount_count > LP_MAX_MOUNTS || !p->string_bytes || p->string_bytes > LP_MAX_STRINGS)
		return refuse(why, "the plan has too many mounts or strings");
	if (len != sizeof *p + p->mount_count * sizeof(lp_mount) + p->string_bytes)
		return refuse(why, "the plan's tables do not fill the record");
	v.plan = p;
	v.scope = NULL;
	v.mounts = (const lp_mount *)(p + 1);
	v.strings = (const char *)(v.mounts + p->mount_count);
	if (v.strings[0] || v.strings[p->string_bytes - 1])
		return refuse(why, "the arena's ends are not NUL");
	if (p->hostname >= p->string_bytes || p->cgroup_name >= p->string_bytes)
		return refuse(why, "a name lies outside the arena");
	if (strlen(v.strings + p->hostname) > 64)
		return refuse(why, "the host name is too long");
	if (check_steps(p, why) < 0 || check_scalars(p, why) < 0 || check_cgroups(&v, why) < 0)
		return -1;
	for (i = 0; i < p->mount_count; i++)
		if (check_mount(&v, i, why) < 0)
			return -1;
	*view = v;
	return 0;
}

/* ---- PUT .. RELAY -------------------------------------------------------------------------- */

static int check_spawn(const lp_spawn *s, size_t len, size_t fds, const char **why)
{
	bool inlined = s->flags & LP_S_INLINE;
	size_t want = 4 + !inlined + !!(s->flags & LP_S_CONTROL) + !!(s->flags & LP_S_CODE_FD);

	if (!s->head.id)
		return refuse(why, "a spawn has no id");
	if (s->flags & ~(uint32_t)SPAWN_FLAGS_KNOWN)
		return refuse(why, "a spawn's flag is unknown");
	if (s->args_bytes < 2 * sizeof(uint32_t) || s->args_bytes > LP_MAX_ARGS)
		return refuse(why, "the argument block is too short or too long");
	if ((inlined && s->args_bytes > LP_INLINE_ARGS) ||
	    len != sizeof *s + (inlined ? s->args_bytes : 0))
		return refuse(why, "the request has another size");
	if (!ends_inside(s->cwd, sizeof s->cwd) || s->cwd[0] != '/')
		return refuse(why, "the working directory is no absolute path");
	if (fds != want)
		return refuse(why, "the spawn came with another number of descriptors");
	return 0;
}

static int check_signal(const lp_signal *s, const char **why)
{
	if (s->signo < 1 || s->signo > 64 || s->whole_box > 1 || s->reserved)
		return refuse(why, "a signal's number is unknown");
	if (!s->whole_box && !s->head.id)
		return refuse(why, "a signal is for nobody");
	return 0;
}

static int check_dial(const lp_dial *d, const char **why)
{
	if (!d->port || d->port > 65535 || (d->family != AF_INET && d->family != AF_INET6))
		return refuse(why, "a port or family is unknown");
	return 0;
}

static int check_relay(const lp_relay *r, size_t len, size_t fds, const char **why)
{
	if (!r->len || r->len > LP_MAX_RELAY || len != sizeof *r + r->len)
		return refuse(why, "a record to relay has another size");
	if (fds != 1 && fds != 2)
		return refuse(why, "the request came with another number of descriptors");
	return 0;
}

static int check_put(const lp_put *p, const char **why)
{
	if (p->archive_bytes > LP_MAX_PUT)
		return refuse(why, "the archive is too long");
	if (p->from_root > 1 || p->reserved || (p->from_root && !p->head.id))
		return refuse(why, "files for anywhere have no id");
	return 0;
}

static int check_path(const lp_path *p, const char **why)
{
	if (!p->head.id)
		return refuse(why, "a path has no id");
	if (!ends_inside(p->path, sizeof p->path) || !relative_clean(p->path))
		return refuse(why, "a path is not clean and relative");
	return 0;
}

static bool has_size(const lp_head *head, size_t fixed, size_t len)
{
	return head->kind == LP_SPAWN || head->kind == LP_RELAY ? len >= fixed : len == fixed;
}

int lp_decode_request(const void *data, size_t len, size_t fds, const char **why)
{
	static const size_t sizes[] = { [LP_PUT] = sizeof(lp_put), [LP_SPAWN] = sizeof(lp_spawn),
		[LP_SIGNAL] = sizeof(lp_signal), [LP_RESIZE] = sizeof(lp_resize),
		[LP_STOP] = sizeof(lp_stop), [LP_DIAL] = sizeof(lp_dial),
		[LP_RELAY] = sizeof(lp_relay), [LP_OPEN] = sizeof(lp_path),
		[LP_REMOVE] = sizeof(lp_path), [LP_RENEW] = sizeof(lp_renew) };
	const lp_head *head;

	if (lp_decode_head(data, len, &head, why) < 0)
		return -1;
	if (head->kind < LP_PUT || head->kind > LP_RENEW)
		return refuse(why, "the record is no request");
	if (!has_size(head, sizes[head->kind], len))
		return refuse(why, "the request has another size");
	if (head->kind == LP_SPAWN)
		return check_spawn(data, len, fds, why);
	if (head->kind == LP_RELAY)
		return check_relay(data, len, fds, why);
	if (fds != (head->kind == LP_PUT))
		return refuse(why, "the request came with another number of descriptors");
	if (head->kind == LP_PUT)
		return check_put(data, why);
	if (head->kind == LP_OPEN || head->kind == LP_REMOVE)
		return check_path(data, why);
	if (head->kind == LP_SIGNAL)
		return check_signal(data, why);
	if (head->kind == LP_RESIZE && !head->id)
		return refuse(why, "a terminal size is for nobody");
	if (head->kind == LP_DIAL)
		return check_dial(data, why);
	return 0;
}

/* ---- READY .. GONE ------------------------------------------------------------------------- */

static int check_ready(const lp_ready *r, size_t fds, const char **why)
{
	if ((r->held & ~STEPS_KNOWN) || r->has_scratch > 1 || r->pid1 < 0)
		return refuse(why, "the answer's members are out of range");
	if (fds != r->has_scratch)
		return refuse(why, "the answer came with another number of descriptors");
	return 0;
}

static int check_failed(const lp_failed *f, const char **why)
{
	if (!ends_inside(f->where, sizeof f->where) || !ends_inside(f->message, sizeof f->message))
		return refuse(why, "a text of the answer has no end");
	if (f->exec > 2 || f->os_errno < 0 || f->os_errno > 4095)
		return refuse(why, "the answer's members are out of range");
	return 0;
}

static int check_exited(const lp_exited *e, const char **why)
{
	bool exited = e->code >= 0 && e->code <= 255 && e->signo == 0;
	bool killed = e->code == -1 && e->signo >= 1 && e->signo <= 64;

	if ((!exited && !killed) || e->empty > 1 || e->limit > LP_LIMIT_UNENFORCEABLE ||
	    !e->head.id)
		return refuse(why, "the answer's members are out of range");
	return 0;
}

/* A terminal's, a pidfd. */
static int check_spawned(const lp_spawned *s, size_t fds, const char **why)
{
	if (!s->head.id || s->pid < 0 || s->pid_inside <= 0 || s->has_pidfd > 1 || s->reserved)
		return refuse(why, "the answer's members are out of range");
	if (fds < s->has_pidfd || fds > 1 + s->has_pidfd)
		return refuse(why, "the answer came with another number of descriptors");
	return 0;
}

static int check_answer(const void *data, uint32_t kind, const char **why)
{
	const lp_limit *l = data;

	switch (kind) {
	case LP_FAILED:
		return check_failed(data, why);
	case LP_EXITED:
		return check_exited(data, why);
	case LP_PLACED:
		if (((const lp_head *)data)->id)
			return 0;
		break;
	case LP_LIMIT:
		if (l->limit > LP_LIMIT_NONE && l->limit <= LP_LIMIT_UNENFORCEABLE)
			return 0;
		break;
	default:
		return 0;
	}
	return refuse(why, "the answer's members are out of range");
}

int lp_decode_answer(const void *data, size_t len, size_t fds, const char **why)
{
	static const size_t sizes[] = { sizeof(lp_ready), sizeof(lp_failed), sizeof(lp_spawned),
		sizeof(lp_exited), sizeof(lp_limit), sizeof(lp_dialed), sizeof(lp_placed),
		sizeof(lp_gone) };
	const lp_head *head;

	if (lp_decode_head(data, len, &head, why) < 0)
		return -1;
	if (head->kind < LP_READY || head->kind > LP_GONE)
		return refuse(why, "the record is no answer");
	if (len != sizes[head->kind - LP_READY])
		return refuse(why, "the answer has another size");
	if (head->kind == LP_READY)
		return check_ready(data, fds, why);
	if (head->kind == LP_DIALED) {
		const lp_dialed *d = data;

		if (d->os_errno < 0 || d->os_errno > 4095)
			return refuse(why, "the answer's members are out of range");
		if (fds != (d->os_errno == 0))
			return refuse(why, "the answer came with another number of descriptors");
		return 0;
	}
	if (head->kind == LP_SPAWNED)
		return check_spawned(data, fds, why);
	if (fds > (head->kind == LP_PLACED)) /* what was to be opened */
		return refuse(why, "the answer came with another number of descriptors");
	return check_answer(data, head->kind, why);
}

/* ---- Blocks in memory files ----------------------------------------------------------------- */

int lp_decode_args(char *data, size_t len, char **argv, size_t argv_cap, char **envp,
		   size_t env_cap, uint32_t *argc, uint32_t *envc, const char **why)
{
	uint32_t counts[2];
	size_t at = sizeof counts;
	uint64_t i;

	*argc = *envc = 0;
	if (len < sizeof counts || len > LP_MAX_ARGS)
		return refuse(why, "the argument block is too short or too long");
	memcpy(counts, data, sizeof counts);
	if (!counts[0])
		return refuse(why, "there is no program");
	if (counts[0] >= argv_cap || counts[1] >= env_cap)
		return refuse(why, "there are too many arguments");
	for (i = 0; i < (uint64_t)counts[0] + counts[1]; i++) {
		char *end = at < len ? memchr(data + at, 0, len - at) : NULL;

		if (!end)
			return refuse(why, "an argument has no end");
		if (i < counts[0])
			argv[i] = data + at;
		else
			envp[i - counts[0]] = data + at;
		at = (size_t)(end - data) + 1;
	}
	if (at != len)
		return refuse(why, "the argument block has a tail");
	argv[counts[0]] = NULL;
	envp[counts[1]] = NULL;
	*argc = counts[0];
	*envc = counts[1];
	return 0;
}

static size_t padded(size_t n)
{
	return (n + LP_PUT_ALIGN - 1) & ~(size_t)(LP_PUT_ALIGN - 1);
}

int lp_decode_put(const void *data, size_t len, size_t *at, const lp_put_entry **entry,
		  const char **path, const void **content, const char **why)
{
	const char *bytes = data;
	const lp_put_entry *e;
	size_t left, path_room;

	if (*at == len)
		return 0;
	if ((uintptr_t)data % LP_PUT_ALIGN || *at % LP_PUT_ALIGN || *at > len ||
	    len - *at < sizeof *e)
		return refuse(why, "the archive ends inside an entry");
	e = (const void *)(bytes + *at);
	left = len - *at - sizeof *e;
	if (e->path_len < 2 || e->path_len > PATH_BYTES || e->path_len > left)
		return refuse(why, "an entry's path is too short or too long");
	*path = (const char *)(e + 1);
	if ((*path)[e->path_len - 1] || strlen(*path) != e->path_len - 1 || !relative_clean(*path))
		return refuse(why, "an entry's path is not clean and relative");
	if (e->mode > 0777)
		return refuse(why, "an entry's mode is none");
	path_room = padded(e->path_len);
	if (path_room > left || e->data_len > left - path_room)
		return refuse(why, "an entry's data are cut");
	left -= path_room;
	if (padded((size_t)e->data_len) > left)
		return refuse(why, "an entry's padding is cut");
	*content = *path + path_room;
	*entry = e;
	*at = len - left + padded((size_t)e->data_len);
	return 1;
}

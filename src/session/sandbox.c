/* SPDX-License-Identifier: MIT */
/*
 * sandbox.c - the object that an application holds.
 *
 * All of it but a few members is fixed once sb_sandbox_new() has returned: closed and the lists of
 * runs, ids and sessions under `lock`, the states of each backend under the slot's own.  No lock is held while a
 * callback or a run is under way, but a slot's while its backend is probed.
 */
#include "keep.h"
#include "live.h"
#include "../backend/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { CLOSE_MS = 30000, APPROVE_MS = 30000 };
#define KNOWN_FLAGS (SB_SANDBOX_OFFLINE | SB_SANDBOX_AUDIT_REQUIRED | SB_SANDBOX_EAGER | SB_SANDBOX_WARM)

/* ---- entering and leaving -------------------------------------------------------------------- */

static int closed_error(sb_error *err, bool forked)
{
	return error_set(err, SB_ERR_CLOSED, "sandbox",
			 forked ? "the sandbox belongs to the process that forked this one; make a "
				  "new one here"
				: "the sandbox is closed");
}

int sandbox_check(const sb_sandbox *sandbox, sb_error *err)
{
	if (!sandbox)
		return error_set(err, SB_ERR_INVALID, "sandbox", "the sandbox is NULL");
	return sandbox->pid != getpid() ? closed_error(err, true) : 0;
}

int sandbox_enter(sb_sandbox *sandbox, live_run *run, sb_error *err)
{
	int code = sandbox_check(sandbox, err);

	if (code < 0)
		return code;
	*run = (live_run){ 0 };
	pthread_mutex_lock(&sandbox->lock);
	bool closed = sandbox->closed;

	if (!closed) {
		run->next = sandbox->runs;
		sandbox->runs = run;
		sandbox->run_count++;
	}
	pthread_mutex_unlock(&sandbox->lock);
	return closed ? closed_error(err, false) : 0;
}

/* The lock is held. */
static bool id_taken(const sb_sandbox *sandbox, const char *id)
{
	for (const live_run *r = sandbox->runs; r; r = r->next)
		if (r->id && !strcmp(r->id, id))
			return true;
	for (const live_id *c = sandbox->ids; c; c = c->next)
		if (!strcmp(c->id, id))
			return true;
	return false;
}

static int id_conflict(sb_error *err, const char *id)
{
	return error_set(err, SB_ERR_CONFLICT, "command",
			 "the id \"%.80s\" is in use; choose another", id);
}

int sandbox_claim(sb_sandbox *sandbox, live_run *run, const char *id, sb_error *err)
{
	pthread_mutex_lock(&sandbox->lock);
	bool taken = id_taken(sandbox, id);

	if (!taken)
		run->id = id;
	pthread_mutex_unlock(&sandbox->lock);
	return taken ? id_conflict(err, id) : 0;
}

int sandbox_hold(sb_sandbox *sandbox, live_id *claim, const char *id, sb_error *err)
{
	pthread_mutex_lock(&sandbox->lock);
	bool taken = id_taken(sandbox, id);

	if (!taken) {
		*claim = (live_id){ .id = id, .next = sandbox->ids };
		sandbox->ids = claim;
	}
	pthread_mutex_unlock(&sandbox->lock);
	return taken ? id_conflict(err, id) : 0;
}

void sandbox_drop(sb_sandbox *sandbox, live_id *claim)
{
	live_id **at = &sandbox->ids;

	pthread_mutex_lock(&sandbox->lock);
	while (claim->id && *at && *at != claim)
		at = &(*at)->next;
	if (claim->id && *at)
		*at = claim->next;
	claim->id = NULL;
	pthread_mutex_unlock(&sandbox->lock);
}

void sandbox_leave(sb_sandbox *sandbox, live_run *run)
{
	live_run **at = &sandbox->runs;

	pthread_mutex_lock(&sandbox->lock);
	while (*at != run)
		at = &(*at)->next;
	*at = run->next;
	if (--sandbox->run_count == 0)
		pthread_cond_broadcast(&sandbox->idle);
	pthread_mutex_unlock(&sandbox->lock);
}

backend_slot *sandbox_slot(const sb_sandbox *sandbox, const char *name)
{
	for (size_t i = 0; i < sandbox->slot_count; i++) {
		const sb_backend *table = sandbox->slots[i].table;

		if (!strcmp(table->name, name) || strv_has(table->aliases, name))
			return &sandbox->slots[i];
	}
	return NULL;
}

char *sandbox_names(const sb_sandbox *sandbox, arena *mem)
{
	char *out = arena_text(mem, "");

	for (size_t i = 0; out && i < sandbox->slot_count; i++)
		out = arena_fmt(mem, "%s%s%s", out, i ? ", " : "", sandbox->slots[i].table->name);
	return out;
}

int sandbox_state(sb_sandbox *sandbox, backend_slot *slot, bool tried, const sb_call *call,
		  sb_state **state, sb_error *err)
{
	sb_state **kept = tried ? &slot->tried : &slot->state;
	sb_call mine = *call;
	sb_report *report = NULL;
	int code = 0;

	mine.helper_dir = sandbox->helper_dir;
	pthread_mutex_lock(&slot->lock);
	if (!*kept) {
		if (tried)
			code = report_new(&report, err);
		if (code >= 0)
			code = slot->table->probe(slot->table, &mine, report, kept, err);
		if (code < 0)
			*kept = NULL;
	}
	*state = *kept;
	pthread_mutex_unlock(&slot->lock);
	sb_report_free(report);
	return code;
}

void sandbox_log(const sb_sandbox *sandbox, uint32_t level, const char *module, const char *fmt, ...)
{
	char text[512];
	va_list args;

	if (!sandbox->log || level > sandbox->log_level)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	sandbox->log(sandbox->log_user, (int)level, module, text);
}

/* ---- making ------------------------------------------------------------------------------------- */

static int unsupported(const sb_sandbox_options *o, sb_error *err)
{
	const sb_command *c = o->operator_command;

	if (o->flags & ~(uint32_t)KNOWN_FLAGS)
		return error_set(err, SB_ERR_UNSUPPORTED, "sandbox", "unknown flags 0x%x", o->flags);
	if (o->secrets && o->secrets[0])
		return error_set(err, SB_ERR_UNSUPPORTED, "sandbox",
				 "secrets need the network gate, which this version does not have");
	if (o->log_level > SB_LOG_DEBUG)
		return error_set(err, SB_ERR_UNSUPPORTED, "sandbox", "unknown log_level %u",
				 o->log_level);
	if (o->audit_fd < 0 || (o->audit_fd > 0 && fcntl(o->audit_fd, F_GETFD) < 0))
		return error_set(err, SB_ERR_INVALID, "sandbox",
				 "audit_fd %d is not an open descriptor", o->audit_fd);
	if (o->approve_ms > INT64_MAX && o->approve_ms != SB_UNLIMITED)
		return error_set(err, SB_ERR_INVALID, "sandbox", "approve_ms is negative");
	if (c && (c->argv || c->language || c->code || c->args || c->env || c->files || c->tree ||
		  c->id || c->on_output || c->flags || c->input_kind == SB_INPUT_CALLBACK ||
		  c->input_kind > SB_INPUT_OPEN || c->input_kind == SB_INPUT_OPEN))
		return error_set(err, SB_ERR_UNSUPPORTED, "sandbox",
				 "operator_command can give cwd, and input as bytes or descriptor, "
				 "nothing else");
	return 0;
}

static int check_table(const sb_backend *table, sb_error *err)
{
	if (!table || !table->name || !*table->name)
		return error_set(err, SB_ERR_INVALID, "backends", "a backend is NULL or has no name");
	if (table->abi != SB_BACKEND_ABI || table->size < sizeof *table)
		return error_set(err, SB_ERR_UNSUPPORTED, "backends",
				 "the backend \"%s\" was built for another version of the library",
				 table->name);
	if (!table->probe || !table->plan || !table->create || !table->spawn || !table->signal ||
	    !table->reap || !table->release || !table->destroy || !table->forget)
		return error_set(err, SB_ERR_INVALID, "backends",
				 "the backend \"%s\" lacks one of the members that each must have",
				 table->name);
	return 0;
}

/* No name or alias may mean two of them. */
static int check_twins(const sb_sandbox *sandbox, const sb_backend *table, sb_error *err)
{
	const char *twice = sandbox_slot(sandbox, table->name) ? table->name : NULL;

	for (size_t i = 0; !twice && table->aliases && table->aliases[i]; i++)
		if (sandbox_slot(sandbox, table->aliases[i]))
			twice = table->aliases[i];
	if (!twice)
		return 0;
	return error_set(err, SB_ERR_CONFLICT, "backends", "the backend \"%s\" is there twice", twice);
}

static int take_backends(sb_sandbox *sandbox, const sb_backend *const *list, sb_error *err)
{
	size_t count = 0;

	if (!list)
		list = sb_backends_builtin();
	while (list[count])
		count++;
	sandbox->slots = arena_alloc(&sandbox->mem, (count + 1) * sizeof *sandbox->slots);
	if (!sandbox->slots)
		return error_no_memory(err, "backends");
	for (size_t i = 0; i < count; i++) {
		int code = check_table(list[i], err);

		if (code >= 0)
			code = check_twins(sandbox, list[i], err);
		if (code < 0)
			return code;
		backend_slot *slot = &sandbox->slots[sandbox->slot_count++];

		slot->table = list[i];
		pthread_mutex_init(&slot->lock, NULL);
	}
	return 0;
}

/* Stable names of what is here; what is known but not built in is left out. */
static int take_order(sb_sandbox *sandbox, const char *const *order, sb_error *err)
{
	static const char *const standard[] = { "wasm", "linux", "container", NULL };
	const char *const *from = policy_spell_out(&sandbox->mem, order ? order : standard);
	size_t n = 0;
	const char **out = from ? arena_alloc(&sandbox->mem, (strv_count(from) + 1) * sizeof *out) : NULL;

	if (!out)
		return error_no_memory(err, "order");
	for (size_t i = 0; from[i]; i++) {
		const char *name = NULL;
		int known = sb_backend_parse(from[i], &name);
		backend_slot *slot = sandbox_slot(sandbox, name ? name : from[i]);

		if (!slot && known < 0)
			return error_set(err, SB_ERR_NOT_FOUND, "order",
					 "the backend \"%.60s\" is not known; there are: %s", from[i],
					 sandbox_names(sandbox, &sandbox->mem));
		if (slot && !strv_has(out, slot->table->name))
			out[n++] = slot->table->name;
	}
	sandbox->order = out;
	sandbox->order_given = order != NULL;
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int handed_on(sb_error *err, const sb_error *why)
{
	if (err)
		*err = *why;
	return why->code;
}

static int take_packs(sb_sandbox *sandbox, const sb_pack *const *packs, sb_error *err)
{
	size_t count = 0;
	bool builtin = !packs;
	sb_error why = { 0 };

	if (!packs)
		packs = sb_packs_builtin();
	while (packs[count])
		count++;
	int code = builtin ? 0 : pack_validate_all(packs, err); /* ours: by the unit tests */
	const sb_pack **list = arena_alloc(&sandbox->mem, (count + 1) * sizeof *list);
	const char **names = arena_alloc(&sandbox->mem, (count + 1) * sizeof *names);

	if (code < 0)
		return code;
	for (size_t i = 0; list && names && i < count; i++) {
		list[i] = builtin ? packs[i] : copy_pack(&sandbox->mem, packs[i], &why);
		if (!list[i])
			return handed_on(err, &why);
		names[i] = list[i]->name;
	}
	if (!list || !names)
		return error_no_memory(err, "packs");
	qsort(names, count, sizeof *names, by_text);
	sandbox->packs = list;
	sandbox->languages = names;
	return 0;
}

static int take_predicates(sb_sandbox *sandbox, const sb_predicate *const *list, sb_error *err)
{
	size_t count = 0;

	if (!list)
		return 0;
	while (list[count])
		count++;
	const sb_predicate **out = arena_alloc(&sandbox->mem, (count + 1) * sizeof *out);

	for (size_t i = 0; out && i < count; i++) {
		sb_predicate *one = arena_alloc(&sandbox->mem, sizeof *one);
		int code = one ? record_read(one, sizeof *one, list[i], "sb_predicate", err) : 0;

		if (code < 0)
			return code;
		if (!one)
			break;
		if (one->what > SB_PREDICATE_CUSTOM)
			return error_set(err, SB_ERR_UNSUPPORTED, "approval",
					 "unknown predicate %llu", (unsigned long long)one->what);
		one->args = arena_list(&sandbox->mem, one->args);
		out[i] = one;
	}
	if (sandbox->mem.failed)
		return error_no_memory(err, "approval");
	sandbox->predicates = out;
	return 0;
}

static int take_operator_spec(sb_sandbox *sandbox, const sb_spec *spec, sb_error *err)
{
	extern char **environ;
	sb_error why = { 0 };
	place p;

	if (!spec)
		return 0;
	int code = sb_spec_validate(spec, err);

	if (code < 0)
		return code;
	sandbox->operator_spec = copy_spec(&sandbox->mem, spec, &why);
	if (!sandbox->operator_spec)
		return handed_on(err, &why);
	if (sandbox->operator_spec->limits)
		code = limits_check_set(sandbox->operator_spec->limits, err);
	if (code < 0 || !sandbox->operator_spec->workspace)
		return code;
	place_init(&p);
	code = place_workspace(&p, sandbox, &sandbox->mem, sandbox->operator_spec->workspace,
			       (const char *const *)environ, err);
	if (code >= 0) {
		sandbox->operator_workspace = p.workspace;
		sandbox->operator_workspace_fd = p.fd;
		p.fd = -1;
	}
	place_release(&p);
	return code;
}

static int take_limits(sb_sandbox *sandbox, const sb_limits *limits, sb_error *err)
{
	sb_error why = { 0 };

	if (!limits)
		return 0;
	sandbox->default_limits = copy_limits(&sandbox->mem, limits, &why);
	if (!sandbox->default_limits)
		return handed_on(err, &why);
	return limits_check_set(sandbox->default_limits, err);
}

/* host-pid-start: what sweep() looks at to see whether an owner still lives. */
static void make_owner(char *out, size_t cap)
{
	char host[HOST_NAME_MAX + 1] = "";
	uint64_t start = 0;
	int fd = openat(AT_FDCWD, "/proc/self/stat", O_RDONLY | O_CLOEXEC);
	char text[1024];
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;

	fd_close(&fd);
	text[n > 0 ? n : 0] = 0;
	char *at = strrchr(text, ')');

	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (at)
		start = strtoull(at + 1, NULL, 10);
	gethostname(host, sizeof host - 1);
	snprintf(out, cap, "%s-%d-%llu", host, (int)getpid(), (unsigned long long)start);
}

/* Made when the first request is resolved, not before: a command begins its walls first. */
const char *sandbox_owner(sb_sandbox *sandbox)
{
	if (sandbox->owner)
		return sandbox->owner;
	pthread_mutex_lock(&sandbox->lock);
	if (!*sandbox->owner_made)
		make_owner(sandbox->owner_made, sizeof sandbox->owner_made);
	pthread_mutex_unlock(&sandbox->lock);
	return sandbox->owner_made;
}

static int take_plain(sb_sandbox *s, const sb_sandbox_options *o, sb_error *err)
{
	arena *mem = &s->mem;

	s->allowed_commands = arena_list(mem, o->allowed_commands);
	s->approve = o->approve;
	s->log = o->log;
	s->audit = o->audit;
	s->approve_user = o->approve_user;
	s->log_user = o->log_user;
	s->audit_user = o->audit_user;
	s->approve_ms = o->approve_ms ? o->approve_ms : APPROVE_MS;
	s->cache_dir = arena_text(mem, o->cache_dir);
	s->helper_dir = arena_text(mem, o->helper_dir);
	s->owner = o->owner ? arena_text(mem, o->owner) : NULL;
	s->log_level = o->log_level ? o->log_level : SB_LOG_WARNING;
	s->flags = o->flags;
	s->audit_fd = o->audit_fd ? o->audit_fd : -1;
	if (o->operator_command)
		s->operator_command = copy_command(mem, o->operator_command, err);
	return mem->failed ? error_no_memory(err, "sandbox") : 0;
}

/* EAGER: everything that specs without a backend of their own could get works, or nothing does. */
static int try_backends(sb_sandbox *sandbox, const sb_wait *wait, sb_error *err)
{
	sb_call call;
	sb_state *state;
	int code = call_init(&call, wait, CLOSE_MS, err);

	for (size_t i = 0; code >= 0 && sandbox->order[i]; i++)
		code = sandbox_state(sandbox, sandbox_slot(sandbox, sandbox->order[i]), true, &call,
				     &state, err);
	return code;
}

static int fill(sb_sandbox *sandbox, const sb_sandbox_options *opts, const sb_wait *wait,
		sb_error *err)
{
	sb_sandbox_options o = { .size = sizeof o };
	sb_command command;
	int code = opts ? record_read(&o, sizeof o, opts, "sb_sandbox_options", err) : 0;

	if (code >= 0 && o.operator_command) {
		code = record_read(&command, sizeof command, o.operator_command, "sb_command", err);
		o.operator_command = &command;
	}
	if (code >= 0)
		code = unsupported(&o, err);
	if (code >= 0)
		code = take_plain(sandbox, &o, err);
	if (code >= 0)
		code = take_backends(sandbox, o.backends, err);
	if (code >= 0)
		code = take_order(sandbox, o.order, err);
	if (code >= 0)
		code = take_packs(sandbox, o.packs, err);
	if (code >= 0)
		code = take_limits(sandbox, o.default_limits, err);
	if (code >= 0)
		code = take_predicates(sandbox, o.predicates, err);
	if (code >= 0)
		code = take_operator_spec(sandbox, o.operator_spec, err);
	if (code >= 0 && o.flags & SB_SANDBOX_EAGER)
		code = try_backends(sandbox, wait, err);
	return code;
}

int sb_sandbox_new(const sb_sandbox_options *opts, const sb_wait *wait, sb_sandbox **sandbox,
		   sb_error *err)
{
	pthread_condattr_t attr;

	if (!sandbox)
		return error_set(err, SB_ERR_INVALID, "sandbox", "no place for the sandbox was given");
	sb_sandbox *made = calloc(1, sizeof *made);

	if (!made)
		return error_no_memory(err, "sandbox");
	made->pid = getpid();
	made->refs = 1;
	made->operator_workspace_fd = made->audit_fd = -1;
	pthread_mutex_init(&made->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&made->idle, &attr);
	pthread_condattr_destroy(&attr);
	made->shims = shim_kept_new();
	made->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int code = made->stop_fd < 0
			   ? error_errno(err, SB_ERR_IO, errno, "sandbox", "cannot make an eventfd")
			   : fill(made, opts, wait, err);

	if (code < 0) {
		sb_sandbox_free(made);
		return code;
	}
	*sandbox = made;
	return 0;
}

/* ---- sessions with an idle time or an age ----------------------------------------------------------- */

int sandbox_watch(sb_sandbox *sandbox, sb_session *s, sb_error *err)
{
	const sb_manager_options most = { .size = sizeof most, .max_sessions = MANAGER_MOST,
					  .reap_ms = SB_UNLIMITED };
	int code = 0;

	pthread_mutex_lock(&sandbox->lock);
	if (!sandbox->manager)
		code = manager_make(NULL, &keep_watched, true, &most, &sandbox->manager, err);
	pthread_mutex_unlock(&sandbox->lock);
	return code < 0 ? code : manager_adopt(sandbox->manager, s, s->idle_ms, s->lifetime_ms, err);
}

void sandbox_unwatch(sb_session *s)
{
	sb_manager *m;

	if (!s->idle_ms && !s->lifetime_ms)
		return;
	pthread_mutex_lock(&s->sandbox->lock);
	m = s->sandbox->manager;
	pthread_mutex_unlock(&s->sandbox->lock);
	if (m) /* it stays as long as the sandbox, and so as long as we */
		manager_look(m);
}

/* ---- closing --------------------------------------------------------------------------------------- */

/* Waits until no run is inside; false = the deadline came first. */
static bool wait_idle(sb_sandbox *sandbox, uint64_t deadline_ns)
{
	struct timespec until = { .tv_sec = (time_t)(deadline_ns / 1000000000u),
				  .tv_nsec = (long)(deadline_ns % 1000000000u) };
	int rc = 0;

	while (sandbox->run_count && rc != ETIMEDOUT)
		rc = deadline_ns == SB_UNLIMITED
			     ? pthread_cond_wait(&sandbox->idle, &sandbox->lock)
			     : pthread_cond_timedwait(&sandbox->idle, &sandbox->lock, &until);
	return sandbox->run_count == 0;
}

static void forget_states(sb_sandbox *sandbox)
{
	for (size_t i = 0; i < sandbox->slot_count; i++) {
		backend_slot *slot = &sandbox->slots[i];

		pthread_mutex_lock(&slot->lock);
		if (slot->state)
			slot->table->forget(slot->state);
		if (slot->tried)
			slot->table->forget(slot->tried);
		slot->state = slot->tried = NULL;
		pthread_mutex_unlock(&slot->lock);
	}
}

/* One that is open, with a reference; `untold`: and has not been told yet.  Needs no memory. */
static sb_session *an_open_session(sb_sandbox *sandbox, bool untold)
{
	pthread_mutex_lock(&sandbox->lock);
	sb_session *s = sandbox->sessions;

	while (s && untold && s->told)
		s = s->next;
	if (s) {
		s->told = true;
		session_ref(s);
	}
	pthread_mutex_unlock(&sandbox->lock);
	return s;
}

/* Kills what runs in all of them first, then closes one after the other. */
static int close_sessions(sb_sandbox *sandbox, const sb_call *call, sb_error *err)
{
	sb_session *s;
	int code = 0;

	while ((s = an_open_session(sandbox, true))) {
		pthread_mutex_lock(&s->lock);
		session_begin_close(s);
		pthread_mutex_unlock(&s->lock);
		session_unref(s);
	}
	/* what is closed is off the list */
	while (code >= 0 && (s = an_open_session(sandbox, false))) {
		code = session_end_close(s, call, err);
		session_unref(s);
	}
	return code;
}

static int not_idle(sb_error *err, bool told)
{
	return error_set(err, SB_ERR_TIMEOUT, "sandbox",
			 "a run has not ended yet%s; close again to wait for it",
			 told ? "" : " and could not be told");
}

/* Nobody comes with another session by now. */
static int shut_manager(sb_sandbox *sandbox, const sb_call *call, sb_error *err)
{
	const sb_wait rest = keep_rest(NULL, call);

	return sandbox->manager ? sb_manager_shutdown(sandbox->manager, &rest, err) : 0;
}

int sb_sandbox_close(sb_sandbox *sandbox, const sb_wait *wait, sb_error *err)
{
	sb_call call;
	uint64_t one = 1;
	int code = sandbox_check(sandbox, err);

	if (code >= 0)
		code = call_init(&call, wait, CLOSE_MS, err);
	if (code < 0)
		return code;
	pthread_mutex_lock(&sandbox->lock);
	sandbox->closed = true;
	/* every run polls it, and ends as cancelled */
	bool told = write(sandbox->stop_fd, &one, sizeof one) == (ssize_t)sizeof one;

	pthread_mutex_unlock(&sandbox->lock);
	code = close_sessions(sandbox, &call, err);
	pthread_mutex_lock(&sandbox->lock);
	bool idle = wait_idle(sandbox, call.deadline_ns);

	pthread_mutex_unlock(&sandbox->lock);
	/* one that was just opening is there now */
	if (idle && code >= 0)
		code = close_sessions(sandbox, &call, err);
	if (!idle || code < 0)
		return code < 0 ? code : not_idle(err, told);
	code = shut_manager(sandbox, &call, err);
	if (code < 0)
		return code;
	io_stop(sandbox);
	forget_states(sandbox);
	return 0;
}

void sandbox_ref(sb_sandbox *sandbox)
{
	atomic_fetch_add(&sandbox->refs, 1);
}

void sandbox_unref(sb_sandbox *sandbox)
{
	if (atomic_fetch_sub(&sandbox->refs, 1) != 1)
		return;
	sb_manager_free(sandbox->manager);
	fd_close(&sandbox->stop_fd);
	fd_close(&sandbox->operator_workspace_fd);
	if (sandbox->pid == getpid()) {
		for (size_t i = 0; i < sandbox->slot_count; i++)
			pthread_mutex_destroy(&sandbox->slots[i].lock);
		pthread_mutex_destroy(&sandbox->lock);
		pthread_cond_destroy(&sandbox->idle);
		shim_kept_free(sandbox->shims);
	}
	arena_release(&sandbox->mem);
	free(sandbox);
}

void sb_sandbox_free(sb_sandbox *sandbox)
{
	if (!sandbox)
		return;
	/* what is still inside after all that time keeps its object: better lost than torn */
	if (sandbox->pid == getpid() && sb_sandbox_close(sandbox, NULL, NULL) < 0)
		return;
	sandbox_unref(sandbox);
}

/* ---- what it has --------------------------------------------------------------------------------------- */

const char *const *sb_sandbox_order(const sb_sandbox *sandbox)
{
	return sandbox->order;
}

const char *const *sb_sandbox_languages(const sb_sandbox *sandbox)
{
	return sandbox->languages;
}

int sb_sandbox_pack(const sb_sandbox *sandbox, const char *language, const sb_pack **pack,
		    sb_error *err)
{
	if (!sandbox || !language || !pack)
		return error_set(err, SB_ERR_INVALID, "language", "an argument is NULL");
	const sb_pack *found = pack_find(sandbox->packs, language);

	if (!found)
		return error_set(err, SB_ERR_UNKNOWN_LANGUAGE, "language",
				 "the language \"%.60s\" is not known", language);
	*pack = found;
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* list.c - what is alive in a sandbox object, and ending it by its id. */
#include "live.h"

#include <stdlib.h>

enum { TERMINATE_MS = 10000 };

struct sb_list {
	arena mem;
	sb_info *at;
	size_t len, cap;
};

sb_session **list_sessions(sb_sandbox *sandbox)
{
	size_t count = 0, i = 0;

	pthread_mutex_lock(&sandbox->lock);
	for (const sb_session *s = sandbox->sessions; s; s = s->next)
		count++;
	sb_session **list = calloc(count + 1, sizeof *list);

	for (sb_session *s = sandbox->sessions; list && s; s = s->next) {
		session_ref(s);
		list[i++] = s;
	}
	pthread_mutex_unlock(&sandbox->lock);
	return list;
}

static void free_sessions(sb_session **list)
{
	for (size_t i = 0; list && list[i]; i++)
		session_unref(list[i]);
	free(list);
}

/* ---- the list ------------------------------------------------------------------------------------ */

static sb_info *add(sb_list *list)
{
	sb_info *at = list->len < list->cap ? list->at
					    : buf_grow(list->at, list->len, &list->cap, sizeof *at);

	if (!at)
		return NULL;
	list->at = at;
	at += list->len++;
	*at = (sb_info){ .size = sizeof *at };
	return at;
}

static bool add_process(sb_list *list, const sb_process *p)
{
	const sb_session *s = p->session;
	sb_info *info = add(list);

	if (!info)
		return false;
	info->id = arena_text(&list->mem, p->id);
	info->session = arena_text(&list->mem, s->e.id);
	info->backend = session_table(s)->name;
	info->language = "";
	info->argv = arena_list(&list->mem, (const char *const *)p->argv);
	info->started_unix_ns = p->started_unix_ns;
	info->pid = p->pid;
	info->what = SB_LIST_PROCESSES;
	info->running = !p->ended;
	info->tty = p->tty;
	info->code = -1;
	if (p->ended) {
		info->outcome = p->exit.outcome;
		info->code = p->exit.code;
		info->signal_number = p->exit.signal_number;
		info->error = p->exit.error;
	}
	return true;
}

static bool add_session(sb_list *list, const sb_session *s)
{
	static const char *const nothing[] = { NULL };
	sb_info *info = add(list);

	if (!info)
		return false;
	info->id = arena_text(&list->mem, s->e.id);
	info->session = "";
	info->backend = session_table(s)->name;
	info->language = s->e.pack ? arena_text(&list->mem, s->e.pack->name) : "";
	info->argv = nothing;
	info->started_unix_ns = s->started_unix_ns;
	info->what = SB_LIST_SESSIONS;
	info->running = !s->killed;
	info->code = -1;
	return true;
}

static bool add_all(sb_list *list, sb_session *s, int what)
{
	bool fine = true;

	pthread_mutex_lock(&s->lock);
	if (what != SB_LIST_PROCESSES && !s->closed)
		fine = add_session(list, s);
	for (const sb_process *p = s->processes; fine && what != SB_LIST_SESSIONS && p; p = p->next)
		fine = add_process(list, p);
	pthread_mutex_unlock(&s->lock);
	return fine && !list->mem.failed;
}

static int by_start(const void *a, const void *b)
{
	const sb_info *x = a, *y = b;

	if (x->started_unix_ns != y->started_unix_ns)
		return x->started_unix_ns < y->started_unix_ns ? -1 : 1;
	return strcmp(x->id, y->id);
}

/* Of these, what is asked for. */
static int make_list(sb_session *const *sessions, size_t count, int what, sb_list **out, sb_error *err)
{
	sb_list *list = calloc(1, sizeof *list);
	bool fine = list;

	for (size_t i = 0; fine && i < count; i++)
		fine = add_all(list, sessions[i], what);
	if (!fine) {
		sb_list_free(list);
		return error_no_memory(err, "list");
	}
	if (list->len)
		qsort(list->at, list->len, sizeof *list->at, by_start);
	*out = list;
	return 0;
}

int list_of(sb_session *const *sessions, size_t count, sb_list **list, sb_error *err)
{
	return make_list(sessions, count, SB_LIST_SESSIONS, list, err);
}

int sb_sandbox_list(sb_sandbox *sandbox, int what, sb_list **out, sb_error *err)
{
	int code = sandbox_check(sandbox, err);

	if (code < 0)
		return code;
	if (!out || what < SB_LIST_ALL || what > SB_LIST_SESSIONS)
		return error_set(err, SB_ERR_INVALID, "list", "%s",
				 out ? "what is to be listed is none of SB_LIST_*"
				     : "no place for the list was given");
	sb_session **sessions = list_sessions(sandbox);
	size_t count = 0;

	while (sessions && sessions[count])
		count++;
	code = sessions ? make_list(sessions, count, what, out, err) : error_no_memory(err, "list");
	free_sessions(sessions);
	return code;
}

size_t sb_list_count(const sb_list *list)
{
	return list ? list->len : 0;
}

int sb_list_at(const sb_list *list, size_t index, sb_info *info)
{
	if (!list || !info || index >= list->len)
		return SB_ERR_INVALID;
	return record_write(info, &list->at[index], sizeof list->at[index], "sb_info", NULL);
}

void sb_list_free(sb_list *list)
{
	if (!list)
		return;
	arena_release(&list->mem);
	free(list->at);
	free(list);
}

/* ---- by id --------------------------------------------------------------------------------------- */

static sb_process *find_process(sb_session *s, const char *id)
{
	sb_process *p;

	pthread_mutex_lock(&s->lock);
	for (p = s->processes; p && strcmp(p->id, id);)
		p = p->next;
	if (p)
		process_ref(p);
	pthread_mutex_unlock(&s->lock);
	return p;
}

/* An id that is held, or a run's, but no process or session that is there. */
static bool is_starting(sb_sandbox *sandbox, const char *id)
{
	bool held = false;

	pthread_mutex_lock(&sandbox->lock);
	for (const live_id *c = sandbox->ids; c; c = c->next)
		held = held || !strcmp(c->id, id);
	for (const live_run *r = sandbox->runs; r; r = r->next)
		held = held || (r->id && !strcmp(r->id, id));
	pthread_mutex_unlock(&sandbox->lock);
	return held;
}

static int terminate_one(sb_session *s, const char *id, const sb_wait *wait, bool *found,
			 sb_error *err)
{
	sb_wait bound = { .size = sizeof bound };
	sb_process *p;
	int code = wait ? record_read(&bound, sizeof bound, wait, "sb_wait", err) : 0;

	if (code < 0) {
		*found = true;
		return code;
	}
	if (!bound.timeout_ms)
		bound.timeout_ms = TERMINATE_MS;
	if (!strcmp(s->e.id, id)) {
		*found = true;
		return sb_session_close(s, &bound, err);
	}
	p = find_process(s, id);
	if (p) {
		*found = true;
		code = sb_process_terminate(p, &bound, err);
		process_unref(p);
	}
	return code;
}

int sb_sandbox_terminate(sb_sandbox *sandbox, const char *id, const sb_wait *wait, sb_error *err)
{
	bool found = false;
	int code = sandbox_check(sandbox, err);

	if (code >= 0 && !id)
		code = error_set(err, SB_ERR_INVALID, "terminate", "the id is NULL");
	if (code < 0)
		return code;
	sb_session **sessions = list_sessions(sandbox);

	if (!sessions)
		return error_no_memory(err, "terminate");
	for (size_t i = 0; !found && sessions[i]; i++)
		code = terminate_one(sessions[i], id, wait, &found, err);
	free_sessions(sessions);
	if (found)
		return code;
	if (is_starting(sandbox, id))
		return error_set(err, SB_ERR_UNSUPPORTED, "terminate",
				 "\"%.80s\" is still starting, or a run: what waits for it can cancel it",
				 id);
	return error_set(err, SB_ERR_NOT_FOUND, "terminate",
			 "nothing with the id \"%.80s\" is alive here", id);
}

/* SPDX-License-Identifier: MIT */
/*
 * files.c - files into an open session, out of it, and removed: sb_session_put(), _get(), _remove().
 *
 * The plan says where the guest may write, and is asked first, for a good message; what holds is that
 * the backend finds its way with the guest's rights and follows no link.
 */
#include "live.h"

enum { FILES_MS = 10000, PATH_CAP = 4100, PUT_MOST = 1 << 30, NODES_MOST = 65536 };

typedef struct asked {
	char path[PATH_CAP]; /* absolute and clean */
	char *base;          /* its last element, within */
} asked;

static int read_path(asked *a, const char *path, sb_error *err)
{
	if (!path || path[0] != '/')
		return error_set(err, SB_ERR_INVALID_PATH, "files", "\"%.200s\" is not an absolute path",
				 path ? path : "");
	a->path[0] = '/';
	int code = sb_path_clean(path + 1, a->path + 1, sizeof a->path - 1, NULL, err);

	if (code < 0)
		return code;
	if (!strcmp(a->path, "/."))
		return error_set(err, SB_ERR_IS_DIR, "files", "\"/\" is no file, and all that there is; name "
				 "what is meant");
	a->base = strrchr(a->path, '/') + 1;
	return 0;
}

static int check_place(const sb_session *s, const asked *a, sb_error *err)
{
	const char *why = "";
	int access = SB_FILE_HIDE, code = sb_plan_path(s->plan, a->path, &access, &why);

	if (code < 0 || access == SB_FILE_WRITE || access == SB_FILE_TMPFS)
		return code < 0 ? code : 0;
	return error_set(err, SB_ERR_FORBIDDEN, "files", "the guest may not write \"%.200s\" (%s), so nothing "
			 "is put there, read or removed", a->path, why);
}

/* The lock is held. */
static int check_open(const sb_session *s, sb_error *err)
{
	if (s->closing || s->closed)
		return error_set(err, SB_ERR_SESSION_CLOSED, "session", "the session \"%.80s\" is closed",
				 s->e.id);
	if (s->killed || !s->box)
		return error_set(err, SB_ERR_SESSION_KILLED, "session",
				 "the walls of the session \"%.80s\" are gone; open another", s->e.id);
	return 0;
}

/* One of the three, under the session's turn. */
static int ask_backend(sb_session *s, const sb_call *call, asked *a, const sb_tree *in, sb_tree *out,
		       sb_error *err)
{
	const sb_backend *table = session_table(s);
	const char *path = a->path;

	if (out)
		return table->get(s->box, path, call, out, err);
	if (!in)
		return table->remove(s->box, path, call, err);
	if (a->base == a->path + 1)
		path = "/";
	else
		a->base[-1] = 0;
	return table->put(s->box, path, in, call, err);
}

static int with_turn(sb_session *s, const sb_call *call, asked *a, const sb_tree *in, sb_tree *out,
		     sb_error *err)
{
	int code;

	pthread_mutex_lock(&s->lock);
	code = check_open(s, err);
	if (code >= 0)
		code = turn_take(s, call, err);
	if (code >= 0) {
		code = check_open(s, err);
		pthread_mutex_unlock(&s->lock);
		if (code >= 0)
			code = ask_backend(s, call, a, in, out, err);
		pthread_mutex_lock(&s->lock);
		if (sb_error_kind(code) == SB_KIND_CLOSED || code == SB_ERR_CONNECTION_LOST)
			s->killed = true;
		turn_give(s);
	}
	pthread_mutex_unlock(&s->lock);
	return code < 0 ? code : 0;
}

static int begin(sb_session *s, const char *path, const sb_wait *wait, bool can, asked *a, sb_call *call,
		 live_run *live, sb_error *err)
{
	int code = session_check(s, "session", err);

	if (code >= 0)
		code = call_init(call, wait, FILES_MS, err);
	if (code >= 0)
		code = read_path(a, path, err);
	if (code >= 0 && !can)
		code = error_set(err, SB_ERR_UNSUPPORTED, "files",
				 "the backend \"%s\" has no files to put or get in a session; use another",
				 session_table(s)->name);
	if (code >= 0)
		code = check_place(s, a, err);
	if (code >= 0)
		code = sandbox_enter(s->sandbox, live, err);
	if (code >= 0)
		session_ref(s);
	return code;
}

static void end(sb_session *s, live_run *live)
{
	sandbox_leave(s->sandbox, live);
	session_unref(s);
}

int sb_session_put(sb_session *s, const char *path, const void *data, size_t len, const sb_wait *wait,
		   sb_error *err)
{
	sb_tree *tree = NULL;
	live_run live;
	sb_call call;
	asked a;

	if ((len && !data) || len > PUT_MOST)
		return error_set(err, SB_ERR_INVALID, "files", len > PUT_MOST ? "a file put at once has at most "
				 "1 GiB; put it in pieces" : "there are no bytes to put");
	int code = begin(s, path, wait, s && session_table(s)->put, &a, &call, &live, err);

	if (code < 0)
		return code;
	code = sb_tree_new(len + 1, 8, &tree, err);
	if (code >= 0)
		code = sb_tree_write(tree, a.base, data ? data : "", len, err);
	if (code >= 0)
		code = with_turn(s, &call, &a, tree, NULL, err);
	sb_tree_free(tree);
	end(s, &live);
	return code;
}

int sb_session_get(sb_session *s, const char *path, const sb_wait *wait, sb_tree **out, sb_error *err)
{
	sb_tree *tree = NULL;
	live_run live;
	sb_call call;
	asked a;

	if (!out)
		return error_set(err, SB_ERR_INVALID, "files", "no place for the tree was given");
	int code = begin(s, path, wait, s && session_table(s)->get, &a, &call, &live, err);

	if (code < 0)
		return code;
	const sb_limits *l = &s->e.limits;
	uint64_t bytes = l->collect_bytes ? l->collect_bytes : l->fs_bytes;

	/* what has no quota of its own is held to what is put at once */
	if (!bytes || bytes == SB_UNLIMITED)
		bytes = PUT_MOST;
	code = sb_tree_new(bytes, l->fs_nodes && l->fs_nodes != SB_UNLIMITED ? l->fs_nodes : NODES_MOST, &tree,
			   err);
	if (code >= 0)
		code = with_turn(s, &call, &a, NULL, tree, err);
	if (code < 0)
		sb_tree_free(tree);
	else
		*out = tree;
	end(s, &live);
	return code;
}

int sb_session_remove(sb_session *s, const char *path, const sb_wait *wait, sb_error *err)
{
	live_run live;
	sb_call call;
	asked a;
	int code = begin(s, path, wait, s && session_table(s)->remove, &a, &call, &live, err);

	if (code < 0)
		return code;
	code = with_turn(s, &call, &a, NULL, NULL, err);
	end(s, &live);
	return code;
}

/* SPDX-License-Identifier: MIT */
/*
 * fork.c - a branch of a session's interpreter: a fresh box, and in it a worker that goes on where the other rests.
 *
 * The box is made as create() makes any.  What the guest is comes from its worker, on the socket of live.c, and goes to
 * the branch's, piece by piece: nothing of it is kept here or looked at but how much there is.  While the one
 * counts what it has, the other is started.
 *
 * Whatever fails: what the session's worker still has to say of the question is read and thrown away, so that it can be
 * asked again; one that does not come to an end with it in time is asked nothing more.
 */
#include "wasm.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE ((size_t)1 << 17)
#define UNDO_MS 10000u
#define ENDED_MS 2000u /* for a branch whose worker has gone, to say why */
#define MEMORY_MOST ((uint64_t)1 << 32)
#define NAMES_MOST ((uint64_t)1 << 20)
#define NAME_BYTES 4608u /* of a name, of its node, and of the text of a link */
#define SLACK ((uint64_t)64 << 20)

typedef struct forking {
	wasm_box *of, *own;      /* own: of the branch; NULL before there is one */
	const sb_box_request *request;
	const sb_call *call;
	packdir dir;
	wasm_shown shown;
	sb_box *box;
	sb_guest *guest;
	sb_guest_io *io;
	ask_head head;           /* the session's answer */
	size_t heard;            /* of that */
	uint64_t left;           /* behind it */
	bool given_up;           /* the session's worker is asked nothing more */
} forking;

/* ---- Bytes --------------------------------------------------------------------------------------- */

/* Some of `len`: how many, 0 = the end, or an error of the call.  The call is looked at each time: a worker that has
 * always more to say is waited for nowhere, and would be listened to for as long as it likes. */
static int64_t hear_some(forking *f, void *data, size_t len, const sb_call *call, sb_error *err)
{
	int rc = sb_call_check(call, err);

	while (!rc) {
		ssize_t n = recv(f->of->ask, data, len, 0);

		if (n >= 0 || (errno != EAGAIN && errno != EINTR))
			return n < 0 ? 0 : n;
		rc = errno == EAGAIN ? sb_call_wait(call, f->of->ask, POLLIN, err) : 0;
	}
	return rc;
}

static int gone(forking *f, sb_error *err)
{
	f->given_up = true;
	return error_set(err, SB_ERR_SESSION_KILLED, "fork", "the session's interpreter has ended");
}

/* Goes on where it was left. */
static int hear_head(forking *f, const sb_call *call, sb_error *err)
{
	while (f->heard < sizeof f->head) {
		int64_t n = hear_some(f, (char *)&f->head + f->heard, sizeof f->head - f->heard, call, err);

		if (n <= 0)
			return n ? (int)n : gone(f, err);
		f->heard += (size_t)n;
	}
	return 0;
}

/* ---- The session's side ---------------------------------------------------------------------------- */

static int ask(forking *f, sb_error *err)
{
	const ask_head question = { .magic = ASK_MAGIC, .bytes = sizeof question, .what = ASK_BRANCH };
	ssize_t n;

	do /* nobody waits for it: there is room for it at once */
		n = send(f->of->ask, &question, sizeof question, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == sizeof question ? 0 : gone(f, err);
}

/* As much as a guest within these limits can be. */
static uint64_t most_of(const sb_limits *l)
{
	uint64_t memory = l->memory_bytes && l->memory_bytes < MEMORY_MOST ? l->memory_bytes : MEMORY_MOST;
	uint64_t files = l->fs_bytes && l->fs_bytes < JOB_MAX_BYTES ? l->fs_bytes : JOB_MAX_BYTES;
	uint64_t names = l->fs_nodes && l->fs_nodes < NAMES_MOST ? l->fs_nodes : NAMES_MOST;

	return memory + files + names * NAME_BYTES + SLACK;
}

static int refused(int why, sb_error *err)
{
	switch (why) {
	case -EBUSY:
		return error_set(err, SB_ERR_CONFLICT, "fork", "the session evaluates; branch it once that is done");
	case -EXDEV:
		return error_set(err, SB_ERR_CONFLICT, "fork",
				 "a file of a shown folder is open in the session, and a branch cannot share it; close "
				 "it first");
	case -EOPNOTSUPP:
		return error_set(err, SB_ERR_UNSUPPORTED, "fork",
				 "the interpreter of this session cannot be branched; `sandbox packs build` makes a "
				 "newer one");
	case -ENOMEM:
		return error_set(err, SB_ERR_MEMORY_LIMIT, "fork",
				 "the session has no memory left to be branched; allow more with --mem (memory_bytes)");
	default:
		return error_errno(err, SB_ERR_IO, ask_errno(why), "fork", "the session cannot be branched");
	}
}

/* How much comes behind the head.  False: it is none. */
static bool read_head(forking *f)
{
	const ask_head *head = &f->head;

	if (head->magic != ASK_MAGIC || head->bytes < sizeof *head || (head->rc && head->bytes != sizeof *head) ||
	    head->bytes - sizeof *head > most_of(f->request->limits))
		return false;
	f->left = head->bytes - sizeof *head;
	return true;
}

static int hear_answer(forking *f, sb_error *err)
{
	int rc = hear_head(f, f->call, err);

	if (rc)
		return rc;
	if (!read_head(f)) {
		f->given_up = true;
		return error_set(err, SB_ERR_CONNECTION_LOST, "fork", "the session's worker sends what is no answer");
	}
	return f->head.rc ? refused(f->head.rc, err) : 0;
}

/* It comes to an end with what it was asked, or is asked nothing more. */
static void hear_the_rest(forking *f)
{
	const sb_call undo = { .size = sizeof undo, .cancel_fd = -1,
			       .deadline_ns = clock_deadline_ns(clock_now_ns(), UNDO_MS) };
	bool headless = f->heard < sizeof f->head;
	char *piece = malloc(PIECE);

	if (!piece || f->given_up || hear_head(f, &undo, NULL) < 0)
		f->given_up = true;
	if (!f->given_up && headless)
		f->given_up = !read_head(f);
	while (!f->given_up && f->left) {
		int64_t n = hear_some(f, piece, f->left < PIECE ? (size_t)f->left : PIECE, &undo, NULL);

		f->given_up = n <= 0;
		f->left -= n > 0 ? (uint64_t)n : 0;
	}
	free(piece);
	if (f->given_up)
		fd_close(&f->of->ask);
}

/* ---- The branch ---------------------------------------------------------------------------------------- */

static int lay(forking *f, sb_error *err)
{
	const sb_pack_way *way = f->request->way;

	f->box = box_new(f->request->limits);
	if (!f->box)
		return error_no_memory(err, "fork");
	f->own = box_own(f->box);
	f->own->state = f->of->state;
	f->own->stack_bytes = f->of->stack_bytes;
	box_lay_world(f->own, &f->dir);
	if (f->of->code_path[0] && way->session_driver) {
		memcpy(f->own->code_path, f->of->code_path, sizeof f->own->code_path);
		job_add(f->own, JOB_FILE, JOB_READONLY | JOB_FREE, f->own->code_path, way->session_driver,
			strlen(way->session_driver));
	}
	shown_lay(&f->shown, f->own);
	return 0;
}

static int start(forking *f, sb_error *err)
{
	static const char *const none[] = { NULL };
	const char *const argv[] = { JOB_WORKER_PATH, "4", NULL };
	const sb_guest_request request = { .size = sizeof request, .id = f->request->id, .argv = argv, .env = none,
		.cwd = "/", .limits = f->request->limits, .flags = SB_GUEST_CONTROL };
	lh_spawn spawn = { .flags = LP_S_CODE_FD };
	int rc;

	f->own->spawned = true;
	rc = f->own->fd = job_make(f->own, f->request->limits, f->request->limits->cpu_ms, true, JOB_BRANCH, err);
	if (rc < 0)
		return rc;
	spawn.code = f->own->fd;
	rc = launched_spawn(f->box, &request, &spawn, f->call, &f->guest, f->io, err);
	return rc ? rc : live_open(f->own, f->io->control, err);
}

static int make(forking *f, sb_error *err)
{
	sb_state *state = f->of->state;
	int rc = box_find_pack(state, wasm_pack_name(f->request->way), f->call, &f->dir, err);

	if (!rc && strcmp(f->dir.of.module.sha256, f->of->module) != 0)
		rc = error_set(err, SB_ERR_CONFLICT, "fork",
			       "the pack \"%s\" was built anew since the session was opened; open another one",
			       f->of->pack);
	if (!rc)
		rc = lay(f, err);
	if (!rc)
		rc = box_launch(state, f->request->id, "sb-wasm", JOB_WORKER_PATH, f->dir.of.name, &f->shown,
				f->request->limits, f->call, f->box, err);
	return rc ? rc : start(f, err);
}

/* Why the branch's worker has gone. */
static int tell_end(forking *f, sb_error *err)
{
	const sb_call soon = { .size = sizeof soon, .cancel_fd = -1,
			       .deadline_ns = clock_deadline_ns(clock_now_ns(), ENDED_MS) };
	sb_guest_exit end = { .size = sizeof end };
	int rc = sb_call_wait(&soon, f->io->exited, POLLIN, NULL) < 0 ? 0 : wasm_reap(f->guest, &end, err);

	if (rc < 0)
		return rc;
	return error_set(err, end.error ? end.error : SB_ERR_CONNECTION_LOST, "fork",
			 "the branch ended before it could go on");
}

static int told(int why, sb_error *err)
{
	switch (why) {
	case 0:
		return 0;
	case -ENOMEM:
		return error_set(err, SB_ERR_MEMORY_LIMIT, "fork",
				 "the branch needs more memory than is allowed; allow more with --mem (memory_bytes)");
	case -ENOSPC:
		return error_set(err, SB_ERR_FS_QUOTA, "fork",
				 "the session's files do not fit the limit of the branch's disk; allow more with "
				 "--disk (fs_bytes)");
	case -EMFILE:
		return error_set(err, SB_ERR_INVALID_LIMITS, "fork",
				 "the session has more files open than the branch may have; allow more (open_files)");
	case -ENOENT:
		return error_set(err, SB_ERR_CONFLICT, "fork",
				 "what of the host is shown is not what the session was shown; open another one");
	default:
		return error_errno(err, SB_ERR_IO, ask_errno(why), "fork",
				   "the branch cannot take what the session's worker gave");
	}
}

/* ---- From the one to the other -------------------------------------------------------------------------- */

static int pass_pieces(forking *f, sb_error *err)
{
	ask_head begin = { .magic = ASK_MAGIC, .bytes = f->head.bytes, .what = ASK_BEGIN };
	char *piece = malloc(PIECE);
	int rc = piece ? live_move(f->own, &begin, sizeof begin, true, f->call, err) : error_no_memory(err, "fork");

	while (!rc && f->left) {
		int64_t n = hear_some(f, piece, f->left < PIECE ? (size_t)f->left : PIECE, f->call, err);

		if (n <= 0) {
			rc = n ? (int)n : gone(f, err);
			break;
		}
		f->left -= (uint64_t)n;
		rc = live_move(f->own, piece, (size_t)n, true, f->call, err);
	}
	free(piece);
	return rc;
}

static int pass_on(forking *f, sb_error *err)
{
	ask_head answer;
	int rc = hear_answer(f, err);

	if (!rc)
		rc = pass_pieces(f, err);
	/* one that takes no more may have said why */
	if (rc >= 0)
		rc = live_move(f->own, &answer, sizeof answer, false, f->call, err);
	if (rc)
		return rc < 0 ? rc : tell_end(f, err);
	if (answer.magic != ASK_MAGIC || answer.bytes != sizeof answer)
		return error_set(err, SB_ERR_CONNECTION_LOST, "fork", "the branch's worker sends what is no answer");
	return told(answer.rc, err);
}

bool wasm_forks(const sb_pack_way *way)
{
	return wasm_pack_name(way) && way->session_driver;
}

/* ---- fork() ---------------------------------------------------------------------------------------------- */

static int check(sb_box *box, sb_guest *guest, const sb_box_request *request, sb_error *err)
{
	const wasm_box *own = box_own(box);

	if (!own->pack[0] || !own->spawned || !wasm_forks(request->way))
		return error_set(err, SB_ERR_UNSUPPORTED, "fork", "only a session of a language has branches");
	launched_box_listen(box);
	if (guest->ended || guest->refused || box->lost || box->gone || own->ask < 0)
		return error_set(err, SB_ERR_SESSION_KILLED, "fork", "the session's interpreter has ended");
	return wasm_check(own->state, request, err);
}

static void undo(forking *f)
{
	int *fds[] = { &f->io->in, &f->io->out, &f->io->err, &f->io->exited, &f->io->control };

	for (size_t i = 0; i < BASE_ARRAY_LEN(fds); i++)
		fd_close(fds[i]);
	launched_release(f->guest);
	box_destroy(f->box);
}

int wasm_fork(sb_box *box, sb_guest *guest, const sb_box_request *request, const sb_call *call, sb_box **branch,
	      sb_guest **twin, sb_guest_io *io, sb_error *err)
{
	forking f = { .of = box_own(box), .request = request, .call = call, .dir = { .fd = -1 }, .io = io };
	int rc = sb_call_check(call, err);

	io->in = io->out = io->err = io->exited = io->control = -1;
	if (!rc)
		rc = check(box, guest, request, err);
	if (!rc)
		rc = shown_find(f.of->state, request, &f.shown, err);
	if (rc)
		return rc;
	rc = ask(&f, err);
	if (!rc)
		rc = make(&f, err);
	if (!rc)
		rc = pass_on(&f, err);
	hear_the_rest(&f);
	packdir_close(&f.dir);
	shown_release(&f.shown);
	if (rc) {
		undo(&f);
		return rc;
	}
	*branch = f.box;
	*twin = f.guest;
	return 0;
}

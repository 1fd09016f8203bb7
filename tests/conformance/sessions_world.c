/* SPDX-License-Identifier: MIT */
/* sessions_world.c - see sessions.h. */
#include "sessions.h"
#include "../lib/descriptors.h"

#include <dirent.h>
#include <sys/stat.h>

enum { KEPT = 4000 };
static void *kept[KEPT];              /* memory of one test */
static size_t kept_count;

static void *keep(void *memory)
{
	assert_non_null(memory);
	assert_true(kept_count < KEPT);
	return kept[kept_count++] = memory;
}

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- what is left -------------------------------------------------------------------------------- */

static const char *marked(pid_t pid, const char *line)
{
	size_t len = 0, room = strlen(line) * 2 + 100;
	char *text = keep(malloc(room));

	for (; *line && len < room - 24; line++) {
		if (*line == '@')
			len += (size_t)snprintf(text + len, 24, "%ld", (long)pid);
		else
			text[len++] = *line;
	}
	text[len] = '\0';
	return text;
}

static bool has_argument(const char *pid, const char *word)
{
	char path[300], text[1024];

	snprintf(path, sizeof path, "/proc/%s/cmdline", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(text + at) + 1)
		if (!strcmp(text + at, word))
			return true;
	return false;
}

static int count_processes(const char *word)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int found = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
			found += has_argument(entry->d_name, word);
	closedir(dir);
	return found;
}

int processes(const char *mark)
{
	return count_processes(marked(getpid(), mark));
}

int processes_of(pid_t pid, const char *mark)
{
	char word[40];

	snprintf(word, sizeof word, "%ld%s", (long)pid, mark);
	return count_processes(word);
}

/* ---- a world ---------------------------------------------------------------------------------------- */

void world_open(world *at)
{
	static const char *order[2];
	static const sb_backend *const fakes[] = { &fake_backend, NULL };
	sb_sandbox_options o = { .size = sizeof o, .backends = at->is_fake ? fakes : NULL,
				 .helper_dir = at->helper_dir, .order = order };

	order[0] = at->backend;
	at->limits = at->opened_with = (sb_limits){ .size = sizeof at->limits };
	if (sb_sandbox_new(&o, NULL, &at->sandbox, &err) < 0)
		fail_msg("%s: %s", err.where, err.message);
	at->session = open_session();
}

int world_make(void **state)
{
	char dir[] = "/tmp/sessions.XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chmod(dir, 0755), 0);
	assert_non_null(realpath(dir, w.workspace));
	return 0;
}

int world_remove(void **state)
{
	(void)state;
	return rmdir(w.workspace);
}

int world_begin(void **state)
{
	(void)state;
	w.descriptors = open_descriptors();
	world_open(&w);
	return 0;
}

int world_end(void **state)
{
	(void)state;
	sb_session_free(w.session);
	sb_sandbox_free(w.sandbox);
	while (kept_count)
		free(kept[--kept_count]);
	if (open_descriptors() != w.descriptors)
		fail_msg("%d descriptors were left open", open_descriptors() - w.descriptors);
	errno = 0;
	assert_true(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	assert_int_equal(fake_seen.broken, 0);
	assert_int_equal(fake_seen.boxes + fake_seen.guests, 0);
	return 0;
}

int try_session(sb_session **session)
{
	const sb_spec spec = { .size = sizeof spec, .limits = &w.limits, .workspace = w.workspace };

	return sb_session_open(w.sandbox, &spec, NULL, NULL, session, &err);
}

sb_session *open_session(void)
{
	sb_session *session = NULL;

	if (try_session(&session) < 0)
		fail_msg("%s: %s", err.where, err.message);
	return session;
}

int try_spawn(const wish *it, sb_process **process)
{
	const char *const shell[] = { "sh", "-c", it->line ? marked(getpid(), it->line) : NULL, NULL };
	char steps[32];
	const char *const scripted[] = { "sh", FAKE_WORD, it->steps ? fake_argv(it->steps, steps) : NULL,
					 NULL };
	sb_command command = it->command;

	command.size = sizeof command;
	command.argv = it->argv ? it->argv : w.is_fake && it->steps ? scripted : shell;
	memset(&err, 0, sizeof err);
	return sb_session_spawn(w.session, &command, NULL, process, &err);
}

sb_process *spawn(const wish *it)
{
	sb_process *process = NULL;

	if (memcmp(&w.limits, &w.opened_with, sizeof w.limits)) {
		sb_session_free(w.session);
		w.session = open_session();
		w.opened_with = w.limits;
	}
	if (try_spawn(it, &process) < 0)
		fail_msg("%s: %s: %s", it->line ? it->line : it->argv[0], err.where, err.message);
	return process;
}

/* ---- what it says ---------------------------------------------------------------------------------------- */

static void take(seen *all, uint32_t stream, const void *data, size_t len)
{
	assert_true(stream >= SB_STDOUT && stream <= SB_TTY);
	if (all->into) {
		assert_true(all->total + len <= all->room);
		memcpy(all->into + all->total, data, len);
	} else {
		char *more = malloc(all->len[stream] + len + 1);

		assert_non_null(more);
		if (all->len[stream])
			memcpy(more, all->text[stream], all->len[stream]);
		memcpy(more + all->len[stream], data, len);
		more[all->len[stream] + len] = 0;
		if (all->text[stream]) {
			size_t i = kept_count;

			while (kept[--i] != all->text[stream])
				;
			free(all->text[stream]);
			kept[i] = more;
		} else {
			keep(more);
		}
		all->text[stream] = more;
	}
	all->len[stream] += len;
	all->total += len;
}

void read_all(sb_process *p, uint64_t cursor, size_t cap, seen *all)
{
	sb_chunk chunk = { .size = sizeof chunk, .next = cursor };
	char *piece = malloc(cap);
	uint32_t first = sb_process_caps(p) & SB_CAP_TTY ? SB_TTY : SB_STDOUT;

	if (!all->into)
		take(all, first, "", 0);
	while (!chunk.eof) {
		if (sb_output_read(sb_process_output(p), chunk.next, piece, cap, NULL, &chunk, &err) < 0)
			fail_msg("%s: %s", err.where, err.message);
		assert_true(chunk.len <= cap && chunk.next == chunk.cursor + chunk.len);
		take(all, chunk.len ? chunk.stream : first, piece, chunk.len);
	}
	free(piece);
}

void watch_all(sb_watch *watch, seen *all)
{
	sb_event event = { .size = sizeof event };
	uint64_t next = 0;

	while (sb_watch_next(watch, NULL, &event, &err) == 0) {
		assert_false(all->closed || all->lagged); /* the last ones */
		switch (event.what) {
		case SB_EVENT_OUTPUT:
			assert_false(all->exited);
			assert_true(event.len > 0 && (event.cursor == next || !all->total));
			next = event.cursor + event.len;
			all->replayed += event.replay ? event.len : 0;
			take(all, event.stream, event.data, event.len);
			break;
		case SB_EVENT_EXITED:
			all->exited = true;
			all->exit_code = event.code;
			break;
		case SB_EVENT_LAG:
			all->lagged = true;
			all->lag_at = event.cursor;
			break;
		default:
			all->closed = true;
		}
	}
	assert_int_equal(err.code, SB_ERR_CLOSED);
}

void await_text(sb_process *p, const char *text)
{
	sb_chunk chunk = { .size = sizeof chunk };
	char all[20000];
	size_t len = 0;

	while (!chunk.eof && len < sizeof all - 1) {
		if (sb_output_read(sb_process_output(p), chunk.next, all + len, sizeof all - 1 - len, NULL,
				   &chunk, &err) < 0)
			fail_msg("%s: %s", err.where, err.message);
		len += chunk.len;
		all[len] = 0;
		if (strstr(all, text))
			return;
	}
	fail_msg("it said \"%s\", and never \"%s\"", all, text);
}

void await_eof(sb_process *p)
{
	sb_chunk chunk = { .size = sizeof chunk };
	uint64_t oldest, end;
	char piece[4096];

	while (!chunk.eof) {
		int code = sb_output_read(sb_process_output(p), chunk.next, piece, sizeof piece, NULL, &chunk,
					  &err);

		if (code == SB_ERR_SEQUENCE_GAP) {
			assert_int_equal(sb_output_range(sb_process_output(p), &oldest, &end, &err), 0);
			chunk.next = end;
		} else if (code < 0) {
			fail_msg("%s: %s", err.where, err.message);
		}
	}
}

void ended(sb_process *p, int outcome, int code, int signal, int error)
{
	sb_exit end = { .size = sizeof end };

	if (sb_process_wait(p, NULL, &end, &err) < 0)
		fail_msg("%s: %s", err.where, err.message);
	if (end.outcome != outcome || end.code != code || end.signal_number != signal || end.error != error)
		fail_msg("%s, code %d, signal %d, error %s", sb_outcome_name(end.outcome), end.code,
			 end.signal_number, sb_code_name(end.error));
}

static void says_on(sb_process *p, int stream, const char *text)
{
	seen all = { 0 };

	read_all(p, 0, 65536, &all);
	assert_string_equal(all.text[stream], text);
	sb_process_free(p);
}

void says(sb_process *p, const char *text)
{
	says_on(p, SB_STDOUT, text);
}

void says_tty(sb_process *p, const char *text)
{
	says_on(p, SB_TTY, text);
}

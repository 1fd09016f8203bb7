/* SPDX-License-Identifier: MIT */
/* state.c - see state.h. */
#include "state.h"
#include "call.h"

#include "../base/base.h"

#include <errno.h>
#include <stdlib.h>

#define LAID_MAX 16u /* descriptors that a worker lays before its guest runs */

typedef struct table_head {
	uint64_t fds, bells, argc, envc;
	int64_t monotonic_base_ns;
	uint64_t control_flags;
} table_head;

enum { OF_STREAM = 1, OF_NODE, OF_ROOT };
typedef struct fd_record {
	uint64_t offset, rights, inherits;
	uint32_t number, kind, of, flags; /* of: the host's number of a stream, a node's number */
} fd_record;

typedef struct bell_record {
	uint32_t at, bits;
} bell_record;

/* ---- Writing ------------------------------------------------------------------------------------- */

int wasi_state_files(const wasi *w, const vfs *fs, vfs_file ***files, size_t *count)
{
	*count = 0;
	*files = NULL;
	if (w->control.file)
		return -EXDEV;
	*files = calloc((size_t)w->fd_count + 1, sizeof(vfs_file *));
	if (!*files)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->fd_count; i++) {
		const wasi_fd *fd = &w->fd[i];

		if (!fd->open || (!fd->file && fd->host <= 2))
			continue;
		if (fd->fs != fs) { /* a control stream that was moved has none at all */
			free(*files);
			*files = NULL;
			return -EXDEV;
		}
		(*files)[(*count)++] = fd->file;
	}
	return 0;
}

static void save_fd(const wasi_fd *fd, uint32_t number, state_sink *to)
{
	fd_record r = { .offset = fd->offset, .rights = fd->rights, .inherits = fd->inherits, .number = number,
			.flags = fd->flags };

	r.kind = fd->preopen ? OF_ROOT : fd->file ? OF_NODE : OF_STREAM;
	r.of = r.kind == OF_NODE ? mem_index_of(fd->file) : r.kind == OF_STREAM ? (uint32_t)fd->host : 0;
	state_put(to, &r, sizeof r);
}

static uint64_t count_words(const char *const *list)
{
	return list ? strv_count(list) : 0;
}

static void save_words(const char *const *list, state_sink *to)
{
	for (; list && *list; list++) {
		uint64_t len = strlen(*list);

		state_put(to, &len, sizeof len);
		state_put(to, *list, len);
	}
}

void wasi_save(const wasi *w, state_sink *to)
{
	table_head head = { .bells = w->bells, .argc = count_words(w->argv), .envc = count_words(w->env),
			    .monotonic_base_ns = w->monotonic_base_ns, .control_flags = w->control.flags };

	for (uint32_t i = 0; i < w->fd_count; i++)
		head.fds += w->fd[i].open;
	state_put(to, &head, sizeof head);
	for (uint32_t i = 0; i < w->fd_count; i++)
		if (w->fd[i].open)
			save_fd(&w->fd[i], i, to);
	for (uint32_t i = 0; i < w->bells; i++) {
		const bell_record r = { .at = w->bell[i].at, .bits = w->bell[i].bits };

		state_put(to, &r, sizeof r);
	}
	save_words(w->argv, to);
	save_words(w->env, to);
}

/* ---- Reading ------------------------------------------------------------------------------------- */

typedef struct loading {
	wasi *w;
	vfs *fs;
	const mem_index *index;
	state_source *from;
	wasi_fd laid[LAID_MAX];  /* before */
	uint32_t laid_count;
} loading;

static const wasi_fd *laid_as(const loading *l, const fd_record *r)
{
	for (uint32_t i = 0; i < l->laid_count; i++) {
		const wasi_fd *fd = &l->laid[i];

		if (fd->open && (r->kind == OF_ROOT ? fd->preopen : fd->host >= 0 && (uint32_t)fd->host == r->of))
			return fd;
	}
	return NULL;
}

static int place_laid(const loading *l, const fd_record *r, wasi_fd *fd)
{
	const wasi_fd *laid = laid_as(l, r);

	if (!laid || (r->rights & ~laid->rights) || (r->inherits & ~laid->inherits))
		return -EPROTO;
	*fd = *laid;
	return 0;
}

static int place_node(const loading *l, const fd_record *r, wasi_fd *fd)
{
	uint64_t most = WASI_FILE_RIGHTS, most_inherits = WASI_FILE_RIGHTS;
	vfs_file *file = mem_index_open(l->index, r->of);
	vfs_stat st;

	if (!file)
		return -EPROTO;
	*fd = (wasi_fd){ .fs = l->fs, .file = file, .host = -1, .open = true, .type = WASI_T_FILE };
	l->fs->ops->stat(l->fs, file, &st);
	if (st.type == VFS_DIR) {
		fd->type = WASI_T_DIR;
		most = WASI_DIR_RIGHTS;
		most_inherits = WASI_DIR_RIGHTS | WASI_FILE_RIGHTS;
	}
	if (!(r->rights & ~most) && !(r->inherits & ~most_inherits))
		return 0;
	fds_close(fd);
	return -EPROTO;
}

static int read_fd(loading *l)
{
	wasi *w = l->w;
	fd_record r;
	int rc = state_get(l->from, &r, sizeof r);

	if (rc)
		return rc;
	if (r.number >= w->fd_max)
		return -EMFILE;
	/* in the order of their numbers: none comes twice */
	if (r.number < w->fd_count || r.offset > INT64_MAX || r.flags > 31)
		return -EPROTO;
	for (; w->fd_count < r.number; w->fd_count++)
		w->fd[w->fd_count] = (wasi_fd){ .host = -1 };
	w->fd[r.number] = (wasi_fd){ .host = -1 };
	w->fd_count = r.number + 1;
	rc = r.kind == OF_NODE ? place_node(l, &r, &w->fd[r.number]) :
	     r.kind == OF_STREAM || r.kind == OF_ROOT ? place_laid(l, &r, &w->fd[r.number]) : -EPROTO;
	if (rc)
		return rc;
	w->fd[r.number].offset = r.offset;
	w->fd[r.number].rights = r.rights;
	w->fd[r.number].inherits = r.inherits;
	w->fd[r.number].flags = (uint16_t)r.flags;
	return 0;
}

/* The table that was laid makes room for one of all that may be open. */
static int make_room(loading *l)
{
	wasi *w = l->w;
	wasi_fd *table = calloc(w->fd_max ? w->fd_max : 1, sizeof *table);

	if (!table)
		return -ENOMEM;
	if (w->fd_count > LAID_MAX) {
		free(table);
		return -EPROTO;
	}
	l->laid_count = w->fd_count;
	if (w->fd_count)
		memcpy(l->laid, w->fd, w->fd_count * sizeof *w->fd);
	free(w->fd);
	w->fd = table;
	w->fd_count = 0;
	w->fd_room = w->fd_max;
	return 0;
}

static int read_bell(loading *l)
{
	bell_record r;
	int rc = state_get(l->from, &r, sizeof r);

	if (rc)
		return rc;
	if (l->w->bells >= WASI_BELL_MAX || r.at % 4 || !call_bytes(l->w, r.at, 4))
		return -EPROTO;
	l->w->bell[l->w->bells].at = r.at;
	l->w->bell[l->w->bells].bits = r.bits;
	l->w->bells++;
	return 0;
}

static int read_word(state_source *from, char **out)
{
	uint64_t len;
	char *word;
	int rc = state_get(from, &len, sizeof len);

	if (rc)
		return rc;
	if (len > from->left)
		return -EPROTO;
	word = malloc(len + 1);
	if (!word)
		return -ENOMEM;
	rc = state_get(from, word, len);
	word[len] = '\0';
	if (!rc && strlen(word) == len) {
		*out = word;
		return 0;
	}
	free(word);
	return rc ? rc : -EPROTO;
}

static int read_words(state_source *from, uint64_t count, char ***out)
{
	int rc = 0;

	if (count > WASI_WORDS_MAX || !state_has(from, count, sizeof(uint64_t)))
		return -EPROTO;
	*out = calloc(count + 1, sizeof **out);
	if (!*out)
		return -ENOMEM;
	for (uint64_t i = 0; !rc && i < count; i++)
		rc = read_word(from, &(*out)[i]);
	return rc;
}

static int read_table(loading *l, char ***argv, char ***env)
{
	int64_t now = (int64_t)clock_now_ns();
	table_head head;
	int rc = state_get(l->from, &head, sizeof head);

	if (rc)
		return rc;
	if (head.fds > l->w->fd_max)
		return -EMFILE;
	if (head.bells > WASI_BELL_MAX || head.monotonic_base_ns < 0 || head.monotonic_base_ns > now ||
	    head.control_flags > 31)
		return -EPROTO;
	for (uint64_t i = 0; !rc && i < head.fds; i++)
		rc = read_fd(l);
	l->w->bells = 0;
	for (uint64_t i = 0; !rc && i < head.bells; i++)
		rc = read_bell(l);
	if (!rc)
		rc = read_words(l->from, head.argc, argv);
	if (!rc)
		rc = read_words(l->from, head.envc, env);
	if (rc)
		return rc;
	wasi_start_clocks(l->w);
	l->w->monotonic_base_ns = head.monotonic_base_ns;
	l->w->control.flags = (uint16_t)head.control_flags;
	return 0;
}

int wasi_load(wasi *w, vfs *fs, const mem_index *index, state_source *from, char ***argv, char ***env)
{
	loading l = { .w = w, .fs = fs, .index = index, .from = from };
	int rc = make_room(&l);

	*argv = *env = NULL;
	if (!rc)
		rc = read_table(&l, argv, env);
	if (!rc)
		return 0;
	w->bells = 0;
	strv_free_list(*argv);
	strv_free_list(*env);
	*argv = *env = NULL;
	return rc;
}

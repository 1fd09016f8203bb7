/* SPDX-License-Identifier: MIT */
/*
 * tmpfs.c - the file systems of a WebAssembly guest against the kernel's own: that in memory, and, as the program
 * fuzz-host (-DOF_HOST), the confined one of a directory of the host.
 *
 * An input is a list of calls.  Each is made on files of ours and on a fresh folder (of a tmpfs where
 * /dev/shm is one): both must give the same answer, and at the end hold the same tree.  They differ where
 * they are meant to: a path that leaves the directory it starts from, and the text of a link that does so
 * absolutely, is refused by ours.  The kernel is asked beforehand (openat2) whether a path does that.
 */
#include "fuzz.h"

#include "../src/base/base.h"
#include "../src/vfs/vfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sandbox/sandbox.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALL_BYTES 6
#define CALLS_MAX 300
#define SLOTS 6
#define NAMES_MAX 64

static const char *const paths[] = {
	"a", "b", "c", "d", "a/b", "a/b/c", "b/a", "a/c", "c/d", ".", "..", "./a", "a/", "b/", "a//b", "a/.",
	"a/..", "a/../b", "a/b/..", "a/b/../..", "a/b/../../..", "../a", "c/../../a", "l", "l/", "l/a", "l/..",
	"l/../b", "m", "m/", "m/a", "l/m/a", "/a", "a/b/c/d", "./", "../",
	"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
	"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
	"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn",
};
static const char *const texts[] = {
	"a", "b", "a/b", "..", "../a", "../..", "l", "m", ".", "a/", "./b", "nowhere", "../l", "m/..", "../b/a", "/a",
};

typedef struct slot {
	vfs_file *file;
	int fd;
	bool used, dir, writes;
} slot;

typedef struct pair {
	mem_fs *mem;
	host_fs *host;
	vfs *fs;
	vfs_file *top;
	char folder[64], ours[64];
	int root;
	slot slot[SLOTS];
} pair;

typedef struct one_call {
	uint32_t what, flags, value;
	const char *path, *to, *text;
	const slot *dir, *to_dir;
	slot *at;
} one_call;

/* ---- The folder ----------------------------------------------------------------------------------- */

static int real(long rc)
{
	return rc < 0 ? -errno : 0;
}

static void clear(int dir)
{
	DIR *d = fdopendir(dir);
	const struct dirent *e;

	FUZZ_CHECK(d);
	while ((e = readdir(d)) != NULL) {
		int below = strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && e->d_type == DT_DIR ?
				    openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;

		if (below >= 0)
			clear(below);
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			FUZZ_CHECK(!unlinkat(dirfd(d), e->d_name, below >= 0 ? AT_REMOVEDIR : 0));
	}
	closedir(d);
}

/* Where a slash at the end says nothing of what a link leads to. */
static bool leaves(const slot *dir, const char *path, bool follow, bool name)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW), .resolve = RESOLVE_BENEATH };
	char text[400];
	size_t len = strlen(path);
	long fd;

	while (name && len > 1 && path[len - 1] == '/')
		len--;
	memcpy(text, path, len);
	text[len] = '\0';
	/* EAGAIN: somebody on this machine renamed something meanwhile */
	while ((fd = syscall(SYS_openat2, dir->fd, text, &how, sizeof how)) < 0 && errno == EAGAIN)
		;
	if (fd >= 0)
		close((int)fd);
	return fd < 0 && errno == EXDEV;
}

/* ---- Calls ---------------------------------------------------------------------------------------- */

static void same(const one_call *c, int mem, int kernel)
{
	/* a name that is too long is noticed sooner or later than what else is wrong */
	if (mem == kernel || (mem && kernel && (mem == -ENAMETOOLONG || kernel == -ENAMETOOLONG)))
		return;
	fprintf(stderr, "call %u flags %u path \"%.40s\" to \"%.40s\" text \"%s\": ours %d (%s), the kernel %d (%s)\n",
		c->what, c->flags, c->path, c->to, c->text, mem, strerror(-mem), kernel, strerror(-kernel));
	abort();
}

static void drop(pair *p, slot *s)
{
	if (s->used) {
		p->fs->ops->close(p->fs, s->file);
		close(s->fd);
	}
	*s = (slot){ .fd = -1 };
}

static void do_open(pair *p, const one_call *c)
{
	uint32_t f = c->flags & (VFS_READ | VFS_WRITE | VFS_CREATE | VFS_EXCL | VFS_TRUNC | VFS_DIRECTORY | VFS_FOLLOW);
	bool exclusive = (f & VFS_CREATE) && (f & VFS_EXCL);
	struct stat st;
	int flags = O_CLOEXEC | O_NONBLOCK, fd, rc;
	vfs_file *file = NULL;

	if (f & VFS_CREATE)
		f &= ~(uint32_t)VFS_DIRECTORY; /* kernels differ */
#ifdef OF_HOST
	f |= VFS_READ; /* as the kernel's is opened */
#endif
	flags |= (f & VFS_WRITE ? O_RDWR : O_RDONLY) | (f & VFS_CREATE ? O_CREAT : 0) | (f & VFS_TRUNC ? O_TRUNC : 0) |
		 (exclusive ? O_EXCL : 0) | (f & VFS_DIRECTORY ? O_DIRECTORY : 0) | (f & VFS_FOLLOW ? 0 : O_NOFOLLOW);
	rc = p->fs->ops->open(p->fs, c->dir->file, c->path, f, &file);
	if (leaves(c->dir, c->path, (f & VFS_FOLLOW) && !exclusive, f & VFS_CREATE)) {
		FUZZ_CHECK(rc < 0);
		return;
	}
	fd = openat(c->dir->fd, c->path, flags, 0600);
	same(c, rc, fd < 0 ? -errno : 0);
	if (rc)
		return;
	drop(p, c->at);
	FUZZ_CHECK(!fstat(fd, &st));
	*c->at = (slot){ .file = file, .fd = fd, .used = true, .dir = S_ISDIR(st.st_mode), .writes = f & VFS_WRITE };
}

static void compare_stat(const vfs_stat *a, const struct stat *b)
{
	int type = S_ISDIR(b->st_mode) ? VFS_DIR : S_ISLNK(b->st_mode) ? VFS_LINK : VFS_FILE;

	FUZZ_CHECK(a->type == type);
	FUZZ_CHECK(type == VFS_DIR || (a->size == (uint64_t)b->st_size && a->links == b->st_nlink));
}

static void do_stat(pair *p, const one_call *c)
{
	bool follow = c->flags & 1;
	vfs_stat a;
	struct stat b;
	int rc = p->fs->ops->stat_at(p->fs, c->dir->file, c->path, follow, &a);

	if (leaves(c->dir, c->path, follow, false)) {
		FUZZ_CHECK(rc < 0);
		return;
	}
	same(c, rc, real(fstatat(c->dir->fd, c->path, &b, follow ? 0 : AT_SYMLINK_NOFOLLOW)));
	if (!rc)
		compare_stat(&a, &b);
}

static void do_readlink(pair *p, const one_call *c)
{
	char a[64], b[64];
	size_t cap = c->flags % 8 + 1, len = 0;
	int rc = p->fs->ops->readlink(p->fs, c->dir->file, c->path, a, cap, &len);
	ssize_t n;

	if (leaves(c->dir, c->path, false, false)) {
		FUZZ_CHECK(rc < 0);
		return;
	}
	n = readlinkat(c->dir->fd, c->path, b, cap);
	same(c, rc, real(n));
	FUZZ_CHECK(rc || (len == (size_t)n && !memcmp(a, b, len)));
}

static void do_two(pair *p, const one_call *c)
{
	bool rename = c->what == 8, follow = !rename && (c->flags & 1);
	int rc = rename ? p->fs->ops->rename(p->fs, c->dir->file, c->path, c->to_dir->file, c->to) :
			  p->fs->ops->link(p->fs, c->dir->file, c->path, follow, c->to_dir->file, c->to);

	if (leaves(c->dir, c->path, follow, rename) || leaves(c->to_dir, c->to, false, true)) {
		FUZZ_CHECK(rc < 0);
		return;
	}
	same(c, rc, rename ? real(renameat(c->dir->fd, c->path, c->to_dir->fd, c->to)) :
			     real(linkat(c->dir->fd, c->path, c->to_dir->fd, c->to, follow ? AT_SYMLINK_FOLLOW : 0)));
}

static void do_name(pair *p, const one_call *c)
{
	const vfs_ops *ops = p->fs->ops;
	int rc = c->what == 4 ? ops->mkdir(p->fs, c->dir->file, c->path) :
		 c->what == 5 ? ops->rmdir(p->fs, c->dir->file, c->path) :
		 c->what == 6 ? ops->unlink(p->fs, c->dir->file, c->path) :
				ops->symlink(p->fs, c->text, c->dir->file, c->path);

	if (leaves(c->dir, c->path, false, true) || (c->what == 7 && c->text[0] == '/')) {
		FUZZ_CHECK(rc < 0);
		return;
	}
	same(c, rc, real(c->what == 4 ? mkdirat(c->dir->fd, c->path, 0700) :
			 c->what == 5 ? unlinkat(c->dir->fd, c->path, AT_REMOVEDIR) :
			 c->what == 6 ? unlinkat(c->dir->fd, c->path, 0) :
					symlinkat(c->text, c->dir->fd, c->path)));
}

static void do_bytes(pair *p, const one_call *c)
{
	uint8_t a[256], b[256];
	uint64_t offset = c->value * 17, end;
	size_t len = c->flags, done = 0;
	const slot *s = c->at;
	struct stat st;
	ssize_t n;
	int rc;

	if (!s->used || s->dir || (c->what != 11 && !s->writes))
		return;
	memset(a, (int)c->value | 1, sizeof a);
	if (c->what == 10) {
		FUZZ_CHECK(!fstat(s->fd, &st));
		rc = p->fs->ops->write(p->fs, s->file, c->value & 1 ? VFS_APPEND : offset, a, len, &done, &end);
		n = pwrite(s->fd, a, len, c->value & 1 ? st.st_size : (off_t)offset);
		same(c, rc, real(n));
		FUZZ_CHECK(rc || done == (size_t)n);
	} else if (c->what == 11) {
		rc = p->fs->ops->read(p->fs, s->file, offset, a, len, &done);
		n = pread(s->fd, b, len, (off_t)offset);
		same(c, rc, real(n));
		FUZZ_CHECK(rc || (done == (size_t)n && !memcmp(a, b, done)));
	} else if (c->what == 12) {
		same(c, p->fs->ops->set_size(p->fs, s->file, offset), real(ftruncate(s->fd, (off_t)offset)));
	} else {
		same(c, p->fs->ops->allocate(p->fs, s->file, offset, len),
		     real(fallocate(s->fd, 0, (off_t)offset, (off_t)len)));
	}
}

/* ---- Directories ---------------------------------------------------------------------------------- */

typedef struct names {
	char name[NAMES_MAX][VFS_NAME_MAX + 1];
	size_t count;
} names;

static bool note(void *user, const char *name, size_t len, uint64_t ino, int type, uint64_t next)
{
	names *n = user;

	(void)ino;
	(void)type;
	FUZZ_CHECK(n->count < NAMES_MAX && len <= VFS_NAME_MAX && next);
	memcpy(n->name[n->count], name, len);
	n->name[n->count++][len] = '\0';
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int list_both(pair *p, vfs_file *dir, int fd, names *of)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;
	names kernel = { .count = 0 };
	const struct dirent *e;
	DIR *d;

	of->count = 0;
	rc = p->fs->ops->list(p->fs, dir, 0, note, of);
	if (copy < 0) /* removed while it was open: it has no name more, whatever each says */
		return -1;
	FUZZ_CHECK(!rc);
	d = fdopendir(copy);
	FUZZ_CHECK(d);
	while ((e = readdir(d)) != NULL)
		note(&kernel, e->d_name, strlen(e->d_name), 1, 0, 1);
	closedir(d);
	FUZZ_CHECK(of->count == kernel.count);
	qsort(of->name, of->count, sizeof of->name[0], by_name);
	qsort(kernel.name, kernel.count, sizeof kernel.name[0], by_name);
	for (size_t i = 0; i < of->count; i++)
		FUZZ_CHECK(!strcmp(of->name[i], kernel.name[i]));
	return 0;
}

static void do_list(pair *p, const one_call *c)
{
	names of;

	list_both(p, c->dir->file, c->dir->fd, &of);
}

static void compare_file(pair *p, vfs_file *file, int fd)
{
	uint8_t a[8192], b[8192];
	size_t done = 0;
	vfs_stat st;
	struct stat kernel;

	FUZZ_CHECK(!p->fs->ops->stat(p->fs, file, &st) && !fstat(fd, &kernel));
	compare_stat(&st, &kernel);
	FUZZ_CHECK(!p->fs->ops->read(p->fs, file, 0, a, sizeof a, &done));
	FUZZ_CHECK(pread(fd, b, sizeof b, 0) == (ssize_t)done && !memcmp(a, b, done));
}

static void compare_tree(pair *p, vfs_file *dir, int fd)
{
	names of;

	FUZZ_CHECK(!list_both(p, dir, fd, &of));
	for (size_t i = 0; i < of.count; i++) {
		const slot here = { .file = dir, .fd = fd };
		const one_call c = { .what = 9, .path = of.name[i], .to = "", .text = "", .dir = &here, .flags = 0 };
		vfs_file *file = NULL;
		struct stat st;
		int below;

		if (!strcmp(of.name[i], ".") || !strcmp(of.name[i], ".."))
			continue;
		do_stat(p, &c);
		FUZZ_CHECK(!fstatat(fd, of.name[i], &st, AT_SYMLINK_NOFOLLOW));
		if (S_ISLNK(st.st_mode))
			continue;
		FUZZ_CHECK(!p->fs->ops->open(p->fs, dir, of.name[i], VFS_READ, &file));
		below = openat(fd, of.name[i], O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		FUZZ_CHECK(below >= 0);
		if (S_ISDIR(st.st_mode))
			compare_tree(p, file, below);
		else
			compare_file(p, file, below);
		close(below);
		p->fs->ops->close(p->fs, file);
	}
}

/* ---- One input ------------------------------------------------------------------------------------ */

static const slot *base(const pair *p, uint8_t which, const slot *root)
{
	const slot *s = &p->slot[which % SLOTS];

	return (which & 0x40) && s->used && s->dir ? s : root;
}

static void make_call(pair *p, const uint8_t *in)
{
	const slot root = { .file = p->top, .fd = p->root, .used = true, .dir = true };
	const one_call c = { .what = in[0] % 15, .flags = in[4], .value = in[5],
		.path = paths[in[2] % BASE_ARRAY_LEN(paths)], .to = paths[in[3] % BASE_ARRAY_LEN(paths)],
		.text = texts[in[3] % BASE_ARRAY_LEN(texts)], .dir = base(p, in[1], &root),
		.to_dir = base(p, (uint8_t)(in[1] >> 1), &root), .at = &p->slot[in[5] % SLOTS] };

	if (c.what < 3)
		do_open(p, &c);
	else if (c.what == 3)
		drop(p, c.at);
	else if (c.what < 8)
		do_name(p, &c);
	else if (c.what == 8 || c.what == 14)
		do_two(p, &c);
	else if (c.what == 9)
		(c.flags & 2 ? do_readlink : do_stat)(p, &c);
	else if (c.flags == 255)
		do_list(p, &c);
	else
		do_bytes(p, &c);
}

static void fresh(char name[64], int *fd)
{
	snprintf(name, 64, "%s/sb-fuzz.XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	FUZZ_CHECK(mkdtemp(name));
	*fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FUZZ_CHECK(*fd >= 0);
}

static void begin(pair *p)
{
	fresh(p->folder, &p->root);
#ifdef OF_HOST
	int fd;

	fresh(p->ours, &fd);
	p->host = host_new();
	p->top = p->host ? host_dir(fd) : NULL;
	FUZZ_CHECK(p->top);
	host_may_change(p->host);
	p->fs = host_vfs(p->host);
#else
	p->mem = mem_new(SB_UNLIMITED, SB_UNLIMITED);
	p->fs = mem_vfs(p->mem);
	p->top = mem_root(p->mem);
#endif
}

static void end(pair *p)
{
	clear(p->root);
	FUZZ_CHECK(!rmdir(p->folder));
#ifdef OF_HOST
	clear(open(p->ours, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	FUZZ_CHECK(!rmdir(p->ours));
	p->fs->ops->close(p->fs, p->top);
	host_free(p->host);
#else
	mem_free(p->mem);
#endif
}

int fuzz_one(uint8_t *data, size_t len)
{
	pair p = { .root = -1 };

	begin(&p);
	for (size_t i = 0; i < SLOTS; i++)
		p.slot[i].fd = -1;
	for (size_t i = 0; i < CALLS_MAX && (i + 1) * CALL_BYTES <= len; i++)
		make_call(&p, data + i * CALL_BYTES);
	compare_tree(&p, p.top, p.root);
	for (size_t i = 0; i < SLOTS; i++)
		drop(&p, &p.slot[i]);
	end(&p);
	return 1;
}

/* Long ones, drawn: mutations of them meet trees that are full. */
size_t fuzz_seed(size_t at, uint8_t *out, size_t cap)
{
	uint64_t state = 0x9e3779b97f4a7c15u * (at + 1);

	if (at > 11 || cap < CALLS_MAX * CALL_BYTES)
		return 0;
	for (size_t i = 0; i < CALLS_MAX * CALL_BYTES; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		out[i] = (uint8_t)(state >> 56);
	}
	return CALLS_MAX * CALL_BYTES;
}

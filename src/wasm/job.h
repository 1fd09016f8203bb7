/* SPDX-License-Identifier: MIT */
/*
 * job.h - what the host hands a worker, and what comes back: one memory file.
 *
 * The host writes a head and entries; the worker maps that part and never writes to it.  What the
 * worker leaves - entries of /out, and first of all a result_head, written last - begins at the
 * host's `bytes`, in the same file.  Whatever is in it was written by a program that may be in the
 * guest's hands: the host reads it bounded, and believes only what concerns that very guest.
 */
#ifndef SB_WASM_JOB_H
#define SB_WASM_JOB_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_MAGIC SB_WORKER_ID /* build_id.h: to a program of another build the job may mean something else */
#define JOB_NOT_MINE 126       /* what that one exits with, and leaves no result: where it belongs is for it to guess */
#define JOB_RESULT_MAGIC 0x315345524d534157u
#define JOB_ALIGN 8u
#define JOB_PATH_MAX 4096u
#define JOB_STACK_LEAST ((uint64_t)64 << 10)
#define JOB_STACK_MOST ((uint64_t)8 << 20) /* and what it is where nothing else was said */
#define JOB_MAX_BYTES ((uint64_t)3 << 30)

/* A worker that waits gets two: one with what all runs of its kind have in common (JOB_WAITS), and one of
 * the run, behind it in the same file.  A job_go, over the socket that is descriptor 3, says where. */
#define JOB_WIRE 3
#define JOB_GO_ALIGN 4096u
#define JOB_GO_MAGIC 0x304f474d534157u
typedef struct job_go {
	uint64_t magic, at, bytes;
} job_go;

/* Inside the box. */
#define JOB_WORKER_PATH "/sb-wasm"
#define JOB_COMPILER_PATH "/sb-wasmc"
#define JOB_HOLDER_NAME "sb-wasm-memory" /* of the process beside a worker that waits */
#define JOB_PACK_DIR "/pack"
#define JOB_HOST_DIR "/host" /* with what is shown of the host's, by the guest's paths */

enum { JOB_ARG = 1, JOB_ENV,
       JOB_DIR,          /* path; JOB_READONLY */
       JOB_FILE,         /* path, data; JOB_READONLY, JOB_FREE */
       JOB_MOUNT,        /* path, data: a file's name in JOB_PACK_DIR; read-only, in no quota */
       JOB_MODULE_FILE,  /* data: a file's name in JOB_PACK_DIR, compiled */
       JOB_MODULE,       /* data: a compiled module */
       JOB_SOURCE,       /* data: a module to compile (sb-wasmc) */
       JOB_HOST };       /* path: the same in JOB_HOST_DIR is shown there; JOB_READONLY, JOB_ONE */
/* JOB_ONE: it is a single file. */
enum { JOB_READONLY = 1, JOB_FREE = 2, JOB_ONE = 4 };
/* Of the job.  FOR_FILE, of sb-wasmc: what it makes is loaded from a file, not from memory.  READY, of a worker that
 * waits with a JOB_MODULE: instantiating that runs nothing of it, and is done ahead.  BRANCH: it does not start, but
 * goes on from what comes with an ASK_BEGIN, which is the first that it is asked. */
enum { JOB_WAITS = 1, JOB_FOR_FILE = 2, JOB_READY = 4, JOB_BRANCH = 8 };

typedef struct job_head {
	uint64_t magic, bytes;           /* of the job, this included */
	uint64_t memory_bytes, fs_bytes, fs_nodes, cpu_us, collect_bytes; /* SB_UNLIMITED = none */
	uint64_t stack_bytes;            /* of the guest's calls: JOB_STACK_LEAST to JOB_STACK_MOST */
	uint32_t entries, open_files, control, flags; /* control: 1 = descriptor 3 is one; flags as above */
} job_head;

/* Then path and data, each padded to JOB_ALIGN; path_len without a NUL, which follows it always. */
typedef struct job_entry {
	uint32_t kind, flags, path_len, reserved;
	uint64_t data_len;
} job_entry;

enum { RESULT_EXITED = 1, RESULT_TRAPPED, RESULT_REFUSED, RESULT_NO_MEMORY, RESULT_STOPPED,
       RESULT_CPU };
typedef struct result_head {
	uint64_t magic, bytes;           /* of head and entries */
	uint64_t peak_bytes, memory_refused, fs_bytes, fs_nodes, bytes_refused, nodes_refused;
	uint64_t calls;
	uint32_t kind, entries, links, too_deep; /* these two: what of /out is no entry */
	int32_t code;
	uint32_t cut, stack_overflow, reserved; /* cut: 1 = not all of /out that could be here is */
	char why[400];
} result_head;

/*
 * What the host asks of a guest that stays, over a socket of its own which comes along the control stream
 * before the guest runs (ASK_HELLO and the descriptor).  It is answered whenever the guest waits; the
 * files are then as it left them.  A question is a head and entries, the answer, too.
 */
#define ASK_MAGIC 0x314b53414d534157u
#define ASK_HELLO 'a'
enum { ASK_PUT = 1,   /* files and folders (JOB_FILE, JOB_DIR) over what is there */
       ASK_GET,       /* one JOB_DIR: what is beneath it, of no more than `room` bytes */
       ASK_CLEAR,     /* one JOB_DIR: nothing is beneath it any more */
       /* A guest that rests: the answer is all that it is (branch.h), in the place of entries, and the question to
	* another worker, that of its branch.  The host passes the bytes on, and looks at none of them.  -EBUSY: it does
	* not rest; -EXDEV: a file of the host's is open; -EOPNOTSUPP: no module that rests. */
       ASK_BRANCH, ASK_BEGIN };
typedef struct ask_head {
	uint64_t magic, bytes;           /* this included */
	uint64_t room;
	uint32_t what, entries;
	int32_t rc;                      /* of an answer: 0 or -errno of Linux */
	uint32_t cut, links, too_deep, reserved; /* what is no entry: for want of `room`, or as in result_head */
} ask_head;

/* Of `rc`, whatever was sent. */
static inline int ask_errno(int32_t rc)
{
	return rc < 0 && rc >= -4095 ? -rc : EPROTO;
}

/* The next entry at *at of `len` bytes; false = the end, or broken (then *at < len). */
static inline int job_next(const uint8_t *data, uint64_t len, uint64_t *at, const job_entry **entry,
			   const char **path, const uint8_t **content)
{
	const job_entry *e = (const job_entry *)(const void *)(data + *at);
	uint64_t left = len - *at, path_room, data_room;

	if (*at >= len || left < sizeof *e || (*at & (JOB_ALIGN - 1)))
		return 0;
	if (e->path_len >= JOB_PATH_MAX || e->data_len > JOB_MAX_BYTES)
		return 0;
	path_room = ((uint64_t)e->path_len + 1 + JOB_ALIGN - 1) / JOB_ALIGN * JOB_ALIGN;
	data_room = (e->data_len + JOB_ALIGN - 1) / JOB_ALIGN * JOB_ALIGN;
	if (path_room + data_room > left - sizeof *e)
		return 0;
	*entry = e;
	*path = (const char *)(e + 1);
	*content = (const uint8_t *)(e + 1) + path_room;
	if ((*path)[e->path_len] != '\0')
		return 0;
	*at += sizeof *e + path_room + data_room;
	return 1;
}

#endif /* SB_WASM_JOB_H */

/* SPDX-License-Identifier: MIT */
/*
 * wasm.h - the backend `wasm`: WebAssembly in sb-wasm, itself behind the walls of sb-launch.
 *
 *   job.c      what a worker gets: arguments, files, module, in one memory file
 *   module.c   the module of a command, read from where the options say
 *   compile.c  a module that nobody knows, compiled by an sb-wasmc behind walls of its own
 *   mend.c     a pack's compiled module that was changed, made anew
 *   cache.c    what that made, on disk for the next command
 *   plan.c     the walls in words
 *   box.c      the walls as a plan of sb-launch; create, put, spawn
 *   shown.c    directories and files of the host that a guest sees
 *   warm.c     workers that wait, each for one run
 *   fork.c     branches of an evaluation session
 *   result.c   what a worker leaves: how it ended, /out
 *   look.c     what code names that is not there, before a backend is chosen
 *   wasm.c     the table, and the probe
 *
 * Two walls stand around a guest: the engine, which gives it memory of its own and our interface and
 * nothing else, and the kernel's around the worker: an empty root, no network, no privilege, and a
 * filter of some twenty system calls.
 */
#ifndef SB_BACKEND_WASM_H
#define SB_BACKEND_WASM_H

#include "../launched/stock.h"
#include "../linux/idmap.h"
#include "../linux/mounts.h"
#include "../../launch/host.h"
#include "../packdir.h"
#include "../../wasm/job.h"

#include <pthread.h>

#define WASM_CAPS (SB_CAP_SIGNAL | SB_CAP_FILES | SB_CAP_SPLIT_STREAMS)
#define WASM_CACHE_MAX 16     /* compiled raw modules that one sandbox object keeps */

/* A raw module, compiled: by the hash of what it was compiled from. */
typedef struct wasm_compiled {
	char hash[SHA256_HEX];
	void *data;
	size_t len;
	bool starts;                  /* something of it runs as it is instantiated */
	uint64_t used;
} wasm_compiled;

struct sb_state {
	linux_facts facts;
	char *helper;                 /* path of sb-launch; NULL: only plans can be made */
	sb_error helper_missing;
	char *dir;                    /* in which sb-wasm lies */
	char key[MANIFEST_WORD];      /* of the engine; "" = there is none, or */
	bool foreign;                 /* one whose worker is of another build */
	bool shared_library;          /* of the other route: the worker holds a compiler */
	launched_begins begun;
	idmap_known idmap;
	pthread_mutex_t lock;         /* over the cache */
	wasm_compiled cache[WASM_CACHE_MAX];
	uint64_t uses;
	stock *warm;                  /* NULL = never needed */
};

/* What a box of ours has besides. */
typedef struct wasm_box {
	sb_state *state;
	buf job;                      /* entries so far */
	uint32_t entries;
	bool has_code, is_pack;       /* a module; it is a pack's */
	int fd;                       /* of the job, once it was sent */
	uint64_t job_at, job_bytes;   /* in it */
	uint64_t stack_bytes;         /* of the guest's calls */
	const void *code;             /* of the request, for whose raw module a waiting worker was taken */
	size_t code_len;
	char hash[SHA256_HEX];        /* of that; before: of the module that the worker waits with; "" = none */
	bool loaded, ready;           /* it has that module; it has instantiated it */
	bool spawned;
	/* of a session, for its branches: the pack, its module, and where its driver lies */
	char pack[MANIFEST_WORD], module[SHA256_HEX], code_path[300];
	int ask;                      /* to a guest that stays, -1 = none: live.c */
	uint8_t *result;              /* read, behind the end: a result_head and entries */
	uint64_t result_bytes;
	bool looked;
	bool over;                    /* its guest has ended, and was reaped */
} wasm_box;

/* "python" of "pack:python"; NULL: the way has no module, so the code is one. */
const char *wasm_pack_name(const sb_pack_way *way);

/* ---- job.c ------------------------------------------------------------------------------------- */
void job_add(wasm_box *box, uint32_t kind, uint32_t flags, const char *path, const void *data,
	     size_t len);
/* The whole as a memory file of which the worker may write what comes behind: its descriptor, or
 * SB_ERR_*. */
int job_append(wasm_box *box, const sb_limits *limits, uint64_t cpu_ms, sb_error *err); /* 0, behind that */
int job_make(wasm_box *box, const sb_limits *limits, uint64_t cpu_ms, bool control, uint32_t flags, sb_error *err);

/* ---- shown.c ----------------------------------------------------------------------------------- */
typedef struct wasm_shown {
	mount_wish wish;
	mount_table table;
} wasm_shown;
/* Of workspace and file rules.  Refused is what these walls cannot show, and where. */
int shown_find(sb_state *state, const sb_box_request *request, wasm_shown *shown, sb_error *err);
void shown_release(wasm_shown *shown);
bool shown_any(const wasm_shown *shown);
bool shown_is_grant(const mount_row *row);  /* a place of the host's, not what covers one */
bool shown_writes(const wasm_shown *shown); /* some of it may be changed */
void shown_mount(const wasm_shown *shown, lh_plan *plan); /* and whose ids the guest has there */
void shown_lay(const wasm_shown *shown, wasm_box *own);
/* Boxes of the one are boxes of the other. */
bool shown_same(const wasm_shown *a, const wasm_shown *b);
/* A copy with descriptors of its own; false = no memory. */
bool shown_keep(const wasm_shown *of, wasm_shown *shown);

/* ---- result.c ---------------------------------------------------------------------------------- */
/* Reads what lies behind the job, once; NULL = nothing that counts. */
const result_head *result_of(wasm_box *box, const sb_limits *limits);
/* One of our programs that did not know the job: it was built with another library. */
bool result_foreign(const result_head *r, const sb_guest_exit *end);
int result_tell_foreign(const char *program, sb_error *err);
int wasm_reap(sb_guest *guest, sb_guest_exit *end, sb_error *err);
int wasm_collect(sb_box *box, const sb_call *call, sb_tree *tree, sb_error *err);
int wasm_usage(sb_box *box, sb_guest *guest, sb_usage *usage);

/* What is no entry; `cut`: for want of room. */
int result_tell_left_out(sb_tree *tree, uint32_t links, uint32_t too_deep, uint32_t cut, sb_error *err);
/* One entry of /out into a tree, if it is a file; a name that no tree takes is told, too. */
int result_take(sb_tree *tree, const job_entry *e, const char *path, const uint8_t *data, sb_error *err);

/* ---- live.c ------------------------------------------------------------------------------------- */
int live_open(wasm_box *own, int control, sb_error *err);
/* All of it to or from its worker.  1 = that has gone; negative: the call's. */
int live_move(const wasm_box *own, void *data, uint64_t len, bool to, const sb_call *call, sb_error *err);
/* Only those two ways: SB_ERR_UNSUPPORTED. */
int live_only(sb_error *err);
int live_put(wasm_box *own, const sb_call *call, sb_error *err); /* what was gathered in own->job */
int wasm_get(sb_box *box, const char *path, const sb_call *call, sb_tree *tree, sb_error *err);
int wasm_remove(sb_box *box, const char *path, const sb_call *call, sb_error *err);

/* ---- fork.c ------------------------------------------------------------------------------------- */
/* Sessions of this language have branches. */
bool wasm_forks(const sb_pack_way *way);
int wasm_fork(sb_box *box, sb_guest *guest, const sb_box_request *request, const sb_call *call, sb_box **branch,
	      sb_guest **twin, sb_guest_io *io, sb_error *err);

/* ---- compile.c --------------------------------------------------------------------------------- */
#define COMPILE_HEAD 8 /* bytes of a module that tell what it is */
/* INVALID_SPEC: what begins like that is no module. */
int compile_check(const void *wasm, size_t len, sb_error *err);

/* The compiled module, the state's for as long as nothing else is compiled: copied into the job under its
 * lock.  hash: of the module, where that is known, or NULL.  INVALID_SPEC: it is no module, or one that the engine does
 * not take. */
int compile_add(sb_state *state, const sb_call *call, const void *wasm, size_t len, const char *hash, wasm_box *box,
		sb_error *err);
/* Into the job of the worker that is to wait with it, if it is there and not too large for that. */
bool compile_add_known(sb_state *state, const char *hash, wasm_box *box);

/* Behind walls of its own; *out for free().  flags: JOB_FOR_FILE. */
int compile_module(sb_state *state, const sb_call *call, uint32_t flags, const void *wasm, size_t len,
		   void **out, size_t *out_len, sb_error *err);

/* ---- module.c ---------------------------------------------------------------------------------- */
/* Where the module of a command lies; NULL: it is code, or a command without one. */
const char *module_path(const sb_box_request *request);
/* It can be read, and begins like a module. */
int module_check(const char *path, sb_error *err);
/* As if its bytes were the code: into the job. */
int module_add(sb_state *state, const sb_call *call, const char *path, wasm_box *box, sb_error *err);

/* ---- mend.c ------------------------------------------------------------------------------------ */
/* After packdir_check() said CHECKSUM or NOT_FOUND: 0 = it is whole again; any error: it stays refused. */
int mend_pack(sb_state *state, const packdir *dir, const sb_call *call, sb_error *err);

/* ---- cache.c ------------------------------------------------------------------------------------ */
/* A compiled module by the hash of its source, out of the caller's own folder; *data for free(). */
bool cache_load(const sb_state *state, const char *hash, void **data, size_t *len);
void cache_store(const sb_state *state, const char *hash, const void *data, size_t len);

/* Where they are kept and how many there are, for the doctor. */
void cache_tell(char *out, size_t cap);

/* ---- look.c ------------------------------------------------------------------------------------- */
/* Nothing in this code of that pack's language is known to need more than there is here. */
bool look_suits(const char *pack, const void *code, size_t len);

/* ---- warm.c ------------------------------------------------------------------------------------- */
extern const stock_way wasm_warm_way;
/* The kind of this request (dir: of its pack), counted as in use; NULL = no memory. */
stock_kind *wasm_warm_kind(sb_state *state, const sb_box_request *request, const packdir *dir,
			   const wasm_shown *shown);
sb_box *wasm_warm_take(stock_kind *kind, const sb_box_request *request); /* NULL = none waits */
/* The job, which is made, goes to the worker that waits.  AGAIN: it is not there any more. */
int wasm_warm_go(sb_box *box, const sb_guest_request *request, sb_guest **guest, sb_guest_io *io, sb_error *err);

/* ---- plan.c, box.c ------------------------------------------------------------------------------ */
int wasm_plan(sb_state *state, const sb_box_request *request, sb_plan *plan, sb_error *err);
/* What this plan of the very same request found to be shown, and keeps; NULL = nothing, or not any more. */
const wasm_shown *wasm_plan_shown(const sb_plan *plan, const sb_box_request *request);
/* What these walls cannot have at all. */
/* Files of the host that a rule grants. */
bool wasm_shows_files(const sb_spec *spec);
int wasm_check(const sb_state *state, const sb_box_request *request, sb_error *err);
int wasm_create(sb_state *state, const sb_box_request *request, const sb_plan *plan,
		const sb_call *call, sb_box **box, sb_error *err);
int wasm_put(sb_box *box, const char *path, const sb_tree *tree, const sb_call *call, sb_error *err);
int wasm_spawn(sb_box *box, const sb_guest_request *request, const sb_call *call, sb_guest **guest,
	       sb_guest_io *io, sb_error *err);
int wasm_signal(sb_guest *guest, int signal, const sb_call *call, sb_error *err);
void wasm_teardown(sb_box *box, sb_teardown *report);
void wasm_destroy(sb_box *box);
void wasm_begin(sb_state *state, const char *id, const sb_network *network); /* of the table */
/* A box in which `program` of our folder will run, and the pack's folder is shown, and what of the host is
 * (NULL: nothing); id: of the request, for which an sb-launch may have begun, or NULL. */
int box_launch(sb_state *state, const char *id, const char *program, const char *inside, const char *pack,
	       const wasm_shown *shown, const sb_limits *limits, const sb_call *call, sb_box *box, sb_error *err);
wasm_box *box_own(sb_box *box);
/* A pack's folder, open and looked at; `dir` stays closed without a pack.  `call`: of whoever waits, who has
 * a changed module made anew; NULL: it is refused. */
int box_find_pack(sb_state *state, const char *name, const sb_call *call, packdir *dir, sb_error *err);
/* What all guests find, and the pack's module and files. */
void box_lay_world(wasm_box *own, const packdir *dir);
void box_destroy(sb_box *box);
sb_box *box_new(const sb_limits *limits); /* NULL = no memory */
/* Of a request: what its options say, or else the most. */
uint64_t box_stack_bytes(const sb_box_request *request);

#endif /* SB_BACKEND_WASM_H */

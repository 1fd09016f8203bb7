/* SPDX-License-Identifier: MIT */
/*
 * core.h - the model, whole and once: records, limits, environment, file rules, packs, plans,
 * results.  Pure data and decisions; no system call, no clock, no global state.
 */
#ifndef SB_CORE_H
#define SB_CORE_H

#include <sandbox/backend.h>

#include "../base/base.h"

/* ---- record.c: sized records of the public API -------------------------------------------- */
/* Copies a caller's record of `in->size` bytes into `out` (whole, zero-filled, size = ours).
 * size 0: INVALID; a longer, non-zero tail: UNSUPPORTED.  in NULL: all zeros. */
int record_read(void *out, size_t out_size, const void *in, const char *name, sb_error *err);
/* Fills a caller's output record with min(its size, ours) bytes; its size stays. */
int record_write(void *out, const void *in, size_t in_size, const char *name, sb_error *err);

/* ---- limits.c ----------------------------------------------------------------------------- */
/* Profile <- pack <- sandbox defaults <- spec, then the operator's (set members win, wall_ms the
 * lesser).  Each but profile may be NULL.  ram_bytes: of the machine, for COMMAND.  The result has
 * no unset member but where api.h says that 0 means something; it is validated. */
typedef struct limits_sources {
	int profile;                 /* never DEFAULT */
	uint64_t ram_bytes;
	const sb_pack *pack;
	const sb_limits *defaults, *spec, *operator_limits;
} limits_sources;
int limits_resolve(const limits_sources *from, sb_limits *out, sb_error *err);
/* The set members of a record: negative, below the least, not a known mode.  Zeros are fine. */
/* Does a member limit anything?  0 = nobody gave it. */
static inline bool limits_is_set(uint64_t limit)
{
	return limit && limit != SB_UNLIMITED;
}
int limits_check_set(const sb_limits *limits, sb_error *err);
void limits_fill(sb_limits *set, const sb_limits *from); /* unset members get what stands there */

/* ---- env.c -------------------------------------------------------------------------------- */
/* EN-07: "NAME=value"; `name_only` = an allow-list entry. */
int env_check(const char *entry, bool name_only, sb_error *err);
/* The complete environment: base as `env->base` (never DEFAULT) says out of `host` ("NAME=value"
 * list, may be NULL), `fixed` (ours, lowest), spec inject, then the command's.  Later wins. */
int env_build(const sb_env *env, const char *const *fixed, const char *const *host,
	      const char *const *command_env, char ***out, sb_error *err);

/* ---- files.c: rules ------------------------------------------------------------------------ */
enum { FILES_BUILTIN = 0, FILES_WORKSPACE, FILES_CALLER, FILES_OPERATOR }; /* who asked */
typedef struct files_rule {
	char *path, *source;         /* clean absolute; source NULL = path */
	uint64_t max_bytes;
	uint32_t access, flags;      /* SB_FILE_* */
	uint32_t origin;             /* FILES_* */
	uint32_t reserved;
} files_rule;
typedef struct files_set {
	files_rule *at;              /* sorted by path once files_settle() ran */
	size_t len, cap;
} files_set;
int files_add(files_set *set, const sb_file_rule *rule, uint32_t origin, sb_error *err);
/* The protected names inside a writable workspace: .git/hooks, .git/config, .envrc ... as PROTECT
 * rules with origin BUILTIN and the OPTIONAL flag. */
int files_add_protected(files_set *set, const char *workspace, sb_error *err);
const char *const *files_protected_names(void);
/* Sorts; of two rules for one path the stricter stays (HIDE > PROTECT > READ > WRITE; TMPFS beats
 * WRITE), a BUILTIN one gives way to any of the caller's; contradictions: INVALID_SPEC. */
int files_settle(files_set *set, sb_error *err);
const files_rule *files_nearest(const files_set *set, const char *path); /* NULL = none */
void files_release(files_set *set);

/* ---- spec.c -------------------------------------------------------------------------------- */
/* sb_command as sb_spec_validate() does sb_spec: one of argv or language and code, names, sizes of
 * arguments, paths of files, kind of input.  What a door does not take is the door's to refuse. */
int spec_check_command(const sb_command *command, sb_error *err);

/* ---- pack.c -------------------------------------------------------------------------------- */
/* Trim, any case, aliases.  NULL = unknown. */
const sb_pack *pack_find(const sb_pack *const *packs, const char *language);
const sb_pack *pack_find_extension(const sb_pack *const *packs, const char *file_name);
const sb_pack *pack_find_shebang(const sb_pack *const *packs, const void *code, size_t len);
const sb_pack_way *pack_way(const sb_pack *pack, const char *backend); /* process, seatbelt: "linux" */
/* BK-10: each pack valid, no name or alias or extension twice. */
int pack_validate_all(const sb_pack *const *packs, sb_error *err);
/* {code} (anywhere in a word) and {args} (a word of its own) replaced, and the first word by
 * `program` unless that is NULL.  code_path: where the code lies inside. */
int pack_expand(const char *const *run, const char *program, const char *code_path,
		const char *const *args, char ***argv, sb_error *err);

/* ---- names.c: public sb_*_name()/parse() -------------------------------------------------- */

/* ---- plan.c -------------------------------------------------------------------------------- */
/* What becomes of a path inside, for sb_plan_path(): filled by the backend's plan() from its mount
 * table; the nearest entry decides.  `why` is a constant, or lives as long as the plan. */
int plan_add_path(sb_plan *plan, const char *path, int access, const char *why, sb_error *err);
/* A directory above something that is shown is there, too, read-only, though nothing else in it is. */
void plan_set_above(sb_plan *plan, const char *why);
int plan_new(const char *backend, sb_plan **plan, sb_error *err);
void plan_set_limits(sb_plan *plan, const sb_limits *limits);
void plan_set_failure(sb_plan *plan, const sb_error *failure);
/* For "text" and "json": the resolved argv (may be NULL), workspace (may be NULL), env names. */
int plan_set_command(sb_plan *plan, const char *const *argv, const char *workspace,
		     const char *const *env, sb_error *err);
/* Rule 1: every wall in `asked` (SB_WALL_BITs) held at least at SAMPLED (HARD with require_hard;
 * pids COOPERATIVE), unless in allow_weaker.  Marks lines `required`.  UNENFORCEABLE names wall,
 * backend, what was wanted, and what to do. */
typedef struct plan_demand {
	uint64_t asked;              /* by caller or operator: (a) */
	uint64_t profile;            /* by the profile: (b) */
	uint64_t allow_weaker;
	bool require_hard;
	bool consented;              /* backend `process`: (b) may be NONE */
} plan_demand;
int plan_check(sb_plan *plan, const plan_demand *demand, sb_error *err);
/* As sb_plan_set_text(), but `text` is a constant. */
int plan_set_constant(sb_plan *plan, const char *format, const char *text, sb_error *err);
/* For a built-in backend: what its plan() found out and its create() can use again, and what of the
 * plan no decision rests on.  The session calls plan_finish() once the guest is on its way, or at once
 * for an explanation: `rest` (may be NULL) adds its lines, each behind the others of its wall, and
 * `kept` is released.  plan_kept(): NULL unless it was kept with this very `release`. */
typedef int plan_rest_fn(sb_plan *plan, void *kept, sb_error *err);
void plan_keep(sb_plan *plan, void *kept, plan_rest_fn *rest, void (*release)(void *kept));
void *plan_kept(const sb_plan *plan, void (*release)(void *kept));
int plan_finish(sb_plan *plan, sb_error *err);
void plan_leave_rest(sb_plan *plan); /* instead: nobody will look at it */
sb_plan *plan_ref(sb_plan *plan);
void plan_unref(sb_plan *plan);

/* ---- report.c ------------------------------------------------------------------------------ */
int report_new(sb_report **report, sb_error *err);
/* One backend's verdict: what it can do here (SB_CAP_*), and the plan of a default run for its walls (may be
 * NULL). */
int report_backend(sb_report *report, const char *name, bool usable, uint64_t caps, const sb_plan *plan,
		   sb_error *err);

/* ---- result.c ------------------------------------------------------------------------------ */
/* Filled by session/run, then never changed. */
struct sb_result {
	int outcome, code, signal_number;
	sb_error failure;            /* code 0 = none */
	char *output[4];             /* SB_STDOUT, SB_STDERR, SB_TTY */
	size_t output_len[4], gap_at[4];
	uint64_t dropped[4];
	int truncated, incomplete;
	sb_tree *files;              /* never NULL */
	char **appeared;             /* NULL-ended; NULL = none */
	sb_usage usage;
	sb_teardown teardown;
	char *backend, *language;    /* language NULL = argv */
	char *value, *exception;     /* of an evaluation, UTF-8; NULL = none */
	int restarted, unfinished;   /* the same */
	sb_plan *plan;               /* one reference */
	char *json_text;             /* NULL; sb_result_json() makes it when first asked */
};
int result_new(sb_result **result, sb_error *err);
/* Last of all: code and signal only where the outcome has one, kinds, empty outputs. */
int result_finish(sb_result *result, sb_error *err);

#endif /* SB_CORE_H */

/* SPDX-License-Identifier: MIT */
/*
 * interp.h - which program a command means, and what must be shown for it to run.
 *
 * Names are looked up in the caller's PATH.  What lies below /usr (or another directory that every
 * box has), in the workspace or under a rule that grants it is visible already.  An interpreter
 * elsewhere (pyenv, nvm, conda, /opt) has its prefix shown read-only.  A shim, that is a script in
 * front of an interpreter, is asked, as the caller and in "/", for the real one, if it lies where
 * version managers keep theirs (below "~/.name", $PYENV_ROOT and its like, /usr, /opt) and not below
 * the current folder; if it does not answer in time, or lies elsewhere, the next on PATH is taken.
 * Anything else outside is NOT_FOUND, with its path and the option that shows it:
 * never a whole home directory in silence.
 */
#ifndef SB_BACKEND_INTERP_H
#define SB_BACKEND_INTERP_H

#include "../base/base.h"

typedef struct interp_query {
	const char *const *names;         /* best first: of a pack way's `find`, or argv[0] alone */
	const char *const *host_env;      /* the caller's environment: PATH, and what a shim is run with */
	const char *guest_path;           /* the guest's PATH; NULL = it has none */
	const char *home;                 /* the caller's home directory, resolved; or NULL */
	const char *workspace;            /* shown at its own path; or NULL */
	const char *cwd;                  /* inside: where "./x" leads; or NULL */
	const sb_file_rule *const *rules; /* of the request, settled; or NULL */
	bool everything;                  /* a backend without a files wall: all is visible */
	uint64_t ask_ms;                  /* for one shim; 0 = 3000 */
	int cancel_fd;                    /* readable = stop asking; -1 = none */
	struct shim_kept *kept;           /* answers of before; NULL = none */
} interp_query;

typedef struct interp_found {
	char *program; /* absolute, links resolved where that matters; what argv[0] becomes.  NULL = leave
	                  the name: the guest's own PATH finds the same, or says that there is none */
	char *show;    /* directory or file to show read-only (a READ rule); NULL = visible already */
	char *shim;    /* the script that was asked; NULL = none */
} interp_found;

/* 0 also if nothing is there (program NULL): then the start says so.  NOT_FOUND: it exists, but
 * outside of what is shown; the message names path and option. */
int interp_find(const interp_query *query, interp_found *found, sb_error *err);
void interp_release(interp_found *found);

#endif /* SB_BACKEND_INTERP_H */

/* SPDX-License-Identifier: MIT */
/* shim.h - interpreters that are known by name, and how a script in front of one is asked for it. */
#ifndef SB_BACKEND_SHIM_H
#define SB_BACKEND_SHIM_H

#include "../base/base.h"

#include <pthread.h>

typedef struct shim_language {
	const char *name;             /* of the program; what follows may be a version: "3.11" */
	const char *flag, *question;  /* prints the real one's path; NULL = cannot be asked */
} shim_language;

/* NULL = not an interpreter that is known. */
const shim_language *shim_family(const char *program);
/* Runs `shim` as the caller with the question, for at most ask_ms (0 = 3000), and takes the first
 * line if it is an absolute path.  false: no answer. */
bool shim_ask(const shim_language *language, const char *shim, const char *const *env,
	      uint64_t ask_ms, int cancel_fd, char *out, size_t cap);

/* Answers that are kept for the next question, by any thread; NULL = no memory. */
typedef struct shim_kept shim_kept;
shim_kept *shim_kept_new(void);
void shim_kept_free(shim_kept *kept); /* NULL is fine */
/* As shim_ask(), unless the answer is known; kept NULL = always asked. */
bool shim_ask_once(shim_kept *kept, const shim_language *language, const char *shim, const char *const *env,
		   uint64_t ask_ms, int cancel_fd, char *out, size_t cap);

#endif /* SB_BACKEND_SHIM_H */

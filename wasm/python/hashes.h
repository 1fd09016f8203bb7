/* SPDX-License-Identifier: MIT */
/*
 * hashes.h - the hash seed of texts and bytes is each start's own, although a snapshot holds tables that depend on it.
 *
 * While the snapshot is made, all blocks of objects are watched, so that at its end each dictionary and each set
 * among them is known, and those whose order depends on the seed are found; hashes that objects keep are forgotten.
 * A start draws a seed and lays sets and mixed tables anew, in their place; tables of texts, nearly all that there
 * are, are laid when somebody looks into them (stale.h).  What is in them, and in which order a dictionary tells it,
 * stays.
 */
#ifndef PYTHON_HASHES_H
#define PYTHON_HASHES_H

#include <stdbool.h>

/* Before the interpreter is there. */
void hashes_watch(void);
/* At the very end of the snapshot: no object can be asked for until hashes_renew(). */
void hashes_freeze(void);
/* Around what a worker does that has no run yet: a seed then, and the way to another one. */
void hashes_rehearse(void);
void hashes_rehearsed(void);
/* At a start; `wish` is what PYTHONHASHSEED says, or NULL.  False: it is nothing that CPython takes. */
bool hashes_renew(const char *wish);

#endif /* PYTHON_HASHES_H */

/* SPDX-License-Identifier: MIT */
/*
 * hashes.h - another hash seed of texts and bytes, although a snapshot holds tables that depend on it.
 *
 * While the snapshot is made, all blocks of objects are watched, so that at its end each dictionary and each set
 * among them is known, and those whose order depends on the seed are written down.  A start that draws a seed
 * forgets the hashes that objects keep and lays each of these tables anew, in its place: what is in them, and in
 * which order a dictionary tells it, stays.
 */
#ifndef PYTHON_HASHES_H
#define PYTHON_HASHES_H

#include <stdbool.h>

/* Before the interpreter is there. */
void hashes_watch(void);
/* At the very end of the snapshot. */
void hashes_freeze(void);
/* Around what a worker does that has no run yet: a seed then, and the way to another one. */
void hashes_rehearse(void);
void hashes_rehearsed(void);
/* At a start; `wish` is what PYTHONHASHSEED says, or NULL.  Where nothing is wished a short run goes on with the
 * snapshot's seed, or with that of its rehearsal; one that stays has its own.  False: it is nothing that CPython takes. */
bool hashes_renew(const char *wish, bool stays);

#endif /* PYTHON_HASHES_H */

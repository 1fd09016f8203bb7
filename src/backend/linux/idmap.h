/* SPDX-License-Identifier: MIT */
/* idmap.h - which file systems can be mounted with mapped ids.  For the backends whose boxes are sb-launch's. */
#ifndef SB_BACKEND_LINUX_IDMAP_H
#define SB_BACKEND_LINUX_IDMAP_H

#include "facts.h"
#include "mounts.h"

#include <pthread.h>

enum { IDMAP_NO = 0, IDMAP_YES, IDMAP_ASK };
/* By the type of the file system that `fd` (O_PATH) lies on: YES for those that could from the first
 * kernels with mapped mounts on; ASK = only trying tells. */
int idmap_by_type(int fd, uint64_t *type);

/* What trying told, by the type of the file system. */
#define IDMAP_KNOWN_MOST 16
typedef struct idmap_known {
	pthread_mutex_t lock;
	struct { uint64_t type; bool works; } at[IDMAP_KNOWN_MOST];
	size_t count;
} idmap_known;

typedef struct idmap_asker {
	const linux_facts *facts;
	const char *helper;           /* sb-launch; NULL = nothing can be tried */
	idmap_known *known;
} idmap_asker;

/* By its type where that is sure, else by doing it once; remembered. */
bool idmap_works(const idmap_asker *by, const char *path, int fd);
/* Always by doing it. */
bool idmap_try(const idmap_asker *by, const char *path, int fd);
/* Rules that lie on another file system than the workspace: what is to be written there is refused (UNSUPPORTED);
 * what is only read is seen as by any other user, and its line says so. */
int idmap_rules(const idmap_asker *by, mount_table *table, sb_error *err);

#endif /* SB_BACKEND_LINUX_IDMAP_H */

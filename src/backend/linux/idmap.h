/* SPDX-License-Identifier: MIT */
/* idmap.h - which file systems can be mounted with mapped ids. */
#ifndef SB_BACKEND_LINUX_IDMAP_H
#define SB_BACKEND_LINUX_IDMAP_H

#include "../../base/base.h"

enum { IDMAP_NO = 0, IDMAP_YES, IDMAP_ASK };
/* By the type of the file system that `fd` (O_PATH) lies on: YES for those that could from the first
 * kernels with mapped mounts on; ASK = only trying tells. */
int idmap_by_type(int fd, uint64_t *type);

#endif /* SB_BACKEND_LINUX_IDMAP_H */

/* SPDX-License-Identifier: MIT */
/*
 * idmap.c - which file systems can be mounted with mapped ids: what their type tells, and what only doing tells.
 *
 * An sb-launch with the smallest plan that has such a mount in it: READY or FAILED is the answer,
 * about 2 ms later.  Asked once for each type of file system, and never for the common ones.
 */
#include "linux.h"

#include <sys/vfs.h>

#define TRIAL_MS 5000u

#define MAGIC_EXT4 0xef53u
#define MAGIC_XFS 0x58465342u
#define MAGIC_BTRFS 0x9123683eu
#define MAGIC_F2FS 0xf2f52010u
#define MAGIC_NFS 0x6969u
#define MAGIC_CIFS 0xff534d42u

int idmap_by_type(int fd, uint64_t *type)
{
	struct statfs fs;

	*type = 0;
	if (fstatfs(fd, &fs) < 0)
		return IDMAP_ASK;
	*type = (uint32_t)fs.f_type;
	switch (*type) {
	case MAGIC_EXT4:
	case MAGIC_XFS:
	case MAGIC_BTRFS:
	case MAGIC_F2FS:
		return IDMAP_YES;
	case MAGIC_NFS:
	case MAGIC_CIFS:
		return IDMAP_NO;
	default:
		return IDMAP_ASK;
	}
}

static bool recall(idmap_known *known, uint64_t type, bool *works)
{
	bool found = false;

	pthread_mutex_lock(&known->lock);
	for (size_t i = 0; i < known->count; i++)
		if (known->at[i].type == type) {
			*works = known->at[i].works;
			found = true;
		}
	pthread_mutex_unlock(&known->lock);
	return found;
}

static void remember(idmap_known *known, uint64_t type, bool works)
{
	pthread_mutex_lock(&known->lock);
	if (known->count < IDMAP_KNOWN_MOST) {
		known->at[known->count].type = type;
		known->at[known->count++].works = works;
	}
	pthread_mutex_unlock(&known->lock);
}

bool idmap_try(const idmap_asker *by, const char *path, int fd)
{
	lh_plan *plan = by->helper ? lh_plan_new() : NULL;
	bool works;

	if (!plan)
		return false;
	plan->fixed.steps = LP_USERNS | LP_PIDNS | LP_MOUNTNS | LP_ROOT | LP_OWN_GROUP;
	plan->fixed.uid_outside = plan->fixed.gid_outside = by->facts->uid_first;
	plan->fixed.uid_inside = plan->fixed.gid_inside = 1000;
	lh_plan_mount_fd(plan, LP_M_BIND, fd, path, "/w", LP_F_IDMAP | LP_F_NODEV, 0);
	works = !plan->failed && trial_plan(by->helper, plan, TRIAL_MS, NULL);
	lh_plan_free(plan);
	return works;
}

bool idmap_works(const idmap_asker *by, const char *path, int fd)
{
	uint64_t type;
	int answer = idmap_by_type(fd, &type);
	bool works = answer == IDMAP_YES;

	/* the file system can, but its owner may be another namespace's root */
	if (works && by->facts->inner_root)
		answer = IDMAP_ASK;
	if (answer != IDMAP_ASK || recall(by->known, type, &works))
		return works;
	works = idmap_try(by, path, fd);
	remember(by->known, type, works);
	return works;
}

int idmap_rules(const idmap_asker *by, mount_table *table, sb_error *err)
{
	for (size_t i = 0; i < table->len; i++) {
		mount_row *row = &table->at[i];

		if (row->origin != MOUNT_RULE || !(row->flags & LP_F_IDMAP) || row->fd < 0 ||
		    idmap_works(by, row->source, row->fd))
			continue;
		if (row->access == SB_FILE_WRITE)
			return mounts_unmapped(row->source, "show it read-only (--ro)", err);
		row->flags &= ~LP_F_IDMAP;
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * facts.h - what the linux backend knows of the machine: plain data, so that plans can be made for
 * any machine on any other.
 *
 * Cheap facts only: files read, no operation tried.  What they promise and the kernel refuses shows
 * as the FAILED of its step, before anything of the guest runs.
 */
#ifndef SB_BACKEND_LINUX_FACTS_H
#define SB_BACKEND_LINUX_FACTS_H

#include "../../base/base.h"
#include "../../launch/protocol.h"

/* Default range of the host ids that guests of root callers run as: above every range of systemd
 * (containers up to 1879048191) and of subuid files, below the signed limit. */
#define LINUX_UID_FIRST 1879048192u
#define LINUX_UID_COUNT 4194304u
#define LINUX_UID_LEAST 1000u     /* never below: system accounts */
#define LINUX_UID_NOBODY 65534u   /* taken only where the map has nothing else */

#define LINUX_ETC_MAX 64

typedef struct cgroup_place {
	uint32_t kind;                /* LP_CG_* */
	uint32_t count;
	uint32_t controllers;         /* LP_CTL_*, all of them */
	char bus[108];                /* LP_CG_SCOPE: the socket over which the user's systemd is asked; the
	                                 directory is systemd's own, which the scope will lie in */
	struct {
		char path[512];       /* absolute: where our directories are made */
		uint32_t controllers;
	} at[4];
} cgroup_place;

/* A directory beside /usr that the host has: a link's text, or "" for a real directory. */
typedef struct linux_merged {
	const char *name;             /* "/bin" */
	char link[32];
	bool present, is_link;
} linux_merged;
#define LINUX_MERGED_COUNT 6

/* A name of /etc that every box gets; link: the text of a link into /usr, else "". */
typedef struct linux_etc {
	char name[40], link[80];
	bool dir;
} linux_etc;

typedef struct linux_facts {
	uid_t uid;
	gid_t gid;
	bool root_caller;             /* euid 0 with what mapping another uid needs */
	bool root_helpless;           /* euid 0 without it: no guest may run as it */
	bool no_spare_uid;            /* root, but its own map has no other id to give */
	bool inner_root;              /* root_caller, but in a user namespace below the first */
	bool no_userns;               /* no user namespace can be made: by a sysctl, or as was tried */
	bool apart_ids;               /* euid 0 that may take another uid, whatever else it lacks */
	int map_errno;                /* root's map could not be read: why, else 0 */
	uint32_t uid_first, uid_count; /* host ids for guests of a root caller */
	uint32_t landlock_abi;        /* 0 = none */
	int kernel[2];                /* major, minor */
	uint32_t cpus;
	uint64_t ram_bytes;
	bool proc_fresh;              /* nothing covers parts of /proc: a fresh one may be mounted */
	cgroup_place cgroup;
	linux_merged merged[LINUX_MERGED_COUNT];
	linux_etc etc[LINUX_ETC_MAX]; /* allow-listed names that are there, below /etc */
	size_t etc_count;
	char user[33];                /* the caller's name */
} linux_facts;

/* root: "" but in tests: put before every path that is looked at. */
void linux_facts_read(const char *root, linux_facts *facts);
/* The caller's ids, whether user namespaces can be made, and landlock, and nothing else: for walls that need no
 * more. */
void linux_facts_read_caller(const char *root, linux_facts *facts);
/* root and path one behind the other, into a buffer of PATH_MAX; false = too long. */
bool facts_path(char *out, const char *root, const char *path);
/* Are we in the machine's first namespace of this kind, whose number is the kernel's constant?  1, 0, or -1:
 * it cannot be told. */
int facts_first_namespace(const char *root, const char *kind, uint32_t number);
/* Pure: does this name of /etc belong into every box?  net: only with the host's network. */
bool linux_etc_allowed(const char *name, bool net);
/* Guests run in the host's own root, behind landlock and seccomp alone: see inplace.c. */
static inline bool linux_in_place(const linux_facts *facts)
{
	return facts->no_userns && !facts->root_caller;
}
/* Root makes its namespaces without one of users: nothing can be mapped, and the guest is called what it is. */
static inline bool linux_unmapped(const linux_facts *facts)
{
	return facts->no_userns && facts->root_caller;
}

/* ---- cgroup_find.c ------------------------------------------------------------------------- */
/* The best rung below or beside our own cgroup; kind LP_CG_NONE if there is none. */
void cgroup_find(const char *root, bool root_caller, cgroup_place *place);
/* What the user's own systemd can be asked for, over the bus that these two name (DBUS_SESSION_BUS_ADDRESS
 * and XDG_RUNTIME_DIR; NULL = unset); kind stays LP_CG_NONE if there is none, or none that it may divide. */
void cgroup_find_scope(const char *root, uid_t uid, const char *address, const char *runtime,
		       cgroup_place *place);
/* A parent that was named: refused (BACKEND_UNAVAILABLE, NOT_FOUND) if it cannot serve. */
int cgroup_find_parent(const char *root, const char *parent, cgroup_place *place, sb_error *err);

/* The least number in `file` of a cgroup's directory and of those above it; SB_UNLIMITED = there is none. */
uint64_t cgroup_above(const char *root, const char *dir, const char *file);

/* What a plan says as the parent of directory i. */
static inline const char *cgroup_parent_of(const cgroup_place *place, size_t i)
{
	return place->kind == LP_CG_SCOPE ? place->bus : place->at[i].path;
}

/* ---- ids.c ----------------------------------------------------------------------------------- */
/* The part of a map (text of /proc/self/uid_map) that guests may have: the default range if it is
 * mapped, else the highest ids below 65534 that are, at most 1024, none below 1000; else 65534.
 * false: nothing. */
bool ids_range_of_map(const char *map, uint32_t *first, uint32_t *count);
/* A uid of the range that no other live box on this machine has; *lock holds it until closed. */
int ids_reserve(uint32_t first, uint32_t count, uint64_t deadline_ns, uint32_t *uid, int *lock,
		sb_error *err);
/* Name of a uid in a passwd text; "user" if it is not there or odd. */
void ids_user_name(const char *passwd, uid_t uid, char *out, size_t cap);

#endif /* SB_BACKEND_LINUX_FACTS_H */

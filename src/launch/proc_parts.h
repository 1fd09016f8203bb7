/* SPDX-License-Identifier: MIT */
/*
 * proc_parts.h - what of a box's own /proc is not its own: told by plans, held by proc.c.
 *
 * These tell or change what belongs to the whole machine; boot_id and cmdline tell which one it is.
 */
#ifndef SB_LAUNCH_PROC_PARTS_H
#define SB_LAUNCH_PROC_PARTS_H

static const char *const proc_read_only[] = { "sys", "sysrq-trigger", "irq", "bus", "fs" };
static const char *const proc_covered_files[] = { "kcore", "keys", "key-users", "timer_list", "kallsyms", "kmsg",
	"sched_debug", "cmdline", "sys/kernel/random/boot_id" };
static const char *const proc_covered_dirs[] = { "scsi", "acpi" };

#endif /* SB_LAUNCH_PROC_PARTS_H */

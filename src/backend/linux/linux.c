/* SPDX-License-Identifier: MIT */
/* linux.c - the table of the backend `linux`: see linux.h for where things are. */
#include "linux.h"
#include "../builtin.h"

const sb_backend backend_linux = {
	.size = sizeof(sb_backend),
	.abi = SB_BACKEND_ABI,
	.name = "linux",
	.summary = "namespaces, landlock, seccomp and cgroups of this machine's kernel",
	.caps = LINUX_CAPS,
	.probe = linux_probe,
	.plan = linux_plan,
	.create = linux_create,
	.spawn = linux_spawn,
	.signal = launched_signal,
	.resize = launched_resize,
	.put = linux_put,
	.collect = linux_collect,
	.get = linux_get,
	.remove = linux_remove,
	.reap = launched_reap,
	.usage = launched_usage,
	.release = launched_release,
	.destroy = linux_destroy,
	.sweep = linux_sweep,
	.forget = linux_forget,
	.begin = linux_begin,
	.teardown = launched_box_teardown,
	.renew = launched_renew,
	.pid = launched_pid,
};

/* SPDX-License-Identifier: MIT */
/* table.c - the interface as data: names, types, functions. */
#include "call.h"

/* clang-format off */
#define SAME                                                                                       \
	{ "args_get", "ii", true, call_args_get },                                                 \
	{ "args_sizes_get", "ii", true, call_args_sizes_get },                                     \
	{ "environ_get", "ii", true, call_environ_get },                                           \
	{ "environ_sizes_get", "ii", true, call_environ_sizes_get },                               \
	{ "clock_res_get", "ii", true, call_clock_res_get },                                       \
	{ "clock_time_get", "iIi", true, call_clock_time_get },                                    \
	{ "fd_advise", "iIIi", true, call_fd_advise },                                             \
	{ "fd_allocate", "iII", true, call_fd_allocate },                                          \
	{ "fd_close", "i", true, call_fd_close },                                                  \
	{ "fd_datasync", "i", true, call_fd_datasync },                                            \
	{ "fd_fdstat_get", "ii", true, call_fd_fdstat_get },                                       \
	{ "fd_fdstat_set_flags", "ii", true, call_fd_fdstat_set_flags },                           \
	{ "fd_fdstat_set_rights", "iII", true, call_fd_fdstat_set_rights },                        \
	{ "fd_filestat_set_size", "iI", true, call_fd_filestat_set_size },                         \
	{ "fd_filestat_set_times", "iIIi", true, call_fd_filestat_set_times },                     \
	{ "fd_pread", "iiiIi", true, call_fd_pread },                                              \
	{ "fd_prestat_get", "ii", true, call_fd_prestat_get },                                     \
	{ "fd_prestat_dir_name", "iii", true, call_fd_prestat_dir_name },                          \
	{ "fd_pwrite", "iiiIi", true, call_fd_pwrite },                                            \
	{ "fd_read", "iiii", true, call_fd_read },                                                 \
	{ "fd_readdir", "iiiIi", true, call_fd_readdir },                                          \
	{ "fd_renumber", "ii", true, call_fd_renumber },                                           \
	{ "fd_sync", "i", true, call_fd_sync },                                                    \
	{ "fd_tell", "ii", true, call_fd_tell },                                                   \
	{ "fd_write", "iiii", true, call_fd_write },                                               \
	{ "path_create_directory", "iii", true, call_path_create_directory },                      \
	{ "path_filestat_set_times", "iiiiIIi", true, call_path_filestat_set_times },              \
	{ "path_link", "iiiiiii", true, call_path_link },                                          \
	{ "path_open", "iiiiiIIii", true, call_path_open },                                        \
	{ "path_readlink", "iiiiii", true, call_path_readlink },                                   \
	{ "path_remove_directory", "iii", true, call_path_remove_directory },                      \
	{ "path_rename", "iiiiii", true, call_path_rename },                                       \
	{ "path_symlink", "iiiii", true, call_path_symlink },                                      \
	{ "path_unlink_file", "iii", true, call_path_unlink_file },                                \
	{ "proc_exit", "i", false, call_proc_exit },                                               \
	{ "proc_raise", "i", true, call_proc_raise },                                              \
	{ "random_get", "ii", true, call_random_get },                                             \
	{ "sched_yield", "", true, call_sched_yield },                                             \
	{ "sock_accept", "iii", true, call_sock_accept },                                          \
	{ "sock_recv", "iiiiii", true, call_sock_recv },                                           \
	{ "sock_send", "iiiii", true, call_sock_send },                                            \
	{ "sock_shutdown", "ii", true, call_sock_shutdown }

const wasi_import wasi_preview1[] = {
	SAME,
	{ "fd_filestat_get", "ii", true, call_fd_filestat_get },
	{ "fd_seek", "iIii", true, call_fd_seek },
	{ "path_filestat_get", "iiiii", true, call_path_filestat_get },
	{ "poll_oneoff", "iiii", true, call_poll_oneoff },
	{ 0 },
};

const wasi_import wasi_unstable[] = {
	SAME,
	{ "fd_filestat_get", "ii", true, call_fd_filestat_get_old },
	{ "fd_seek", "iIii", true, call_fd_seek_old },
	{ "path_filestat_get", "iiiii", true, call_path_filestat_get_old },
	{ "poll_oneoff", "iiii", true, call_poll_oneoff_old },
	{ 0 },
};
const wasi_import wasi_ours[] = {
	{ "bell", "ii", true, call_bell },
	{ "rest", "", false, call_rest },
	{ 0 },
};
/* clang-format on */

const wasi_import *wasi_interface(const char *module, size_t len)
{
	if (len == 22 && memcmp(module, "wasi_snapshot_preview1", len) == 0)
		return wasi_preview1;
	if (len == 13 && memcmp(module, "wasi_unstable", len) == 0)
		return wasi_unstable;
	if (len == 7 && memcmp(module, "sandbox", len) == 0)
		return wasi_ours;
	return NULL;
}

/* SPDX-License-Identifier: MIT */
/* host_noself.c - a library starts sb-launch; only the command has self.c, which stands for this file. */
#include "host_box.h"

const host_way *const host_self_way = NULL;

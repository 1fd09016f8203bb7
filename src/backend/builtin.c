/* SPDX-License-Identifier: MIT */
/* builtin.c - what is built in, strongest first. */
#include "builtin.h"

#include <string.h>

static const sb_backend *const builtin[] = { &backend_wasm, &backend_linux, &backend_process, &backend_seatbelt,
	&backend_noop, NULL };

const sb_backend *const *sb_backends_builtin(void)
{
	return builtin;
}

const sb_backend *sb_backend_builtin(const char *name)
{
	const sb_backend *const *at;

	for (at = builtin; name && *at; at++)
		if (!strcmp((*at)->name, name))
			return *at;
	return NULL;
}

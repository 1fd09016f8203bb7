/* SPDX-License-Identifier: MIT */
/* policy.c - an order of backends in which a policy may stand for several names. */
#include "session.h"

const char *const *policy_spell_out(arena *mem, const char *const *order)
{
	size_t n = 0, most = 0;
	const char *const *names;

	for (size_t i = 0; order[i]; i++)
		most += sb_policy_parse(order[i], &names) == 0 ? strv_count(names) : 1;
	const char **out = arena_alloc(mem, (most + 1) * sizeof *out);

	for (size_t i = 0; out && order[i]; i++) {
		const char *const one[] = { order[i], NULL };

		if (sb_policy_parse(order[i], &names) < 0)
			names = one;
		for (; *names; names++)
			if (!strv_has(out, *names))
				out[n++] = *names;
	}
	if (out)
		out[n] = NULL;
	return out;
}

/* SPDX-License-Identifier: MIT */
/*
 * begin.c - an sb-launch ahead of its plan.
 *
 * The kernel needs longer to make the namespaces of a box than we need to plan it.  So they are begun
 * as soon as the gates have let a request pass, and are there when its plan is; which must be one with
 * the same namespaces.  What is begun cannot run anything: pid 1 waits for the plan.
 */
#include "linux.h"

lh_box *linux_begun(sb_state *state, const char *id)
{
	lh_box *box = NULL;
	size_t i;

	pthread_mutex_lock(&state->lock);
	for (i = 0; id && i < LINUX_BEGUN_MOST; i++)
		if (state->begun[i].box && !strcmp(state->begun[i].id, id)) {
			box = state->begun[i].box;
			state->begun[i].box = NULL;
		}
	pthread_mutex_unlock(&state->lock);
	return box;
}

static bool keep(sb_state *state, const char *id, lh_box *box)
{
	bool kept = false;
	size_t i;

	pthread_mutex_lock(&state->lock);
	for (i = 0; !kept && i < LINUX_BEGUN_MOST; i++)
		if (!state->begun[i].box) {
			state->begun[i].id = id;
			state->begun[i].box = box;
			kept = true;
		}
	pthread_mutex_unlock(&state->lock);
	return kept;
}

/* Whatever fails here is told by create(), which then starts one itself. */
void linux_begin(sb_state *state, const char *id, const sb_network *network)
{
	uint64_t steps = LP_NAMESPACES;
	lh_box *box;

	if (!network) {
		lh_close(linux_begun(state, id));
		return;
	}
	if (network->mode == SB_NET_HOST)
		steps &= ~(uint64_t)LP_NETNS;
	if (state->helper && !lh_begin(steps, &box, NULL) && !keep(state, id, box))
		lh_close(box);
}

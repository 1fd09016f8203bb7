/* SPDX-License-Identifier: MIT */
/*
 * begun.c - an sb-launch ahead of its plan.
 *
 * The kernel needs longer to make the namespaces of a box than we need to plan it.  So they are begun
 * as soon as the gates have let a request pass, and are there when its plan is; which must be one with
 * the same namespaces.  What is begun cannot run anything: pid 1 waits for the plan.
 */
#include "launched.h"

lh_box *launched_begun(launched_begins *all, const char *id)
{
	lh_box *box = NULL;
	size_t i;

	pthread_mutex_lock(&all->lock);
	for (i = 0; id && i < LAUNCHED_BEGUN_MOST; i++)
		if (all->at[i].box && !strcmp(all->at[i].id, id)) {
			box = all->at[i].box;
			all->at[i].box = NULL;
		}
	pthread_mutex_unlock(&all->lock);
	return box;
}

static bool keep(launched_begins *all, const char *id, lh_box *box)
{
	bool kept = false;
	size_t i;

	pthread_mutex_lock(&all->lock);
	for (i = 0; !kept && i < LAUNCHED_BEGUN_MOST; i++)
		if (!all->at[i].box) {
			all->at[i].id = id;
			all->at[i].box = box;
			kept = true;
		}
	pthread_mutex_unlock(&all->lock);
	return kept;
}

void launched_begins_init(launched_begins *all)
{
	pthread_mutex_init(&all->lock, NULL);
}

void launched_begins_release(launched_begins *all)
{
	size_t i;

	for (i = 0; i < LAUNCHED_BEGUN_MOST; i++)
		lh_close(all->at[i].box);
	pthread_mutex_destroy(&all->lock);
}

void launched_begin(launched_begins *all, const char *helper, const char *id, uint64_t namespaces)
{
	lh_box *box;

	if (!namespaces)
		lh_close(launched_begun(all, id));
	else if (helper && !lh_begin(namespaces, &box, NULL) && !keep(all, id, box))
		lh_close(box);
}

int launched_start(launched_begins *all, const char *helper, const char *id, const lh_plan *plan, sb_box *box,
		   sb_error *err)
{
	lh_box *begun = launched_begun(all, id);

	if (begun && lh_follow(begun, plan, NULL) == 0) {
		box->launch = begun;
		return 0;
	}
	lh_close(begun);
	return lh_start(helper, plan, &box->launch, err);
}

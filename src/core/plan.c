/* SPDX-License-Identifier: MIT */
/* plan.c - what would hold, wall by wall, and whether that is what was asked for. */
#include "plan.h"

#define PLAN_LINES_MAX 512 /* more than a box has mounts */
#define PLAN_PATHS_MAX 65536

static const char *plan_copy(sb_plan *plan, const char *text)
{
	return text && *text ? arena_text(&plan->mem, text) : "";
}

/* ---- The object ---- */

int plan_new(const char *backend, sb_plan **plan, sb_error *err)
{
	sb_plan *p = malloc(sizeof *p);

	if (!p)
		return error_no_memory(err, "plan");
	memset(p, 0, offsetof(sb_plan, first));
	p->mem.at = p->first;
	p->mem.left = sizeof p->first;
	p->backend = strdup(backend ? backend : "");
	if (!p->backend) {
		free(p);
		return error_no_memory(err, "plan");
	}
	p->refs = 1;
	p->enforcement.size = sizeof p->enforcement;
	p->limits.size = sizeof p->limits;
	*plan = p;
	return 0;
}

sb_plan *plan_ref(sb_plan *plan)
{
	if (plan)
		__atomic_add_fetch(&plan->refs, 1, __ATOMIC_RELAXED);
	return plan;
}

/* What was said about it before is no longer true. */
static void plan_changed(sb_plan *plan)
{
	free(plan->as_text);
	free(plan->as_json);
	plan->as_text = plan->as_json = NULL;
}

static void plan_release_kept(sb_plan *plan)
{
	if (plan->kept)
		plan->kept_release(plan->kept);
	plan->kept = NULL;
	plan->rest = NULL;
}

void plan_unref(sb_plan *plan)
{
	if (!plan || __atomic_sub_fetch(&plan->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	plan_changed(plan);
	plan_release_kept(plan);
	arena_release(&plan->mem);
	free(plan->lines);
	free(plan->paths);
	free(plan->texts);
	strv_free_list(plan->argv);
	strv_free_list(plan->env_names);
	free(plan->backend);
	free(plan->workspace);
	free(plan);
}

void sb_plan_free(sb_plan *plan)
{
	plan_unref(plan);
}

/* ---- Filling ---- */

/* Room for one more: capacities are `first` and its doubles, so the count tells them. */
static void *plan_grow(void *at, size_t count, size_t item, size_t first, size_t max)
{
	size_t cap = count < first ? first : count * 2, full;

	if (count >= max)
		return NULL;
	for (full = first; full < count; full *= 2)
		;
	if (count != 0 && full != count)
		return at;
	return realloc(at, cap * item);
}

int sb_plan_add(sb_plan *plan, const sb_plan_line *line, sb_error *err)
{
	sb_plan_line in;
	plan_line copy;
	void *at;
	int rc = record_read(&in, sizeof in, line, "sb_plan_line", err);

	if (rc < 0)
		return rc;
	if (in.wall >= SB_WALL_COUNT || in.level > SB_LEVEL_HARD)
		return error_set(err, SB_ERR_INVALID, "plan",
				 "a plan line of backend \"%s\" has no "
				 "known wall or level",
				 plan->backend);
	at = plan_grow(plan->lines, plan->line_count, sizeof *plan->lines, 32, PLAN_LINES_MAX);
	if (!at)
		return plan->line_count >= PLAN_LINES_MAX
			       ? error_set(err, SB_ERR_INVALID_SPEC, "plan",
					   "a plan has at most %d lines; name directories instead of "
					   "many files", PLAN_LINES_MAX)
			       : error_no_memory(err, "plan");
	plan->lines = at;
	copy = (plan_line){ plan_copy(plan, in.mechanism),
			    plan_copy(plan, in.caveat),
			    plan_copy(plan, in.subject),
			    plan_copy(plan, in.test),
			    in.wall,
			    in.level,
			    in.required != 0 || (plan->must & SB_WALL_BIT(in.wall)) != 0 };
	if (!copy.mechanism || !copy.caveat || !copy.subject || !copy.test)
		return error_no_memory(err, "plan");
	plan->lines[plan->line_count++] = copy;
	plan_changed(plan);
	return 0;
}

int sb_plan_set_caps(sb_plan *plan, uint64_t caps)
{
	plan->caps = caps;
	plan_changed(plan);
	return 0;
}

int sb_plan_set_enforcement(sb_plan *plan, const sb_enforcement *enforcement)
{
	int rc = record_read(&plan->enforcement, sizeof plan->enforcement, enforcement,
			     "sb_enforcement", NULL);

	plan->enforcement.net_modes &= ~(1u << SB_NET_HOST); /* the absence of a policy */
	plan_changed(plan);
	return rc;
}

int plan_set_constant(sb_plan *plan, const char *format, const char *text, sb_error *err)
{
	const char *name;
	void *at;

	for (size_t i = 0; i < plan->text_count; i++) {
		if (strcmp(plan->texts[i].format, format) == 0) {
			plan->texts[i].text = text;
			return 0;
		}
	}
	at = plan_grow(plan->texts, plan->text_count, sizeof *plan->texts, 8, PLAN_LINES_MAX);
	if (at)
		plan->texts = at;
	name = plan_copy(plan, format);
	if (!at || !name)
		return error_no_memory(err, "plan");
	plan->texts[plan->text_count++] = (plan_text){ name, text };
	return 0;
}

int sb_plan_set_text(sb_plan *plan, const char *format, const char *text, sb_error *err)
{
	const char *copy = plan_copy(plan, text);

	return copy ? plan_set_constant(plan, format, copy, err) : error_no_memory(err, "plan");
}

int plan_add_path(sb_plan *plan, const char *path, int access, const char *why, sb_error *err)
{
	plan_path entry = { .why = why, .access = access };
	char *clean = NULL;
	void *at;
	int rc = path_is_clean_absolute(path) ? 0 : path_clean_absolute(path, &clean, err);

	if (rc < 0)
		return rc;
	at = plan_grow(plan->paths, plan->path_count, sizeof *plan->paths, 128, PLAN_PATHS_MAX);
	if (at)
		plan->paths = at;
	entry.path = plan_copy(plan, clean ? clean : path);
	free(clean);
	if (!at || !entry.path)
		return error_no_memory(err, "plan");
	plan->paths[plan->path_count++] = entry;
	return 0;
}

void plan_set_above(sb_plan *plan, const char *why)
{
	plan->above = why;
}

void plan_set_limits(sb_plan *plan, const sb_limits *limits)
{
	plan->limits = *limits;
	plan->limits.size = sizeof plan->limits;
	plan_changed(plan);
}

void plan_set_failure(sb_plan *plan, const sb_error *failure)
{
	if (failure)
		plan->failure = *failure;
	else
		memset(&plan->failure, 0, sizeof plan->failure);
	plan_changed(plan);
}

/* Names alone: a value may be a secret. */
static int plan_env_names(const char *const *env, char ***out)
{
	strv names = { 0 };

	for (; env && *env; env++) {
		if (strv_add_len(&names, *env, strcspn(*env, "=")) < 0) {
			strv_release(&names);
			return SB_ERR_NO_MEMORY;
		}
	}
	*out = strv_take(&names);
	return *out ? 0 : SB_ERR_NO_MEMORY;
}

int plan_set_command(sb_plan *plan, const char *const *argv, const char *workspace,
		     const char *const *env, sb_error *err)
{
	char **words = NULL, **names = NULL, *dir = NULL;
	strv list = { 0 };
	bool ok = strv_add_all(&list, argv) == 0 && (!argv || (words = strv_take(&list))) &&
		  (!workspace || (dir = strdup(workspace))) && plan_env_names(env, &names) == 0;

	if (!ok) {
		strv_release(&list);
		strv_free_list(words);
		strv_free_list(names);
		free(dir);
		return error_no_memory(err, "plan");
	}
	strv_free_list(plan->argv);
	strv_free_list(plan->env_names);
	free(plan->workspace);
	plan->argv = words;
	plan->env_names = names;
	plan->workspace = dir;
	plan_changed(plan);
	return 0;
}

/* ---- Rule 1: never weaker in silence ---- */

static uint32_t plan_wanted(const plan_demand *demand, uint32_t wall)
{
	if (demand->require_hard)
		return SB_LEVEL_HARD;
	return wall == SB_WALL_PIDS ? SB_LEVEL_COOPERATIVE : SB_LEVEL_SAMPLED;
}

static const plan_line *plan_weakest(const sb_plan *plan, uint32_t wall)
{
	const plan_line *weakest = NULL;

	for (size_t i = 0; i < plan->line_count; i++)
		if (plan->lines[i].wall == wall &&
		    (!weakest || plan->lines[i].level < weakest->level))
			weakest = &plan->lines[i];
	return weakest;
}

static int plan_refuse(const sb_plan *plan, uint32_t wall, uint32_t wanted, sb_error *err)
{
	const plan_line *line = plan_weakest(plan, wall);
	const char *name = sb_wall_name((int)wall), *reason = line ? line->caveat : "";

	return error_set(
		err, SB_ERR_UNENFORCEABLE, name,
		"backend \"%s\" cannot hold wall \"%s\" as asked: wanted %s%s, has %s%s%s; use "
		"another backend, or allow \"%s\" to be weaker",
		plan->backend, name, sb_level_name((int)wanted),
		wanted == SB_LEVEL_HARD ? "" : " or better",
		sb_level_name(line ? (int)line->level : SB_LEVEL_NONE), reason[0] ? ": " : "",
		reason, name);
}

int plan_check(sb_plan *plan, const plan_demand *demand, sb_error *err)
{
	uint64_t must = demand->asked | (demand->consented ? 0 : demand->profile);

	for (size_t i = 0; i < plan->line_count; i++)
		plan->lines[i].required = (must & SB_WALL_BIT(plan->lines[i].wall)) != 0;
	plan->must = must;
	plan_changed(plan);
	must &= ~demand->allow_weaker;
	for (uint32_t wall = 0; wall < SB_WALL_COUNT; wall++) {
		uint32_t wanted = plan_wanted(demand, wall);

		if ((must & SB_WALL_BIT(wall)) && (uint32_t)sb_plan_level(plan, (int)wall) < wanted)
			return plan_refuse(plan, wall, wanted, err);
	}
	return 0;
}

/* ---- What comes later ---- */

void plan_keep(sb_plan *plan, void *kept, plan_rest_fn *rest, void (*release)(void *kept))
{
	plan_release_kept(plan);
	plan->kept = kept;
	plan->rest = rest;
	plan->kept_release = release;
}

void *plan_kept(const sb_plan *plan, void (*release)(void *kept))
{
	return plan && plan->kept && plan->kept_release == release ? plan->kept : NULL;
}

/* The lines from `from` on, each moved behind the last one before it that is about its wall. */
static void plan_settle_lines(sb_plan *plan, size_t from)
{
	for (size_t i = from; i < plan->line_count; i++) {
		plan_line moved = plan->lines[i];
		size_t to = i;

		while (to > 0 && plan->lines[to - 1].wall != moved.wall)
			to--;
		if (to == 0)
			continue;
		memmove(plan->lines + to + 1, plan->lines + to, (i - to) * sizeof moved);
		plan->lines[to] = moved;
	}
}

int plan_finish(sb_plan *plan, sb_error *err)
{
	size_t count = plan->line_count;
	int rc = plan->rest ? plan->rest(plan, plan->kept, err) : 0;

	plan_settle_lines(plan, count);
	plan_release_kept(plan);
	return rc;
}

void plan_leave_rest(sb_plan *plan)
{
	plan->is_short |= plan->rest != NULL;
	plan_release_kept(plan);
}

/* ---- Getters ---- */

const sb_error *sb_plan_failure(const sb_plan *plan)
{
	return plan->failure.code ? &plan->failure : NULL;
}

const char *sb_plan_backend(const sb_plan *plan)
{
	return plan->backend;
}

uint64_t sb_plan_caps(const sb_plan *plan)
{
	return plan->caps;
}

int sb_plan_level(const sb_plan *plan, int wall)
{
	const plan_line *line = wall >= 0 ? plan_weakest(plan, (uint32_t)wall) : NULL;

	return line ? (int)line->level : SB_LEVEL_NONE;
}

void sb_plan_limits(const sb_plan *plan, sb_limits *resolved)
{
	record_write(resolved, &plan->limits, sizeof plan->limits, "sb_limits", NULL);
}

void sb_plan_enforcement(const sb_plan *plan, sb_enforcement *enforcement)
{
	const sb_enforcement nothing = { .size = sizeof nothing };

	record_write(enforcement, plan ? &plan->enforcement : &nothing, sizeof nothing,
		     "sb_enforcement", NULL);
}

size_t sb_plan_count(const sb_plan *plan)
{
	return plan->line_count;
}

int sb_plan_at(const sb_plan *plan, size_t index, sb_plan_line *line)
{
	sb_plan_line out = { .size = sizeof out };
	const plan_line *from;

	if (index >= plan->line_count)
		return SB_ERR_INVALID;
	from = &plan->lines[index];
	out.mechanism = from->mechanism;
	out.caveat = from->caveat;
	out.subject = from->subject;
	out.test = from->test;
	out.wall = from->wall;
	out.level = from->level;
	out.required = from->required;
	return record_write(line, &out, sizeof out, "sb_plan_line", NULL);
}

static bool leads_to_something(const sb_plan *plan, const char *clean)
{
	for (size_t i = 0; i < plan->path_count; i++)
		if (plan->paths[i].access != SB_FILE_HIDE && path_is_within(plan->paths[i].path, clean) &&
		    strcmp(plan->paths[i].path, clean) != 0)
			return true;
	return false;
}

int sb_plan_path(const sb_plan *plan, const char *path, int *access, const char **why)
{
	const plan_path *nearest = NULL;
	char *clean;
	int rc = plan->is_short ? SB_ERR_UNSUPPORTED : path_clean_absolute(path, &clean, NULL);

	if (rc < 0)
		return rc;
	/* of two entries for one path the later is what lies on top */
	for (size_t i = 0; i < plan->path_count; i++)
		if (path_is_within(clean, plan->paths[i].path) &&
		    (!nearest || strlen(plan->paths[i].path) >= strlen(nearest->path)))
			nearest = &plan->paths[i];
	*access = nearest ? nearest->access : SB_FILE_HIDE;
	*why = nearest ? nearest->why : "no rule shows it";
	if (plan->above && *access == SB_FILE_HIDE && leads_to_something(plan, clean)) {
		*access = SB_FILE_READ;
		*why = plan->above;
	}
	free(clean);
	return 0;
}

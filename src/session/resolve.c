/* SPDX-License-Identifier: MIT */
/*
 * resolve.c - from what was asked to what runs: every default filled in, every name looked up.
 *
 * effective_read() reads records and merges the operator's spec; effective_resolve() does the rest,
 * in the order in which a user would want to hear of mistakes, and ends with the request that a
 * backend gets.
 */
#include "session.h"
#include "../backend/interp.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sysinfo.h>
#include <unistd.h>

extern char **environ;

#define CODE_DIR "/run/code"
#define FIXED_PATH "/usr/local/bin:/usr/bin:/bin"

enum { MAX_CODE = 16 << 20 };

void effective_init(effective *e, sb_sandbox *sandbox, uint32_t door)
{
	memset(e, 0, offsetof(effective, first));
	memset(e->id, 0, sizeof *e - offsetof(effective, id));
	e->sandbox = sandbox;
	e->mem.at = e->first;
	e->mem.left = sizeof e->first;
	e->door = door;
	place_init(&e->place);
}

void effective_release(effective *e)
{
	if (!e->shared) {
		place_release(&e->place);
		strv_free_list(e->env_list);
		strv_free_list(e->argv);
		free(e->program);
	}
	arena_release(&e->mem);
}

void effective_share(effective *e, const effective *of, const char *id)
{
	size_t from = offsetof(effective, id);

	memcpy((char *)e + from, (const char *)of + from, sizeof *e - from);
	e->shared = true;
	snprintf(e->id, sizeof e->id, "%s", id);
	e->session = e->box.id = e->guest.id = e->id;
}

/* ---- reading -------------------------------------------------------------------------------- */

static int read_sub(void *out, size_t size, const void *in, const char *name, sb_error *err)
{
	return in ? record_read(out, size, in, name, err) : 0;
}

static int read_spec(effective *e, const sb_spec *spec, sb_error *err)
{
	int code = record_read(&e->spec, sizeof e->spec, spec, "sb_spec", err);

	if (code >= 0)
		code = sb_spec_validate(&e->spec, err);
	if (code >= 0)
		code = read_sub(&e->caller_limits, sizeof e->caller_limits, e->spec.limits,
				"sb_limits", err);
	if (code >= 0)
		code = read_sub(&e->env, sizeof e->env, e->spec.env, "sb_env", err);
	if (code >= 0)
		code = read_sub(&e->network, sizeof e->network, e->spec.network, "sb_network", err);
	e->env.size = sizeof e->env;
	e->network.size = sizeof e->network;
	e->caller_limits.size = sizeof e->caller_limits;
	e->caller_files = e->spec.files;
	return code;
}

/* What a session could do and a single run cannot. */
static int command_for_run(const sb_command *c, sb_error *err)
{
	if (c->flags & SB_COMMAND_TTY)
		return error_set(err, SB_ERR_UNSUPPORTED, "command",
				 "a terminal needs a session: sb_session_open(), sb_session_spawn()");
	if (c->flags & SB_COMMAND_DETACHED)
		return error_set(err, SB_ERR_UNSUPPORTED, "command",
				 "what a run leaves behind ends with it; a detached process needs a "
				 "session: sb_session_open(), sb_session_spawn()");
	if (c->flags & SB_COMMAND_HOLD)
		return error_set(err, SB_ERR_UNSUPPORTED, "command",
				 "a run has no log whose reader could hold it up");
	if (c->flags & SB_COMMAND_PARTIAL)
		return error_set(err, SB_ERR_INVALID, "command",
				 "partial code is for sessions that evaluate; a run takes the whole");
	if (c->argv && ((c->files && c->files[0]) || c->tree))
		return error_set(err, SB_ERR_INVALID_SPEC, "command",
				 "files for /in belong to code; a command sees its workspace, and what "
				 "file rules show it");
	if (c->input_kind == SB_INPUT_OPEN)
		return error_set(err, SB_ERR_INVALID, "input",
				 "a run has no handle to feed its input; use bytes, a descriptor or a "
				 "callback");
	if (c->input_kind == SB_INPUT_FD) {
		int flags = fcntl(c->input_fd, F_GETFL);

		if (flags < 0)
			return error_set(err, SB_ERR_INVALID, "input",
					 "input_fd %d is not an open descriptor", c->input_fd);
		/* poll() says nothing of an end that is only written to: it would be waited for */
		if ((flags & O_ACCMODE) == O_WRONLY || flags & O_PATH)
			return error_set(err, SB_ERR_INVALID, "input",
					 "input_fd %d is not open for reading", c->input_fd);
	}
	return 0;
}

/* A module that an argv brings: whoever asks what will run, asks for that, too. */
static int read_module(effective *e, sb_error *err)
{
	sb_wasm_options o = { 0 };
	int code = read_sub(&o, sizeof o, e->spec.wasm_options, "sb_wasm_options", err);

	if (code >= 0 && e->command.argv)
		e->module = o.module;
	return code;
}

int effective_read(effective *e, const sb_spec *spec, const sb_command *command, sb_error *err)
{
	int code = read_spec(e, spec, err);

	if (code < 0)
		return code;
	if (command) {
		e->has_command = true;
		code = record_read(&e->command, sizeof e->command, command, "sb_command", err);
		if (code >= 0)
			code = spec_check_command(&e->command, err);
		if (code < 0)
			return code;
	}
	if (e->command.id && *e->command.id)
		snprintf(e->id, sizeof e->id, "%s", e->command.id);
	else if (!e->id[0] && (code = random_id("run_", e->id, sizeof e->id, err)) < 0)
		return code;
	e->environ_now = (const char *const *)environ;
	code = merge_operator(e, err);
	if (code >= 0)
		code = read_module(e, err);
	if (code < 0)
		return code;
	e->profile = (int)e->spec.profile;
	if (e->profile == SB_PROFILE_DEFAULT)
		e->profile = e->command.language ? SB_PROFILE_CODE : SB_PROFILE_COMMAND;
	if (e->network.mode == SB_NET_DEFAULT)
		e->network.mode = e->profile == SB_PROFILE_RUNNER ? SB_NET_HOST : SB_NET_DENY_ALL;
	return 0;
}

/* ---- what does not work yet is said, never left out ------------------------------------------- */

static int check_supported(const effective *e, sb_error *err)
{
	const sb_network *n = &e->network;

	if (e->spec.workspace_mode == SB_WORKSPACE_COPY)
		return error_set(err, SB_ERR_UNSUPPORTED, "workspace",
				 "a copied workspace needs a session, which this version does not "
				 "have; use read or write");
	if (n->mode != SB_NET_HOST && n->mode != SB_NET_DENY_ALL)
		return error_set(err, SB_ERR_UNSUPPORTED, "network",
				 "the network mode \"%s\" is not available in this version; use "
				 "deny_all or host",
				 sb_net_mode_name((int)n->mode));
	if ((n->rules && n->rules[0]) || n->upstream || n->mitm || n->decide || n->on_attempt ||
	    (n->secrets && n->secrets[0]))
		return error_set(err, SB_ERR_UNSUPPORTED, "network",
				 "network rules, secrets and callbacks need the gate, which "
				 "this version does not have; use deny_all or host alone");
	return 0;
}

/* ---- limits ------------------------------------------------------------------------------------ */

static uint64_t machine_ram(void)
{
	struct sysinfo info;

	return sysinfo(&info) ? 0 : (uint64_t)info.totalram * info.mem_unit;
}

static int resolve_limits(effective *e, sb_error *err)
{
	const sb_spec *fixed = e->sandbox->operator_spec;
	const limits_sources from = {
		.profile = e->profile,
		.ram_bytes = machine_ram(),
		.pack = e->pack,
		.defaults = e->sandbox->default_limits,
		.spec = e->spec.limits ? &e->caller_limits : NULL,
		.operator_limits = fixed ? fixed->limits : NULL,
	};
	return limits_resolve(&from, &e->limits, err);
}

/* Walls of the profile: those that hold a limit only where there is one. */
static uint64_t profile_walls(const effective *e)
{
	const sb_limits *l = &e->limits;
	uint64_t walls = 0;

	if (e->profile != SB_PROFILE_RUNNER)
		walls |= SB_WALL_BIT(SB_WALL_FILES) | SB_WALL_BIT(SB_WALL_SYSCALLS) |
			 SB_WALL_BIT(SB_WALL_PRIVILEGES);
	if (e->network.mode != SB_NET_HOST)
		walls |= SB_WALL_BIT(SB_WALL_NETWORK);
	return walls | (merge_asked(l, NULL, NULL, NULL, SB_WORKSPACE_DEFAULT) &
			~SB_WALL_BIT(SB_WALL_PIDS)) |
	       (l->procs != SB_UNLIMITED && l->procs ? SB_WALL_BIT(SB_WALL_PIDS) : 0);
}

static void resolve_demand(effective *e)
{
	uint64_t asked = merge_asked(e->spec.limits ? &e->caller_limits : NULL, &e->network,
				     e->caller_files, &e->env, e->spec.workspace_mode);
	sb_network unnamed = { .mode = SB_NET_DEFAULT };

	/* a mode that nobody named is the profile's */
	if (!e->spec.network && !(e->asked_by_operator & SB_WALL_BIT(SB_WALL_NETWORK)))
		asked = merge_asked(e->spec.limits ? &e->caller_limits : NULL, &unnamed,
				    e->caller_files, &e->env, e->spec.workspace_mode);
	asked |= merge_asked(e->sandbox->default_limits, NULL, NULL, NULL, SB_WORKSPACE_DEFAULT);
	e->demand = (plan_demand){
		.asked = asked | e->asked_by_operator | e->spec.require,
		.profile = profile_walls(e),
		.allow_weaker = e->spec.allow_weaker,
		.require_hard = e->spec.flags & SB_SPEC_REQUIRE_HARD,
		.consented = e->slot && !strcmp(e->slot->table->name, "process"),
	};
}

/* ---- language and code --------------------------------------------------------------------------- */

static int unknown_language(const effective *e, sb_error *err)
{
	buf names;

	buf_init(&names, 400);
	for (size_t i = 0; e->sandbox->languages[i]; i++)
		buf_add_fmt(&names, "%s%s", i ? ", " : "", e->sandbox->languages[i]);
	int code = error_set(err, SB_ERR_UNKNOWN_LANGUAGE, "language",
			     "the language \"%.60s\" is not known; there are: %s",
			     e->command.language, names.data ? names.data : "none");

	buf_release(&names);
	return code;
}

static int resolve_language(effective *e, sb_error *err)
{
	const char *name = e->command.language;

	if (!name)
		return 0;
	e->pack = pack_find(e->sandbox->packs, name);
	if (!e->pack)
		return unknown_language(e, err);
	if (e->command.code_len > MAX_CODE)
		return error_set(err, SB_ERR_INVALID_SPEC, "code",
				 "the code has %zu bytes; %d are the most, put what is large into files",
				 e->command.code_len, MAX_CODE);
	return 0;
}

/* ---- routing ---------------------------------------------------------------------------------------- */

static bool can_run(const backend_slot *slot, const sb_pack *pack)
{
	if (!pack)
		return true;
	if (slot->table->supports)
		return slot->table->supports(slot->table, pack) > 0;
	return pack_way(pack, slot->table->name) != NULL;
}

/* The first that runs the language behind walls; NULL if none does, or no language is asked for. */
static const char *runs_elsewhere(const effective *e)
{
	for (size_t i = 0; e->pack && i < e->sandbox->slot_count; i++) {
		const char *name = e->sandbox->slots[i].table->name;

		if (strcmp(name, "process") && can_run(&e->sandbox->slots[i], e->pack))
			return name;
	}
	return NULL;
}

static int no_route(effective *e, const char *const *order, sb_error *err)
{
	const char *better = runs_elsewhere(e);
	char *here = sandbox_names(e->sandbox, &e->mem);
	buf asked;

	buf_init(&asked, 200);
	for (size_t i = 0; order[i]; i++)
		buf_add_fmt(&asked, "%s%.40s", i ? ", " : "", order[i]);
	int code = error_set(err, SB_ERR_BACKEND_UNAVAILABLE, "route",
			     "no backend of \"%s\" can run %s%s%s here%s%s; there are: %s",
			     asked.data ? asked.data : "", e->pack ? "\"" : "a command",
			     e->pack ? e->pack->name : "", e->pack ? "\"" : "", better ? ", but it runs on " : "",
			     better ? better : "", here ? here : "");

	buf_release(&asked);
	return code;
}

/* What nobody has named is taken only if it is all there and can hold what was asked for. */
static bool suits(const effective *e, const backend_slot *slot)
{
	const sb_box_request request = {
		.size = sizeof request, .spec = &e->spec, .limits = &e->limits, .network = &e->network,
		.pack = e->pack, .way = e->pack ? pack_way(e->pack, slot->table->name) : NULL,
		.workspace = e->place.workspace, .workspace_fd = -1, .door = e->door,
		.code = e->command.code, .code_len = e->command.code_len,
	};

	return !slot->table->suits ||
	       slot->table->suits(slot->table, e->sandbox->helper_dir, &request) > 0;
}

static void take_slot(effective *e, backend_slot *slot)
{
	e->slot = slot;
	e->way = e->pack ? pack_way(e->pack, slot->table->name) : NULL;
}

static bool runs_module(const backend_slot *slot)
{
	return !strcmp(slot->table->name, "wasm");
}

int effective_route(effective *e, sb_error *err)
{
	const char *const *order = policy_spell_out(&e->mem, e->spec.backends ? e->spec.backends : e->sandbox->order);
	bool named = e->spec.backends || e->sandbox->order_given;
	backend_slot *lacking = NULL;

	if (!order)
		return error_no_memory(err, "route");
	for (size_t i = 0; order[i]; i++) {
		const char *name = NULL;
		int known = sb_backend_parse(order[i], &name);
		backend_slot *slot = sandbox_slot(e->sandbox, name ? name : order[i]);

		/* a slip in a list must not lead to the weaker one behind it */
		if (!slot && known < 0)
			return error_set(err, SB_ERR_BACKEND_UNAVAILABLE, "route",
					 "the backend \"%.60s\" is not known; there are: %s", order[i],
					 sandbox_names(e->sandbox, &e->mem));
		if (!slot || !can_run(slot, e->pack))
			continue;
		/* the argv's first word is a name then, and of a program of the host's only by chance */
		if (!named && e->module && !runs_module(slot))
			continue;
		if (!named && !suits(e, slot)) {
			lacking = lacking || (!e->pack && !e->module) ? lacking : slot;
			continue;
		}
		take_slot(e, slot);
		return 0;
	}
	if (!lacking)
		return no_route(e, order, err);
	take_slot(e, lacking); /* it knows best what is missing, and how to come by it */
	return 0;
}

static int read_options(effective *e, sb_error *err)
{
	const char *name = e->slot->table->name;
	const sb_spec *s = &e->spec;
	const struct {
		const char *name;
		const void *given;
		size_t size;
	} records[] = {
		{ "process", s->process_options, sizeof e->options.process },
		{ "linux", s->linux_options, sizeof e->options.linux_ },
		{ "container", s->container_options, sizeof e->options.container },
		{ "k8s", s->kube_options, sizeof e->options.kube },
		{ "wasm", s->wasm_options, sizeof e->options.wasm },
		{ "seatbelt", s->seatbelt_options, sizeof e->options.seatbelt },
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(records); i++) {
		if (strcmp(records[i].name, name) || !records[i].given)
			continue;
		e->options_given = &e->options;
		return record_read(&e->options, records[i].size, records[i].given, name, err);
	}
	for (size_t i = 0; s->other_options && s->other_options[i]; i++)
		if (s->other_options[i]->backend && !strcmp(s->other_options[i]->backend, name))
			e->options_given = s->other_options[i];
	return 0;
}

/* ---- place, environment, program ------------------------------------------------------------------------ */

static int take_operator_workspace(effective *e)
{
	e->place.workspace = e->sandbox->operator_workspace;
	e->place.fd = e->sandbox->operator_workspace_fd;
	e->place.fd_borrowed = true;
	e->place.home = workspace_home(&e->mem, e->environ_now);
	return 0;
}

static int resolve_workspace(effective *e, sb_error *err)
{
	uint32_t mode = e->spec.workspace_mode;

	if (mode == SB_WORKSPACE_DEFAULT && !e->pack)
		mode = SB_WORKSPACE_WRITE;
	else if (mode == SB_WORKSPACE_DEFAULT)
		mode = e->spec.workspace ? SB_WORKSPACE_READ : SB_WORKSPACE_NONE;
	e->workspace_implied = e->spec.workspace_mode == SB_WORKSPACE_DEFAULT;
	e->spec.workspace_mode = mode;
	if (mode == SB_WORKSPACE_NONE) {
		e->place.home = workspace_home(&e->mem, e->environ_now);
		e->spec.workspace = NULL;
		return 0;
	}
	int code = e->workspace_fixed ? take_operator_workspace(e)
				      : place_workspace(&e->place, e->sandbox, &e->mem,
							e->spec.workspace, e->environ_now, err);

	e->spec.workspace = e->place.workspace;
	return code;
}

/* A quota over files of the host is nobody's to hold. */
static int check_quota(effective *e, sb_error *err)
{
	const sb_limits *caller = &e->caller_limits;
	bool named = (caller->fs_bytes && caller->fs_bytes != SB_UNLIMITED) ||
		     (caller->fs_nodes && caller->fs_nodes != SB_UNLIMITED);

	if (!named || e->spec.workspace_mode != SB_WORKSPACE_WRITE || !e->place.workspace ||
	    e->spec.allow_weaker & SB_WALL_BIT(SB_WALL_DISK))
		return 0;
	return error_set(err, SB_ERR_UNENFORCEABLE, "disk",
			 "nothing can hold a disk limit over the writable workspace \"%s\"; show it "
			 "read-only (--workspace-mode ro), leave it out (--workspace none), or do without "
			 "(--allow-weaker disk)",
			 e->place.workspace);
}

static int resolve_rules(effective *e, sb_error *err)
{
	bool protect = e->spec.workspace_mode == SB_WORKSPACE_WRITE;

	int code = place_rules(&e->place, e->caller_files, e->operator_files, protect, err);

	if (code >= 0)
		code = protect_own(&e->place, e->sandbox->helper_dir, err);
	return code < 0 ? code : place_settle(&e->place, &e->mem, err);
}

static const char *guest_value(char *const *env, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; env && env[i]; i++)
		if (!strncmp(env[i], name, len) && env[i][len] == '=')
			return env[i] + len + 1;
	return NULL;
}

static int find_program(effective *e, sb_error *err)
{
	const char *const own[] = { e->command.argv ? e->command.argv[0] : NULL, NULL };
	const interp_query query = {
		.names = !e->pack ? own : e->way ? e->way->find : NULL,
		.host_env = e->environ_now,
		.guest_path = guest_value(e->env_list, "PATH"),
		.home = e->place.home,
		.workspace = e->place.workspace,
		.cwd = e->cwd,
		.rules = e->place.rules,
		.everything = strcmp(e->slot->table->name, "linux") != 0,
		.cancel_fd = -1,
		.kept = e->sandbox->shims,
	};
	interp_found found = { 0 };

	if (!query.names || !query.names[0] || (e->module && runs_module(e->slot)))
		return 0;
	int code = interp_find(&query, &found, err);

	if (code >= 0 && found.show)
		code = place_show(&e->place, &e->mem, found.show, err);
	if (code >= 0) {
		e->program = found.program;
		found.program = NULL;
	}
	interp_release(&found);
	return code;
}

/* Without walls the caller is who it is, and a home that is not there would help nobody. */
static bool without_walls(const effective *e)
{
	return !strcmp(e->slot->table->name, "process");
}

static int resolve_sockets(effective *e, sb_error *err)
{
	int code = sockets_check(&e->network, err);

	if (code < 0 || without_walls(e))
		return code;
	return sockets_hide(&e->place, &e->mem, e->network.unix_sockets, err);
}

/* HOME and USER inside: a code run's are ours, a command's the caller's name. */
static const char *guest_user(const effective *e)
{
	const char *user = guest_value((char *const *)e->environ_now, "USER");
	bool ours = !without_walls(e) && (e->pack || geteuid() == 0);

	if (ours || !user || !*user)
		return without_walls(e) && geteuid() == 0 ? "root" : "sandbox";
	return user;
}

static const char *guest_home(const effective *e)
{
	if (!without_walls(e))
		return "/home/sandbox";
	return e->place.home ? e->place.home : "/";
}

static int resolve_env(effective *e, sb_error *err)
{
	const char *fixed[] = { "PATH=" FIXED_PATH, arena_fmt(&e->mem, "HOME=%s", guest_home(e)),
				arena_fmt(&e->mem, "USER=%s", guest_user(e)), "TMPDIR=/tmp",
				"LANG=C.UTF-8", NULL };
	bool ours = e->env.base == SB_ENV_DEFAULT && e->profile != SB_PROFILE_RUNNER;
	sb_env env = e->env;

	if (env.base == SB_ENV_DEFAULT)
		env.base = e->profile == SB_PROFILE_RUNNER ? SB_ENV_INHERIT : SB_ENV_NONE;
	if (e->mem.failed)
		return error_no_memory(err, "env");
	e->env.base = env.base;
	return env_build(&env, ours ? fixed : NULL, e->environ_now, e->command.env, &e->env_list,
			 err);
}

int effective_code_argv(effective *e, sb_error *err)
{
	static const char *const by_itself[] = { "{code}", "{args}", NULL };
	const char *name = e->way && e->way->code_file ? e->way->code_file : "main";
	const char *const *run = e->way && e->way->run ? e->way->run : by_itself;

	e->code_path = arena_fmt(&e->mem, "%s/%s", CODE_DIR, name);
	if (!e->code_path)
		return error_no_memory(err, "command");
	return pack_expand(run, e->program, e->code_path, e->command.args, &e->argv, err);
}

static int resolve_argv(effective *e, sb_error *err)
{
	if (!e->has_command) /* a plan for no command in particular */
		return 0;
	if (e->pack)
		return effective_code_argv(e, err);
	strv argv = { 0 };
	int code = strv_add(&argv, e->program ? e->program : e->command.argv[0]);

	if (code >= 0)
		code = strv_add_all(&argv, e->command.argv + 1);
	e->argv = code < 0 ? NULL : strv_take(&argv);
	strv_release(&argv);
	return e->argv ? 0 : error_no_memory(err, "command");
}

/* ---- the whole way ---------------------------------------------------------------------------------------- */

static void fill_requests(effective *e)
{
	e->spec.limits = &e->limits;
	e->spec.env = &e->env;
	e->spec.network = &e->network;
	e->spec.files = e->place.rules;
	e->spec.profile = (uint32_t)e->profile;
	e->box = (sb_box_request){
		.size = sizeof e->box, .id = e->id, .owner = sandbox_owner(e->sandbox), .spec = &e->spec,
		.limits = &e->limits, .network = &e->network, .pack = e->pack, .way = e->way,
		.options = e->options_given, .workspace = e->place.workspace,
		.workspace_fd = e->place.fd, .door = e->door,
		.code = e->pack ? e->command.code : NULL, .code_len = e->pack ? e->command.code_len : 0,
	};
	if (e->door == SB_DOOR_RUN && e->has_command) {
		e->box.guest = &e->guest;
		if (e->pack && e->sandbox->flags & SB_SANDBOX_WARM)
			e->box.flags = SB_BOX_WARM;
	}
	e->guest = (sb_guest_request){
		.size = sizeof e->guest, .id = e->id, .argv = (const char *const *)e->argv,
		.env = (const char *const *)e->env_list, .cwd = e->cwd, .limits = &e->limits,
	};
}

typedef int resolve_step(effective *e, sb_error *err);

static int resolve_cwd(effective *e, sb_error *err)
{
	return place_cwd(&e->place, &e->mem, e->command.cwd, e->pack != NULL, &e->cwd, err);
}

int effective_resolve(effective *e, sb_error *err)
{
	static resolve_step *const steps[] = {
		resolve_language, resolve_limits, resolve_workspace, check_quota, resolve_cwd,
		effective_route, read_options, resolve_env, resolve_rules, find_program,
		resolve_sockets, resolve_argv,
	};
	int code = check_supported(e, err);

	if (code >= 0 && e->has_command)
		code = command_for_run(&e->command, err);
	for (size_t i = 0; code >= 0 && i < BASE_ARRAY_LEN(steps); i++)
		code = steps[i](e, err);
	if (code < 0)
		return code;
	/* a backend may hold a mode that nobody named read-only where it cannot give more */
	if (e->workspace_implied)
		e->spec.workspace_mode = SB_WORKSPACE_DEFAULT;
	resolve_demand(e); /* looks at what the caller left unset, which the next fills in */
	fill_requests(e);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * copy.c - deep copies of public records: for what an object keeps, and for callbacks, which may
 * change what they are shown without changing what runs.
 */
#include "session.h"

/* A record of the caller's as a whole one of ours, in the arena. */
static void *record_copy(arena *mem, size_t size, const void *in, const char *name, sb_error *err)
{
	void *out = arena_alloc(mem, size);

	if (!out) {
		error_no_memory(err, "copy");
		return NULL;
	}
	return record_read(out, size, in, name, err) < 0 ? NULL : out;
}

#define RECORD(mem, in, type, err) ((type *)record_copy(mem, sizeof(type), in, #type, err))

/* The last word of each copier: a text that did not fit is no copy. */
static void *whole(arena *mem, void *out, sb_error *err)
{
	if (!mem->failed)
		return out;
	error_no_memory(err, "copy");
	return NULL;
}

typedef void *copy_one(arena *mem, const void *in, sb_error *err);

/* A NULL-ended list of records, each by `one`.  *ok false: err is set. */
static const void *list_copy(arena *mem, const void *in, copy_one *one, bool *ok, sb_error *err)
{
	const void *const *list = in;
	size_t count = 0;

	if (!list || !*ok)
		return NULL;
	while (list[count])
		count++;
	const void **out = arena_alloc(mem, (count + 1) * sizeof *out);

	if (!out) {
		error_no_memory(err, "copy");
		*ok = false;
		return NULL;
	}
	for (size_t i = 0; i < count && *ok; i++) {
		out[i] = one(mem, list[i], err);
		*ok = out[i] != NULL;
	}
	return *ok ? out : NULL;
}

static void *one_copy(arena *mem, const void *in, copy_one *one, bool *ok, sb_error *err)
{
	void *out;

	if (!in || !*ok)
		return NULL;
	out = one(mem, in, err);
	*ok = out != NULL;
	return out;
}

static void *limits_copy(arena *mem, const void *in, sb_error *err)
{
	return RECORD(mem, in, sb_limits, err);
}

static void *env_copy(arena *mem, const void *in, sb_error *err)
{
	sb_env *out = RECORD(mem, in, sb_env, err);

	if (!out)
		return NULL;
	out->allow = arena_list(mem, out->allow);
	out->inject = arena_list(mem, out->inject);
	return whole(mem, out, err);
}

static void *net_rule_copy(arena *mem, const void *in, sb_error *err)
{
	sb_net_rule *out = RECORD(mem, in, sb_net_rule, err);

	if (!out)
		return NULL;
	out->host = arena_text(mem, out->host);
	return whole(mem, out, err);
}

static void *mitm_copy(arena *mem, const void *in, sb_error *err)
{
	sb_mitm *out = RECORD(mem, in, sb_mitm, err);

	if (!out)
		return NULL;
	out->hosts = arena_list(mem, out->hosts);
	out->exclude = arena_list(mem, out->exclude);
	out->roots_file = arena_text(mem, out->roots_file);
	return whole(mem, out, err);
}

static void *network_copy(arena *mem, const void *in, sb_error *err)
{
	sb_network *out = RECORD(mem, in, sb_network, err);
	bool ok = true;

	if (!out)
		return NULL;
	out->rules = list_copy(mem, out->rules, net_rule_copy, &ok, err);
	if (out->ports)
		out->ports = arena_copy(mem, out->ports, out->port_count * sizeof *out->ports);
	out->upstream = arena_text(mem, out->upstream);
	out->unix_sockets = arena_list(mem, out->unix_sockets);
	out->secrets = arena_list(mem, out->secrets);
	out->mitm = one_copy(mem, out->mitm, mitm_copy, &ok, err);
	out->deny_text = arena_text(mem, out->deny_text);
	return ok ? whole(mem, out, err) : NULL;
}

static void *file_rule_copy(arena *mem, const void *in, sb_error *err)
{
	sb_file_rule *out = RECORD(mem, in, sb_file_rule, err);

	if (!out)
		return NULL;
	out->path = arena_text(mem, out->path);
	out->source = arena_text(mem, out->source);
	return whole(mem, out, err);
}

static void *process_copy(arena *mem, const void *in, sb_error *err)
{
	return RECORD(mem, in, sb_process_options, err);
}

static void *linux_copy(arena *mem, const void *in, sb_error *err)
{
	sb_linux_options *out = RECORD(mem, in, sb_linux_options, err);

	if (!out)
		return NULL;
	out->root = arena_text(mem, out->root);
	out->hostname = arena_text(mem, out->hostname);
	out->cgroup_parent = arena_text(mem, out->cgroup_parent);
	out->seccomp_file = arena_text(mem, out->seccomp_file);
	return whole(mem, out, err);
}

static void *container_copy(arena *mem, const void *in, sb_error *err)
{
	sb_container_options *out = RECORD(mem, in, sb_container_options, err);

	if (!out)
		return NULL;
	out->image = arena_text(mem, out->image);
	out->socket = arena_text(mem, out->socket);
	out->network_mode = arena_text(mem, out->network_mode);
	out->user = arena_text(mem, out->user);
	out->cap_add = arena_list(mem, out->cap_add);
	out->seccomp_json = arena_text(mem, out->seccomp_json);
	out->runtime = arena_text(mem, out->runtime);
	out->tmpfs = arena_list(mem, out->tmpfs);
	out->labels = arena_list(mem, out->labels);
	return whole(mem, out, err);
}

static void *kube_copy(arena *mem, const void *in, sb_error *err)
{
	sb_kube_options *out = RECORD(mem, in, sb_kube_options, err);

	if (!out)
		return NULL;
	out->image = arena_text(mem, out->image);
	out->kube_namespace = arena_text(mem, out->kube_namespace);
	out->service_account = arena_text(mem, out->service_account);
	out->kubeconfig = arena_text(mem, out->kubeconfig);
	out->context = arena_text(mem, out->context);
	out->runtime_class = arena_text(mem, out->runtime_class);
	out->image_pull_secrets = arena_list(mem, out->image_pull_secrets);
	out->node_selector = arena_list(mem, out->node_selector);
	out->labels = arena_list(mem, out->labels);
	return whole(mem, out, err);
}

static void *wasm_copy(arena *mem, const void *in, sb_error *err)
{
	sb_wasm_options *out = RECORD(mem, in, sb_wasm_options, err);

	if (!out)
		return NULL;
	out->module = arena_text(mem, out->module);
	out->fs_dir = arena_text(mem, out->fs_dir);
	return whole(mem, out, err);
}

static void *seatbelt_copy(arena *mem, const void *in, sb_error *err)
{
	sb_seatbelt_options *out = RECORD(mem, in, sb_seatbelt_options, err);

	if (!out)
		return NULL;
	out->mach_services = arena_list(mem, out->mach_services);
	return whole(mem, out, err);
}

/* Of a backend that is not ours: its size tells how much; what it points to stays its maker's. */
static void *other_copy(arena *mem, const void *in, sb_error *err)
{
	const sb_other_options *from = in;

	if (from->size < sizeof *from) {
		error_set(err, SB_ERR_INVALID, "spec", "sb_other_options: size is not set");
		return NULL;
	}
	sb_other_options *out = arena_copy(mem, in, from->size);

	if (out)
		out->backend = arena_text(mem, out->backend);
	return whole(mem, out, err);
}

static void *spec_copy(arena *mem, const void *in, sb_error *err)
{
	sb_spec *out = RECORD(mem, in, sb_spec, err);
	bool ok = true;

	if (!out)
		return NULL;
	out->backends = arena_list(mem, out->backends);
	out->limits = one_copy(mem, out->limits, limits_copy, &ok, err);
	out->env = one_copy(mem, out->env, env_copy, &ok, err);
	out->network = one_copy(mem, out->network, network_copy, &ok, err);
	out->workspace = arena_text(mem, out->workspace);
	out->files = list_copy(mem, out->files, file_rule_copy, &ok, err);
	out->process_options = one_copy(mem, out->process_options, process_copy, &ok, err);
	out->linux_options = one_copy(mem, out->linux_options, linux_copy, &ok, err);
	out->container_options = one_copy(mem, out->container_options, container_copy, &ok, err);
	out->kube_options = one_copy(mem, out->kube_options, kube_copy, &ok, err);
	out->wasm_options = one_copy(mem, out->wasm_options, wasm_copy, &ok, err);
	out->seatbelt_options = one_copy(mem, out->seatbelt_options, seatbelt_copy, &ok, err);
	out->other_options = list_copy(mem, out->other_options, other_copy, &ok, err);
	return ok ? whole(mem, out, err) : NULL;
}

static void *file_copy(arena *mem, const void *in, sb_error *err)
{
	sb_file *out = RECORD(mem, in, sb_file, err);

	if (!out)
		return NULL;
	out->path = arena_text(mem, out->path);
	out->data = arena_copy(mem, out->data, out->data ? out->len : 0);
	return whole(mem, out, err);
}

static void *artifact_copy(arena *mem, const void *in, sb_error *err)
{
	sb_artifact *out = RECORD(mem, in, sb_artifact, err);

	if (!out)
		return NULL;
	out->name = arena_text(mem, out->name);
	out->url = arena_text(mem, out->url);
	out->sha256 = arena_text(mem, out->sha256);
	out->archive_entry = arena_text(mem, out->archive_entry);
	out->path = arena_text(mem, out->path);
	if (out->data)
		out->data = arena_copy(mem, out->data, out->bytes);
	return whole(mem, out, err);
}

static void *way_copy(arena *mem, const void *in, sb_error *err)
{
	sb_pack_way *out = RECORD(mem, in, sb_pack_way, err);
	bool ok = true;

	if (!out)
		return NULL;
	out->backend = arena_text(mem, out->backend);
	out->find = arena_list(mem, out->find);
	out->run = arena_list(mem, out->run);
	out->compile = arena_list(mem, out->compile);
	out->code_file = arena_text(mem, out->code_file);
	out->workdir = arena_text(mem, out->workdir);
	out->image = arena_text(mem, out->image);
	out->module = one_copy(mem, out->module, artifact_copy, &ok, err);
	out->mounts = list_copy(mem, out->mounts, artifact_copy, &ok, err);
	out->session_driver = arena_text(mem, out->session_driver);
	out->serve_driver = arena_text(mem, out->serve_driver);
	out->preload = arena_list(mem, out->preload);
	out->warm_driver = arena_text(mem, out->warm_driver);
	out->other = one_copy(mem, out->other, other_copy, &ok, err);
	return ok ? whole(mem, out, err) : NULL;
}

sb_limits *copy_limits(arena *mem, const sb_limits *in, sb_error *err)
{
	return limits_copy(mem, in, err);
}

sb_spec *copy_spec(arena *mem, const sb_spec *in, sb_error *err)
{
	return spec_copy(mem, in, err);
}

sb_command *copy_command(arena *mem, const sb_command *in, sb_error *err)
{
	sb_command *out = RECORD(mem, in, sb_command, err);
	bool ok = true;

	if (!out)
		return NULL;
	out->id = arena_text(mem, out->id);
	out->argv = arena_list(mem, out->argv);
	out->language = arena_text(mem, out->language);
	if (out->code)
		out->code = arena_text_len(mem, out->code, out->code_len);
	out->args = arena_list(mem, out->args);
	out->cwd = arena_text(mem, out->cwd);
	out->env = arena_list(mem, out->env);
	out->files = list_copy(mem, out->files, file_copy, &ok, err);
	if (out->input)
		out->input = arena_copy(mem, out->input, out->input_len);
	return ok ? whole(mem, out, err) : NULL;
}

sb_pack *copy_pack(arena *mem, const sb_pack *in, sb_error *err)
{
	sb_pack *out = RECORD(mem, in, sb_pack, err);
	bool ok = true;

	if (!out)
		return NULL;
	out->name = arena_text(mem, out->name);
	out->version = arena_text(mem, out->version);
	out->aliases = arena_list(mem, out->aliases);
	out->extensions = arena_list(mem, out->extensions);
	out->ways = list_copy(mem, out->ways, way_copy, &ok, err);
	out->limits = one_copy(mem, out->limits, limits_copy, &ok, err);
	out->compile_limits = one_copy(mem, out->compile_limits, limits_copy, &ok, err);
	return ok ? whole(mem, out, err) : NULL;
}

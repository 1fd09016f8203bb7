/* SPDX-License-Identifier: MIT */
/*
 * main.c - Lua for the wasm walls: `lua FILE ARG...`, as the stand-alone interpreter runs a script.
 *
 * Uncaught errors go to stderr as "lua: MESSAGE" with a traceback, exit code 1.  Everything random
 * is drawn at the start, so a copy of a waiting process may call guest_renew() and go on.
 */
#include "guest.h"
#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"
#include "session.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char no_programs[] = GUEST_NO_PROGRAMS;

/* ---- What Lua's libraries ask of the machine (config.h) --------------------------------------- */

unsigned int guest_seed(void)
{
	unsigned int seed;

	guest_random(&seed, sizeof seed);
	return seed;
}

int guest_system(const char *command)
{
	(void)command;
	errno = ENOSYS;
	return -1;
}

int guest_tmpnam(char name[static 24])
{
	FILE *file = NULL;

	for (int i = 0; i < 100 && file == NULL; i++) {
		snprintf(name, 24, "/tmp/lua_%08x", guest_seed());
		file = fopen(name, "wx");
		if (file == NULL && errno != EEXIST)
			return -1;
	}
	return file == NULL ? -1 : fclose(file);
}

FILE *guest_tmpfile(void)
{
	char name[24];

	if (guest_tmpnam(name) != 0)
		return NULL;
	FILE *file = fopen(name, "w+");
	int saved = errno;
	remove(name);
	errno = saved;
	return file;
}

/* os.execute: without a command it asks whether there is a shell. */
static int execute(lua_State *L)
{
	if (lua_isnoneornil(L, 1)) {
		lua_pushboolean(L, 0);
		return 1;
	}
	luaL_checkstring(L, 1);
	luaL_pushfail(L);
	lua_pushstring(L, no_programs);
	lua_pushinteger(L, ENOSYS);
	return 3;
}

/* ---- One script ------------------------------------------------------------------------------- */

static int on_error(lua_State *L)
{
	const char *message = lua_tostring(L, 1);

	if (message == NULL) {
		if (luaL_callmeta(L, 1, "__tostring") && lua_type(L, -1) == LUA_TSTRING)
			return 1;
		message = lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
	}
	luaL_traceback(L, L, message, 1);
	return 1;
}

static void report(lua_State *L)
{
	size_t len;
	const char *message = lua_tolstring(L, -1, &len);

	fflush(stdout);
	if (message == NULL)
		message = "(error message is no text)", len = strlen(message);
	fputs("lua: ", stderr);
	fwrite(message, 1, len, stderr);
	fputc('\n', stderr);
	if (strstr(message, "module '") != NULL && strstr(message, "' not found:") != NULL)
		fputs("lua: native modules cannot be loaded behind the wasm walls; --backend linux has "
		      "the machine's own\n", stderr);
	fflush(stderr);
}

static void set_arg(lua_State *L, int argc, char **argv)
{
	lua_createtable(L, argc - 2, 2);
	for (int i = 0; i < argc; i++) {
		lua_pushstring(L, argv[i]);
		lua_rawseti(L, -2, i - 1);
	}
	lua_setglobal(L, "arg");
}

/* `collectgarbage` as lua.c has it: stopped while the libraries are made, then generational. */
static void open_libraries(lua_State *L)
{
	uint64_t seed[2];

	luaL_checkversion(L);
	lua_gc(L, LUA_GCSTOP);
	luaL_openlibs(L);
	lua_getglobal(L, "os");
	lua_pushcfunction(L, execute);
	lua_setfield(L, -2, "execute");
	lua_getglobal(L, "math");
	lua_getfield(L, -1, "randomseed");
	guest_random(seed, sizeof seed);
	lua_pushinteger(L, (lua_Integer)seed[0]);
	lua_pushinteger(L, (lua_Integer)seed[1]);
	lua_call(L, 2, 0);
	lua_settop(L, 0);
	lua_gc(L, LUA_GCRESTART);
	lua_gc(L, LUA_GCGEN, 0, 0);
}

typedef struct script {
	int argc;
	char **argv;
	bool session; /* there is one, and no script */
} script;

static int run_script(lua_State *L)
{
	script *of = lua_touserdata(L, 1);
	int handler, status;

	open_libraries(L);
	of->session = guest_has_session();
	if (of->session) {
		lua_session(L);
		return 0;
	}
	set_arg(L, of->argc, of->argv);
	lua_pushcfunction(L, on_error);
	handler = lua_gettop(L);
	status = luaL_loadfile(L, of->argv[1]);
	if (status == LUA_OK) {
		luaL_checkstack(L, of->argc, "too many arguments");
		for (int i = 2; i < of->argc; i++)
			lua_pushstring(L, of->argv[i]);
		status = lua_pcall(L, of->argc - 2, 0, handler);
	}
	if (status != LUA_OK)
		report(L);
	lua_pushboolean(L, status == LUA_OK);
	return 1;
}

/* In a worker that waits for its run: memory and code that most runs touch are there by then. */
__attribute__((export_name("guest.rehearse"))) void guest_rehearse(void)
{
	lua_State *L = luaL_newstate();

	if (L == NULL)
		return;
	open_libraries(L);
	if (luaL_dostring(L, "local t = {} for i = 1, 3 do t[i] = ('%d'):format(i) end return table.concat(t)") != LUA_OK)
		abort();
	lua_close(L);
}

static int finish(lua_State *L, bool ok)
{
	lua_close(L); /* runs what is to be closed */
	return fflush(stdout) == 0 && ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

static lua_State *resting; /* of a session */

__attribute__((export_name("guest.turn"))) void guest_turn(void)
{
	if (lua_session_turn(resting))
		return;
	report(resting);
	exit(finish(resting, false));
}

__attribute__((export_name("guest.renew"))) void guest_renew(void)
{
	lua_session_renew(resting);
}

int main(int argc, char **argv)
{
	guest_start();
	if (argc < 2) {
		fputs("lua: no code file was given\n", stderr);
		return 1;
	}
	lua_State *L = luaL_newstate();
	script of = { argc, argv, false };
	if (L == NULL) {
		fputs("lua: not enough memory\n", stderr);
		return 1;
	}
	lua_pushcfunction(L, run_script);
	lua_pushlightuserdata(L, &of);
	int status = lua_pcall(L, 1, 1, 0);
	if (status != LUA_OK)
		report(L);
	if (of.session && status == LUA_OK) {
		lua_settop(L, 0);
		resting = L;
		guest_rest();
	}
	return finish(L, status == LUA_OK && lua_toboolean(L, -1));
}

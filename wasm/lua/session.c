/* SPDX-License-Identifier: MIT */
/*
 * session.c - an evaluation session: the driver of packs/lua_driver.lua, and what it is given here in the
 * place of its module for the host (packs/control.c).
 *
 * An interrupt sets guest_interrupted from outside.  The build has lvm.c look at it wherever it looks
 * for a hook, and name luaG_traceexec() another way in ldebug.c; ours comes first.
 */
#include "lprefix.h"
#include "ldebug.h"
#include "lauxlib.h"
#include "lopcodes.h"
#include "lualib.h"
#include "session.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

volatile int guest_interrupted;

static int turn, reseed; /* functions, in the registry */
static bool listening; /* code runs that an interrupt may stop */
static const char driver[] = {
#embed "../../packs/lua_driver.lua"
	, 0
};

int guest_traceexec(lua_State *L, const Instruction *pc);

int luaG_traceexec(lua_State *L, const Instruction *pc)
{
	bool stop = guest_interrupted && listening;

	guest_interrupted = 0;
	if (!stop)
		return guest_traceexec(L, pc);
	L->ci->u.l.savedpc = pc + 1;
	L->top.p = L->ci->top.p;
	return luaL_error(L, "interrupted!");
}

static int read_some(lua_State *L)
{
	static char piece[65536];
	size_t n = guest_control_read(piece, sizeof piece);

	lua_pushlstring(L, piece, n);
	return 1;
}

static int waiting(lua_State *L)
{
	lua_pushboolean(L, guest_control_waiting());
	return 1;
}

static int write_all(lua_State *L)
{
	size_t len;
	const char *text = luaL_checklstring(L, 1, &len);

	guest_control_write(text, len);
	return 0;
}

static int listen(lua_State *L)
{
	(void)L;
	guest_interrupted = 0;
	listening = true;
	return 0;
}

static int deaf(lua_State *L)
{
	(void)L;
	listening = false;
	return 0;
}

static int become_input(lua_State *L)
{
	guest_input_file(luaL_checkstring(L, 1));
	return 0;
}

static int functions(lua_State *L)
{
	static const lua_CFunction all[] = { read_some, write_all, listen, deaf, become_input, waiting };

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		lua_pushcfunction(L, all[i]);
	lua_pushboolean(L, true); /* rests */
	return 1 + sizeof all / sizeof all[0];
}

void lua_session(lua_State *L)
{
	static const guest_bell_word word = { .at = &guest_interrupted, .bits = 1 };

	guest_bell(&word, 1);
	lua_getglobal(L, LUA_MATHLIBNAME);
	lua_getfield(L, -1, "randomseed");
	reseed = luaL_ref(L, LUA_REGISTRYINDEX);
	lua_pop(L, 1);
	if (luaL_loadbuffer(L, driver, sizeof driver - 1, "=driver") != LUA_OK)
		lua_error(L);
	lua_pushcfunction(L, functions);
	lua_call(L, 1, 1);
	turn = luaL_ref(L, LUA_REGISTRYINDEX);
}

bool lua_session_turn(lua_State *L)
{
	lua_rawgeti(L, LUA_REGISTRYINDEX, turn);
	return lua_pcall(L, 0, 0, 0) == LUA_OK;
}

void lua_session_renew(lua_State *L)
{
	uint64_t seed[2];

	guest_random(seed, sizeof seed);
	lua_rawgeti(L, LUA_REGISTRYINDEX, reseed);
	lua_pushinteger(L, (lua_Integer)seed[0]);
	lua_pushinteger(L, (lua_Integer)seed[1]);
	lua_pcall(L, 2, 0, 0);
	lua_settop(L, 0);
}

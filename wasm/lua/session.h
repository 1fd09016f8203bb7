/* SPDX-License-Identifier: MIT */
#ifndef GUEST_LUA_SESSION_H
#define GUEST_LUA_SESSION_H

#include "guest.h"
#include "lua.h"

/* Makes all ready; an error is Lua's. */
void lua_session(lua_State *L);
/* What has come; false: it failed, and what with lies on top. */
bool lua_session_turn(lua_State *L);
/* Random numbers of a copy. */
void lua_session_renew(lua_State *L);

#endif /* GUEST_LUA_SESSION_H */

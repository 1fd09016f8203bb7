/* SPDX-License-Identifier: MIT */
#ifndef GUEST_LUA_SESSION_H
#define GUEST_LUA_SESSION_H

#include "guest.h"
#include "lua.h"

/* Evaluates until the host goes or the code exits. */
int lua_session(lua_State *L);

#endif /* GUEST_LUA_SESSION_H */

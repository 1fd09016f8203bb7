/* SPDX-License-Identifier: MIT */
/*
 * config.h - what Lua's own configuration is told about this machine; read before each of its files.
 *
 * There are no other programs here: what would start one says so.  Temporary files lie in $TMPDIR.
 */
#ifndef GUEST_LUA_CONFIG_H
#define GUEST_LUA_CONFIG_H

#include <stddef.h>
#include <stdio.h>
#include "guest.h"

unsigned int guest_seed(void);
int guest_tmpnam(char name[static 24]);
FILE *guest_tmpfile(void);
struct lua_State;
int guest_system(const char *command);
int guest_traceexec(struct lua_State *L, const unsigned int *pc);
extern volatile int guest_interrupted; /* session.c */

#define luai_makeseed(L) ((void)(L), guest_seed())
#define LUA_TMPNAMBUFSIZE 24
#define lua_tmpnam(name, failed) ((failed) = guest_tmpnam(name) != 0)
#define tmpfile guest_tmpfile
#define l_system(command) guest_system(command)
#define l_popen(L, command, mode)                                                                  \
	((void)(command), (void)(mode), luaL_error(L, "'popen' not supported: " GUEST_NO_PROGRAMS), (FILE *)0)
#define l_pclose(L, file) ((void)(L), (void)(file), -1)

#endif

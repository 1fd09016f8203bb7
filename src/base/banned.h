/* SPDX-License-Identifier: MIT */
/* banned.h - functions that this project does not call: each is a compile error. */
#ifndef SB_BANNED_H
#define SB_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef strcpy
#undef strcat
#undef strncpy
#undef strncat
#undef sprintf
#undef vsprintf
#undef strtok
#undef alloca
#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok atoi atol atoll sscanf
#pragma GCC poison system popen gethostbyname alloca

#endif /* SB_BANNED_H */

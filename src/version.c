/* SPDX-License-Identifier: MIT */
#include <sandbox/sandbox.h>

uint32_t sb_version(void)
{
	return (uint32_t)SB_VERSION_MAJOR << 16 | SB_VERSION_MINOR;
}

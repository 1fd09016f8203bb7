/* SPDX-License-Identifier: MIT */
/* sb_launch.c - the program that the library starts; the command has all of it in itself. */
#include "box.h"

int main(void)
{
	return launch_main();
}

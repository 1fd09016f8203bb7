/* SPDX-License-Identifier: MIT */
/*
 * terminal.c - a terminal for one command, of the box's own /dev/pts, so that its name means there
 * what it is.  The command gets the slave, the host the master.
 */
#include "box.h"
#include "sys.h"

#include <asm/ioctls.h>
#include <sys/ioctl.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER 0x5441
#endif

int terminal_open(uint16_t rows, uint16_t cols, int *slave, launch_failure *f)
{
	struct winsize size = { .ws_row = rows, .ws_col = cols };
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC), locked = 0;

	if (master < 0)
		return launch_fail(f, errno, "terminal", "cannot open a terminal");
	*slave = -1;
	if (ioctl(master, TIOCSPTLCK, &locked) == 0)
		*slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*slave < 0) {
		launch_fail(f, errno, "terminal", "cannot open the other end of a terminal");
		close(master);
		return -1;
	}
	ioctl(*slave, TIOCSWINSZ, &size);
	return master;
}

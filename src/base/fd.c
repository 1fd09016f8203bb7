/* SPDX-License-Identifier: MIT */
/* fd.c - descriptors: CLOEXEC from birth, whole writes, interrupted calls made again. */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

void fd_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = saved;
}

int fd_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n >= 0) {
			p += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) {
			/* a borrowed description that somebody else made non-blocking */
			struct pollfd ready = { .fd = fd, .events = POLLOUT };

			if (poll(&ready, 1, -1) < 0 && errno != EINTR)
				return -errno;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

/* Above RLIMIT_FSIZE, which counts for files in memory, too, the kernel sends the writing thread
 * SIGXFSZ besides the error: taken back, so that no caller is killed by it. */
int fd_write_file(int fd, const void *data, size_t len)
{
	const struct timespec now = { 0, 0 };
	sigset_t xfsz, old;
	int rc;

	sigemptyset(&xfsz);
	sigaddset(&xfsz, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &xfsz, &old);
	rc = fd_write_all(fd, data, len);
	if (rc == -EFBIG && !sigismember(&old, SIGXFSZ))
		sigtimedwait(&xfsz, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

int fd_read_file(int fd, size_t max, buf *out)
{
	char chunk[4096];

	for (;;) {
		ssize_t n = read(fd, chunk, sizeof chunk);

		if (n == 0)
			return 0;
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if ((size_t)n > max)
			return -EFBIG;
		max -= (size_t)n;
		buf_add(out, chunk, (size_t)n);
		if (out->failed)
			return out->failed == SB_ERR_NO_MEMORY ? -ENOMEM : -EFBIG;
	}
}

int fd_memfd(const char *name, const void *data, size_t len)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	int rc;

	if (fd < 0 && errno == EINVAL) /* Linux before 6.3 does not know NOEXEC_SEAL */
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	rc = fd_write_file(fd, data, len);
	if (rc == 0 && lseek(fd, 0, SEEK_SET) < 0)
		rc = -errno;
	if (rc == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
		rc = -errno;
	if (rc < 0) {
		fd_close(&fd);
		return rc;
	}
	return fd;
}

int fd_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || (!(flags & O_NONBLOCK) && fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0))
		return -errno;
	return 0;
}

int fd_pair(int type, int out[2])
{
	int pair[2];

	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	out[0] = pair[0];
	out[1] = pair[1];
	return 0;
}

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a command under a filter that makes some system calls fail, as an older kernel or a container would.

usage: deny.py NAME[&MASK]=ERRNO... -- COMMAND [ARGUMENT]...    only where the first argument has a bit of MASK
"""
import ctypes
import errno
import os
import signal
import struct
import sys

# x86-64, aarch64
NUMBERS = {
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97), "setns": (308, 268),
    "clone": (56, 220), "clone3": (435, 435), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "mount_setattr": (442, 442),
    "openat2": (437, 437), "close_range": (436, 436), "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424),
    "seccomp": (317, 277), "prctl": (157, 167), "capset": (126, 91), "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445), "landlock_restrict_self": (446, 446), "sethostname": (170, 161),
    "setdomainname": (171, 162), "setgroups": (116, 159), "setresuid": (117, 147), "setresgid": (119, 149),
    "memfd_create": (319, 279), "socketpair": (53, 199), "signalfd4": (289, 74), "statx": (332, 291),
    "eventfd2": (290, 19), "getrandom": (318, 278), "preadv2": (327, 286), "prlimit64": (302, 261),
    "waitid": (247, 95), "ppoll": (271, 73), "mkdirat": (258, 34), "symlinkat": (266, 36), "fchdir": (81, 50),
    "execve": (59, 221), "pipe2": (293, 59), "umask": (95, 166), "setsid": (112, 157), "bind": (49, 200),
}
MACHINE = 1 if os.uname().machine == "aarch64" else 0
ARCH = (0xC000003E, 0xC00000B7)[MACHINE]
LOAD, EQUAL, BITS, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000


def program(rules):
    steps = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, ARCH), (RETURN, 0, 0, ALLOW), (LOAD, 0, 0, 0)]
    for number, mask, error in rules:
        if mask is None:
            steps += [(EQUAL, 0, 1, number), (RETURN, 0, 0, FAIL | error)]
        else:
            steps += [(EQUAL, 0, 4, number), (LOAD, 0, 0, 16), (BITS, 0, 1, mask),
                      (RETURN, 0, 0, FAIL | error), (LOAD, 0, 0, 0)]
    steps.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("HBBI", *s) for s in steps), len(steps)


def parse(word):
    what, _, error = word.rpartition("=")
    name, _, mask = what.partition("&")
    return NUMBERS[name][MACHINE], int(mask, 0) if mask else None, getattr(errno, error)


def main(words):
    at = words.index("--")
    code, count = program([parse(w) for w in words[:at]])
    text = ctypes.create_string_buffer(code, len(code))
    filters = struct.pack("HxxxxxxP", count, ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, filters, 0, 0):
        sys.exit(f"no filter: {os.strerror(ctypes.get_errno())}")
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python's own, and inherited
        signal.signal(number, signal.SIG_DFL)
    os.execvp(words[at + 1], words[at + 1:])


if __name__ == "__main__":
    main(sys.argv[1:])

# SPDX-License-Identifier: MIT
"""Dials a TCP port, a socket in a folder and an abstract socket, and says something to each."""
import socket
import sys

for family, address in ((socket.AF_INET, ("127.0.0.1", int(sys.argv[1]))),
                        (socket.AF_UNIX, sys.argv[2]), (socket.AF_UNIX, "\0" + sys.argv[3])):
    name = address if family == socket.AF_UNIX else "%s:%d" % address
    try:
        with socket.socket(family) as s:
            s.settimeout(3)
            s.connect(address)
            s.sendall(b"secrets\n")
        print(f"REACHED {name!r}")
    except OSError as e:
        print(f"{type(e).__name__} for {name!r}: {e}")

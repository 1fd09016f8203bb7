# SPDX-License-Identifier: MIT
"""Writes into each named file."""
import sys

for path in sys.argv[1:]:
    try:
        with open(path, "w") as f:
            f.write("overwritten by the guest\n")
        print(f"WROTE {path}")
    except OSError as e:
        print(f"{type(e).__name__}: {e}")

# SPDX-License-Identifier: MIT
"""Prints what it can read of the named files."""
import sys

for path in sys.argv[1:]:
    try:
        with open(path, errors="replace") as f:
            print(f"READ {path}: {f.readline().strip()[:24]}")
    except OSError as e:
        print(f"{type(e).__name__}: {e}")

# SPDX-License-Identifier: MIT
"""Forks until the kernel says no; stops by itself at the number given, in case no wall stands."""
import os
import sys
import time

most, born = int(sys.argv[1]), 0
try:
    while born < most:
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        born += 1
    print(f"BORN {born}", flush=True)
except OSError as e:
    print(f"after {born} children: {type(e).__name__}: {e}", flush=True)
time.sleep(20)

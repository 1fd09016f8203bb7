# SPDX-License-Identifier: MIT
"""Never ends, and neither does its child, which left the session and ignores TERM.  (A minute is
never, in case no wall stands.)"""
import os
import signal
import time

print("started", flush=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
end = time.monotonic() + 60
while time.monotonic() < end:
    pass
print("STILL HERE", flush=True)

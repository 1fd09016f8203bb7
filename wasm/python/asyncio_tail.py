

# ---- Behind the wasm walls: one thread, no socket pair.  Nobody else can wake the loop, so nothing has to. ----
def _guest_no_pipe(self):
    self._ssock = self._csock = None


BaseSelectorEventLoop._make_self_pipe = _guest_no_pipe  # noqa: F821
BaseSelectorEventLoop._close_self_pipe = _guest_no_pipe  # noqa: F821
BaseSelectorEventLoop._write_to_self = lambda self: None  # noqa: F821

"""What is going on, in a notebook: one line below the cell that asked, gone when the cell is done.

The line comes after some tenths of a second, so what is over at once does not flicker. A thread keeps it
true while a stage says nothing of itself, as while kernels are compiled.

It is HTML's own `progress`: tqdm's bars need ipywidgets in a notebook, stay below the cell, and say nothing
of a stage that has no number.
"""

from __future__ import annotations

import os
import threading
import time
from functools import cache
from typing import Any

from holdfast.app.report.html import text_html
from holdfast.app.report.paper import PATIENCE_S, SWITCH, counted, words

LOOK_S = 0.25


class CellProgress:
    """A hook for `holdfast.open`; `shell` is that of IPython, `display` shows something below the cell."""

    def __init__(self, shell: Any, display: Any) -> None:
        self._display = display
        self._lock = threading.Lock()
        self._stage, self._done, self._total = "preparing", 0, 0
        self._over: threading.Event | None = None  # of the cell that runs; none before its first stage
        self._thread: threading.Thread | None = None
        shell.events.register("post_run_cell", self.end)

    def __call__(self, stage: str, done: int, total: int) -> None:
        self._stage, self._done, self._total = stage, done, total
        with self._lock:
            if self._over is None:
                self._over = threading.Event()
                watching = (self._over,)
                self._thread = threading.Thread(
                    target=self._watch, args=watching, name="holdfast-cell", daemon=True
                )
                self._thread.start()

    def end(self, *_: Any) -> None:
        """The cell is done: its line goes."""
        with self._lock:
            over, thread = self._over, self._thread
            self._over = self._thread = None
        if over is not None and thread is not None:
            over.set()
            thread.join()

    def _watch(self, over: threading.Event) -> None:
        began, line = time.monotonic(), None
        pause_s = PATIENCE_S
        while not over.wait(pause_s):
            pause_s = LOOK_S
            shown = {"text/html": self._line(time.monotonic() - began), "text/plain": self._stage}
            if line is None:
                line = self._display(shown, raw=True, display_id=True)
            else:
                line.update(shown, raw=True)
        if line is not None:
            line.update({"text/html": "", "text/plain": ""}, raw=True)

    def _line(self, elapsed_s: float) -> str:
        stage, count = words(self._stage, counted(self._done, self._total))
        known = f' value="{self._done}" max="{self._total}"' if self._total and stage == self._stage else ""
        return (
            f'<span><progress style="width: 12em; vertical-align: middle"{known}></progress> '
            f"{text_html(stage)} {text_html(count)} <small>{elapsed_s:.0f} s</small></span>"
        )


def cell_progress() -> CellProgress | None:
    """A hook where this process is the kernel of a notebook and it is not switched off; else None."""
    if os.environ.get(SWITCH) == "0":
        return None
    from IPython import get_ipython
    from IPython.display import display

    shell = get_ipython()
    return None if shell is None else _of(shell, display)


@cache
def _of(shell: Any, display: Any) -> CellProgress:
    """One cell runs at a time, so one hook serves all workspaces."""
    return CellProgress(shell, display)

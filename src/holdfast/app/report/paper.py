"""Where a report is written to, and the progress that is shown until it is there."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

PATIENCE_S = 0.3
WORD_S = 2.0

Part = str | tuple[str, str]  # a text, or a text and its style


class Paper:
    """Where a report is written to: a terminal, or anything else."""

    def __init__(self, file: IO[str], *, width: int | None = None, terminal: bool | None = None) -> None:
        self.file = file
        self.console = Console(
            file=file, width=width, force_terminal=terminal, markup=False, highlight=False, emoji=False
        )
        self.is_terminal = self.console.is_terminal

    @property
    def width(self) -> int:
        return self.console.width if self.is_terminal else 1 << 30

    def line(self, *parts: Part, indent: int = 0) -> None:
        """One line; on a terminal it is wrapped, and its continuation is indented too."""
        if not self.is_terminal:
            whole = "".join(p if isinstance(p, str) else p[0] for p in parts)
            self.file.write((" " * indent + whole).rstrip() + "\n")
            return
        text = _text(*parts)
        indent = min(indent, self.width // 3)
        self.console.print(Padding(text, (0, 0, 0, indent), expand=False) if text else "")

    def item(self, mark: Part, *parts: Part, indent: int = 0) -> None:
        """One line that starts with a mark; on a terminal its continuation stands behind the mark."""
        if not self.is_terminal:
            self.line(mark, "  ", *parts, indent=indent)
            return
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        table.add_row(_text(mark), _text(*parts))
        self.console.print(Padding(table, (0, 0, 0, min(indent, self.width // 3)), expand=False))

    def grid(self, rows: Sequence[Sequence[Part]], indent: int = 0) -> None:
        """Rows of cells in aligned columns; nothing is cut or wrapped on purpose."""
        texts = [[p if isinstance(p, str) else p[0] for p in row] for row in rows]
        widths = [max(map(cell_len, column)) for column in zip(*texts, strict=True)]
        for row, plain in zip(rows, texts, strict=True):
            parts: list[Part] = []
            for i, (part, text) in enumerate(zip(row, plain, strict=True)):
                last = i == len(row) - 1
                parts += [part, "" if last else " " * (widths[i] - cell_len(text) + 2)]
            self.line(*parts, indent=indent)


def _text(*parts: Part) -> Text:
    text = Text()
    for part in parts:
        text.append(part) if isinstance(part, str) else text.append(*part)
    return text


def width_of(column: Sequence[Part]) -> int:
    """The width of the widest cell of a column."""
    return max(cell_len(p if isinstance(p, str) else p[0]) for p in column)


def _words_on(paper: Paper) -> Callable[[str, int, int], None]:
    """A hook that writes a line for work whose end is not known, after two seconds and every two seconds."""
    since: dict[str, float] = {}
    told = 0.0

    def say(now: str, done: int, total: int) -> None:
        nonlocal told
        at = time.monotonic()
        began = since.setdefault(now, at)
        if not total and at - max(began, told) >= WORD_S:
            told = at
            paper.line(f"{now}: {done:,} so far, after {at - began:.0f} s")
            paper.file.flush()

    return say


@contextlib.contextmanager
def progress_on(paper: Paper) -> Iterator[Callable[[str, int, int], None] | None]:
    """A hook for `holdfast.open` that shows what is being done.

    Off a terminal only work whose end nobody knows says a word, and every two seconds at most.
    """
    if not paper.is_terminal:
        yield _words_on(paper)
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    display = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[count]}", markup=False),
        TimeElapsedColumn(),
        console=paper.console,
        transient=True,
    )
    stage = "preparing"
    task = display.add_task(stage, total=None, count="")

    def show(now: str, done: int, total: int) -> None:
        nonlocal stage
        if now != stage:
            stage = now
            text = f"{now} (a few seconds) ..." if now == "starting Spark" else now
            display.reset(task, description=text, total=None)
        count = f"{done}/{total}" if total else f"{done:,} so far" if done else ""
        display.update(task, completed=done, total=total or None, count=count)

    # What is over at once needs no display: it would only flicker.
    begin = threading.Timer(PATIENCE_S, display.start)
    begin.daemon = True
    begin.start()
    try:
        yield show
    finally:
        begin.cancel()
        begin.join()
        display.stop()

"""Where a report is written to, and the progress that is shown until it is there.

Rich is imported for terminals only: nobody else sees what it does.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import IO, TYPE_CHECKING, TypeVar

from rich.cells import cell_len

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

SWITCH = "HOLDFAST_PROGRESS"
PATIENCE_S = 0.3  # on a terminal
# Off a terminal: a line after so many seconds of silence; of the same after 5, 10, 20 ..., up to a minute.
WORD_AFTER_S, LESS_OFTEN_S, SELDOM_S = 2.0, 5.0, 60.0
LOOK_S = 0.25

Part = str | tuple[str, str]  # a text, or a text and its style
Item = TypeVar("Item")
# How to see what a terminal does not show.
ALL = "; all with --all, --json or in a pipe"
MOST_TELLING = f"; the most telling with --top 20, {ALL[2:]}"


class Paper:
    """Where a report is written to: a terminal, or anything else."""

    def __init__(
        self,
        file: IO[str],
        *,
        width: int | None = None,
        terminal: bool | None = None,
        recorded: bool = False,
    ) -> None:
        self.file = file
        self._width, self._terminal, self._recorded = width, terminal, recorded
        self.is_terminal = _may_be_terminal(file) if terminal is None else terminal
        if self.is_terminal:
            self.is_terminal = self.console.is_terminal

    @cached_property
    def console(self) -> Console:
        from rich.console import Console

        return Console(
            file=self.file,
            width=self._width,
            force_terminal=self._terminal,
            markup=False,
            highlight=False,
            emoji=False,
            record=self._recorded,
        )

    @property
    def width(self) -> int:
        return self.console.width if self.is_terminal else 1 << 30

    def line(self, *parts: Part, indent: int = 0) -> None:
        """One line; on a terminal it is wrapped, and its continuation is indented too."""
        if not self.is_terminal:
            whole = "".join(map(_plain, parts))
            self.file.write((" " * indent + whole).rstrip() + "\n")
            return
        text = _text(*parts)
        if text:
            self.render(text, min(indent, self.width // 3))
        else:
            self.console.print("")

    def render(self, what: RenderableType, indent: int = 2) -> None:
        """What Rich lays out, on a terminal."""
        from rich.padding import Padding

        self.console.print(Padding(what, (0, 0, 0, indent), expand=False))

    def heading(self, subject: str, text: str, version: int | None, source: str = "") -> None:
        """The line above a list: `orders: 3 rows, 2 keys (version 4)`; `source`: from what it is known."""
        start = f"{source}, " if source else ""
        of = "" if version is None else f"({start}version {version})"
        self.line((subject, "bold"), f"{text} ", (of, "dim"))

    def more(self, n: int, where: str = "", *, indent: int = 2, style: str = "yellow") -> None:
        """What is said below a list of which n are not shown; nothing if all are."""
        if n > 0:
            self.line((f"... and {n:,} more{where}", style), indent=indent)

    def muted(self, n: int, where: str = "; all with --json", *, indent: int = 2) -> None:
        """What is said of n that are muted, below a list of the others."""
        if n > 0:
            self.line((f"... and {n:,} muted{where}", "dim"), indent=indent)

    def first(self, items: Sequence[Item], n: int, everything: bool = False) -> Sequence[Item]:
        """What of a list is shown: the first n on a terminal; all in a pipe, or if that is asked for."""
        return items if everything or not self.is_terminal else items[:n]

    def item(self, mark: Part, *parts: Part, indent: int = 0) -> None:
        """One line that starts with a mark; on a terminal its continuation stands behind the mark."""
        if not self.is_terminal:
            self.line(mark, "  ", *parts, indent=indent)
            return
        from rich.table import Table

        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        table.add_row(_text(mark), _text(*parts))
        self.render(table, min(indent, self.width // 3))

    def grid(self, rows: Sequence[Sequence[Part]], indent: int = 0) -> None:
        """Rows of cells in aligned columns; nothing is cut or wrapped on purpose."""
        texts = [[_plain(part) for part in row] for row in rows]
        widths = [max(map(cell_len, column)) for column in zip(*texts, strict=True)]
        for row, plain in zip(rows, texts, strict=True):
            parts: list[Part] = []
            for i, (part, text) in enumerate(zip(row, plain, strict=True)):
                last = i == len(row) - 1
                parts += [part, "" if last else " " * (widths[i] - cell_len(text) + 2)]
            self.line(*parts, indent=indent)


def _may_be_terminal(file: IO[str]) -> bool:
    """Whether Rich has to be asked: it takes a file for one only if it is, or if the environment says so."""
    try:
        return file.isatty() or any(name in os.environ for name in ("FORCE_COLOR", "TTY_COMPATIBLE"))
    except ValueError:  # it is closed
        return False


def _plain(part: Part) -> str:
    return part if isinstance(part, str) else part[0]


def _text(*parts: Part) -> Text:
    from rich.text import Text

    text = Text()
    for part in parts:
        text.append(part) if isinstance(part, str) else text.append(*part)
    return text


def width_of(column: Sequence[Part]) -> int:
    """The width of the widest cell of a column."""
    return max(cell_len(_plain(part)) for part in column)


@contextlib.contextmanager
def progress_on(paper: Paper) -> Iterator[Callable[[str, int, int], None] | None]:
    """A hook for `holdfast.open` that shows what is being done: a moving line, or lines off a terminal.

    None, and silence, with HOLDFAST_PROGRESS=0: where standard error is for errors alone, as cron has it.
    """
    if os.environ.get(SWITCH) == "0":
        yield None
        return
    with _moving_line(paper) if paper.is_terminal else _Words(paper) as hook:
        yield hook


def words(stage: str, count: str) -> tuple[str, str]:
    """What is going on, and how far it is. Kernels are compiled inside of all stages."""
    from holdfast.core.engine.kernels import activity
    from holdfast.core.engine.kernels.cache_folders import places

    n_compiled = activity.compiling()
    if n_compiled is None:
        return stage, count
    what = "compiling kernels, once" if places().writable else "compiling kernels"
    total = activity.expected()
    if total is not None:
        return f"{what}:", f"{n_compiled} of {total}"
    return what, f"({n_compiled} so far)" if n_compiled else ""


def counted(done: int, total: int) -> str:
    """How far work is; of work whose end nobody knows there is no total."""
    return f"{done}/{total}" if total else f"({done:,} so far)" if done else ""


class _Words:
    """Progress off a terminal: a line when there was none for WORD_AFTER_S, and then less and less often.

    A run that is over sooner prints nothing; one of an hour prints some lines for each stage.
    """

    def __init__(self, paper: Paper) -> None:
        self._file = paper.file
        self._stage, self._count = "preparing", ""
        self._began = self._written_at = time.monotonic()
        self._written_stage = ""
        self._pause_s = WORD_AFTER_S
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="holdfast-words", daemon=True)

    def __enter__(self) -> Callable[[str, int, int], None]:
        self._thread.start()
        return self._show

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _show(self, stage: str, done: int, total: int) -> None:
        self._stage, self._count = stage, counted(done, total)

    def _watch(self) -> None:
        while not self._over.wait(min(LOOK_S, WORD_AFTER_S)):
            now = time.monotonic()
            stage, count = words(self._stage, self._count)
            if stage != self._written_stage:
                self._pause_s = WORD_AFTER_S
            if now - self._written_at < self._pause_s:
                continue
            try:
                self._file.write(f"{stage} {count}".rstrip() + f", {now - self._began:.0f} s\n")
                self._file.flush()
            except (OSError, ValueError):  # nobody reads, or it is closed: the run goes on
                return
            self._pause_s = min(max(2 * self._pause_s, LESS_OFTEN_S), SELDOM_S)
            self._written_stage, self._written_at = stage, now


@contextlib.contextmanager
def _moving_line(paper: Paper) -> Iterator[Callable[[str, int, int], None]]:
    from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TimeElapsedColumn
    from rich.text import Text

    class Words(ProgressColumn):
        def __init__(self, part: int) -> None:
            self._part = part
            super().__init__()

        def render(self, task: Task) -> Text:
            return Text(words(task.description, task.fields["count"])[self._part])

    display = Progress(
        SpinnerColumn(),
        Words(0),
        BarColumn(bar_width=20),
        Words(1),
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
        display.update(task, completed=done, total=total or None, count=counted(done, total))

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

"""How answers look in a notebook: as the reports of the command line do, with tables and diagrams.

Reports stand above all classes, so they are called by name; nothing of them is imported until a notebook
shows an answer, or the progress of one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module

REPORTS, PROGRESS = "holdfast.app.notebook", "holdfast.app.cell_progress"


class Displayed:
    """An answer that notebooks show as a report."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(import_module(REPORTS).html_of(self))


class SelfExplaining(Displayed):
    """An answer that says itself as its report does, also where there is no notebook."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(import_module(REPORTS).text_of(self))


class TableMap(Displayed):
    """The tables of a workspace and how they refer to each other, drawn as the page does; of the version that
    is the newest when somebody looks."""

    __slots__ = ("workspace",)

    def __init__(self, workspace: object) -> None:
        self.workspace = workspace

    def to_svg(self) -> str:
        """The picture alone, for a file."""
        return str(import_module(REPORTS).map_of(self.workspace))

    def __repr__(self) -> str:
        return "the map of a workspace: a notebook shows it, and to_svg() writes it"


def notebook_progress() -> Callable[[str, int, int], None] | None:
    """What shows the progress of work below a cell, where this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if not hasattr(shell, "kernel"):
        return None
    hook: Callable[[str, int, int], None] | None = import_module(PROGRESS).cell_progress()
    return hook

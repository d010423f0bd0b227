"""How answers look in a notebook: as the reports of the command line do, with tables and diagrams.

Reports stand above all classes, so they are called by name; nothing of them is imported until a notebook
shows an answer.
"""

from __future__ import annotations

from importlib import import_module

REPORTS = "holdfast.app.notebook"


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

"""What `show` is asked for, and whether it makes sense."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import typer

from holdfast.app.completing import complete_kind
from holdfast.app.options import At, check_share
from holdfast.app.which_table import OneTable
from holdfast.errors import UsageError
from holdfast.kind import check_kind

ORDERS = ("score", "redundancy")
# The kind that an option is about.
ABOUT = {"with_empty": "ind", "non_uniques": "ucc"}


@dataclass(frozen=True, slots=True)
class Showing:
    """What is to be shown."""

    kind: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            autocompletion=complete_kind,
            help="Only this kind: ucc (keys), fd (functional dependencies), ind (inclusions), dc (denial "
            "constraints), row (rules about each row) or profile (rules about each column).",
        ),
    ] = None
    table: OneTable = None
    at: At = None
    top: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="The N functional dependencies of each table that tell most, ranked, with reasons; with "
            "--kind dc the N rules, about two rows or each row, without what follows from others or looks "
            "like an accident.",
        ),
    ] = None
    by: Annotated[
        str | None,
        typer.Option(
            metavar="ORDER",
            help="With --top: by score or redundancy, of the functional dependencies of every table, tracked "
            "for them or not: the rows are searched for the N best, without listing all.",
        ),
    ] = None
    max_error: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Also what almost holds: functional dependencies, keys and denial constraints that at most "
            "this share of the pairs of rows violates; row rules, of the rows; inclusions that miss at most "
            "this share of their values.",
        ),
    ] = 0.0
    with_empty: Annotated[
        bool, typer.Option("--with-empty", help="Inclusions of columns without values, too.")
    ] = False
    non_uniques: Annotated[
        bool, typer.Option("--non-uniques", help="The maximal combinations that are not unique, too.")
    ] = False
    concise: Annotated[
        bool, typer.Option("--concise", help="Without denial constraints that follow from the others.")
    ] = False
    set_minimal: Annotated[
        bool,
        typer.Option(
            "--set-minimal",
            help="All denial constraints of which no predicate can be dropped, even if one can be loosened.",
        ),
    ] = False
    everything: Annotated[
        bool, typer.Option("--all", help="Do not shorten long lists; also what looks like chance.")
    ] = False

    @property
    def form(self) -> str:
        """How denial constraints are to be listed: "minimal", "concise" or "set-minimal"."""
        return "concise" if self.concise else "set-minimal" if self.set_minimal else "minimal"

    def checked(self) -> Showing:
        """The same, if it makes sense; what is ranked are functional dependencies unless a kind is named."""
        if self.by is not None:
            self._check_by()
        if self.top is not None:
            self._check_top()
        self._check_form()
        check_kind(self.kind)
        check_share("--max-error", self.max_error, "a share from 0 to 1, such as 0.02")
        for name, about in ABOUT.items():
            if getattr(self, name) and self.kind not in (None, about):
                option = f"--{name.replace('_', '-')}"
                raise UsageError(
                    f"{option} says nothing about dependencies of kind {self.kind}: leave out --kind."
                )
        return self if self.top is None else replace(self, kind=self.kind or "fd")

    def _check_by(self) -> None:
        if self.by not in ORDERS:
            raise UsageError(f"--by {self.by} is not known. Orders: {', '.join(ORDERS)}.")
        if self.top is None:
            raise UsageError("--by orders what --top lists: give --top 20.")
        if self.kind == "dc":
            raise UsageError("--by orders functional dependencies: leave out --kind dc.")
        if self.max_error:
            raise UsageError("--by looks for dependencies that hold exactly: leave out --max-error.")

    def _check_top(self) -> None:
        if self.kind not in (None, "fd", "dc"):
            raise UsageError(
                f"--top ranks functional dependencies, or denial constraints: leave out --kind {self.kind}, "
                "or give --kind fd or --kind dc."
            )
        if self.at is not None:
            raise UsageError("--top ranks what holds now: leave out --at.")
        if self.kind == "dc" and self.max_error:
            raise UsageError("--top ranks denial constraints that hold exactly: leave out --max-error.")

    def _check_form(self) -> None:
        if self.form == "minimal":
            return
        if self.concise and self.set_minimal:
            raise UsageError(
                "--concise lists fewer denial constraints, --set-minimal more: give one of them."
            )
        kind = self.kind or ("fd" if self.top is not None else None)
        if kind != "dc":
            instead = f" in place of --kind {kind}" if kind else ""
            raise UsageError(f"--{self.form} is about denial constraints: give --kind dc{instead}.")
        # A ranking is concise, asked or not.
        for option, value in (("--top", None if self.concise else self.top), ("--max-error", self.max_error)):
            if value:
                raise UsageError(f"--{self.form} and {option} do not go together: give one of them.")

"""What holds, or held: `show`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

import holdfast
from holdfast.app.calls import evidence_text, note, open_workspace, opened, print_json, reported
from holdfast.app.options import All, Json, OneTable
from holdfast.app.report import Paper, name_text, print_cover, print_fds, print_inds, print_ranking
from holdfast.errors import UsageError, shorten
from holdfast.model.dependency import KINDS, Dependency, Fd, Ind
from holdfast.storage.tables import FdRef

if TYPE_CHECKING:
    from holdfast.discovery.fd_ranking import Ranking
    from holdfast.model.change import Pin

NOT_KEPT = {
    "fd": "no functional dependencies are kept (version {}). Track tables with --kinds ucc,fd.",
    "ind": "no inclusions are kept (version {}). Track tables with --kinds ucc,ind.",
}


def show(
    ctx: typer.Context,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="Only this kind: ucc (keys), fd (functional dependencies) or ind (inclusions).",
        ),
    ] = None,
    table: OneTable = None,
    at: Annotated[int | None, typer.Option("--at", metavar="VERSION", help="As of this version.")] = None,
    top: Annotated[
        int | None,
        typer.Option(
            "--top",
            min=1,
            metavar="N",
            help="The N functional dependencies of each table that tell most, ranked, with reasons.",
        ),
    ] = None,
    max_error: Annotated[
        float,
        typer.Option(
            "--max-error",
            metavar="SHARE",
            help="Also what almost holds: functional dependencies and keys that at most this share of the "
            "pairs of rows violates; inclusions that miss at most this share of their values.",
        ),
    ] = 0.0,
    with_empty: Annotated[
        bool, typer.Option("--with-empty", help="Inclusions of columns without values, too.")
    ] = False,
    non_uniques: Annotated[
        bool, typer.Option("--non-uniques", help="The maximal combinations that are not unique, too.")
    ] = False,
    everything: All = False,
    as_json: Json = False,
) -> None:
    """Show what holds: keys, functional dependencies, inclusions."""
    with reported(ctx):
        if top is not None:
            _check_top(kind, at)
            kind = "fd"
        _check_kind(kind, max_error, with_empty, non_uniques)
        if top is None:
            view = _View(open_workspace(ctx), kind, table, at, max_error, with_empty, non_uniques)
        else:
            with opened(ctx) as ws:
                view = _View(ws, kind, table, at, max_error, with_empty, non_uniques)
                view.rank(top)
        if as_json:
            print_json(view.to_dict())
        else:
            view.print(Paper(sys.stdout), everything)


def _check_top(kind: str | None, at: int | None) -> None:
    if kind not in (None, "fd"):
        raise UsageError(f"--top ranks functional dependencies: leave out --kind {kind}, or give --kind fd.")
    if at is not None:
        raise UsageError("--top ranks what holds now: leave out --at.")


def _check_kind(kind: str | None, max_error: float, with_empty: bool, non_uniques: bool) -> None:
    """An option is for the kind that it is about."""
    if kind is not None and kind not in KINDS:
        raise UsageError(f"dependencies of kind {shorten(kind)} are not known. Kinds: {', '.join(KINDS)}.")
    if not 0 <= max_error <= 1:
        raise UsageError(f"--max-error is {max_error:g}; expected a share from 0 to 1, such as 0.02.")
    about: dict[str | None, dict[str, bool]] = {
        "ucc": {"--with-empty": with_empty},
        "fd": {"--with-empty": with_empty, "--non-uniques": non_uniques},
        "ind": {"--non-uniques": non_uniques},
    }
    for name, given in about.get(kind, {}).items():
        if given:
            raise UsageError(f"{name} says nothing about dependencies of kind {kind}: leave out --kind.")


@dataclass
class _View:
    """What is to be shown, all of one version, whoever writes meanwhile."""

    ws: holdfast.Workspace
    kind: str | None
    table: str | None
    at: int | None
    max_error: float
    with_empty: bool
    non_uniques: bool
    version: int = field(init=False)
    rankings: dict[str, Ranking] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        ws = self.ws
        self.version = ws.version if self.at is None else self.at
        if self.at is None and self.version:
            self.at = self.version
        at = self.at
        self.names = ws.tables(at) if self.table is None else [self.table]
        self.kinds = {name: ws.kinds(name, at) for name in self.names}
        self.n_rows = {name: ws.n_rows(name, at) for name in self.names}
        self.bounds = {name: ws.max_columns(name, at) for name in self.names}
        self.refs: dict[str, FdRef] = {}
        for name in self.names:
            if (ref := ws.fd_ref(name, at)) is not None:
                self.refs[name] = ref
        self.keys = {name: self._near("ucc", name) for name in self.names if self._shows_keys(name)}
        self.fds: dict[str, list[Fd]] = {}
        if self.wants("fd"):
            self.fds = {n: [d for d in self._near("fd", n) if isinstance(d, Fd)] for n in self.refs}
        self.inds = self._inds() if self.wants("ind") else []
        self.pins = [
            p for p in ws.pins(self.table, at) if self.wants("ucc" if p.referenced is None else "ind")
        ]
        self.maximal = self._non_uniques() if self.non_uniques else {}

    def rank(self, top: int) -> None:
        self.rankings = {name: self.ws.rank_fds(name, top, max_error=self.max_error) for name in self.fds}

    def wants(self, kind: str) -> bool:
        return self.kind in (None, kind)

    def _shows_keys(self, name: str) -> bool:
        """Keys that almost hold are known wherever agree sets are counted, tracked or not."""
        counted = name in self.refs and self.refs[name].evidence_kind == "counted"
        return self.wants("ucc") and ("ucc" in self.kinds[name] or (self.max_error > 0 and counted))

    def _near(self, kind: str, name: str) -> list[Dependency]:
        """What holds within the error; exactly where that is all that is known, which is noted."""
        ws, at = self.ws, self.at
        if not self.max_error:
            return ws.dependencies(kind, name, at)
        if self.kind == "ucc" and not any(r.evidence_kind == "counted" for r in self.refs.values()):
            raise UsageError(
                "--max-error of keys needs counted evidence, which no table keeps. Track with --kinds ucc,fd "
                "--evidence counted to list keys with errors."
            )
        try:
            return ws.dependencies(kind, name, at, max_error=self.max_error)
        except UsageError as error:
            if self.kind is not None:
                raise
            if kind == "fd":
                note(f"note: exact ones are shown: {error}")
            return ws.dependencies(kind, name, at)

    def _inds(self) -> list[Ind]:
        found = self.ws.dependencies(
            "ind", self.table, self.at, max_error=self.max_error, with_empty=self.with_empty
        )
        return [d for d in found if isinstance(d, Ind)]

    def _non_uniques(self) -> dict[str, list[tuple[str, ...]]]:
        """The maximal non-uniques; where a bound hides them, a note or (for the only table) an error."""
        found = {}
        keyed = [name for name in self.names if "ucc" in self.kinds[name]]
        for name in keyed if self.table is None else [self.table]:
            if self.bounds[name] and self.table is None:
                note(
                    f"note: {name_text(name)} is tracked with --max-columns {self.bounds[name]}, "
                    "which leaves its maximal non-uniques open."
                )
                continue
            found[name] = self.ws.non_uniques(name, self.at)
        return found

    # --- For programs ---

    def to_dict(self) -> dict[str, Any]:
        dependencies = [d.to_dict() for keys in self.keys.values() for d in keys]
        if self.rankings is None:
            dependencies += [d.to_dict() for fds in self.fds.values() for d in fds]
        else:
            dependencies += [r.to_dict() for ranking in self.rankings.values() for r in ranking.fds]
        dependencies += [d.to_dict() for d in self.inds]
        document: dict[str, Any] = {
            "version": self.version,
            "dependencies": dependencies,
            "tables": [self._table_dict(name) for name in self.names],
            "pins": [p.to_dict() for p in self.pins],
        }
        if self.non_uniques:
            document["non_uniques"] = [
                {"table": name, "columns": list(c)} for name, sets in self.maximal.items() for c in sets
            ]
        return document

    def _table_dict(self, name: str) -> dict[str, Any]:
        told: dict[str, Any] = {
            "table": name,
            "n_rows": self.n_rows[name],
            "max_columns": self.bounds[name],
            "kinds": list(self.kinds[name]),
        }
        if name in self.refs:
            ref = self.refs[name]
            told["fds"] = {
                "evidence": ref.evidence_kind,
                "max_lhs": ref.max_lhs or None,
                "max_error": ref.max_error or None,
            }
        if self.rankings is not None and name in self.rankings:
            told["ranking"] = {k: v for k, v in self.rankings[name].to_dict().items() if k != "fds"}
        return told

    # --- For people ---

    def print(self, paper: Paper, everything: bool) -> None:
        blocks = 0

        def block() -> None:
            nonlocal blocks
            if blocks:
                paper.line()
            blocks += 1

        for name in self.names:
            if name in self.keys or self.kind == "ucc":
                block()
                self._print_keys(paper, name, everything)
            if name in self.fds:
                block()
                self._print_fds(paper, name, everything)
        if self.wants("ind") and any("ind" in self.kinds[name] for name in self.names):
            block()
            print_inds(
                paper,
                self.inds,
                version=self.version,
                table=self.table,
                max_error=self.max_error,
                pins=[p for p in self.pins if p.referenced is not None],
                everything=everything,
            )
        elif not blocks and self.names and self.kind in NOT_KEPT:
            paper.line(NOT_KEPT[self.kind].format(self.version))
        if not self.names:
            paper.line(f"no table is tracked (version {self.version}). Start with 'holdfast track'.")

    def _print_keys(self, paper: Paper, name: str, everything: bool) -> None:
        pins: list[Pin] = [p for p in self.pins if p.table == name and p.referenced is None]
        ref = self.refs.get(name)
        near = self.max_error if ref is not None and ref.evidence_kind == "counted" else 0.0
        bounds = [b for b in (self.bounds[name], ref.max_lhs if ref and near else 0) if b]
        print_cover(
            paper,
            name,
            self.keys.get(name),
            version=self.version,
            n_rows=self.n_rows[name],
            max_columns=min(bounds, default=None),
            max_error=near,
            pins=pins,
            non_uniques=self.maximal.get(name),
            everything=everything,
        )

    def _print_fds(self, paper: Paper, name: str, everything: bool) -> None:
        if self.rankings is not None:
            print_ranking(paper, name, self.rankings[name], version=self.version)
            return
        ref = self.refs[name]
        print_fds(
            paper,
            name,
            self.fds[name],
            version=self.version,
            n_rows=self.n_rows[name],
            evidence=evidence_text(ref),
            max_lhs=ref.max_lhs or None,
            max_error=self.max_error if ref.evidence_kind == "counted" else 0.0,
            everything=everything,
        )

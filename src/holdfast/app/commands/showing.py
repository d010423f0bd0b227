"""What holds, or held: `show`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import typer

import holdfast
from holdfast.app.calls import dc_bounds, evidence_text, note, open_workspace, opened, print_json
from holdfast.app.commands.show_options import Showing
from holdfast.app.options import Json
from holdfast.app.report.chance import CHANCE_SHOWN
from holdfast.app.report.covers import print_cover, print_inds, print_listed
from holdfast.app.report.dcs import dc_dict, print_dcs, print_row_rules
from holdfast.app.report.fds import print_fds
from holdfast.app.report.paper import Paper
from holdfast.app.report.rankings import Ranking, print_ranking, without_muted
from holdfast.app.report.texts import name_text, not_kept_text
from holdfast.app.which_table import ThisTable, one_table
from holdfast.core.words.change import Pin
from holdfast.core.words.dependency import Dependency, Fd, Ind
from holdfast.core.words.predicate import Dc
from holdfast.core.words.ranks import Rank, best_first
from holdfast.core.words.row_rule import RowRule, are_times
from holdfast.denial.dc_explanation import DcList
from holdfast.errors import UsageError, plural
from holdfast.kind import entries

if TYPE_CHECKING:
    from holdfast.app.commands.lakes import LakeView

Anything = TypeVar("Anything", bound=Dependency)
# Set-minimal constraints may be millions; without --all no more are worked out.
MOST_SET_MINIMAL = 10_000


def show(ctx: typer.Context, only: ThisTable = None, *, showing: Showing, as_json: Json = False) -> None:
    """Show what holds: keys, dependencies, inclusions, rules."""
    showing, lake = replace(showing, table=one_table(only, showing.table)).checked(), None
    if showing.top is None:
        ws = open_workspace(ctx)
        lake = _lake_of(ws, showing)
        if lake is not None and lake.alone:
            lake.show(as_json=as_json, everything=showing.everything)
            return
        view = _View(ws, showing)
    else:
        with opened(ctx) as ws:
            view = _View(ws, showing)
            view.rank(showing.top)
    if as_json:
        print_json({**view.to_dict(), **({} if lake is None else {"lake": lake.lake.summary().to_dict()})})
    else:
        view.print(Paper(sys.stdout))
        if lake is not None:
            from holdfast.app.report.lake import print_lake_summary

            print_lake_summary(Paper(sys.stdout), lake.lake.summary())


def _lake_of(ws: holdfast.Workspace, showing: Showing) -> LakeView | None:
    """The lake of a workspace, if it has one: most have not, and need nothing of what tells of it."""
    from holdfast.core.store.ledger_rows import LAKE  # with Arrow

    if LAKE not in ws.ledger.heads(showing.at):
        return None
    from holdfast.app.commands.lakes import LakeView

    return LakeView.of(ws, showing.kind, showing.table, showing.at)


class _View:
    """What is to be shown, all of one version, whoever writes meanwhile."""

    def __init__(self, ws: holdfast.Workspace, showing: Showing) -> None:
        self.ws, self.showing = ws, showing
        self.kind, self.table, self.max_error = showing.kind, showing.table, showing.max_error
        self.rankings: dict[str, Ranking] = {}
        self.n_muted: dict[str, int] = {}  # of those in front of the last one that is ranked
        self.version = ws.version if showing.at is None else showing.at
        self.at = at = showing.at if showing.at is not None else self.version or None
        self.order, self.ranks = ws.readers.order(at), dict[Dependency, Rank]()
        self.names = ws.tables(at) if self.table is None else [self.table]
        self.kinds = {name: ws.kinds(name, at) for name in self.names}
        self.n_rows = {name: ws.n_rows(name, at) for name in self.names}
        self.bounds = {name: ws.keys.max_columns(name, at) for name in self.names}
        self.refs = {n: ref for n in self._with("fd") if (ref := ws.fds.ref(n, at)) is not None}
        self.keys = {name: self._near("ucc", name) for name in self.names if self._shows_keys(name)}
        with_fds = self.refs if self.wants("fd") and not showing.by else {}
        self.fds = {n: [d for d in self._near("fd", n) if isinstance(d, Fd)] for n in with_fds}
        self.inds = self._inds() if self.wants("ind") else []
        self.ind_notes = ws.inds.notes(self.table, at) if self.wants("ind") and self._with("ind") else ()
        with_dcs = self._with("dc") if self.wants("dc") else []
        self.dc_refs = {n: dcs for n in with_dcs if (dcs := ws.dcs.ref(n, at)) is not None}
        ruled = self._with("row") if self.wants("row") else []
        self.row_rules = {n: [d for d in self._near("row", n) if isinstance(d, RowRule)] for n in ruled}
        self.schemas = {name: ws.schema(name, at) for name in self.row_rules}
        self.elsewhere = {
            (kind, name): self._sorted(ws.dependencies(kind, name, at, max_error=self.max_error))
            for kind, entry in entries().items()
            if entry.reader is not None and self.wants(kind)
            for name in self._with(kind)
        }
        self.pins = sorted((p for p in ws.pins(self.table, at) if self.wants(p.kind)), key=Pin.place)
        self.maximal = self._non_uniques() if showing.non_uniques else {}

    @cached_property
    def dcs(self) -> dict[str, DcList]:
        return {name: self._dcs(name) for name in self.dc_refs}

    def _dcs(self, name: str) -> DcList:
        form = self.showing.form
        if form == "minimal":
            return DcList([d for d in self._near("dc", name) if isinstance(d, Dc)], complete=True)
        few = None if self.showing.everything or form == "concise" else MOST_SET_MINIMAL
        listed = self.ws.dcs.in_form(
            name, self.at, concise=form == "concise", set_minimal=form == "set-minimal", limit=few
        )
        return replace(listed, dcs=self._sorted(listed.dcs))

    def rank(self, top: int) -> None:
        """The first of each table, without those that are muted."""
        by = self.showing.by
        for name in self.dc_refs if self.kind == "dc" else self.names if by else self.fds:
            n = top + len(self.ws.muted(name, self.at))
            if self.kind == "dc":
                ranked: Ranking = self.ws.dcs.rank(name, n)
            elif by is not None:
                ranked = self.ws.fds.best(name, n, by="redundancy" if by == "redundancy" else "score")
            else:
                ranked = self.ws.fds.rank(name, n, max_error=self.max_error)
            self.rankings[name], self.n_muted[name] = without_muted(ranked, self.order.muted(name), top)

    def _with(self, kind: str) -> list[str]:
        """The tables that are tracked for a kind."""
        return [name for name in self.names if kind in self.kinds[name]]

    def wants(self, kind: str) -> bool:
        return self.kind in (None, kind)

    def _shows_keys(self, name: str) -> bool:
        """Keys that almost hold are known wherever agree sets are counted, tracked or not."""
        counted = name in self.refs and self.refs[name].evidence_kind == "counted"
        return self.wants("ucc") and ("ucc" in self.kinds[name] or (self.max_error > 0 and counted))

    def _sorted(self, dependencies: Sequence[Anything]) -> list[Anything]:
        """Dependencies as they are told; what they mean is kept for programs."""
        ranks = self.order.ranks(dependencies)
        self.ranks.update(zip(dependencies, ranks, strict=True))
        return [dependencies[i] for i in best_first(ranks)]

    def _loud(self, dependencies: Sequence[Anything]) -> tuple[list[Anything], int]:
        """(what is not muted, how much is): of a list as it is told, in which that comes last."""
        loud = [d for d in dependencies if self.ranks[d].role != "muted"]
        return loud, len(dependencies) - len(loud)

    def _meant(self, dependencies: Sequence[Anything]) -> tuple[list[Anything], int, int]:
        """(what is listed, how much looks like chance, how much is muted): of a list as it is told, in which
        these come last. Some of what looks like chance is listed if there is nothing else, and all of it to
        those who ask for what almost holds."""
        loud, n_muted = self._loud(dependencies)
        if self.showing.everything or self.max_error:
            return loud, 0, n_muted
        meant = [d for d in loud if self.ranks[d].role != "chance"] or loud[:CHANCE_SHOWN]
        return meant, len(loud) - len(meant), n_muted

    def _near(self, kind: str, name: str) -> list[Dependency]:
        """What holds within the error, as it is told."""
        return self._sorted(self._held(kind, name))

    def _held(self, kind: str, name: str) -> list[Dependency]:
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
            if kind in ("fd", "dc"):
                note(f"note: exact ones are shown: {error}")
            return ws.dependencies(kind, name, at)

    def _inds(self) -> list[Ind]:
        inds = self.ws.dependencies(
            "ind", self.table, self.at, max_error=self.max_error, with_empty=self.showing.with_empty
        )
        return self._sorted([d for d in inds if isinstance(d, Ind)])

    def _non_uniques(self) -> dict[str, list[tuple[str, ...]]]:
        """The maximal non-uniques; where a bound hides them, a note or (for the only table) an error."""
        maximal = {}
        for name in self._with("ucc") if self.table is None else [self.table]:
            if self.bounds[name] and self.table is None:
                note(
                    f"note: {name_text(name)} is tracked with --max-columns {self.bounds[name]}, "
                    "which leaves its maximal non-uniques open."
                )
                continue
            maximal[name] = self.ws.keys.non_uniques(name, self.at)
        return maximal

    # --- For programs ---

    def to_dict(self) -> dict[str, Any]:
        dependencies = [d for name in self.names for d in self._dicts(name)]
        if not self.rankings:
            dependencies += [self._dict(d) for d in self.inds]
        document: dict[str, Any] = {
            "version": self.version,
            "dependencies": dependencies,
            "tables": [self._table_dict(name) for name in self.names],
            "pins": [p.to_dict() for p in self.pins],
        }
        if self.ind_notes:
            document["notes"] = list(self.ind_notes)
        if self.showing.non_uniques:
            document["non_uniques"] = [
                {"table": name, "columns": list(c)} for name, sets in self.maximal.items() for c in sets
            ]
        return document

    def _dicts(self, name: str) -> Iterator[dict[str, Any]]:
        """The dependencies of a table, in the order in which people read them."""
        yield from (self._dict(d) for d in self.keys.get(name, ()))
        if name in self.rankings:
            yield from (r.to_dict() for r in self.rankings[name].ranked())
        elif not self.rankings:
            yield from (self._dict(d) for d in self.fds.get(name, ()))
            for dc in self.dcs[name].dcs if name in self.dc_refs else ():
                yield {**dc_dict(dc), **self._meaning(dc)}
        for rule in self.row_rules.get(name, ()):
            said = rule.said(times=are_times(self.schemas[name], rule))
            yield {**self._dict(rule), "sentence": said}
        for (_, table), listed in self.elsewhere.items():
            if table == name:
                yield from map(self._dict, listed)

    def _dict(self, dependency: Dependency) -> dict[str, Any]:
        return {**dependency.to_dict(), **self._meaning(dependency)}

    def _meaning(self, dependency: Dependency) -> dict[str, Any]:
        rank = self.ranks[dependency]
        return {"role": rank.role, "score": round(rank.score, 4), "muted": rank.role == "muted"}

    def _table_dict(self, name: str) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "table": name,
            "n_rows": self.n_rows[name],
            "max_columns": self.bounds[name],
            "kinds": list(self.kinds[name]),
        }
        if name in self.refs:
            ref = self.refs[name]
            fields["fds"] = {
                "evidence": ref.evidence_kind,
                "max_lhs": ref.max_lhs or None,
                "max_error": ref.max_error or None,
            }
        if name in self.dc_refs:
            fields["dcs"] = self._dcs_dict(name)
        if name in self.rankings:
            ranking = self.rankings[name].to_dict()
            fields["ranking"] = {k: v for k, v in ranking.items() if k not in ("fds", "rules")}
        return fields

    def _dcs_dict(self, name: str) -> dict[str, Any]:
        ref, form = self.dc_refs[name], self.showing.form
        columns = dict.fromkeys(group.left for group in ref.space.groups)
        fields = {
            "evidence": ref.evidence_kind,
            "n_predicates": ref.space.n_comparisons,
            "max_predicates": ref.max_predicates or None,
            "max_error": ref.max_error or None,
            "operators": list(ref.operators) or None,
            "columns": list(columns) if ref.chosen else None,
            "within_columns": ref.within_columns,
            "limits": ref.limits.to_dict(),
            "stopped": ref.stopped,
        }
        if form != "minimal" and name not in self.rankings:
            dcs = self.dcs[name]
            fields |= {"form": form, "complete": dcs.complete, "n_dropped": dcs.n_dropped}
        return fields

    # --- For people ---

    def print(self, paper: Paper) -> None:
        blocks = 0

        def block() -> None:
            nonlocal blocks
            if blocks:
                paper.line()
            blocks += 1

        for name in self.names:
            if name in self.rankings:
                block()
                n_muted = self.n_muted[name]
                print_ranking(paper, name, self.rankings[name], version=self.version, n_muted=n_muted)
                continue
            if name in self.keys or self.kind == "ucc":
                block()
                self._print_keys(paper, name)
            if name in self.fds:
                block()
                self._print_fds(paper, name)
            elsewhere = ("dc", "fd") if name in self.keys else ("dc", "fd", "check")
            pins = [p for p in self.pins if p.table == name and p.kind in elsewhere]
            if name in self.dc_refs or pins:
                block()
                self._print_dcs(paper, name, pins)
            if name in self.row_rules:
                block()
                rules, n = self._loud(self.row_rules[name])
                how = {"max_error": self.max_error, "n_muted": n, **self._common(name)}
                print_row_rules(paper, name, rules, self.schemas[name], **how)
            for (kind, table), listed in self.elsewhere.items():
                if table == name:
                    block()
                    loud, n = self._loud(listed)
                    how = {"version": self.version, "everything": self.showing.everything, "n_muted": n}
                    print_listed(paper, name, kind, loud, **how)
        if self.wants("ind") and any("ind" in self.kinds[name] for name in self.names):
            block()
            inds, n, _ = self._meant(self.inds)
            print_inds(
                paper,
                inds,
                version=self.version,
                table=self.table,
                max_error=self.max_error,
                pins=[p for p in self.pins if p.kind == "ind"],
                notes=self.ind_notes,
                n_foreign=sum(self.ranks[ind].meant == "foreign key" for ind in self.inds),
                everything=self.showing.everything,
                counted=self.inds[len(inds) :],
                n_chance=n,
            )
        elif not blocks and self.names and self.kind is not None:
            paper.line(not_kept_text(self.kind, self.version))
        if not self.names:
            paper.line(f"no table is tracked (version {self.version}). Start with 'holdfast track'.")

    def _print_keys(self, paper: Paper, name: str) -> None:
        pins: list[Pin] = [p for p in self.pins if p.table == name and p.kind in ("ucc", "check")]
        ref = self.refs.get(name)
        near = self.max_error if ref is not None and ref.evidence_kind == "counted" else 0.0
        bounds = [b for b in (self.bounds[name], ref.max_lhs if ref and near else 0) if b]
        keys, n_chance, n_muted = self._meant(self.keys[name]) if name in self.keys else (None, 0, 0)
        print_cover(
            paper,
            name,
            keys,
            n_chance=n_chance,
            n_muted=n_muted,
            max_columns=min(bounds, default=None),
            max_error=near,
            pins=pins,
            non_uniques=self.maximal.get(name),
            **self._common(name),
        )

    def _print_fds(self, paper: Paper, name: str) -> None:
        ref = self.refs[name]
        fds, n_muted = self._loud(self.fds[name])
        print_fds(
            paper,
            name,
            fds,
            n_muted=n_muted,
            evidence=evidence_text(ref),
            max_lhs=ref.max_lhs or None,
            max_error=self.max_error if ref.evidence_kind == "counted" else 0.0,
            **self._common(name),
        )

    def _print_dcs(self, paper: Paper, name: str, pins: Sequence[Pin]) -> None:
        ref = self.dc_refs.get(name)
        if ref is None:
            print_dcs(paper, name, None, pins=pins, **self._common(name))
            return
        dcs = self.dcs[name]
        meant, n_chance, n_muted = self._meant(dcs.dcs)
        if self.showing.form != "minimal":
            meant, n_chance = self._loud(dcs.dcs)[0], 0
        print_dcs(
            paper,
            name,
            meant,
            n_chance=n_chance,
            n_muted=n_muted,
            evidence=f"{plural(ref.space.n_comparisons, 'predicate')}, {evidence_text(ref)}",
            bounds=dc_bounds(ref),
            form=self.showing.form,
            max_error=self.max_error if ref.evidence_kind == "counted" else 0.0,
            n_dropped=dcs.n_dropped,
            complete=dcs.complete,
            pins=pins,
            **self._common(name),
        )

    def _common(self, name: str) -> dict[str, Any]:
        """What every list of a table's dependencies is told."""
        everything = self.showing.everything
        return {"version": self.version, "n_rows": self.n_rows[name], "everything": everything}

"""Looking closer at a workspace: clusters, foreign keys, why an inclusion holds or not, sizes.

What `history.py` reads from the ledger alone is fast everywhere; this opens the files that it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.core.rows.table_state import TableState
from holdfast.core.store.files import STAGING
from holdfast.core.store.ledger_rows import SHARED, CommitRow
from holdfast.core.words.change import WitnessRow
from holdfast.core.words.dependency import Ind, Side, Ucc
from holdfast.denial.dc_reading import DcReader
from holdfast.errors import UnknownColumnError, UsageError, listing
from holdfast.history import turned_dict
from holdfast.inclusions.generator import GeneratorState, ValueTable
from holdfast.inclusions.pair_counts import pair_ids

if TYPE_CHECKING:
    from holdfast.core.rows.relation import Relation
    from holdfast.inclusions.links.scored import Linkage

VALUES_SHOWN = 4


@dataclass(frozen=True, slots=True)
class IndExplanation:
    """All about one inclusion: whether it holds now, since when, and what is missing."""

    dependent: Side
    referenced: Side
    version: int
    ind: Ind  # with its error now
    holds: bool
    since: int | None  # the first version of the current spell
    missing: tuple[tuple[Any, WitnessRow], ...]  # missing values, each with a row that carries it
    turned: CommitRow | None  # the commit that made it so, if it was otherwise before

    def to_dict(self) -> dict[str, Any]:
        return {
            "dependent": self.dependent.to_dict(),
            "referenced": self.referenced.to_dict(),
            "version": self.version,
            "holds": self.holds,
            "error": self.ind.error,
            "missing_values": self.ind.missing_values,
            "missing_rows": self.ind.missing_rows,
            "coverage": self.ind.coverage,
            "since": self.since,
            "missing": [{"value": value, **row.to_dict()} for value, row in self.missing],
            "turned": turned_dict(self.turned),
        }


class Inspector(DcReader):
    """Reading that opens more than the ledger."""

    def clusters(self) -> list[tuple[tuple[tuple[str, str], ...], int]]:
        """The attribute clusters: sets of (table, column) that share values with no others, and how many."""
        from holdfast.inclusions.runs import read_clusters

        state = self._generator()
        if state is None:
            return []
        names = state.names()
        found = read_clusters(self.root, state.clusters)
        lists = np.split(found.columns, found.offsets[1:-1]) if len(found.sizes) else []
        return sorted(
            (tuple(sorted(names[int(c)] for c in columns)), int(size))
            for columns, size in zip(lists, found.sizes, strict=True)
            if size
        )

    def links(self, table: str | None = None, *, max_error: float = 0.0, at: int | None = None) -> Linkage:
        """Foreign-key candidates, ranked, with their reasons; and the primary keys chosen with them.

        Every table of the workspace counts in the choice; `table` only narrows what is returned, to links
        from or to it. `max_error` also admits inclusions that almost hold.
        """
        from holdfast.inclusions.links.facts import column_facts, with_coverage
        from holdfast.inclusions.links.scored import Linkage, rank_links

        at = self._one_version(at)
        generator = self._generator(at)
        if generator is None:
            raise UsageError(
                "no table of this workspace takes part in inclusions, so there are no links. "
                "Track tables with --kinds ucc,ind to find foreign keys."
            )
        if table is not None:
            self._current(table, at)
        pairs = self._pair_counts(generator)
        states = {t.table: self._current(t.table, at)[1] for t in generator.tables}
        relations = {name: self._rows(state) for name, state in states.items()}
        facts = [f for t in generator.tables for f in column_facts(generator, pairs, t, relations[t.table])]
        keys: dict[str, list[tuple[str, ...]]] = {n: [] for n, s in states.items() if s.cover is not None}
        for key in self.dependencies("ucc", at=at):
            if isinstance(key, Ucc) and key.table in keys:
                keys[key.table].append(key.columns)
        inds = [d for d in self.dependencies("ind", at=at, max_error=max_error) if isinstance(d, Ind)]
        text = {t.table: t.as_text for t in generator.tables}
        for i, ind in enumerate(inds):
            if len(ind.dependent.columns) > 1:
                a, b = ind.dependent.table, ind.referenced.table
                inds[i] = with_coverage(ind, relations[a], relations[b], (text[a], text[b]))
        linkage = rank_links(facts, keys, inds)
        if table is None:
            return linkage
        chosen = tuple(k for k in linkage.links if table in (k.dependent.table, k.referenced.table))
        return Linkage(chosen, linkage.primary_keys)

    def not_null(self, table: str, at: int | None = None) -> frozenset[str]:
        """The columns of a table that have no NULL, now or, while its files are there, at a version."""
        from holdfast.inclusions.links.facts import not_null_columns

        return not_null_columns(self._rows(self._current(table, at)[1]))

    def longest(self, table: str, at: int | None = None) -> Mapping[str, int]:
        """The most bytes that a value of each text or binary column has, now or, while its files are there,
        at a version. Values of deleted rows count until segments are merged."""
        from holdfast.inclusions.links.facts import longest_values

        return longest_values(self._rows(self._current(table, at)[1]))

    def explain_ind(self, dependent: Side, referenced: Side) -> IndExplanation:
        """Whether one column is included in another now, since when, and which values are missing."""
        from holdfast.inclusions.ind_list import inds_of
        from holdfast.inclusions.missing import missing_now

        at = self._one_version(None)
        generator = self._generator(at) or GeneratorState()
        left, right = (self._column_id(generator, side, at) for side in (dependent, referenced))
        if left == right:
            raise UsageError(f"{dependent} is always included in itself.")
        pair = pair_ids(np.array([left]), np.array([right]))
        [ind] = inds_of(generator, self._pair_counts(generator), pair)
        missing: tuple[tuple[Any, WitnessRow], ...] = ()
        if ind.missing_values:
            table = generator.table(dependent.table)
            assert table is not None
            relation = self._rows(self._current(dependent.table, at)[1])
            missing = missing_now(generator, relation, table, dependent.columns[0], right, VALUES_SHOWN)
        since, turned = self._spell_of_ind(ind)
        return IndExplanation(
            dependent, referenced, at or 0, ind, ind.missing_values == 0, since, missing, turned
        )

    def sizes(self) -> Mapping[str, int]:
        """Bytes of the live files by what they are for.

        `values`: the generator's runs, clusters and pair counts; `locators`: what finds rows by content,
        for deletes and updates; `rows`: the rest of the segments; `keys`: covers, evidence and indexes;
        `fds`: covers and evidence of functional dependencies.
        """
        sizes = dict.fromkeys(("values", "locators", "rows", "keys", "fds"), 0)
        at = self._one_version(None)
        generator = self._generator(at)
        if generator is not None:
            sizes["values"] = sum(f.length for f in generator.files())
        for name in self.tables(at):
            state = self._current(name, at)[1]
            for ref in state.segments:
                locator = 12 * ref.n_rows if state.locator else 0  # a 64-bit hash and a 32-bit position
                sizes["locators"] += locator
                sizes["rows"] += ref.file.length - locator + (ref.deletes.length if ref.deletes else 0)
                sizes["keys"] += sum(f.length for _, f in ref.indexes)
            sizes["keys"] += sum(f.length for f in (state.cover, state.evidence) if f is not None)
            sizes["fds"] += sum(f.length for f in state.fds.files()) if state.fds is not None else 0
        return {**sizes, "total": sum(sizes.values())}

    # -- inside -------------------------------------------------------------------------------

    def _rows(self, state: TableState) -> Relation:
        """The rows of a table, to be looked at."""
        from holdfast.core.rows.relation import Relation

        return Relation(
            Path(self.root),
            state.folder,
            STAGING,
            state.schema,
            state.nulls,
            tuple(state.locator),
            state.segments,
            self._engine_for_reading(),
        )

    def _column_id(self, generator: GeneratorState, side: Side, at: int | None) -> int:
        if len(side.columns) != 1:
            raise UsageError(
                f"{len(side.columns)} columns of table {side.table!r} are given ({listing(side.columns)}); "
                "give one on each side."
            )
        base, state = self._current(side.table, at)
        [column] = side.columns
        if state.schema.position(column) is None:
            raise UnknownColumnError.from_missing(side.table, base, column, state.schema.names)
        table: ValueTable | None = generator.table(side.table)
        if table is None or column not in table.columns:
            raise UsageError(
                f"column {column!r} of table {side.table!r} takes no part in inclusions. "
                "Track the table with --kinds ind, and with patterns that do not leave the column out."
            )
        return table.first + table.columns.index(column)

    def _spell_of_ind(self, ind: Ind) -> tuple[int | None, CommitRow | None]:
        """(since, turned): from the changes that the ledger has of this inclusion."""
        wanted = {"dependent": ind.dependent.to_dict(), "referenced": ind.referenced.to_dict()}
        tables = {ind.dependent.table, ind.referenced.table}
        tracked = max(
            (c.version for c in self.ledger.commits() if c.table in tables and c.action == "track"), default=1
        )
        changed = [
            c.version
            for c in self.ledger.changes(ind.dependent.table, since=tracked, kind="ind")
            if {side: c.dependency[side] for side in wanted} == wanted
        ]
        if not changed:
            return tracked, None
        return changed[-1], next(
            c for c in self.ledger.commits() if c.version == changed[-1] and c.table != SHARED
        )

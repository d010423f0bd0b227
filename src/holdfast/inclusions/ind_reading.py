"""Reading inclusions: which hold, which are foreign keys, why one holds or not, and since when."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.history import Against, Life, Past
from holdfast.core.rows.table_state import TableState
from holdfast.core.rows.tables import Tables
from holdfast.core.store.files import FileRef
from holdfast.core.store.ledger_rows import SHARED, CommitRow
from holdfast.core.words.change import Pin
from holdfast.core.words.dependency import Ind, Side
from holdfast.core.words.options import check_share
from holdfast.errors import UnknownColumnError, UsageError, listing, shorten
from holdfast.inclusions.composite_state import Composites, read_composites, stopped_texts
from holdfast.inclusions.generator import GeneratorState, ValueTable
from holdfast.inclusions.ind_explanation import IndExplanation, Missing
from holdfast.inclusions.pair_counts import PairCounts, pair_ids
from holdfast.inclusions.several import node_of, single_columns

if TYPE_CHECKING:
    from holdfast.core.cover.violating_rows import ViolatingRows
    from holdfast.core.rows.relation import Relation
    from holdfast.inclusions.links.scored import Linkage

VALUES_SHOWN = 4
# Verdicts about past versions that are remembered.
MAX_HELD = 10_000
# What almost holds, as `links` sees it: so much of the values is missing, or a single one that is no more
# than this share of them.
ALMOST = 0.05
ORPHAN = 1 / 3


class IndReader:
    """Inclusions among the tables of the workspace, and the foreign keys among them."""

    def __init__(
        self, tables: Tables, keys_of: Callable[[TableState], tuple[tuple[str, ...], ...] | None]
    ) -> None:
        self._tables, self._keys_of = tables, keys_of
        self._wide: tuple[FileRef | None, Composites] = (None, Composites.empty())
        self._pairs: tuple[tuple[Any, ...], PairCounts] = ((), PairCounts.empty())
        # The workspace's state begins with its first table, and never anew.
        self._past: Past[Mapping[str, Any]] = Past(tables, _cover_of, begins="")
        self._held: dict[tuple[str, Side, Side], bool | None] = {}
        # Up to which version it is read when inclusions broke, and when each did.
        self._broke: tuple[int, dict[tuple[Side, Side], list[int]]] = (0, {})

    def listed(
        self,
        table: str | None = None,
        at: int | None = None,
        max_error: float = 0.0,
        *,
        with_empty: bool = False,
    ) -> list[Ind]:
        """The inclusions that hold, or miss at most a share of their values; of a table, on either side."""
        from holdfast.inclusions.ind_list import list_inds

        state = self.generator(at)
        if state is None:
            return []
        pairs = self._pair_counts(state)
        unary = list_inds(state, pairs, max_error=max_error, with_empty=with_empty, table=table)
        wide = [
            c.as_ind()
            for c in self._composites(state).listed
            if table in (None, c.dependent.table, c.referenced.table)
        ]
        return sorted([*unary, *wide])

    def notes(self, table: str | None = None, at: int | None = None) -> tuple[str, ...]:
        """What is not known of composite inclusions, in words: where there are too many combinations."""
        state = self.generator(self._tables.newest(at))
        if state is None:
            return ()
        tables = [t.table for t in state.tables] if table is None else [table]
        return stopped_texts(self._composites(state), tables)

    def pins(self, table: str | None, at: int | None) -> list[Pin]:
        """The pinned inclusions of a table in others, or of all."""
        state = self.generator(at)
        return [
            pin.pin()
            for pin in (state.pins if state is not None else ())
            if table in (None, pin.dependent.table)
        ]

    def clusters(self) -> list[tuple[tuple[tuple[str, str], ...], int]]:
        """The attribute clusters: sets of (table, column) that share values with no others, and how many."""
        from holdfast.inclusions.runs import read_clusters

        state = self.generator()
        if state is None:
            return []
        names = state.names()
        clusters = read_clusters(self._tables.root, state.clusters)
        lists = np.split(clusters.columns, clusters.offsets[1:-1]) if len(clusters.sizes) else []
        return sorted(
            (tuple(sorted(names[int(c)] for c in columns)), int(size))
            for columns, size in zip(lists, clusters.sizes, strict=True)
            if size
        )

    def counted(self, at: int | None = None) -> tuple[GeneratorState, PairCounts] | None:
        """(state, pair counts) at a version; None where no table takes part in inclusions."""
        state = self.generator(at)
        return None if state is None else (state, self._pair_counts(state))

    def measured(self, sides: Sequence[tuple[Side, Side]], at: int | None = None) -> list[Ind]:
        """Inclusions in the order given, each with what it misses; of several columns without a coverage.

        Cost: a pass over the pair counts; of several columns, if they are not known to hold, a job for each.
        """
        from holdfast.inclusions.ind_list import inds_of

        state = self.generator(at)
        if state is None or not sides:
            return []
        single = [pair for pair in sides if len(pair[0].columns) == 1]
        number = {name: i for i, name in state.names().items()}
        ids = np.array(
            [[number[side.table, side.columns[0]] for side in pair] for pair in single], dtype=np.int64
        ).reshape(-1, 2)
        counted = iter(inds_of(state, self._pair_counts(state), pair_ids(ids[:, 0], ids[:, 1])))
        return [next(counted) if len(p[0].columns) == 1 else self._measured(state, *p, at) for p in sides]

    def _measured(self, state: GeneratorState, dependent: Side, referenced: Side, at: int | None) -> Ind:
        """One of several columns."""
        from holdfast.inclusions.ind_list import holds
        from holdfast.inclusions.tuple_reading import misses

        if holds(state, self._pair_counts(state), self._composites(state), dependent, referenced):
            return Ind(dependent, referenced, coverage=None)
        return misses(state, dependent, referenced, partial(self._rows, at=at))[0]

    def _rows(self, table: str, at: int | None) -> Relation:
        return self._tables.rows(self._tables.current(table, at)[1])

    def broken(self, at: int | None = None) -> list[tuple[Side, Side]]:
        """The sides of inclusions that held once and do not now; `measured` says what they miss.

        Cost: a pass over the changes since the first of the tables was tracked; of those that were read
        before only over the newer ones.
        """
        at = self._tables.newest(at)
        state = self.generator(at)
        if state is None or at is None:
            return []
        there, tracked = set(state.names().values()), self._tracked()
        self._read_broken(at)
        usable = [
            pair
            for pair, versions in self._broke[1].items()
            if all((side.table, column) in there for side in pair for column in side.columns)
            and any(max(tracked[side.table] for side in pair) < version <= at for version in versions)
        ]
        parts = list(dict.fromkeys(part for pair in usable for part in single_columns(*pair)))
        lost = {(ind.dependent, ind.referenced) for ind in self.measured(parts, at) if ind.missing_values}
        refuted = self._composites(state).refuted
        return [
            pair
            for pair in usable
            if not lost.isdisjoint(single_columns(*pair)) or node_of(state, *pair) in refuted
        ]

    def _read_broken(self, at: int) -> None:
        """Reads when each inclusion broke, up to a version: of what is read the ledger says nothing else."""
        until, broke = self._broke
        if at > until:
            for c in self._tables.ledger.changes(since=until, until=at, kind="ind"):
                if c.change == "broke":
                    sides = (Side.from_dict(c.dependency[side]) for side in ("dependent", "referenced"))
                    broke.setdefault(tuple(sides), []).append(c.version)  # type: ignore[arg-type]
            self._broke = at, broke

    def links(
        self,
        table: str | None = None,
        *,
        max_error: float | None = None,
        at: int | None = None,
        with_broken: bool = False,
    ) -> Linkage:
        """Foreign-key candidates, ranked, with their reasons; and the primary keys chosen with them.

        Every table of the workspace counts in the choice; `table` only narrows what is returned, to links
        from or to it. Inclusions that almost hold are candidates, too: those that miss at most a share
        `max_error` of their values; if it is None, one in twenty, or one value of at least three.

        `with_broken`: one in a primary key that held once is judged as it was then, whatever it misses now;
        of columns that refer to something else now, none.
        """
        from holdfast.inclusions.links.facts import column_facts, with_coverage
        from holdfast.inclusions.links.scored import Linkage, rank_links
        from holdfast.inclusions.links.unmuted import unmuted_inds, unmuted_keys

        check_share(max_error or 0.0)
        at = self._tables.newest(at)
        generator = self.generator(at)
        if generator is None:
            raise UsageError(
                "no table of this workspace takes part in inclusions, so there are no links. "
                "Track tables with --kinds ucc,ind to find foreign keys."
            )
        if table is not None:
            self._tables.current(table, at)
        pairs = self._pair_counts(generator)
        states = {t.table: self._tables.current(t.table, at)[1] for t in generator.tables}
        relations = {name: self._tables.rows(state) for name, state in states.items()}
        facts = column_facts(generator, pairs, relations)
        keys = {
            name: sorted(unmuted_keys(state, minimal), key=self._order(state))
            for name, state in states.items()
            if (minimal := self._keys_of(state)) is not None
        }
        as_text = {t.table: t.as_text for t in generator.tables}
        listed = self.listed(None, at, ORPHAN if max_error is None else max_error)
        if max_error is None:
            listed = [ind for ind in listed if ind.missing_values <= 1 or ind.error <= ALMOST]
        inds = with_coverage(list(unmuted_inds(listed, states.__getitem__)), relations, as_text)
        linkage = rank_links(facts, keys, inds)
        if with_broken and (lost := {Ind(*sides) for sides in self.broken(at)}.difference(inds)):
            unbroken = with_coverage(self._as_once(sorted(lost), at), relations, as_text)
            links = linkage.lost_links(rank_links(facts, keys, [*inds, *unbroken]), lost)
            now = self.measured([(link.dependent, link.referenced) for link in links], at)
            linkage = linkage.with_broken(links, now)
        if table is None:
            return linkage
        chosen = tuple(k for k in linkage.links if table in (k.dependent.table, k.referenced.table))
        return Linkage(chosen, linkage.primary_keys)

    def _as_once(self, lost: Sequence[Ind], at: int | None) -> list[Ind]:
        """Inclusions as if they held; of one column with the coverage that there is now."""
        single = [ind for ind in lost if len(ind.columns) == 1]
        counted = self.measured([(ind.dependent, ind.referenced) for ind in single], at)
        wide = [replace(ind, coverage=None) for ind in lost if len(ind.columns) > 1]
        return [replace(ind, error=0.0, missing_values=0, missing_rows=0) for ind in (*counted, *wide)]

    def not_null(self, table: str, at: int | None = None) -> frozenset[str]:
        """The columns of a table that have no NULL, now or, while its files are there, at a version."""
        from holdfast.inclusions.links.facts import not_null_columns

        return not_null_columns(self._tables.rows(self._tables.current(table, at)[1]))

    def longest(self, table: str, at: int | None = None) -> Mapping[str, int]:
        """The most bytes that a value of each text or binary column has, now or, while its files are there,
        at a version."""
        from holdfast.inclusions.links.facts import longest_values

        return longest_values(self._tables.rows(self._tables.current(table, at)[1]))

    def explain(self, dependent: Side, referenced: Side) -> IndExplanation:
        """Whether columns are included in others now, since when, and which values are missing.

        Of several columns by a look at the rows (two jobs); since when is known as far as `life` knows it.
        """
        at = self._tables.newest()
        ind, missing = self.missing(dependent, referenced, at)
        holds = ind.missing_values == 0
        if len(dependent.columns) > 1:
            since, turned = self._lasting(dependent, referenced, holds=holds)
        else:
            since, turned = self.spell(ind)
        return IndExplanation(dependent, referenced, at or 0, ind, holds, since, missing, turned)

    def missing(self, dependent: Side, referenced: Side, at: int | None) -> tuple[Ind, Missing]:
        """An inclusion as it is at a version, and some of the values that it misses, each with a row."""
        from holdfast.inclusions.ind_list import inds_of
        from holdfast.inclusions.missing import missing_now
        from holdfast.inclusions.tuple_reading import first_missing

        generator = self.generator(at) or GeneratorState()
        if len(dependent.columns) > 1 or len(referenced.columns) > 1:
            self._check_columns(dependent, referenced)
            check_sides(dependent, referenced)
            return first_missing(generator, dependent, referenced, partial(self._rows, at=at), VALUES_SHOWN)
        left, right = self._column_ids(dependent, referenced, at)
        pair = pair_ids(np.array([left]), np.array([right]))
        [ind] = inds_of(generator, self._pair_counts(generator), pair)
        table = generator.table(dependent.table)
        if not ind.missing_values or table is None:
            return ind, ()
        relation, column = self._rows(dependent.table, at), dependent.columns[0]
        return ind, missing_now(generator, relation, table, column, right, VALUES_SHOWN)

    def _lasting(
        self, dependent: Side, referenced: Side, *, holds: bool
    ) -> tuple[int | None, CommitRow | None]:
        """(since, turned) as the life of an inclusion says; None where it does not know how it is now."""
        life = self.life(dependent, referenced)
        if not life or life[-1].holds is not holds:
            return None, None
        if len(life) == 1 or life[-2].holds is None:
            return life[-1].first, None
        commits = self._tables.ledger.commits()
        return life[-1].first, next(c for c in commits if c.version == life[-1].first and c.table != SHARED)

    def life(self, dependent: Side, referenced: Side) -> Life:
        """When an inclusion held and when not, since both tables were tracked; of several columns as far as
        it was looked at. Cost: the pair counts of each version that changed them, once."""
        self._check_columns(dependent, referenced)
        tracked = self._tracked()
        since = max(tracked[side.table] for side in (dependent, referenced))

        def holds(fields: Mapping[str, Any]) -> bool | None:
            place = _cover_text(fields), dependent, referenced
            if place not in self._held:
                if len(self._held) >= MAX_HELD:
                    self._held.clear()
                self._held[place] = self._held_in(GeneratorState.from_dict(fields), dependent, referenced)
            return self._held[place]

        return self._past.life(SHARED, self._tables.version, holds, since=since)

    def against(self, state: GeneratorState, *sides: Side) -> Against | None:
        """How many values of one column the other lacked, and their share, by the state of a version."""
        from holdfast.inclusions.ind_list import against

        dependent, referenced = sides
        return against(state, self._pair_counts(state), (dependent, referenced))

    def violations(self, dependent: Side, referenced: Side, *, limit: int | None = None) -> ViolatingRows:
        """The rows whose value in one column, or combination in several, the other side lacks, oldest first.

        A missing value is a group. All of them go if the inclusion is to hold. `limit`: of the first rows
        only. One job, of several columns two.
        """
        from holdfast.core.cover.violating_rows import Removal, ViolatingRows
        from holdfast.inclusions.ind_list import inds_of
        from holdfast.inclusions.missing import orphans
        from holdfast.inclusions.tuple_reading import misses

        at, several = self._tables.newest(), len(dependent.columns) > 1
        generator = self.generator(at) or GeneratorState()
        ids, group, n = np.empty(0, np.int64), np.empty(0, np.int64), 0
        if several:
            self._check_columns(dependent, referenced)
            ind, missing = misses(generator, dependent, referenced, partial(self._rows, at=at), limit)
            ids, group, n = missing.row_ids, missing.group, missing.n_rows
        else:
            left, right = self._column_ids(dependent, referenced, at)
            pair = pair_ids(np.array([left]), np.array([right]))
            [ind] = inds_of(generator, self._pair_counts(generator), pair)
        rows = self._rows(dependent.table, at)
        if ind.missing_values and not several:
            table = generator.table(dependent.table)
            assert table is not None
            ids, group, n = orphans(generator, rows, table, dependent.columns[0], right, limit)
        return ViolatingRows(
            ind,
            at or 0,
            rows.n_rows,
            n,
            Removal(n, n),
            rows,
            ids,
            {"group": group, "remove": np.ones(len(ids), dtype=np.bool_)},
            n_groups=ind.missing_values,
            noun="missing combination" if several else "missing value",
        )

    def since(self, state: TableState, inds: Sequence[Ind], until: int) -> NDArray[np.int64]:
        """Since which version each of some inclusions, which hold at one, has held: int64[n]."""
        turns, tracked = self._turns({ind.dependent.table for ind in inds}), self._tracked()
        first = [max(tracked[ind.dependent.table], tracked[ind.referenced.table]) for ind in inds]
        last = [max((v for v in turns[ind] if v <= until), default=0) for ind in inds]
        return np.maximum(np.array(first, dtype=np.int64), last)

    # -- inside -------------------------------------------------------------------------------

    def _held_in(self, state: GeneratorState, dependent: Side, referenced: Side) -> bool | None:
        """Whether an inclusion held at a version; None where that is not known."""
        if any(state.table(side.table) is None for side in (dependent, referenced)):
            return None
        from holdfast.inclusions.ind_list import holds

        pairs = PairCounts.load(self._tables.root, state.pairs)
        composites = read_composites(self._tables.root, state.composites)
        return holds(state, pairs, composites, dependent, referenced)

    def _check_columns(self, *sides: Side) -> None:
        """An error unless all columns take part in inclusions."""
        for side in sides:
            for column in side.columns:
                self.column_id(Side(side.table, (column,)), None)

    def _column_ids(self, dependent: Side, referenced: Side, at: int | None) -> tuple[int, int]:
        left, right = (self.column_id(side, at) for side in (dependent, referenced))
        check_sides(dependent, referenced)
        return left, right

    def _composites(self, state: GeneratorState) -> Composites:
        if self._wide[0] != state.composites:
            self._wide = state.composites, read_composites(self._tables.root, state.composites)
        return self._wide[1]

    @staticmethod
    def _order(state: TableState) -> Callable[[tuple[str, ...]], Any]:
        """Short keys first, then in the order of the schema."""
        return lambda key: (len(key), [state.schema.position(c) for c in key])

    def generator(self, at: int | None = None) -> GeneratorState | None:
        """The state of the generator at a version; None where no table takes part in inclusions."""
        version = self._tables.ledger.heads(at).get(SHARED)
        if version is None:
            return None
        state = self._tables.ledger.commit_row(version, SHARED).state
        assert state is not None
        return GeneratorState.from_dict(state)

    def _pair_counts(self, state: GeneratorState) -> PairCounts:
        if self._pairs[0] != state.pairs:
            self._pairs = state.pairs, PairCounts.load(self._tables.root, state.pairs)
        return self._pairs[1]

    def column_id(self, side: Side, at: int | None) -> int:
        """The number of a column that takes part in inclusions, or the error that it does not."""
        generator = self.generator(at) or GeneratorState()
        if len(side.columns) != 1:
            raise UsageError(
                f"{len(side.columns)} columns of table {side.table!r} are given ({listing(side.columns)}); "
                "give one on each side."
            )
        base, state = self._tables.current(side.table, at)
        [column] = side.columns
        if state.schema.position(column) is None:
            raise UnknownColumnError.from_missing(side.table, base, column, state.schema.names)
        table: ValueTable | None = generator.table(side.table)
        if table is None or column not in table.columns:
            raise UsageError(
                f"column {shorten(column)} of table {side.table!r} takes no part in inclusions. "
                "Track the table with --kinds ind, and with patterns that do not leave the column out."
            )
        return table.first + table.columns.index(column)

    def _turns(self, dependent: Collection[str]) -> Mapping[Ind, list[int]]:
        """The versions that changed inclusions of some tables, by inclusion, oldest first."""
        turns: dict[Ind, list[int]] = defaultdict(list)
        for table in dependent:
            for c in self._tables.ledger.changes(table, kind="ind"):
                turns[Ind.from_dict(c.dependency)].append(c.version)
        return turns

    def _tracked(self) -> Mapping[str, int]:
        """The version since which each table is tracked."""
        commits = self._tables.ledger.commits()
        return defaultdict(lambda: 1, {c.table: c.version for c in commits if c.action == "track"})

    def spell(self, ind: Ind) -> tuple[int | None, CommitRow | None]:
        """(since, turned): from the changes that the ledger has of an inclusion, of one column or several."""
        of_table = self._tracked()
        tracked = max(of_table[ind.dependent.table], of_table[ind.referenced.table])
        changed = [v for v in self._turns({ind.dependent.table})[ind] if v > tracked]
        if not changed:
            return tracked, None
        return changed[-1], next(
            c for c in self._tables.ledger.commits() if c.version == changed[-1] and c.table != SHARED
        )


def check_sides(dependent: Side, referenced: Side) -> None:
    """An error if nothing is asked, or relied on."""
    if dependent == referenced:
        raise UsageError(f"{dependent} is always included in itself.")


def _cover_of(fields: Mapping[str, Any]) -> tuple[FileRef, Mapping[str, Any]]:
    """What says which inclusions hold is several files, so their names stand for one."""
    return FileRef(_cover_text(fields), 0, ""), fields


def _cover_text(fields: Mapping[str, Any]) -> str:
    return json.dumps([fields[name] for name in ("tables", "pairs", "composites")])

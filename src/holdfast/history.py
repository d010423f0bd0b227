"""Reading a workspace: what holds, what held, what changed it. Needs neither Spark nor kernels.

Only `explain` of a combination that is not unique opens segments, to show the rows that prove it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.table_state import TableState, columns_of, read_masks
from holdfast.functional.refs import read_approximate, read_fds
from holdfast.core.store.files import FileRef
from holdfast.core.store.ledger import Ledger
from holdfast.core.store.ledger_rows import LAKE, NO_TABLES, SHARED, ChangeRow, CommitRow
from holdfast.core.words.change import Pair, Pin, WitnessRow
from holdfast.core.words.dependency import KINDS, Dependency, Fd, Ind, Ucc
from holdfast.core.words.predicate import Dc
from holdfast.core.words.row_rule import RowRule
from holdfast.core.words.schema import Schema
from holdfast.denial.constraints import read_dcs
from holdfast.errors import UnknownColumnError, UnknownTableError, UsageError, shorten
from holdfast.inclusions.composite_state import Composites, read_composites, stopped_texts
from holdfast.inclusions.generator import GeneratorState, read_pairs
from holdfast.inclusions.pair_counts import PairCounts

if TYPE_CHECKING:
    from holdfast.core.evidence.counted import CountedEvidence

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
PAIRS_SHOWN = 4


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One version: what was done, and what it changed."""

    version: int
    at: datetime
    tables: tuple[str, ...]  # one, unless a batch concerned several
    action: str
    batch_id: str | None
    details: tuple[dict[str, Any], ...]  # one for each table
    changes: tuple[ChangeRow, ...]

    @property
    def table(self) -> str:
        return ", ".join(self.tables)

    def to_dict(self) -> dict[str, Any]:
        own = [{"table": t, **d} for t, d in zip(self.tables, self.details, strict=True)]
        return {
            "version": self.version,
            "at": self.at.isoformat(),
            "action": self.action,
            "batch_id": self.batch_id,
            **(own[0] if len(own) == 1 else {}),
            "tables": own,
            "changes": [change_dict(c) for c in self.changes],
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    """All about one combination of columns: whether it is unique now, since when, and why."""

    table: str
    columns: tuple[str, ...]
    version: int
    unique: bool
    since: int | None  # the first version of the current spell; None where a bound hides it
    minimal: bool
    keys: tuple[Dependency, ...]  # the minimal keys inside it
    duplicates: tuple[Pair, ...]  # rows that prove it is not unique
    turned: CommitRow | None  # the commit that made it so, if it was otherwise before
    turned_by: tuple[ChangeRow, ...]  # what that commit changed, with the rows that did it
    pinned: bool

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "columns": list(self.columns),
            "version": self.version,
            "unique": self.unique,
            "since": self.since,
            "minimal": self.minimal,
            "keys": [k.to_dict() for k in self.keys],
            "duplicates": [[r.to_dict() for r in pair] for pair in self.duplicates],
            "turned": turned_dict(self.turned, self.turned_by),
            "pinned": self.pinned,
        }


def turned_dict(
    commit: CommitRow | None, changes: Sequence[ChangeRow] | None = None
) -> dict[str, Any] | None:
    """The commit that turned something, with what it changed if that is kept."""
    if commit is None:
        return None
    told = {
        "version": commit.version,
        "action": commit.action,
        "batch_id": commit.batch_id,
        "at": commit.at.isoformat() if commit.at else None,
    }
    return told if changes is None else {**told, "changes": [change_dict(c) for c in changes]}


def change_dict(change: ChangeRow) -> dict[str, Any]:
    reason = change.reason
    if reason is not None:  # in older versions of a workspace it ends as a line above rows does
        reason = reason.removesuffix(":").removesuffix(", such as")
    return {
        "change": change.change,
        "dependency": change.dependency,
        "reason": reason,
        "witnesses": [
            [WitnessRow.from_dict(row).to_dict() for row in group] for group in change.witnesses or []
        ],
    }


class Reader:
    """The reading half of a workspace."""

    def __init__(self, root: Path, ledger: Ledger) -> None:
        self.root, self.ledger = root, ledger
        self._covers: dict[str, U64] = {}
        self._counted: tuple[tuple[FileRef, ...], CountedEvidence] | None = None
        self._wide: tuple[FileRef | None, Composites] = (None, Composites.empty())
        self._states: dict[tuple[str, int], TableState] = {}  # by table and version of its commit
        self._pairs: tuple[tuple[Any, ...], PairCounts] = ((), PairCounts.empty())

    @property
    def version(self) -> int:
        """The newest version of the workspace; 0 before anything is tracked."""
        return self.ledger.version

    def tables(self, at: int | None = None) -> list[str]:
        return sorted(t for t in self.ledger.heads(at) if t not in NO_TABLES)

    def kinds(self, table: str, at: int | None = None) -> tuple[str, ...]:
        """The kinds of dependencies that are kept for a table."""
        return self._current(table, at)[1].kinds

    def schema(self, table: str, at: int | None = None) -> Schema:
        return self._current(table, at)[1].schema

    def n_rows(self, table: str, at: int | None = None) -> int:
        return self._current(table, at)[1].n_rows

    def max_columns(self, table: str, at: int | None = None) -> int | None:
        """The bound on the size of keys that the table is tracked with, if there is one."""
        return self._current(table, at)[1].max_columns or None

    def dependencies(
        self,
        kind: str | None = None,
        table: str | None = None,
        at: int | None = None,
        *,
        max_error: float = 0.0,
        with_empty: bool = False,
    ) -> list[Dependency]:
        """The dependencies that hold now, or held at a version: the cover, whole.

        `max_error` also lists what almost holds. Inclusions: of which at most that share of the distinct
        values is missing. Functional dependencies and keys: the minimal ones that at most that share of the
        pairs of rows violates, from counted evidence; at the newest version any share, at older ones the one
        that the table is tracked with. A table without counted evidence has its exact ones listed, unless
        functional dependencies are asked for: then it is an error. Keys that almost hold are no wider than
        the table's bound on left-hand sides.

        `with_empty` lets columns without values take part in inclusions. The inclusions of a table are those
        with one of its columns on either side.
        """
        if kind not in (None, *KINDS):
            known = ", ".join(KINDS)
            raise UsageError(f"dependencies of kind {shorten(kind)} are not known. Kinds: {known}.")
        if not 0 <= max_error <= 1:
            raise UsageError(f"max_error is {max_error}; expected a share from 0 to 1, such as 0.02.")
        at = self._one_version(at)
        names = self.tables(at) if table is None else [table]
        found: list[Dependency] = []
        for name in names:
            _, state = self._current(name, at)
            if max_error and kind in (None, "ucc", "fd") and self._approximates(state, kind):
                found.extend(self._approximate(state, at, kind, max_error))
                continue
            if kind in (None, "ucc") and state.cover is not None:
                found.extend(self._uccs(name, state.schema, self._cover_masks(state)))
            if kind in (None, "fd") and state.fds is not None:
                found.extend(self._fds(state, *self._fd_cover(state)))
        if kind in (None, "dc"):
            for name in names:
                found.extend(self._dcs(self._current(name, at)[1], at, max_error, asked=kind == "dc"))
        if kind in (None, "row"):
            for name in names:
                found.extend(self._row_rules(self._current(name, at)[1], max_error))
        if kind in (None, "ind"):
            found.extend(self._inds(table, at, max_error, with_empty))
        return found

    def _one_version(self, at: int | None) -> int | None:
        """The newest version now, if none is asked for: one answer is read from one version."""
        return at if at is not None else self.version or None

    def _inds(self, table: str | None, at: int | None, max_error: float, with_empty: bool) -> list[Ind]:
        from holdfast.inclusions.ind_list import list_inds

        state = self._generator(at)
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

    def ind_notes(self, table: str | None = None, at: int | None = None) -> tuple[str, ...]:
        """What is not known of composite inclusions, in words: where there are too many combinations."""
        state = self._generator(self._one_version(at))
        if state is None:
            return ()
        tables = [t.table for t in state.tables] if table is None else [table]
        return stopped_texts(self._composites(state), tables)

    def _composites(self, state: GeneratorState) -> Composites:
        ref = state.composites
        if ref is None:
            return Composites.empty()
        if self._wide[0] != ref:
            self._wide = ref, read_composites(self.root, ref)
        return self._wide[1]

    def _generator(self, at: int | None = None) -> GeneratorState | None:
        """The state of the generator at a version; None where no table takes part in inclusions."""
        version = self.ledger.heads(at).get(SHARED)
        if version is None:
            return None
        state = self.ledger.commit_row(version, SHARED).state
        assert state is not None
        return GeneratorState.from_dict(state)

    def _pair_counts(self, state: GeneratorState) -> PairCounts:
        if self._pairs[0] != state.pairs:
            parts = [PairCounts.from_arrays(arrays) for arrays in read_pairs(self.root, state.pairs)]
            self._pairs = state.pairs, PairCounts.sum(parts)
        return self._pairs[1]

    def non_uniques(self, table: str, at: int | None = None) -> list[tuple[str, ...]]:
        """The maximal combinations that are not unique; of a table at its newest version."""
        _, state = self._current(table, at)
        self._needs_keys(state)
        if state.max_columns:
            raise UsageError(
                f"table {table!r} is tracked with keys of at most {state.max_columns} columns, which leaves "
                "its maximal non-uniques open. Track it without --max-columns to see them."
            )
        newest = self._current(table)[1]
        if state.evidence != newest.evidence:
            # Evidence is kept for the newest version only; of older ones the cover tells the same.
            from holdfast.core.cover.dual import non_uniques_of

            masks = non_uniques_of(self._cover_masks(state), len(state.schema), state.n_rows)
        else:
            from holdfast.core.rows.kernels.masks import maximal_masks

            assert state.evidence is not None
            masks = read_masks(self.root, state.evidence, "evidence", len(state.schema))
            masks = masks[maximal_masks(masks)]
        return [u.columns for u in self._uccs(table, state.schema, masks)]

    def pins(self, table: str | None = None, at: int | None = None) -> list[Pin]:
        """What is pinned, and whether it holds: combinations, and inclusions of a table in others."""
        found = []
        at = self._one_version(at)
        for name in self.tables(at) if table is None else [table]:
            _, state = self._current(name, at)
            found += [Pin(name, columns, holds) for columns, holds in state.pins]
            for rule in state.rules:
                dc = rule.dc(name, state.n_rows)
                found.append(Pin(name, dc.columns, rule.holds, rule=dc, n_violations=rule.n_violations))
        generator = self._generator(at)
        for pin in generator.pins if generator is not None else ():
            if table in (None, pin.dependent.table):
                found.append(Pin(pin.dependent.table, pin.dependent.columns, pin.holds, pin.referenced))
        return found

    def log(self, table: str | None = None) -> list[LogEntry]:
        """What each version did and changed, oldest first; of a table, what others did to it as well.

        Of a version of several tables, a table's log has its own part: what was done to it, and the changes
        that are about it. What was done to other tables alone, and changed something about it, is told with
        their names.
        """
        commits: dict[int, list[CommitRow]] = {}
        for commit in self.ledger.commits():
            if commit.table != SHARED:
                commits.setdefault(commit.version, []).append(commit)
        if table is not None and not any(c.table == table for rows in commits.values() for c in rows):
            raise UnknownTableError.from_missing(table, self.tables())
        by_version: dict[int, list[ChangeRow]] = {}
        for change in self.ledger.changes():
            if table is None or table in _tables_of(change):
                by_version.setdefault(change.version, []).append(change)
        if table is not None:
            parts = {v: [c for c in rows if c.table == table] for v, rows in commits.items()}
            commits = {
                version: parts[version] or rows
                for version, rows in commits.items()
                if parts[version] or version in by_version
            }
        return [
            LogEntry(
                version,
                _known(rows[0].at),
                tuple("the lake" if c.table == LAKE else c.table for c in rows),
                rows[0].action,
                rows[0].batch_id,
                tuple(c.detail or {} for c in rows),
                tuple(by_version.get(version, ())),
            )
            for version, rows in commits.items()
        ]

    def explain(self, table: str, columns: Sequence[str]) -> Explanation:
        """Whether a combination is unique now, since which version, and the rows that prove or broke it."""
        base, state = self._current(table)
        self._needs_keys(state)
        positions = self._positions(state, base, columns)
        names = tuple(state.schema.names[p] for p in positions)
        keys = self._keys_inside(state, positions)
        unique = bool(keys)
        duplicates: tuple[Pair, ...] = ()
        if not unique:
            duplicates = self._duplicates(state, positions)
            unique = not duplicates  # possible only under a bound on the size of keys
        since, turned = self._spell(table, positions, unique)
        if not keys and 0 < state.max_columns < len(positions) and (unique or turned is None):
            since, turned = None, None  # past covers say nothing of combinations wider than their bound
        own = {frozenset(c) for c in [names]}
        turned_by: tuple[ChangeRow, ...] = ()
        if turned is not None:
            changes = self.ledger.changes(table, since=turned.version - 1, until=turned.version, kind="ucc")
            wanted = "appeared" if unique else "broke"
            turned_by = tuple(
                c for c in changes if c.change == wanted and frozenset(c.dependency["columns"]) <= set(names)
            )[:PAIRS_SHOWN]
        return Explanation(
            table=table,
            columns=names,
            version=base,
            unique=unique,
            since=since,
            minimal=any(frozenset(k.columns) in own for k in keys),
            keys=tuple(keys),
            duplicates=duplicates,
            turned=turned,
            turned_by=turned_by,
            pinned=names in dict(state.pins),
        )

    # -- inside -------------------------------------------------------------------------------

    def _current(self, table: str, at: int | None = None) -> tuple[int, TableState]:
        """(workspace version, state of the table at it)."""
        version = self.ledger.version if at is None else at
        if at is not None:
            self.ledger.commit_row(at)  # a version that does not exist is an error of its own
        heads = self.ledger.heads(version)
        if table not in heads or table in NO_TABLES:
            raise UnknownTableError.from_missing(table, sorted(t for t in heads if t not in NO_TABLES))
        found = self._states.get((table, heads[table]))
        if found is None:
            state = self.ledger.commit_row(heads[table], table).state
            assert state is not None
            if len(self._states) > 256:
                self._states.clear()
            found = self._states[table, heads[table]] = TableState.from_dict(state)
        return version, found

    def _keys_of(self, state: TableState) -> tuple[tuple[str, ...], ...] | None:
        """The minimal keys of a table; None where they are not tracked."""
        if state.cover is None:
            return None
        names = state.schema.names
        return tuple(tuple(names[c] for c in columns) for columns in columns_of(self._cover_masks(state)))

    def _needs_keys(self, state: TableState) -> None:
        if state.cover is None:
            raise UsageError(
                f"the keys of table {state.table!r} are not tracked, only: {', '.join(state.kinds)}. "
                "Track it anew with --kinds ucc to see them."
            )

    def _cover_masks(self, state: TableState) -> U64:
        assert state.cover is not None
        found = self._covers.get(state.cover.name)
        if found is None:
            found = read_masks(self.root, state.cover, "cover", len(state.schema))
            if len(self._covers) > 64:
                self._covers.clear()
            self._covers[state.cover.name] = found
        return found

    def _fd_cover(self, state: TableState) -> tuple[U64, I32]:
        """(left-hand sides, right-hand sides) of the minimal functional dependencies."""
        assert state.fds is not None
        return read_fds(self.root, state.fds.cover, len(state.schema))

    def _fds(self, state: TableState, masks: U64, rhs: I32, violations: I64 | None = None) -> list[Fd]:
        """Functional dependencies by name: short ones first, then in the order of the schema."""
        names, total = state.schema.names, n_pairs(state.n_rows)
        counts = [0] * len(masks) if violations is None else violations.tolist()
        found = sorted(
            zip(columns_of(masks), rhs.tolist(), counts, strict=True), key=lambda f: (len(f[0]), f[0], f[1])
        )
        return [
            Fd(state.table, tuple(names[c] for c in lhs), names[a], n / total if n else 0.0)
            for lhs, a, n in found
        ]

    def _row_rules(self, state: TableState, max_error: float) -> list[RowRule]:
        """The rules that the rows of a table keep, or all but a share of them."""
        if state.row_rules is None:
            return []
        from holdfast.denial.row_rule_list import load, rules_of

        return rules_of(load(self.root, state.row_rules), state.table, state.schema, max_error)

    def _dcs(self, state: TableState, at: int | None, max_error: float, *, asked: bool) -> list[Dc]:
        """The denial constraints of a table; those within an error where these are known, or asked for."""
        ref = state.dcs
        if ref is None:
            return []
        if not max_error and not ref.operators:
            predicates = ref.space.predicates
            found = columns_of(read_dcs(self.root, ref))
            return [Dc(state.table, tuple(predicates[i] for i in numbers)) for numbers in found]
        from holdfast.denial.dc_list import listed_masks, near_dcs
        from holdfast.denial.dc_state import dcs_of

        if max_error and (asked or ref.evidence_kind == "counted"):
            newest = at is None or self._current(state.table)[1].dcs == ref
            return near_dcs(self.root, state, max_error, newest=newest)
        return dcs_of(state.table, ref.space, listed_masks(self.root, ref))

    def _approximates(self, state: TableState, kind: str | None) -> bool:
        """Whether what almost holds is known; an error where it is asked for and cannot be."""
        if state.fds is not None and state.fds.evidence_kind == "counted":
            return True
        if state.fds is not None and kind == "fd":
            raise UsageError(
                f"table {state.table!r} keeps witnessed evidence, which tells what holds but not what almost "
                "holds. Track it anew with --evidence counted to list dependencies with errors."
            )
        return False

    def _approximate(
        self, state: TableState, at: int | None, kind: str | None, max_error: float
    ) -> list[Dependency]:
        """The minimal keys and functional dependencies within an error, each with its own."""
        masks, rhs, violations = self._approximate_cover(state, at, max_error)
        keys, fds = np.flatnonzero(rhs < 0), np.flatnonzero(rhs >= 0)
        found: list[Dependency] = []
        if kind != "fd":
            names, total = state.schema.names, n_pairs(state.n_rows)
            told = sorted(
                zip(columns_of(masks[keys]), violations[keys].tolist(), strict=True),
                key=lambda k: (len(k[0]), k[0]),
            )
            found += [
                Ucc(state.table, tuple(names[c] for c in columns), n / total if n else 0.0)
                for columns, n in told
                if not 0 < state.max_columns < len(columns)
            ]
        if kind != "ucc":
            found += self._fds(state, masks[fds], rhs[fds], violations[fds])
        return found

    def _approximate_cover(self, state: TableState, at: int | None, max_error: float) -> tuple[U64, I32, I64]:
        """(masks, rhs, violations): kept for the tracked error, else worked out from the evidence."""
        fds, n_columns = state.fds, len(state.schema)
        assert fds is not None
        if fds.approximate is not None and max_error == fds.max_error:
            return read_approximate(self.root, fds.approximate, n_columns)
        if not self._has_evidence(state):
            kept = f"only those within an error of {fds.max_error:g}" if fds.max_error else "only exact ones"
            raise UsageError(
                f"of table {state.table!r} at version {at} {kept} are kept, not those within {max_error:g}: "
                "evidence is kept for the newest version only. Ask for that one, or for what is kept."
            )
        from holdfast.core.cover.approximate import approximate_cover

        found = approximate_cover(self._counted_evidence(state), state.n_rows, max_error, fds.max_lhs)
        return found.masks, found.rhs, found.violations

    def _has_evidence(self, state: TableState) -> bool:
        """Whether the evidence of a state is that of the table's newest version; older ones may be gone."""
        head = self.ledger.heads().get(state.table)
        if head is None or state.fds is None:
            return False
        newest = self._current(state.table, head)[1].fds
        if newest is None:
            return False
        return (newest.evidence, newest.deltas) == (state.fds.evidence, state.fds.deltas)

    def _counted_evidence(self, state: TableState) -> CountedEvidence:
        """The agree sets of a table with their numbers of pairs; opened once."""
        from holdfast.core.evidence.counted_files import load_counted

        assert state.fds is not None
        files = state.fds.evidence, *state.fds.deltas
        if self._counted is None or self._counted[0] != files:
            ref = state.fds
            loaded = load_counted(self.root, "agreement", ref.evidence, ref.deltas, len(state.schema))
            self._counted = files, loaded
        return self._counted[1]

    def _uccs(self, table: str, schema: Schema, masks: U64) -> list[Ucc]:
        names = schema.names
        found = sorted(columns_of(masks), key=lambda columns: (len(columns), columns))
        return [Ucc(table, tuple(names[c] for c in columns)) for columns in found]

    def _positions(self, state: TableState, version: int | None, columns: Sequence[str]) -> list[int]:
        found = set()
        for name in columns:
            position = state.schema.position(name)
            if position is None:
                raise UnknownColumnError.from_missing(state.table, version, name, state.schema.names)
            found.add(position)
        return sorted(found)

    def _keys_inside(self, state: TableState, positions: Sequence[int]) -> list[Ucc]:
        masks = self._cover_masks(state)
        outside = ~columns_mask(positions, masks.shape[1])
        return self._uccs(state.table, state.schema, masks[~(masks & outside).any(axis=1)])

    def _spell(
        self, table: str, positions: Sequence[int], unique: bool
    ) -> tuple[int | None, CommitRow | None]:
        """(since, turned): the first version of the current spell, and the commit if it was a turn."""
        commits = self.ledger.commits(table)
        tracked = max((c.version for c in commits if c.action == "track"), default=1)
        # The cover can only have turned where a version changed it.
        changed = sorted(
            {c.version for c in self.ledger.changes(table, since=tracked, kind="ucc")}, reverse=True
        )
        by_version = {c.version: c for c in commits}
        for version in changed:
            _, before = self._current(table, version - 1)
            if bool(self._keys_inside(before, positions)) != unique:
                return version, by_version[version]
        return tracked, None

    def _duplicates(self, state: TableState, positions: Sequence[int]) -> tuple[Pair, ...]:
        """Pairs of rows that agree on the columns; from the evidence, or else from the data."""
        from holdfast.functional.duplicates import duplicate_pairs

        return duplicate_pairs(self.root, state, positions, PAIRS_SHOWN, self._engine_for_reading())

    def _engine_for_reading(self) -> Any:
        from holdfast.core.engine.engine import Engine

        return Engine(root=self.root)


def columns_mask(positions: Sequence[int], n_words: int) -> U64:
    """The mask of some columns; `kernels.masks.mask_of`, without the kernels."""
    mask = np.zeros(n_words, dtype=np.uint64)
    for p in positions:
        mask[p >> 6] |= np.uint64(1) << np.uint64(p & 63)
    return mask


def n_pairs(n_rows: int) -> int:
    """How many unordered pairs of rows there are."""
    return n_rows * (n_rows - 1) // 2


def _tables_of(change: ChangeRow) -> set[str]:
    """The tables that a dependency is about."""
    sides = [change.dependency.get(side) for side in ("dependent", "referenced")]
    return {change.table, *(side["table"] for side in sides if side)}


def _known(at: datetime | None) -> datetime:
    assert at is not None
    return at

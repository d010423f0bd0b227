"""Looking closer at functional dependencies: why one holds or not, and for how long each has held.

The past is read from covers, which are kept for every version: X -> A held at a version iff the cover of
that version has an X' -> A with X' inside X. So a dependency that was no longer minimal, because a narrower
one appeared, held all the same. Versions between two changes of the cover are one *run*, looked at once.

With a bound on left-hand sides a cover says nothing of wider ones that do not contain one of its own; what
is unknown for that reason is None.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.table_state import TableState, columns_of
from holdfast.functional.refs import FdRef, read_fds
from holdfast.core.store.files import STAGING
from holdfast.core.store.ledger import Ledger
from holdfast.core.store.ledger_rows import ChangeRow, CommitRow
from holdfast.core.words.dependency import Fd
from holdfast.errors import UsageError
from holdfast.functional.fd_past import (
    FdCommit,
    FdHistory,
    Run,
    fd_commit,
    held_in,
    histories_of,
    in_cover,
    inside,
    runs_of,
)
from holdfast.history import I32, I64, PAIRS_SHOWN, U64, Reader, columns_mask, n_pairs, turned_dict

if TYPE_CHECKING:
    from holdfast.core.evidence.groups import ViolatingGroup
    from holdfast.core.rows.relation import Relation

Bool = NDArray[np.bool_]

GROUPS_SHOWN = 8
ROWS_PER_GROUP = 4
# So many new commits are read one by one; for more, one pass over the whole ledger is cheaper.
FEW_COMMITS = 8
# `held_versions` looks no further back than so many changes of the cover: it is part of a batch, and to read
# and compare a cover of some thousand dependencies takes about a millisecond.
MAX_RUNS = 100
MAX_READ = 1_000_000


@dataclass(frozen=True, slots=True)
class FdExplanation:
    """All about one functional dependency: whether it holds now, since when, what violates it."""

    table: str
    lhs: tuple[str, ...]
    rhs: str
    version: int
    n_rows: int
    trivial: bool  # the right-hand side is among the left: it cannot be violated
    holds: bool
    minimal: bool | None  # None where a bound hides it
    inside: tuple[Fd, ...]  # the minimal dependencies that imply it
    key: tuple[str, ...] | None  # columns of the left-hand side that determine every column
    since: int | None  # the first version of the current spell; None where a bound hides it
    turned: CommitRow | None  # the commit that made it so, if it was otherwise before
    turned_by: tuple[ChangeRow, ...]  # what that commit changed, with the rows that did it
    violations: int  # pairs of rows
    error: float  # g1: their share of all pairs
    g3: float  # the share of rows to remove, at least, until it holds
    rows_to_remove: int
    violating_rows: int  # rows that some other row contradicts
    groups: tuple[ViolatingGroup, ...]  # rows by left-hand value, largest group first
    max_lhs: int | None  # the bound on left-hand sides

    @property
    def fd(self) -> Fd:
        return Fd(self.table, self.lhs, self.rhs, self.error)

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "lhs": list(self.lhs),
            "rhs": self.rhs,
            "version": self.version,
            "n_rows": self.n_rows,
            "trivial": self.trivial,
            "holds": self.holds,
            "minimal": self.minimal,
            "inside": [fd.to_dict() for fd in self.inside],
            "key": None if self.key is None else list(self.key),
            "since": self.since,
            "turned": turned_dict(self.turned, self.turned_by),
            "violations": self.violations,
            "error": self.error,
            "g3": self.g3,
            "rows_to_remove": self.rows_to_remove,
            "violating_rows": self.violating_rows,
            "groups": [group.to_dict() for group in self.groups],
            "max_lhs": self.max_lhs,
        }


class FdReader(Reader):
    """Reading functional dependencies."""

    def __init__(self, root: Path, ledger: Ledger) -> None:
        super().__init__(root, ledger)
        self._pasts: dict[str, list[FdCommit]] = {}  # by table, since it was tracked

    def max_lhs(self, table: str, at: int | None = None) -> int | None:
        """The bound on left-hand sides that the table is tracked with, if there is one."""
        fds = self._current(table, at)[1].fds
        return fds.max_lhs or None if fds is not None else None

    def fd_ref(self, table: str, at: int | None = None) -> FdRef | None:
        """How the functional dependencies of a table are kept; None where they are not tracked."""
        return self._current(table, at)[1].fds

    def error_of(self, table: str, lhs: Sequence[str], rhs: str | None = None) -> float:
        """The share of the pairs of rows that violate `lhs -> rhs` now; without `rhs`, the key `lhs` (g1).

        Exact, of any columns. From counted evidence, which stays open: well under a millisecond. Without
        it from the rows.
        """
        base, state = self._current(table)
        self._needs_fds(state)
        mask = columns_mask(self._positions(state, base, lhs), self._n_words(state))
        column = -1 if rhs is None else self._positions(state, base, [rhs])[0]
        return _share(self._violations(state, mask, column), n_pairs(state.n_rows))

    def explain_fd(self, table: str, lhs: Sequence[str], rhs: str) -> FdExplanation:
        """Whether `lhs -> rhs` holds now, since which version, and the rows that violate or broke it.

        The dependency need not be in the cover. One that holds is read from the cover; of one that does not
        the rows are looked at (one job), as are those of one wider than the bound on left-hand sides.
        """
        base, state = self._current(table)
        fds = self._needs_fds(state).fds
        assert fds is not None
        names = state.schema.names
        positions = self._positions(state, base, lhs)
        [column] = self._positions(state, base, [rhs])
        mask = columns_mask(positions, self._n_words(state))
        trivial = column in positions
        parts = [] if trivial else self._fds_inside(state, mask, column)
        wide = 0 < fds.max_lhs < len(positions)
        holds = trivial or bool(parts)
        measured = _Measured()
        if not holds:
            measured = self._measured(state, mask, column)
            # Only under a bound on left-hand sides can the rows say otherwise than the cover.
            holds = measured.violations == 0
        past = self._fd_past(table, base)
        since: int | None = past[0].version
        turned: CommitRow | None = None
        if not trivial:
            since, turned = self._spell_of_fd(state, past, mask, column, bool(parts), wide)
        own = tuple(names[p] for p in positions)
        minimal: bool | None = any(fd.lhs == own for fd in parts)
        if wide and holds and not trivial and not parts:
            # All that are narrower by one column are within the bound, or it cannot be told.
            minimal = True if len(positions) == fds.max_lhs + 1 else None
        return FdExplanation(
            table=table,
            lhs=own,
            rhs=rhs,
            version=base,
            n_rows=state.n_rows,
            trivial=trivial,
            holds=holds,
            minimal=minimal,
            inside=tuple(parts),
            key=self._key_inside(state, positions) if holds and not trivial else None,
            since=since,
            turned=turned,
            turned_by=() if turned is None else self._turned_by(turned, own, rhs, holds=holds),
            violations=measured.violations,
            error=_share(measured.violations, n_pairs(state.n_rows)),
            g3=_share(measured.rows_to_remove, state.n_rows),
            rows_to_remove=measured.rows_to_remove,
            violating_rows=measured.violating_rows,
            groups=measured.groups,
            max_lhs=fds.max_lhs or None,
        )

    def fd_log(self, table: str | None = None) -> list[FdHistory]:
        """For each dependency that was ever in the cover: when it held, and what it outlived.

        Since the table was tracked; of all tables that track functional dependencies, or of one. Short
        left-hand sides first. Cost: each different cover is compared once with all dependencies.
        """
        at = self._one_version(None)
        found: list[FdHistory] = []
        for name in self.tables(at) if table is None else [table]:
            base, state = self._current(name, at)
            if table is not None or state.fds is not None:
                found.extend(self._histories(self._needs_fds(state), self._fd_past(name, base)))
        return found

    def held_versions(self, table: str, masks: U64, rhs: I32 | I64, before_version: int) -> I64:
        """For how many versions of the table, up to that before a version, each had held without a break.

        masks IN uint64[n, n_words], rhs IN [n]; int64[n]. 0: it did not hold just before. Looks no further
        back than MAX_RUNS changes of the cover, or MAX_READ dependencies: then it is at least that many.
        Cost: a process reads what it has not seen of the ledger, then covers, newest first, while a
        dependency is left that held through all of them.
        """
        counts = np.zeros(len(masks), dtype=np.int64)
        past = self._fd_past(table, before_version - 1)
        if not len(masks) or not past:
            return counts
        n_columns = len(self._current(table, past[-1].version)[1].schema)
        asked = np.arange(len(masks))
        n_read = 0
        for run in reversed(runs_of(past)[-MAX_RUNS:]):
            cover = read_fds(self.root, run.cover, n_columns)
            asked = asked[held_in(masks[asked], rhs[asked], *cover)]
            counts[asked] += run.n_versions
            n_read += len(cover[1])
            if not len(asked) or n_read > MAX_READ:
                break
        return counts

    # -- inside -------------------------------------------------------------------------------

    def _needs_fds(self, state: TableState) -> TableState:
        if state.fds is None:
            raise UsageError(
                f"the functional dependencies of table {state.table!r} are not tracked, only: "
                f"{', '.join(state.kinds)}. Track it anew with --kinds fd to see them."
            )
        return state

    def _n_words(self, state: TableState) -> int:
        return max(1, (len(state.schema) + 63) // 64)

    def _fds_inside(self, state: TableState, mask: U64, column: int) -> list[Fd]:
        """The minimal dependencies with a part of the left-hand side, and the same right-hand side."""
        masks, rhs = self._fd_cover(state)
        chosen = inside(masks, rhs, mask, column)
        return self._fds(state, masks[chosen], rhs[chosen])

    def _key_inside(self, state: TableState, positions: Sequence[int]) -> tuple[str, ...] | None:
        """Some of the columns, minimal, that determine all others; None if they do not, as far as is known.

        A key, if keys are tracked. Else from the cover alone, which cannot tell duplicate rows apart.
        """
        if state.cover is not None:
            keys = self._keys_inside(state, positions)
            if keys:
                return keys[0].columns
        masks, rhs = self._fd_cover(state)
        n_columns, n_words = len(state.schema), self._n_words(state)

        def determine_all(columns: Sequence[int]) -> bool:
            parts = ~(masks & ~columns_mask(columns, n_words)).any(axis=1)
            return len({*columns, *rhs[parts].tolist()}) == n_columns

        kept = list(positions)
        if not determine_all(kept):
            return None
        for column in positions:
            fewer = [c for c in kept if c != column]
            if determine_all(fewer):
                kept = fewer
        return tuple(state.schema.names[c] for c in kept)

    def _violations(self, state: TableState, mask: U64, column: int) -> int:
        """Pairs of rows that agree on the mask and, unless the column is -1, not on the column; exact."""
        assert state.fds is not None
        lhs, rhs = mask[None, :], np.array([column], dtype=np.int64)
        if state.fds.evidence_kind == "counted":
            evidence = self._counted_evidence(state)
            return int((evidence.agreeing(lhs) if column < 0 else evidence.violations(lhs, rhs))[0])
        from holdfast.core.evidence.groups import measure_fds

        with self._opened(state) as relation:
            return int(measure_fds(relation, lhs, rhs).violations[0])

    def _measured(self, state: TableState, mask: U64, column: int) -> _Measured:
        """What the rows say of a dependency; one that holds after all has no groups."""
        from holdfast.core.cover.news import plain_rows
        from holdfast.core.evidence.groups import measure_fds, violating_groups

        rhs = np.array([column], dtype=np.int64)
        with self._opened(state) as relation:
            found = measure_fds(relation, mask[None, :], rhs)
            violations = int(found.violations[0])
            if not violations:
                return _Measured()
            groups = violating_groups(relation, mask, column, GROUPS_SHOWN, ROWS_PER_GROUP, plain_rows)
        return _Measured(
            violations,
            state.n_rows - int(found.kept_rows[0]),
            int(found.violating_rows[0]),
            tuple(groups),
        )

    @contextmanager
    def _opened(self, state: TableState) -> Iterator[Relation]:
        """The rows of a table, with a folder for the files of a job, removed after it."""
        from holdfast.core.rows.relation import Relation

        staging = f"{STAGING}/{secrets.token_hex(6)}"
        engine = self._engine_for_reading()
        try:
            yield Relation(
                self.root,
                staging,
                staging,
                state.schema,
                state.nulls,
                tuple(state.locator),
                state.segments,
                engine,
            )
        finally:
            shutil.rmtree(self.root / staging, ignore_errors=True)

    def _fd_past(self, table: str, until: int) -> list[FdCommit]:
        """The commits to a table since it was tracked, up to a version, oldest first; read once."""
        known = self._pasts.get(table, [])
        if known and known[0].version > until:
            known = []
        last = known[-1].version if known else 0
        fresh = [c for c in self.ledger.commits(table) if last < c.version <= until]
        begun = [i for i, c in enumerate(fresh) if c.action == "track"]
        if begun:
            known, fresh = [], fresh[begun[-1] :]
        refs = self._fd_refs(table, [c.version for c in fresh])
        known = [*known, *(fd_commit(c, ref) for c, ref in zip(fresh, refs, strict=True) if ref is not None)]
        self._pasts[table] = known
        return [c for c in known if c.version <= until]

    def _fd_refs(self, table: str, versions: Sequence[int]) -> list[FdRef | None]:
        """How the dependencies of a table were kept at versions that committed to it."""

        def ref_of(commit: CommitRow) -> FdRef | None:
            fields = (commit.state or {}).get("fds")
            return None if fields is None else FdRef.from_dict(fields)

        if len(versions) <= FEW_COMMITS:
            return [ref_of(self.ledger.commit_row(v, table)) for v in versions]
        wanted = set(versions)
        found = {
            c.version: ref_of(c) for c in self.ledger.states() if c.table == table and c.version in wanted
        }
        return [found[v] for v in versions]

    def _spell_of_fd(
        self, state: TableState, past: list[FdCommit], mask: U64, column: int, known: bool, wide: bool
    ) -> tuple[int | None, CommitRow | None]:
        """(since, turned): the first version of the current spell, and the commit if it was a turn.

        `known`: the cover says now that it holds. `wide`: where a cover does not say so, it says nothing.
        """
        if wide and not known:
            return None, None
        runs, n_columns = runs_of(past), len(state.schema)
        for i in range(len(runs) - 1, 0, -1):
            masks, rhs = read_fds(self.root, runs[i - 1].cover, n_columns)
            if bool(inside(masks, rhs, mask, column).any()) != known:
                if wide:
                    return None, None
                version = runs[i].first
                return version, next(c for c in self.ledger.commits(state.table) if c.version == version)
        return past[0].version, None

    def _turned_by(
        self, turned: CommitRow, lhs: Sequence[str], rhs: str, *, holds: bool
    ) -> tuple[ChangeRow, ...]:
        """What a commit recorded of the dependency and of those inside it; itself first, then the widest."""
        wanted = "appeared" if holds else "broke"
        changes = self.ledger.changes(turned.table, since=turned.version - 1, until=turned.version, kind="fd")
        own = [
            c
            for c in changes
            if c.change == wanted and c.dependency["rhs"] == rhs and set(c.dependency["lhs"]) <= set(lhs)
        ]
        return tuple(sorted(own, key=lambda c: -len(c.dependency["lhs"])))[:PAIRS_SHOWN]

    def _histories(self, state: TableState, past: list[FdCommit]) -> list[FdHistory]:
        runs, n_columns = runs_of(past), len(state.schema)
        masks, rhs = self._ever(runs, n_columns)
        held = np.zeros((len(masks), len(runs)), dtype=np.bool_)
        for i, run in enumerate(runs):
            now, own = read_fds(self.root, run.cover, n_columns)
            held[:, i] = held_in(masks, rhs, now, own)
        minimal = in_cover(masks, rhs, *self._fd_cover(state))
        bound = (state.fds.max_lhs or None) if state.fds is not None else None
        return histories_of(state, runs, masks, rhs, held, minimal, bound)

    def _ever(self, runs: Sequence[Run], n_columns: int) -> tuple[U64, I32]:
        """The different dependencies of all covers: short ones first, then in the order of the schema."""
        from holdfast.core.rows.kernels.masks import unique_masks
        from holdfast.functional.fd_cover import keyed

        n_words = max(1, (n_columns + 63) // 64)
        seen = np.empty((0, n_words + 1), dtype=np.uint64)
        for run in runs:
            both = np.concatenate([seen, keyed(*read_fds(self.root, run.cover, n_columns))])
            seen = both[unique_masks(both)[0]]
        masks, rhs = np.ascontiguousarray(seen[:, :-1]), seen[:, -1].astype(np.int32)
        columns = columns_of(masks)
        order = sorted(range(len(masks)), key=lambda i: (len(columns[i]), columns[i], rhs[i]))
        return masks[order], rhs[order]


@dataclass(frozen=True, slots=True)
class _Measured:
    """What violates a dependency; nothing, if it holds."""

    violations: int = 0
    rows_to_remove: int = 0
    violating_rows: int = 0
    groups: tuple[ViolatingGroup, ...] = ()


def _share(part: int, whole: int) -> float:
    return part / whole if part else 0.0

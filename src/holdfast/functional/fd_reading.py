"""Reading functional dependencies: which hold, why one does or not, since when; which deserve a look.

FDs are many, people are few. `rank` puts first what explains much and is no accident; `normalise` proposes
tables in which what the best of them say is stored once.

With a bound on left-hand sides a cover says nothing of wider ones that do not contain one of its own; what
is unknown for that reason is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.history import Against, Life, Past
from holdfast.core.rows.table_state import TableState
from holdfast.core.rows.tables import Tables
from holdfast.core.store.files import FileRef
from holdfast.core.store.ledger_rows import ChangeRow, CommitRow
from holdfast.core.words.column_sets import columns_mask, columns_of, n_pairs, words_for
from holdfast.core.words.dependency import Dependency, Fd, Ucc
from holdfast.errors import UsageError, shorten
from holdfast.functional.fd_explanation import FdExplanation, Measured, PinnedSince
from holdfast.functional.fd_past import FdHistory, against, cover_of, held_in, histories, inside
from holdfast.functional.key_reading import PAIRS_SHOWN, KeyReader
from holdfast.functional.refs import FdRef, fd_ref, key_ref, named_fds, read_approximate, read_fds

if TYPE_CHECKING:
    from holdfast.core.cover.violating_rows import ViolatingRows
    from holdfast.core.evidence.counted import CountedEvidence
    from holdfast.functional.best_fds import BestFds, By
    from holdfast.functional.fd_ranking import FdRanking
    from holdfast.functional.normal_forms.proposal import Decomposition, Form
    from holdfast.functional.repairs import Repairs

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]


class FdReader:
    """Functional dependencies: minimal ones, exact and approximate."""

    def __init__(self, tables: Tables, keys: KeyReader, pinned_since: PinnedSince) -> None:
        self._tables, self._keys, self._pinned_since = tables, keys, pinned_since
        self._past: Past[FdRef] = Past(tables, cover_of)
        self._counted: tuple[tuple[FileRef, ...], CountedEvidence] | None = None

    def ref(self, table: str, at: int | None = None) -> FdRef | None:
        """How the functional dependencies of a table are kept; None where they are not tracked."""
        return fd_ref(self._tables.state(table, at))

    def max_lhs(self, table: str, at: int | None = None) -> int | None:
        """The bound on left-hand sides that a table is tracked with, if there is one."""
        ref = self.ref(table, at)
        return None if ref is None else ref.max_lhs or None

    def listed(self, state: TableState) -> list[Fd]:
        """The minimal dependencies of a table, short ones first; none where they are not tracked."""
        ref = fd_ref(state)
        return [] if ref is None else named_fds(state, *self._cover(ref, state))

    def approximates(self, state: TableState, kind: str | None) -> bool:
        """Whether what almost holds is known; an error where it is asked for and cannot be."""
        ref = fd_ref(state)
        if ref is not None and ref.evidence_kind == "counted":
            return True
        if ref is not None and kind == "fd":
            raise UsageError(
                f"table {state.table!r} keeps witnessed evidence, which tells what holds but not what almost "
                "holds. Track it anew with --evidence counted to list dependencies with errors."
            )
        return False

    def approximate(
        self, state: TableState, at: int | None, kind: str | None, max_error: float
    ) -> list[Dependency]:
        """The minimal keys and functional dependencies within an error, each with its own."""
        masks, rhs, violations = self._approximate_cover(state, at, max_error)
        keys, fds = np.flatnonzero(rhs < 0), np.flatnonzero(rhs >= 0)
        near: list[Dependency] = []
        if kind != "fd":
            names, total = state.schema.names, n_pairs(state.n_rows)
            bound = self._keys.max_columns_of(state)
            ordered = sorted(
                zip(columns_of(masks[keys]), violations[keys].tolist(), strict=True),
                key=lambda k: (len(k[0]), k[0]),
            )
            near += [
                Ucc(state.table, tuple(names[c] for c in columns), n / total if n else 0.0)
                for columns, n in ordered
                if not 0 < bound < len(columns)
            ]
        if kind != "ucc":
            near += named_fds(state, masks[fds], rhs[fds], violations[fds])
        return near

    def error_of(self, table: str, lhs: Sequence[str], rhs: str | None = None) -> float:
        """The share of the pairs of rows that violate `lhs -> rhs` now; without `rhs`, the key `lhs` (g1).

        Exact, of any columns. From counted evidence, which stays open: well under a millisecond. Without
        it from the rows.
        """
        base, state = self._tables.current(table)
        self._needed(state)
        mask = columns_mask(self._tables.positions(state, base, lhs), words_for(len(state.schema)))
        column = -1 if rhs is None else self._tables.positions(state, base, [rhs])[0]
        return self._violations(state, mask, column) / max(1, n_pairs(state.n_rows))

    def explain(self, table: str, lhs: Sequence[str], rhs: str) -> FdExplanation:
        """Whether `lhs -> rhs` holds now, since which version, and the rows that violate or broke it.

        The dependency need not be in the cover. One that holds is read from the cover; of one that does not,
        is wider than the bound on left-hand sides, or is not tracked, the rows are looked at (one job).
        """
        base, state = self._tables.current(table)
        ref, names = fd_ref(state), state.schema.names
        positions = self._tables.positions(state, base, lhs)
        [column] = self._tables.positions(state, base, [rhs])
        mask = columns_mask(positions, words_for(len(names)))
        trivial = column in positions
        parts = [] if trivial or ref is None else self._inside(ref, state, mask, column)
        wide = ref is None or 0 < ref.max_lhs < len(positions)
        known = holds = trivial or bool(parts)
        measured = Measured()
        if not holds:
            with self._tables.opened(state) as relation:
                measured = Measured.of(relation, mask, column)
            # Only where a cover is silent can the rows say otherwise.
            holds = measured.violations == 0
        columns = tuple(names[p] for p in positions)
        in_cover = known and ref is not None
        since, turned = self._spell(state, base, mask, column, now=in_cover, wide=wide)
        if since is None:
            since, turned = self._pinned_since(base, state, Fd(table, columns, rhs), holds)
        minimal: bool | None = any(fd.lhs == columns for fd in parts)
        if holds and not known:
            # All that are narrower by one column are within the bound, or it cannot be told.
            minimal = True if ref is not None and len(positions) == ref.max_lhs + 1 else None
        return FdExplanation(
            table=table,
            lhs=columns,
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
            turned_by=() if turned is None else self._turned_by(turned, columns, rhs, holds=holds),
            violations=measured.violations,
            error=measured.violations / max(1, n_pairs(state.n_rows)),
            g3=measured.rows_to_remove / max(1, state.n_rows),
            rows_to_remove=measured.rows_to_remove,
            violating_rows=measured.violating_rows,
            groups=measured.groups,
            max_lhs=ref.max_lhs or None if ref is not None else None,
        )

    def life(self, table: str, lhs: Sequence[str], rhs: str) -> Life:
        """When `lhs -> rhs` held and when not, since the table was tracked."""
        base, state = self._tables.current(table)
        self._needed(state)
        positions = self._tables.positions(state, base, lhs)
        [column] = self._tables.positions(state, base, [rhs])
        mask = columns_mask(positions, words_for(len(state.schema)))

        def holds(ref: FdRef) -> bool | None:
            if column in positions or inside(*self._cover(ref, state), mask, column).any():
                return True
            return None if 0 < ref.max_lhs < len(positions) else False  # a cover with a bound is silent

        return self._past.life(table, base, holds)

    def against(self, state: TableState, table: str, lhs: Sequence[str], rhs: str) -> Against | None:
        """How many pairs of rows were against `lhs -> rhs`, and their share, by the state of a version."""
        return against(self._tables.root, state, lhs, rhs)

    def violations(
        self, table: str, lhs: Sequence[str], rhs: str, *, limit: int | None = None
    ) -> ViolatingRows:
        """The rows that violate `lhs -> rhs` now, by their values on the left: the largest groups first.

        Each with the value that most rows of its group have, and whether it is one of those to remove.
        Functional dependencies need not be tracked. One job; `limit`: of the first rows only.
        """
        from holdfast.functional.group_violations import fd_violations

        base, state = self._tables.current(table)
        positions = self._tables.positions(state, base, lhs)
        [column] = self._tables.positions(state, base, [rhs])
        return fd_violations(self._tables.rows(state), table, base, positions, column, limit)

    def repairs(self, table: str, fds: Sequence[tuple[Sequence[str], str]] = ()) -> Repairs:
        """Cells for which dependencies (left-hand side, right-hand side) vote for another value than theirs.

        Without any, the best of the table vote (`functional/repairs.py` says which). Nothing is applied.
        """
        from holdfast.functional.repairs import proposed

        base, state = self._tables.current(table)
        positions = [
            (self._tables.positions(state, base, lhs), self._tables.positions(state, base, [rhs])[0])
            for lhs, rhs in fds
        ]
        return proposed(self._tables.rows(state), table, base, positions)

    def log(self, table: str | None = None) -> list[FdHistory]:
        """For each dependency that was ever in the cover: when it held, and what it outlived.

        Since the table was tracked; of all tables that track functional dependencies, or of one. Short
        left-hand sides first. Cost: each different cover is compared once with all dependencies.
        """
        at = self._tables.newest()
        histories: list[FdHistory] = []
        for state in self._tables.chosen(table, at):
            if table is not None or fd_ref(state) is not None:
                histories += self._histories(state, self._needed(state), at or 0)
        return histories

    def held_versions(self, table: str, questions: U64, before: int) -> I64:
        """For how many versions of a table, up to that before one, each had held without a break: int64[n].

        `questions` are left-hand sides with the right-hand side in the last word (`fd_cover.keyed`).
        """
        masks, rhs = np.ascontiguousarray(questions[:, :-1]), questions[:, -1].astype(np.int32)
        n_columns = len(self._tables.state(table).schema)

        def holds(ref: FdRef, numbers: I64) -> NDArray[np.bool_]:
            return held_in(masks[numbers], rhs[numbers], *read_fds(self._tables.root, ref.cover, n_columns))

        return self._past.held(table, len(questions), before, holds)

    def cover(self, state: TableState) -> tuple[U64, I32] | None:
        """(left-hand sides, right-hand sides) of the minimal ones; None where they are not tracked."""
        ref = fd_ref(state)
        return None if ref is None else self._cover(ref, state)

    def since(self, state: TableState, fds: Sequence[Fd], until: int) -> I64:
        """Since which version each of some dependencies, which hold at one, has held: int64[n].

        For a few of them, without kernels. Cost: the part of each cover with their right-hand sides.
        """
        position = {name: i for i, name in enumerate(state.schema.names)}
        n_words = words_for(len(position))
        asked = [(columns_mask([position[c] for c in fd.lhs], n_words), position[fd.rhs]) for fd in fds]

        def holds(ref: FdRef, numbers: I64) -> NDArray[np.bool_]:
            masks, rhs = self._cover(ref, state)
            parts = {a: masks[rhs == a] for a in {asked[i][1] for i in numbers}}
            return np.array(
                [not (parts[a] & ~m).any(axis=1).all() for m, a in map(asked.__getitem__, numbers)]
            )

        return self._past.since(state.table, len(fds), until, holds)

    def agree_sets(self, table: str) -> list[tuple[tuple[str, ...], int]]:
        """The agree sets of a table with counted evidence, and how many pairs of rows have each."""
        evidence, names = self.evidence(table), self._tables.state(table).schema.names
        counted = zip(columns_of(evidence.masks), evidence.counts.tolist(), strict=True)
        return [(tuple(names[c] for c in columns), n) for columns, n in sorted(counted)]

    def evidence(self, table: str) -> CountedEvidence:
        """The same as masks and numbers."""
        state = self._tables.state(table)
        ref = self._needed(state)
        if ref.evidence_kind != "counted":
            raise UsageError(
                f"table {table!r} is tracked with witnessed evidence, which keeps only agree sets that "
                "matter. Track it anew with --evidence counted to see them all."
            )
        return self._counted_evidence(ref, state)

    def rank(self, table: str, top: int | None = None, *, max_error: float = 0.0) -> FdRanking:
        """The minimal functional dependencies that hold, best first, each with the reasons for its place.

        With `max_error` those that hold within an error. Rows are looked at where it matters (a few jobs).
        """
        from holdfast.core.rows.kernels.masks import without
        from holdfast.functional.fd_cover import keyed
        from holdfast.functional.fd_ranking import key_implied, rank_relation

        if top is not None and top < 1:
            raise UsageError(f"top is {top}; expected at least 1.")
        base, state = self._tables.current(table)
        masks, rhs = self._cover(self._needed(state), state)
        implied, errors = None, None
        if max_error:
            self.approximates(state, "fd")
            exact = keyed(masks, rhs)[key_implied(masks, rhs.astype(np.int64), len(state.schema))]
            masks, rhs, violations = self._approximate_cover(state, base, max_error)
            fds = rhs >= 0
            masks, rhs = masks[fds], rhs[fds]
            errors = violations[fds] / max(1, n_pairs(state.n_rows))
            implied = ~without(keyed(masks, rhs), exact)
        held = self.held_versions(table, keyed(masks, rhs), base + 1)
        history = self._past.stability(table, held, base)
        with self._tables.opened(state) as relation:
            return rank_relation(
                relation, table, masks, rhs, errors=errors, implied=implied, history=history, top=top
            )

    def best(
        self,
        table: str,
        n: int = 20,
        *,
        by: By = "score",
        max_lhs: int | None = None,
        seconds: float | None = 60.0,
    ) -> BestFds:
        """The n best dependencies of any table, tracked for them or not, found without listing all.

        `by` the score, as of a table without a history, or "redundancy" (`RankedFd`). Without what follows
        from a key, constant columns by name. After so many seconds only the first `n_certain` are exact.
        """
        from holdfast.functional.best_fds import best_fds

        _, state = self._tables.current(table)
        with self._tables.opened(state) as relation:
            return best_fds(relation, table, n, by, max_lhs=max_lhs, seconds=seconds)

    def normalise(
        self,
        table: str,
        form: Form = "bcnf",
        *,
        min_score: float | None = None,
        max_lhs: int | None = None,
        use_all: bool = False,
    ) -> Decomposition:
        """Tables in a normal form instead of this one, from the dependencies that hold and score well."""
        from holdfast.core.evidence.groups import column_statistics, measure_fds
        from holdfast.functional.normal_forms import normalise as forms
        from holdfast.functional.normal_forms.proposal import FORMS

        if form not in FORMS:
            raise UsageError(f"the normal form {shorten(form)} is not known. Forms: {', '.join(FORMS)}.")
        base, state = self._tables.current(table)
        ref, names = self._needed(state), state.schema.names
        ranking = self.rank(table)
        everything = columns_mask(range(len(names)), words_for(len(names)))
        with self._tables.opened(state) as relation:
            columns = column_statistics(relation)
            twice = measure_fds(relation, everything[None, :], np.array([-1])).violations[0] > 0
        ranked = [r for r in ranking.fds if r.measured]
        return forms.normalise(
            table,
            names,
            [(frozenset(fd.lhs), fd.rhs) for fd in self.listed(state)],
            form,
            {(frozenset(r.fd.lhs), r.fd.rhs): r.score for r in ranked},
            bool(twice),
            redundant={(frozenset(r.fd.lhs), r.fd.rhs): r.redundancy or 0 for r in ranked},
            keys=self._keys.combinations(state) or (),
            nullable=[n for n, nulls in zip(names, columns.n_nulls.tolist(), strict=True) if nulls],
            nulls=state.nulls,
            min_score=forms.MIN_SCORE if min_score is None else min_score,
            max_lhs=forms.MAX_LHS if max_lhs is None else max_lhs,
            use_all=use_all,
            bound=ref.max_lhs or None,
            taken=self._tables.names(base),
        )

    # -- inside -------------------------------------------------------------------------------

    def _needed(self, state: TableState) -> FdRef:
        """How the dependencies of a table are kept, or the error that they are not."""
        ref = fd_ref(state)
        if ref is None:
            raise UsageError(
                f"the functional dependencies of table {state.table!r} are not tracked, only: "
                f"{', '.join(state.kinds)}. Track it anew with --kinds fd to see them."
            )
        return ref

    def _cover(self, ref: FdRef, state: TableState) -> tuple[U64, I32]:
        """(left-hand sides, right-hand sides) of the minimal functional dependencies."""
        return read_fds(self._tables.root, ref.cover, len(state.schema))

    def _inside(self, ref: FdRef, state: TableState, mask: U64, column: int) -> list[Fd]:
        """The minimal dependencies with a part of the left-hand side, and the same right-hand side."""
        masks, rhs = self._cover(ref, state)
        chosen = inside(masks, rhs, mask, column)
        return named_fds(state, masks[chosen], rhs[chosen])

    def _key_inside(self, state: TableState, positions: Sequence[int]) -> tuple[str, ...] | None:
        """Some of the columns, minimal, that determine all others; None if they do not, as far as is known.

        A key, if keys are tracked. Else from the cover alone, which cannot tell duplicate rows apart.
        """
        if key_ref(state) is not None:
            keys = self._keys.inside(state, positions)
            if keys:
                return keys[0].columns
        cover, n_columns = self.cover(state), len(state.schema)
        if cover is None:
            return None
        (masks, rhs), n_words = cover, words_for(n_columns)

        def determine_all(columns: Sequence[int]) -> bool:
            parts = ~(masks & ~columns_mask(columns, n_words)).any(axis=1)
            return len({*columns, *rhs[parts].tolist()}) == n_columns

        key = list(positions)
        if not determine_all(key):
            return None
        for column in positions:
            fewer = [c for c in key if c != column]
            if determine_all(fewer):
                key = fewer
        return tuple(state.schema.names[c] for c in key)

    def _violations(self, state: TableState, mask: U64, column: int) -> int:
        """Pairs of rows that agree on the mask and, unless the column is -1, not on the column; exact."""
        ref = self._needed(state)
        lhs, rhs = mask[None, :], np.array([column], dtype=np.int64)
        if ref.evidence_kind == "counted":
            evidence = self._counted_evidence(ref, state)
            return int((evidence.agreeing(lhs) if column < 0 else evidence.violations(lhs, rhs))[0])
        from holdfast.core.evidence.groups import measure_fds

        with self._tables.opened(state) as relation:
            return int(measure_fds(relation, lhs, rhs).violations[0])

    def _approximate_cover(self, state: TableState, at: int | None, max_error: float) -> tuple[U64, I32, I64]:
        """(masks, rhs, violations): kept for the tracked error, else worked out from the evidence."""
        ref = self._needed(state)
        if ref.approximate is not None and max_error == ref.max_error:
            return read_approximate(self._tables.root, ref.approximate, len(state.schema))
        if not self._has_evidence(ref, state.table):
            those = f"only those within an error of {ref.max_error:g}" if ref.max_error else "only exact ones"
            raise UsageError(
                f"of table {state.table!r} at version {at} {those} are kept, not those within {max_error:g}: "
                "evidence is kept for the newest version only. Ask for that one, or for what is kept."
            )
        from holdfast.core.cover.approximate import approximate_cover

        evidence = self._counted_evidence(ref, state)
        near = approximate_cover(evidence, state.n_rows, max_error, ref.max_lhs)
        return near.masks, near.rhs, near.violations

    def _has_evidence(self, ref: FdRef, table: str) -> bool:
        """Whether evidence is that of the table's newest version; of older ones it may be gone."""
        head = self._tables.ledger.heads().get(table)
        newest = None if head is None else self.ref(table, head)
        return newest is not None and (newest.evidence, newest.deltas) == (ref.evidence, ref.deltas)

    def _counted_evidence(self, ref: FdRef, state: TableState) -> CountedEvidence:
        """The agree sets of a table with their numbers of pairs; opened once."""
        from holdfast.core.evidence.evidence_files import load_counted

        files = ref.evidence, *ref.deltas
        if self._counted is None or self._counted[0] != files:
            root, n_columns = self._tables.root, len(state.schema)
            self._counted = files, load_counted(root, "agreement", ref.evidence, ref.deltas, n_columns)
        return self._counted[1]

    def _spell(
        self, state: TableState, base: int, mask: U64, column: int, *, now: bool, wide: bool
    ) -> tuple[int | None, CommitRow | None]:
        """(since, turned): the first version of the current spell, and the commit if it was a turn.

        `now`: the cover says that it holds. `wide`: where a cover does not say so, it says nothing.
        """
        if wide and not now:
            return None, None
        trivial = bool((mask & columns_mask([column], len(mask))).any())

        def holds(ref: FdRef) -> bool:
            return trivial or bool(inside(*self._cover(ref, state), mask, column).any())

        since, turned = self._past.spell(state.table, base, holds, now=now)
        return (None, None) if wide and turned is not None else (since, turned)

    def _turned_by(
        self, turned: CommitRow, lhs: Sequence[str], rhs: str, *, holds: bool
    ) -> tuple[ChangeRow, ...]:
        """What a commit recorded of the dependency and of those inside it; itself first, then the widest."""
        wanted = "appeared" if holds else "broke"
        changes = self._tables.ledger.changes(
            turned.table, since=turned.version - 1, until=turned.version, kind="fd"
        )
        about = [
            c
            for c in changes
            if c.change == wanted and c.dependency["rhs"] == rhs and set(c.dependency["lhs"]) <= set(lhs)
        ]
        return tuple(sorted(about, key=lambda c: -len(c.dependency["lhs"])))[:PAIRS_SHOWN]

    def _histories(self, state: TableState, ref: FdRef, base: int) -> list[FdHistory]:
        runs = self._past.runs(state.table, base)
        covers = [self._cover(run.ref, state) for run in runs]
        return histories(state, runs, covers, self._cover(ref, state), ref.max_lhs or None)

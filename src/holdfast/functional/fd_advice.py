"""What functional dependencies are good for: which of them deserve a look, and which tables they suggest.

FDs are many, people are few. `rank_fds` puts first what explains much and is no accident; `normalise`
proposes tables in which what the best of them say is stored once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.table_state import TableState, columns_of
from holdfast.errors import UsageError, shorten
from holdfast.functional.fd_reading import FdReader
from holdfast.history import I32, U64, columns_mask, n_pairs

if TYPE_CHECKING:
    from holdfast.core.cover.stability import Stability
    from holdfast.functional.fd_ranking import Ranking
    from holdfast.functional.normal_forms.proposal import Decomposition, Form


class FdAdviser(FdReader):
    """Ranking and normal forms."""

    def agree_sets(self, table: str) -> list[tuple[tuple[str, ...], int]]:
        """The agree sets of a table with counted evidence, and how many pairs of rows have each."""
        state = self._needs_fds(self._current(table)[1])
        assert state.fds is not None
        if state.fds.evidence_kind != "counted":
            raise UsageError(
                f"table {table!r} is tracked with witnessed evidence, which keeps only agree sets that "
                "matter. Track it anew with --evidence counted to see them all."
            )
        evidence, names = self._counted_evidence(state), state.schema.names
        found = zip(columns_of(evidence.masks), evidence.counts.tolist(), strict=True)
        return [(tuple(names[c] for c in columns), n) for columns, n in sorted(found)]

    def rank_fds(self, table: str, top: int | None = None, *, max_error: float = 0.0) -> Ranking:
        """The minimal functional dependencies that hold, best first, each with the reasons for its place.

        With `max_error` those that hold within an error. Rows are looked at where it matters (a few jobs).
        """
        from holdfast.core.rows.kernels.masks import without
        from holdfast.functional.fd_cover import keyed
        from holdfast.functional.fd_ranking import key_implied, rank_relation

        if top is not None and top < 1:
            raise UsageError(f"top is {top}; expected at least 1.")
        base, state = self._current(table)
        masks, rhs = self._fd_cover(self._needs_fds(state))
        implied, errors = None, None
        if max_error:
            self._approximates(state, "fd")
            exact = keyed(masks, rhs)[key_implied(masks, rhs.astype(np.int64), len(state.schema))]
            masks, rhs, violations = self._approximate_cover(state, base, max_error)
            fds = rhs >= 0
            masks, rhs = masks[fds], rhs[fds]
            errors = violations[fds] / max(1, n_pairs(state.n_rows))
            implied = ~without(keyed(masks, rhs), exact)
        history = self._stability(state, masks, rhs, base)
        with self._opened(state) as relation:
            return rank_relation(
                relation, table, masks, rhs, errors=errors, implied=implied, history=history, top=top
            )

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
        base, state = self._current(table)
        fds = self._needs_fds(state).fds
        assert fds is not None
        masks, rhs = self._fd_cover(state)
        names, n_words = state.schema.names, self._n_words(state)
        ranking = self.rank_fds(table)
        everything = columns_mask(range(len(names)), n_words)
        with self._opened(state) as relation:
            columns = column_statistics(relation)
            twice = measure_fds(relation, everything[None, :], np.array([-1])).violations[0] > 0
        ranked = [r for r in ranking.fds if r.measured]
        return forms.normalise(
            table,
            names,
            [(frozenset(fd.lhs), fd.rhs) for fd in self._fds(state, masks, rhs)],
            form,
            {(frozenset(r.fd.lhs), r.fd.rhs): r.score for r in ranked},
            bool(twice),
            redundant={(frozenset(r.fd.lhs), r.fd.rhs): r.redundancy or 0 for r in ranked},
            keys=self._keys_of(state) or (),
            nullable=[n for n, nulls in zip(names, columns.n_nulls.tolist(), strict=True) if nulls],
            nulls=state.nulls,
            min_score=forms.MIN_SCORE if min_score is None else min_score,
            max_lhs=forms.MAX_LHS if max_lhs is None else max_lhs,
            use_all=use_all,
            bound=fds.max_lhs or None,
            taken=self.tables(base),
        )

    def _stability(self, state: TableState, masks: U64, rhs: I32, base: int) -> Stability:
        """What each dependency has outlived since it last broke."""
        from holdfast.core.cover.stability import Stability

        versions = self.held_versions(state.table, masks, rhs, base + 1)
        batches = [c for c in self._fd_past(state.table, base) if c.is_batch]
        # The version that brought a dependency is not one that it outlived.
        changed = np.cumsum([0, *(c.n_inserted + c.n_deleted for c in reversed(batches))])
        outlived: NDArray[np.int64] = changed[np.clip(versions - 1, 0, len(changed) - 1)]
        return Stability(versions, outlived)

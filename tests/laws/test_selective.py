"""What a batch is probed for and what is validated: a choice of cost, whatever it is the covers are exact."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.core.evidence import selective
from holdfast.core.rows.kernels.masks import mask_of
from holdfast.functional import fd_witnessed, keys
from reference.fds import minimal_fds
from reference.keys import minimal_uniques

NAMES = ("a", "b", "c", "d")
Row = tuple[int | None, ...]
ROWS = st.lists(
    st.tuples(*(st.sampled_from([None, *range(n)]) for n in (2, 3, 4, 9))), min_size=1, max_size=12
)


def table(rows: list[Row]) -> pa.Table:
    return pa.table({name: pa.array([r[c] for r in rows], pa.int64()) for c, name in enumerate(NAMES)})


@settings(deadline=None)
@given(st.data())
def test_any_choice_is_exact(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Each candidate that has an index is probed or validated, as Hypothesis likes."""
    rows = data.draw(ROWS)
    by_law = selective.selective

    def chosen(*asked: object) -> np.ndarray:
        probed: np.ndarray = by_law(*asked)  # type: ignore[arg-type]
        n = len(probed)
        return probed & np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), np.bool_)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "selective", chosen)
        patch.setattr(fd_witnessed, "selective", chosen)
        with holdfast.open(tmp_path_factory.mktemp("w") / "w", engine="inline") as ws:
            ws.track("t", table(rows), kinds=("ucc", "fd"), evidence="witnessed")
            for _ in range(data.draw(st.integers(1, 3))):
                batch = data.draw(ROWS)
                rows = [*rows, *batch]
                ws.apply("t", inserts=table(batch))
                uniques = minimal_uniques(rows, len(NAMES), "equal")
                assert {frozenset(d.columns) for d in ws.dependencies("ucc")} == {
                    frozenset(NAMES[c] for c in key) for key in uniques
                }
                assert {(frozenset(d.lhs), d.rhs) for d in ws.dependencies("fd")} == {
                    (frozenset(NAMES[c] for c in lhs), NAMES[rhs])
                    for lhs, rhs in minimal_fds(rows, len(NAMES), "equal")
                }


class Table:
    """What the choice asks of a relation: how many rows and values it has."""

    def __init__(self, n_rows: int, distinct: list[int]) -> None:
        self.n_rows, self._distinct = n_rows, distinct

    def distinct(self) -> list[int]:
        return self._distinct

    def ranking(self) -> list[int]:
        return sorted(range(len(self._distinct)), key=lambda c: -self._distinct[c])


def test_what_costs_less() -> None:
    """A million rows; columns of as many values, of 1,000, of ten, and of 1,000 without an index."""
    relation = Table(1_000_000, [1_000_000, 1_000, 10, 1_000])
    sets = [[], [0], [2], [3], [0, 2], [1, 2], [2, 3], [1, 3]]
    masks = np.array([mask_of(columns, 1) for columns in sets])

    def probed(n_batch: int, pairs_per_row: float = 1.0) -> list[list[int]]:
        chosen = selective.selective(relation, masks, [0, 1, 2], n_batch, pairs_per_row)  # type: ignore[arg-type]
        return [columns for columns, is_chosen in zip(sets, chosen, strict=True) if is_chosen]

    everything = [[0], [2], [0, 2], [1, 2], [2, 3], [1, 3]]
    assert probed(1) == everything
    # The lists of [2, 3] have 100,000 rows each, those of [1, 2] and [1, 3] have 1,000, that of [0, 2] one.
    assert probed(9) == everything
    assert probed(11) == [[0], [2], [0, 2], [1, 2], [1, 3]]
    assert probed(1_100) == [[0], [2], [0, 2]]
    assert probed(1_100, pairs_per_row=10.0) == [[0], [2], [0, 2], [1, 2], [1, 3]]
    assert probed(2_000_000) == [[0], [2]]
    assert selective.selective(relation, masks, [], 1, 1.0).tolist() == [False] * 8  # type: ignore[arg-type]

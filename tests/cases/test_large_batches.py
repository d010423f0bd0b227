"""Batches that are much of a table compare no more pairs of rows than finding everything anew does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import holdfast
from holdfast import Workspace
from holdfast.core.evidence import comparison

N = 60
DRAW = np.random.default_rng(5)
ROWS = pa.table(
    {"n": range(N), "a": DRAW.integers(0, 4, N), "b": DRAW.integers(0, 3, N), "c": DRAW.integers(0, 9, N)}
)
KINDS = {"fd": {"max_error": 0.2}, "dc": {"max_error": 0.2, "max_predicates": 3, "within_columns": True}}


def pairs(n_rows: int) -> int:
    return n_rows * (n_rows - 1) // 2


def told(ws: Workspace, kind: str, table: str) -> list[str]:
    """What holds, and what nearly does, with its error."""
    held = [*ws.dependencies(table=table), *ws.dependencies(table=table, kind=kind, max_error=0.2)]
    return sorted(f"{d} {d.error:.9f}".replace(f"{table}: ", "") for d in held)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_gone", [1, 15, 20, 45, 59])
def test_what_goes_or_what_stays_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, n_gone: int
) -> None:
    compared: list[int] = []
    compare = comparison._compared

    def counting(relation: Any, work: Sequence[Any], space: Any) -> Any:
        compared.append(sum(n for _, n in work))
        return compare(relation, work, space)

    monkeypatch.setattr(comparison, "_compared", counting)
    order = np.random.default_rng(n_gone).permutation(N)
    options: dict[str, Any] = {"kinds": (kind,), "evidence": "counted", **KINDS[kind]}
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", ROWS.slice(0, 40), **options)
        ws.apply("t", inserts=ROWS.slice(40))  # of two segments, both of which lose rows
        compared.clear()
        ws.apply("t", deletes=ROWS.take(order[:n_gone]))
        rest = N - n_gone
        assert compared == [min(pairs(N) - pairs(rest), pairs(rest))]
        # And then rows come, beside segments of which much is deleted.
        ws.apply("t", inserts=ROWS.take(order[:5]), deletes=ROWS.take(order[-1:]))
        ws.track("u", ROWS.take([*order[n_gone:-1], *order[:5]]), **options)
        assert told(ws, kind, "t") == told(ws, kind, "u")

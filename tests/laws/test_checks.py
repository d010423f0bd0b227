"""Pinned conditions along any history of batches: as many rows violate them as the definition says."""

from __future__ import annotations

import tempfile
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.core.rows import condition_tests
from holdfast.core.words.condition import read_condition
from holdfast.denial import checks
from holdfast.errors import UsageError
from reference.conditions import truth

FORMULAS = (
    "n > 0",
    "word in ('a', 'b')",
    "word is not null",
    "not (n < 0 and word = 'c')",
    "n != 2 or word is null",
)
ROW = st.tuples(st.none() | st.integers(-1, 2), st.none() | st.sampled_from(["a", "b", "c"]))
Row = tuple[Any, ...]


def table(rows: list[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    types = (pa.int64(), pa.int64(), pa.large_string())
    arrays = [pa.array(values, type_) for values, type_ in zip(columns, types, strict=True)]
    return pa.table(arrays, names=["id", "n", "word"])


@given(st.data(), st.sampled_from([1, 16]))
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_any_history(data: st.DataObject, n_witnesses: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "WITNESSES", n_witnesses)
        patch.setattr(condition_tests, "WITNESSES", n_witnesses)
        rows: dict[int, Row] = {}
        ws = holdfast.open(f"{folder}/my.hold", engine="inline")
        for step in range(data.draw(st.integers(1, 5))):
            gone = data.draw(st.lists(st.sampled_from(sorted(rows)), unique=True)) if rows else []
            come = [(10 * step + i, *row) for i, row in enumerate(data.draw(st.lists(ROW, max_size=5)))]
            if step == 0:
                ws.track("t", table(come), row_key=["id"])
                for formula in FORMULAS[:3]:
                    ws.pin_rule(formula, table="t")
            elif gone or come:
                deletes = {"deletes": pa.table({"id": pa.array(gone, pa.int64())})} if gone else {}
                ws.apply("t", **deletes, **({"inserts": table(come)} if come else {}))
            rows = {i: row for i, row in rows.items() if i not in gone} | {row[0]: row for row in come}
            if step == 1:
                for formula in FORMULAS[3:]:
                    ws.pin_rule(formula, table="t")
            if data.draw(st.booleans()):
                ws.close()
                ws = holdfast.open(f"{folder}/my.hold", engine="inline")
            check(ws, rows)
        ws.close()


def check(ws: holdfast.Workspace, rows: dict[int, Row]) -> None:
    schema = ws.schema("t")
    for pin in ws.pins("t"):
        assert pin.condition is not None
        node = read_condition(pin.condition.formula, schema)
        against = [
            row for row in rows.values() if truth(node, dict(zip(schema.names, row, strict=True))) is False
        ]
        assert (pin.n_violations, pin.holds) == (len(against), not against)
        explanation = ws.explain("t", pin.condition.formula)
        assert explanation.holds == pin.holds
        listed = ws.violations("t", pin.condition.formula)
        ids = [record["id"] for record in listed.to_arrow().to_pylist()]
        assert sorted(ids) == sorted(row[0] for row in against)
        assert {row.values["id"] for row in explanation.witnesses} <= set(ids)
        assert bool(explanation.witnesses) == bool(against)


def test_row_rules_and_dependencies_are_pinned_too(tmp_path: Any) -> None:
    rows = pa.table({"net": [1, 5], "gross": pa.array([1.5, 4.5]), "zip": ["a", "a"], "city": ["x", "x"]})
    with holdfast.open(tmp_path / "my.hold", engine="inline") as ws:
        ws.track("t", rows)
        assert ws.pin_rule("net <= gross").n_violations == 1
        pin = ws.pin_rule("zip -> city")
        assert (pin.holds, str(pin)) == (True, "zip -> city")
        more = pa.table({"net": [2], "gross": [2.0], "zip": ["a"], "city": ["y"]})
        broken = {str(pin): pin.n_violations for pin in ws.check("t", inserts=more).pins}
        assert broken == {"net <= gross": 1, "zip -> city": 4}
        ws.pin_rule("zip -> city", remove=True)
        assert [str(pin) for pin in ws.pins()] == ["net <= gross"]


def test_pinned_twice_removed_once(tmp_path: Any) -> None:
    with holdfast.open(tmp_path / "my.hold", engine="inline") as ws:
        ws.track("t", table([(1, 5, "a"), (2, -1, None)]))
        assert ws.pin_rule("n>0", table="t").n_violations == 1
        assert ws.pin_rule("t.n > 0").n_violations == 1
        assert [str(pin) for pin in ws.pins()] == ["n > 0"]
        change = ws.check("t", inserts=table([(3, -5, "b")]))
        [pin] = change.pins
        assert (pin.n_violations, pin.witnesses[0][0].values["id"]) == (2, 3)
        assert ws.explain("t", "n > 0").since == 2
        assert ws.explain("t", "n > -9").since is None
        ws.pin_rule("n > 0", remove=True)
        assert ws.pins() == []
        with pytest.raises(UsageError, match="is not pinned"):
            ws.pin_rule("n > 0", remove=True)

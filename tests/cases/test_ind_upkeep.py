"""What is kept beside inclusions: pins, explanations, sizes, dropped columns, the work of other writers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import holdfast
from holdfast.core.rows.writer import Writer
from holdfast.core.words.dependency import Side
from holdfast.errors import ConflictError, UsageError
from holdfast.inclusions import composite_state as stored

KINDS = ("ucc", "ind")
EVENTS = ("broke", "dropped")
Open = Callable[[], holdfast.Workspace]


@pytest.fixture
def ws(tmp_path: Path) -> holdfast.Workspace:
    ws = holdfast.open(tmp_path / "w", engine="inline")
    orders = pa.table(
        {"id": [1, 2, 3], "who": [10, 11, 10], "what": ["oar", "rope", "oar"], "price": [5, 7, 5]}
    )
    customers = pa.table({"number": [10, 11, 12]})
    products = pa.table({"name": ["oar", "rope"], "costs": [5, 7], "unit": ["m", "m"]})
    ws.track_all({"orders": orders, "customers": customers, "products": products}, kinds=KINDS)
    return ws


def inds(ws: holdfast.Workspace) -> set[str]:
    return {str(d) for d in ws.dependencies(kind="ind")}


WHO, NUMBER = Side("orders", ("who",)), Side("customers", ("number",))


def stranger(who: int = 99) -> pa.Table:
    return pa.table({"id": [4], "who": [who], "what": ["oar"], "price": [5]})


class TestPins:
    def test_a_pinned_inclusion_breaks_and_heals(self, ws: holdfast.Workspace) -> None:
        pin = ws.pin("orders", ["who"], referenced=NUMBER)
        assert pin.holds
        assert pin.referenced == NUMBER
        checked = ws.check("orders", inserts=stranger())
        assert [str(p) for p in checked.broken_pins] == ["orders[who] in customers[number]"]
        assert "PINNED, does not hold: orders[who] in customers[number]" in str(checked)
        assert all(p.holds for p in ws.pins())  # nothing was applied
        ws.apply("orders", inserts=stranger())
        assert [p.holds for p in ws.pins("orders")] == [False]
        assert ws.pins("products") == []
        healed = ws.apply("customers", inserts=pa.table({"number": [99]}))
        assert [p.holds for p in healed.pins] == [True]
        assert [p.holds for p in ws.pins(at=ws.version - 1)] == [False]

    def test_a_batch_of_another_table_does_not_mention_it(self, ws: holdfast.Workspace) -> None:
        ws.pin("orders", ["who"], referenced=NUMBER)
        change = ws.apply("products", inserts=pa.table({"name": ["keel"], "costs": [9], "unit": ["m"]}))
        assert change.pins == ()

    def test_pins_survive_a_restart_and_go_with_their_table(self, ws: holdfast.Workspace) -> None:
        ws.pin("orders", ["who"], referenced=NUMBER)
        again = holdfast.open(ws.root, engine="inline")
        assert [p.referenced for p in again.pins()] == [NUMBER]
        again.drop("customers")
        assert again.pins() == []

    def test_unpinned(self, ws: holdfast.Workspace) -> None:
        ws.pin("orders", ["who"], referenced=NUMBER)
        ws.pin("orders", ["who"], referenced=NUMBER, remove=True)
        assert ws.pins() == []
        with pytest.raises(UsageError, match="is not pinned"):
            ws.pin("orders", ["who"], referenced=NUMBER, remove=True)

    def test_composite_in_any_order_of_its_columns(self, ws: holdfast.Workspace) -> None:
        pin = ws.pin("orders", ["price", "what"], referenced=Side("products", ("costs", "name")))
        assert pin.columns == ("what", "price")
        assert pin.referenced == Side("products", ("name", "costs"))
        wrong = pa.table({"id": [4], "who": [10], "what": ["oar"], "price": [7]})
        change = ws.apply("orders", inserts=wrong)
        assert [p.holds for p in change.pins] == [False]
        [broke] = [c for c in change.broke if len(c.dependency.dependent.columns) == 2]
        assert broke.values == (["oar", 7],)
        assert broke.witnesses[0][0].values["id"] == 4

    def test_what_cannot_be_pinned(self, ws: holdfast.Workspace) -> None:
        with pytest.raises(UsageError, match="different numbers of columns"):
            ws.pin("orders", ["who", "what"], referenced=NUMBER)
        with pytest.raises(UsageError, match="does not hold now"):
            ws.pin("orders", ["id", "what"], referenced=Side("products", ("costs", "name")))
        assert ws.pins() == []


class TestExplanations:
    def test_what_is_missing_and_since_when(self, ws: holdfast.Workspace) -> None:
        before = ws.inds.explain(WHO, NUMBER)
        assert (before.holds, before.since, before.turned, before.missing) == (True, 1, None, ())
        ws.apply("orders", inserts=stranger(), batch_id="monday")
        ws.apply("orders", inserts=stranger(10))
        told = ws.inds.explain(WHO, NUMBER)
        assert not told.holds
        assert (told.since, told.ind.missing_values, told.ind.missing_rows) == (2, 1, 1)
        assert told.turned is not None
        assert told.turned.batch_id == "monday"
        [(value, row)] = told.missing
        assert value == 99
        assert row.values["id"] == 4
        assert told.to_dict()["missing"][0]["value"] == 99

    def test_what_cannot_be_explained(self, ws: holdfast.Workspace) -> None:
        with pytest.raises(UsageError, match="always included in itself"):
            ws.inds.explain(WHO, WHO)
        ws.track("plain", pa.table({"a": [1]}))
        with pytest.raises(UsageError, match="takes no part in inclusions"):
            ws.inds.explain(Side("plain", ("a",)), NUMBER)


def test_columns_without_null(tmp_path: Path) -> None:
    ws = holdfast.open(tmp_path / "w", engine="inline")
    ws.track("t", pa.table({"a": [1, None], "b": [1, 2]}), kinds=("ind",))
    assert ws.inds.not_null("t") == {"b"}
    ws.apply("t", deletes=pa.table({"a": pa.array([None], pa.int64()), "b": [2]}))
    assert ws.inds.not_null("t") == {"a", "b"}


def test_the_longest_values(tmp_path: Path) -> None:
    ws = holdfast.open(tmp_path / "w", engine="inline")
    ws.track("t", pa.table({"a": ["x", "öö", None], "n": [1, 2, 3], "b": [b"", b"\0" * 9, b"z"]}))
    ws.apply("t", inserts=pa.table({"a": ["", "𝄞𝄞"], "n": [4, 5], "b": pa.nulls(2, pa.binary())}))
    assert ws.inds.longest("t") == {"a": 8, "b": 9}
    ws.track("none", pa.table({"a": pa.array([], pa.string())}))
    assert ws.inds.longest("none") == {"a": 0}


def test_an_append_only_table_takes_less_space(tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    rows = pa.table({"a": np.arange(20_000), "b": chance.integers(0, 50, 20_000), "c": chance.random(20_000)})
    sizes = {}
    for append_only in (False, True):
        ws = holdfast.open(tmp_path / str(append_only), engine="inline")
        ws.track("t", rows, kinds=("ind",), append_only=append_only)
        sizes[append_only] = ws.sizes()
    assert sizes[True]["locators"] == 0
    assert sizes[True]["values"] < sizes[False]["values"]
    assert sizes[True]["total"] < 0.8 * sizes[False]["total"]
    files = [p for folder in ("tables", "values") for p in (tmp_path / "True" / folder).rglob("*-*.*")]
    assert sum(p.stat().st_size for p in files) == sizes[True]["total"]


def test_entries_of_dropped_tables_leave_the_runs(tmp_path: Path) -> None:
    ws = holdfast.open(tmp_path / "w", engine="inline")
    ws.track("small", pa.table({"a": list(range(10))}), kinds=("ind",))
    ws.track("large", pa.table({"b": list(range(5000))}), kinds=("ind",))
    before = ws.sizes()["values"]
    ws.drop("large")
    assert ws.sizes()["values"] < before / 10
    assert inds(ws) == set()
    ws.track("large", pa.table({"b": list(range(5, 12))}), kinds=("ind",))
    assert inds(ws) == set()
    ws.apply("large", inserts=pa.table({"b": list(range(5))}))
    assert inds(ws) == {"small[a] in large[b]"}
    assert ws.verify() > 0


class TestWriters:
    """Two writers: what one commits while the other is about to."""

    def between(
        self, monkeypatch: pytest.MonkeyPatch, first: holdfast.Workspace, do: Callable[[], Any]
    ) -> None:
        """Do something just before the first commit of a workspace."""
        append, done = Writer.append, []

        def late(self: Any, *arguments: Any) -> int:
            if self is first.writer and not done:
                done.append(True)
                do()
            return append(self, *arguments)

        monkeypatch.setattr(Writer, "append", late)

    def test_of_different_tables(self, ws: holdfast.Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
        other = holdfast.open(ws.root, engine="inline")
        self.between(monkeypatch, ws, lambda: other.apply("customers", inserts=pa.table({"number": [99]})))
        change = ws.apply("orders", inserts=stranger())
        assert change.version == 3
        assert [c for c in change.broke if c.dependency.kind == "ind"] == []  # the customer has come first
        assert "orders[who] in customers[number]" in inds(ws)
        assert ws.inds.explain(WHO, NUMBER).holds

    def test_of_a_new_table(self, ws: holdfast.Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
        other = holdfast.open(ws.root, engine="inline")
        new = pa.table({"ref": [11, 12]})
        self.between(monkeypatch, ws, lambda: other.track("visits", new, kinds=KINDS))
        ws.track("calls", new, kinds=KINDS)
        expected = {
            "visits[ref] in calls[ref]",
            "calls[ref] in visits[ref]",
            "calls[ref] in customers[number]",
        }
        assert expected < inds(ws)

    def test_of_one_table(self, ws: holdfast.Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
        other = holdfast.open(ws.root, engine="inline")
        self.between(monkeypatch, ws, lambda: other.apply("orders", inserts=stranger(12)))
        with pytest.raises(ConflictError, match="Run it again"):
            ws.apply("orders", inserts=stranger())
        assert ws.n_rows("orders") == 4
        assert ws.inds.explain(WHO, NUMBER).holds


class TestManyAlike:
    """Columns with few values are included in each other; their combinations must not be the work."""

    def flags(self, n_rows: int, n_flags: int) -> dict[str, Any]:
        chance = np.random.default_rng(n_rows)
        return {f"f{i}": chance.integers(0, 2, n_rows) for i in range(n_flags)}

    def test_flags_beside_a_key(self, tmp_path: Path) -> None:
        ws = holdfast.open(tmp_path / "w", engine="inline")
        left = pa.table({"ref": list(range(200)), **self.flags(200, 8)})
        right = pa.table({"id": list(range(300)), **self.flags(300, 8)})
        change = ws.track_all({"left": left, "right": right}, kinds=KINDS, max_columns=2)
        assert change.accesses["composites_checked"] < 3000  # flags among themselves are left alone
        wide = [d for d in inds(ws) if "," in d]
        assert wide == []

    def test_too_many_are_told(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A bound stops the search, and never a batch; what is listed is all there is up to some arity."""
        rows = pa.table({name: list(range(9)) for name in "abcd"})
        both = {"left": rows, "right": rows}
        whole = holdfast.open(tmp_path / "all", engine="inline")
        whole.track_all(both, kinds=KINDS)
        wide = {n: {d for d in inds(whole) if d.count(",") == 2 * (n - 1)} for n in range(1, 5)}
        ws = holdfast.open(tmp_path / "w", engine="inline")
        # Of two tables there are 72 combinations of 2 columns, 96 of 3; of a table with itself, fewer.
        within = {d for d in inds(whole) if "left" not in d or "right" not in d}
        monkeypatch.setattr(stored, "MAX_NODES", 80)
        change = ws.track_all(both, kinds=KINDS)
        assert inds(ws) == wide[1] | wide[2] | within
        note = "composite inclusions of 'left' in 'right' are listed up to 2 columns: more than 80"
        assert f"{note} combinations of 3" in change.notes
        assert note in str(change)
        assert ws.inds.notes("left") == change.notes
        monkeypatch.setattr(stored, "MAX_NODES", 1)
        change = ws.apply("right", deletes=rows.slice(8))
        events = {event: {str(c.dependency) for c in change.changes if c.event == event} for event in EVENTS}
        of_right = {d for d in wide[2] | wide[3] & within | wide[4] & within if "right" in d}
        assert events["dropped"] == {d for d in of_right if d.startswith("right")}
        assert {d for d in events["broke"] if "," in d} == of_right - events["dropped"]
        assert {d for d in inds(ws) if "," in d and "right" in d} == set()
        assert any("'right' in 'left' are not listed: more than 1 comb" in n for n in change.notes)
        monkeypatch.undo()
        last = rows.slice(8)
        change = ws.apply_all({"left": {"inserts": last, "deletes": last}, "right": {"inserts": last}})
        assert change.notes == ()
        assert inds(ws) == inds(whole)

    def test_pins_beyond_what_is_listed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        rows = pa.table({"id": list(range(9)), **self.flags(9, 2)})
        ws = holdfast.open(tmp_path / "w", engine="inline")
        ws.track_all({"left": rows, "right": rows}, kinds=KINDS, max_columns=2)
        columns = ("id", "f0", "f1")
        ws.pin("left", columns, referenced=Side("right", columns))
        monkeypatch.setattr(stored, "MAX_NODES", 1)
        stranger = pa.table({"id": [50], "f0": [0], "f1": [1]})
        change = ws.apply_all({"left": {"inserts": stranger}, "right": {"inserts": stranger}})
        assert [p.holds for p in change.pins] == [True]
        other = pa.table({"id": [50], "f0": [1], "f1": [1]})
        change = ws.apply("right", before=stranger, after=other)
        assert [p.holds for p in change.pins] == [False]
        change = ws.apply("left", deletes=stranger)
        assert [p.holds for p in change.pins] == [True]
        with pytest.raises(UsageError, match="does not hold now"):
            ws.pin("right", columns, referenced=Side("left", columns))
        ws.apply("left", inserts=other)
        assert ws.pin("right", columns, referenced=Side("left", columns)).holds

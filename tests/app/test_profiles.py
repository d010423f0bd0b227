"""Column profiles as people and programs see them: the command, the readers, the suggestions."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import holdfast
from app.shell import WHAT_IS_IMPORTED, Shell
from holdfast.core.rows.table_state import TableState
from holdfast.errors import DamagedFileError, UnknownColumnError, UsageError
from holdfast.profile import column_counts
from holdfast.profile.column_rules import round_up
from holdfast.profile.profile_class import ProfileClass, Profiles
from holdfast.profile.tally import Tally

N = 200
ORDERS = pa.table(
    {
        "id": list(range(1, N + 1)),
        "status": ["open", "done"] * (N // 2),
        "sku": [f"AB-{i:04}" for i in range(N)],
        "rating": [i % 5 + 1 for i in range(N)],
        "price": [i / 7 for i in range(N)],
        "share": [i / N for i in range(N)],
        "placed": [dt.datetime(2021, 3, 4) + dt.timedelta(hours=i) for i in range(N)],
        "mail": [f"{'jo' * (i % 7 + 1)}{i}@x.org" for i in range(N)],
        "note": [None if i % 4 else "call first" for i in range(N)],
        "paid": [i % 2 == 0 for i in range(N)],
    }
)


@pytest.fixture
def ws(tmp_path: Path) -> holdfast.Workspace:
    ws = holdfast.open(tmp_path / "w", engine="inline")
    ws.track("orders", ORDERS, kinds=("profile",))
    return ws


def changed(row: int, **values: object) -> pa.Table:
    """One row of the table with other values."""
    [fields] = ORDERS.slice(row, 1).to_pylist()
    return pa.Table.from_pylist([{**fields, **values}], schema=ORDERS.schema)


def test_rules(ws: holdfast.Workspace) -> None:
    rules = {d.name for d in ws.dependencies("profile") if not d.name.endswith("is not null")}
    assert rules == {
        "id >= 1",
        "status in ('done', 'open')",
        "sku matches '[A-Z]{2}-[0-9]{4}'",
        "rating >= 1 and rating <= 5",
        "price >= 0",
        "share >= 0 and share <= 1",
        "placed >= '2020-01-01T00:00:00'",
        r"mail matches '[a-z]+[0-9]+@[a-z]\.[a-z]{3}'",
        "note in ('call first')",
    }


@pytest.mark.parametrize(
    ("values", "broken"),
    [
        ({"status": "opne"}, "status in ('done', 'open')"),
        ({"status": None}, "status is not null"),
        ({"sku": "AB-12345"}, "sku matches '[A-Z]{2}-[0-9]{4}'"),
        ({"rating": 6}, "rating >= 1 and rating <= 5"),
        ({"price": -0.5}, "price >= 0"),
        ({"placed": dt.datetime(1970, 1, 1)}, "placed >= '2020-01-01T00:00:00'"),
    ],
    ids=str,
)
def test_what_breaks_is_told_with_its_row(
    ws: holdfast.Workspace, values: dict[str, object], broken: str
) -> None:
    change = ws.apply("orders", inserts=changed(3, **values))
    [lost] = change.broke
    assert lost.dependency.name == broken
    assert lost.reason == "does not hold any more: 1 new row violates it"
    [[row]] = lost.witnesses
    assert row.row_id >> 32 == 1
    ws.apply("orders", deletes=changed(3, **values))
    assert broken in {d.name for d in ws.dependencies("profile")}
    told = ws.explain("orders", broken).to_dict()
    assert (told["holds"], told["since"]) == (True, 3)


def test_what_the_log_says_of_a_rule_is_so_until_rows_come(tmp_path: Path) -> None:
    """A rule that another one implies may be violated later on: no list of changes has that."""
    asked = "x in ('a', 'b')"
    with holdfast.open(tmp_path / "w", engine="inline") as ws:

        def rows(first: int, texts: str) -> pa.Table:
            return pa.table({"n": range(first, first + len(texts)), "x": list(texts)})

        def said() -> list[tuple[int, int | None, bool | None]]:
            return [(s.first, s.last, s.holds) for s in ws.profiles.life("t", asked)]

        ws.track("t", rows(0, "aaaabbbb"), row_key=["n"], kinds=("profile",))
        ws.apply("t", deletes=rows(4, "bbbb"))
        assert asked not in {d.name for d in ws.dependencies("profile")}
        assert said() == [(1, None, True)]
        ws.apply("t", inserts=rows(8, "bbbb"))
        assert said() == [(1, None, True)]
        assert ws.explain("t", asked).since == 1
        assert ws.since("t", [d for d in ws.dependencies("profile") if d.name == asked]) == [1]
        ws.apply("t", deletes=rows(8, "bbbb"))
        ws.apply("t", inserts=rows(12, "z"))
        assert not ws.explain("t", asked).holds
        assert said() == [(1, 4, True), (5, None, None)]
        ws.apply("t", deletes=rows(12, "z"), inserts=rows(13, "bbbb"))
        assert said() == [(1, 4, True), (5, 5, None), (6, None, True)]
        ws.apply("t", inserts=rows(17, "z"))
        ws.apply("t", inserts=rows(18, "c"))
        assert said()[3:] == [(7, None, False)]
        ws.apply("t", deletes=rows(17, "zc"))
        assert said()[3:] == [(7, 8, False), (9, None, True)]


def test_a_line_has_times_and_numbers_as_a_whole(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    times = [f"2026-01-01T08:00:0{i}.250000+00:00" for i in (0, 0, 1)]
    rows = "".join(f"{time},12345678901234567{i}.5,{'x' * 50}\n" for i, time in enumerate(times))
    assert shell("track", "t", shell.file("t.csv", "at,n,x\n" + rows), "--types", "n=decimal(38,1)").code == 0
    out = shell("profile", "t").out
    for whole in ("2026-01-01T08:00:00.250000", "2026-01-01T08:00:01.250000", "123456789012345672.5"):
        assert whole in out
    assert "x" * 18 not in out


def test_new_ids_and_larger_prices_are_no_news(ws: holdfast.Workspace) -> None:
    change = ws.apply("orders", inserts=changed(1, id=10_000, price=1e6, placed=dt.datetime(2030, 1, 1)))
    assert change.changes == ()
    assert "10 columns profiled (1 with NULLs)" in str(change)
    assert change.to_dict()["n_columns_with_nulls"] == 1


def test_ranges_of_ids_are_counted_as_chance(tmp_path: Path) -> None:
    """However many rows refer to each: an orphan is no news about the column."""
    n = 2000
    source = pa.table({"id": range(n), "actor_id": [i % 50 + 1 for i in range(n)],
                       "CategoryID": [i % 5 + 1 for i in range(n)], "rating": [i % 5 + 1 for i in range(n)],
                       "score": [i % 50 + 1 for i in range(n)]})  # fmt: skip
    ws = holdfast.open(tmp_path / "w", engine="inline")
    tracked = ws.track("cast", source, kinds=("profile",))
    roles = {c.dependency.name: c.role for c in tracked.changes if not c.dependency.name.endswith("null")}
    assert roles == {
        "id >= 0": "chance",
        "actor_id >= 1": "chance",
        "CategoryID >= 1": "chance",
        "rating >= 1 and rating <= 5": "dependency",
        "score >= 1 and score <= 50": "dependency",
    }
    orphan = pa.table({"id": [n], "actor_id": [9999], "CategoryID": [99], "rating": [3], "score": [7]})
    assert ws.check("cast", inserts=orphan).changes == ()


def test_rules_can_be_pinned_and_are_told_first(ws: holdfast.Workspace) -> None:
    rules = {d.name for d in ws.dependencies("profile")}
    for rule in rules:
        pin = ws.pin_rule(rule, table="orders")
        assert pin.holds
        assert str(pin) == rule
    change = ws.check("orders", inserts=changed(3, status="opne"))
    assert [c.role for c in change.broke] == ["pinned"]
    assert [str(p) for p in change.broken_pins] == ["status in ('done', 'open')"]


def test_other_spellings_and_other_conditions(ws: holdfast.Workspace) -> None:
    assert ws.explain("orders", "rating BETWEEN 1 and 5").to_dict()["since"] == 1
    other = ws.explain("orders", "rating < 5").to_dict()
    assert (other["holds"], other["since"], other["reason"]) == (False, None, "40 rows of 200 violate it")
    with pytest.raises(UnknownColumnError, match="ratings"):
        ws.explain("orders", "ratings > 5")


def test_suggestions(ws: holdfast.Workspace) -> None:
    suggested = ws.profiles.suggestions("orders")
    texts = [s.text for s in suggested]
    assert texts[0] == "status in ('done', 'open')"
    assert "id >= 1" not in texts
    assert "sku matches '[A-Z]{2}-[0-9]{4}'" in texts
    assert [s.score for s in suggested] == sorted((s.score for s in suggested), reverse=True)
    assert suggested.to_arrow().column_names == ["table", "column", "text", "reason", "score"]
    assert "0." in repr(suggested)
    ws.track("few", ORDERS.slice(0, 10), kinds=("profile",))
    assert ws.profiles.suggestions("few") == []
    ws.track("other", ORDERS, kinds=("ucc",))
    assert [s.text for s in ws.profiles.suggestions("other")] == texts


def test_a_table_that_is_not_tracked_for_it(ws: holdfast.Workspace) -> None:
    ws.track("other", ORDERS, kinds=("ucc",))
    kept, counted = ws.profiles.of("orders"), ws.profiles.of("other")
    assert (kept.tracked, counted.tracked) == (True, False)
    for a, b in zip(kept, counted, strict=True):
        assert {**a.to_dict(), "rules": []} == {**b.to_dict(), "rules": []}
        assert [r.formula for r in a.rules] == [r.formula for r in b.rules]
    assert ws.dependencies("profile", "other") == []
    ws.apply("other", inserts=changed(1))
    with pytest.raises(UsageError, match="the profiles of table 'other' are not kept"):
        ws.profiles.of("other", at=2)


def test_answers_as_tables(ws: holdfast.Workspace) -> None:
    profile = ws.profiles.of("orders")
    assert profile.column("rating").n_distinct == 5
    assert "status text: 0 NULL, 2 distinct, 'done' to 'open'" in repr(profile)
    table = profile.to_arrow()
    assert table.num_rows == len(ORDERS.column_names)
    assert table.column("n_nulls").to_pylist() == [0] * 8 + [150, 0]
    assert profile.to_pandas().column.tolist() == ORDERS.column_names
    with pytest.raises(UnknownColumnError, match="statsu"):
        profile.column("statsu")


def test_many_values_are_counted_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(column_counts.MOST, "values", 300)
    ws = holdfast.open(tmp_path / "w", engine="inline")
    texts = [f"v{i % 400:03}" for i in range(1000)] + ["w"] * 5 + ["x" * 300]
    ws.track("t", pa.table({"a": texts[:-1], "b": texts[1:]}), kinds=("profile",))
    profile = ws.profiles.of("t")
    a, b = profile
    assert (a.n_distinct, a.more_than, a.low, a.high) == (401, 300, "v000", "w")
    assert [(item.value, item.n_rows) for item in a.top or ()][:3] == [("w", 5), ("v000", 3), ("v001", 3)]
    assert (b.n_distinct, b.top, b.low) == (402, None, None)
    ws.apply("t", inserts=pa.table({"a": ["z"], "b": ["z"]}))
    earlier = ws.profiles.of("t", at=1).column("a")
    assert (earlier.n_distinct, earlier.top, earlier.more_than, earlier.high) == (None, None, 300, "w")
    assert ws.profiles.of("t").column("a").high == "z"


@pytest.mark.parametrize(
    ("wrong", "batch", "error"),
    [
        ({"n_rows": N + 1}, {"inserts": ORDERS.slice(0, 1)}, "202 rows are counted, and there are 201"),
        ({"n_nulls": -1}, {"deletes": ORDERS.slice(3, 1)}, "it would have 199 rows, -1 of them NULL"),
        ({"values": None}, {"deletes": ORDERS.slice(0, 2)}, "would be left with -1 rows"),
    ],
)
def test_counts_of_other_rows_are_damage(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    wrong: dict[str, object],
    batch: dict[str, pa.Table],
    error: str,
) -> None:
    """Nothing is applied to counts that cannot be those of the rows."""
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("orders", ORDERS, kinds=("profile",))
    honest = ProfileClass.load

    def load(cls: ProfileClass, root: Path, state: TableState) -> Profiles | None:
        known = honest(cls, root, state)
        assert known is not None
        column = known.counts[0]
        assert column.values is not None
        less = column.values.minus(Tally.of(pa.array([1]), np.array([1]), 9), column_counts.MOST["values"])
        other = replace(column, **({"values": less} if "values" in wrong else wrong))  # type: ignore[arg-type]
        return replace(known, counts={**known.counts, 0: other})

    monkeypatch.setattr(ProfileClass, "load", load)
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        with pytest.raises(DamagedFileError, match=f"column 'id' kept in .*: .*{error}.*Nothing was applied"):
            ws.apply("orders", **batch)
        assert ws.version == 1


def test_round_bounds() -> None:
    assert [round_up(n) for n in (1, 2, 3, 11, 499, 501)] == [1, 2, 5, 20, 500, 1000]


def test_the_command(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    rows = "\n".join(f"{i},{'open' if i % 3 else 'done'},{'' if i % 2 else 'x'}" for i in range(1, 61))
    orders = shell.file("orders.csv", f"id,status,note\n{rows}\n")
    assert shell("track", "orders", orders, "--kinds", "ucc").code == 0
    out = shell("profile", "orders").out
    assert out.startswith(
        "orders: 60 rows, 3 columns (version 1)\n  counted just now: with --kinds ucc,profile"
    )
    tracked = shell("track", "again", orders, "--kinds", "profile", "--json").json()
    assert (tracked["n_column_rules"], tracked["n_columns_with_nulls"]) == (5, 1)
    out = shell("profile", "again").out
    assert "counted just now" not in out
    assert "status  text  0      2         done  open  open (40), done (20)" in out
    detail = shell("profile", "again", "--column", "status,note").out
    assert "NULLs: 30 (0.5 of the rows)" in detail
    assert "rule  status in ('done', 'open')  2 values in 60 rows, each in at least 20" in detail
    assert "\n  id (int)" not in detail
    document = shell("profile", "again", "--json", "--column", "note").json()
    [note] = document["columns"]
    assert (document["table"], document["tracked"], note["n_nulls"]) == ("again", True, 30)
    assert note["top"] == [{"value": "x", "n_rows": 30}]
    missing = shell("profile", "again", "--column", "stats")
    assert missing.code == 2
    assert "has no column 'stats'" in missing.err
    assert "Did you mean 'status'" in missing.err
    shown = shell("show", "--kind", "profile").out
    assert shown.startswith("again: 5 column rules (version 2)\n  status in ('done', 'open')\n")
    [first, *_] = shell("show", "--kind", "profile", "--json").json()["dependencies"]
    assert (first["formula"], first["aspect"]) == ("status in ('done', 'open')", "values")
    told = shell("explain", "again", first["formula"], "--json").json()
    assert (told["holds"], told["since"]) == (True, 2)
    assert shell("violations", "again", first["formula"], "--json").json()["n_violating"] == 0


def test_a_batch_on_the_command_line(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    rows = "\n".join(f"{i},{'open' if i % 3 else 'done'}" for i in range(1, 61))
    assert (
        shell("track", "orders", shell.file("o.csv", f"id,status\n{rows}\n"), "--kinds", "profile").code == 0
    )
    batch = shell.file("b.csv", "id,status\n61,opne\n62,\n")
    document = shell("check", "orders", "--inserts", batch, "--json").json()
    assert [c["dependency"]["formula"] for c in document["changes"]] == [
        "status in ('done', 'open')",
        "status is not null",
    ]
    told = shell("apply", "orders", "--inserts", batch).out
    assert told.startswith("orders: +2 -0 rows, now 62 rows, 2 columns profiled (1 with NULLs) (version 2,")
    assert "broke: 2 column rules\n" in told
    assert "status in ('done', 'open') does not hold any more: 1 new row violates it:" in told
    assert "opne" in told
    logged = shell("log", "--kind", "profile", "--json").json()["log"]
    assert [c["dependency"]["aspect"] for c in logged[1]["changes"]] == ["values", "nulls"]


def test_reading_is_quick(tmp_path: Path) -> None:
    """What is kept is shown without Spark and Numba."""
    shell = Shell(tmp_path)
    orders = shell.file("orders.csv", "id,status\n1,open\n2,done\n")
    assert shell("track", "orders", orders, "--kinds", "profile").code == 0
    shown = shell.process("profile", "orders", code=WHAT_IS_IMPORTED)
    assert "open" in shown.out
    assert shown.err.endswith("[]\n")

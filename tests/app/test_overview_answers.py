"""What the page is told of the whole workspace, against plain counts over the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from holdfast.app.explorer import Explorer, broken
from holdfast.app.explorer.broken import says
from holdfast.app.explorer.health import PinSpells
from holdfast.core.store.change_counts import ChangeCounts
from holdfast.core.words.dependency import Fd, Ind, Side, Ucc
from holdfast.core.words.predicate import Dc, Predicate
from holdfast.core.words.row_rule import RowRule
from holdfast.errors import UnknownTableError, UsageError

KINDS = ("ucc", "fd", "ind", "row")
EVENTS = ("broke", "appeared", "implied", "within", "beyond", "dropped", "tracked")


def customers(*rows: tuple[int, str, str]) -> pa.Table:
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(("id", "email", "city"))})


def orders(*rows: tuple[int, int, int, int]) -> pa.Table:
    names = ("order_id", "customer_id", "net", "gross")
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})


FIRST_CUSTOMERS = [(i, f"p{i}@example.org", "Oslo" if i % 3 else "Rome") for i in range(1, 31)]
FIRST_ORDERS = [(1000 + i, 1 + i % 30, 10 + i % 7, 12 + i % 7) for i in range(60)]


def filled(ws: holdfast.Workspace) -> holdfast.Workspace:
    """Versions 1 to 9: what holds breaks and holds again; a key is broken at the end."""
    ws.track_all({"customers": customers(*FIRST_CUSTOMERS), "orders": orders(*FIRST_ORDERS)}, kinds=KINDS)
    orphan = orders((2000, 99, 3, 4))
    ws.apply("orders", inserts=orphan, batch_id="orphans")  # 2
    ws.apply("orders", deletes=orphan)  # 3
    for i in range(4):  # 4 to 7
        ws.apply("orders", inserts=orders((3000 + i, 1 + i, 11, 13)), batch_id=f"day-{i}")
    ws.apply("orders", inserts=orders((1000, 5, 9, 5), (4000, 98, 1, 2)), batch_id="bad")  # 8
    ws.apply_all({"customers": {"inserts": customers((31, "p31@example.org", "Bern"))}})  # 9
    return ws


@pytest.fixture(scope="module")
def ws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[holdfast.Workspace]:
    with holdfast.open(tmp_path_factory.mktemp("overview") / "shop.hold", engine="inline") as made:
        yield filled(made)


@pytest.fixture
def explorer(ws: holdfast.Workspace) -> Explorer:
    return Explorer(ws)


def counted(ws: holdfast.Workspace, table: str | None = None, kind: str | None = None) -> Counter[Any]:
    """(version, event) of all changes, one by one."""
    found: Counter[Any] = Counter()
    for entry in ws.log():
        for change in entry.changes:
            if table in (None, change.table) and kind in (None, change.kind):
                tracked = entry.action == "track" and change.change == "appeared"
                found[entry.version, "tracked" if tracked else change.change] += 1
    return found


def named(counts: ChangeCounts) -> tuple[Counter[Any], list[Any]]:
    """Changes and commits with their names: in another order these have other numbers."""
    of, to = counts.counts, counts.commits
    names = (counts.tables.texts, counts.kinds.texts, counts.events.texts, counts.actions.texts)
    tables, kinds, events, actions = names
    changes: Counter[Any] = Counter()
    for v, t, k, e, n in zip(*(getattr(of, f).tolist() for f in type(of).__slots__), strict=True):
        changes[v, tables[t], kinds[k], events[e]] += n
    commits = [
        (v, tables[t], actions[a], *rest)
        for v, t, a, *rest in zip(*(getattr(to, f).tolist() for f in type(to).__slots__), strict=True)
    ]
    return changes, commits


# --- The timeline -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", [None, "orders", "customers"])
@pytest.mark.parametrize("kind", [None, "fd", "ind", "dc"])
@pytest.mark.parametrize(("since", "until", "buckets"), [(0, 0, 200), (2, 8, 3), (3, 3, 1), (1, 9, 4)])
def test_the_timeline_counts_what_the_log_has(
    ws: holdfast.Workspace,
    explorer: Explorer,
    table: str | None,
    kind: str | None,
    since: int,
    until: int,
    buckets: int,
) -> None:
    fields = {"table": table or "", "kind": kind or "", "since": str(since), "until": str(until)}
    told = explorer.answer("workspace/timeline", {**fields, "buckets": str(buckets)})
    truth = counted(ws, table, kind)
    assert len(told["first"]) <= buckets
    assert (told["first"][0], told["last"][-1]) == (since or 1, until or ws.version)
    assert [end + 1 for end in told["last"][:-1]] == told["first"][1:]
    assert sorted(told["events"]) == sorted(EVENTS)
    for i, (first, last) in enumerate(zip(told["first"], told["last"], strict=True)):
        for event in EVENTS:
            expected = sum(n for (v, e), n in truth.items() if first <= v <= last and e == event)
            assert told["events"][event][i] == expected, (first, last, event)
    alone = len(told["first"]) == told["last"][-1] - told["first"][0] + 1
    ids = {entry.version: entry.batch_id for entry in ws.log()}
    assert told["batch_ids"] == [ids[v] if alone else None for v in told["first"]]
    times = {entry.version: entry.at for entry in ws.log()}
    assert told["from"] == [times[v].isoformat(timespec="seconds") for v in told["first"]]


def test_something_is_counted(ws: holdfast.Workspace) -> None:
    """Else the test above would compare nothing with nothing."""
    events = Counter(event for (_, event), n in counted(ws).items() for _ in range(n))
    assert min(events["broke"], events["appeared"], events["tracked"]) > 2
    assert counted(ws, "orders", "ind")
    assert counted(ws, "customers", "fd")


def test_what_is_counted_stays_and_new_versions_are_added(tmp_path: Path) -> None:
    """After every version, and after the ledger's files were merged: as counted from the start."""
    kept = ChangeCounts()
    with holdfast.open(tmp_path / "s.hold", engine="inline") as ws:
        ws.track("t", pa.table({"a": [1, 2], "b": [1, 1]}), kinds=("ucc", "fd"))
        for i in range(70):
            if i % 3 == 1:
                ws.apply("t", deletes=pa.table({"a": [1], "b": [i - 1]}))
            else:
                ws.apply("t", inserts=pa.table({"a": [1], "b": [i]}), batch_id=f"b{i}")
            kept.read(ws.ledger, ws.version)
        afresh = ChangeCounts()
        afresh.read(ws.ledger, ws.version)
        assert named(kept) == named(afresh)
        assert kept.batch_ids == afresh.batch_ids
        assert kept.batch_ids == {e.version: e.batch_id for e in ws.log() if e.batch_id}
        n_rows = [e.details[0]["n_rows"] for e in ws.log()]
        assert kept.commits.n_rows.tolist() == n_rows


def test_an_empty_workspace(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "empty.hold", engine="inline") as ws:
        explorer = Explorer(ws)
        told = explorer.answer("workspace/overview", {})
        assert (told["version"], told["tables"], told["incidents"]) == (0, [], [])
        assert explorer.answer("workspace/timeline", {})["first"] == []
        assert explorer.answer("workspace/versions", {})["versions"] == []


def test_what_cannot_be_asked(explorer: Explorer) -> None:
    with pytest.raises(UnknownTableError, match="ordrs"):
        explorer.answer("workspace/timeline", {"table": "ordrs"})
    for fields in ({"kind": "nothing"}, {"buckets": "0"}, {"since": "-1"}):
        with pytest.raises(UsageError):
            explorer.answer("workspace/timeline", fields)
    with pytest.raises(UsageError):
        explorer.answer("workspace/versions", {"event": "exploded"})


# --- Versions ---------------------------------------------------------------------------------------------


def test_versions_are_listed_newest_first_page_by_page(ws: holdfast.Workspace, explorer: Explorer) -> None:
    listed: list[Any] = []
    before = 0
    while before is not None:
        told = explorer.answer("workspace/versions", {"before": str(before), "limit": "4"})
        listed += told["versions"]
        before = told["next"]
    assert [v["version"] for v in listed] == list(range(ws.version, 0, -1))
    for entry, version in zip(reversed(ws.log()), listed, strict=True):
        assert (version["action"], version["batch_id"]) == (entry.action, entry.batch_id)
        assert [t["table"] for t in version["tables"]] == list(entry.tables)
        details = [(d["n_inserted"], d["n_deleted"], d["n_rows"]) for d in entry.details]
        assert [(t["n_inserted"], t["n_deleted"], t["n_rows"]) for t in version["tables"]] == details
        events = Counter("tracked" if entry.action == "track" else c.change for c in entry.changes)
        assert version["counts"] == dict(events)
        first = [(c.change, c.table, c.kind) for c in entry.changes[:20]]
        assert [(c["change"], c["table"], c["kind"]) for c in version["changes"]] == first


@pytest.mark.parametrize("event", [None, "broke", "appeared", "tracked"])
@pytest.mark.parametrize("kind", [None, "fd"])
def test_versions_of_a_table(
    ws: holdfast.Workspace, explorer: Explorer, kind: str | None, event: str | None
) -> None:
    fields = {"table": "orders", "kind": kind or "", "event": event or "", "since": "1", "before": "9"}
    told = explorer.answer("workspace/versions", fields)
    truth = counted(ws, "orders", kind)
    versions = {v for v, e in truth if event in (None, e)}
    if kind is None and event is None:
        versions |= {e.version for e in ws.log() if "orders" in e.tables}
    assert [v["version"] for v in told["versions"]] == sorted((v for v in versions if v < 9), reverse=True)
    for version in told["versions"]:
        expected = {e: n for (v, e), n in truth.items() if v == version["version"] and event in (None, e)}
        assert version["counts"] == expected
        assert {c["table"] for c in version["changes"]} <= {"orders"}


# --- Health -----------------------------------------------------------------------------------------------


def health(explorer: Explorer) -> dict[str, Any]:
    return {table["name"]: table for table in explorer.answer("workspace/overview", {})["tables"]}


def test_a_foreign_key_with_orphans_is_broken(explorer: Explorer) -> None:
    told = explorer.answer("workspace/overview", {})
    assert [t["name"] for t in told["tables"]] == ["orders", "customers"]  # problems first
    assert told["health"] == {"broken": 1, "drifting": 0, "hold": 1, "unwatched": 0}
    broken_now = told["tables"][0]
    assert broken_now["health"] == "broken"
    foreign_key = broken_now["why"][0]
    assert foreign_key["text"] == "orders[customer_id] in customers[id]"
    assert (foreign_key["since"], foreign_key["role"]) == (8, "foreign key")
    assert "98" in foreign_key["why"]
    [primary_key] = [why for why in broken_now["why"] if why["role"] == "primary key"]
    assert (primary_key["text"], primary_key["word"], primary_key["since"]) == ("[order_id]", "drifting", 8)


def test_what_broke_is_told_with_its_batch_and_whether_it_holds_again(explorer: Explorer) -> None:
    incidents = explorer.answer("workspace/overview", {})["incidents"]
    assert [i["version"] for i in incidents] == sorted((i["version"] for i in incidents), reverse=True)
    [now, before] = [i for i in incidents if i["text"] == "orders[customer_id] in customers[id]"]
    assert (now["version"], now["batch_id"], now["holds"], now["again"]) == (8, "bad", False, None)
    assert (now["n_inserted"], now["n_deleted"], now["role"]) == (2, 0, "foreign key")
    assert (before["version"], before["batch_id"], before["holds"], before["again"]) == (
        2,
        "orphans",
        True,
        3,
    )


def test_sparklines_follow_the_rows(ws: holdfast.Workspace, explorer: Explorer) -> None:
    for name, table in health(explorer).items():
        spark = table["spark"]
        assert spark["versions"] == list(range(1, ws.version + 1))
        assert spark["n_rows"] == [ws.n_rows(name, at) for at in spark["versions"]]
        truth = counted(ws, name)
        assert spark["broke"] == [truth[version, "broke"] for version in spark["versions"]]


def test_pins_decide_by_their_terms(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "pins.hold", engine="inline") as ws:
        ws.track("t", pa.table({"a": list(range(100)), "b": [1] * 100, "c": [5] * 100}), kinds=("ucc",))
        explorer = Explorer(ws)

        def why() -> list[tuple[str, str, int | None]]:
            return [(w["word"], w["text"], w["since"]) for w in health(explorer)["t"]["why"]]

        ws.pin_rule("b = 1", severity="warning")
        ws.pin_rule("c <= 5", at_most=2)
        ws.pin_rule("a >= 0", severity="info")
        assert (health(explorer)["t"]["health"], why()) == ("hold", [])
        ws.apply("t", inserts=pa.table({"a": [100], "b": [2], "c": [5]}))  # 5
        assert why() == [("drifting", "b = 1", 5)]
        ws.apply("t", inserts=pa.table({"a": [101, 102], "b": [1, 1], "c": [6, 7]}))
        assert why() == [("drifting", "b = 1", 5), ("drifting", "c <= 5", None)]
        ws.apply("t", inserts=pa.table({"a": [-1, 103], "b": [1, 1], "c": [5, 8]}))  # 7
        assert health(explorer)["t"]["health"] == "broken"
        assert why() == [("broken", "c <= 5", 7), ("drifting", "b = 1", 5)]
        # It holds again, and breaks again: another spell. A page that was there all the time says the same
        # as one that is opened now.
        ws.apply("t", deletes=pa.table({"a": [103], "b": [1], "c": [8]}))
        ws.apply("t", inserts=pa.table({"a": [103], "b": [1], "c": [8]}))  # 9
        for asked in (explorer, Explorer(ws)):
            explorer = asked
            assert why() == [("broken", "c <= 5", 9), ("drifting", "b = 1", 5)]


def test_since_when_a_pin_is_broken_over_many_versions(tmp_path: Path) -> None:
    """Further back than one stride; of an inclusion it is the workspace's state that tells."""
    with holdfast.open(tmp_path / "long.hold", engine="inline") as ws:
        ws.track_all(
            {"p": pa.table({"id": [1, 2, 3]}), "c": pa.table({"p": [1, 2, 2], "n": [1, 2, 3]})},
            kinds=("ucc", "ind"),
        )
        ws.pin("c", ["p"], referenced=Side("p", ("id",)))
        ws.apply("c", inserts=pa.table({"p": [7], "n": [4]}))  # 3
        for i in range(25):
            ws.apply("c", inserts=pa.table({"p": [1], "n": [10 + i]}))
        [pin] = ws.pins()
        assert PinSpells().since(ws, pin, ws.version) == (3, False)
        assert health(Explorer(ws))["c"]["why"][0]["since"] == 3


@pytest.mark.parametrize(("n_between", "n_after"), [(20, 3), (70, 40), (0, 30)])
def test_since_when_a_pin_is_broken_among_batches_of_other_tables(
    tmp_path: Path, n_between: int, n_after: int
) -> None:
    """The batch of its own table, however far away the one before and the newest version are."""
    with holdfast.open(tmp_path / "far.hold", engine="inline") as ws:
        ws.track_all({name: pa.table({"id": [1, 2]}) for name in ("kept", "other")}, kinds=("ucc",))
        ws.pin("kept", ["id"])

        def others(n: int) -> None:
            for _ in range(n):
                ws.apply("other", inserts=pa.table({"id": [ws.version + 100]}), batch_id=f"o{ws.version}")

        others(n_between)
        ws.apply("kept", inserts=pa.table({"id": [1]}), batch_id="bad")
        broke = ws.version
        others(n_after)
        explorer = Explorer(ws)
        for _ in range(2):
            [reason] = health(explorer)["kept"]["why"]
            assert (reason["since"], reason["at_least"]) == (broke, False)
            [incident] = explorer.answer("workspace/overview", {})["incidents"]
            assert (incident["version"], incident["batch_id"]) == (broke, "bad")
            others(1)


def test_a_table_that_is_tracked_again_starts_anew(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "again.hold", engine="inline") as ws:
        rows = pa.table({"id": list(range(40)), "name": [f"n{i}" for i in range(40)]})
        ws.track("t", rows, kinds=("ucc",))
        ws.apply("t", inserts=pa.table({"id": [3], "name": ["other"]}))
        explorer = Explorer(ws)
        assert health(explorer)["t"]["health"] == "drifting"
        ws.drop("t")
        assert explorer.answer("workspace/overview", {})["tables"] == []
        ws.track("t", rows, kinds=("ucc",))
        assert health(explorer)["t"]["health"] == "hold"
        assert explorer.answer("workspace/overview", {})["incidents"] == []


def test_what_broke_long_ago_is_no_drift(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.app.explorer.health.LATELY", 2)
    with holdfast.open(tmp_path / "old.hold", engine="inline") as ws:
        ws.track("t", pa.table({"id": list(range(40))}), kinds=("ucc",))
        ws.apply("t", inserts=pa.table({"id": [3]}))
        explorer = Explorer(ws)
        assert health(explorer)["t"]["health"] == "drifting"
        for i in range(2):
            ws.apply("t", inserts=pa.table({"id": [100 + i]}))
        assert health(explorer)["t"]["health"] == "hold"


def test_what_follows_from_what() -> None:
    def dc(*texts: tuple[str, Any, str]) -> Dc:
        return Dc("t", tuple(Predicate(*text) for text in texts))

    assert says(dc(("a", "<=", "a")), dc(("a", "<", "a"), ("b", "=", "b")))
    assert not says(dc(("a", "<", "a")), dc(("a", "<=", "a")))
    assert says(dc(("a", ">=", "b")), dc(("b", "<", "a")))  # with the two rows exchanged
    assert not says(RowRule("t", "a", "<=", "b"), RowRule("t", "a", "<", "b"))
    assert not says(Ucc("t", ("a", "b")), Ucc("t", ("a",)))
    assert says(Fd("t", (), "c"), Fd("t", ("a",), "c"))
    sides = Side("t", ("a",)), Side("u", ("b",))
    assert says(Ind(*sides), Ind(*sides))
    assert not says(Ind(*sides), Ind(*reversed(sides)))


def test_only_the_first_of_what_broke_are_weighed(ws: holdfast.Workspace) -> None:
    """No more of a version, table and kind than FIRST, and these are the first of the log."""
    counts = ChangeCounts()
    counts.read(ws.ledger, ws.version)
    listed = broken.incidents(ws, counts, broken.OpenInclusions(), ws.tables(), ws.version)
    groups = Counter((i.version, i.dependency.table, i.dependency.kind) for i in listed)
    assert max(groups.values()) <= broken.FIRST
    for incident in listed:
        [entry] = [e for e in ws.log() if e.version == incident.version]
        same = [
            broken.dependency_of(c.dependency)
            for c in entry.changes
            if (c.change, c.table, c.kind) == ("broke", incident.dependency.table, incident.dependency.kind)
        ]
        assert incident.dependency in same[: broken.FIRST]


def test_where_nothing_could_break_nothing_is_said_to_hold(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "few.hold", engine="inline") as ws:
        same = pa.table({"a": [1, 1, 1], "b": [2, 2, 2]})
        ws.track("t", same, kinds=("ucc",))
        explorer = Explorer(ws)
        assert (health(explorer)["t"]["health"], health(explorer)["t"]["n_pins"]) == ("unwatched", 0)
        assert explorer.answer("workspace/overview", {})["health"]["unwatched"] == 1
        ws.pin_rule("a = 1", table="t")
        assert (health(explorer)["t"]["health"], health(explorer)["t"]["n_pins"]) == ("hold", 1)


def test_what_broke_comes_page_by_page(ws: holdfast.Workspace, explorer: Explorer) -> None:
    whole = explorer.answer("workspace/overview", {})
    n = whole["n_incidents"]
    assert n > 2
    pages = [
        explorer.answer("workspace/incidents", {"offset": str(at), "limit": "1"})["incidents"]
        for at in range(n + 1)
    ]
    assert [i for page in pages for i in page] == whole["incidents"]


def test_a_broken_foreign_key_is_asked_for_by_what_explain_takes(tmp_path: Path) -> None:
    """Whatever its tables and columns are called."""
    name, column = "all orders]", 'customer "id", or\nnot'
    with holdfast.open(tmp_path / "odd.hold", engine="inline") as ws:
        ids = [f"c{i}" for i in range(60)]
        parents = pa.table({column: ids})
        children = pa.table({"n": list(range(90)), column: [ids[i % 50] for i in range(90)]})
        ws.track_all({"customers": parents, name: children}, kinds=("ucc", "ind"))
        ws.apply("customers", deletes=parents.slice(0, 2))
        explorer = Explorer(ws)
        [why] = [w for w in health(explorer)[name]["why"] if w["role"] == "foreign key"]
        answer = explorer.answer("workspace/explain", {"table": name, "ask": why["ask"]})
        assert answer["holds"] is False
        assert answer["dependency"]["dependent"]["columns"] == [column]

"""One dependency explained: its life is what rows say of every version; rows page, sort, come as CSV."""

from __future__ import annotations

import csv
import http.client
import io
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa
import pytest

import holdfast
from app.serving import explored
from holdfast.app.explorer import Explorer, ExplorerServer
from holdfast.app.explorer.asking import asked
from holdfast.app.explorer.lives import life
from holdfast.app.explorer.routes import Download, NotFoundError
from holdfast.core.rows.table_state import TableState
from holdfast.core.words.asking import ask_of, form_of
from holdfast.errors import HoldfastError, UnknownColumnError, UsageError

Row = tuple[int | None, ...]
COLUMNS = ("a", "b", "c")
KINDS = ("ucc", "fd", "ind", "dc", "profile")


def table(rows: Sequence[Row]) -> pa.Table:
    return pa.table({c: pa.array([row[i] for row in rows], pa.int64()) for i, c in enumerate(COLUMNS)})


def lives_of(ws: holdfast.Workspace, name: str, ask: str) -> dict[int, bool | None]:
    """What a life says of each version from its first one on."""
    known = life(ws, *asked(ws, name, ask))
    for before, after in itertools.pairwise(known):
        assert before.last == after.first - 1
        assert before.holds is not after.holds
    assert not known or known[-1].last is None
    return {
        version: stretch.holds
        for stretch in known
        for version in range(stretch.first, (stretch.last or ws.version) + 1)
    }


# What rows say, in plain Python.
def is_key(rows: Sequence[Row], columns: Sequence[int]) -> bool:
    parts = [tuple(row[c] for c in columns) for row in rows]
    return len(set(parts)) == len(parts)


def is_fd(rows: Sequence[Row], lhs: Sequence[int], rhs: int) -> bool:
    seen: dict[Any, Any] = {}
    return all(seen.setdefault(tuple(row[c] for c in lhs), row[rhs]) == row[rhs] for row in rows)


def is_in(rows: Sequence[Row], column: int, others: Sequence[Row], other: int) -> bool:
    return {row[column] for row in rows} - {None} <= {row[other] for row in others}


def keeps(rows: Sequence[Row], test: Callable[[Row], bool]) -> bool:
    return all(test(row) for row in rows)


def no_pair(rows: Sequence[Row], test: Callable[[Row, Row], bool]) -> bool:
    return not any(test(t, s) for t, s in itertools.permutations(rows, 2))


@pytest.fixture(scope="module", params=[1, 2])
def past(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A workspace after some batches, and the rows of its tables at every version."""
    rng = random.Random(request.param)
    ws = holdfast.open(tmp_path_factory.mktemp("lives") / "w", engine="inline")

    def some(n: int) -> list[Row]:
        return [tuple(rng.choice([0, 1, 2, 3]) for _ in COLUMNS) for _ in range(n)]

    rows: dict[str, list[Row]] = {"t": some(3), "u": some(3)}
    history: dict[int, dict[str, list[Row]]] = {}
    ws.track_all({name: table(r) for name, r in rows.items()}, kinds=KINDS)
    history[ws.version] = {name: list(r) for name, r in rows.items()}
    for step in range(11):
        name = rng.choice(["t", "t", "u"])
        gone = rng.sample(rows[name], rng.choice([0, 1, 1, 2]) if len(rows[name]) > 2 else 0)
        came = some(rng.choice([0, 1, 1, 2]))
        if not gone and not came:
            continue
        for row in gone:
            rows[name].remove(row)
        rows[name] += came
        batch = {"inserts": table(came)} if came else {}
        batch |= {"deletes": table(gone)} if gone else {}
        ws.apply(name, batch_id=f"batch {step}", **batch)
        history[ws.version] = {n: list(r) for n, r in rows.items()}
        if step == 5:
            ws.pin_rule("a > 0", table="t")
            history[ws.version] = {n: list(r) for n, r in rows.items()}
    yield ws, history
    ws.close()


def test_lives_are_what_rows_say_of_every_version(past: Any) -> None:
    ws, history = past
    places = range(len(COLUMNS))
    told: dict[str, Callable[[dict[str, list[Row]]], bool]] = {}
    for n in range(1, 4):
        for chosen in itertools.combinations(places, n):
            names = ", ".join(COLUMNS[c] for c in chosen)
            told[f"[{names}]"] = lambda now, chosen=chosen: is_key(now["t"], chosen)
            for rhs in places:
                fd = f"{names} -> {COLUMNS[rhs]}"
                told[fd] = lambda now, chosen=chosen, rhs=rhs: is_fd(now["t"], chosen, rhs)
    for a, b in itertools.product(places, places):
        ind = f"t[{COLUMNS[a]}] in u[{COLUMNS[b]}]"
        told[ind] = lambda now, a=a, b=b: is_in(now["t"], a, now["u"], b)
    told["not(t.a < s.a and t.b > s.b)"] = lambda now: no_pair(
        now["t"], lambda t, s: t[0] < s[0] and t[1] > s[1]
    )
    told["not(t.a = s.a and t.b <= s.b)"] = lambda now: no_pair(
        now["t"], lambda t, s: t[0] == s[0] and t[1] <= s[1]
    )
    told["a <= b"] = lambda now: keeps(now["t"], lambda row: row[0] <= row[1])
    told["b != c"] = lambda now: keeps(now["t"], lambda row: row[1] != row[2])
    n_turns = 0
    for ask, holds in told.items():
        known = lives_of(ws, "t", ask)
        assert known == {version: holds(now) for version, now in history.items()}, ask
        n_turns += len(set(known.values())) - 1
    assert n_turns > 10


def test_what_was_listed_at_a_version_held_then(past: Any) -> None:
    ws, history = past
    lives: dict[tuple[str, str], Any] = {}
    for version in history:
        for dependency in ws.dependencies(at=version):
            if len(dependency.columns) == 0 and dependency.kind == "ucc":
                continue
            asked = dependency.table, ask_of(dependency)
            if asked not in lives:
                lives[asked] = lives_of(ws, *asked)
            assert lives[asked][version] is True, (version, str(dependency))


def test_of_conditions_is_known_what_was_looked_at(past: Any) -> None:
    """A pinned one from then on; one of a profile while it is listed, and what the log says of its end."""
    ws, history = past
    pinned = next(e.version for e in ws.log("t") if e.action == "pin")
    known = lives_of(ws, "t", "a > 0")
    for version, now in history.items():
        expected = keeps(now["t"], lambda row: (row[0] or 0) > 0)
        assert known[version] in ((expected,) if version >= pinned else (None,))
    assert lives_of(ws, "t", "a > 1") == {}
    listed = {d.formula for v in history for d in ws.dependencies("profile", "t", v)}
    assert listed
    for formula in listed:
        known = lives_of(ws, "t", formula)
        for version, verdict in known.items():
            if formula in {d.formula for d in ws.dependencies("profile", "t", version)}:
                assert verdict is True
            elif formula == "a is not null":
                assert verdict in (True, None)


def test_what_turned_it_is_told_with_its_rows(past: Any) -> None:
    """Of a break the batch, and two rows that show it, of which the batch brought one."""
    ws, history = past
    explorer, log = Explorer(ws), {entry.version: entry for entry in ws.log("t")}
    n_shown = 0
    for ask in ("[a]", "[a, b]", "a -> b", "a, b -> c", "not(t.a = s.a and t.b <= s.b)"):
        answer = explorer.answer("workspace/explain", {"table": "t", "ask": ask})
        stretches = answer["life"]["stretches"]
        assert answer["holds"] == stretches[-1]["holds"]
        for stretch in stretches[1:]:
            version = stretch["first"]
            assert stretch["begun"]["batch_id"] == log[version].batch_id
            before, now = history[version - 1]["t"], history[version]["t"]
            for change in stretch["changes"]:
                assert change["change"] == ("appeared" if stretch["holds"] else "broke")
                for rows in change["witnesses"] if change["change"] == "broke" else []:
                    values = [tuple(row["values"][c] for c in COLUMNS) for row in rows]
                    assert all(value in now for value in values)
                    assert any(row["new"] for row in rows)
                    for row, value in zip(rows, values, strict=True):
                        assert row["new"] or value in before
                    n_shown += 1
    assert n_shown


# -- bounds, drops, what is not tracked --------------------------------------------------------


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[holdfast.Workspace]:
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        yield ws


def explain(ws: holdfast.Workspace, name: str, ask: str) -> dict[str, Any]:
    answer: dict[str, Any] = Explorer(ws).answer("workspace/explain", {"table": name, "ask": ask})
    return answer


def spans(answer: dict[str, Any]) -> list[tuple[int, int | None, bool | None]]:
    return [(s["first"], s["last"], s["holds"]) for s in answer["life"]["stretches"]]


def test_a_bound_leaves_things_open(ws: holdfast.Workspace) -> None:
    rows = table([(0, 0, 0), (0, 1, 0), (1, 0, 0)])
    ws.track("t", rows, kinds=("ucc", "fd"), max_columns=1, max_lhs=1)
    assert spans(explain(ws, "t", "[a, b]")) == [(1, None, None)]
    assert explain(ws, "t", "[a, b]")["holds"] is None
    assert spans(explain(ws, "t", "a, b -> c")) == [(1, None, True)]  # c is constant
    [page] = [Explorer(ws).answer("workspace/violations", {"table": "t", "ask": "[a, b]"})]
    assert page["holds"]


def test_another_life_begins_when_a_table_is_tracked_again(ws: holdfast.Workspace) -> None:
    ws.track("t", table([(0, 0, 0)]), kinds=("ucc", "ind"))
    ws.track("u", table([(0, 0, 0)]), kinds=("ucc", "ind"))
    ws.apply("t", inserts=table([(5, 0, 0)]))
    assert spans(explain(ws, "t", "t[a] in u[a]")) == [(2, 2, True), (3, None, False)]
    dropped = ws.drop("t")
    with pytest.raises(NotFoundError, match=rf"'t' was dropped at version {dropped}, on 20.*log"):
        explain(ws, "t", "[a]")
    with pytest.raises(NotFoundError, match="'t' was dropped"):
        explain(ws, "u", "u[a] in t[a]")
    with pytest.raises(HoldfastError, match="no table 'nobody'"):
        explain(ws, "nobody", "[a]")
    ws.track("t", table([(0, 0, 0)]), kinds=("ucc", "ind"))
    assert spans(explain(ws, "t", "[a]")) == [(dropped + 1, None, True)]
    assert spans(explain(ws, "t", "t[a] in u[a]")) == [(dropped + 1, None, True)]


def test_inclusions_of_several_columns(ws: holdfast.Workspace) -> None:
    u = [(i, j, 9) for i in range(3) for j in range(3)]
    ws.track("t", table([(0, 1, 0), (1, 2, 0)]), kinds=("ucc", "ind"))
    ws.track("u", table(u), kinds=("ucc", "ind"))
    assert explain(ws, "t", "t[a, b] in u[a, b]")["holds"] is True
    ws.apply("u", deletes=table([(1, 2, 9)]))
    answer = explain(ws, "t", "t[b, a] in u[b, a]")
    assert spans(answer) == [(2, 2, True), (3, None, False)]
    assert answer["sentence"] == "every combination of a and b of t is the a and b of a row of u"
    page = Explorer(ws).answer("workspace/violations", {"table": "t", "ask": "t[a, b] in u[a, b]"})
    assert (page["n_violating"], page["n_groups"], page["noun"]) == (1, 1, "missing combination")
    assert page["rows"] == [["0.1", 1, True, 1, 2, 0]]
    assert [c["concerned"] for c in page["columns"]] == [False, False, False, True, True, False]
    file = Explorer(ws).answer("workspace/violations.csv", {"table": "t", "ask": "t[a, b] in u[a, b]"})
    assert b"".join(file.pieces).splitlines()[1:] == [b'"0.1",1,true,1,2,0']


def test_kinds_that_are_not_tracked_are_answered_by_rows(ws: holdfast.Workspace) -> None:
    ws.track("t", table([(0, 0, 0), (0, 1, 0)]), kinds=("ind",))
    asks = {"[a]": 2, "a -> b": 2, "a <= b": 0, "b > 0": 1, "not(t.a = s.a and t.b != s.b)": 2}
    for ask, n in asks.items():
        answer = explain(ws, "t", ask)
        assert answer["holds"] is None
        assert answer["life"]["note"]
        page = Explorer(ws).answer("workspace/violations", {"table": "t", "ask": ask})
        assert (page["n_violating"], page["holds"]) == (n, n == 0), ask


def test_what_it_follows_from(ws: holdfast.Workspace) -> None:
    rows = [(0, 0, 5), (1, 0, 6), (2, 1, 7)]
    ws.track("t", table(rows), kinds=("ucc", "fd", "dc"))
    for ask, narrower in [
        ("[a, b]", "[a]"),
        ("a, b -> c", "a -> c"),
        ("a <= c", "a < c"),
        ("c >= a", "c > a"),
    ]:
        answer = explain(ws, "t", ask)
        assert (answer["holds"], answer["minimal"]) == (True, False), ask
        assert narrower in [d["ask"] for d in answer["implied_by"]], ask
    assert explain(ws, "t", "[a]")["minimal"] is True
    rule = explain(ws, "t", "not(t.a = s.a and t.b = s.b)")
    assert rule["minimal"] is False
    assert "not(t.a = s.a)" in [d["ask"] for d in rule["implied_by"]]


def test_a_narrower_one_that_broke_is_named(ws: holdfast.Workspace) -> None:
    ws.track("t", table([(0, 0, 5), (1, 0, 6)]), kinds=("ucc",))
    ws.apply("t", inserts=table([(0, 0, 7)]))
    [_, broken] = explain(ws, "t", "[a, b]")["life"]["stretches"]
    [change] = broken["changes"]
    assert (change["itself"], change["ask"]) == (False, "[a]")


def test_pins_are_told_with_their_terms(ws: holdfast.Workspace) -> None:
    ws.track("t", table([(0, 0, 5), (1, 0, 6)]), kinds=("ucc", "fd"))
    ws.pin("t", ["b"], at_most="60%", reason="for now", owner="ann", severity="warning")
    ws.pin_rule("b -> c", table="t")
    ws.pin_rule("a >= 0", table="t")
    pin = explain(ws, "t", "[b]")["pin"]
    assert (pin["at_most"], pin["reason"], pin["owner"], pin["severity"]) == (
        "60%",
        "for now",
        "ann",
        "warning",
    )
    assert pin["holds"]
    assert pin["n_violations"] == 1
    assert explain(ws, "t", "b -> c")["pin"]["n_violations"] == 2
    assert explain(ws, "t", "a >= 0")["pin"]["holds"]
    assert explain(ws, "t", "[a]")["pin"] is None


# -- rows --------------------------------------------------------------------------------------


@pytest.fixture
def shop(ws: holdfast.Workspace) -> holdfast.Workspace:
    rng = random.Random(5)
    n = 400
    rows = {
        "id": list(range(n)),
        "zip": [rng.randrange(20) for _ in range(n)],
        "city": [rng.choice(["Oslo", "Turku", None, "=1+1", 'say "hi", ok', "two\nlines"]) for _ in range(n)],
        "price": [rng.choice([1.5, 2.5, float("nan"), None]) for _ in range(n)],
        "on": [rng.random() < 0.5 for _ in range(n)],
    }
    ws.track("shop", pa.table(rows), kinds=("ucc",))
    return ws


def test_of_fewer_rows_the_last_page_is_listed(shop: holdfast.Workspace) -> None:
    explorer, whole = Explorer(shop), [row[0] for row in pages(shop)[1]]
    for limit, offset in ((50, 10**6), (200, len(whole)), (7, 7)):
        first = min(offset, (len(whole) - 1) // limit * limit)
        fields = {"table": "shop", "ask": "zip -> city", "limit": str(limit), "offset": str(offset)}
        page = explorer.answer("workspace/violations", fields)
        assert page["offset"] == first
        assert [row[0] for row in page["rows"]] == whole[first : first + limit]


def pages(ws: holdfast.Workspace, size: int = 50, **how: str) -> tuple[dict[str, Any], list[list[Any]]]:
    explorer, rows = Explorer(ws), []
    while True:
        fields = {"table": "shop", "ask": "zip -> city", "limit": str(size), "offset": str(len(rows)), **how}
        page = explorer.answer("workspace/violations", fields)
        rows += page["rows"]
        if len(rows) >= page["n_held"]:
            return page, rows


def test_pages_are_the_rows_that_violate_it(shop: holdfast.Workspace) -> None:
    expected = shop.violations("shop", "zip -> city")
    page, rows = pages(shop)
    assert [
        dict(zip((c["name"] for c in page["columns"]), row, strict=True)) for row in rows
    ] == expected.records()
    assert {name: page[name] for name in ("n_violating", "n_groups", "n_violations", "remove")} == {
        name: expected.totals()[name] for name in ("n_violating", "n_groups", "n_violations", "remove")
    }
    assert page["complete"]
    assert page["n_held"] == expected.n_violating
    marks = [c["mark"] for c in page["columns"] if c["mark"]]
    assert marks == ["row", "group", "group_rows", "votes", "remove", "deviates", "majority", "suggested"]
    assert [c["name"] for c in page["columns"] if c["concerned"]] == ["zip", "city"]


@pytest.mark.parametrize("descending", [False, True])
def test_rows_are_sorted_by_each_column(shop: holdfast.Workspace, descending: bool) -> None:
    """NULL comes last; of one value they stay as they were, so that pages fit together."""
    page, rows = pages(shop)
    for i, column in enumerate(page["columns"]):
        _, by_column = pages(shop, sort=column["name"], descending=str(int(descending)))
        assert sorted(map(repr, by_column)) == sorted(map(repr, rows))
        keys = [_sortable(row[i], column["mark"]) for row in by_column]
        assert keys == sorted(keys, key=lambda k: (k[0], k[1]), reverse=False) or descending
        values = [k for k in keys if k[0] == 0]
        assert values == sorted(values, reverse=descending), column["name"]
        assert [k[0] for k in keys] == sorted(k[0] for k in keys), column["name"]
        if column["mark"] != "row" and not descending:
            assert by_column == [
                rows[j] for j in sorted(range(len(rows)), key=lambda j: _sortable(rows[j][i], column["mark"]))
            ]


def _sortable(value: Any, mark: str | None) -> tuple[int, Any]:
    if value is None:
        return 2, 0
    if value == "nan":
        return 1, 0
    if mark == "row":
        segment, _, position = value.partition(".")
        return 0, (int(segment), int(position))
    return 0, value


def test_a_column_that_is_not_there(shop: holdfast.Workspace) -> None:
    with pytest.raises(UsageError, match="no column 'zap' to sort by"):
        pages(shop, sort="zap")
    with pytest.raises(UnknownColumnError, match="'zap'"):
        Explorer(shop).answer("workspace/violations", {"table": "shop", "ask": "zap -> city"})


def test_listings_are_held_until_the_next_version(
    shop: holdfast.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[tuple[Any, ...]] = []
    violating = shop.readers.violating
    monkeypatch.setattr(
        shop.readers, "violating", lambda *args, **how: looked.append(args) or violating(*args, **how)
    )
    explorer = Explorer(shop)

    def ask(text: str) -> dict[str, Any]:
        answer: dict[str, Any] = explorer.answer("workspace/violations", {"table": "shop", "ask": text})
        return answer

    n = ask("zip -> city")["n_violating"]
    ask("zip -> city")
    assert len(looked) == 1
    for i in range(8):
        ask(f"price > {i}")
    ask("zip -> city")  # was the oldest of more than are held
    assert len(looked) == 10
    shop.apply(
        "shop", inserts=pa.table({"id": [9_999], "zip": [0], "city": ["?"], "price": [0.0], "on": [True]})
    )
    assert ask("zip -> city")["n_violating"] == n + 1
    assert len(looked) == 11


def test_more_rows_than_are_held(shop: holdfast.Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.app.explorer.violation_answers.MOST_ROWS", 100)
    page, rows = pages(shop)
    assert len(rows) == page["n_held"] == 100
    assert page["n_violating"] > 100
    assert not page["complete"]
    expected = shop.violations("shop", "zip -> city", limit=100).records()
    assert [row[8] for row in rows] == [record["id"] for record in expected]


def test_the_file_has_all_rows(shop: holdfast.Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.app.explorer.violation_answers.MOST_ROWS", 100)
    answer = Explorer(shop).answer("workspace/violations.csv", {"table": "shop", "ask": "zip -> city"})
    assert isinstance(answer, Download)
    assert (answer.name, answer.content_type) == ("shop-violations.csv", "text/csv; charset=utf-8")
    rows = list(csv.DictReader(io.StringIO(b"".join(answer.pieces).decode(), newline="")))
    expected = shop.violations("shop", "zip -> city").records()
    assert [row["_row"] for row in rows] == [record["_row"] for record in expected]
    assert [row["city"] for row in rows] == [record["city"] or "" for record in expected]
    assert [row["_remove"] for row in rows] == [str(record["_remove"]).lower() for record in expected]


@pytest.mark.parametrize("version", [10, 11])
def test_the_file_over_http(shop: holdfast.Workspace, version: int) -> None:
    """Piece by piece, with a name that a header takes; an error is JSON, as of any route."""
    name = '../"shop"; X-Owned: 1 ø'
    shop.track(name, pa.table({"a": [1, 1]}), kinds=("ucc",))
    with explored(shop) as server:
        get = lambda path, method="GET": _get(server, path, method, version)  # noqa: E731
        status, headers, body = get("violations.csv?table=shop&ask=zip%20-%3E%20city")
        assert (status, headers["content-type"]) == (200, "text/csv; charset=utf-8")
        assert headers["content-disposition"] == 'attachment; filename="shop-violations.csv"'
        assert ("transfer-encoding" in headers) == (version == 11)
        n = shop.violations("shop", "zip -> city").n_violating
        assert len(list(csv.reader(io.StringIO(body.decode(), newline="")))) == n + 1
        assert get("violations.csv?table=shop&ask=zip%20-%3E%20city", "HEAD")[2] == b""
        status, headers, body = get(f"violations.csv?{urlencode({'table': name, 'ask': '[a]'})}")
        assert headers["content-disposition"] == 'attachment; filename="shop-X-Owned-1-violations.csv"'
        assert "x-owned" not in headers
        assert body.startswith(b'"_row"')
        status, headers, body = get("violations.csv?table=nobody&ask=%5Ba%5D")
        assert (status, headers["content-type"]) == (404, "application/json")


def _get(server: ExplorerServer, path: str, method: str, version: int) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=90)
    connection._http_vsn, connection._http_vsn_str = version, f"HTTP/1.{version - 10}"  # type: ignore[attr-defined]
    cookie = {"Cookie": f"holdfast={server.token}", "Host": f"127.0.0.1:{server.port}"}
    try:
        connection.request(method, f"/{server.place}/api/workspace/{path}", headers=cookie)
        response = connection.getresponse()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
    finally:
        connection.close()


def test_columns_are_named_as_they_are_written(ws: holdfast.Workspace) -> None:
    ws.track("t", pa.table({"zip code": [1], "a,b": ["x"], "plain": [1.5]}), kinds=("ucc",))
    answer = Explorer(ws).answer("workspace/columns", {"table": "t"})
    assert [(c["name"], c["type"], c["formula"], c["listed"]) for c in answer["columns"]] == [
        ("zip code", "int", '"zip code"', "zip code"),
        ("a,b", "text", '"a,b"', '"a,b"'),
        ("plain", "float", "plain", "plain"),
    ]


def test_every_dependency_that_is_answered_says_how_to_ask_for_it(past: Any) -> None:
    ws, _ = past
    explorer = Explorer(ws)
    listed = explorer.answer("workspace/dependencies", {"table": "t"})["dependencies"]
    entries = explorer.answer("workspace/log", {"table": "t"})["entries"]
    changed = [change for entry in entries for change in entry["changes"]]
    assert len(listed) > 10
    assert len(changed) > 10
    for dependency in listed[::5]:
        answer = explorer.answer(
            "workspace/explain",
            {"table": dependency.get("table", "t"), "ask": dependency["ask"]},
        )
        assert answer["dependency"]["ask"] == dependency["ask"]
        assert answer["holds"] is True
    assert all(change["ask"] for change in changed)


def test_how_many_were_against_a_pin_at_each_version(ws: holdfast.Workspace) -> None:
    """All pins are counted with every batch."""
    ws.track("t", table([(0, 0, 0), (1, 1, 0)]), kinds=("ucc", "fd"))
    explorer = Explorer(ws)

    def against(ask: str) -> Any:
        return explorer.answer("workspace/explain", {"table": "t", "ask": ask})["life"]["against"]

    assert against("a -> b") is None
    ws.pin_rule("a -> b", table="t", at_most="90%")
    ws.pin("t", ["b"])
    ws.apply("t", inserts=table([(0, 5, 5)]))
    assert against("a -> b")["series"] == [[2, 0, 0.0], [4, 2, 2 / 6]]
    ws.apply("t", inserts=table([(0, 6, 6)]))
    ws.apply("t", deletes=table([(0, 6, 6)]), inserts=table([(9, 9, 9)]))
    wanted = [[2, 0, 0.0], [4, 2, 2 / 6], [5, 6, 6 / 12], [6, 2, 2 / 12]]
    assert against("a -> b")["series"] == wanted
    assert against("a -> b")["noun"][1] == "ordered pairs of rows"
    assert Explorer(ws).answer("workspace/explain", {"table": "t", "ask": "a -> b"})["life"]["against"] == (
        against("a -> b")
    )
    assert against("[b]") == {"series": [[3, 0, 0.0]], "noun": ["row", "rows"], "note": ""}
    ws.pin("t", ["b"], at_most=5)
    ws.apply("t", inserts=table([(1, 1, 1)]))
    assert against("[b]")["series"] == [[3, 0, 0.0], [8, 1, 1 / 5]]
    # A pin that was taken back and given again: nothing is known of the versions between.
    ws.pin_rule("a -> b", table="t", remove=True)
    ws.apply("t", inserts=table([(2, 2, 2)]))
    ws.pin_rule("a -> b", table="t", at_most="90%")
    assert against("a -> b")["series"][-2:] == [[9, None, None], [11, 2, 2 / 30]]


def test_how_much_was_against_what_nobody_pinned(ws: holdfast.Workspace) -> None:
    """Of row rules, and of what is minimal within the error of its table, versions know what they said."""
    rng = random.Random(5)
    rows = [tuple(rng.randrange(3) for _ in range(3)) for _ in range(10)]
    ws.track(
        "t", table(rows[:4]), kinds=("ucc", "fd", "dc"), max_error=0.3, evidence="counted", max_predicates=2
    )
    ws.pin_rule("a is not null", table="t")  # a version without a batch
    said: dict[int, dict[str, float]] = {}
    for i in range(4, 10):
        gone = table(rows[i - 2 : i - 1]) if i % 3 else None
        ws.apply("t", inserts=table(rows[i : i + 1]), deletes=gone)
        said[ws.version] = {ask_of(d): d.error for d in ws.dependencies(table="t", max_error=0.3)}
    errors: dict[str, dict[int, float]] = {}
    for version, listed in said.items():
        state = TableState.from_dict(ws.ledger.commit_row(version, "t").state or {})
        for ask, error in listed.items():
            reader, arguments = asked(ws, "t", ask)
            counted = reader.against(state, *arguments)
            assert counted[1] == pytest.approx(error), (version, ask)
            if error:
                errors.setdefault(ask, {})[version] = error
    assert {form_of(ask) for ask in errors} >= {"fd", "rule", "row"}
    assert sum(map(len, errors.values())) > 30
    # The page has the same as a series.
    explorer = Explorer(ws)
    for form in ("fd", "rule", "row"):
        ask = max((a for a in errors if form_of(a) == form), key=lambda a: len(errors[a]))
        against = explorer.answer("workspace/explain", {"table": "t", "ask": ask})["life"]["against"]
        assert against["note"] == ""
        for version, error in errors[ask].items():
            *_, (_, n, share) = [point for point in against["series"] if point[0] <= version]
            assert (n > 0, share) == (True, pytest.approx(error))
        again = Explorer(ws).answer("workspace/explain", {"table": "t", "ask": ask})
        assert again["life"]["against"] == against


def test_how_many_values_an_inclusion_missed(ws: holdfast.Workspace) -> None:
    ws.track("u", pa.table({"z": [0, 1]}), kinds=("ind",))
    ws.track("t", pa.table({"y": [0, 5, 6]}), kinds=("ind",))
    explorer = Explorer(ws)

    def series() -> Any:
        answer = explorer.answer("workspace/explain", {"table": "t", "ask": "t[y] in u[z]"})
        return answer["life"]["against"]["series"]

    assert series() == [[2, 2, 2 / 3]]
    ws.apply("u", inserts=pa.table({"z": [5]}))
    ws.apply("t", inserts=pa.table({"y": [0, 1]}))
    ws.apply("t", deletes=pa.table({"y": [6]}))
    wanted = [[2, 2, 2 / 3], [3, 1, 1 / 3], [4, 1, 1 / 4], [5, 0, 0.0]]
    assert series() == wanted
    # Another table of that name has another past; that of the values that are missing goes on with it.
    ws.drop("t")
    ws.track("t", pa.table({"y": [9]}), kinds=("ind",))
    assert series() == [*wanted, [6, None, None], [7, 1, 1.0]]


def test_where_rows_came_from(tmp_path: Path) -> None:
    """Their batch and their place in it, after segments were merged, too."""
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", pa.table({"n": [0, 1, 2], "a": [7, 7, 7]}), kinds=("ucc",))
        ws.apply("t", inserts=pa.table({"n": [3, 4], "a": [7, 7]}), batch_id="monday")
        ws.apply("t", deletes=pa.table({"n": [1, 3], "a": [7, 7]}))
        ws.apply("t", inserts=pa.table({"n": [5], "a": [7]}))
        explorer = Explorer(ws)

        def origins() -> dict[int, tuple[Any, ...]]:
            page = explorer.answer("workspace/violations", {"table": "t", "ask": "[a]", "sort": "n"})
            at = [c["name"] for c in page["columns"]].index("n")
            return {
                row[at]: (origin["version"], origin["batch_id"], origin["position"])
                for row, origin in zip(page["rows"], page["origins"], strict=True)
            }

        wanted = {0: (1, None, 1), 2: (1, None, 3), 4: (2, "monday", 2), 5: (4, None, 1)}
        assert origins() == wanted
        ws.merge("t")
        ws.apply("t", inserts=pa.table({"n": [8, 9], "a": [7, 7]}), batch_id="friday")
        assert {n: o for n, o in origins().items() if n < 8} == wanted
        assert {n: o[1:] for n, o in origins().items() if n >= 8} == {8: ("friday", 1), 9: ("friday", 2)}
        # Another past begins with another table of that name.
        ws.drop("t")
        ws.track("t", pa.table({"n": [3, 1], "a": [7, 7]}), kinds=("ucc",))
        assert origins() == {1: (ws.version, None, 2), 3: (ws.version, None, 1)}

"""Pins with tolerances along any history of batches: as much is against them as the definitions say."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast import Pin, Side
from holdfast.core.words.reliance import PinTerms, Terms, Wanted, tolerance
from holdfast.denial.constraints import PinnedCheck, PinnedRule
from holdfast.errors import UnknownColumnError, UsageError
from holdfast.functional.refs import KeyRef, PinnedKey
from holdfast.inclusions.generator import PinnedInd

SMALL = st.none() | st.integers(0, 3)
ROW = st.tuples(SMALL, SMALL, SMALL)
AT_MOST = st.sampled_from(["", "1", "3", "10%", "0.34", "50%", "100%"])
INCLUSION = Side("parents", ("id",))
RULE = "not(t.zip = s.zip and t.city != s.city)"
Row = tuple[Any, ...]


def children(rows: list[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * 4
    return pa.table(
        {n: pa.array(v, pa.int64()) for n, v in zip(("no", "ref", "a", "b"), columns, strict=True)}
    )


def parents(ids: list[int]) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def duplicates(values: list[Row], *, distinct: bool) -> int:
    """Rows to remove so that none agrees with another one."""
    telling = [v for v in values if not (distinct and None in v)]
    return sum(n - 1 for n in Counter(telling).values())


def pairs(rows: list[Row], *, distinct: bool) -> int:
    """Ordered pairs of different rows that violate a -> b."""
    if distinct:
        rows = [tuple(object() if v is None else v for v in row) for row in rows]
    return sum(r[2] == s[2] and r[3] != s[3] for r, s in permutations(rows, 2))


def against(pin: Pin, rows: list[Row], ids: set[int], *, distinct: bool) -> tuple[int, int]:
    """(what is against a pin, of how much), by the definition."""
    if pin.kind == "ind":
        return sum(r[1] is not None and r[1] not in ids for r in rows), len(rows)
    if pin.kind == "ucc":
        at = [("no", "ref", "a", "b").index(c) for c in pin.columns]
        return duplicates([tuple(r[i] for i in at) for r in rows], distinct=distinct), len(rows)
    if pin.kind in ("dc", "fd"):
        return pairs(rows, distinct=distinct), len(rows) * (len(rows) - 1)
    return sum(r[2] is not None and r[2] <= 1 for r in rows), len(rows)


def allowed(at_most: str, n: int, total: int) -> bool:
    if at_most.endswith("%"):
        return n <= Fraction(Decimal(at_most[:-1])) * total / 100
    return n <= int(at_most or "0")


def check(pins: list[Pin], rows: list[Row], ids: set[int], *, distinct: bool) -> None:
    for pin in pins:
        n, total = against(pin, rows, ids, distinct=distinct)
        assert pin.n_violations == n, str(pin)
        assert pin.error == n / max(1, total)
        assert pin.holds == allowed(pin.terms.at_most, n, total), str(pin)


@given(st.data(), st.sampled_from([("equal", 0), ("equal", 1), ("distinct", 0)]), st.booleans())
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_any_history(data: st.DataObject, how: tuple[Any, int], append_only: bool) -> None:
    nulls, max_columns = how
    distinct = nulls == "distinct"
    with tempfile.TemporaryDirectory() as folder:
        ws = holdfast.open(f"{folder}/my.hold", engine="inline")
        ids: set[int] = set(data.draw(st.lists(st.integers(0, 3), unique=True, min_size=1)))
        rows = {i: (i, *row) for i, row in enumerate(data.draw(st.lists(ROW, min_size=1, max_size=6)))}
        kinds = {"kinds": ("ucc", "ind"), "nulls": nulls, "max_columns": max_columns or None}
        ws.track("parents", parents(sorted(ids)), row_key=["id"], **kinds)
        ws.track(
            "children",
            children(list(rows.values())),
            append_only=append_only,
            **({} if append_only else {"row_key": ["no"]}),
            **kinds,
        )
        wanted = [
            Wanted("children", ("a",)),
            Wanted("children", ("ref", "b")),
            Wanted("children", ("ref",), INCLUSION),
            Wanted("children", rule="a > 1"),
            Wanted("children", rule="a -> b"),
        ]
        for each in wanted:
            pinned = pin(ws, each, {"at_most": data.draw(AT_MOST)})
            check([pinned], list(rows.values()), ids, distinct=distinct)
        for step in range(1, data.draw(st.integers(2, 5))):
            if data.draw(st.booleans()):
                removable = st.nothing() if append_only or not rows else st.sampled_from(sorted(rows))
                gone = data.draw(st.lists(removable, unique=True))
                come = {
                    10 * step + i: (10 * step + i, *row)
                    for i, row in enumerate(data.draw(st.lists(ROW, max_size=4)))
                }
                rows = {i: row for i, row in rows.items() if i not in gone} | come
                batch = {"inserts": children(list(come.values()))} if come else {}
                batch |= {"deletes": pa.table({"no": pa.array(gone, pa.int64())})} if gone else {}
                table = "children"
            else:
                more = set(data.draw(st.lists(st.integers(0, 3), unique=True)))
                # Those that are there go, the others come.
                batch = {"inserts": parents(sorted(more - ids))} if more - ids else {}
                batch |= {"deletes": parents(sorted(more & ids))} if more & ids else {}
                table, ids = "parents", ids ^ more
            if batch:
                foretold = ws.check(table, **batch)
                done = ws.apply(table, **batch)
                assert [(str(p), p.holds, p.n_violations) for p in foretold.pins] == [
                    (str(p), p.holds, p.n_violations) for p in done.pins
                ]
                check(list(done.pins), list(rows.values()), ids, distinct=distinct)
            if data.draw(st.booleans()):
                ws.close()
                ws = holdfast.open(f"{folder}/my.hold", engine="inline")
            if data.draw(st.booleans()):
                again = data.draw(st.sampled_from(wanted))
                pin(ws, again, {"at_most": data.draw(AT_MOST)})
            assert len(ws.pins()) == len(wanted)
            check(ws.pins(), list(rows.values()), ids, distinct=distinct)
            assert all(p.rule is None or p.error == p.rule.error for p in ws.pins())
        ws.close()


def pin(ws: holdfast.Workspace, wanted: Wanted, terms: PinTerms) -> Pin:
    if wanted.rule:
        return ws.pin_rule(wanted.rule, table=wanted.table, **terms)
    return ws.pin(wanted.table, wanted.columns, referenced=wanted.referenced, **terms)


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.decimals(0, 100, places=6))
def test_shares_compare_exactly(n: int, total: int, percent: Decimal) -> None:
    written = tolerance(f"{percent}%")
    assert tolerance(written) == written
    assert tolerance(f"{percent / 100:f}") == written
    assert Terms(written).allows(n, total) == (100 * n <= Fraction(percent) * total)


@pytest.mark.parametrize(
    "text",
    [
        "-1",
        "101%",
        "1.5",
        "few",
        "5 cows",
        "nan",
        "1e5",
        "%",
        "0x1",
        "inf%",
        "10000000000000000000.00000000001e-17%",
    ],
)
def test_what_is_no_tolerance(text: str) -> None:
    with pytest.raises(UsageError, match="is no tolerance"):
        tolerance(text)


def test_states_of_earlier_releases_are_read() -> None:
    """A pin of before has the usual terms."""
    side = {"table": "t", "columns": ["a"]}
    file = {"name": "x", "length": 1, "checksum": ""}
    kept = {"cover": file, "evidence": file, "max_columns": 0, "pins": [{"columns": ["a"], "holds": True}]}
    assert KeyRef.from_dict(kept).pins == (PinnedKey(("a",), True),)
    ind = PinnedInd.from_dict({"dependent": side, "referenced": side, "holds": False})
    assert (ind.terms, ind.n_violations) == (Terms(), None)
    assert PinnedRule.from_dict({"predicates": [], "n_violations": 2, "pairs": [[1, 2]]}).terms == Terms()
    assert PinnedCheck.from_dict({"formula": "a > 0", "n_violations": 2, "row_ids": [1]}).terms == Terms()


def test_many_at_once_or_nothing(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "my.hold", engine="inline") as ws:
        ws.track("parents", parents([1, 2]), kinds=("ucc", "ind"))
        ws.track("children", children([(1, 1, 2, 3), (2, 2, 0, 3)]), kinds=("ucc", "ind"))
        version = ws.version
        good = [
            Wanted("parents", ("id",)),
            Wanted("children", ("ref",), INCLUSION, terms={"owner": "ann"}),
            Wanted("children", rule="a > 1", terms={"at_most": "50%"}),
            Wanted("children", rule="a -> b"),
        ]
        for bad, message in (
            (Wanted("children", ("nope",)), "no column 'nope'"),
            (Wanted("elsewhere", ("id",)), "elsewhere"),
            (Wanted("children", rule="a >"), "at character"),
            (Wanted("children", rule="t.a > 1"), "there twice"),
            (Wanted("children", rule="b > 1", terms={"severity": "fatal"}), "severity is 'fatal'"),
        ):
            with pytest.raises(holdfast.HoldfastError, match=message):
                ws.pin_all([*good, bad])
            assert (ws.version, ws.pins()) == (version, [])
        foretold = ws.pin_all(good, dry_run=True)
        assert (ws.version, ws.pins()) == (version, [])
        done = ws.pin_all(good)
        assert done.pinned == foretold.pinned
        assert (done.version, ws.version, len(done.pinned)) == (version + 1, version + 1, 4)
        again = ws.pin_all(good)
        assert (again.version, again.pinned, len(again.unchanged)) == (version + 1, (), 4)
        [entry] = [e for e in ws.log() if e.version == ws.version]
        assert (entry.action, entry.tables) == ("pin", ("parents", "children"))
        # Proposed again, on no terms, all of it keeps its own; on others it has those.
        assert len(ws.pin_all([Wanted("children", rule="a > 1")], only_holding=True).unchanged) == 1
        proposed = [Wanted("children", rule="a > 1", terms={"at_most": 1}), Wanted("children", rule="b > 3")]
        assert [str(p) for p in ws.pin_all(proposed, only_holding=True).left_out] == ["b > 3"]
        assert {str(p): p.terms.at_most for p in ws.pins()}["a > 1"] == "1"
        pruned = ws.pin_all(good[:1], prune=True)
        assert [str(p) for p in ws.pins()] == ["[id]"]
        assert len(pruned.removed) == 3
        assert ws.apply("children", inserts=children([(3, 9, 0, 0)])).pins == ()


def test_an_inclusion_of_several_columns_has_no_tolerance(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "my.hold", engine="inline") as ws:
        rows = children([(1, 1, 2, 3), (2, 2, 0, 3)])
        ws.track_all({"left": rows, "right": rows}, kinds=("ucc", "ind"))
        to = Side("right", ("no", "ref"))
        assert ws.pin("left", ["no", "ref"], referenced=to, severity="info").severity == "info"
        change = ws.apply("left", inserts=children([(7, 7, 7, 7)]))
        assert [p.severity for p in change.broken_pins] == ["info"]
        assert (change.failing(), change.failing("warning"), len(change.failing("info"))) == ([], [], 1)
        # One that does not hold is not pinned any more, but what is pinned stays so.
        wanted = Wanted("left", ("no", "ref"), to, terms={"severity": "info"})
        assert [p.holds for p in ws.pin_all([wanted]).unchanged] == [False]
        [pinned] = ws.pin_all([replace(wanted, terms={"owner": "ann"})]).pinned
        assert (pinned.holds, pinned.terms) == (False, Terms(owner="ann"))
        # What is counted can be pinned though it is not kept, and then not without its tolerance.
        [counted] = ws.pin_all([replace(wanted, terms={"at_most": 1})]).pinned
        assert (counted.holds, counted.n_violations) == (True, 1)
        with pytest.raises(UsageError, match="does not hold now"):
            ws.pin_all([wanted])
        ws.pin("left", ["no", "ref"], referenced=to, remove=True)
        with pytest.raises(UsageError, match="does not hold now"):
            ws.pin_all([wanted])


def covers(row: Sequence[int | None], asked: Sequence[int | None]) -> bool:
    """Whether a row has what of another one is not NULL."""
    return all(b is None or a == b for a, b in zip(row, asked, strict=True))


PAIR = st.tuples(st.none() | st.integers(0, 2), st.none() | st.integers(0, 2))


@given(st.data(), st.booleans())
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_a_reference_of_several_columns(data: st.DataObject, keyed: bool) -> None:
    """Whether its right side has a key or not: the rows whose combination is missing, after every batch."""

    def pairs_table(rows: Mapping[int, Sequence[int | None]]) -> pa.Table:
        return pa.table(
            {
                "no": pa.array(list(rows), pa.int64()),
                **{c: pa.array([row[i] for row in rows.values()], pa.int64()) for i, c in enumerate("xy")},
            }
        )

    with tempfile.TemporaryDirectory() as folder:
        ws = holdfast.open(f"{folder}/my.hold", engine="inline")
        rows: dict[str, dict[int, Any]] = {}
        for table in ("left", "right"):
            drawn = data.draw(st.lists(PAIR, min_size=1, max_size=6, unique=keyed and table == "right"))
            rows[table] = dict(enumerate(drawn))
            ws.track(table, pairs_table(rows[table]), row_key=["no"], kinds=("ucc", "ind"))

        to = Side("right", ("x", "y"))

        def judge(pins: Sequence[Pin]) -> None:
            [pin] = pins
            there = rows["right"].values()
            asked = [pair for pair in rows["left"].values() if pair != (None, None)]
            missing = [pair for pair in asked if not any(covers(other, pair) for other in there)]
            n = len(missing)
            assert pin.n_violations == n
            assert pin.holds == allowed(pin.terms.at_most, n, len(rows["left"]))
            explained = ws.inds.explain(Side("left", ("x", "y")), to)
            assert (explained.holds, explained.ind.missing_rows) == (not n, n)
            assert explained.ind.missing_values == len(set(missing))
            assert explained.ind.error == len(set(missing)) / max(1, len(set(asked)))
            assert len(explained.missing) == min(4, len(set(missing)))
            for value, row in explained.missing:
                assert tuple(value) == (row.values["x"], row.values["y"]) in missing
            assert ws.inds.violations(Side("left", ("x", "y")), to).n_violating == n
            # If anything is known of how it is now, it is so.
            life = ws.inds.life(Side("left", ("x", "y")), to)
            assert life[-1].holds in (None, explained.holds)
            assert explained.since == (None if life[-1].holds is None else life[-1].first)

        def pin_it() -> None:
            """On any terms; without a tolerance only if it holds."""
            at_most, now = data.draw(AT_MOST), ws.inds.explain(Side("left", ("x", "y")), to)
            if at_most or now.holds or [p.terms.at_most for p in ws.pins()] == [""]:
                judge([ws.pin("left", ["x", "y"], referenced=to, at_most=at_most)])
            else:
                with pytest.raises(UsageError, match="does not hold now"):
                    ws.pin("left", ["x", "y"], referenced=to)

        pin_it()
        for step in range(1, data.draw(st.integers(2, 5))):
            table = data.draw(st.sampled_from(["left", "right"]))
            removable = st.sampled_from(sorted(rows[table])) if rows[table] else st.nothing()
            gone = data.draw(st.lists(removable, unique=True))
            come = {10 * step + i: pair for i, pair in enumerate(data.draw(st.lists(PAIR, max_size=4)))}
            rows[table] = {i: pair for i, pair in rows[table].items() if i not in gone} | come
            batch = {"inserts": pairs_table(come)} if come else {}
            batch |= {"deletes": pa.table({"no": pa.array(gone, pa.int64())})} if gone else {}
            if batch:
                foretold = ws.check(table, **batch)
                done = ws.apply(table, **batch)
                assert [(p.holds, p.n_violations) for p in foretold.pins] == [
                    (p.holds, p.n_violations) for p in done.pins
                ]
            if data.draw(st.booleans()):
                ws.close()
                ws = holdfast.open(f"{folder}/my.hold", engine="inline")
            if data.draw(st.booleans()):
                pin_it()
            if ws.pins():
                judge(ws.pins())
        ws.close()


def test_a_reference_holds_while_nothing_is_missing(tmp_path: Path) -> None:
    """Whatever becomes of the key on its right side, and whether there is a value on its left one."""
    kinds = ("ucc", "ind")
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("u", pa.table({"k": [1, 2], "l": [1, 1]}), kinds=kinds)
        ws.track("c", pa.table({"a": [1, 1], "b": [1, 1]}), kinds=kinds)
        to, single = Side("u", ("k", "l")), Side("u", ("k",))

        def verdicts() -> set[bool]:
            """Of the pins, `explain`, `violations` and the lives."""
            explained = [ws.inds.explain(Side("c", c), s) for c, s in ((("a", "b"), to), (("a",), single))]
            listed = [ws.inds.violations(Side("c", c), s) for c, s in ((("a", "b"), to), (("a",), single))]
            lives = [ws.inds.life(Side("c", c), s)[-1] for c, s in ((("a", "b"), to), (("a",), single))]
            known = {stretch.holds for stretch in lives} - {None}
            return {p.holds for p in ws.pins()} | {x.holds for x in (*explained, *listed)} | known

        ws.pin("c", ["a", "b"], referenced=to)
        ws.pin("c", ["a"], referenced=single)
        change = ws.apply("u", inserts=pa.table({"k": [1], "l": [1]}))
        assert change.broken_pins == []
        assert verdicts() == {True}
        ws.pin("c", ["a", "b"], referenced=to, remove=True)
        assert ws.pin("c", ["a", "b"], referenced=to).holds
        assert ws.pin_all([Wanted("c", ("a", "b"), to, terms={"owner": "ann"})]).pinned[0].holds
        gone = pa.table({"a": [1, 1], "b": [1, 1]})
        nulls = pa.table({"a": pa.nulls(2, pa.int64()), "b": pa.nulls(2, pa.int64())})
        for batch in ({"deletes": gone, "inserts": nulls}, {"deletes": nulls}):
            assert ws.apply("c", **batch).broken_pins == []
            assert verdicts() == {True}
        assert ws.pin("c", ["b"], referenced=single).holds
        assert len(ws.apply("c", inserts=pa.table({"a": [1], "b": [7]})).broken_pins) == 2
        assert len(ws.apply("c", inserts=pa.table({"a": [7], "b": [1]})).broken_pins) == 3
        assert verdicts() == {False}


def test_whatever_explain_takes_is_pinned(tmp_path: Path) -> None:
    """A text, columns, or a dependency of a list: each is pinned once, however it is asked for."""
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("parents", parents([1, 2]), kinds=("ucc", "ind"))
        ws.track("children", children([(1, 1, 0, 5), (2, 2, 0, 5)]), kinds=("ucc", "fd", "ind"))
        [determined] = [
            d for d in ws.dependencies("fd", "children") if d.name == "a -> b" or d.name == "[] -> b"
        ]
        asked: list[Any] = [
            "no",
            ["no"],
            "[no]",
            "a -> b",
            determined,
            "b >= 2",
            "children[ref] in parents[id]",
        ]
        names = [str(ws.pin("children", question, at_most=1)) for question in asked]
        assert names[:3] == ["[no]"] * 3
        assert names[5:] == ["b >= 2", "children[ref] in parents[id]"]
        assert {str(pin) for pin in ws.pins()} == {*names}
        assert len({*names}) == 5
        assert str(ws.pin("children", "a -> b", remove=True)) == names[3]
        assert len(ws.pins()) == 4
        with pytest.raises(UnknownColumnError, match="no column 'zip'"):
            ws.pin("children", "zip -> b")


@pytest.mark.parametrize("nulls", ["equal", "distinct"])
def test_whatever_is_pinned_is_explained(tmp_path: Path, nulls: Any) -> None:
    """Tracked for its kind or not: the same by a look at the rows, and since when as far as it was pinned."""
    rows = [(1, None, 2, 3), (2, 1, 2, 3), (3, 3, 0, None), (4, 4, 0, None)]
    asked = ["no >= ref", "ref <= b", "a -> b", "ref -> a", "[] -> b", "not(t.a = s.a and t.ref != s.ref)"]
    unlike = {"table", "rule", "since", "turned", "minimal", "inside", "key", "implied_by", "pinned"}
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("plain", children(rows), kinds=("ind",), nulls=nulls)
        ws.track("full", children(rows), kinds=("ucc", "fd", "dc"), nulls=nulls)

        def compare() -> list[dict[str, Any]]:
            answers = []
            for question in asked:
                plain, full = (ws.explain(table, question).to_dict() for table in ("plain", "full"))
                answers.append(plain)
                for name in {*full} - unlike:
                    assert plain[name] == full[name], (question, name)
            return answers

        assert [answer["since"] for answer in compare()] == [None] * len(asked)
        first = []
        for question in asked:
            ws.pin("plain", question)
            first.append(ws.version)
        assert [answer["since"] for answer in compare()] == first
        before = [answer["holds"] for answer in compare()]
        for table in ("plain", "full"):
            ws.apply(table, inserts=children([(0, 4, 2, 1)]))
        after = compare()
        turned = [a["holds"] is not held for a, held in zip(after, before, strict=True)]
        assert 0 < sum(turned) < len(asked)
        version = ws.version - 1
        since = [version if t else pinned for pinned, t in zip(first, turned, strict=True)]
        assert [answer["since"] for answer in after] == since


def test_functional_dependencies_of_distinct_nulls(tmp_path: Path) -> None:
    """They are no rules about two rows, of which NULLs are equal: both can be pinned, and differ."""
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        rows = pa.table({"zip": ["1", None, None], "city": ["Rome", "Bern", "Oslo"]})
        ws.track("t", rows, kinds=("fd",), nulls="distinct")
        assert ws.explain("t", "zip -> city").holds
        assert ws.violations("t", "zip -> city").holds
        ws.mute("t", "zip -> city")
        pinned = ws.pin("t", "zip -> city", at_most=1)
        assert not ws.muted()
        assert (pinned.kind, str(pinned), pinned.holds) == ("fd", "zip -> city", True)
        assert pinned.to_dict()["rule"] == {
            "kind": "fd", "table": "t", "lhs": ["zip"], "rhs": "city", "error": 0.0,
        }  # fmt: skip
        assert not ws.pin("t", RULE).holds
        assert [str(pin) for pin in ws.pins()] == ["zip -> city", RULE]
        # As the list of functional dependencies has them.
        [determined] = [d for d in ws.dependencies("fd", "t") if d.name == "zip -> city"]
        assert ws.pin("t", determined, severity="warning").terms.severity == "warning"
        assert len(ws.pins()) == 2
        # Cities that are not known differ, zips that are not known say nothing.
        done = ws.apply("t", inserts=pa.table({"zip": ["2", "2", None], "city": [None, None, "Rome"]}))
        by_name = {str(pin): pin for pin in done.pins}
        broken = by_name["zip -> city"]
        assert (broken.n_violations, broken.holds) == (2, False)
        assert {w.values["zip"] for pair in broken.witnesses for w in pair} == {"2"}
        assert by_name[RULE].n_violations == 6  # of the zips that are not known
        # The same number as `explain` and the errors of lists have.
        assert broken.error == ws.explain("t", "zip -> city").error
        ws.pin("t", "zip -> city", remove=True)
        assert [str(pin) for pin in ws.pins()] == [RULE]

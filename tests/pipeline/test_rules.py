"""Watched rules on many segments equal the definition, after any batch; inline and Spark agree."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from holdfast.core.engine.engine import Engine
from holdfast.core.evidence import shuffled as rows_meet
from holdfast.core.evidence.sent_parts import answers
from holdfast.core.rows import codes
from holdfast.core.rows.kernels.operators import EQ, GE, GT, LE, LT, NE
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import encode_rows, open_segment, write_segment
from holdfast.core.rows.table_state import SegmentRef
from holdfast.core.store.arrow_types import arrow_schema, type_of
from holdfast.core.store.format import create_marker, text_key
from holdfast.core.words.schema import Column, Schema
from holdfast.denial import violation_changes
from holdfast.denial import violations as counting
from holdfast.denial.kernels import rule_violations
from holdfast.denial.kernels.rule_violations import SAMPLES
from holdfast.denial.pair_rule import Rule, Violations, wanted_indexes
from holdfast.denial.sent_sides import SENDING
from holdfast.denial.violating_pairs import degrees_part, pairs_part
from holdfast.denial.violation_changes import changed
from holdfast.denial.violations import verify
from pipeline.exchange_here import ExchangeHere
from reference import rule_violations as reference
from reference.keys import canonical
from strategies import TYPES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INLINE = Engine(mode="inline")
# Two numbers that are compared with each other, two texts likewise, and others.
COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "low": ("int", [-5, 0, 1, 2, 7, None]),
    "high": ("int", [-5, 0, 1, 3, None]),
    "rate": ("float", [float("nan"), -0.0, 0.0, 1.5, float("inf"), None]),
    "city": ("text", ["", "a", "b", "é", "c", None]),
    "home": ("text", ["", "a", "b", "d", None]),
}
NAMES = list(COLUMNS)
NUMBERS, TEXTS = [0, 1], [3, 4]
FIELDS = pa.schema([pa.field(name, TYPES[kind][0]) for name, (kind, _) in COLUMNS.items()])
SCHEMA = Schema(tuple(Column(f.name, type_of(f.type, table="t", column=f.name)) for f in FIELDS))
ROW = st.tuples(*(st.sampled_from(values) for _, values in COLUMNS.values()))


def predicates() -> st.SearchStrategy[tuple[int, int, int]]:
    ordered = st.tuples(st.sampled_from(NUMBERS), st.integers(EQ, GE), st.sampled_from(NUMBERS))
    rates = st.tuples(st.just(2), st.integers(EQ, GE), st.just(2))
    texts = st.tuples(st.sampled_from(TEXTS), st.sampled_from([EQ, NE]), st.sampled_from(TEXTS))
    return ordered | rates | texts


def rules_of_any_nulls() -> st.SearchStrategy[Rule]:
    distinct = predicates().filter(lambda p: p[1] in (EQ, NE))
    return st.lists(predicates(), max_size=4).map(lambda p: Rule(tuple(p))) | st.lists(
        distinct, max_size=4
    ).map(lambda p: Rule(tuple(p), "distinct"))


RULES = st.lists(rules_of_any_nulls(), min_size=1, max_size=3)
FIXED = [
    Rule(()),
    Rule(((0, LT, 0), (0, GT, 0))),  # no two values satisfy it
    Rule(((0, LE, 1), (0, GE, 1))),
    Rule(((0, NE, 0),)),  # its own mirror image
    Rule(((0, LT, 1), (1, GT, 0))),  # the same, of two columns
    Rule(((3, EQ, 3), (0, GT, 0), (2, LT, 2))),
    Rule(((3, EQ, 4), (4, NE, 3))),
    Rule(((0, GT, 0), (2, LT, 2))),
    Rule(((0, LE, 1), (1, LE, 0), (2, GE, 2))),
    Rule(((3, EQ, 3), (0, NE, 0)), "distinct"),  # a functional dependency
    Rule(((3, EQ, 3), (4, EQ, 4), (0, NE, 0)), "distinct"),
    Rule(((0, NE, 0),), "distinct"),
    Rule(((3, EQ, 3),), "distinct"),
]


MODULES = (rule_violations, counting, violation_changes, rows_meet)


@contextmanager
def patched(**values: Any) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            module = next(m for m in MODULES if hasattr(m, name))
            patch.setattr(module, name, value)
        yield


@contextmanager
def two_bit_hashes() -> Iterator[None]:
    """Almost all texts share a code."""
    honest = codes.hash_texts
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codes, "hash_texts", lambda texts, key: honest(texts, key) & 3)
        yield


# Ways to count, by what they are said to cost.
WAYS: dict[str, dict[str, Any]] = {
    "as measured": {},
    "scan": {"SWEEP_ROW": 1e12, "CHAIN_NS": 1e12},
    "sweep": {"SWEEP_ROW": 0.0, "CHAIN_NS": 1e12},
    "indexes": {
        "SCAN_ROW": 1e6,
        "SCAN_PREDICATE": 1e6,
        "SWEEP_ROW": 1e9,
        "CHAIN_NS": 1.0,
        "RECOUNT_NS": np.inf,
    },
    "count anew": {"RECOUNT_NS": 0.0},
    "small tasks": {"TASK_NS": 1.0, "TASK_ROWS": 2, "PART_ROWS": 4, "DIVIDE_ROWS": 1},
    "rows are sent": {"PART_ROWS": 4, "SHUFFLED_ROWS": 0},
}


def engine_of(way: str) -> Engine:
    return ExchangeHere(mode="inline") if way == "rows are sent" else INLINE


def written(root: Path, rows: Sequence[Sequence[Any]], number: int) -> list[SegmentRef]:
    """Rows as one segment, or more where texts collide."""
    if not rows:
        return []
    arrays = [pa.array([r[c] for r in rows], f.type) for c, f in enumerate(FIELDS)]
    table = pa.table(arrays, schema=FIELDS).cast(arrow_schema(SCHEMA))
    create_marker(root)
    return [
        write_segment(root, "rows", number + i, columns, range(len(SCHEMA)))
        for i, columns in enumerate(encode_rows(table, SCHEMA, text_key(root)))
    ]


def empty(root: Path, engine: Engine = INLINE) -> Relation:
    return Relation(root, "rows", "staging", SCHEMA, "equal", tuple(range(len(SCHEMA))), (), engine)


def live_rows(relation: Relation) -> dict[int, list[Any]]:
    """Row id to values that compare as the semantics says."""
    found = {}
    for ref in relation.segments:
        segment = open_segment(relation.root, ref, relation.schema)
        at = np.flatnonzero(segment.live)
        for row_id, row in zip(segment.row_ids(at).tolist(), segment.rows(at).to_pylist(), strict=True):
            found[row_id] = [comparable(v) for v in row.values()]
    return found


def comparable(value: Any) -> Any:
    """NaN is one value, above all others; -0.0 is 0.0."""
    if isinstance(value, float):
        return (1, 0.0) if value != value else (0, value + 0.0)
    return canonical(value) if isinstance(value, bytes) else value


Pairs = list[set[tuple[int, int]]]


def violations(relation: Relation, rules: Sequence[Rule]) -> Pairs:
    """By definition."""
    rows = live_rows(relation)
    apart = reference.with_distinct_nulls(rows)
    return [reference.violations(apart if r.nulls == "distinct" else rows, r.predicates) for r in rules]


def check(found: Sequence[Violations], violations: Pairs) -> None:
    for one, expected in zip(found, violations, strict=True):
        assert one.n_violations == len(expected)
        told = list(map(tuple, one.pairs.tolist()))
        assert len(told) == len(set(told)) <= SAMPLES
        assert set(told) <= expected
        assert bool(told) == bool(expected)
        assert one.pairs.dtype == np.int64


def drawn_relation(data: st.DataObject, root: Path, engine: Engine) -> Relation:
    """Segments, some indexed, with deleted rows."""
    relation, number = empty(root, engine), 0
    for _ in range(data.draw(st.integers(0, 3))):
        refs = written(root, data.draw(st.lists(ROW, max_size=8)), number)
        number += 10
        relation = relation.with_segments(refs)
    return without_some(data, relation)[0]


def without_some(data: st.DataObject, relation: Relation) -> tuple[Relation, np.ndarray]:
    ids = sorted(live_rows(relation))
    gone = data.draw(st.sets(st.sampled_from(ids), max_size=6)) if ids else set()
    row_ids = np.array(sorted(gone), dtype=np.int64)
    return (relation.without_rows(row_ids) if gone else relation), row_ids


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(RULES, st.sampled_from(sorted(WAYS)), st.booleans(), st.data())
def test_verify(rules: list[Rule], way: str, colliding: bool, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder, patched(**WAYS[way]):
        if colliding:
            with two_bit_hashes():
                relation = drawn_relation(data, Path(folder), engine_of(way))
        else:
            relation = drawn_relation(data, Path(folder), engine_of(way))
        rules = [*rules, *FIXED]
        check(verify(relation, rules), violations(relation, rules))


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(RULES, st.booleans(), st.data())
def test_rows_that_are_sent_make_the_same_pairs(
    rules: list[Rule], colliding: bool, data: st.DataObject
) -> None:
    """All pairs, and how many each row is in."""
    way = "rows are sent"
    with tempfile.TemporaryDirectory() as folder, patched(**WAYS[way]):
        with two_bit_hashes() if colliding else patched():
            relation = drawn_relation(data, Path(folder), engine_of(way))
        rules = [rule for rule in (*rules, *FIXED) if EQ in rule.ops and rule.nulls == "equal"]
        for rule, expected in zip(rules, violations(relation, rules), strict=True):
            payloads, work = counting.parts_of(relation, rule)
            event(f"{min(len(payloads), 3)} parts")
            pairs, rows = (
                [r.array(name) for r in answers(relation, SENDING, task, payloads, work)]
                for task, name in ((pairs_part, "pairs"), (degrees_part, "rows"))
            )
            listed = [tuple(pair) for part in pairs for pair in part.reshape(-1, 2).tolist()]
            assert len(listed) == len(expected) == len(set(listed))
            assert set(listed) == expected
            degrees = Counter[tuple[int, int]]()
            for row, *sides in (row for part in rows for row in part.reshape(-1, 3).tolist()):
                degrees.update({(side, row): n for side, n in enumerate(sides) if n})
            assert degrees == Counter((side, row) for pair in expected for side, row in enumerate(pair))


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(RULES, st.sampled_from(sorted(WAYS)), st.booleans(), st.booleans(), st.data())
def test_batches(rules: list[Rule], way: str, indexed: bool, colliding: bool, data: st.DataObject) -> None:
    """After each of some batches: the count is exact, and a pair is told if there is one."""
    rules = [*rules, *FIXED]
    with tempfile.TemporaryDirectory() as folder, patched(**WAYS[way]):
        root = Path(folder)
        hashes = two_bit_hashes() if colliding else patched()
        with hashes:
            relation = drawn_relation(data, root, engine_of(way))
            found = verify(relation, rules)
            for number in (100, 200):
                if indexed:
                    relation = relation.indexed(*wanted_indexes(rules, SCHEMA, relation.distinct()))
                remaining, row_ids = without_some(data, relation)
                added = [
                    ref
                    for part in range(data.draw(st.integers(0, 2)))
                    for ref in written(root, data.draw(st.lists(ROW, max_size=6)), number + 10 * part)
                ]
                after = remaining.with_segments(added)
                found = changed(relation, remaining, after, row_ids, added, rules, found)
                check(found, violations(after, rules))
                relation = after
        event(f"{way}, {'indexed' if indexed else 'without index'}")


def numbers(rng: np.random.Generator, n: int) -> list[tuple[Any, ...]]:
    """Rows of which low and rate rise together, almost."""
    low = rng.integers(0, 1000, n)
    return list(
        zip(
            low.tolist(),
            (low + rng.integers(-5, 5, n)).tolist(),
            (low // 10 + rng.integers(-2, 2, n)).astype(float).tolist(),
            [f"c{i}" for i in rng.integers(0, 5, n)],
            [f"c{i}" if i > 20 else None for i in rng.integers(0, 200, n)],
            strict=True,
        )
    )


def test_larger_batches(tmp_path: Path) -> None:
    """Enough rows for blocks of the scan, and for lists and chains that are worth their while."""
    rng = np.random.default_rng(3)
    rules = [*FIXED, Rule(((4, EQ, 4), (0, GT, 0), (2, LT, 2))), Rule(((0, EQ, 1), (2, NE, 2)))]
    rules += [Rule(((4, EQ, 4), (0, NE, 0)), "distinct"), Rule(((0, EQ, 0), (4, NE, 4)), "distinct")]
    relation = empty(tmp_path)
    for i in range(2):
        relation = relation.with_segments(written(tmp_path, numbers(rng, 120), i))
    relation = relation.indexed(*wanted_indexes(rules, SCHEMA, relation.distinct()))
    row_ids = np.array([*range(30), *range(1 << 32, (1 << 32) + 30)], dtype=np.int64)
    remaining = relation.without_rows(row_ids)
    added = written(tmp_path, numbers(rng, 70), 9)
    after = remaining.with_segments(added)
    expected = violations(relation, rules), violations(after, rules)
    for way in sorted(WAYS):
        with patched(**WAYS[way]):
            before, left, then = (r.by(engine_of(way)) for r in (relation, remaining, after))
            known = verify(before, rules)
            check(known, expected[0])
            check(changed(before, left, then, row_ids, added, rules, known), expected[1])


def test_a_pair_is_looked_for_where_all_known_ones_are_gone(tmp_path: Path) -> None:
    """In a few rows first, then in all."""
    rule = Rule(((0, EQ, 0),))
    rows = [(i, 0, 0.0, "", "") for i in range(1000)]
    rows[1], rows[998] = rows[0], rows[997]
    relation = empty(tmp_path).with_segments(written(tmp_path, rows, 0))
    known = [Violations(4, np.array([[0, 1], [1, 0]]))]
    row_ids = np.array([0])
    remaining = relation.without_rows(row_ids)
    for few in (2, 1000):
        with patched(SEARCHED_ROWS=few):
            [found] = changed(relation, remaining, remaining, row_ids, [], [rule], known)
        assert found.n_violations == 2
        assert sorted(found.pairs.tolist()) == [[997, 998], [998, 997]]


def test_known_pairs_stay(tmp_path: Path) -> None:
    """New ones come behind them, up to three."""
    rule = Rule(((0, EQ, 0),))
    relation = empty(tmp_path).with_segments(written(tmp_path, [(1, 0, 0.0, "", "")] * 2, 0))
    known = verify(relation, [rule])
    assert sorted(known[0].pairs.tolist()) == [[0, 1], [1, 0]]
    added = written(tmp_path, [(1, 0, 0.0, "", "")], 1)
    after = relation.with_segments(added)
    [found] = changed(relation, relation, after, np.empty(0, np.int64), added, [rule], known)
    assert found.n_violations == 6
    assert len(found.pairs) == SAMPLES
    assert {tuple(p) for p in known[0].pairs.tolist()} <= {tuple(p) for p in found.pairs.tolist()}
    same = changed(after, after, after, np.empty(0, np.int64), [], [rule], [found])
    assert same[0].pairs.tolist() == found.pairs.tolist()


def test_told_pairs_share_no_row_if_they_can(tmp_path: Path) -> None:
    rows = [(i // 2, 0, 0.0, "", "") for i in range(100)]
    relation = empty(tmp_path).with_segments(written(tmp_path, rows, 0))
    for way in sorted(WAYS):
        with patched(**WAYS[way]):
            [found] = verify(relation, [Rule(((0, EQ, 0),))])
        assert found.n_violations == 100
        assert len(np.unique(found.pairs)) == 2 * SAMPLES


@pytest.mark.parametrize("n_rows", [0, 1, 2])
def test_few_rows(n_rows: int, tmp_path: Path) -> None:
    relation = empty(tmp_path).with_segments(written(tmp_path, [(None,) * 5] * n_rows, 0))
    check(verify(relation, FIXED), violations(relation, FIXED))
    assert verify(relation, []) == []
    assert changed(relation, relation, relation, np.empty(0, np.int64), [], [], []) == []


def test_reduced() -> None:
    assert Rule(((0, LE, 1), (0, GE, 1), (1, LT, 0))).reduced == Rule(((0, EQ, 1), (1, LT, 0)))
    assert Rule(((0, EQ, 0), (0, NE, 0))).reduced is None
    assert Rule(()).reduced == Rule(())
    assert Rule(((0, LT, 1),)).mirrored == Rule(((1, GT, 0),))
    assert Rule(((0, NE, 1),), "distinct").mirrored == Rule(((1, NE, 0),), "distinct")
    assert Rule(((0, NE, 1),), "distinct").reduced == Rule(((0, NE, 1),), "distinct")
    with pytest.raises(ValueError, match="distinct NULLs with an order"):
        Rule(((0, LT, 1),), "distinct")


def test_wanted_indexes() -> None:
    distinct = [1000, 900, 500, 5, 300]

    def wanted(*predicates: tuple[int, int, int]) -> Any:
        return wanted_indexes([Rule(predicates)], SCHEMA, distinct)

    assert wanted() == ((), ())
    assert wanted((0, LT, 0), (0, GT, 0)) == ((), ())
    assert wanted((4, EQ, 4), (0, GT, 0), (2, LT, 2)) == ((4,), ())
    assert wanted((3, EQ, 3), (0, GT, 0), (2, LT, 2)) == ((3,), ())
    assert wanted((0, EQ, 1), (3, EQ, 3)) == ((0, 1), ())
    # Few values: an order index has as many chains at most.
    assert wanted((3, EQ, 3), (0, GT, 0)) == ((), ((0, 3, False),))
    # If it holds, the columns rise together: one chain.
    assert wanted((0, GT, 0), (2, LT, 2)) == ((), ((0, 2, False),))
    assert wanted((0, GT, 0), (2, GE, 2)) == ((), ((0, 2, True),))
    assert wanted((1, LT, 0)) == ((), ((0, 0, False), (1, 1, False)))
    assert wanted((0, LT, 0), (1, LT, 1), (2, LT, 2)) == ((), ())
    with pytest.raises(ValueError, match="a table of 5 has not"):
        wanted((5, EQ, 5))


def test_inline_and_spark_agree(tmp_path: Path, spark: SparkSession) -> None:
    """One job each, whatever is asked."""
    rng = np.random.default_rng(8)
    rules = [*FIXED, Rule(((4, EQ, 4), (0, GT, 0), (2, LT, 2)))]
    inline = empty(tmp_path)
    for i in range(3):
        inline = inline.with_segments(written(tmp_path, numbers(rng, 60), i))
    engine = Engine(spark, mode="spark")
    remote = replace(inline, engine=engine)
    before = engine.jobs
    known = verify(remote, rules)
    assert engine.jobs - before == 1
    check(known, violations(remote, rules))
    assert [f.pairs.tolist() for f in known] == [f.pairs.tolist() for f in verify(inline, rules)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_meet, "SHUFFLED_ROWS", 0)
        patch.setattr(Engine, "shuffles", True)
        patch.setattr(counting, "PART_ROWS", 50)
        before = engine.jobs
        check(verify(remote, rules), violations(remote, rules))
        assert engine.jobs - before == 2  # rules without an equality are not sent
    row_ids = np.arange(1 << 32, (1 << 32) + 20)
    remaining = remote.without_rows(row_ids)
    added = written(tmp_path, numbers(rng, 30), 7)
    after = remaining.with_segments(added)
    before = engine.jobs
    found = changed(remote, remaining, after, row_ids, added, rules, known)
    assert engine.jobs - before == 1
    check(found, violations(after, rules))
    here = changed(
        inline, replace(remaining, engine=INLINE), replace(after, engine=INLINE), row_ids, added, rules, known
    )
    assert [f.pairs.tolist() for f in found] == [f.pairs.tolist() for f in here]
    engine.close()

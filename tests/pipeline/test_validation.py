"""Candidate keys and FDs validated on the live rows of many segments: exact, with real evidence."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from holdfast.core.engine import session
from holdfast.core.engine.engine import Engine
from holdfast.core.evidence import refute, shuffled, validation
from holdfast.core.evidence.identities import column_identities
from holdfast.core.evidence.kernels import partitions
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.rows import codes, tasks
from holdfast.core.rows.kernels.masks import mask_of, positions_of
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import encode_rows, open_segment, write_segment
from holdfast.core.store.arrow_types import arrow_schema, type_of
from holdfast.core.store.bundle import unpack
from holdfast.core.store.format import create_marker, text_key
from holdfast.core.words.schema import Column, Schema
from pipeline.exchange_here import ExchangeHere
from reference import partitions as reference
from reference.keys import Row, canonical_row
from strategies import Shape, shapes

Nulls = Literal["equal", "distinct"]
HASHED = ("text", "binary", "wide decimal")
MIXED = (*HASHED, "int", "float", "bool")


@contextlib.contextmanager
def two_bit_hashes() -> Iterator[None]:
    """Almost all texts share a code."""
    honest = codes.hash_texts
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codes, "hash_texts", lambda texts, key: honest(texts, key) & 3)
        yield


def relation_of(root: Path, parts: Sequence[pa.Table], nulls: Nulls, engine: Engine) -> Relation:
    """One segment for each part, and more where texts collide."""
    names = parts[0].schema
    schema = Schema(tuple(Column(f.name, type_of(f.type, table="t", column=f.name)) for f in names))
    locator = tuple(range(len(schema)))
    create_marker(root)
    refs = []
    for part in parts:
        if len(part):
            for columns in encode_rows(part.cast(arrow_schema(schema)), schema, text_key(root)):
                refs.append(write_segment(root, "tables/t", len(refs), columns, locator))
    return Relation(root, "tables/t", "staging", schema, nulls, locator, tuple(refs), engine)


def live_rows(relation: Relation) -> dict[int, Row]:
    """Row id -> row."""
    found: dict[int, Row] = {}
    for ref in relation.segments:
        segment = open_segment(relation.root, ref, relation.schema)
        at = np.flatnonzero(segment.live)
        rows = [canonical_row(tuple(r.values())) for r in segment.rows(at).to_pylist()]
        found |= dict(zip(segment.row_ids(at).tolist(), rows, strict=True))
    return found


Sets = list[tuple[frozenset[int], frozenset[int]]]


def check(relation: Relation, fds: Sets) -> list[frozenset[int]]:
    """Validate keys and FDs; every claim against the rows. Which columns of each FD are refuted."""
    n_words, distinct = relation.n_words, relation.nulls == "distinct"
    lhs = np.array([mask_of(x, n_words) for x, _ in fds], dtype=np.uint64).reshape(-1, n_words)
    rhs = np.array([mask_of(a, n_words) for _, a in fds], dtype=np.uint64).reshape(-1, n_words)
    rows = live_rows(relation)
    keys = refute.validate(relation, lhs)
    agreed = real_evidence(keys, rows, distinct)
    row = len(relation.schema)  # the column behind the last
    for (x, _), refuted in zip(fds, keys.refuted.tolist(), strict=True):
        assert refuted == bool(reference.violated(list(rows.values()), x, {row}, distinct)), sorted(x)
        assert refuted == any(x <= m for m in agreed), "what is refuted has evidence"
    assert_exhausted(keys, agreed, rows, distinct)
    result = refute.validate_fds(relation, lhs, rhs)
    evidence = real_evidence(result, rows, distinct)
    verdicts = [frozenset(positions_of(m)) for m in result.refuted]
    for (x, asked), found in zip(fds, verdicts, strict=True):
        assert found == reference.violated(list(rows.values()), x, asked, distinct), sorted(x)
        for a in found:
            assert any(x <= m and a not in m for m in evidence), "what is refuted has evidence"
    return verdicts


def assert_exhausted(keys: Any, agreed: list[frozenset[int]], rows: dict[int, Row], distinct: bool) -> None:
    """What a round of keys needs to look at no more: the evidence has all pairs that agree on it."""
    pairs = [reference.agree_set(a, b, distinct) for a, b in itertools.combinations(rows.values(), 2)]
    for exhausted in map(frozenset, map(positions_of, keys.exhausted)):
        assert all(any(pair <= m for m in agreed) for pair in pairs if exhausted <= pair), sorted(exhausted)


def real_evidence(result: Any, rows: dict[int, Row], distinct: bool) -> list[frozenset[int]]:
    """The agree sets of a refutation, each once, after a look at their witnesses."""
    evidence = [frozenset(positions_of(m)) for m in result.masks]
    assert len(set(evidence)) == len(evidence)
    assert result.witnesses.shape == (len(evidence), WITNESSES, 2)
    for agreed, pairs in zip(evidence, result.witnesses.tolist(), strict=True):
        real = [(a, b) for a, b in pairs if a >= 0]
        assert real
        for a, b in real:
            assert a != b
            assert reference.agree_set(rows[a], rows[b], distinct) == agreed
    return evidence


@st.composite
def asked_fds(draw: st.DrawFn, n_columns: int) -> Sets:
    columns = st.integers(0, n_columns - 1)
    lhs = draw(st.lists(st.frozensets(columns, max_size=4), max_size=10, unique=True))
    every = frozenset(range(n_columns))
    return [(x, (every if draw(st.booleans()) else draw(st.frozensets(columns))) - x) for x in lhs]


def drawn_relation(data: st.DataObject, root: Path, shape: Shape, nulls: Nulls, engine: Engine) -> Relation:
    parts = [shape.table(data.draw(shape.rows(max_size=8))) for _ in range(data.draw(st.integers(1, 3)))]
    found = relation_of(root, parts, nulls, engine)
    ids = sorted(live_rows(found))
    dead = data.draw(st.sets(st.sampled_from(ids), max_size=4)) if ids else set()
    return found.without_rows(np.array(sorted(dead), dtype=np.int64))


NULLS = st.sampled_from(["equal", "distinct"])
SLOW = settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])


# The limits of each way to look at rows, so small that a few rows meet them.
LIMITS: dict[bool, list[tuple[Any, str, list[int]]]] = {
    False: [
        (refute, "PART_ROWS", [2, 5, 1 << 21]),
        (validation, "MATRIX_VALUES", [0, 1 << 25]),
        (validation, "MATRIX_SHARE", [1, 8]),
        (validation, "FEW_SEGMENTS", [0, 8]),
        (validation, "NARROWED_ROWS", [0, 4, 1 << 16]),
    ],
    True: [
        (shuffled, "SHUFFLED_ROWS", [0]),
        (shuffled, "PART_ROWS", [1, 5, 1 << 21]),
        (shuffled, "FOLDED_FROM", [0, 1, 64]),
        (shuffled, "FEW_VALUES", [0, 4]),
    ],
}
SHARED_LIMITS: list[tuple[Any, str, list[int]]] = [
    (validation, "GATHER_VALUES", [1, 12, 1 << 22]),
    (validation, "SAMPLE_ROWS", [0, 2, 1 << 11]),
    (validation, "CLUSTER_ROWS", [2, 1 << 6]),
]


@pytest.mark.parametrize("by_shuffle", [False, True])
@given(data=st.data(), nulls=NULLS, collide=st.booleans())
@SLOW
def test_exact_on_many_segments(data: st.DataObject, nulls: Nulls, collide: bool, by_shuffle: bool) -> None:
    """Also where no task reads the whole table."""
    shape = data.draw(shapes(types=HASHED if collide else MIXED, pool_size=5, max_columns=5))
    with contextlib.ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-fds-")))
        if collide:
            stack.enter_context(two_bit_hashes())
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for module, name, values in (*SHARED_LIMITS, *LIMITS[by_shuffle]):
            patch.setattr(module, name, data.draw(st.sampled_from(values)))
        engine = (ExchangeHere if by_shuffle else Engine)(mode="inline")
        relation = drawn_relation(data, root, shape, nulls, engine)
        refuted = check(relation, data.draw(asked_fds(shape.n_columns)))
        event(f"{min(len(relation.segments), 4)} segments, {'some' if any(refuted) else 'none'} refuted")


@pytest.mark.parametrize("n_parts_rows", [1 << 21, 2])
def test_what_is_exhausted_has_all_that_rows_were_chosen_by(
    n_parts_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that agree on the first column, but not on the next one, are not looked at, so they may agree on
    more than anybody knows."""
    monkeypatch.setattr(validation, "NARROWED_ROWS", 0)
    monkeypatch.setattr(refute, "PART_ROWS", n_parts_rows)
    whole = table([1, 1, 2, 2, 3, 3], [1, 2, 1, 2, 1, 2], [1, 1, 2, 2, 3, 3])
    rel = relation_of(tmp_path, [whole], "equal", Engine(mode="inline"))
    keys = [(frozenset({0, 1}), frozenset())]
    assert check(rel, keys) == [frozenset()]
    lhs = np.array([mask_of(keys[0][0], rel.n_words)], dtype=np.uint64)
    assert refute.validate(rel, lhs).exhausted.tolist() == lhs.tolist()


@given(
    seed=st.integers(0, 2**32 - 1),
    nulls=NULLS,
    pairs_each=st.sampled_from([0, 1, 2, 1 << 5]),
    chunk_values=st.sampled_from([1, 20, 1 << 18]),
    limits=st.tuples(*(st.sampled_from(values) for _, _, values in (*SHARED_LIMITS, *LIMITS[False]))),
)
@SLOW
def test_what_keys_need_to_look_at_no_more(
    seed: int, nulls: Nulls, pairs_each: int, chunk_values: int, limits: Sequence[int]
) -> None:
    """Over clusters, chunks, looks and parts: also where some of them have too many pairs to compare all."""
    draw = np.random.default_rng(seed)
    n_rows, n_columns = draw.integers(8, 40), draw.integers(3, 7)
    n_values = draw.integers(2, 9, n_columns)
    columns = [draw.integers(0, n, n_rows).tolist() for n in n_values]
    rows = table(*([v or None for v in column] for column in columns))
    cut, dead = draw.integers(0, n_rows), np.flatnonzero(draw.random(n_rows) < 0.1)
    lhs = {frozenset(np.flatnonzero(draw.random(n_columns) < 0.4).tolist()) for _ in range(12)}
    with contextlib.ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-fds-")))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for (module, name, _), value in zip((*SHARED_LIMITS, *LIMITS[False]), limits, strict=True):
            patch.setattr(module, name, value)
        patch.setattr(partitions, "PAIRS_EACH", pairs_each)
        patch.setattr(partitions, "PAIRS_A_ROW", 0)
        patch.setattr(partitions, "CHUNK_VALUES", chunk_values)
        patch.setattr(partitions, "KEY_CHUNKS", 1)
        relation = relation_of(root, [rows.slice(0, cut), rows.slice(cut)], nulls, Engine(mode="inline"))
        relation = relation.without_rows(np.array(sorted(live_rows(relation)), dtype=np.int64)[dead])
        check(relation, [(x, frozenset()) for x in lhs])
        asked = np.array([mask_of(x, relation.n_words) for x in lhs], dtype=np.uint64)
        result = refute.validate(relation, asked)
        event(
            f"exhausted: {'some' if result.exhausted.any() else 'all' if len(result.exhausted) else 'none'}"
        )
        event("few rows" if refute.few_pairs(relation, n_columns) else "many")


def test_without_a_key_no_hash_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts of a workspace of format 5 can be made up that have both hashes alike: they are compared."""
    monkeypatch.setattr(shuffled, "SHUFFLED_ROWS", 0)
    whole = table([f"text {i % 7}" for i in range(20)], list(range(20)))
    rel = relation_of(tmp_path, [whole.slice(0, 10), whole.slice(10)], "equal", ExchangeHere(mode="inline"))
    exchanges: list[Any] = []
    exchange = ExchangeHere.exchange
    monkeypatch.setattr(
        ExchangeHere, "exchange", lambda *args, **how: exchanges.append(1) or exchange(*args, **how)
    )
    fds = [(frozenset({0}), frozenset({1})), (frozenset({1}), frozenset({0}))]
    assert check(rel, fds) == [frozenset({1}), frozenset()]
    assert exchanges
    exchanges.clear()
    monkeypatch.setattr(shuffled, "text_key", lambda root: None)
    assert check(rel, fds) == [frozenset({1}), frozenset()]
    assert not exchanges


@pytest.mark.parametrize("nulls", ["equal", "distinct"])
def test_no_task_opens_two_segments_to_see_what_varies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nulls: Nulls
) -> None:
    """A column may be constant in each segment, and vary; or vary in the last one, or by a NULL, alone."""
    monkeypatch.setattr(shuffled, "SHUFFLED_ROWS", 0)
    parts = [
        table(
            [7] * 4, [i] * 4, ["x"] * 4, ["y"] * 3 + ["z" if i == 2 else "y"], [1, 1, 1, None], [0, 0, 0, 1]
        )
        for i in range(3)
    ]
    parts = [part.append_column("c6", pa.nulls(4, pa.string())) for part in parts]
    rel = relation_of(tmp_path, parts, nulls, ExchangeHere(mode="inline"))
    rel = rel.without_rows(np.array(sorted(live_rows(rel))[3:8:4], dtype=np.int64))
    opened: list[int] = []
    open_all = tasks.all_opened

    def counted(payload: Any, schema: Any) -> Any:
        opened.append(len(payload["segments"]))
        return open_all(payload, schema)

    for module in (refute, shuffled):
        monkeypatch.setattr(module, "all_opened", counted)
    [refuted] = check(rel, [(frozenset(), frozenset(range(7)))])
    assert refuted == {1, 3, 4, 5} | ({6} if nulls == "distinct" else set())
    assert set(opened) == {1}
    assert refute.validate(rel, np.zeros((1, rel.n_words), np.uint64)).refuted.tolist() == [True]


def test_rows_that_say_the_same_are_sent_twice_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value that all rows have is no burden; what is sent follows the values, and is not lost."""
    monkeypatch.setattr(shuffled, "SHUFFLED_ROWS", 0)
    n = 420
    columns = [range(n), [i % 3 for i in range(n)], [i % 3 // 2 for i in range(n)], [0] * (n - 1) + [1]]
    whole = table(*columns)
    rel = relation_of(
        tmp_path, [whole.slice(0, n // 2), whole.slice(n // 2)], "equal", ExchangeHere(mode="inline")
    )
    sent: list[int] = []
    send = shuffled.send_rows

    def counted(*arguments: Any) -> Iterator[tuple[int, bytes]]:
        for part, block in send(*arguments):
            sent.append(len(unpack(block).array("row_id")))
            yield part, block

    monkeypatch.setattr(shuffled, "send_rows", counted)
    fds = [
        (frozenset({1}), frozenset({2, 3})),
        (frozenset({0}), frozenset({1})),
        (frozenset({2}), frozenset({1})),
    ]
    assert check(rel, fds) == [frozenset({3}), frozenset(), frozenset({1})]
    assert 0 < sum(sent) < 60


def test_how_a_large_table_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the shuffle of a cluster, also one that has not started yet, where Spark is chosen."""
    monkeypatch.setattr(session, "expects_cluster", lambda: True)
    monkeypatch.setattr(session, "is_there", lambda: False)
    monkeypatch.setattr(shuffled, "SHUFFLED_ROWS", 0)
    looked: list[str] = []

    def look(name: str) -> Any:
        def nothing(relation: Relation, lhs: Any, rhs: Any, pivots: Any) -> Any:
            looked.append(name)
            return np.zeros_like(rhs), lhs[:0], np.empty((0, WITNESSES, 2), np.int64), rhs[:0]

        return nothing

    for module, name in ((refute, "_by_parts"), (shuffled, "validate_by_shuffle")):
        monkeypatch.setattr(module, name, look(name))
    rel = relation_of(tmp_path, [table(range(10), [1, 2] * 5)], "equal", Engine())
    key = np.array([mask_of([0], 1)], np.uint64)
    refute.validate(rel, key)
    monkeypatch.setattr(refute, "NS_VALIDATE", 1e12)
    refute.validate(rel, key)
    refute.validate(rel.by(Engine(mode="inline")), key)
    assert looked == ["_by_parts", "validate_by_shuffle", "_by_parts"]


def table(*columns: Sequence[Any]) -> pa.Table:
    return pa.table({f"c{i}": pa.array(values) for i, values in enumerate(columns)})


def colliding(texts: Sequence[str]) -> list[str]:
    """The texts whose two-bit hash is that of the first."""
    hashed = codes.hash_texts(pa.array(texts, pa.large_binary()), None) & 3
    return [t for t, h in zip(texts, hashed, strict=True) if h == hashed[0]]


def test_collisions_neither_hide_nor_invent(tmp_path: Path, engine_inline: Engine) -> None:
    a, b = colliding([f"text {i}" for i in range(40)])[:2]
    with two_bit_hashes():
        parts = [table([1, 2], [a, "x"], [a, "y"]), table([1, 3], [b, "x"], [a, "y"])]
        rel = relation_of(tmp_path, parts, "equal", engine_inline)
        assert len(rel.segments) >= 2
        # 1 | a and 1 | b: column 1 differs though the codes do not, so 0 does not determine it
        assert check(rel, [(frozenset({0}), frozenset({1, 2}))]) == [frozenset({1})]
        # and rows of equal codes in column 1 do not agree on it
        assert check(rel, [(frozenset({1}), frozenset({0, 2}))]) == [frozenset({0})]
        segments = [open_segment(rel.root, s, rel.schema) for s in rel.segments]
        identities, n_ids = column_identities(segments, 1)
        values = {
            text: int(found[1 + i])
            for segment, found in zip(segments, identities, strict=True)
            for i, text in enumerate(segment.texts(1).to_pylist())
        }
        assert sorted(values) == sorted({a.encode(), b.encode(), b"x"})
        assert len(set(values.values())) == 3
        assert max(values.values()) < n_ids


@pytest.mark.parametrize("nulls", ["equal", "distinct"])
@pytest.mark.parametrize(
    ("columns", "equal", "distinct"),
    [
        ([[None, None], [1, 1]], [], [0]),
        ([[None, 1], [1, 1]], [0], [0]),
        ([[1, 1], [None, None]], [], [1]),
        ([[1], [None]], [], []),
        ([[], []], [], []),
        ([[1, 2, 2], [5, 5, 5]], [0], [0]),
    ],
)
def test_empty_left_hand_side(
    columns: Any, equal: list[int], distinct: list[int], nulls: Nulls, tmp_path: Path, engine_inline: Engine
) -> None:
    typed = pa.table({f"c{i}": pa.array(values, pa.int64()) for i, values in enumerate(columns)})
    for parts in ([typed], [typed.slice(0, 1), typed.slice(1)]):
        rel = relation_of(tmp_path, parts, nulls, engine_inline)
        fds = [(frozenset(), frozenset({0, 1})), (frozenset({0}), frozenset())]
        assert check(rel, fds)[0] == frozenset(equal if nulls == "equal" else distinct)


@pytest.mark.parametrize("nulls", ["equal", "distinct"])
def test_wide_table(nulls: Nulls, tmp_path: Path, engine_inline: Engine) -> None:
    rng = np.random.default_rng(4)
    width = 70
    values = rng.integers(0, 3, (40, width)).astype(object)
    values[:, 66] = values[:, 3] * 3 + values[:, 64]
    values[rng.random((40, width)) < 0.02] = None
    parts = [
        pa.table({f"c{c}": pa.array(part[:, c].tolist(), pa.int64()) for c in range(width)})
        for part in np.split(values, [25])
    ]
    rel = relation_of(tmp_path, parts, nulls, engine_inline)
    every = frozenset(range(width))
    lhs = [frozenset({3, 64}), frozenset({3}), frozenset(), frozenset({69, 1, 2, 65}), frozenset({66})]
    lhs += [frozenset(rng.choice(width, 6, replace=False).tolist()) for _ in range(10)]
    assert any(check(rel, [(x, every - x) for x in lhs]))


def test_nothing_asked(tmp_path: Path, engine_inline: Engine) -> None:
    rel = relation_of(tmp_path, [table([1, 1], [1, 2])], "equal", engine_inline)
    assert check(rel, []) == []
    assert check(replace(rel, segments=()), [(frozenset({0}), frozenset({1}))]) == [frozenset()]


def test_inline_and_spark_agree(tmp_path: Path, engine_inline: Engine, engine_spark: Engine) -> None:
    """And it is one job for keys and one for FDs, whatever the number of candidates."""
    rng = np.random.default_rng(11)
    many = table(
        rng.integers(0, 30, 90).tolist(),
        [f"name {i}" for i in rng.integers(0, 9, 90)],
        rng.integers(0, 4, 90).tolist(),
        rng.integers(0, 2, 90).tolist(),
    )
    rel = relation_of(tmp_path, [many.slice(0, 50), many.slice(50)], "equal", engine_inline)
    every = frozenset(range(4))
    fds = [(x, every - x) for x in map(frozenset, [[], [0], [1], [2, 3], [0, 1], [0, 1, 2], [1, 2, 3]])]
    said = check(rel, fds)
    before = engine_spark.jobs
    assert check(replace(rel, engine=engine_spark), fds) == said
    assert engine_spark.jobs == before + 2

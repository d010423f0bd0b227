"""A small lake on disk, made by definition: for tests of what reads one. Needs neither Spark nor kernels.

Inclusions come from `reference.lake`, hashes from `reference.siphash`.
Signatures are left out: only the matching of new tables needs them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from holdfast.core.store.files import FileRef, unique_name
from holdfast.core.store.format import create_marker, text_key
from holdfast.lakes.state import (
    COLUMNS_SCHEMA,
    FOLDER,
    INDS_SCHEMA,
    INTEGER_COLUMN,
    LINKS_SCHEMA,
    NULL_COLUMN,
    TABLES_SCHEMA,
    UNIQUE_COLUMN,
    GraphRef,
    LakeOptions,
    LakeState,
    PartRef,
)
from reference import lake as ref
from reference.siphash import siphash

TableLike = ref.Table | tuple[str, Sequence[str], Sequence[Sequence[str | None]]]


def make_lake(
    root: Path,
    *parts: Sequence[TableLike],
    options: LakeOptions | None = None,
    dropped: Sequence[str] = (),
    rows_per_group: int = 1 << 16,
) -> LakeState:
    """Write a lake of some parts; tables of the names `dropped` are there, but not live.

    A dropped table may have the name of a live one of a later part: then the earlier one is meant.
    """
    options = options or LakeOptions()
    judge = judge_options(options)
    tables = [[as_table(table) for table in part] for part in parts]
    dead = _dead([table for part in tables for table in part], dropped)
    write = _Writer(root, rows_per_group)
    refs, first_table, first_column = [], 0, 0
    for part in tables:
        refs.append(_part(write, part, judge, first_table, first_column))
        first_table += len(part)
        first_column += refs[-1].n_columns
    flat = [table for part in tables for table in part]
    unique = [ref.Table(str(i), t.header, t.columns) for i, t in enumerate(flat)]
    first = np.cumsum([0, *(len(t.columns) for t in flat)])
    number = {(str(i), p): int(first[i]) + p for i, t in enumerate(flat) for p in range(len(t.columns))}
    found = sorted((number[a], number[b], n) for (a, b), n in ref.shared(unique, judge).items())
    live = {number[str(i), p] for i, t in enumerate(flat) if i not in dead for p in range(len(t.columns))}
    kept = [ind for ind in found if ind[0] in live and ind[1] in live]
    scores = _scores(unique, tables, judge, {v: k for k, v in number.items()}, found)
    table_of = np.repeat(np.arange(len(flat)), np.diff(first))
    links = _links(found, scores, table_of)
    # Two files, as after an addition: each is sorted by itself.
    halves = [found[::2], found[1::2]]
    graph = _graph(write, [e for e in links if not {e[0], e[1]} & dead], len(flat), dead)
    return LakeState(
        options,
        tuple(refs),
        inds=tuple(write.parquet("inds", INDS_SCHEMA, half) for half in halves),
        links=(write.parquet("links", LINKS_SCHEMA, links),),
        dropped=write.array("dropped", np.array(sorted(dead), np.int32)) if dead else None,
        n_tables=len(flat) - len(dead),
        n_columns=len(live),
        n_inds=len(kept),
        removed=ref.removed([t for i, t in enumerate(unique) if i not in dead], judge),
        graph=graph,
    )


def as_table(table: TableLike) -> ref.Table:
    if isinstance(table, ref.Table):
        return table
    name, header, columns = table
    return ref.Table(name, tuple(header), tuple(map(tuple, columns)))


def judge_options(options: LakeOptions) -> ref.Options:
    """The options of a lake as the reference reads them."""
    return ref.Options(
        options.filters,
        options.tau,
        options.null_values,
        options.normalise,
        options.max_error,
        options.min_values,
    )


class _Writer:
    def __init__(self, root: Path, rows_per_group: int) -> None:
        self.root, self.rows_per_group = root, rows_per_group
        create_marker(root)

    def hashed(self, text: str) -> tuple[int, int]:
        key = text_key(self.root)
        assert key is not None
        return siphash(text.encode("utf-8"), key)

    def array(self, stem: str, array: Any) -> FileRef:
        name, path = self._new(stem, ".npy")
        np.save(path, array, allow_pickle=False)
        return self._ref(name, path)

    def parquet(self, stem: str, schema: pa.Schema, rows: Sequence[Sequence[Any]]) -> FileRef:
        columns = list(zip(*rows, strict=True)) or [()] * len(schema)
        table = pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
        name, path = self._new(stem, ".parquet")
        pq.write_table(table, path, row_group_size=self.rows_per_group)
        return self._ref(name, path)

    def _new(self, stem: str, suffix: str) -> tuple[str, Path]:
        name = unique_name(FOLDER, stem, suffix)
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        return name, path

    def _ref(self, name: str, path: Path) -> FileRef:
        """Without `new_file`: a test's files need not outlive a power cut, and two dozen syncs take longer
        than all the rest."""
        content = path.read_bytes()
        return FileRef(name, len(content), xxhash.xxh3_64_hexdigest(content))


def _dead(tables: Sequence[ref.Table], dropped: Sequence[str]) -> set[int]:
    dead: set[int] = set()
    for name in dropped:
        dead.add(next(i for i, table in enumerate(tables) if table.name == name and i not in dead))
    return dead


def _part(
    write: _Writer, part: Sequence[ref.Table], judge: ref.Options, first_table: int, first_column: int
) -> PartRef:
    table_rows, column_rows, entries = [], [], []
    flags, table_of, n_rows, sizes, pairs = [], [], [], [], []
    rarity = ref.rarity([ref.Table(str(i), t.header, t.columns) for i, t in enumerate(part)], judge)
    for i, table in enumerate(part):
        rows = [list(row) for row in table.rows[:20]]
        table_rows.append((table.name, f"/lake/{table.name}", table.n_rows, len(table.columns), rows))
        for position, (name, cells) in enumerate(zip(table.header, table.columns, strict=True)):
            facts = ref.facts(cells, judge)
            values = sorted((*write.hashed(text), text) for text in facts.values)
            entries += [(h1, h2, len(sizes)) for h1, h2, _ in values]
            pairs += [(h1, h2) for h1, h2, _ in values]
            texts = [text[:1000] for _, _, text in values]
            counts = (facts.n_rows, len(values), facts.n_missing, facts.n_null_like)
            column_rows.append((i, position, name, *counts, texts))
            bits = NULL_COLUMN * facts.null | INTEGER_COLUMN * facts.integer | UNIQUE_COLUMN * facts.unique
            flags.append(bits)
            table_of.append(i)
            n_rows.append(facts.n_rows)
            sizes.append(len(values))
    entries.sort()
    active = [c for c in range(len(sizes)) if sizes[c] and not flags[c] & (NULL_COLUMN | INTEGER_COLUMN)]
    arrays = {
        "offsets": np.cumsum([0, *sizes]).astype(np.int64),
        "values": np.array([h1 for h1, _ in pairs], np.uint64),
        "checks": np.array([h2 for _, h2 in pairs], np.uint64),
        "flags": np.array(flags, np.uint8),
        "table_of": np.array(table_of, np.int32),
        "n_rows": np.array(n_rows, np.int32),
        "keys": np.array([h1 for h1, _, _ in entries], np.uint64),
        "key_checks": np.array([h2 for _, h2, _ in entries], np.uint64),
        "postings": np.array([c for _, _, c in entries], np.int32),
        "active": np.array(active, np.int32),
        "rarity": np.array(list(rarity.values()), np.float32),
    }
    return PartRef(
        first_table,
        len(part),
        first_column,
        len(sizes),
        len(entries),
        len(active),
        {name: write.array(name, array) for name, array in arrays.items()},
        (write.parquet("tables", TABLES_SCHEMA, table_rows),),
        (write.parquet("columns", COLUMNS_SCHEMA, column_rows),),
    )


def _scores(
    unique: Sequence[ref.Table],
    tables: Sequence[Sequence[ref.Table]],
    judge: ref.Options,
    place: dict[int, ref.Column],
    found: Sequence[tuple[int, int, int]],
) -> list[float]:
    """The score of each inclusion; rarity counts within the dependent column's part."""
    rarity: dict[ref.Column, float] = {}
    rest = iter(unique)
    for part in tables:
        rarity.update(ref.rarity(list(itertools.islice(rest, len(part))), judge))
    facts = ref.all_facts(unique, judge)
    return [ref.score(facts[place[a]], facts[place[b]], rarity[place[a]]) for a, b, _ in found]


def _links(
    found: Sequence[tuple[int, int, int]], scores: Sequence[float], table_of: Any
) -> list[tuple[int, int, int, float]]:
    best: dict[tuple[int, int], tuple[int, float]] = {}
    for (a, b, _), score in zip(found, scores, strict=True):
        pair = int(table_of[a]), int(table_of[b])
        n, most = best.get(pair, (0, 0.0))
        best[pair] = n + 1, max(most, score)
    return [(*pair, n, score) for pair, (n, score) in sorted(best.items()) if pair[0] != pair[1]]


def _graph(
    write: _Writer, links: Sequence[tuple[int, int, int, float]], n_tables: int, dead: set[int]
) -> GraphRef:
    members = _groups([(left, right) for left, right, _, _ in links])
    component_of = np.full(n_tables, -1, np.int32)
    for number, group in enumerate(members):
        component_of[group] = number
    weights = np.zeros((2, n_tables), np.int64)
    for left, right, n_inds, _ in links:
        weights[0, left] += n_inds
        weights[1, right] += n_inds
    files = {
        "components": (write.array("components", component_of),),
        "weights": (write.array("weights", weights),),
    }
    return GraphRef(files, len(members), int((component_of < 0).sum()) - len(dead))


def _groups(links: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The tables that hang together, the largest first."""
    group: dict[int, set[int]] = {}
    for left, right in links:
        both = group.setdefault(left, {left}) | group.setdefault(right, {right})
        for table in both:
            group[table] = both
    distinct = {id(members): sorted(members) for members in group.values()}
    return sorted(distinct.values(), key=lambda members: (-len(members), members))

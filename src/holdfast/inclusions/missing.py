"""The values that break an inclusion, and rows that carry them; what a batch changed, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.cover.news import plain, plain_rows
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import Segment, open_segment
from holdfast.core.rows.tasks import Payload, opened, parsed_schema
from holdfast.core.store.bundle import Bundle, pack, unpack
from holdfast.core.words.change import DependencyChange, WitnessRow
from holdfast.core.words.dependency import Ind
from holdfast.errors import plural
from holdfast.inclusions.generator import GeneratorState, RunRef, ValueTable
from holdfast.inclusions.identity import identities
from holdfast.inclusions.ind_list import inds_of
from holdfast.inclusions.inds import IndStep
from holdfast.inclusions.tuple_tasks import Opened, local_codes
from holdfast.inclusions.value_tasks import looked_up

U64 = NDArray[np.uint64]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]

# Broken inclusions beyond this many come without values and rows.
MAX_SHOWN = 200
# Values that are looked up at a time when all missing ones are searched for; ns of one core for each.
LOOKUP_CHUNK, NS_LOOKUP = 1 << 16, 300


def rows_with(relation: Relation, table: ValueTable, column: str, keys: U64, checks: U32) -> list[int | None]:
    """For each identity the id of a live row that carries it in a column; the newest segment's first.

    Cost: a lookup in each segment's dictionary; where it is found, a pass over one column's codes.
    """
    row_ids: list[int | None] = [None] * len(keys)
    c = relation.schema.names.index(column)
    for ref in reversed([s for s in relation.segments if s.n_live]):
        open_ones = [i for i, row in enumerate(row_ids) if row is None]
        if not open_ones:
            break
        segment = open_segment(relation.root, ref, relation.schema)
        local = local_codes(Opened(segment, table.as_text), c, keys[open_ones], checks[open_ones])
        for i, code in zip(open_ones, local.tolist(), strict=True):
            if code > 0:
                at = np.flatnonzero(segment.codes[c] == code)
                at = at[segment.live[at]]
                if len(at):
                    row_ids[i] = int(segment.row_ids(at[:1])[0])
    return row_ids


def ind_changes(
    step: IndStep, relations: Mapping[str, Relation], *, tracked: bool
) -> tuple[DependencyChange, ...]:
    """What a batch changed among the inclusions. `relations` are the tables after it."""
    after = step.after
    distinct, _ = step.after.pairs.of_columns(step.after.state.next_id)
    before_distinct, _ = step.before.pairs.of_columns(step.after.state.next_id)
    changes = []
    broke = inds_of(after.state, after.pairs, step.broke)
    for n, (pair, ind) in enumerate(zip(step.broke.tolist(), broke, strict=True)):
        if not distinct[pair >> 32]:
            changes.append(DependencyChange("broke", ind, "has no value left to be included"))
            continue
        changes.append(_broken(step, pair, ind, relations, shown=n < MAX_SHOWN))
    shared, _ = step.before.pairs.at(step.appeared)
    appeared = inds_of(after.state, after.pairs, step.appeared)
    for pair, ind, n_shared in zip(step.appeared.tolist(), appeared, shared.tolist(), strict=True):
        had = int(before_distinct[pair >> 32])
        if tracked:
            reason = "holds in the tables as tracked"
        elif not had:
            reason = "holds: this batch brought its first values"
        else:
            missing = had - n_shared
            what = f"the last {missing:,} missing values are" if missing > 1 else "the last missing value is"
            reason = f"holds: {what} healed by this batch"
        changes.append(DependencyChange("appeared", ind, reason))
    return tuple(sorted(changes, key=lambda c: (c.event != "broke", c.dependency)))


def _broken(
    step: IndStep, pair: int, ind: Ind, relations: Mapping[str, Relation], *, shown: bool
) -> DependencyChange:
    n_missing = ind.missing_values
    of_rows = "" if ind.missing_rows is None else f" in {plural(ind.missing_rows, 'row')}"
    what = f"misses {plural(n_missing, 'value')}{of_rows}"
    relation = relations.get(ind.dependent.table)
    if not shown or relation is None:
        return DependencyChange("broke", ind, what)
    [column] = ind.dependent.columns
    table = step.after.state.table(ind.dependent.table)
    assert table is not None
    row_ids = rows_with(relation, table, column, step.keys[pair], step.checks[pair])
    there = [r for r in row_ids if r is not None]
    rows = plain_rows(relation.fetch(there))
    witnesses = tuple((WitnessRow(r, v),) for r, v in zip(there, rows, strict=True))
    missing: Sequence[Any] = [plain(v[column]) for v in rows]
    listed = ", ".join(map(repr, missing))
    more = f" and {n_missing - len(missing):,} more" if n_missing > len(missing) else ""
    return DependencyChange("broke", ind, f"{what}: {listed}{more}", witnesses, tuple(missing))


def missing_now(
    state: GeneratorState, relation: Relation, table: ValueTable, column: str, referenced: int, limit: int
) -> tuple[tuple[Any, WitnessRow], ...]:
    """Some values of a column that another column (by id) lacks, each with a row that carries it.

    Cost: a lookup of the column's values in the runs, until enough are found; by one job if they are many.
    """
    payloads = _payloads(state, relation, table, column, referenced, limit)
    row_ids: dict[tuple[int, int], int] = {}  # by identity
    results: Iterator[Bundle]
    if relation.engine.choose(NS_LOOKUP * relation.n_rows) == "inline":
        results = (unpack(missing_in_segment(payload)) for payload in payloads)
    else:
        results = iter(relation.run(missing_in_segment, payloads, NS_LOOKUP * relation.n_rows))
    for result in results:
        keys, checks, rows = (result.array(name).tolist() for name in ("keys", "checks", "row_ids"))
        for key, check, row_id in zip(keys, checks, rows, strict=True):
            row_ids.setdefault((key, check), row_id)
        if len(row_ids) >= limit:
            break
    ids = list(row_ids.values())[:limit]
    values = plain_rows(relation.fetch(ids))
    return tuple((row[column], WitnessRow(i, row)) for i, row in zip(ids, values, strict=True))


def _payloads(
    state: GeneratorState,
    relation: Relation,
    table: ValueTable,
    column: str,
    referenced: int,
    limit: int | None,
) -> list[Payload]:
    """What tasks are told to look for the values of a column that another one lacks: one for each segment."""
    return [
        relation.payload(
            segment=segment,
            column=relation.schema.names.index(column),
            as_text=table.as_text,
            referenced=referenced,
            n_columns=state.next_id,
            runs=[run.to_dict() for run in state.runs],
            limit=limit,
        )
        for segment in relation.live
    ]


def orphans(
    state: GeneratorState,
    relation: Relation,
    table: ValueTable,
    column: str,
    referenced: int,
    limit: int | None,
) -> tuple[I64, I64, int]:
    """(row ids, group, n_rows): the rows whose value another column (by id) lacks, oldest first.

    `group` numbers the values from 1, in that order; `limit`: of the first rows; n_rows counts all. One job.
    Cost: a lookup of each value of a segment in the runs, and a pass over its rows.
    """
    payloads = _payloads(state, relation, table, column, referenced, limit)
    results = relation.run(orphans_in_segment, payloads, NS_LOOKUP * relation.n_rows)
    parts = ("keys", "checks", "row_ids")
    keys, checks, ids = (
        np.concatenate([np.empty(0, np.int64), *(r.array(p) for r in results)]) for p in parts
    )
    order = np.argsort(ids)[:limit]
    identity = np.stack([keys[order], checks[order]], axis=1)
    _, first, number = np.unique(identity, axis=0, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(1, len(first) + 1)
    return ids[order], rank[number.reshape(-1)], sum(int(r.array("n_rows")[0]) for r in results)


def orphans_in_segment(payload: Payload) -> bytes:
    """The first so many rows of a segment whose value another column lacks, with the values' identities."""
    segment = opened(payload, "segment", parsed_schema(payload["schema"]))
    parts = list(_lacking(segment, payload))
    codes, keys, checks = (
        np.concatenate([np.empty(0, np.int64), *(part[i].astype(np.int64) for part in parts)])
        for i in range(3)
    )
    of_code = np.full(len(segment.dictionary(payload["column"])) + 1, -1, dtype=np.int64)
    of_code[codes] = np.arange(len(codes))
    value = of_code[segment.codes[payload["column"]]]
    at = np.flatnonzero((value >= 0) & segment.live)
    n_rows = len(at)
    at = at[: payload["limit"]]  # positions ascend as ids do
    arrays = {"keys": keys[value[at]], "checks": checks[value[at]], "row_ids": segment.row_ids(at)}
    return pack({**arrays, "n_rows": np.array([n_rows])}, {})


def missing_in_segment(payload: Payload) -> bytes:
    """The first so many values of a segment's column that another column lacks, and a row of each."""
    segment = opened(payload, "segment", parsed_schema(payload["schema"]))
    column, lacking = segment.codes[payload["column"]], []
    for codes, keys, checks in _lacking(segment, payload):
        for code, key, check in zip(
            codes[: payload["limit"]].tolist(), keys.tolist(), checks.tolist(), strict=False
        ):
            at = np.flatnonzero((column == code) & segment.live)[:1]
            lacking.append((key, check, int(segment.row_ids(at)[0])))
        if len(lacking) >= payload["limit"]:
            break
    columns = np.array(lacking[: payload["limit"]], dtype=np.uint64).reshape(-1, 3).T
    return pack(dict(zip(("keys", "checks", "row_ids"), columns, strict=True)), {})


def _lacking(segment: Segment, payload: Payload) -> Iterator[tuple[I64, U64, U32]]:
    """(codes, keys, checks) of the values of live rows of a segment that another column lacks, some at a
    time."""
    c, runs = payload["column"], [RunRef.from_dict(run) for run in payload["runs"]]
    only = np.zeros(payload["n_columns"], dtype=np.bool_)
    only[payload["referenced"]] = True
    used = np.unique(segment.codes[c][segment.live])
    used = used[used > 0] - 1
    for start in range(0, len(used), LOOKUP_CHUNK):
        part = used[start : start + LOOKUP_CHUNK]
        texts = segment.texts(c)
        texts = None if texts is None else texts.take(pa.array(part))
        keys, checks = identities(
            segment.dictionary(c)[part], texts, segment.schema.types[c], payload["as_text"], segment.key
        )
        order = np.lexsort((checks, keys))
        there = looked_up(segment.root, keys[order], checks[order], runs, only)[0]
        lacking = order[np.setdiff1d(np.arange(len(order)), there)]
        yield part[lacking].astype(np.int64) + 1, keys[lacking], checks[lacking]

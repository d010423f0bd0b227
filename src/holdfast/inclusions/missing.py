"""The values that break an inclusion, and rows that carry them; what a batch changed, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.cover.news import plain, plain_rows
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import Segment, open_segment
from holdfast.core.rows.table_state import SegmentRef
from holdfast.core.rows.tasks import Payload, opened, parsed_schema
from holdfast.core.store.bundle import Bundle, pack, unpack
from holdfast.core.store.root import root_of
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


Question = tuple[str, U64, U32]  # a column, and the identities of values


def rows_with(relation: Relation, table: ValueTable, questions: Sequence[Question]) -> list[list[int]]:
    """For each question the ids of live rows that carry its identities, one each; the newest segment's first.

    Cost: a lookup in each segment's dictionary; where it is found, a pass over one column's codes. By one job
    where the segments are far, a task for each of them.
    """
    row_ids = [np.full(len(keys), -1, np.int64) for _, keys, _ in questions]
    newest = [s for s in reversed(relation.segments) if s.n_live]
    for segments in (newest[:1], newest[1:]):  # most often it is a row that has just come
        asked = [(q, numbers) for q, ids in enumerate(row_ids) if len(numbers := np.flatnonzero(ids < 0))]
        if asked and segments:
            some = [(questions[q][0], questions[q][1][at], questions[q][2][at]) for q, at in asked]
            carriers = _carriers_in(relation, table, segments, some)
            for (q, numbers), ids in zip(asked, carriers, strict=True):
                row_ids[q][numbers] = ids
    return [ids[ids >= 0].tolist() for ids in row_ids]


def _carriers_in(
    relation: Relation, table: ValueTable, segments: Sequence[SegmentRef], questions: Sequence[Question]
) -> list[I64]:
    """The ids of rows in some segments, -1 for none: of the first segment that has one."""
    places = relation.schema.names
    if not relation.are_far(segments):
        opened_ones = [
            Opened(open_segment(relation.root, s, relation.schema), table.as_text) for s in segments
        ]
        return [_carriers(opened_ones, places.index(c), keys, checks) for c, keys, checks in questions]
    asked = [[places.index(column), keys.tolist(), checks.tolist()] for column, keys, checks in questions]
    payloads = [
        relation.payload(segment=s.to_dict(), as_text=table.as_text, questions=asked) for s in segments
    ]
    row_ids = np.full(sum(len(keys) for _, keys, _ in questions), -1, np.int64)
    for result in relation.look(find_carriers, payloads, segments):
        row_ids = np.where(row_ids >= 0, row_ids, unpack(result).array("row_ids"))
    return np.split(row_ids, np.cumsum([len(keys) for _, keys, _ in questions])[:-1])


def find_carriers(payload: Payload) -> bytes:
    """For each identity of each question the id of a live row of a segment that carries it, -1 for none."""
    segment = open_segment(
        root_of(payload["root"]), SegmentRef.from_dict(payload["segment"]), parsed_schema(payload["schema"])
    )
    there = [Opened(segment, payload["as_text"])]
    row_ids = [
        _carriers(there, c, np.array(keys, np.uint64), np.array(checks, np.uint32))
        for c, keys, checks in payload["questions"]
    ]
    return pack({"row_ids": np.concatenate(row_ids)}, {})


def _carriers(segments: Iterable[Opened], c: int, keys: U64, checks: U32) -> I64:
    row_ids = np.full(len(keys), -1, np.int64)
    for there in segments:
        segment, lacking = there.segment, np.flatnonzero(row_ids < 0)
        if not len(lacking):
            break
        local = local_codes(there, c, keys[lacking], checks[lacking])
        for i, code in zip(lacking.tolist(), local.tolist(), strict=True):
            if code > 0:
                at = np.flatnonzero(segment.codes[c] == code)
                at = at[segment.live[at]]
                if len(at):
                    row_ids[i] = segment.row_ids(at[:1])[0]
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
    some = zip(step.broke.tolist()[:MAX_SHOWN], broke, strict=False)
    carriers = _of_broken(step, {pair: ind for pair, ind in some if distinct[pair >> 32]}, relations)
    for pair, ind in zip(step.broke.tolist(), broke, strict=True):
        if not distinct[pair >> 32]:
            changes.append(DependencyChange("broke", ind, "has no value left to be included"))
            continue
        changes.append(_broken(ind, carriers.get(pair)))
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


def _of_broken(
    step: IndStep, broke: Mapping[int, Ind], relations: Mapping[str, Relation]
) -> dict[int, list[WitnessRow]]:
    """By broken inclusion some rows whose value is missing: of those whose tables are at hand."""
    by_table: dict[str, list[int]] = {}
    for pair, ind in broke.items():
        if ind.dependent.table in relations:
            by_table.setdefault(ind.dependent.table, []).append(pair)
    carriers: dict[int, list[WitnessRow]] = {}
    for name, pairs in by_table.items():
        table = step.after.state.table(name)
        assert table is not None
        questions = [(broke[p].dependent.columns[0], step.keys[p], step.checks[p]) for p in pairs]
        of_pairs = rows_with(relations[name], table, questions)
        ids = list(dict.fromkeys(row for rows in of_pairs for row in rows))
        values = dict(zip(ids, plain_rows(relations[name].fetch(ids)), strict=True))
        carriers |= {
            p: [WitnessRow(r, values[r]) for r in rows] for p, rows in zip(pairs, of_pairs, strict=True)
        }
    return carriers


def _broken(ind: Ind, rows: Sequence[WitnessRow] | None) -> DependencyChange:
    """What a broken inclusion misses, with some rows if there are any to show."""
    n_missing = ind.missing_values
    of_rows = "" if ind.missing_rows is None else f" in {plural(ind.missing_rows, 'row')}"
    what = f"misses {plural(n_missing, 'value')}{of_rows}"
    if rows is None:
        return DependencyChange("broke", ind, what)
    [column] = ind.dependent.columns
    missing: Sequence[Any] = [plain(row.values[column]) for row in rows]
    listed = ", ".join(map(repr, missing))
    more = f" and {n_missing - len(missing):,} more" if n_missing > len(missing) else ""
    witnesses = tuple((row,) for row in rows)
    return DependencyChange("broke", ind, f"{what}: {listed}{more}", witnesses, tuple(missing))


def missing_now(
    state: GeneratorState, relation: Relation, table: ValueTable, column: str, referenced: int, limit: int
) -> tuple[tuple[Any, WitnessRow], ...]:
    """Some values of a column that another column (by id) lacks, each with a row that carries it.

    Cost: a lookup of the column's values in the runs, until enough are found; by one job if they are many, or
    lie far away.
    """
    payloads = _payloads(state, relation, table, column, referenced, limit)
    row_ids: dict[tuple[int, int], int] = {}  # by identity
    results: Iterator[Bundle]
    live = [s for s in relation.segments if s.n_live]
    if relation.are_far(live):
        results = map(unpack, relation.look(missing_in_segment, payloads, live))
    elif relation.engine.choose(NS_LOOKUP * relation.n_rows) == "inline":
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
    runs = [run.to_dict() for run in state.runs]  # the very same list for all of them
    return [
        relation.payload(
            segment=segment,
            column=relation.schema.names.index(column),
            as_text=table.as_text,
            referenced=referenced,
            n_columns=state.next_id,
            runs=runs,
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

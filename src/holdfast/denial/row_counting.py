"""Two columns of the same row compared: outcomes counted, exceptions found.

A task looks at some rows of one segment: its live ones, those that a batch added, or those that it deleted.
Dictionaries are per column and segment, so values are compared as *words* made from their codes
(`row_outcomes.py`); equal codes of texts are compared on the texts themselves. What leaves a task are
four counts for each pair of columns, or a few row ids. One job for all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.codes import texts_differ_at
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import open_segment
from holdfast.core.rows.some_rows import SomeRows, chosen_rows, divided, live_rows
from holdfast.core.rows.table_state import SegmentRef
from holdfast.core.rows.tasks import staged
from holdfast.core.store.bundle import pack
from holdfast.core.words.row_rule import RowRule, comparison, fraction_digits
from holdfast.core.words.schema import Type
from holdfast.denial.kernels import row_outcomes
from holdfast.denial.kernels.row_outcomes import Compared, Numbers, Words
from holdfast.denial.row_counts import EQUAL, GREATER, LESS, NULL, SATISFYING, where_kinds

U8 = NDArray[np.uint8]
U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]
Payload = dict[str, Any]

# What it takes on one core to count a pair of columns in a row, in ns: 0.1 to 0.3.
NS_COUNT = 0.2


# -- counting ----------------------------------------------------------------------------------


def count_all(relation: Relation, pairs: I32) -> I64:
    """The outcomes of all live rows: int64[n_pairs, 4]. One job.

    IN pairs int32[n_pairs, 2], positions of columns that compare. Cost: a pass over the rows, 0.1 to 0.3 ns
    for each row and pair.
    """
    [counts] = _counted(relation, pairs, [live_rows(relation.segments)])
    return counts


def count_change(
    before: Relation, after: Relation, pairs: I32, row_ids: I64, added: Sequence[SegmentRef]
) -> tuple[I64, I64]:
    """(gone, come): the outcomes of deleted rows of `before` and of added segments, int64[n_pairs, 4] each.

    One job. Cost: follows these rows.
    """
    gone, come = _counted(after, pairs, [chosen_rows(before, row_ids), live_rows(added)])
    return gone, come


def _counted(relation: Relation, pairs: I32, sets: Sequence[Sequence[Payload]]) -> list[I64]:
    """The outcomes of several sets of rows."""
    totals = [np.zeros((len(pairs), 4), dtype=np.int64) for _ in sets]
    n_rows = sum(part["n_rows"] for parts in sets for part in parts)
    if not len(pairs) or not n_rows:
        return totals
    columns = relation.stage("row-pairs", pairs=pairs.astype(np.int32))
    tasks = [(i, part) for i, parts in enumerate(sets) for part in divided(parts)]
    payloads = [relation.payload(**part, pairs=columns) for _, part in tasks]
    results = relation.run(count_part, payloads, NS_COUNT * n_rows * len(pairs))
    for (i, _), result in zip(tasks, results, strict=True):
        totals[i] += result.array("counts").reshape(-1, 4)
    return totals


def count_part(payload: Payload) -> bytes:
    """The outcomes of some rows of a segment in all pairs."""
    rows = Rows.of(payload)
    bundle = staged({**payload, "row-pairs": payload["pairs"]}, "row-pairs")
    return pack({"counts": _outcome_counts(rows, bundle.array("pairs").reshape(-1, 2))}, {})


def _outcome_counts(rows: Rows, pairs: I32) -> I64:
    """int64[n_pairs, 4]."""
    types = rows.segment.schema.types
    columns, sides = compared_pairs(rows, pairs)
    counts = row_outcomes.count_outcomes(columns, sides, ordered_pairs(types, pairs))
    hashed = np.array([type_.hashed for type_ in types])[pairs[:, 0]]
    for p in np.flatnonzero(hashed & (counts[:, EQUAL] > 0)).tolist():
        (a, b), (left, right) = pairs[p].tolist(), sides[p].tolist()
        equal = row_outcomes.equal_rows(columns[left], columns[right], int(counts[p, EQUAL]))
        n_different = int(rows.texts_differ(a, b, equal).sum())
        counts[p, EQUAL] -= n_different
        counts[p, LESS] += n_different
    return counts


def ordered_pairs(types: Sequence[Type], pairs: I32) -> Bool:
    """Of which pairs the values have an order: bool[n_pairs]."""
    return where_kinds(types, pairs, lambda a, b: comparison(a, b) == "order")


def compared_pairs(rows: Rows, pairs: I32) -> tuple[list[Compared], I64]:
    """The columns of some pairs, and for each pair which two of them are compared: int64[n_pairs, 2].

    A column is there twice if it is compared both as it is and with numbers of other types.
    """
    wide = where_kinds(rows.segment.schema.types, pairs, is_wide)
    keys, where = np.unique(2 * pairs.astype(np.int64) + wide[:, None], return_inverse=True)
    return [rows.compared(key // 2, wide=bool(key % 2)) for key in keys.tolist()], where.reshape(-1, 2)


# -- exceptions --------------------------------------------------------------------------------


def exceptions(relation: Relation, rule: RowRule, limit: int | None = None) -> I64:
    """The ids of live rows that violate a rule, ascending, at most `limit`. Cost: a pass over two columns."""
    [violating] = exceptions_of(relation, [rule], limit)
    return violating


def exceptions_of(
    relation: Relation,
    rules: Sequence[RowRule],
    limit: int | None = None,
    *,
    segments: Sequence[SegmentRef] | None = None,
    row_ids: I64 | None = None,
) -> list[I64]:
    """For each rule the ids of rows that violate it, ascending, at most `limit`; one job for all rules.

    Looked at are the live rows, or those of some segments, or some rows by id, live or not. Cost: a pass over
    the two columns of each rule on these rows.
    """
    if row_ids is not None:
        parts = chosen_rows(relation, row_ids)
    else:
        parts = live_rows(relation.segments if segments is None else segments)
    names = relation.schema.names
    questions = [[*map(names.index, r.columns), _violating(r)] for r in rules]
    payloads = [relation.payload(**part, rules=questions, limit=limit) for part in divided(parts)]
    work = float(sum(part["n_rows"] for part in parts)) * len(rules) * 10  # whole arrays, several times
    violating: list[list[I64]] = [[] for _ in rules]
    for result in relation.run(except_part, payloads if rules else [], NS_COUNT * work):
        ids, bounds = result.array("row_ids"), result.array("bounds")
        for i in range(len(rules)):
            violating[i].append(ids[bounds[i] : bounds[i + 1]])
    return [np.sort(np.concatenate([np.empty(0, np.int64), *parts]))[:limit] for parts in violating]


def _violating(rule: RowRule) -> list[int]:
    return [o for o in range(NULL) if o not in SATISFYING[rule.op]]


def except_part(payload: Payload) -> bytes:
    """The rows of a part that violate each of some rules."""
    rows = Rows.of(payload)
    limit, row_ids = payload["limit"], []
    for a, b, violating in payload["rules"]:
        at = np.flatnonzero(np.isin(rows.outcomes(a, b), violating))
        row_ids.append(rows.row_ids(at[:limit]))
    bounds = np.cumsum([0, *(len(ids) for ids in row_ids)]).astype(np.int64)
    return pack({"row_ids": np.concatenate([np.empty(0, np.int64), *row_ids]), "bounds": bounds}, {})


# -- rows and words ----------------------------------------------------------------------------


class Rows(SomeRows):
    """Some rows of a segment, and what two of their columns compare to."""

    __slots__ = ()

    def compared(self, column: int, *, wide: bool) -> Compared:
        """A column of the rows, with words of its dictionary or of its rows, whichever are fewer."""
        codes, dictionary = self.codes(column), self.segment.dictionary(column)
        type_ = self.segment.schema.types[column]
        if len(codes) < len(dictionary):
            dictionary = dictionary[np.maximum(codes, 1) - 1]
            codes = np.where(codes > 0, np.arange(1, len(codes) + 1, dtype=np.int32), np.int32(0))
        return Compared(codes, words_of(dictionary, type_, wide=wide))

    def outcomes(self, left: int, right: int) -> U8:
        """The exact outcome of each row."""
        types = self.segment.schema.types
        wide = is_wide(types[left], types[right])
        sides = self.compared(left, wide=wide), self.compared(right, wide=wide)
        outcomes = row_outcomes.outcomes(*sides, comparison(types[left], types[right]) == "order")
        if types[left].hashed:
            equal = np.flatnonzero(outcomes == EQUAL)
            outcomes[equal[self.texts_differ(left, right, equal)]] = LESS
        return outcomes

    def texts_differ(self, left: int, right: int, which: I64) -> Bool:
        """Where the texts of two hashed columns differ, of some of the rows, which have both."""
        left_texts, right_texts = self.segment.texts(left), self.segment.texts(right)
        left_at, right_at = (self.codes(c)[which].astype(np.int64) - 1 for c in (left, right))
        return texts_differ_at(left_texts, left_at, right_texts, right_at)


def is_wide(left: Type, right: Type) -> bool:
    """Whether columns of these types, which compare, need wide words."""
    return _numbers(left) != _numbers(right)


def _numbers(type_: Type) -> tuple[Numbers, int] | None:
    """What the codes stand for, and the digits behind the point; None where only equal types compare."""
    if type_.hashed or type_.family in ("bool", "date"):
        return None
    if type_.family == "float":
        return "float", 0
    return "unsigned" if type_.family == "uint" else "signed", fraction_digits(type_)


def words_of(codes: U64, type_: Type, *, wide: bool) -> Words:
    """The words of some codes of a type."""
    numbers = _numbers(type_)
    if not wide or numbers is None:
        return row_outcomes.narrow_words(codes)
    return row_outcomes.wide_words(codes, *numbers)


# -- ranges ------------------------------------------------------------------------------------


def apart(relation: Relation, pairs: I32) -> Bool:
    """Of which pairs of ordered columns all values of one are less than all of the other: bool[n_pairs].

    False where one has no value. Exact for the live rows. Cost: the ends of the dictionaries; where those do
    not decide, a pass over the columns of segments with deleted rows, which ends when both ends were seen.
    """
    types = relation.schema.types
    columns = {c for pair in pairs.tolist() for c in pair}
    rough = {c: _range(relation, c, exact=False) for c in columns}
    separate = np.zeros(len(pairs), dtype=np.bool_)
    exact: dict[int, U64] = {}
    for p, (a, b) in enumerate(pairs.tolist()):
        separate[p] = _are_apart(rough, a, b, types)
        if not separate[p] and any(s.n_deleted for s in relation.segments):
            exact |= {c: _range(relation, c, exact=True) for c in (a, b) if c not in exact}
            separate[p] = _are_apart(exact, a, b, types)
    return separate


def _are_apart(ranges: Mapping[int, U64], a: int, b: int, types: Sequence[Type]) -> bool:
    if not len(ranges[a]) or not len(ranges[b]):
        return False
    wide = is_wide(types[a], types[b])
    ends = np.array([1, 2], dtype=np.int32)
    low_high = Compared(ends, words_of(ranges[a], types[a], wide=wide))
    high_low = Compared(ends[::-1], words_of(ranges[b], types[b], wide=wide))
    first, last = row_outcomes.outcomes(low_high, high_low, True).tolist()  # low with high, high with low
    return bool(last == LESS or first == GREATER)


def _range(relation: Relation, column: int, *, exact: bool) -> U64:
    """The codes of the lowest and the highest value; none if there is no value.

    Without `exact`, values of deleted rows count.
    """
    ends: list[U64] = []
    for ref in relation.segments:
        if not ref.n_live:
            continue
        segment = open_segment(relation.root, ref, relation.schema)
        dictionary = segment.dictionary(column)
        low, high = 1, len(dictionary)
        if exact and ref.n_deleted:
            low, high = row_outcomes.live_range(segment.codes[column], segment.live, len(dictionary))
        if high:
            ends.append(dictionary[[low - 1, high - 1]])
    if not ends:
        return np.empty(0, np.uint64)
    return np.array([min(e[0] for e in ends), max(e[1] for e in ends)], dtype=np.uint64)

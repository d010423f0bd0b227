"""Two columns of the same row compared: outcomes counted, exceptions found.

A task looks at some rows of one segment: its live ones, those that a batch added, or those that it deleted.
Dictionaries are per column and segment, so values are compared as *words* made from their codes
(`row_outcomes.py`); equal codes of texts are compared on the texts themselves. What leaves a task are
four counts for each pair of columns, or a few row ids. One job for all of it: tasks that count a batch pick
the rows, too, that its news may show (`shown_rows.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.news import MAX_LISTED
from holdfast.core.rows.codes import texts_differ_at
from holdfast.core.rows.kernels.operators import EQUAL, GREATER, LESS, NULL
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import Segment, open_segment
from holdfast.core.rows.some_rows import SomeRows, chosen_rows, divided, live_rows
from holdfast.core.rows.table_state import SegmentRef
from holdfast.core.rows.tasks import parsed_schema, staged
from holdfast.core.store.bundle import pack, unpack
from holdfast.core.store.root import root_of
from holdfast.core.words.change import ROWS_SHOWN
from holdfast.core.words.row_rule import RowRule, comparison, fraction_digits
from holdfast.core.words.schema import Type
from holdfast.denial.kernels import row_outcomes
from holdfast.denial.kernels.row_outcomes import Compared, Numbers, Words
from holdfast.denial.row_counts import SATISFYING, where_kinds
from holdfast.denial.shown_rows import NO_ROWS, NOTHING_ASKED, AskedRows, ShownRows

U8 = NDArray[np.uint8]
U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]
Payload = dict[str, Any]

# What it takes on one core to count a pair of columns in a row, in ns: 0.1 to 0.3.
NS_COUNT = 0.2
# Rows to show are looked for among so many at a time.
LOOKED_AT = 1 << 12


# -- counting ----------------------------------------------------------------------------------


def count_all(relation: Relation, pairs: I32) -> I64:
    """The outcomes of all live rows: int64[n_pairs, 4]. One job.

    IN pairs int32[n_pairs, 2], positions of columns that compare. Cost: a pass over the rows, 0.1 to 0.3 ns
    for each row and pair.
    """
    [(counts, _)] = _counted(relation, pairs, [live_rows(relation.segments)], [NOTHING_ASKED])
    return counts


def count_change(
    before: Relation,
    after: Relation,
    pairs: I32,
    row_ids: I64,
    added: Sequence[SegmentRef],
    asked: tuple[AskedRows, AskedRows],
) -> list[tuple[I64, ShownRows]]:
    """For the deleted rows of `before`, then for the added segments: their outcomes, int64[n_pairs, 4], and
    the rows of them that are asked for.

    One job. Cost: follows these rows.
    """
    return _counted(after, pairs, [chosen_rows(before, row_ids), live_rows(added)], asked)


def _counted(
    relation: Relation, pairs: I32, sets: Sequence[Sequence[Payload]], asked: Sequence[AskedRows]
) -> list[tuple[I64, ShownRows]]:
    """The outcomes of several sets of rows, and of each set the rows that are asked for."""
    sizes = [sum(part["n_rows"] for part in parts) for parts in sets]
    if not len(pairs) or not any(sizes):
        return [(np.zeros((len(pairs), 4), dtype=np.int64), NO_ROWS) for _ in sets]
    arrays = {f"{name}-{i}": array for i, a in enumerate(asked) for name, array in a._asdict().items()}
    questions = relation.stage("row-pairs", pairs=pairs.astype(np.int32), **arrays)
    payloads, of_sets = [], []
    for i, parts in enumerate(sets):
        for part in divided(parts):
            others = sizes[i] - (part["last"] - part["first"])
            payloads.append(relation.payload(**part, pairs=questions, asked=i, others=others))
            of_sets.append(i)
    results = relation.run(count_part, payloads, NS_COUNT * sum(sizes) * len(pairs))
    answers = []
    for i in range(len(sets)):
        of_set = [result for j, result in zip(of_sets, results, strict=True) if j == i]
        counts = [result.array("counts").reshape(-1, 4) for result in of_set]
        total = sum(counts, np.zeros((len(pairs), 4), dtype=np.int64))
        answers.append((total, ShownRows.of(of_set)))
    return answers


def count_part(payload: Payload) -> bytes:
    """The outcomes of some rows of a segment in all pairs, and rows that are asked for."""
    rows = Rows.of(payload)
    bundle = staged({**payload, "row-pairs": payload["pairs"]}, "row-pairs")
    pairs, i = bundle.array("pairs").reshape(-1, 2), payload["asked"]
    counts = _outcome_counts(rows, pairs)
    asked = AskedRows(bundle.array(f"pairs-{i}"), bundle.array(f"least-{i}").reshape(-1, NULL))
    here = counts[asked.pairs, :NULL]
    # Other tasks may have the rest of what it needs.
    wanted = (here > 0) & (here + payload["others"] >= asked.least)
    return pack({"counts": counts, **_first_rows(rows, pairs, asked.pairs, np.where(wanted, here, 0))}, {})


def _first_rows(rows: Rows, pairs: I32, asked: I64, n_rows: I64) -> dict[str, I64]:
    """The first rows of the outcomes that are wanted, as `ShownRows` has them: of the first pairs only.

    IN n_rows int64[n_asked, 3]: how many rows have a wanted outcome, 0 where it is not wanted. Cost: a pass
    over the rows of a pair until there are enough, as a rule the first ones.
    """
    chosen = np.flatnonzero(n_rows.any(axis=1))[:MAX_LISTED]
    of_pairs, outcomes, ids = ([np.empty(0, np.int64)] for _ in range(3))
    for p, needed in zip(asked[chosen].tolist(), np.minimum(n_rows[chosen], ROWS_SHOWN), strict=True):
        for outcome, at in enumerate(rows.first(int(pairs[p, 0]), int(pairs[p, 1]), needed)):
            of_pairs.append(np.full(len(at), p))
            outcomes.append(np.full(len(at), outcome))
            ids.append(rows.row_ids(at))
    names = ("shown_pairs", "shown_outcomes", "shown_ids")
    return {name: np.concatenate(parts) for name, parts in zip(names, (of_pairs, outcomes, ids), strict=True)}


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
    """The ids of live rows that violate a rule, ascending, at most `limit`.

    One job; cost: a pass over two columns.
    """
    question = [*map(relation.schema.names.index, rule.columns), _violating(rule)]
    parts = divided(live_rows(relation.segments))
    payloads = [relation.payload(**part, rule=question, limit=limit) for part in parts]
    work = NS_COUNT * relation.n_rows * 10  # whole arrays, several times
    ids = [result.array("row_ids") for result in relation.run(except_part, payloads, work)]
    return np.sort(np.concatenate([np.empty(0, np.int64), *ids]))[:limit]


def _violating(rule: RowRule) -> list[int]:
    return [o for o in range(NULL) if o not in SATISFYING[rule.op]]


def except_part(payload: Payload) -> bytes:
    """The rows of a part that violate a rule."""
    rows = Rows.of(payload)
    left, right, violating = payload["rule"]
    at = np.flatnonzero(np.isin(rows.outcomes(left, right), violating))
    return pack({"row_ids": rows.row_ids(at[: payload["limit"]])}, {})


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
        return next(self._outcomes_by(left, right, len(self.codes(left))))

    def first(self, left: int, right: int, needed: I64) -> list[I64]:
        """The first rows of each outcome but NULL, so many as are needed, int64[3]."""
        at: list[list[I64]] = [[], [], []]
        lacking, start = needed.copy(), 0
        for outcomes in self._outcomes_by(left, right, LOOKED_AT):
            for o in np.flatnonzero(lacking).tolist():
                some = np.flatnonzero(outcomes == o)[: lacking[o]]
                at[o].append(start + some)
                lacking[o] -= len(some)
            start += len(outcomes)
            if not lacking.any():
                break
        return [np.concatenate([np.empty(0, np.int64), *parts]) for parts in at]

    def _outcomes_by(self, left: int, right: int, n_rows: int) -> Iterator[U8]:
        """The exact outcomes of so many rows at a time."""
        types = self.segment.schema.types
        wide = is_wide(types[left], types[right])
        sides = self.compared(left, wide=wide), self.compared(right, wide=wide)
        ordered = comparison(types[left], types[right]) == "order"
        for start in range(0, max(1, len(sides[0].codes)), max(1, n_rows)):
            a, b = (Compared(side.codes[start : start + n_rows], side.words) for side in sides)
            outcomes = row_outcomes.outcomes(a, b, ordered)
            if types[left].hashed:
                equal = np.flatnonzero(outcomes == EQUAL)
                outcomes[equal[self.texts_differ(left, right, start + equal)]] = LESS
            yield outcomes

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
    types, separate = relation.schema.types, np.zeros(len(pairs), dtype=np.bool_)
    unclear = list(range(len(pairs)))
    for exact in (False, True):
        if unclear and (not exact or any(s.n_deleted for s in relation.segments)):
            columns = sorted({c for p in unclear for c in pairs[p].tolist()})
            ranges = _ranges(relation, columns, exact=exact)
            for p in unclear:
                a, b = pairs[p].tolist()
                separate[p] = _are_apart(ranges, a, b, types)
            unclear = [p for p in unclear if not separate[p]]
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


def _ranges(relation: Relation, columns: Sequence[int], *, exact: bool) -> dict[int, U64]:
    """By column the codes of the lowest and the highest value; none if there is no value. By one job where
    the segments are far.

    Without `exact`, values of deleted rows count.
    """
    live = [s for s in relation.segments if s.n_live]
    if relation.are_far(live):
        payloads = [relation.payload(segment=s.to_dict(), columns=list(columns), exact=exact) for s in live]
        results = [unpack(result) for result in relation.look(find_ends, payloads, live)]
        ends = [[result.array(str(c)) for c in columns] for result in results]
    else:
        ends = [_ends(open_segment(relation.root, s, relation.schema), columns, exact) for s in live]
    ranges = {}
    for i, c in enumerate(columns):
        values = np.concatenate([np.empty(0, np.uint64), *(of_columns[i] for of_columns in ends)])
        ranges[c] = np.array([values.min(), values.max()]) if len(values) else values
    return ranges


def find_ends(payload: Payload) -> bytes:
    """The codes of the lowest and the highest value of some columns of a segment."""
    schema = parsed_schema(payload["schema"])
    segment = open_segment(root_of(payload["root"]), SegmentRef.from_dict(payload["segment"]), schema)
    ends = _ends(segment, payload["columns"], payload["exact"])
    return pack({str(c): codes for c, codes in zip(payload["columns"], ends, strict=True)}, {})


def _ends(segment: Segment, columns: Sequence[int], exact: bool) -> list[U64]:
    ends = []
    for c in columns:
        dictionary = segment.dictionary(c)
        low, high = 1, len(dictionary)
        if exact and segment.ref.n_deleted:
            low, high = row_outcomes.live_range(segment.codes[c], segment.live, len(dictionary))
        ends.append(dictionary[[low - 1, high - 1]] if high else dictionary[:0])
    return ends

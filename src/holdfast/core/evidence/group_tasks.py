"""The task functions of `groups.py`: groups of rows over many segments, one part of a pivot's values each.

Segments have dictionaries of their own: a column's values are numbered by their identities (`identities.py`),
which are equal iff the values are.

Rows are divided by the value of a pivot column, which is part of X: a group of X lies in one part, and
all that is counted adds up over the parts. A task reads its part from the segments, unless it is given one:
rows of large tables come by Spark's shuffle (`sent_groups.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.identities import identities_of
from holdfast.core.evidence.kernels import group_counts as kernel
from holdfast.core.evidence.kernels import partitions
from holdfast.core.evidence.kernels.group_counts import Groups
from holdfast.core.rows.segments import Segment
from holdfast.core.rows.tasks import Payload, all_opened, parsed_schema
from holdfast.core.store.bundle import pack

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Rows = NDArray[np.integer[Any]]

# Values of one violating group that are shown, the most frequent ones.
VALUES_SHOWN = 20


class Part(Protocol):
    """Live rows of all segments whose pivot value falls into one part, segment after segment."""

    @property
    def nulls_distinct(self) -> bool: ...

    @property
    def n_rows(self) -> int: ...

    def n_values(self, column: int) -> int:
        """The largest number of a column."""
        ...

    def numbers(self, column: int) -> I32:
        """int32[n_rows]: the column's numbers."""
        ...

    def values(self, column: int, rows: Rows) -> I64:
        """Which value rows have that is no NULL: equal ones alike, in all parts of all pivots."""
        ...

    def names(self, rows: Rows) -> I64:
        """Rows of the part as `segment << 32 | position`."""
        ...

    def row_ids(self, rows: Rows) -> I64: ...


@dataclass(frozen=True)
class SegmentPart:
    """The rows of a part as they lie in the segments; values are numbered through the whole table."""

    segments: tuple[Segment, ...]
    positions: tuple[I32, ...]
    nulls_distinct: bool
    whole: bool  # the only segment's rows, all of them
    _numbers: dict[int, I32] = field(default_factory=dict)

    @classmethod
    def of(cls, payload: Payload) -> SegmentPart:
        segments = tuple(all_opened(payload, parsed_schema(payload["schema"])))
        pivot, part, n_parts = payload["pivot"], payload["part"], payload["n_parts"]
        if n_parts == 1:
            positions = [
                np.flatnonzero(s.live).astype(np.int32)
                if s.ref.n_deleted
                else np.arange(s.ref.n_rows, dtype=np.int32)
                for s in segments
            ]
        else:
            identity, _ = identities_of(segments).of(pivot)
            positions = [
                partitions.select(s.codes[pivot], s.live, identity[i], part, n_parts, False)[0]
                for i, s in enumerate(segments)
            ]
        whole = len(segments) == 1 and len(positions[0]) == segments[0].ref.n_rows
        return cls(segments, tuple(positions), payload["nulls"] == "distinct", whole)

    @property
    def n_rows(self) -> int:
        return sum(len(p) for p in self.positions)

    def n_values(self, column: int) -> int:
        if len(self.segments) == 1:
            return len(self.segments[0].dictionary(column))
        return identities_of(self.segments).of(column)[1] - 1

    def numbers(self, column: int) -> I32:
        numbers = self._numbers.get(column)
        if numbers is None:
            numbers = self._numbers[column] = self._gathered(column)
        return numbers

    def _gathered(self, column: int) -> I32:
        if len(self.segments) == 1:  # numbers are the codes themselves
            [segment], [positions] = self.segments, self.positions
            codes: I32 = segment.codes[column]
            return codes if self.whole else codes[positions]
        per_segment, _ = identities_of(self.segments).of(column)
        out = np.empty(self.n_rows, dtype=np.int32)
        at = 0
        for segment, positions, numbers in zip(self.segments, self.positions, per_segment, strict=True):
            kernel.renumber(numbers, segment.codes[column], positions, out[at : at + len(positions)])
            at += len(positions)
        return out

    def values(self, column: int, rows: Rows) -> I64:
        return self.numbers(column)[rows].astype(np.int64)

    def names(self, rows: Rows) -> I64:
        starts = np.cumsum([0, *(len(p) for p in self.positions)])
        owner = np.searchsorted(starts, rows, side="right") - 1
        out = np.empty(len(rows), dtype=np.int64)
        for i in np.unique(owner).tolist():
            here = owner == i
            out[here] = (i << 32) + self.positions[i][rows[here] - starts[i]].astype(np.int64)
        return out

    def row_ids(self, rows: Rows) -> I64:
        names = self.names(rows)
        out = np.empty(len(rows), dtype=np.int64)
        for i in np.unique(names >> 32).tolist():
            here = names >> 32 == i
            out[here] = self.segments[i].row_ids(names[here] & 0xFFFFFFFF)
        return out


def walked(part: Part, sequences: Sequence[Sequence[int]]) -> Iterator[Groups]:
    """The groups of each sequence of columns; sequences are sorted, and each prefix is split once."""
    path: list[int] = []
    levels = [kernel.everything(part.n_rows)]
    for sequence in sequences:
        depth = 0
        while depth < min(len(path), len(sequence)) and path[depth] == sequence[depth]:
            depth += 1
        del path[depth:], levels[depth + 1 :]
        for column in sequence[depth:]:
            path.append(column)
            numbers, n_values = part.numbers(column), part.n_values(column)
            levels.append(kernel.split(levels[-1], numbers, n_values, part.nulls_distinct))
        yield levels[-1]


def measure_part(payload: Payload, received: Part | None = None) -> bytes:
    """The sums of some dependencies with one pivot; those of columns, where the payload asks for one.

    `whole` int64[n, 4]: groups, violating pairs, rows that can stay, violating rows.
    `sequences`: left-hand sides, the pivot first, sorted. `rhs`: the right-hand side of each, -1 for none.
    """
    part: Part = received or SegmentPart.of(payload)
    if "column" in payload:
        return _column_counts(part, payload["column"])
    n = len(payload["sequences"])
    whole = np.zeros((n, 4), dtype=np.int64)
    dependence = np.zeros(n, dtype=np.float64)
    for i, groups in enumerate(walked(part, payload["sequences"])):
        rhs = payload["rhs"][i]
        alone = part.n_rows - len(groups.rows)
        n_groups = alone + groups.n_groups
        if rhs < 0:
            sizes = kernel.group_sizes(groups)
            agreeing = int((sizes * (sizes - 1) // 2).sum())
            whole[i] = n_groups, agreeing, n_groups, len(groups.rows)
            dependence[i] = n_groups
            continue
        spread = kernel.spread(groups, part.numbers(rhs), part.n_values(rhs), part.nulls_distinct)
        whole[i] = n_groups, spread.violating_pairs, alone + spread.kept_rows, spread.violating_rows
        dependence[i] = alone + spread.dependence
    return pack({"whole": whole, "dependence": dependence}, {})


def _column_counts(part: Part, column: int) -> bytes:
    """(distinct values, NULLs, sum of squared counts, largest count) of the values in the part."""
    counts = kernel.count_numbers(part.numbers(column), part.n_values(column))
    values = counts[1:]
    sums = [np.count_nonzero(values), counts[0], (values * values).sum(), values.max(initial=0)]
    return pack({"counts": np.array(sums, dtype=np.int64)}, {})


def violating_part(payload: Payload, received: Part | None = None) -> bytes:
    """The largest groups of X in which the right-hand side varies, by row ids.

    Of each group: its rows, its first row's place, how many values, the most frequent ones with a row and a
    count each, and sample rows of as many different values as there are. Cost: a pass over the rows, and
    over those of the groups that are shown.
    """
    part: Part = received or SegmentPart.of(payload)
    rhs, n_samples = payload["rhs"], payload["rows_per_group"]
    [groups] = walked(part, [payload["sequence"]])
    numbers = part.numbers(rhs)
    sizes, first, varied = kernel.inspect(groups, numbers, part.nulls_distinct)
    varying = np.flatnonzero(varied)
    top = varying[np.lexsort((first[varying], -sizes[varying]))[: payload["limit"]]]
    rank = np.full(groups.n_groups, len(top), dtype=np.int64)
    rank[top] = np.arange(len(top))
    of_row = rank[groups.group]
    places = np.flatnonzero(of_row < len(top))
    places = places[np.argsort(of_row[places], kind="stable")]
    rows = groups.rows[places]
    ends = np.cumsum(sizes[top])
    n_values = np.zeros(len(top), dtype=np.int64)
    values: list[tuple[int, int, int]] = []
    samples: list[tuple[int, int]] = []
    for i, group_rows in enumerate(np.split(rows, ends[:-1]) if len(top) else []):
        group_numbers = numbers[group_rows]
        distinct, at, counts = np.unique(group_numbers, return_index=True, return_counts=True)
        n_values[i] = len(distinct)
        if part.nulls_distinct and distinct[0] == 0:
            n_values[i] += counts[0] - 1
        order = np.lexsort((at, -counts))[:VALUES_SHOWN]
        values += [(i, int(group_rows[a]), int(c)) for a, c in zip(at[order], counts[order], strict=True)]
        # one row of every value, then the next row of each
        rounds = [
            group_rows[np.flatnonzero(group_numbers == v)[:n_samples]] for v in distinct[order][:n_samples]
        ]
        turns = [int(r[j]) for j in range(n_samples) for r in rounds if j < len(r)]
        samples += [(i, row) for row in turns[:n_samples]]
    shown = np.array(values, dtype=np.int64).reshape(-1, 3)
    picked = np.array(samples, dtype=np.int64).reshape(-1, 2)
    return pack(
        {
            "n_rows": sizes[top],
            "place": part.names(first[top]),
            "n_values": n_values,
            "value_group": shown[:, 0],
            "value_row": part.row_ids(shown[:, 1]),
            "value_count": shown[:, 2],
            "sample_group": picked[:, 0],
            "sample_row": part.row_ids(picked[:, 1]),
        },
        {},
    )

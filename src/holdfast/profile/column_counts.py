"""What is counted of a column: NULLs, values, lengths of texts, their shapes and forms.

Kind of state: linear (`tally.py`). What is kept of a column does not grow with its rows: at most so many
different values, lengths, shapes and forms have a count each, and of more than that only the ends have.

- Values: at most 4,096. Their number, the extremes and the most frequent ones follow. Of a column with
  more the extremes are known, and that there are more; its distinct values are counted by a job over the
  column when somebody asks (`value_ranking.py`). None where a text is longer than 256
  characters.
- Lengths, in characters (of binary values in bytes): 1,024. Both extremes and the mean are known of all.
- Shapes and forms (`text_shapes.py`): 256 each; of more it is known that they are many. None where a text is
  longer than 64 characters: these are no codes.

All of it is a function of the rows, however they came to be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from holdfast.core.rows.some_rows import SomeRows
from holdfast.core.store.bundle import Bundle
from holdfast.core.words.schema import Type
from holdfast.profile import tally
from holdfast.profile.tally import Tally, summed
from holdfast.profile.text_shapes import forms, shapes

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

# Different ones of each that are counted one by one; no less than both ends of a tally.
MOST = {"values": 4096, "lengths": 1024, "shapes": 256, "forms": 256}
# Characters of the longest text up to which a column has the tally.
LONGEST = {"values": 256, "shapes": 64, "forms": 64}


@dataclass(frozen=True, eq=False)
class ColumnCounts:
    """The counts of one column; None where its type, or a long text, leaves out a tally."""

    n_rows: int
    n_nulls: int
    total_length: int = 0
    values: Tally | None = None
    lengths: Tally | None = None
    shapes: Tally | None = None
    forms: Tally | None = None

    @property
    def n_values(self) -> int:
        return self.n_rows - self.n_nulls

    @property
    def max_length(self) -> int:
        """Of its longest text; 0 without one."""
        if self.lengths is None or not len(self.lengths.values):
            return 0
        longest: int = self.lengths.values[-1].as_py()
        return longest

    def plus(self, other: ColumnCounts) -> ColumnCounts:
        """With further rows."""
        longest = max(self.max_length, other.max_length)
        tallies: dict[str, Tally | None] = {}
        for name, most in MOST.items():
            left, right = getattr(self, name), getattr(other, name)
            too_long = longest > LONGEST.get(name, longest)
            tallies[name] = None if left is None or right is None or too_long else left.plus(right, most)
        return ColumnCounts(
            self.n_rows + other.n_rows,
            self.n_nulls + other.n_nulls,
            self.total_length + other.total_length,
            **tallies,
        )

    def minus(self, other: ColumnCounts) -> ColumnCounts | None:
        """Without some of the rows; None if the others have to be counted again.

        ValueError: these rows were never counted.
        """
        if not other.n_rows:
            return self
        rest = ColumnCounts(
            self.n_rows - other.n_rows,
            self.n_nulls - other.n_nulls,
            self.total_length - other.total_length,
        )
        if min(rest.n_rows, rest.n_nulls, rest.n_values, rest.total_length) < 0:
            raise ValueError(f"it would have {rest.n_rows:,} rows, {rest.n_nulls:,} of them NULL")
        tallies: dict[str, Tally | None] = {"lengths": None}
        if self.lengths is not None and other.lengths is not None:
            tallies["lengths"] = lengths = self.lengths.minus(other.lengths, MOST["lengths"])
            if lengths is None:
                return None
            longest = lengths.values[-1].as_py() if len(lengths.values) else 0
        else:
            longest = 0
        for name in LONGEST:
            left, right = getattr(self, name), getattr(other, name)
            if longest > LONGEST[name] or (left is None and self.max_length <= LONGEST[name]):
                tallies[name] = None  # texts are too long still, or there is no such tally of this type
                continue
            less = None if left is None or right is None else left.minus(right, MOST[name])
            if less is None:
                return None
            tallies[name] = less
        return ColumnCounts(rest.n_rows, rest.n_nulls, rest.total_length, **tallies)

    # -- in bundles ---------------------------------------------------------------------------

    def to_arrays(self, name: str) -> dict[str, NDArray[Any] | pa.Array]:
        arrays: dict[str, NDArray[Any] | pa.Array] = {
            f"{name}.rows": np.array([self.n_rows, self.n_nulls, self.total_length], np.int64)
        }
        for part in MOST:
            counted: Tally | None = getattr(self, part)
            if counted is not None:
                arrays |= counted.to_arrays(f"{name}.{part}")
        return arrays

    @classmethod
    def from_bundle(cls, bundle: Bundle, name: str) -> ColumnCounts:
        tallies = {part: Tally.from_bundle(bundle, f"{name}.{part}") for part in MOST}
        n_rows, n_nulls, total_length = bundle.array(f"{name}.rows").tolist()
        return cls(n_rows, n_nulls, total_length, **tallies)


def in_bundle(columns: Mapping[int, ColumnCounts]) -> dict[str, NDArray[Any] | pa.Array]:
    """The counts of columns as arrays with names."""
    arrays: dict[str, NDArray[Any] | pa.Array] = {}
    for c, counts in columns.items():
        arrays |= counts.to_arrays(str(c))
    return arrays


# -- counting ----------------------------------------------------------------------------------


def count_column(rows: SomeRows, column: int, bounds: Mapping[str, int]) -> ColumnCounts:
    """The counts of a column in some rows. `bounds`: tallies that are to be cut earlier, or not made (0).

    Cost: a pass over the codes of the rows, and over the different values that they have.
    """
    codes, type_ = rows.codes(column), rows.segment.schema.types[column]
    n_dictionary = rows.segment.ref.distinct[column]
    used: I64
    counts: I64
    if len(codes) < n_dictionary // 4:
        used, counts = np.unique(codes.astype(np.int64), return_counts=True)
    else:
        counts = np.bincount(codes, minlength=n_dictionary + 1)
        used = np.flatnonzero(counts)
        counts = counts[used]
    n_nulls = int(counts[0]) if len(used) and used[0] == 0 else 0
    chosen, counts = used[used > 0].astype(np.int32), counts[used > 0].astype(np.int64)
    most = bounds.get("values", MOST["values"])
    if type_.hashed:
        return count_values(rows.values(column, chosen), counts, len(codes), n_nulls, type_, bounds)
    if len(chosen) <= most:
        values = Tally(rows.values(column, chosen), counts, int(counts.sum()), None, len(chosen))
    else:  # their codes are in the order of the values: nothing else is decoded
        edge = tally.EDGE
        ends = np.concatenate([chosen[:edge], chosen[-edge:]])
        both = np.concatenate([counts[:edge], counts[-edge:]])
        values = Tally(rows.values(column, ends), both, int(counts.sum()), edge, len(chosen))
    return ColumnCounts(len(codes), n_nulls, values=values)


def count_values(
    values: pa.Array,
    counts: I64,
    n_rows: int,
    n_nulls: int,
    type_: Type,
    bounds: Mapping[str, int] = MappingProxyType({}),
) -> ColumnCounts:
    """The counts of different values that occur so often."""
    longest, total, lengths = 0, 0, None
    texts = type_.family in ("text", "binary")
    if texts:
        sizes = pc.utf8_length(values) if type_.family == "text" else pc.binary_length(values)
        sizes = sizes.cast(pa.int64())
        longest = pc.max(sizes).as_py() or 0
        total = int((sizes.to_numpy() * counts).sum())
        lengths = Tally.of(*summed(sizes, counts), MOST["lengths"])
    tallied = {name: longest <= most and bounds.get(name) != 0 for name, most in LONGEST.items()}
    tallies = {}
    if tallied["values"]:
        tallies["values"] = Tally.of(values, counts, bounds.get("values", MOST["values"]))
    if type_.family == "text" and tallied["shapes"]:
        different, sums = summed(shapes(values), counts)
        tallies["shapes"] = Tally.of(different, sums, MOST["shapes"])
        tallies["forms"] = Tally.of(*summed(forms(different), sums), MOST["shapes"])
    return ColumnCounts(n_rows, n_nulls, total, lengths=lengths, **tallies)


def joined_counts(parts: Sequence[ColumnCounts]) -> ColumnCounts:
    """The counts of several sets of rows."""
    first, *others = parts
    for other in others:
        first = first.plus(other)
    return first

"""A tally: how often each value occurs, of at most so many different ones.

Kind of state: linear. Law: t(R + D) = t(R) + t(D), and t(R - D) = t(R) - t(D) where D is a part of R.

A column may have as many values as rows, and a tally must stay small. So it is *complete*, with a count for
each value, or it is *cut*: it counts all values up to some low one, all from some high one on, and knows that
there are more than it may have. Both ends are exact, so the extremes of any column are known; rows that come
cost what they are, and so do rows that go, until one end is used up, or so many values may have gone that the
rest would be few enough: then `minus` says so (None), and the rows are to be counted again. That takes the
loss of EDGE different values at an end, or of all those beyond the bound.

NULL is no value here. Floats are ordered as everywhere: NaN is one value, greater than all others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from holdfast.core.store.bundle import Bundle

I64 = NDArray[np.int64]

# Values at each end of a tally that is cut.
EDGE = 128


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of values, these ascending and each once.

    >>> few = Tally.of(pa.array(["b", "a"]), np.array([1, 2]), most=3)
    >>> more = few.plus(Tally.of(pa.array(["c", "a"]), np.array([4, 1]), most=3), most=3)
    >>> more.values.to_pylist(), more.counts.tolist(), more.n_values
    (['a', 'b', 'c'], [3, 1, 4], 8)
    >>> less = more.minus(few, most=3)
    >>> less.values.to_pylist(), less.counts.tolist()
    (['a', 'c'], [1, 4])
    """

    values: pa.Array
    counts: I64
    n_values: int  # how many were counted, the different ones or not
    n_low: int | None = None  # None: complete; else so many are the lowest ones, and the others the highest
    at_least: int = 0  # so many different values there are

    @classmethod
    def of(cls, values: pa.Array, counts: I64, most: int) -> Tally:
        """Values, each once, with their counts. Cost: a sort, or a selection of both ends if it is cut."""
        n, total = len(values), int(counts.sum())
        if n > most:
            low, high = pc.bottom_k_unstable(values, EDGE), pc.top_k_unstable(values, EDGE)
            at = np.concatenate([low.to_numpy(), high.to_numpy()[::-1]]).astype(np.int64)
            return cls(values.take(pa.array(at)), counts[at], total, EDGE, n)
        at = pc.sort_indices(values).to_numpy().astype(np.int64)
        return cls(values.take(pa.array(at)), counts[at], total, None, n)

    @property
    def complete(self) -> bool:
        return self.n_low is None

    @property
    def n_distinct(self) -> int | None:
        """How many different values there are; None if they are more than could be counted."""
        return len(self.values) if self.complete else None

    def plus(self, other: Tally, most: int) -> Tally:
        """With the values of further rows."""
        if not other.n_values:
            return self
        together = _together(self, other, 1)
        assert together is not None  # nothing goes
        return together.cut(most)

    def minus(self, other: Tally, most: int) -> Tally | None:
        """Without those of some of the rows; None if it cannot be known without a look at the others.

        ValueError: these rows were never counted.
        """
        if not other.n_values:
            return self
        if self.complete and not other.complete:
            return None
        together = _together(self, other, -1)
        if together is None or (not together.complete and together.at_least <= most):
            return None
        return together

    def cut(self, most: int) -> Tally:
        """The same, if it has at most so many values; else its ends."""
        if self.n_low is None:
            n = len(self.values)
            if n <= most:
                return self
            return self._ends(EDGE, EDGE, n)
        n_high = len(self.values) - self.n_low
        if max(self.n_low, n_high) <= 2 * EDGE:
            return self
        return self._ends(min(self.n_low, EDGE), min(n_high, EDGE), self.at_least)

    def _ends(self, n_low: int, n_high: int, at_least: int) -> Tally:
        at = np.concatenate([np.arange(n_low), np.arange(len(self.values) - n_high, len(self.values))])
        return replace(
            self,
            values=self.values.take(pa.array(at)),
            counts=self.counts[at],
            n_low=n_low,
            at_least=at_least,
        )

    def most_frequent(self, n: int) -> I64:
        """The places of the most frequent values; of those with one count the lower ones."""
        return np.lexsort((np.arange(len(self.counts)), -self.counts))[:n].astype(np.int64)

    # -- in bundles ---------------------------------------------------------------------------

    def to_arrays(self, name: str) -> dict[str, NDArray[Any] | pa.Array]:
        head = np.array([self.n_values, -1 if self.n_low is None else self.n_low, self.at_least], np.int64)
        return {f"{name}.values": self.values, f"{name}.counts": self.counts, f"{name}.head": head}

    @classmethod
    def from_bundle(cls, bundle: Bundle, name: str) -> Tally | None:
        """None where there is none of that name."""
        if f"{name}.head" not in bundle:
            return None
        n_values, n_low, at_least = bundle.array(f"{name}.head").tolist()
        counts = bundle.array(f"{name}.counts")
        return cls(bundle.arrow(f"{name}.values"), counts, n_values, None if n_low < 0 else n_low, at_least)


def _together(left: Tally, right: Tally, sign: int) -> Tally | None:
    """Both, added or subtracted. None: of an end that is cut nothing is left."""
    values, at = distinct(pa.concat_arrays([left.values, right.values]))
    counts = np.zeros(len(values), np.int64)
    np.add.at(counts, at[: len(left.values)], left.counts)
    np.add.at(counts, at[len(left.values) :], sign * right.counts)
    lows, highs = [], []  # where ends that are cut end
    for tally, places in ((left, at[: len(left.values)]), (right, at[len(left.values) :])):
        if tally.n_low is not None:
            lows.append(int(places[tally.n_low - 1]))
            highs.append(int(places[tally.n_low]))
    total = left.n_values + sign * right.n_values
    if not lows:
        if total < 0 or (counts < 0).any():
            raise ValueError(f"a value would be left with {int(counts.min(initial=0)):,} rows")
        there = np.flatnonzero(counts)
        return Tally(values.take(pa.array(there)), counts[there], total, None, len(there))
    rank = np.arange(len(values))
    inside = (rank <= min(lows)) | (rank >= max(highs))
    if (counts[inside] < 0).any():
        raise ValueError(f"a value would be left with {int(counts[inside].min()):,} rows")
    there = np.flatnonzero(inside & (counts > 0))
    n_low = int((there <= min(lows)).sum())
    if n_low in (0, len(there)):
        return None
    if sign > 0:
        at_least = max(left.at_least, right.at_least)
    else:  # each of the rows may have been the last one of its value
        at_least = left.at_least - (len(right.values) if right.complete else right.n_values)
    return Tally(values.take(pa.array(there)), counts[there], total, n_low, at_least)


def distinct(values: pa.Array) -> tuple[pa.Array, I64]:
    """(the different values, ascending; the place of each among them)."""
    encoded = values.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return encoded.dictionary.take(pa.array(order)), rank[encoded.indices.to_numpy()]


def summed(values: pa.Array, counts: I64) -> tuple[pa.Array, I64]:
    """(the different values, the sum of the counts of each)."""
    different, at = distinct(values)
    sums = np.zeros(len(different), np.int64)
    np.add.at(sums, at, counts)
    return different, sums

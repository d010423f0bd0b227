"""How much a key looks meant, and not like an accident of the rows at hand.

A key that was meant to be one is short, made of leading columns, named like a key, never NULL, of integers or
short texts. Each column has points for that (`key_points`), which are log-odds; a key has the mean of its
columns', less for each further column. And it is no chance: were its columns to have nothing to do with each
other, n rows would all differ with a probability of exp(-n (n - 1) / 2 D), with D combinations that there
could be (`chance`). That is nearly 1 for a price and a day of few orders, and for the names of eight
employees; it is nothing for order and line number, which fill their combinations. A key that has outlived
batches, and rows that came since, was hardly an accident: it has points for that, none where it is new
(`core/cover/stability.py` says how much it has outlived, 0 to 1).

No row is looked at: what is not known (NULLs, the length of texts) does not count. Cost: an addition for each
column of a key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from holdfast.core.words.codec import Coded
from holdfast.core.words.column_facts import ColumnFacts
from holdfast.core.words.name_similarity import Names

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

# Points of a column; see the law above.
NAMED = 2.0
LATE = -1.0
NULLS = -2.0
SEQUENCE = 0.5
FRACTIONS = -2.0
TEXT = -0.25
LONG = -1.5
OTHER = -1.0  # dates, truth values
LONG_TEXT = 24.0  # characters on average; longer ones are descriptions
FURTHER_COLUMN = -0.8

# Of a key: where it starts from, and what is taken if it is chance.
START = 1.25
CHANCE = -2.5
# What is added, at most, for what it has outlived: mildly, as for functional dependencies.
OUTLIVED = 0.75
NAMED_SO = "named like a key"
UNLIKELY = 0.01  # a probability below that is not worth a word
# A column of which values seldom repeat could have so many times more of them.
POSSIBLE = 30
# From this score on a key is worth to be declared, and to be called the primary key.
WORTH = 0.5


@dataclass(frozen=True, slots=True)
class KeyReason(Coded):
    """One reason: it adds points to a key's log-odds, and says why in words, of some columns or of all."""

    points: float
    text: str
    columns: tuple[str, ...] = ()  # those that it is true of; (): of all, or of the key


def key_points(facts: ColumnFacts, names: Names, width: int) -> float:
    """How much a column looks like (a part of) a key, of a table with so many columns."""
    return sum(points for points, _ in _parts(facts, names, width))


def _parts(facts: ColumnFacts, names: Names, width: int) -> Iterator[tuple[float, str]]:
    """The points of a column one by one, each with what it is for."""
    yield NAMED * names.of_key(facts.table, facts.column), NAMED_SO
    yield LATE * facts.position / max(1, width), "late in the table" if 2 * facts.position > width else ""
    if facts.has_nulls:
        yield NULLS, "with NULLs"
    elif facts.n_values is not None:
        yield 0.0, "never NULL"
    if facts.domain == "number" and facts.integers:
        yield (SEQUENCE, "a sequence without gaps") if facts.is_sequence else (0.0, "integers")
    elif facts.domain == "number":
        yield FRACTIONS, "fractions"
    elif facts.domain == "text":
        long = facts.mean_length is not None and facts.mean_length > LONG_TEXT
        yield (LONG, "long texts") if long else (TEXT, "texts")
    elif facts.domain != "binary":
        yield OTHER, f"of type {facts.domain}"


def points_together(points: Sequence[float]) -> float:
    """The points of a key with columns of these points."""
    return sum(points) / max(1, len(points)) + FURTHER_COLUMN * (len(points) - 1)


def chance(n_rows: int, distinct: Sequence[int]) -> float:
    """The probability that all rows differ by chance, in columns of so many different values.

    >>> [round(chance(n, [n]), 2) for n in (2, 8, 100, 200)]
    [0.98, 0.89, 0.19, 0.04]
    >>> round(chance(2000, [1000, 8]), 2), round(chance(2000, [1500, 700]), 2)
    (0.0, 0.94)
    """
    return float(_chances(n_rows, np.array(distinct, dtype=np.int64), np.zeros(1, dtype=np.int64))[0])


def _chances(n_rows: int, distinct: I64, starts: I64) -> F64:
    """The same of many combinations, none of no column: where each begins in `distinct`."""
    seldom_repeats = np.logical_or.reduceat(2 * distinct > n_rows, starts)
    n_pairs = max(0.5, n_rows * (n_rows - 1) / 2)
    # Logarithms: of a hundred columns there are more combinations than a float can say.
    combinations = np.add.reduceat(np.log(np.maximum(1, distinct)), starts)
    combinations += np.where(seldom_repeats, log(POSSIBLE), 0.0)
    chances: F64 = np.exp(-np.exp(np.minimum(log(n_pairs) - combinations, 9.0)))
    return chances


class KeyScores:
    """The scores of the keys of one table, 0 to 1.

    >>> facts = [ColumnFacts("t", c, i, "number", 500, None, d, None, None, True, None)
    ...          for i, (c, d) in enumerate([("id", 500), ("day", 90), ("weight", 400)])]
    >>> scores = KeyScores(facts)
    >>> [round(scores(key), 2) for key in (("id",), ("day", "weight"))]
    [0.96, 0.09]
    """

    def __init__(
        self, columns: Sequence[ColumnFacts], stability: Mapping[tuple[str, ...], float] | None = None
    ) -> None:
        """`stability` says of keys how much they have outlived; those that it lacks are new."""
        self._names = Names({f.table: [f.column for f in columns] for f in columns})
        self._facts = {f.column: f for f in columns}
        self._n_rows = columns[0].n_rows if columns else 0
        self._position = {f.column: i for i, f in enumerate(columns)}
        self._points = np.array([key_points(f, self._names, len(columns)) for f in columns])
        self._distinct = np.array([f.n_distinct for f in columns], dtype=np.int64)
        self._stability = {} if stability is None else stability

    def __call__(self, columns: Sequence[str]) -> float:
        """The score; 0 of the empty key, which says that there is at most one row."""
        return float(self.scores([tuple(columns)])[0])

    def scores(self, keys: Sequence[tuple[str, ...]], outlived: float | None = None) -> F64:
        """The score of each; with `outlived` as if each had outlived so much. Cost: 2 us for each."""
        points = self._lasting(keys)
        shares = [self._stability.get(key, 0.0) for key in keys] if outlived is None else outlived
        with np.errstate(over="ignore"):  # of a thousand columns it is 0
            scores: F64 = 1 / (1 + np.exp(-points - OUTLIVED * np.array(shares)))
        return scores

    def _lasting(self, keys: Sequence[tuple[str, ...]]) -> F64:
        """The points of keys without those for what they have outlived; of the empty key none can be less."""
        sizes = np.array([len(key) for key in keys], dtype=np.int64)
        points = np.full(len(keys), -np.inf)
        filled = np.flatnonzero(sizes)
        if len(filled):
            columns = np.array([self._position[c] for key in keys for c in key], dtype=np.int64)
            starts, n = (np.cumsum(sizes) - sizes)[filled], sizes[filled]
            means = np.add.reduceat(self._points[columns], starts) / n
            by_chance = _chances(self._n_rows, self._distinct[columns], starts)
            points[filled] = START + means + FURTHER_COLUMN * (n - 1) + CHANCE * by_chance
        return points

    def contenders(self, keys: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """The keys that have the highest score of all if they have outlived enough, in their order."""
        points = self._lasting(keys)
        best = points.max(initial=-np.inf) - OUTLIVED
        return [keys[i] for i in np.flatnonzero(points >= best).tolist()]

    def reasons(self, columns: Sequence[str]) -> list[KeyReason]:
        """Why a key has its score, in words: of the whole key, then of its columns.

        The points are those of the score, but for START, which every key has; of several columns each has
        its share. Facts that are not known have no reason.

        >>> facts = [ColumnFacts("t", "id", 0, "number", 500, 500, 500, 1, 500, True, None)]
        >>> print(", ".join(reason.text for reason in KeyScores(facts).reasons(["id"])))
        one column, not by chance, named like a key, never NULL, a sequence without gaps
        """
        n = len(columns)
        if not n:
            return [KeyReason(0.0, "no columns: there is at most one row")]
        by_chance = chance(self._n_rows, [int(self._distinct[self._position[c]]) for c in columns])
        outlived = self._stability.get(tuple(columns), 0.0)
        size = "one column" if n == 1 else f"{n} columns"
        luck = f"{by_chance:.0%} likely by chance" if by_chance >= UNLIKELY else "not by chance"
        reasons = [KeyReason(FURTHER_COLUMN * (n - 1), size), KeyReason(CHANCE * by_chance, luck)]
        if outlived:
            reasons.append(KeyReason(OUTLIVED * outlived, "it has outlived changes"))
        of_columns: dict[str, dict[str, float]] = {}
        for column in columns:
            for points, text in _parts(self._facts[column], self._names, len(self._facts)):
                if text and (points or text != NAMED_SO):
                    of_columns.setdefault(text, {})[column] = points / n
        for text, points_of in of_columns.items():
            some = () if len(points_of) == n else tuple(points_of)
            reasons.append(KeyReason(sum(points_of.values()), text, some))
        return reasons

    def primary(self, keys: Sequence[tuple[str, ...]]) -> tuple[str, ...] | None:
        """The key that looks like the primary key; None if none is worth it. Cost: a pass over the keys."""
        scores = self.scores(keys).tolist()
        best = max(range(len(keys)), key=lambda i: (scores[i], -len(keys[i])), default=None)
        return keys[best] if best is not None and keys[best] and scores[best] >= WORTH else None

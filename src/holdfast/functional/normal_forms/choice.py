"""Which FDs a normal form is built on: sets of FDs and their closures, the choice among them, the keys.

Sets of columns are integers, bit i for column i.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from holdfast.core.words.predicate import numbers_of
from holdfast.functional.normal_forms.proposal import Arrow, Why

# A table may have thousands of keys, nearly all of them accidents: this many are looked for.
MAX_KEYS = 32

_WORD = (1 << 64) - 1


def in_order(mask: int) -> tuple[int, tuple[int, ...]]:
    """Narrow sets first, then by their columns."""
    return mask.bit_count(), numbers_of(mask)


class FdSet:
    """FDs by left-hand side, as arrays of words: `lhs` and `rhs` are uint64[n_words, n]."""

    def __init__(self, groups: Mapping[int, int], n_columns: int) -> None:
        self.groups = dict(groups)
        self.n_words = max(1, -(-n_columns // 64))
        self.masks = list(self.groups)
        self.lhs = self.words(self.masks)
        self.rhs = self.words(list(self.groups.values()))

    def words(self, masks: Sequence[int]) -> npt.NDArray[np.uint64]:
        n_bytes = 8 * self.n_words
        joined = b"".join(mask.to_bytes(n_bytes, "little") for mask in masks)
        words = np.frombuffer(joined, dtype="<u8").astype(np.uint64)
        return np.ascontiguousarray(words.reshape(len(masks), self.n_words).T)

    def closure(self, mask: int) -> int:
        """All that the columns determine. One scan per round; FDs that are all of a table need two rounds."""
        while True:
            missing = self.lhs[0] & np.uint64(~mask & _WORD)
            for k in range(1, self.n_words):
                missing |= self.lhs[k] & np.uint64(~mask >> 64 * k & _WORD)
            hit = missing == 0
            new = mask
            for k in range(self.n_words):
                new |= int(np.bitwise_or.reduce(self.rhs[k, hit])) << 64 * k
            if new == mask:
                return mask
            mask = new

    def without_redundant(self, worst_first: Iterable[int]) -> dict[int, int]:
        """What is left when FDs that follow from the others go, one by one, in the order of `worst_first`."""
        needed = dict(self.groups)
        rank = {mask: i for i, mask in enumerate(self.masks)}
        for lhs in worst_first:
            for a in numbers_of(self.groups[lhs]):
                fewer = needed[lhs] & ~(1 << a)
                self.rhs[:, rank[lhs]] = self.words([fewer])[:, 0]
                if self.closure(lhs) >> a & 1:
                    needed[lhs] = fewer
                else:
                    self.rhs[:, rank[lhs]] = self.words([needed[lhs]])[:, 0]
        return {lhs: rhs for lhs, rhs in needed.items() if rhs}


def closures(groups: Mapping[int, int], n_columns: int) -> dict[int, int]:
    """What each left-hand side determines, given all minimal FDs (up to a width).

    The FDs inside of X are found by looking up its subsets, or by a scan where there are fewer FDs than that.
    """
    every = FdSet(groups, n_columns)
    full = (1 << n_columns) - 1
    closed = {}
    for x in groups:
        if (40 << x.bit_count()) > len(groups):  # a look-up costs as much as some forty FDs in a scan
            closed[x] = every.closure(x)
            continue
        closure, subset = x, x
        while closure != full:
            closure |= groups.get(subset, 0)
            if not subset:
                break
            subset = (subset - 1) & x
        closed[x] = closure
    return closed


# --- Which FDs are used -----------------------------------------------------------------------------------


class Choice:
    """The FDs of a table, told apart: from keys, used, set aside."""

    def __init__(
        self,
        columns: Sequence[str],
        fds: Iterable[Arrow],
        scores: Mapping[Arrow, float] | None,
        keys: Iterable[Collection[str]],
        nullable: Collection[str],
        nulls: str,
        min_score: float,
        max_lhs: int,
        use_all: bool,
    ) -> None:
        self.columns = tuple(columns)
        self.n = len(self.columns)
        self.full = (1 << self.n) - 1
        self._position = {name: i for i, name in enumerate(self.columns)}
        self.nullable = self.mask(nullable)
        self.silent = self.nullable if nulls == "distinct" else 0  # NULL here agrees with nothing
        self.arrows: dict[tuple[int, int], Arrow] = {}
        groups: dict[int, int] = {}
        for lhs, rhs in fds:
            x, a = self.mask(lhs), self._position[rhs]
            self.arrows[x, a] = (lhs, rhs)
            groups[x] = groups.get(x, 0) | 1 << a
        every = dict(groups)
        for key in map(self.mask, keys):
            every[key] = every.get(key, 0) | (self.full & ~key)
        every = {x: every[x] for x in sorted(every, key=in_order)}  # whatever the order they came in
        self.closed = closures(every, self.n)
        # Facts hold with NULL as a value, whatever the rule of the table.
        self.facts = FdSet({x: rhs for x, rhs in every.items() if not x & self.silent}, self.n)
        self.harmful = {x: r for x, r in groups.items() if self.closed[x] != self.full}
        self.scores = scores
        self._select(min_score, max_lhs, use_all)

    def mask(self, names: Iterable[str]) -> int:
        mask = 0
        for name in names:
            mask |= 1 << self._position[name]
        return mask

    def names(self, mask: int) -> tuple[str, ...]:
        return tuple(self.columns[i] for i in numbers_of(mask))

    def score(self, x: int, a: int) -> float | None:
        return None if self.scores is None else self.scores.get(self.arrows[x, a])

    def _select(self, min_score: float, max_lhs: int, use_all: bool) -> None:
        """`chosen`: the FDs to use, by left-hand side; `aside`: the others, with why; `reach`: what a
        left-hand side determines by chosen ones; `used`: chosen FDs and those that follow, best first."""
        self.chosen: dict[int, int] = {}
        self.best: dict[int, float] = {}
        refused: dict[tuple[int, int], tuple[Why, str]] = {}
        for x, rhs in self.harmful.items():
            for a in numbers_of(rhs):
                score = self.score(x, a)
                reason = self._refusal(x, score, min_score, max_lhs, use_all)
                if reason is not None:
                    refused[x, a] = reason
                    continue
                self.chosen[x] = self.chosen.get(x, 0) | 1 << a
                if score is not None:
                    self.best[x] = max(self.best.get(x, score), score)
        by_chosen = FdSet(self.chosen, self.n)
        self.reach = {x: by_chosen.closure(x) if refused else self.closed[x] for x in self.harmful}
        self.aside = {(x, a): why for (x, a), why in refused.items() if not self.reach[x] >> a & 1}
        used = {x: rhs & self.reach[x] for x, rhs in self.harmful.items() if not x & self.silent}
        self.used = {x: used[x] for x in sorted(used, key=self.order) if used[x]}

    def _refusal(
        self, x: int, score: float | None, min_score: float, max_lhs: int, use_all: bool
    ) -> tuple[Why, str] | None:
        if x & self.silent:
            there = ", ".join(self.names(x & self.silent))
            return (
                "nulls",
                f"there is NULL in {there}, and NULLs are taken for distinct: a join would lose rows",
            )
        if use_all:
            return None
        if not x:
            return "constant", "it is constant: that is no reason for a table of its own"
        if x.bit_count() > max_lhs:
            return "wide", f"more than {max_lhs} columns on the left"
        if self.scores is None:
            return None
        if score is None:
            return "unranked", "its score is not known"
        if not score >= min_score:  # and not `score < min_score`, which NaN would pass
            return "weak", f"its score {score:.2f} is below {min_score:g}"
        return None

    def order(self, x: int) -> tuple[bool, float, int, int, tuple[int, ...]]:
        """Best left-hand sides first: chosen, of a good score, narrow, with much to say."""
        says = self.reach.get(x, x) & ~x
        return x not in self.chosen, -self.best.get(x, 0.0), x.bit_count(), -says.bit_count(), numbers_of(x)

    # --- Keys ---

    def is_key_of(self, x: int, part: int) -> bool:
        """Whether the columns determine all of the part."""
        return not part & ~(self.closed[x] if x in self.closed else self.facts.closure(x))

    def is_minimal_key_of(self, x: int, part: int) -> bool:
        if x & ~part or not self.is_key_of(x, part):
            return False
        return not any(self.is_key_of(x & ~(1 << i), part) for i in numbers_of(x))

    def keys_of(self, part: int) -> list[int]:
        """The minimal keys of a part, best first, at most MAX_KEYS: those that are left-hand sides, narrow
        ones first, then what these lead to (Lucchesi and Osborn 1978)."""
        inside = {x: r & part for x, r in self.facts.groups.items() if not x & ~part and r & part}
        facts = FdSet(inside, self.n)
        keys: list[int] = []

        def add(superkey: int) -> None:
            if any(not key & ~superkey for key in keys):
                return
            # NULL makes a poor key, and designers put keys first: what may go goes from the end.
            for i in sorted(numbers_of(superkey), key=lambda i: (not self.nullable >> i & 1, -i)):
                if not part & ~facts.closure(superkey & ~(1 << i)):
                    superkey &= ~(1 << i)
            keys.append(superkey)

        for x in sorted((x for x in inside if self.is_key_of(x, part)), key=in_order):
            if len(keys) == MAX_KEYS:
                break
            add(x)
        if not keys:
            add(part)
        for key in keys:  # which grows meanwhile
            for a in numbers_of(key):
                for x in self._exchanges(facts, keys, key, a):
                    if len(keys) == MAX_KEYS:
                        break
                    add(x | key & ~(1 << a))
        return sorted(keys, key=lambda key: (bool(key & self.nullable), *in_order(key)))

    def _exchanges(self, facts: FdSet, keys: list[int], key: int, a: int) -> list[int]:
        """The left-hand sides that, put in the place of column `a`, give a superkey without a key found."""
        word, bit = divmod(a, 64)
        [which] = np.nonzero(facts.rhs[word] >> np.uint64(bit) & np.uint64(1))
        lhs = facts.lhs[:, which]
        for present in keys:
            if not which.size:
                break
            # Of the key that was found, what the exchange would have to bring in.
            lacking = present & ~(key & ~(1 << a))
            new = np.zeros(len(which), dtype=bool)
            for k in range(facts.n_words):
                part = np.uint64(lacking >> 64 * k & _WORD)
                new |= lhs[k] & part != part
            which, lhs = which[new], lhs[:, new]
        return [facts.masks[i] for i in which]

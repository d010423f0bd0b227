"""Normal forms: tables to keep instead of one, so that what a dependency says is stored once.

Given are the minimal FDs of a table, all of them (or all up to a bound). That makes two things easy:

- *Projection.* The minimal FDs of the table cut down to some columns are those that lie inside these
  columns: whether X -> A holds is a matter of the columns X and A alone (`projected`).
- *Closure.* What X determines is the right-hand sides of the FDs with a left-hand side inside X.

Most FDs are accidents of the rows at hand. Those that follow from a key do no harm. The others are *used*
if they score well and are narrow, else *set aside*; an FD that follows from used ones is used too. The
result is in its normal form with respect to the FDs used. Keys are facts, so all FDs speak about them.

- BCNF: a table with a used FD X -> A whose X is no key is split into X with all it determines, and the
  rest with X. The join of the two gives the table back, as each X has one partner. Best FDs come first.
  An FD may be lost: no proposed table has all of its columns. This is said.
- 3NF: the FDs used and a key, without those that follow from others (a canonical cover), give one table
  per left-hand side. Nothing used is lost, but a table may repeat parts of its keys.

NULL: a join takes NULL for a value (`IS NOT DISTINCT FROM`). Where the table takes NULLs for distinct, an
FD with NULL on its left says nothing about those rows, so it is never used.

Sets of columns are integers, bit i for column i. Closures are scans over arrays: with n FDs and p proposed
tables n scans, and n * p set operations; 4,000 FDs take well under a second.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from holdfast.errors import listing
from holdfast.model.dependency import Fd

Form = Literal["bcnf", "3nf"]
FORMS: tuple[Form, ...] = get_args(Form)
Arrow = tuple[frozenset[str], str]  # left-hand side, right-hand side

MIN_SCORE = 0.1
MAX_LHS = 3
# A table may have thousands of keys, nearly all of them accidents: this many are looked for.
MAX_KEYS = 32
# PostgreSQL takes 63 bytes for a name.
MAX_NAME = 60
NAMED_COLUMNS = 3
LISTED = 8

Why = Literal["constant", "nulls", "wide", "unranked", "weak"]


# --- What is proposed -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reference:
    """A foreign key: these columns are a key, of the same names, of another proposed table."""

    columns: tuple[str, ...]
    table: str

    def to_dict(self) -> dict[str, Any]:
        return {"columns": list(self.columns), "table": self.table}


@dataclass(frozen=True, slots=True)
class Part:
    """A proposed table: the distinct rows of some columns.

    An empty primary key says that there is one row at most. `more_keys`: there may be keys that are not
    listed. `fds` led to the table; without any, it keeps what the others leave. `score` is the best of
    theirs. `removed` counts the values that are not repeated any more, None if that is not known.
    """

    name: str
    columns: tuple[str, ...]
    primary_key: tuple[str, ...]
    other_keys: tuple[tuple[str, ...], ...]
    more_keys: bool
    references: tuple[Reference, ...]
    fds: tuple[Fd, ...]
    score: float | None
    removed: int | None
    reason: str

    @property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.primary_key, *self.other_keys)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "columns": list(self.columns),
            "primary_key": list(self.primary_key),
            "other_keys": [list(key) for key in self.other_keys],
            "more_keys": self.more_keys,
            "references": [reference.to_dict() for reference in self.references],
            "fds": [fd.to_dict() for fd in self.fds],
            "score": self.score,
            "removed": self.removed,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class SetAside:
    """An FD that does not follow from a key and was not used, and why."""

    fd: Fd
    score: float | None
    why: Why
    text: str

    def to_dict(self) -> dict[str, Any]:
        return {"fd": self.fd.to_dict(), "score": self.score, "why": self.why, "text": self.text}


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Proposed tables, the main one first, and how they came about.

    The natural join of the parts is the table without its duplicates. `lost` are FDs used, `lost_keys` keys
    of the table, that no key of a part (and no FD inside of one) guards any more. `inside` are FDs used that
    are in a part without following from its keys: none in BCNF. `n_from_keys` of the `n_fds` follow from
    keys. `bound` is the widest left-hand side that was looked for, None if all were.
    """

    table: str
    form: Form
    parts: tuple[Part, ...]
    lost: tuple[Fd, ...]
    lost_keys: tuple[tuple[str, ...], ...]
    inside: tuple[Fd, ...]
    set_aside: tuple[SetAside, ...]
    steps: tuple[str, ...]
    n_fds: int
    n_used: int
    n_from_keys: int
    has_duplicates: bool
    bound: int | None

    @property
    def splits(self) -> bool:
        """Whether there is anything to do."""
        return len(self.parts) > 1

    @property
    def preserving(self) -> bool:
        return not self.lost and not self.lost_keys

    @property
    def complete(self) -> bool:
        """Whether the normal form holds of the data, not only with respect to the FDs used."""
        return not self.set_aside and self.bound is None

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "form": self.form,
            "complete": self.complete,
            "preserving": self.preserving,
            "has_duplicates": self.has_duplicates,
            "max_lhs": self.bound,
            "n_fds": self.n_fds,
            "n_used": self.n_used,
            "n_from_keys": self.n_from_keys,
            "parts": [part.to_dict() for part in self.parts],
            "lost": [fd.to_dict() for fd in self.lost],
            "lost_keys": [list(key) for key in self.lost_keys],
            "inside": [fd.to_dict() for fd in self.inside],
            "set_aside": [aside.to_dict() for aside in self.set_aside],
            "steps": list(self.steps),
        }


def projected(fds: Iterable[Arrow], columns: Collection[str]) -> list[Arrow]:
    """The minimal FDs of a projection, from all minimal FDs of the table: those that lie inside the columns.

    Pairs of rows agree on X, or on A, in the projection iff they do in the table. So the same FDs hold; and
    X is minimal for A here iff it is there, as its subsets lie inside too.

    >>> projected([(frozenset("a"), "b"), (frozenset("b"), "c"), (frozenset("a"), "c")], "ac")
    [(frozenset({'a'}), 'c')]
    """
    inside = frozenset(columns)
    return [(lhs, rhs) for lhs, rhs in fds if rhs in inside and lhs <= inside]


def normalise(
    table: str,
    columns: Sequence[str],
    fds: Iterable[Arrow],
    form: Form = "bcnf",
    scores: Mapping[Arrow, float] | None = None,
    has_duplicates: bool = False,
    *,
    redundant: Mapping[Arrow, int] | None = None,
    keys: Iterable[Collection[str]] = (),
    nullable: Collection[str] = (),
    nulls: Literal["equal", "distinct"] = "equal",
    min_score: float = MIN_SCORE,
    max_lhs: int = MAX_LHS,
    use_all: bool = False,
    bound: int | None = None,
    taken: Collection[str] = (),
) -> Decomposition:
    """Tables in a normal form that together hold what the table does, without its duplicates.

    `fds` are all minimal FDs, those of at most `bound` columns on the left if that is given. Used are those
    with a score of at least `min_score`, at most `max_lhs` columns on the left and at least one; `use_all`
    takes every FD. Without `scores` nothing is set aside for its score; an FD that is missing among them is.
    `redundant` counts for an FD the rows but one of each left-hand value. `keys` are minimal keys of the
    table that are known (those that follow from the FDs need not be given). `nullable` are the columns
    with NULL in some row. Proposed names differ from those `taken`, whatever their case.

    >>> fds = [(frozenset({"id"}), "zip"), (frozenset({"id"}), "city"), (frozenset({"zip"}), "city")]
    >>> proposed = normalise("orders", ["id", "zip", "city"], fds)
    >>> for part in proposed.parts:
    ...     print(part.name, part.columns, part.primary_key)
    orders_main ('id', 'zip') ('id',)
    orders_zip ('zip', 'city') ('zip',)
    """
    if form not in FORMS:
        raise ValueError(f"unknown normal form {form!r}; known are {', '.join(FORMS)}")
    choice = _Choice(columns, fds, scores, keys, nullable, nulls, min_score, max_lhs, use_all)
    run = _Run(table, form, choice, redundant or {}, has_duplicates, bound, max_lhs, use_all, taken)
    return run.decomposition()


# --- Sets of columns --------------------------------------------------------------------------------------


_WORD = (1 << 64) - 1


def _bits(mask: int) -> Iterator[int]:
    """The positions in a mask, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _in_order(mask: int) -> tuple[int, list[int]]:
    """Narrow sets first, then by their columns."""
    return mask.bit_count(), list(_bits(mask))


class _FdSet:
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
        kept = dict(self.groups)
        rank = {mask: i for i, mask in enumerate(self.masks)}
        for lhs in worst_first:
            for a in _bits(self.groups[lhs]):
                rest = kept[lhs] & ~(1 << a)
                self.rhs[:, rank[lhs]] = self.words([rest])[:, 0]
                if self.closure(lhs) >> a & 1:
                    kept[lhs] = rest
                else:
                    self.rhs[:, rank[lhs]] = self.words([kept[lhs]])[:, 0]
        return {lhs: rhs for lhs, rhs in kept.items() if rhs}


def _closures(groups: Mapping[int, int], n_columns: int) -> dict[int, int]:
    """What each left-hand side determines, given all minimal FDs (up to a width).

    The FDs inside of X are found by looking up its subsets, or by a scan where there are fewer FDs than that.
    """
    every = _FdSet(groups, n_columns)
    full = (1 << n_columns) - 1
    closed = {}
    for x in groups:
        if (40 << x.bit_count()) > len(groups):  # a look-up costs as much as some forty FDs in a scan
            closed[x] = every.closure(x)
            continue
        found, subset = x, x
        while found != full:
            found |= groups.get(subset, 0)
            if not subset:
                break
            subset = (subset - 1) & x
        closed[x] = found
    return closed


# --- Which FDs are used -----------------------------------------------------------------------------------


class _Choice:
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
        every: dict[int, int] = {}
        for lhs, rhs in fds:
            x, a = self.mask(lhs), self._position[rhs]
            self.arrows[x, a] = (lhs, rhs)
            every[x] = every.get(x, 0) | 1 << a
        known = [self.mask(key) for key in keys]
        for key in known:
            every[key] = every.get(key, 0) | (self.full & ~key)
        every = {x: every[x] for x in sorted(every, key=_in_order)}  # whatever the order they came in
        self.closed = _closures(every, self.n)
        # Facts hold with NULL as a value, whatever the rule of the table.
        self.facts = _FdSet({x: rhs for x, rhs in every.items() if not x & self.silent}, self.n)
        self.harmful = {x: r for x, r in self._by_lhs().items() if self.closed[x] != self.full}
        self.scores = scores
        self._select(min_score, max_lhs, use_all)

    def _by_lhs(self) -> dict[int, int]:
        groups: dict[int, int] = {}
        for x, a in self.arrows:
            groups[x] = groups.get(x, 0) | 1 << a
        return groups

    def mask(self, names: Iterable[str]) -> int:
        mask = 0
        for name in names:
            mask |= 1 << self._position[name]
        return mask

    def names(self, mask: int) -> tuple[str, ...]:
        return tuple(self.columns[i] for i in _bits(mask))

    def score(self, x: int, a: int) -> float | None:
        return None if self.scores is None else self.scores.get(self.arrows[x, a])

    def _select(self, min_score: float, max_lhs: int, use_all: bool) -> None:
        """`chosen`: the FDs to use, by left-hand side; `aside`: the others, with why; `reach`: what a
        left-hand side determines by chosen ones; `used`: chosen FDs and those that follow, best first."""
        self.chosen: dict[int, int] = {}
        self.best: dict[int, float] = {}
        refused: dict[tuple[int, int], tuple[Why, str]] = {}
        for x, rhs in self.harmful.items():
            for a in _bits(rhs):
                score = self.score(x, a)
                reason = self._refusal(x, score, min_score, max_lhs, use_all)
                if reason is not None:
                    refused[x, a] = reason
                    continue
                self.chosen[x] = self.chosen.get(x, 0) | 1 << a
                if score is not None:
                    self.best[x] = max(self.best.get(x, score), score)
        by_chosen = _FdSet(self.chosen, self.n)
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

    def order(self, x: int) -> tuple[bool, float, int, int, list[int]]:
        """Best left-hand sides first: chosen, of a good score, narrow, with much to say."""
        says = self.reach.get(x, x) & ~x
        return x not in self.chosen, -self.best.get(x, 0.0), x.bit_count(), -says.bit_count(), list(_bits(x))

    # --- Keys ---

    def is_key_of(self, x: int, part: int) -> bool:
        """Whether the columns determine all of the part."""
        return not part & ~(self.closed[x] if x in self.closed else self.facts.closure(x))

    def is_minimal_key_of(self, x: int, part: int) -> bool:
        if x & ~part or not self.is_key_of(x, part):
            return False
        return not any(self.is_key_of(x & ~(1 << i), part) for i in _bits(x))

    def keys_of(self, part: int) -> list[int]:
        """The minimal keys of a part, best first, at most MAX_KEYS: those that are left-hand sides, narrow
        ones first, then what these lead to (Lucchesi and Osborn 1978)."""
        inside = {x: r & part for x, r in self.facts.groups.items() if not x & ~part and r & part}
        facts = _FdSet(inside, self.n)
        found: list[int] = []

        def add(superkey: int) -> None:
            if any(not key & ~superkey for key in found):
                return
            # NULL makes a poor key, and designers put keys first: what may go goes from the end.
            for i in sorted(_bits(superkey), key=lambda i: (not self.nullable >> i & 1, -i)):
                if not part & ~facts.closure(superkey & ~(1 << i)):
                    superkey &= ~(1 << i)
            found.append(superkey)

        for x in sorted((x for x in inside if self.is_key_of(x, part)), key=_in_order):
            if len(found) == MAX_KEYS:
                break
            add(x)
        if not found:
            add(part)
        for key in found:  # which grows meanwhile
            for a in _bits(key):
                for x in self._exchanges(facts, found, key, a):
                    if len(found) == MAX_KEYS:
                        break
                    add(x | key & ~(1 << a))
        return sorted(found, key=lambda key: (bool(key & self.nullable), *_in_order(key)))

    def _exchanges(self, facts: _FdSet, found: list[int], key: int, a: int) -> list[int]:
        """The left-hand sides that, put in the place of column `a`, give a superkey without a key found."""
        word, bit = divmod(a, 64)
        [which] = np.nonzero(facts.rhs[word] >> np.uint64(bit) & np.uint64(1))
        lhs = facts.lhs[:, which]
        for other in found:
            if not which.size:
                break
            # Of the key that was found, what the exchange would have to bring in.
            lacking = other & ~(key & ~(1 << a))
            new = np.zeros(len(which), dtype=bool)
            for k in range(facts.n_words):
                part = np.uint64(lacking >> 64 * k & _WORD)
                new |= lhs[k] & part != part
            which, lhs = which[new], lhs[:, new]
        return [facts.masks[i] for i in which]


# --- The decomposition ------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Piece:
    """A part in the making: `origin` is the left-hand side that it was made for, None for the main one;
    FDs of a rank below `settled` are known to do no harm in it."""

    mask: int
    name: str
    origin: int | None
    settled: int = 0
    keys: list[int] = field(default_factory=list)


class _Run:
    """One run of `normalise`: what is decided once and needed all over."""

    def __init__(
        self,
        table: str,
        form: Form,
        choice: _Choice,
        redundant: Mapping[Arrow, int],
        has_duplicates: bool,
        bound: int | None,
        max_lhs: int,
        use_all: bool,
        taken: Collection[str],
    ) -> None:
        self.table, self.form, self.choice = table, form, choice
        self.redundant, self.has_duplicates, self.bound = redundant, has_duplicates, bound
        self.max_lhs, self.use_all = max_lhs, use_all
        self.taken = {name.casefold() for name in (table, *taken)}
        self.steps: list[str] = []

    def decomposition(self) -> Decomposition:
        c = self.choice
        keys = c.keys_of(c.full)
        n_from_keys = len(c.arrows) - sum(rhs.bit_count() for rhs in c.harmful.values())
        self._tell_start(keys, n_from_keys)
        told = len(self.steps)
        pieces = self._bcnf() if self.form == "bcnf" else self._third(keys[0])
        if len(pieces) == 1:  # nothing was split, so there is nothing to tell of
            pieces[0].name = self.table
            del self.steps[told:]
        for piece in pieces:
            piece.keys = c.keys_of(piece.mask)
            x = piece.origin
            if x is not None and c.is_minimal_key_of(x, piece.mask):  # what led to the table is its key
                piece.keys = [x, *(key for key in piece.keys if key != x)]
        lost, lost_keys, inside = self._guarded(pieces, keys)
        self._tell_end(pieces, lost, lost_keys, inside)
        return Decomposition(
            table=self.table,
            form=self.form,
            parts=tuple(self._part(i, pieces) for i in range(len(pieces))),
            lost=tuple(self._fd(x, a) for x, a in lost),
            lost_keys=tuple(map(c.names, lost_keys)),
            inside=tuple(self._fd(x, a) for x, a in inside),
            set_aside=self._set_aside(),
            steps=tuple(self.steps),
            n_fds=len(c.arrows),
            n_used=len(c.arrows) - n_from_keys - len(c.aside),
            n_from_keys=n_from_keys,
            has_duplicates=self.has_duplicates,
            bound=self.bound,
        )

    # --- BCNF ---

    def _bcnf(self) -> list[_Piece]:
        """Split by the best FD that is no key's, until there is none.

        What does no harm in a table does none in a part of it: a left-hand side stays a key, or stays
        outside. So each piece goes on with the FD where the one that it was cut from stood.
        """
        used = list(self.choice.used)
        pieces = [_Piece(self.choice.full, self._name("main"), None)]
        for piece in pieces:  # which grows meanwhile
            for rank in range(piece.settled, len(used)):
                if (new := self._cut(piece, used[rank])) is not None:
                    new.settled = rank
                    pieces.append(new)
        return self._without_contained(pieces)

    def _cut(self, piece: _Piece, x: int) -> _Piece | None:
        c = self.choice
        if x & ~piece.mask or not c.used[x] & piece.mask or c.is_key_of(x, piece.mask):
            return None
        moved = c.reach[x] & ~x & piece.mask
        new = _Piece(x | moved, self._name(*c.names(x)), x)
        piece.mask &= ~moved
        self._tell_cut(piece, new, moved)
        return new

    def _tell_cut(self, piece: _Piece, new: _Piece, moved: int) -> None:
        c = self.choice
        x = new.origin or 0
        score = f" (score {c.best[x]:.2f})" if x in c.best else ""
        follows = "" if x in c.chosen else " follows from FDs used, and"
        why = (
            f"{self._listed(x)} is no key of {piece.name}, so what it determines is repeated there"
            if x
            else f"each column of {new.name} has one value, repeated in all rows"
        )
        left = f"; {piece.name} keeps {self._listed(x)} to refer to it" if x else ""
        self.steps.append(
            f"{self._arrow(x, moved)}{score}:{follows} {why}. "
            f"{new.name} takes {self._listed(new.mask)}{left}."
        )

    # --- 3NF ---

    def _third(self, key: int) -> list[_Piece]:
        """One part per left-hand side of a canonical cover of the FDs used and the key; a part for the key
        if none has one.

        The FDs are minimal in the data, so no column of a left-hand side can go; what remains is to leave
        out FDs that follow from others. Worst first, so that of equivalent left-hand sides the best one
        keeps what they determine.
        """
        c = self.choice
        groups = {x: c.chosen[x] for x in c.used if x in c.chosen}
        if self.use_all:
            rest = {x: r for x, r in c.facts.groups.items() if x not in c.harmful}
            groups |= {x: rest[x] for x in sorted(rest, key=lambda x: (x != key, *_in_order(x)))}
        elif key != c.full:
            groups[key] = c.full & ~key
        cover = _FdSet(groups, c.n).without_redundant(reversed(groups))
        by_cover = _FdSet(cover, c.n)
        n_kept = sum(rhs.bit_count() for rhs in cover.values())
        n_given = sum(rhs.bit_count() for rhs in groups.values())
        if n_given > n_kept:
            self.steps.append(
                f"Of {_many(n_given)} (those used, and those from keys) {n_kept:,} are needed: the others "
                "follow from them."
            )
        pieces: list[_Piece] = []
        for x, rhs in cover.items():
            name = self._name("main") if x == key else self._name(*c.names(x))
            pieces.append(_Piece(x | rhs, name, x))
            self.steps.append(f"{self._arrow(x, rhs)}: {pieces[-1].name} takes {self._listed(x | rhs)}.")
        if not any(by_cover.closure(piece.mask) == c.full for piece in pieces):
            pieces.append(_Piece(key, self._name("main"), None))
            self.steps.append(
                f"No table has a key of {self.table}, without which the rows could not be put together "
                f"again: {pieces[-1].name} takes the key {self._listed(key)}."
            )
        pieces = self._without_contained(pieces)
        main = max(pieces, key=lambda p: (not key & ~p.mask, by_cover.closure(p.mask) == c.full))
        return [main, *(p for p in pieces if p is not main)]

    def _without_contained(self, pieces: list[_Piece]) -> list[_Piece]:
        kept: list[_Piece] = []
        for i, piece in enumerate(pieces):
            around = [
                other
                for j, other in enumerate(pieces)
                if not piece.mask & ~other.mask and (piece.mask != other.mask or j < i)
            ]
            if around:
                self.steps.append(f"{piece.name} lies inside of {around[0].name}, and is left out.")
            else:
                kept.append(piece)
        return kept

    # --- What holds it together ---

    def _references(self, here: int, pieces: list[_Piece]) -> tuple[Reference, ...]:
        """To each part of which the piece has a key.

        All parts are projections of one table: they have the same values of a key. Where two parts have a
        key in common, the earlier one refers to the later one; so there is no circle, as otherwise a
        reference leads to what determines less.
        """
        c, part = self.choice, pieces[here].mask
        outside = ~part
        found = []
        for there, other in enumerate(pieces):
            for key in other.keys:
                if not key & outside and key and here != there:
                    if here < there or not c.is_key_of(key, part):
                        found.append(Reference(c.names(key), other.name))
                    break
        return tuple(found)

    def _guarded(
        self, pieces: list[_Piece], keys: list[int]
    ) -> tuple[list[tuple[int, int]], list[int], list[tuple[int, int]]]:
        """The FDs used and the keys that are lost, and the FDs used that a part has beside its keys."""
        c = self.choice
        guards: dict[int, int] = {}
        inside = []
        for piece in pieces:
            for x, rhs in c.facts.groups.items():
                if x & ~piece.mask or not rhs & piece.mask:
                    continue
                if c.is_key_of(x, piece.mask):
                    guards[x] = guards.get(x, 0) | piece.mask & ~x
                elif there := c.used.get(x, 0) & piece.mask:
                    guards[x] = guards.get(x, 0) | there
                    inside += [(x, a) for a in _bits(there)]
            for key in piece.keys:
                guards[key] = guards.get(key, 0) | piece.mask & ~key
        guarded = _FdSet(guards, c.n)
        lost = []
        for x, rhs in c.used.items():
            lost += [(x, a) for a in _bits(rhs & ~guarded.closure(x))]
        narrow = (key for key in keys if self.use_all or key.bit_count() <= self.max_lhs)
        return lost, [key for key in narrow if guarded.closure(key) != c.full], inside

    def _part(self, here: int, pieces: list[_Piece]) -> Part:
        c, piece = self.choice, pieces[here]
        x = piece.origin
        led = [] if x is None else list(_bits(c.used.get(x, 0) & piece.mask))
        removed = None
        if led and x is not None:
            # The rows of a left-hand side but one of each value: the same number for all that it determines.
            known = [r for a in led if (r := self.redundant.get(c.arrows[x, a])) is not None]
            # A column that the main table keeps is repeated there as before.
            gone = piece.mask & ~x & ~pieces[0].mask
            removed = max(known) * gone.bit_count() if known else None
        return Part(
            name=piece.name,
            columns=c.names(piece.mask),
            primary_key=c.names(piece.keys[0]),
            other_keys=tuple(map(c.names, piece.keys[1:])),
            more_keys=len(piece.keys) >= MAX_KEYS,
            references=self._references(here, pieces),
            fds=tuple(self._fd(x, a) for a in led if x is not None),
            score=c.best.get(x) if led and x is not None else None,
            removed=removed,
            reason=self._reason(piece, pieces, removed),
        )

    def _reason(self, piece: _Piece, pieces: list[_Piece], removed: int | None) -> str:
        c = self.choice
        x = piece.origin
        if len(pieces) == 1:
            return "the table as it is"
        if x is None or x & ~piece.mask:
            return "what the other tables leave, and what refers to them"
        if c.is_key_of(x, c.full):
            return f"what depends on the key {self._listed(x)}"
        saved = f": {removed:,} repeated values less" if removed else ""
        if not x:
            return f"columns of one value{saved}"
        return f"what {self._listed(x)} determines, once for each of its values{saved}"

    # --- Words ---

    def _tell_start(self, keys: list[int], n_from_keys: int) -> None:
        c = self.choice
        if self.has_duplicates:
            self.steps.append(
                f"{self.table} has rows that are equal in all columns, so it has no key. The proposed tables "
                "hold each row once; how often it was there is lost."
            )
        if not keys[0]:
            self.steps.append(f"{self.table} has at most one row: nothing is repeated.")
        else:
            n_more = f"{len(keys) - 1:,}{'' if len(keys) < MAX_KEYS else ' or more'}"
            more = f" and {n_more} other{'' if len(keys) == 2 else 's'}"
            others = more if len(keys) > 1 else ""
            rows = f"The different rows of {self.table} have" if self.has_duplicates else f"{self.table} has"
            self.steps.append(f"{rows} the key {self._listed(keys[0])}{others}.")
        n_fds = len(c.arrows)
        n_used = n_fds - n_from_keys - len(c.aside)
        self.steps.append(
            f"Of {_many(n_fds)}, {n_from_keys:,} follow{'s' if n_from_keys == 1 else ''} from keys and "
            f"{'does' if n_from_keys == 1 else 'do'} no harm, {n_used:,} "
            f"{'is' if n_used == 1 else 'are'} used, {len(c.aside):,} set aside."
        )
        if self.bound is not None:
            self.steps.append(f"FDs with more than {self.bound} columns on the left are not known.")

    def _tell_end(
        self,
        pieces: list[_Piece],
        lost: list[tuple[int, int]],
        lost_keys: list[int],
        inside: list[tuple[int, int]],
    ) -> None:
        c = self.choice
        form = self.form.upper()
        whole = not c.aside and self.bound is None
        subject = f"{self.table} is" if len(pieces) == 1 else f"The {len(pieces)} tables are"
        respect = "" if whole else ", with respect to the FDs used"
        self.steps.append(f"{subject} in {form}{respect}: nothing {'more ' * (len(pieces) > 1)}to split.")
        if inside:
            arrows = listing([self._fd(x, a).arrow for x, a in inside], LISTED)
            self.steps.append(
                f"Not in BCNF: {arrows} {'is' if len(inside) == 1 else 'are'} inside of a table without "
                "following from its keys; the right-hand side is a part of a key."
            )
        if lost:
            self.steps.append(
                f"No table guards {listing([self._fd(x, a).arrow for x, a in lost], LISTED)} any more: "
                "only a join shows whether it holds."
            )
        if lost_keys:
            told = listing([f"[{', '.join(c.names(key))}]" for key in lost_keys], LISTED)
            self.steps.append(f"No table guards the key {told} of {self.table} any more.")
        if len(pieces) == 1:
            return
        if not lost and not lost_keys:
            those = "" if self.use_all else f" of at most {self.max_lhs} columns"
            self.steps.append(
                f"Nothing is lost: the FDs used, and the keys of {self.table}{those}, follow from what the "
                "tables guard."
            )
        rows = "the different rows" if self.has_duplicates else "the rows"
        self.steps.append(f"Joined on their common columns, the tables give back {rows} of {self.table}.")

    def _set_aside(self) -> tuple[SetAside, ...]:
        """Best first: what a user might want to have used after all."""
        c = self.choice
        told = [SetAside(self._fd(x, a), c.score(x, a), *why) for (x, a), why in c.aside.items()]
        place = {name: i for i, name in enumerate(c.columns)}

        def order(aside: SetAside) -> tuple[float, int, list[int], int]:
            score = aside.score if aside.score is not None and aside.score >= 0 else -1.0
            return -score, len(aside.fd.lhs), [place[n] for n in aside.fd.lhs], place[aside.fd.rhs]

        return tuple(sorted(told, key=order))

    def _fd(self, x: int, a: int) -> Fd:
        return Fd(self.table, self.choice.names(x), self.choice.columns[a])

    def _listed(self, mask: int) -> str:
        return f"[{listing(self.choice.names(mask), LISTED)}]"

    def _arrow(self, x: int, rhs: int) -> str:
        names = self.choice.names
        return f"{listing(names(x), LISTED) or '[]'} -> {listing(names(rhs), LISTED)}"

    def _name(self, *words: str) -> str:
        """A new name, such as `orders_zip`: of a few columns, short, and nobody else's."""
        tail = "_".join(words[:NAMED_COLUMNS]) if words else "constants"
        plain = re.sub(r"\W+", "_", tail).strip("_") or "part"
        base = re.sub(r"\W+", "_", self.table).strip("_") or "table"
        number = 1
        while True:
            end = f"_{number}" if number > 1 else ""
            name = _cut_to(f"{_cut_to(base, MAX_NAME // 2)}_{plain}", MAX_NAME - len(end)) + end
            if name.casefold() not in self.taken:
                self.taken.add(name.casefold())
                return name
            number += 1


def _many(n: int) -> str:
    return f"{n:,} FD{'' if n == 1 else 's'}"


def _cut_to(name: str, n_bytes: int) -> str:
    """As many whole characters as fit."""
    return name.encode("utf-8")[:n_bytes].decode("utf-8", "ignore").rstrip("_")

"""Normal forms: tables to keep instead of one, so that what a dependency says is stored once.

Given are the minimal FDs of a table, all of them (or all up to a bound). That makes two things easy:

- *Projection.* The minimal FDs of the table cut down to some columns are those that lie inside these
  columns: whether X -> A holds is a matter of the columns X and A alone, and the subsets of X lie inside too.
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
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from holdfast.core.words.dependency import Fd
from holdfast.core.words.predicate import numbers_of
from holdfast.errors import listing
from holdfast.functional.normal_forms.choice import MAX_KEYS, Choice, FdSet, in_order
from holdfast.functional.normal_forms.proposal import (
    FORMS,
    Arrow,
    Decomposition,
    Form,
    Part,
    Reference,
    SetAside,
)

MIN_SCORE = 0.1
MAX_LHS = 3
# PostgreSQL takes 63 bytes for a name.
MAX_NAME = 60
NAMED_COLUMNS = 3
LISTED = 8


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
    choice = Choice(columns, fds, scores, keys, nullable, nulls, min_score, max_lhs, use_all)
    run = _Run(table, form, choice, redundant or {}, has_duplicates, bound, max_lhs, use_all, taken)
    return run.decomposition()


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
        choice: Choice,
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
        n_steps = len(self.steps)
        pieces = self._bcnf() if self.form == "bcnf" else self._third(keys[0])
        if len(pieces) == 1:  # nothing was split, so there is nothing to tell of
            pieces[0].name = self.table
            del self.steps[n_steps:]
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
        reference = f"; {piece.name} keeps {self._listed(x)} to refer to it" if x else ""
        self.steps.append(
            f"{self._arrow(x, moved)}{score}:{follows} {why}. "
            f"{new.name} takes {self._listed(new.mask)}{reference}."
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
            from_keys = {x: r for x, r in c.facts.groups.items() if x not in c.harmful}
            groups |= {x: from_keys[x] for x in sorted(from_keys, key=lambda x: (x != key, *in_order(x)))}
        elif key != c.full:
            groups[key] = c.full & ~key
        cover = FdSet(groups, c.n).without_redundant(reversed(groups))
        by_cover = FdSet(cover, c.n)
        n_needed = sum(rhs.bit_count() for rhs in cover.values())
        n_all = sum(rhs.bit_count() for rhs in groups.values())
        if n_all > n_needed:
            self.steps.append(
                f"Of {_many(n_all)} (those used, and those from keys) {n_needed:,} are needed: the others "
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
        outer: list[_Piece] = []
        for i, piece in enumerate(pieces):
            around = [
                other
                for j, other in enumerate(pieces)
                if not piece.mask & ~other.mask and (piece.mask != other.mask or j < i)
            ]
            if around:
                self.steps.append(f"{piece.name} lies inside of {around[0].name}, and is left out.")
            else:
                outer.append(piece)
        return outer

    # --- What holds it together ---

    def _references(self, here: int, pieces: list[_Piece]) -> tuple[Reference, ...]:
        """To each part of which the piece has a key.

        All parts are projections of one table: they have the same values of a key. Where two parts have a
        key in common, the earlier one refers to the later one; so there is no circle, as otherwise a
        reference leads to what determines less.
        """
        c, part = self.choice, pieces[here].mask
        outside = ~part
        references = []
        for there, other in enumerate(pieces):
            for key in other.keys:
                if not key & outside and key and here != there:
                    if here < there or not c.is_key_of(key, part):
                        references.append(Reference(c.names(key), other.name))
                    break
        return tuple(references)

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
                    inside += [(x, a) for a in numbers_of(there)]
            for key in piece.keys:
                guards[key] = guards.get(key, 0) | piece.mask & ~key
        guarded = FdSet(guards, c.n)
        lost = []
        for x, rhs in c.used.items():
            lost += [(x, a) for a in numbers_of(rhs & ~guarded.closure(x))]
        narrow = (key for key in keys if self.use_all or key.bit_count() <= self.max_lhs)
        return lost, [key for key in narrow if guarded.closure(key) != c.full], inside

    def _part(self, here: int, pieces: list[_Piece]) -> Part:
        c, piece = self.choice, pieces[here]
        x = piece.origin
        led = () if x is None else numbers_of(c.used.get(x, 0) & piece.mask)
        removed = None
        if led and x is not None:
            # The rows of a left-hand side but one of each value: the same number for all that it determines.
            counts = [r for a in led if (r := self.redundant.get(c.arrows[x, a])) is not None]
            # A column that the main table keeps is repeated there as before.
            gone = piece.mask & ~x & ~pieces[0].mask
            removed = max(counts) * gone.bit_count() if counts else None
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
            more = f" and {n_more} other{'' if len(keys) == 2 else 's'}" if len(keys) > 1 else ""
            rows = f"The different rows of {self.table} have" if self.has_duplicates else f"{self.table} has"
            self.steps.append(f"{rows} the key {self._listed(keys[0])}{more}.")
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
            arrows = listing([self._fd(x, a).name for x, a in inside], LISTED)
            self.steps.append(
                f"Not in BCNF: {arrows} {'is' if len(inside) == 1 else 'are'} inside of a table without "
                "following from its keys; the right-hand side is a part of a key."
            )
        if lost:
            self.steps.append(
                f"No table guards {listing([self._fd(x, a).name for x, a in lost], LISTED)} any more: "
                "only a join shows whether it holds."
            )
        if lost_keys:
            keys_text = listing([f"[{', '.join(c.names(key))}]" for key in lost_keys], LISTED)
            self.steps.append(f"No table guards the key {keys_text} of {self.table} any more.")
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
        asides = [SetAside(self._fd(x, a), c.score(x, a), *why) for (x, a), why in c.aside.items()]
        place = {name: i for i, name in enumerate(c.columns)}

        def order(aside: SetAside) -> tuple[float, int, list[int], int]:
            score = aside.score if aside.score is not None and aside.score >= 0 else -1.0
            return -score, len(aside.fd.lhs), [place[n] for n in aside.fd.lhs], place[aside.fd.rhs]

        return tuple(sorted(asides, key=order))

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

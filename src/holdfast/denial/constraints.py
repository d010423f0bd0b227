"""What a commit says of a table's denial constraints: how they are kept, where they lie, which are pinned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.table_state import TableState
from holdfast.core.store.bundle import open_bundle
from holdfast.core.store.files import FileRef
from holdfast.core.store.root import Root
from holdfast.core.words.change import Pin, WitnessRow
from holdfast.core.words.codec import Coded
from holdfast.core.words.column_sets import columns_of, words_for
from holdfast.core.words.condition import Condition, read_condition
from holdfast.core.words.condition import columns_of as columns_named
from holdfast.core.words.dependency import Fd
from holdfast.core.words.predicate import Dc, Operator, Predicate, PredicateSpace
from holdfast.core.words.reliance import USUAL, Terms
from holdfast.core.words.schema import Nulls

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class KeptAccess(Coded):
    """How constraints are looked for: an index answers `source`, what it gives is compared on the rest.

    It serves all constraints that have the predicates.
    """

    kind: str  # "equality", "order" or "column"
    source: tuple[int, ...]  # of the predicates
    predicates: tuple[int, ...]  # numbers in the space, ascending
    orders: tuple[tuple[int, int, bool], ...] = ()  # order indexes, see `table_state.OrderKey`


@dataclass(frozen=True, slots=True)
class DcLimits(Coded):
    """What the search for the denial constraints of a table may cost, then and at every batch."""

    seconds: float = 60.0
    max_dcs: int = 1_000_000

    def __str__(self) -> str:
        """
        >>> str(DcLimits())
        '60 s or 1,000,000 constraints'
        """
        return f"{self.seconds:g} s or {self.max_dcs:,} constraints"


# What suits somebody who waits at a terminal.
DEFAULT_LIMITS = DcLimits()


@dataclass(frozen=True, slots=True)
class DcRef(Coded):
    """How the denial constraints of a table are kept, and where they lie."""

    evidence_kind: str  # "counted" or "witnessed"
    space: PredicateSpace  # decided when the table was tracked, and fixed
    max_predicates: int  # 0: constraints of any size
    max_error: float  # 0: only those that hold exactly
    operators: tuple[Operator, ...]  # () for all; those that constraints are listed with
    chosen: bool  # whether only some columns take part
    cover: FileRef
    evidence: FileRef
    approximate: FileRef | None = None  # the minimal ones within max_error
    deltas: tuple[FileRef, ...] = ()  # what batches have changed of the evidence since, oldest first
    accesses: tuple[KeptAccess, ...] = ()  # of witnessed evidence
    chosen_for: tuple[int, int] = (0, 0)  # rows, and constraints to scan for, when accesses were chosen
    within_columns: bool = False  # whether columns are compared with themselves only, as was asked for
    limits: DcLimits = DEFAULT_LIMITS
    stopped: bool = False  # max_predicates is what the limits left
    support: FileRef | None = None  # evidence that the cover is repaired on; None: all of it

    @property
    def n_words(self) -> int:
        return words_for(self.space.n_predicates)


@dataclass(frozen=True, slots=True)
class PinnedRule(Coded):
    """A rule that somebody relies on: how many ordered pairs of rows violate it, and a few of them."""

    predicates: tuple[Predicate, ...]
    n_violations: int
    pairs: tuple[tuple[int, int], ...]  # row ids
    terms: Terms = USUAL
    arrow: bool = False  # it was written as a functional dependency
    nulls: Nulls = "equal"  # "distinct": it is a functional dependency of a table where they are

    def pin(self, table: str, n_rows: int) -> Pin:
        n, total = self.n_violations, ordered_pairs(n_rows)
        rule: Dc | Fd = Dc(table, self.predicates, n / max(1, total))
        if self.nulls == "distinct":
            lhs = tuple(p.left for p in self.predicates if p.op == "=")
            [rhs] = (p.left for p in self.predicates if p.op == "!=")
            rule = Fd(table, lhs, rhs, rule.error)
        holds = self.terms.allows(n, total)
        pin = Pin(table, rule.columns, holds, rule=rule, n_violations=n, terms=self.terms, error=rule.error)
        return replace(pin, arrow=self.arrow)


@dataclass(frozen=True, slots=True)
class PinnedCheck(Coded):
    """A condition that somebody relies on: how many rows violate it, and a few of them."""

    formula: str
    n_violations: int
    row_ids: tuple[int, ...]
    terms: Terms = USUAL

    def pin(self, state: TableState, n_rows: int, witnesses: Sequence[WitnessRow] = ()) -> Pin:
        n, columns = self.n_violations, columns_named(read_condition(self.formula, state.schema))
        condition = Condition(state.table, self.formula, columns, n / max(1, n_rows), n)
        return Pin(
            state.table,
            columns,
            self.terms.allows(n, n_rows),
            condition=condition,
            n_violations=n,
            witnesses=tuple((row,) for row in witnesses),
            terms=self.terms,
            error=condition.error,
        )


def ordered_pairs(n_rows: int) -> int:
    """The ordered pairs of different rows.

    >>> ordered_pairs(0), ordered_pairs(1), ordered_pairs(4)
    (0, 0, 12)
    """
    return n_rows * (n_rows - 1)


def dc_ref(state: TableState) -> DcRef | None:
    """How the denial constraints of a table are kept; None where they are not tracked."""
    return state.part("dcs", DcRef.from_dict)


def row_file(state: TableState) -> FileRef | None:
    """Where the outcomes of comparisons within rows lie; None where row rules are not tracked."""
    return state.part("row_rules", FileRef.from_dict)


def pinned_rules(state: TableState) -> tuple[PinnedRule, ...]:
    """The rules about pairs of rows that somebody relies on."""
    return state.part("rules", lambda rules: tuple(map(PinnedRule.from_dict, rules))) or ()


def dcs_of(table: str, space: PredicateSpace, masks: U64) -> list[Dc]:
    """The constraints of some masks, in their order."""
    predicates = space.predicates
    return [Dc(table, tuple(predicates[i] for i in numbers)) for numbers in columns_of(masks)]


def read_dcs(root: Root, ref: DcRef) -> U64:
    """The minimal denial constraints as masks of predicates, uint64[n, n_words]."""
    masks: U64 = open_bundle(root, ref.cover, "dcs").array("masks").reshape(-1, ref.n_words)
    return masks


def read_near_dcs(root: Root, ref: DcRef) -> tuple[U64, I64]:
    """(masks, violations) of the minimal constraints within the error that is kept."""
    assert ref.approximate is not None
    bundle = open_bundle(root, ref.approximate, "nearly")
    return bundle.array("masks").reshape(-1, ref.n_words), bundle.array("violations")


def pinned_checks(state: TableState) -> tuple[PinnedCheck, ...]:
    """The conditions that somebody relies on."""
    return state.part("checks", lambda checks: tuple(map(PinnedCheck.from_dict, checks))) or ()

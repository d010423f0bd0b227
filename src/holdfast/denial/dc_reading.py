"""Reading denial constraints and row rules: forms, ranking, explanations, indexes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.table_state import TableState
from holdfast.core.store.files import FileRef
from holdfast.core.words.change import Pair, WitnessRow
from holdfast.core.words.predicate import Dc, Predicate, PredicateSpace, is_trivial, same_rule, sentence
from holdfast.core.words.row_rule import RowRule, parse_row_rule
from holdfast.denial.constraints import DcRef, read_dcs
from holdfast.errors import UsageError
from holdfast.functional.fd_advice import FdAdviser

if TYPE_CHECKING:
    from holdfast.core.cover.stability import Stability
    from holdfast.denial.access.selection import Selection
    from holdfast.denial.dc_ranking import Ranking

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

EXCEPTIONS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class DcList:
    """Denial constraints in some form."""

    dcs: list[Dc]
    complete: bool  # not cut at a limit
    n_dropped: int = 0  # those that the others imply


@dataclass(frozen=True, slots=True)
class DcExplanation:
    """Whether a rule about two rows holds, and why."""

    table: str
    dc: Dc  # with its error
    version: int
    holds: bool
    n_violations: int  # ordered pairs of rows
    pairs: tuple[Pair, ...]  # a few of them
    minimal: bool  # it is one of those that are listed
    implied_by: tuple[Dc, ...]  # those listed that say as much or more
    since: int | None  # the first version of the spell in which it holds, or does not; None: not known
    pinned: bool

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "rule": self.dc.to_dict(),
            "formula": self.dc.formula,
            "sentence": sentence(self.dc),
            "version": self.version,
            "holds": self.holds,
            "n_violations": self.n_violations,
            "error": self.dc.error,
            "pairs": [[row.to_dict() for row in pair] for pair in self.pairs],
            "minimal": self.minimal,
            "implied_by": [d.to_dict() for d in self.implied_by],
            "since": self.since,
            "pinned": self.pinned,
        }


@dataclass(frozen=True, slots=True)
class RowExplanation:
    """Whether a rule about each row alone holds, and the rows that are against it."""

    rule: RowRule  # with its error and number of exceptions
    version: int
    holds: bool
    exceptions: tuple[WitnessRow, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.rule.table,
            "rule": self.rule.to_dict(),
            "formula": self.rule.formula,
            "version": self.version,
            "holds": self.holds,
            "exceptions": [row.to_dict() for row in self.exceptions],
        }


@dataclass(frozen=True, slots=True)
class IndexReport:
    """How batches are looked up for the constraints of a table."""

    table: str
    evidence_kind: str
    selection: Selection | None  # None: counted evidence compares a batch with all rows, and needs none

    def to_dict(self) -> dict[str, Any]:
        told = {} if self.selection is None else self.selection.to_dict()
        return {"table": self.table, "evidence": self.evidence_kind, **told}


class DcReader(FdAdviser):
    """The part of a workspace that tells about denial constraints and row rules."""

    def dc_ref(self, table: str, at: int | None = None) -> DcRef | None:
        """How the denial constraints of a table are kept; None where they are not."""
        return self._current(table, at)[1].dcs

    def predicate_space(self, table: str) -> PredicateSpace:
        """The predicates that the constraints of a table are made of: fixed when it was tracked."""
        return self._needs_dcs(self._current(table)[1]).space

    def list_dcs(
        self,
        table: str,
        at: int | None = None,
        *,
        concise: bool = False,
        set_minimal: bool = False,
        limit: int | None = None,
    ) -> DcList:
        """The denial constraints of a table in other forms than the most general one.

        `concise` leaves out what the others together imply; `set_minimal` lists every set of predicates that
        holds and of which none can be dropped, at most `limit` of them.
        """
        from holdfast.denial import forms as dc_forms
        from holdfast.denial.dc_list import listed_masks
        from holdfast.denial.dc_state import dcs_of

        _, state = self._current(table, at)
        ref = self._needs_dcs(state)
        masks, complete = listed_masks(self.root, ref), True
        if set_minimal:
            if ref.operators:
                raise UsageError(
                    f"table {table!r} is tracked with the operators {' '.join(ref.operators)}; set-minimal "
                    "constraints are known for all operators only."
                )
            found = dc_forms.set_minimal(masks, ref.space, limit, ref.max_predicates)
            masks, complete = found.masks, found.complete
        n_dropped = 0
        if concise:
            kept = dc_forms.concise(masks, ref.space)
            n_dropped, masks = len(masks) - len(kept), masks[kept]
        return DcList(dcs_of(table, ref.space, masks), complete, n_dropped)

    def rank_dcs(self, table: str, top: int | None = None) -> Ranking:
        """The denial constraints of a table that tell most: short, well supported, long held."""
        from holdfast.core.evidence.counted_files import load_counted
        from holdfast.core.store.bundle import open_bundle
        from holdfast.denial.dc_list import listed_masks
        from holdfast.denial.dc_ranking import rank

        base, state = self._current(table)
        ref = self._needs_dcs(state)
        masks = listed_masks(self.root, ref)
        if ref.evidence_kind == "counted":
            evidence = load_counted(
                self.root, "comparisons", ref.evidence, ref.deltas, ref.space.n_predicates
            )
            told, counts = evidence.masks, evidence.counts
        else:
            told = open_bundle(self.root, ref.evidence, "comparisons").array("masks").reshape(-1, ref.n_words)
            counts = None
        history = self._stability_of(state, masks, base)
        return rank(masks, ref.space, table, told, counts, state.n_rows, history=history, top=top)

    def explain_dc(self, table: str, text: str) -> DcExplanation:
        """Whether a rule about two rows holds now, since when, and the pairs of rows against it."""
        from holdfast.denial import written_rules
        from holdfast.denial.dc_state import dcs_of, in_operators

        base, state = self._current(table)
        predicates = written_rules.read_rule(text, state.schema, table, base)
        pinned = any(same_rule(r.predicates, predicates) for r in state.rules)
        ref = state.dcs
        within = ref is not None and all(p in ref.space for p in predicates)
        inside = (
            self._generals(ref, predicates) if ref is not None and within else np.empty((0, 1), np.uint64)
        )
        trivial = is_trivial(predicates)
        n_violations = 0
        pairs: tuple[Pair, ...] = ()
        if not trivial and not len(inside):
            with self._opened(state) as relation:
                found = written_rules.pinned(relation, predicates)
                n_violations = found.n_violations
                pairs = written_rules.as_pins(table, [found], relation)[0].witnesses
        holds = n_violations == 0
        dc = Dc(table, predicates, n_violations / max(1, state.n_rows * (state.n_rows - 1)))
        implied_by: tuple[Dc, ...] = ()
        since = None
        if ref is not None and len(inside):
            listed = in_operators(self._dc_cover(ref), ref.space, ref.operators)
            implied_by = tuple(dcs_of(table, ref.space, _inside(ref, listed, predicates)))
        # A cover with a bound says nothing of longer rules that it does not imply.
        told = not (ref is not None and 0 < ref.max_predicates < _n_groups(predicates))
        if within and told and not trivial and (len(inside) or not holds):
            since = self._since(state, predicates, base, holds=holds)
        minimal = any(same_rule(d.predicates, predicates) for d in implied_by)
        return DcExplanation(table, dc, base, holds, n_violations, pairs, minimal, implied_by, since, pinned)

    def explain_row(self, table: str, text: str) -> RowExplanation:
        """Whether a rule about each row (`ship_date >= order_date`) holds, and which rows are against it."""
        from holdfast.core.cover.news import plain_rows
        from holdfast.denial.row_counting import exceptions
        from holdfast.denial.row_rule_list import load, measured

        base, state = self._current(table)
        rule = parse_row_rule(text, state.schema, table=table, version=base)
        if state.row_rules is None:
            raise UsageError(
                f"row rules of table {table!r} are not tracked (kinds: {', '.join(state.kinds)}). Track it "
                "with --kinds row, or dc."
            )
        told = measured(load(self.root, state.row_rules), state.schema, rule)
        if told is None:
            raise UsageError(
                f"the columns of {rule.formula} do not take part in the row rules of table {table!r}: they "
                "cannot be compared, or were left out when it was tracked."
            )
        shown: tuple[WitnessRow, ...] = ()
        if told.n_exceptions:
            with self._opened(state) as relation:
                ids = exceptions(relation, rule, EXCEPTIONS_SHOWN)
                values = plain_rows(relation.fetch(ids))
            shown = tuple(WitnessRow(int(i), v) for i, v in zip(ids.tolist(), values, strict=True))
        return RowExplanation(told, base, told.n_exceptions == 0, shown)

    def dc_indexes(self, table: str) -> IndexReport:
        """The indexes that serve the constraints of a table, with their selectivity, coverage and rank."""
        from holdfast.core.rows.segments import open_segment
        from holdfast.denial.access.plan import statistics_of
        from holdfast.denial.access.selection import select

        _, state = self._current(table)
        ref = self._needs_dcs(state)
        masks = read_dcs(self.root, ref)
        if ref.evidence_kind == "counted" or state.n_rows < 2 or not len(masks):
            return IndexReport(table, ref.evidence_kind, None)
        with self._opened(state) as relation:
            selection = select(masks, ref.space, statistics_of(relation, ref.space))
            ranks: dict[tuple[int, int, bool], int] = {}
            for segment in relation.segments:
                for key in segment.ordered:
                    rank = open_segment(self.root, segment, state.schema).order(key).rank
                    ranks[key] = max(rank, ranks.get(key, 0))
        return IndexReport(table, ref.evidence_kind, selection.with_ranks(ranks))

    # -- inside -------------------------------------------------------------------------------

    def _needs_dcs(self, state: TableState) -> DcRef:
        if state.dcs is None:
            raise UsageError(
                f"denial constraints of table {state.table!r} are not tracked (kinds: "
                f"{', '.join(state.kinds)}). Track it with --kinds dc."
            )
        return state.dcs

    @cached_property
    def _dc_covers(self) -> dict[FileRef, U64]:
        return {}

    def _dc_cover(self, ref: DcRef) -> U64:
        if ref.cover not in self._dc_covers:
            self._dc_covers[ref.cover] = read_dcs(self.root, ref)
        return self._dc_covers[ref.cover]

    def _generals(self, ref: DcRef, predicates: Sequence[Predicate]) -> U64:
        """The constraints of a cover that a rule follows from, each within its groups."""
        return _inside(ref, self._dc_cover(ref), predicates)

    def _dc_past(self, table: str, until: int) -> list[tuple[int, DcRef]]:
        """(version, how constraints were kept) since the table was tracked, oldest first."""
        commits = [c for c in self.ledger.states() if c.table == table and c.version <= until]
        begun = [i for i, c in enumerate(commits) if c.action == "track"]
        found = []
        for commit in commits[begun[-1] if begun else 0 :]:
            fields = (commit.state or {}).get("dcs")
            if fields is not None:
                found.append((commit.version, DcRef.from_dict(fields)))
        return found

    def _since(
        self, state: TableState, predicates: Sequence[Predicate], base: int, *, holds: bool
    ) -> int | None:
        """The first version of the present spell."""
        since = None
        for version, ref in reversed(self._dc_past(state.table, base)):
            if bool(len(self._generals(ref, predicates))) != holds:
                break
            since = version
        return since

    def _stability_of(self, state: TableState, masks: U64, base: int) -> Stability:
        """What each constraint has outlived since it last broke."""
        from holdfast.core.cover.stability import Stability

        versions = self._held_versions_of(state, masks, base)
        past = {version for version, _ in self._dc_past(state.table, base)}
        told = [c.detail or {} for c in self.ledger.commits(state.table) if c.version in past]
        rows = [int(d.get("n_inserted") or 0) + int(d.get("n_deleted") or 0) for d in reversed(told)]
        # The version that brought a constraint is not one that it outlived.
        changed = np.cumsum([0, *rows])
        outlived: I64 = changed[np.clip(versions - 1, 0, len(changed) - 1)]
        return Stability(versions, outlived)

    def _held_versions_of(self, state: TableState, masks: U64, base: int) -> I64:
        """Through how many versions each constraint has held, the newest included: int64[n]."""
        from holdfast.core.rows.kernels.masks import contains_any, without
        from holdfast.denial.dc_cover import both_ways, closures
        from holdfast.denial.dc_state import kernel_space

        held = np.zeros(len(masks), dtype=np.int64)
        left = np.arange(len(masks))
        before: FileRef | None = None
        for _, ref in reversed(self._dc_past(state.table, base)):
            if ref.cover != before and before is not None and len(left):
                there = ~without(masks[left], self._dc_cover(ref))
                kernel = kernel_space(ref.space)
                asked = np.flatnonzero(~there)
                if len(asked):
                    whole = closures(masks[left[asked]], kernel)
                    there[asked] = contains_any(whole, both_ways(self._dc_cover(ref), kernel))
                left = left[there]
            before = ref.cover
            held[left] += 1
        return held


def _inside(ref: DcRef, masks: U64, predicates: Sequence[Predicate]) -> U64:
    """Those of some constraints that a rule follows from."""
    space = ref.space
    closure = space.closure(space.mask(predicates))
    found = np.zeros(len(masks), dtype=np.bool_)
    for mask in (closure, space.mirrored(closure)):
        words = [(mask >> 64 * w) & (2**64 - 1) for w in range(ref.n_words)]
        found |= ((masks & ~np.array(words, dtype=np.uint64)) == 0).all(axis=1)
    return masks[found]


def _n_groups(predicates: Sequence[Predicate]) -> int:
    """How many predicates a rule has when it is written with one for each pair of columns."""
    return len({(p.left, p.right) for p in predicates})

"""Reading denial constraints: which hold, in which forms, ranked, explained; how batches are looked up."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.history import Against, Life, Past
from holdfast.core.rows.table_state import TableState
from holdfast.core.rows.tables import Tables
from holdfast.core.store.files import FileRef
from holdfast.core.store.ledger_rows import CommitRow
from holdfast.core.words.change import Pair, Pin
from holdfast.core.words.key_score import KeyScores
from holdfast.core.words.predicate import Dc, Predicate, PredicateSpace, same_rule
from holdfast.core.words.schema import Nulls
from holdfast.denial.circular_dcs import holds_always, telling
from holdfast.denial.constraints import (
    DcRef,
    PinnedRule,
    dc_ref,
    dcs_of,
    ordered_pairs,
    pinned_rules,
    read_dcs,
    read_near_dcs,
)
from holdfast.denial.dc_explanation import DcExplanation, DcList, IndexReport
from holdfast.denial.row_reading import RowRuleReader
from holdfast.errors import UsageError

if TYPE_CHECKING:
    from holdfast.core.cover.stability import Stability
    from holdfast.core.cover.violating_rows import ViolatingRows
    from holdfast.denial.dc_ranking import DcRanking

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


class DcReader:
    """Denial constraints: rules about pairs of rows."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._past: Past[DcRef] = Past(tables, _cover_of)
        self._pinned: Past[tuple[PinnedRule, ...]] = Past(tables, _rules_of)
        self._covers: dict[FileRef, U64] = {}

    def ref(self, table: str, at: int | None = None) -> DcRef | None:
        """How the denial constraints of a table are kept; None where they are not."""
        return dc_ref(self._tables.state(table, at))

    def listed(
        self, state: TableState, at: int | None = None, max_error: float = 0.0, *, asked: bool = False
    ) -> list[Dc]:
        """The denial constraints of a table; those within an error where these are known, or asked for."""
        ref = dc_ref(state)
        if ref is None:
            return []
        if max_error and (asked or ref.evidence_kind == "counted"):
            from holdfast.denial.dc_list import near_dcs

            newest = at is None or self.ref(state.table) == ref
            return near_dcs(self._tables.root, state, ref, max_error, newest=newest)
        return dcs_of(state.table, ref.space, self.masks(state))

    def masks(self, state: TableState) -> U64:
        """What `listed` lists, as masks of the predicates of `space`; of a table that is tracked for it."""
        ref = self._needed(state)
        if not ref.operators:
            return telling(read_dcs(self._tables.root, ref), ref.space)
        from holdfast.denial.dc_list import listed_masks

        return listed_masks(self._tables.root, ref)

    def pins(self, state: TableState) -> list[Pin]:
        """The rules that somebody wrote and relies on."""
        return [rule.pin(state.table, state.n_rows) for rule in pinned_rules(state)]

    def space(self, table: str) -> PredicateSpace:
        """The predicates that the constraints of a table are made of: fixed when it was tracked."""
        return self._needed(self._tables.state(table)).space

    def in_form(
        self,
        table: str,
        at: int | None = None,
        *,
        concise: bool = False,
        set_minimal: bool = False,
        limit: int | None = None,
    ) -> DcList:
        """The denial constraints of a table in other forms than the most general one.

        Those that hold in every table are in none of them. `concise` leaves out what the others together
        imply; `set_minimal` lists every set of predicates that holds and of which none can be dropped, at
        most `limit` of them.
        """
        from holdfast.denial import forms as dc_forms
        from holdfast.denial.dc_list import cover_masks

        ref = self._needed(self._tables.state(table, at))
        masks, complete = cover_masks(self._tables.root, ref), True
        if set_minimal:
            if ref.operators:
                raise UsageError(
                    f"table {table!r} is tracked with the operators {' '.join(ref.operators)}; set-minimal "
                    "constraints are known for all operators only."
                )
            loosened = dc_forms.set_minimal(masks, ref.space, limit, ref.max_predicates)
            masks, complete = loosened.masks, loosened.complete
        listed = telling(masks, ref.space)
        n_dropped = 0
        if concise:
            staying = dc_forms.concise(masks, ref.space)
            n_dropped, listed = len(listed) - len(staying), masks[staying]
        return DcList(dcs_of(table, ref.space, listed), complete, n_dropped)

    def rank(self, table: str, top: int | None = None) -> DcRanking:
        """The rules of a table that tell most, about pairs of rows and about each row.

        No accidents of the rows at hand, and nothing that follows from the others: how many these are is
        counted (`dc_ranking.py`).
        """
        from holdfast.core.evidence.counted import CountedEvidence
        from holdfast.denial.dc_list import cover_masks
        from holdfast.denial.dc_ranking import rank
        from holdfast.denial.dc_state import load_evidence
        from holdfast.denial.shuffling import shuffled_shares

        base, state = self._tables.current(table)
        ref, root = self._needed(state), self._tables.root
        evidence = load_evidence(root, ref)

        def history(masks: U64) -> Stability:
            return self._past.stability(table, self.held_versions(table, masks, base + 1), base)

        def shuffled(dcs: Sequence[Dc]) -> NDArray[np.float64]:
            with self._tables.opened(state) as relation:
                return shuffled_shares(relation, dcs)

        scores = KeyScores(state.column_facts())
        return rank(
            cover_masks(root, ref),
            ref.space,
            table,
            evidence.masks,
            evidence.counts if isinstance(evidence, CountedEvidence) else None,
            rows=RowRuleReader(self._tables).facts(base, state),
            key_scores={name: scores((name,)) for name in state.schema.names},
            shuffled=shuffled,
            history=history,
            top=top,
        )

    def explain(self, table: str, text: str) -> DcExplanation:
        """Whether a rule about two rows holds now, since when, and the pairs of rows against it."""
        from holdfast.denial import written_rules
        from holdfast.denial.dc_state import in_operators

        base, state = self._tables.current(table)
        predicates = written_rules.read_rule(text, state.schema, table, base)
        equal = [r for r in pinned_rules(state) if r.nulls == "equal"]
        pinned = any(same_rule(r.predicates, predicates) for r in equal)
        ref = dc_ref(state)
        within = ref is not None and all(p in ref.space for p in predicates)
        inside = (
            self._generals(ref, predicates) if ref is not None and within else np.empty((0, 1), np.uint64)
        )
        trivial = holds_always(predicates)
        n_violations = 0
        pairs: tuple[Pair, ...] = ()
        if not trivial and not len(inside):
            with self._tables.opened(state) as relation:
                [rule] = written_rules.pinned(relation, [PinnedRule(predicates, 0, ())])
                n_violations = rule.n_violations
                [pin] = written_rules.as_pins(table, [rule], relation)
                pairs = tuple((t, s) for t, s in pin.witnesses)
        holds = n_violations == 0
        dc = Dc(table, predicates, n_violations / max(1, ordered_pairs(state.n_rows)))
        implied_by: tuple[Dc, ...] = ()
        since = None
        if ref is not None and len(inside):
            listed = telling(in_operators(self._cover(ref), ref.space, ref.operators), ref.space)
            implied_by = tuple(dcs_of(table, ref.space, _inside(ref, listed, predicates)))
        # A cover with a bound says nothing of longer rules that it does not imply.
        wide = ref is not None and 0 < ref.max_predicates < _n_groups(predicates)
        if within and not wide and not trivial and (len(inside) or not holds):
            since, _ = self._past.spell(
                table, base, lambda r: bool(len(self._generals(r, predicates))), now=holds
            )
        if since is None:
            since, _ = self.pinned_since(base, state, predicates, "equal", now=holds)
        minimal = any(same_rule(d.predicates, predicates) for d in implied_by)
        return DcExplanation(table, dc, base, holds, n_violations, pairs, minimal, implied_by, since, pinned)

    def pinned_since(
        self, version: int, state: TableState, predicates: Sequence[Predicate], nulls: Nulls, *, now: bool
    ) -> tuple[int | None, CommitRow | None]:
        """(since, turned) of a pinned rule, or functional dependency; None if it is not pinned.

        Before it was pinned nobody looked: the spell begins then at the earliest."""

        def holds(then: tuple[PinnedRule, ...]) -> bool | None:
            same = (r for r in then if r.nulls == nulls and same_rule(r.predicates, predicates))
            return next((r.n_violations == 0 for r in same), None)

        if holds(pinned_rules(state)) is not now:
            return None, None
        return self._pinned.spell(state.table, version, lambda then: holds(then) is now, now=True)

    def life(self, table: str, text: str) -> Life:
        """When a rule about two rows held and when not, since the table was tracked; nothing of a rule with
        predicates that are not kept."""
        from holdfast.denial import written_rules

        base, state = self._tables.current(table)
        ref = self._needed(state)
        predicates = written_rules.read_rule(text, state.schema, table, base)
        if not all(p in ref.space for p in predicates):
            return ()
        always = holds_always(predicates)

        def holds(then: DcRef) -> bool | None:
            if always or len(self._generals(then, predicates)):
                return True
            return None if 0 < then.max_predicates < _n_groups(predicates) else False

        return self._past.life(table, base, holds)

    def against(self, state: TableState, table: str, text: str) -> Against | None:
        """(ordered pairs of rows, their share) against a rule about two rows, by the state of a version.

        As `fd_past.against`: kept of what is minimal within the error that the table is tracked with.
        """
        from holdfast.denial import written_rules

        ref = dc_ref(state)
        predicates = written_rules.read_rule(text, state.schema, table, self._tables.version)
        if ref is None or ref.approximate is None or not all(p in ref.space for p in predicates):
            return None
        if holds_always(predicates) or len(self._generals(ref, predicates)):
            return 0, 0.0
        masks, violations = read_near_dcs(self._tables.root, ref)
        mask = ref.space.mask(predicates)
        same = np.zeros(len(masks), dtype=np.bool_)
        for way in (mask, ref.space.mirrored(mask)):
            same |= (masks == _words(ref, way)).all(axis=1)
        if not same.any():
            return None
        n = int(violations[same][0])
        return n, n / max(1, ordered_pairs(state.n_rows))

    def violations(
        self, table: str, text: str, *, limit: int | None = None, as_pairs: bool = False
    ) -> ViolatingRows:
        """The rows that violate a rule about two rows now, those in most pairs first; or the pairs of rows.

        Marked are rows without which it holds: the fewest, or as few as were found, with a lower bound.
        Denial constraints need not be tracked. Two jobs; `limit`: of the first rows, or pairs, only.
        """
        from holdfast.denial import written_rules
        from holdfast.denial.violating_pairs import dc_violations

        base, state = self._tables.current(table)
        dc = Dc(table, written_rules.read_rule(text, state.schema, table, base))
        return dc_violations(self._tables.rows(state), dc, base, limit, as_pairs=as_pairs)

    def indexes(self, table: str) -> IndexReport:
        """The indexes that serve the constraints of a table, with their selectivity, coverage and rank."""
        from holdfast.core.rows.tasks import order_ranks
        from holdfast.denial.access.plan import statistics_of
        from holdfast.denial.access.selection import select

        state = self._tables.state(table)
        ref = self._needed(state)
        masks = read_dcs(self._tables.root, ref)
        if ref.evidence_kind == "counted" or state.n_rows < 2 or not len(masks):
            return IndexReport(table, ref.evidence_kind, None)
        with self._tables.opened(state) as relation:
            selection = select(masks, ref.space, statistics_of(relation, ref.space))
            ranks: dict[tuple[int, int, bool], int] = {}
            ordered = [s for s in relation.segments if s.ordered]
            payloads = [relation.payload(segment=s.to_dict()) for s in ordered]
            for result in relation.look(order_ranks, payloads, ordered):
                for a, b, falling, rank in json.loads(result):
                    ranks[a, b, falling] = max(rank, ranks.get((a, b, falling), 0))
        return IndexReport(table, ref.evidence_kind, selection.with_ranks(ranks))

    # -- inside -------------------------------------------------------------------------------

    def _needed(self, state: TableState) -> DcRef:
        """How the constraints of a table are kept, or the error that they are not."""
        ref = dc_ref(state)
        if ref is None:
            raise UsageError(
                f"denial constraints of table {state.table!r} are not tracked (kinds: "
                f"{', '.join(state.kinds)}). Track it with --kinds dc."
            )
        return ref

    def _cover(self, ref: DcRef) -> U64:
        if ref.cover not in self._covers:
            self._covers[ref.cover] = read_dcs(self._tables.root, ref)
        return self._covers[ref.cover]

    def _generals(self, ref: DcRef, predicates: Sequence[Predicate]) -> U64:
        """The constraints of a cover that a rule follows from, each within its groups."""
        return _inside(ref, self._cover(ref), predicates)

    def since(self, state: TableState, dcs: Sequence[Dc], until: int) -> I64:
        """Since which version each of some constraints, which hold at one, has held: int64[n]."""

        def holds(ref: DcRef, numbers: I64) -> NDArray[np.bool_]:
            rules = [dcs[i].predicates for i in numbers]
            known = [all(p in ref.space for p in rule) for rule in rules]
            return np.array(
                [k and len(self._generals(ref, r)) > 0 for k, r in zip(known, rules, strict=True)]
            )

        return self._past.since(state.table, len(dcs), until, holds)

    def held_versions(self, table: str, questions: U64, before: int) -> I64:
        """For how many versions, up to that before one, each had held without a break: int64[n]."""
        from holdfast.core.rows.kernels.masks import contains_any, without
        from holdfast.denial.dc_cover import both_ways, closures
        from holdfast.denial.dc_state import kernel_space

        def holds(ref: DcRef, which: I64) -> NDArray[np.bool_]:
            masks = questions[which]
            there = ~without(masks, self._cover(ref))
            rest = np.flatnonzero(~there)
            if len(rest):
                kernel = kernel_space(ref.space)
                whole = closures(masks[rest], kernel)
                there[rest] = contains_any(whole, both_ways(self._cover(ref), kernel))
            return there

        return self._past.held(table, len(questions), before, holds)


def _inside(ref: DcRef, masks: U64, predicates: Sequence[Predicate]) -> U64:
    """Those of some constraints that a rule follows from."""
    space = ref.space
    closure = space.closure(space.mask(predicates))
    general = np.zeros(len(masks), dtype=np.bool_)
    for mask in (closure, space.mirrored(closure)):
        general |= ((masks & ~_words(ref, mask)) == 0).all(axis=1)
    return masks[general]


def _words(ref: DcRef, mask: int) -> U64:
    """A set of predicates as covers have it."""
    return np.array([(mask >> 64 * w) & (2**64 - 1) for w in range(ref.n_words)], dtype=np.uint64)


def _n_groups(predicates: Sequence[Predicate]) -> int:
    """How many predicates a rule has when it is written with one for each pair of columns."""
    return len({(p.left, p.right) for p in predicates})


def _rules_of(fields: Mapping[str, Any]) -> tuple[FileRef, tuple[PinnedRule, ...]]:
    """What a state says of its pinned rules; it has no file, so its text stands for one."""
    rules = fields.get("rules") or ()
    return FileRef(json.dumps(rules), 0, ""), tuple(map(PinnedRule.from_dict, rules))


def _cover_of(fields: Mapping[str, Any]) -> tuple[FileRef, DcRef] | None:
    if not fields.get("dcs"):
        return None
    ref = DcRef.from_dict(fields["dcs"])
    return ref.cover, ref

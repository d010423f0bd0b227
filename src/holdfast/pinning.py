"""Pins: what somebody relies on, be it a key, an inclusion or a rule that they wrote, and on which terms.

Every batch says whether a pin holds, and `check` gates on it. Any number of pins is one commit: all of them
are read and verified first, by one job for the rules and one for the conditions of a table.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from holdfast.commit import Committer
from holdfast.core.rows.asked_conditions import asked_condition
from holdfast.core.rows.table_state import TableState
from holdfast.core.rows.writer import Context, Writer
from holdfast.core.store.ledger_rows import SHARED, CommitRow
from holdfast.core.words.change import Pair, Pin, WitnessRow
from holdfast.core.words.condition import OTHER_ROW, formula_of, is_condition
from holdfast.core.words.dependency import Fd, Side
from holdfast.core.words.notation import ARROW, arrow_text, parse_fd
from holdfast.core.words.predicate import Predicate, as_dc
from holdfast.core.words.reliance import Muted, Terms, Wanted
from holdfast.core.words.row_rule import is_row_rule
from holdfast.core.words.sameness import DependencySet
from holdfast.denial.constraints import PinnedCheck, PinnedRule, pinned_checks, pinned_rules
from holdfast.errors import HoldfastError, UsageError, listing
from holdfast.functional.refs import PinnedKey, key_ref
from holdfast.inclusions.generator import PinnedInd
from holdfast.kinds import Readers
from holdfast.muting import unmuted

if TYPE_CHECKING:
    from holdfast.core.rows.relation import Relation

Pinned = PinnedKey | PinnedRule | PinnedCheck | PinnedInd


@dataclass(frozen=True, slots=True)
class PinChange:
    """What a change of pins did: one version, or none if nothing is new."""

    version: int
    pinned: tuple[Pin, ...]  # new, or on other terms
    unchanged: tuple[Pin, ...]
    removed: tuple[Pin, ...]
    left_out: tuple[Pin, ...]  # not pinned, as they do not hold and only what holds was asked for
    unmuted: tuple[Muted, ...] = ()  # by pinning it

    def to_dict(self) -> dict[str, Any]:
        parts = {"pinned": self.pinned, "unchanged": self.unchanged, "removed": self.removed}
        parts["left_out"] = self.left_out
        lists = {name: [p.to_dict() for p in ps] for name, ps in parts.items()}
        return {"version": self.version, **lists, "unmuted": [m.to_dict() for m in self.unmuted]}


@dataclass(frozen=True)
class Pins:
    """What is pinned in a workspace."""

    writer: Writer
    readers: Readers
    committer: Committer

    def one(self, wanted: Wanted, remove: bool) -> Pin:
        """Pin one thing, or rely on it no longer."""
        done = self.change(removed=[wanted]) if remove else self.change([wanted])
        [pin] = done.pinned or done.unchanged or done.removed
        return pin

    def change(
        self,
        wanted: Sequence[Wanted] = (),
        *,
        removed: Sequence[Wanted] = (),
        prune: bool = False,
        only_holding: bool = False,
        commit: bool = True,
    ) -> PinChange:
        """Pin what is wanted, and rely no longer on what is removed; with `prune` on nothing else at all.

        What is pinned on the same terms already is left as it is. `only_holding`: of what is new only that
        which holds; what is wanted on no terms keeps those that it has. Without `commit` it is said what
        would be done.
        """
        with ExitStack() as stack:
            draft = _Draft(self, self.writer.tables.version, stack, commit)
            targets: dict[Hashable, _Target] = {}
            for each in wanted:
                target = draft.target(each)
                if target.identity in targets:
                    first = targets[target.identity].wanted.where
                    raise _at(
                        each, UsageError(f"{target.name} is there twice{first and f', first at {first}'}.")
                    )
                targets[target.identity] = target
            gone = [draft.target(each, removing=True) for each in removed]
            for target in gone:
                if target.identity not in draft.pinned(target.table):
                    raise UsageError(f"{target.name} is not pinned.")
            leaving = {target.identity for target in gone}
            if prune:
                tables = self.writer.tables.names(draft.base or None)
                leaving |= {i for table in tables for i in draft.pinned(table)} - targets.keys()
            return draft.committed(targets, leaving, only_holding)


@dataclass(frozen=True)
class _Target:
    """What is wanted, in the words of the workspace."""

    wanted: Wanted
    table: str
    identity: Hashable
    name: str
    new: Pinned  # on the terms that are wanted; not verified yet


@dataclass
class _Draft:
    """Pins on top of a version, before anything is committed."""

    pins: Pins
    base: int
    stack: ExitStack
    commit: bool
    _pinned: dict[str, dict[Hashable, Pinned]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.state = cache(self._state)
        self.rows = cache(self._rows)

    def _state(self, table: str) -> TableState:
        return self.pins.writer.tables.state(table, self.base or None)

    @cached_property
    def context(self) -> Context:
        return self.stack.enter_context(self.pins.writer.context(self.base, commit=self.commit))

    def _rows(self, table: str) -> Relation:
        state = self.state(table)
        folder = state.folder if self.commit else self.context.staging
        return self.context.relation(state, folder, "verifying pins")

    @cached_property
    def inclusions(self) -> Any:
        return self.pins.committer.among("ind", self.base)[1]

    def pinned(self, table: str) -> Mapping[Hashable, Pinned]:
        """What is pinned of a table, by identity; inclusions of it in others."""
        if table not in self._pinned:
            state, ref = self.state(table), key_ref(self.state(table))
            pinned: list[Pinned] = [*(ref.pins if ref else ()), *pinned_rules(state), *pinned_checks(state)]
            if "ind" in state.kinds:
                pinned += [p for p in self.inclusions.state.pins if p.dependent.table == table]
            self._pinned[table] = {_identity(table, p): p for p in pinned}
        return self._pinned[table]

    # -- what is wanted -----------------------------------------------------------------------

    def target(self, wanted: Wanted, *, removing: bool = False) -> _Target:
        """What is wanted, checked: an error names its place, if it has one."""
        try:
            if not wanted.table and wanted.rule:
                from holdfast.denial.written_rules import only_table

                tables = self.pins.writer.tables.names(self.base or None)
                wanted = replace(wanted, table=only_table(tables, wanted.rule))
            new, name = self._read(wanted, removing=removing)
            return _Target(wanted, wanted.table, _identity(wanted.table, new), name, new)
        except HoldfastError as error:
            raise _at(wanted, error) from None

    def _read(self, wanted: Wanted, *, removing: bool) -> tuple[Pinned, str]:
        """(what is to be pinned, its name in errors)"""
        state, table = self.state(wanted.table), wanted.table
        pinned: Pinned
        if wanted.referenced is not None:
            counted = removing or bool(Terms.of(False, wanted.terms).at_most)
            pinned = self._ind(Side(table, wanted.columns), wanted.referenced, counted=counted)
            name = f"{pinned.dependent} in {pinned.referenced}"
        elif not wanted.rule:
            tables = self.pins.writer.tables
            self.pins.readers.keys.needed(state)
            positions = tables.positions(state, self.base, wanted.columns)
            pinned = PinnedKey(tuple(state.schema.names[p] for p in positions), False)
            name = f"[{listing(pinned.columns)}] of table {table!r}"
        else:
            pinned = self._rule(wanted.rule, state)
            what = "rule" if isinstance(pinned, PinnedRule) else "condition"
            name = f"the {what} {wanted.rule!r} of table {table!r}"
        terms = Terms.of(isinstance(pinned, PinnedRule), wanted.terms)
        return replace(pinned, terms=terms), name

    def _rule(self, text: str, state: TableState) -> PinnedRule | PinnedCheck:
        from holdfast.denial import written_rules

        if is_row_rule(text) and ARROW in text:
            # As the rule about two rows that it is; its NULLs are those of the table.
            lhs, rhs = parse_fd(text, state.schema.names, table=state.table, version=self.base)
            rule = as_dc(Fd(state.table, lhs, rhs))
            pinned = PinnedRule(rule.predicates, 0, (), arrow=True, nulls=state.nulls)
            if rhs in lhs and _identity(state.table, pinned) not in self.pinned(state.table):
                raise UsageError(
                    f"both sides of {arrow_text(lhs, rhs)} of table {state.table!r} have the column {rhs!r}, "
                    "so it holds whatever the rows are. Name another column on one of them."
                )
            return pinned
        if is_condition(text) or (is_row_rule(text) and not OTHER_ROW.search(text)):
            node = asked_condition(text, state.schema, table=state.table, version=self.base)
            return PinnedCheck(formula_of(node), 0, ())
        predicates = written_rules.read_rule(text, state.schema, state.table, self.base)
        return PinnedRule(predicates, 0, ())

    def _ind(self, dependent: Side, referenced: Side, *, counted: bool) -> PinnedInd:
        """An inclusion; of several columns, one that holds, or did when it was pinned, unless its rows are
        counted, or it is to go."""
        if len(dependent.columns) != len(referenced.columns):
            raise UsageError(f"{dependent} and {referenced} have different numbers of columns.")
        for side in (dependent, referenced):
            for column in side.columns:
                self.pins.readers.inds.column_id(Side(side.table, (column,)), self.base or None)
        pairs = sorted(
            zip(dependent.columns, referenced.columns, strict=True),
            key=lambda pair: self.state(dependent.table).schema.names.index(pair[0]),
        )
        dependent = Side(dependent.table, tuple(a for a, _ in pairs))
        referenced = Side(referenced.table, tuple(b for _, b in pairs))
        pinned = PinnedInd(dependent, referenced, holds=False)
        before = self.pinned(dependent.table).get(_identity(dependent.table, pinned))
        if before is None:  # of an earlier release it can be there, and has to go
            from holdfast.inclusions.ind_reading import check_sides

            check_sides(dependent, referenced)
        known = before is not None and not before.terms.at_most
        if len(pairs) == 1 or known or counted:
            return pinned
        from holdfast.inclusions.inclusions import settled_pin

        if not settled_pin(self.inclusions, pinned, self.rows).holds:
            raise UsageError(
                f"{dependent} in {referenced} does not hold now. 'holdfast violations' lists the rows "
                "against it; with a tolerance (--at-most) it can be pinned: they are counted."
            )
        return pinned

    # -- verified, and committed --------------------------------------------------------------

    def committed(
        self, targets: Mapping[Hashable, _Target], leaving: set[Hashable], only_holding: bool
    ) -> PinChange:
        tables = dict.fromkeys([*(target.table for target in targets.values()), *self._pinned])
        now: dict[str, dict[Hashable, Pinned]] = {}
        parts: dict[str, dict[Hashable, Pin]] = {part: {} for part in ("pinned", "same", "gone", "left_out")}
        for table in tables:
            before = self.pinned(table)
            here = {i: target.new for i, target in targets.items() if target.table == table}
            asked = {i: p for i, p in here.items() if i not in before or before[i].terms != p.terms}
            if only_holding:  # proposed: no terms are no wish to have others than there are
                asked = {i: p for i, p in asked.items() if i not in before or targets[i].wanted.terms}
            changed = self._verified(table, asked)
            pins = self._shown(table, changed)
            if only_holding:
                parts["left_out"] |= {i: pins[i] for i in changed if i not in before and not pins[i].holds}
            parts["pinned"] |= {i: pin for i, pin in pins.items() if i not in parts["left_out"]}
            parts["same"] |= self._shown(table, {i: before[i] for i in here if i not in changed})
            parts["gone"] |= self._shown(table, {i: p for i, p in before.items() if i in leaving}, bare=True)
            added = {i: p for i, p in changed.items() if i in parts["pinned"]}
            # What was pinned before keeps its place.
            now[table] = {i: p for i, p in {**before, **added}.items() if i not in leaving}
        unmuted = [m for table in now for m in self._unmuted(table, parts["pinned"].values())[1]]
        version = self.base
        if self.commit and (parts["pinned"] or parts["gone"]):
            version = self.pins.writer.append(self.base, self._commits(now, parts["pinned"], parts["gone"]))
        # As they were asked for.
        new, same = (tuple(of[i] for i in targets if i in of) for of in (parts["pinned"], parts["same"]))
        gone, left_out = (tuple(parts[part].values()) for part in ("gone", "left_out"))
        return PinChange(version, new, same, gone, left_out, tuple(unmuted))

    def _unmuted(self, table: str, pins: Iterable[Pin]) -> tuple[TableState, list[Muted]]:
        """(a table's state, what of it was muted) when some of it is pinned."""
        state = self.state(table)
        dependencies = [pin.dependency for pin in pins if pin.table == table]
        return unmuted(state, DependencySet(dependencies, lambda _: state.nulls))

    def _verified(self, table: str, new: Mapping[Hashable, Pinned]) -> dict[Hashable, Pinned]:
        """What is new, or on new terms, as the rows say now."""
        before = self.pinned(table)
        verified: dict[Hashable, Pinned] = {}
        rules: dict[Hashable, PinnedRule] = {}
        checks: dict[Hashable, PinnedCheck] = {}
        for identity, pin in new.items():
            known = before.get(identity)
            if isinstance(pin, PinnedKey):
                verified[identity] = self._key(table, pin)
            elif isinstance(pin, PinnedInd):
                from holdfast.inclusions.inclusions import settled_pin

                verified[identity] = settled_pin(self.inclusions, pin, self.rows)
            elif known is not None:  # counted already
                verified[identity] = replace(known, terms=pin.terms)
            elif isinstance(pin, PinnedRule):
                rules[identity] = pin
            else:
                checks[identity] = pin
        if rules:
            from holdfast.denial import written_rules

            counted_rules = written_rules.pinned(self.rows(table), list(rules.values()))
            verified |= zip(rules, counted_rules, strict=True)
        if checks:
            from holdfast.denial.checks import verified as counted

            against = counted(self.rows(table), [p.formula for p in checks.values()])
            verified |= {
                i: replace(f, terms=p.terms) for (i, p), f in zip(checks.items(), against, strict=True)
            }
        return {identity: verified[identity] for identity in new}

    def _key(self, table: str, pin: PinnedKey) -> PinnedKey:
        keys, state = self.pins.readers.keys, self.state(table)
        positions = [state.schema.names.index(c) for c in pin.columns]
        unique = bool(keys.inside(state, positions))
        if not unique and 0 < keys.max_columns_of(state) < len(positions):
            unique = not keys.duplicates(state, positions)
        if unique:
            return replace(pin, holds=True, n_violations=0)
        from holdfast.functional.group_violations import settled_pin

        return settled_pin(self.rows(table), pin, unique)

    def _shown(
        self, table: str, pinned: Mapping[Hashable, Pinned], *, bare: bool = False
    ) -> dict[Hashable, Pin]:
        """Pins for reports, with a few of the rows against them unless they are to be bare."""
        reported: dict[Hashable, Pin] = {}
        state = self.state(table)
        for identity, pin in pinned.items():
            if isinstance(pin, PinnedKey):
                shown = self._duplicates(pin, state) if not (bare or pin.holds) else ()
                reported[identity] = pin.pin(table, state.n_rows, shown)
            elif isinstance(pin, PinnedInd):
                reported[identity] = pin.pin(self._orphans(pin) if not (bare or pin.holds) else ())
            elif isinstance(pin, PinnedRule):
                reported[identity] = pin.pin(table, state.n_rows)
                if not bare and pin.n_violations:
                    from holdfast.denial.written_rules import as_pins

                    [reported[identity]] = as_pins(table, [pin], self.rows(table))
            else:
                reported[identity] = pin.pin(state, state.n_rows)
                if not bare and pin.n_violations:
                    from holdfast.denial.checks import as_pins as checked

                    [reported[identity]] = checked((pin,), state, self.rows(table))
        return reported

    def _duplicates(self, pin: PinnedKey, state: TableState) -> tuple[Pair, ...]:
        positions = [state.schema.names.index(c) for c in pin.columns]
        return self.pins.readers.keys.duplicates(state, positions)

    def _orphans(self, pin: PinnedInd) -> tuple[tuple[WitnessRow, ...], ...]:
        _, missing = self.pins.readers.inds.missing(pin.dependent, pin.referenced, self.base or None)
        return tuple((row,) for _, row in missing)

    def _commits(
        self,
        now: Mapping[str, Mapping[Hashable, Pinned]],
        pinned: Mapping[Hashable, Pin],
        gone: Mapping[Hashable, Pin],
    ) -> list[CommitRow]:
        action = "pin" if pinned else "unpin"
        commits = []
        among_tables = False
        for table, pins in now.items():
            changes = [[pin for pin in part.values() if pin.table == table] for part in (pinned, gone)]
            if not any(changes):
                continue
            among_tables |= any(pin.kind == "ind" for part in changes for pin in part)
            state = self._with(self._unmuted(table, pinned.values())[0], pins.values())
            commits.append(CommitRow(table, action, state.to_dict(), _detail(*changes)))
        if among_tables:
            shared = self.inclusions.state
            inds = {_identity("", p): p for p in shared.pins}
            inds |= {i: p for pins in now.values() for i, p in pins.items() if isinstance(p, PinnedInd)}
            staying = tuple(p for i, p in inds.items() if i not in gone)
            commits.append(CommitRow(SHARED, action, replace(shared, pins=staying).to_dict(), {}))
        return commits

    def _with(self, state: TableState, pins: Iterable[Pinned]) -> TableState:
        """A table's state with its pins, and with the indexes that rules among them need."""
        pins = list(pins)
        ref = key_ref(state)
        if ref is not None:
            keys = tuple(p for p in pins if isinstance(p, PinnedKey))
            state = state.keeping(**replace(ref, pins=keys).to_dict())
        rules = [p for p in pins if isinstance(p, PinnedRule)]
        checks = [p.to_dict() for p in pins if isinstance(p, PinnedCheck)]
        if checks or pinned_checks(state):
            state = state.keeping(checks=checks)
        before = pinned_rules(state)
        if rules or before:
            state = state.keeping(rules=[r.to_dict() for r in rules])
        if {r.predicates for r in rules} <= {r.predicates for r in before}:  # they want the same indexes
            return state
        from holdfast.denial.written_rules import indexes_for

        relation = self.rows(state.table)
        more_columns, more_orders = indexes_for(relation, rules)
        columns = list(dict.fromkeys([*state.rule_columns, *more_columns]))
        orders = list(dict.fromkeys([*state.orders, *more_orders]))
        relation = relation.indexed(columns, orders)
        return replace(state, segments=relation.segments, rule_columns=tuple(columns), orders=tuple(orders))


def _detail(pinned: Sequence[Pin], gone: Sequence[Pin]) -> dict[str, Any]:
    """What the log says of one table of a commit."""
    if len(pinned) + len(gone) > 1:
        return {"pinned": list(map(str, pinned)), "unpinned": list(map(str, gone))}
    [pin] = [*pinned, *gone]
    detail: dict[str, Any] = {"columns": list(pin.columns)}
    if pin.kind in ("dc", "fd", "check"):
        detail["rule"] = str(pin)
    if pin.referenced is not None:
        detail["referenced"] = pin.referenced.to_dict()
    return detail


def _identity(table: str, pin: Pinned) -> Hashable:
    """What makes two pins the same: terms do not, nor the order of predicates, nor which row is t."""
    match pin:
        case PinnedKey():
            return "ucc", table, pin.columns
        case PinnedInd():
            return "ind", pin.dependent, pin.referenced
        case PinnedCheck():
            return "check", table, pin.formula
        case PinnedRule():
            return "dc", table, pin.nulls, _either_way(pin.predicates)


def _either_way(predicates: Iterable[Predicate]) -> frozenset[frozenset[Predicate]]:
    predicates = frozenset(predicates)
    return frozenset([predicates, frozenset(p.mirrored for p in predicates)])


def _at(wanted: Wanted, error: HoldfastError) -> HoldfastError:
    """An error with the place of what it is about, if it has one."""
    if not wanted.where:
        return error
    return type(error)(f"{wanted.where}: {error}")

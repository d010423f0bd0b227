"""Rules that people write: read, checked against the columns' types, verified and watched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.news import witness_pairs
from holdfast.core.evidence.predicate_space import ordered
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.table_state import OrderKey, SegmentRef
from holdfast.core.words.change import Pair, Pin
from holdfast.core.words.predicate import OPERATORS, Dc, Predicate
from holdfast.core.words.rule_text import located, rule_error
from holdfast.core.words.schema import Nulls, Schema
from holdfast.denial.constraints import PinnedRule
from holdfast.denial.pair_rule import Rule, Violations, wanted_indexes
from holdfast.denial.violation_changes import changed
from holdfast.denial.violations import verify
from holdfast.errors import UsageError

I64 = NDArray[np.int64]


def read_rule(text: str, schema: Schema, table: str, version: int | None) -> tuple[Predicate, ...]:
    """The predicates of a rule about two rows of a table, in the order written, each once.

    An error that points at its place where the text is no rule, names a column that the table has not, or
    compares what cannot be compared.
    """
    types = dict(zip(schema.names, schema.types, strict=True))
    placed = located(text, schema.names, table=table, version=version)
    for predicate, at in placed:
        left, right = types[predicate.left], types[predicate.right]
        if left != right:
            raise rule_error(
                text,
                at,
                f"{predicate.left!r} is of type {left} and {predicate.right!r} of type {right}; only columns "
                "of one type are compared across rows",
            )
        if predicate.op not in ("=", "!=") and not ordered(left):
            raise rule_error(
                text,
                at,
                f"{predicate.left!r} is of type {left}, whose values have no order; compare it by = or !=",
            )
    return tuple(dict.fromkeys(p for p, _ in placed))


def as_rule(predicates: Sequence[Predicate], schema: Schema, nulls: Nulls = "equal") -> Rule:
    """A rule in positions of columns and numbers of operators."""
    at = {name: i for i, name in enumerate(schema.names)}
    return Rule(tuple((at[p.left], OPERATORS.index(p.op), at[p.right]) for p in predicates), nulls)


def pinned(relation: Relation, rules: Sequence[PinnedRule]) -> list[PinnedRule]:
    """Rules with the pairs of rows that violate them now. One job."""
    against = verify(relation, _pair_rules(relation, rules)) if rules else []
    return [_counted(rule, violations) for rule, violations in zip(rules, against, strict=True)]


def watched(
    before: Relation,
    remaining: Relation,
    after: Relation,
    row_ids: I64,
    added: Sequence[SegmentRef],
    rules: Sequence[PinnedRule],
) -> tuple[PinnedRule, ...]:
    """Pinned rules after a batch, at a cost that follows the batch; see `violation_changes.changed`."""
    if not rules:
        return ()
    known = [Violations(r.n_violations, np.array(r.pairs, dtype=np.int64).reshape(-1, 2)) for r in rules]
    after_batch = changed(before, remaining, after, row_ids, added, _pair_rules(after, rules), known)
    return tuple(map(_counted, rules, after_batch))


def indexes_for(relation: Relation, rules: Sequence[PinnedRule]) -> tuple[list[int], list[OrderKey]]:
    """(columns, orders) with which batches are cheap to check."""
    columns, orders = wanted_indexes(_pair_rules(relation, rules), relation.schema, relation.distinct())
    return list(columns), list(orders)


def as_pins(table: str, rules: Sequence[PinnedRule], relation: Relation) -> tuple[Pin, ...]:
    """Pinned rules with the rows of a few pairs that violate them."""
    return tuple(replace(r.pin(table, relation.n_rows), witnesses=_shown(r, relation)) for r in rules)


def _shown(rule: PinnedRule, relation: Relation) -> tuple[Pair, ...]:
    pairs = np.array(rule.pairs, dtype=np.int64).reshape(-1, 1, 2)
    columns = Dc("", rule.predicates).columns
    return tuple(p for shown in witness_pairs(pairs, relation, [columns] * len(pairs)) for p in shown)


def _pair_rules(relation: Relation, rules: Sequence[PinnedRule]) -> list[Rule]:
    return [as_rule(r.predicates, relation.schema, r.nulls) for r in rules]


def _counted(rule: PinnedRule, violations: Violations) -> PinnedRule:
    pairs = tuple((int(t), int(s)) for t, s in violations.pairs.tolist())
    return replace(rule, n_violations=violations.n_violations, pairs=pairs)


def only_table(tables: Sequence[str], text: str) -> str:
    """The table that a rule is about, where it is not named and there is only one."""
    if len(tables) == 1:
        return tables[0]
    if not tables:
        raise UsageError("no table is tracked. Start with 'holdfast track'.")
    raise UsageError(
        f"the workspace has {len(tables)} tables: say which one the rule {text!r} is about, such as "
        f"'holdfast pin {tables[0]} ...'."
    )

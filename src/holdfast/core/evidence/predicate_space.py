"""The predicate space of a table (IncDC, section 3): which columns are compared, and how.

Every column is compared with itself: with six operators if its values have an order, else with two. Two
columns of one type are compared with each other if they share at least 30 % of their values: of the distinct
values of the one that has more. (Of the smaller one, two columns of codes would do by chance: decision 0012.)
Decided when a table is tracked, and fixed then.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.relation import Relation
from holdfast.core.rows.tasks import Payload, all_opened, parsed_schema
from holdfast.core.store.bundle import pack
from holdfast.core.words.predicate import Group, PredicateSpace
from holdfast.core.words.schema import Schema, Type

U64 = NDArray[np.uint64]

SHARED_VALUES = 0.3
# What it takes on one core to merge a value of two dictionaries, in ns.
NS_SHARED = 10


def ordered(type_: Type) -> bool:
    """Whether values are compared by order: numbers, dates and times."""
    return type_.ordered and type_.family != "bool"


def predicate_space(
    relation: Relation, columns: Collection[str], *, by_order: bool, within_columns: bool = False
) -> PredicateSpace:
    """The space over some columns; without `by_order` with the two operators = and != alone. One job.

    With `within_columns` a column is compared with itself only.
    """
    schema = relation.schema
    chosen = [c for c, name in enumerate(schema.names) if name in columns]
    groups = [_group(schema, c, c, by_order) for c in chosen]
    for a, b in [] if within_columns else _sharing(relation, chosen):
        groups += [_group(schema, a, b, by_order), _group(schema, b, a, by_order)]
    return PredicateSpace(tuple(groups))


def _group(schema: Schema, a: int, b: int, by_order: bool) -> Group:
    return Group(schema.names[a], schema.names[b], by_order and ordered(schema.types[a]))


def _sharing(relation: Relation, columns: Sequence[int]) -> list[tuple[int, int]]:
    """The pairs of columns of one type that share values enough."""
    schema = relation.schema
    segments = [s for s in relation.segments if s.n_live]
    if not segments:
        return []
    sizes = np.array([s.distinct for s in segments])
    least, most = sizes.max(axis=0), sizes.sum(axis=0)
    pairs = [
        (a, b)
        for a, b in combinations(columns, 2)
        if schema.types[a] == schema.types[b]
        and min(most[a], most[b]) >= SHARED_VALUES * max(least[a], least[b])
        and min(most[a], most[b]) > 0
    ]
    live = [s.to_dict() for s in segments]
    payloads = [relation.payload(segments=live, left=a, right=b) for a, b in pairs]
    work = float(sum(most[a] + most[b] for a, b in pairs))
    results = relation.run(count_shared, payloads, NS_SHARED * work)
    sharing = []
    for pair, result in zip(pairs, results, strict=True):
        n_left, n_right, n_both = result.array("counts").tolist()
        if n_both and n_both >= SHARED_VALUES * max(n_left, n_right):
            sharing.append(pair)
    return sharing


def count_shared(payload: Payload) -> bytes:
    """How many distinct values two columns have, and how many in common; texts by their codes."""
    segments = all_opened(payload, parsed_schema(payload["schema"]))
    left, right = (_values([s.dictionary(payload[side]) for s in segments]) for side in ("left", "right"))
    both = np.intersect1d(left, right, assume_unique=True)
    return pack({"counts": np.array([len(left), len(right), len(both)], dtype=np.int64)}, {})


def _values(dictionaries: Sequence[U64]) -> U64:
    return dictionaries[0] if len(dictionaries) == 1 else np.unique(np.concatenate(dictionaries))

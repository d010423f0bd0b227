"""The primary key among the minimal keys of a table: what a designer would have declared.

Many keys are accidents of the rows at hand: a comment, a price together with a date. What a key looks like by
itself `key_score` says; and other tables refer to one that was meant to be a key. In a composite one, columns
refer elsewhere or number the rows of a parent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.core.words.column_facts import ColumnFacts
from holdfast.core.words.dependency import Ind, Side
from holdfast.core.words.key_score import key_points, points_together
from holdfast.core.words.name_similarity import Names

# Points of what speaks for a key; see `Keys.choose`.
REFERRED = 2.0
MAX_REFERRED = 4.0
REFERRING_PART = 0.5
COUNTING_PART = 0.4


@dataclass(frozen=True, slots=True)
class Keys:
    """The minimal keys of all tables, and how much each looks like a primary key by itself."""

    minimal_keys: Mapping[str, Sequence[frozenset[str]]]
    intrinsic: Mapping[tuple[str, frozenset[str]], float]
    ordered: Mapping[tuple[str, frozenset[str]], tuple[str, ...]]
    counters: frozenset[tuple[str, str]]

    @classmethod
    def of(
        cls,
        facts: Mapping[tuple[str, str], ColumnFacts],
        keys: Mapping[str, Sequence[tuple[str, ...]]],
        names: Names,
    ) -> Keys:
        """Keys as they are known: maintained ones, else single columns by their counts."""
        widths: dict[str, int] = {}
        for f in facts.values():
            widths[f.table] = max(widths.get(f.table, 0), f.position + 1)
        tables: dict[str, list[tuple[str, ...]]] = {}
        for table in sorted({*widths, *keys}):
            minimal_keys = keys.get(table, [()])
            of_table = [k for k in minimal_keys if k]
            if () in minimal_keys:  # not maintained, or at most one row: so the empty set is the minimal key
                of_table = [(f.column,) for f in facts.values() if f.table == table and f.is_unique]
            tables[table] = of_table
        minimal = {t: [frozenset(k) for k in ks] for t, ks in tables.items()}
        ordered = {(t, frozenset(k)): k for t, ks in tables.items() for k in ks}
        points = {column: key_points(f, names, widths[f.table]) for column, f in facts.items()}
        intrinsic = {
            (t, key): points_together([points.get((t, c), 0.0) for c in k]) for (t, key), k in ordered.items()
        }
        counters = frozenset(c for c, f in facts.items() if f.is_sequence)
        return cls(minimal, intrinsic, ordered, counters)

    def minimal(self, side: Side) -> bool | None:
        """Whether the columns are a minimal key (True), contain one (False), or do not (None)."""
        columns = frozenset(side.columns)
        if (side.table, columns) in self.intrinsic:
            return True
        return False if self.contains_key(side) else None

    def contains_key(self, side: Side) -> bool:
        columns = frozenset(side.columns)
        if len(columns) == 1:
            return (side.table, columns) in self.intrinsic
        return any(key <= columns for key in self.minimal_keys.get(side.table, ()))

    def choose(self, links: Sequence[Ind]) -> dict[str, tuple[str, ...]]:
        """The primary key of each table, given the links that are chosen."""
        referred: dict[tuple[str, frozenset[str]], float] = {}
        referring: set[tuple[str, str]] = set()
        for ind in links:
            target = (ind.referenced.table, frozenset(ind.referenced.columns))
            referred[target] = min(MAX_REFERRED, referred.get(target, 0.0) + REFERRED)
            referring.update((ind.dependent.table, c) for c in ind.dependent.columns)
        chosen: dict[str, tuple[str, ...]] = {}
        for table, keys in self.minimal_keys.items():
            points = {}
            for key in keys:
                points[key] = self.intrinsic[table, key] + referred.get((table, key), 0.0)
                if len(key) > 1:
                    for c in self.ordered[table, key]:  # sums of floats depend on the order
                        if (table, c) in referring:
                            points[key] += REFERRING_PART
                        elif (table, c) in self.counters:
                            points[key] += COUNTING_PART
            if points:
                best = min(keys, key=lambda k: (-points[k], len(k), self.ordered[table, k]))
                chosen[table] = self.ordered[table, best]
        return chosen

"""Foreign keys of columns without a value: an empty table, or NULL in all rows.

Such a column is included in every other one, so nothing but names can tell what it refers to. A candidate
needs a name that means the same as its parent (`SAME`); the parent is a key of one column that looks like the
primary key of its table. Of a table that is empty itself no key is known: there it is the first column, if it
has a name with `id`, `key` or the like; such a column itself only refers to parents that have values, so that
links do not lead back. Each child has one candidate, and is told to be unproved.

Cost: a comparison of names for each column without a value and each table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from holdfast.core.words.column_facts import ColumnFacts
from holdfast.core.words.name_similarity import SAME, NameMatch, Names
from holdfast.inclusions.links import link_evidence as evidence
from holdfast.inclusions.links.link_evidence import Reason

Column = tuple[str, str]  # table, column

# Points that a candidate lacks for want of a value: a name that means just about the same is not enough.
UNPROVED = -1.5


def unproved_links(
    facts: Mapping[Column, ColumnFacts], names: Names, primary_keys: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[ColumnFacts, ColumnFacts, tuple[Reason, ...]]]:
    """(child, parent, reasons) of the columns without a value that are named after a parent."""
    parents = [f for f in facts.values() if _is_key(f, names, primary_keys)]
    for child in facts.values():
        if child.n_distinct:
            continue
        usable = [p for p in parents if p is not child and (p.n_distinct or child not in parents)]
        matches = [(_match(names, child, parent), parent) for parent in usable]
        # Of equal names, a parent that has values; else the first.
        match, parent = max(matches, key=lambda m: (m[0].value, m[1].n_distinct > 0), default=(None, child))
        if match is None or match.value < SAME:
            continue
        known = f"looks like the primary key of {parent.table}"
        if not parent.n_distinct:
            known = f"is the first column of {parent.table}, which is empty"
        yield (
            child,
            parent,
            (
                Reason("unproved", UNPROVED, 1.0, f"{child} has no value: only its name speaks for it"),
                evidence.name_reason([match], 1.0),
                Reason("key", 1.0, 1.0 if parent.n_distinct else 0.0, f"{parent} {known}"),
                evidence.prior_reason(),
            ),
        )


def _match(names: Names, child: ColumnFacts, parent: ColumnFacts) -> NameMatch:
    return names.match(child.table, child.column, parent.table, parent.column)


def _is_key(f: ColumnFacts, names: Names, primary_keys: Mapping[str, tuple[str, ...]]) -> bool:
    if f.n_rows:
        return primary_keys.get(f.table) == (f.column,)
    return f.position == 0 and names.has_key_word(f.table, f.column)

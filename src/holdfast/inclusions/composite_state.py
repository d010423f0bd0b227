"""What is known of composite inclusion dependencies: plain data that a commit carries.

A *node* is an inclusion of several columns of one table in as many of another (or the same), all of whose
parts were found to hold. Nodes that hold are kept whether or not they are listed, since wider ones are built
from them; nodes that do not hold are kept with a row that shows it, so that a batch need not look again.
Reading this needs neither kernels nor Spark.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from holdfast.core.store.files import FileRef, read_file, unique_name, write_file
from holdfast.core.store.root import Root
from holdfast.core.words.dependency import Ind, Side
from holdfast.errors import DamagedFileError


@dataclass(frozen=True, slots=True, order=True)
class Composite:
    """An inclusion of several columns, column by column: the dependent ones in the order of their schema.

    >>> str(Composite(Side("lineitem", ("part", "supplier")), Side("supply", ("part", "by"))))
    'lineitem[part, supplier] in supply[part, by]'
    """

    dependent: Side
    referenced: Side

    def __str__(self) -> str:
        return f"{self.dependent} in {self.referenced}"

    def as_ind(self) -> Ind:
        """The inclusion that it is; its coverage is not kept."""
        return Ind(self.dependent, self.referenced, coverage=None)


@dataclass(frozen=True)
class Composites:
    """All nodes that were looked at: `valid` and `refuted` are disjoint, `listed` is a part of `valid`.

    >>> a = Composite(Side("t", ("a", "b")), Side("u", ("x", "y")))
    >>> b = Composite(Side("t", ("a", "b")), Side("u", ("y", "x")))
    >>> some = Composites(frozenset([a]), {b: 7}, frozenset([a]), 4, {("t", "u"): 2})
    >>> Composites.from_dict(some.to_dict()) == some
    True
    """

    valid: frozenset[Composite]
    refuted: Mapping[Composite, int]  # node -> id of a row of its dependent table that has no partner
    listed: frozenset[Composite]  # those valid whose referenced columns contain a key
    max_arity: int  # up to which it is complete, but for `stopped`; 0: nothing was looked at
    # (dependent, referenced) -> columns up to which it is complete: combinations of one more are too many.
    stopped: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @cached_property
    def by_tables(self) -> dict[tuple[str, str], list[tuple[Composite, int | None]]]:
        """Of each pair of tables its nodes in order, each with the row that refutes it or None."""
        pairs: dict[tuple[str, str], list[tuple[Composite, int | None]]] = {}
        for node in (*self.valid, *self.refuted):
            tables = node.dependent.table, node.referenced.table
            pairs.setdefault(tables, []).append((node, self.refuted.get(node)))
        for nodes in pairs.values():
            nodes.sort(key=lambda n: (n[0].dependent.columns, n[0].referenced.columns))
        return dict(sorted(pairs.items()))

    @classmethod
    def empty(cls) -> Composites:
        return cls(frozenset(), {}, frozenset(), 0)

    def without_table(self, table: str) -> Composites:
        """Those that have nothing to do with a table."""

        def untouched(node: Composite) -> bool:
            return table not in (node.dependent.table, node.referenced.table)

        return Composites(
            frozenset(filter(untouched, self.valid)),
            {node: row_id for node, row_id in self.refuted.items() if untouched(node)},
            frozenset(filter(untouched, self.listed)),
            self.max_arity,
            {pair: arity for pair, arity in self.stopped.items() if table not in pair},
        )

    def to_dict(self) -> dict[str, Any]:
        """By pair of tables, columns by number: nodes are many, and their names are long."""
        pairs = []
        for (dependent, referenced), composites in self.by_tables.items():
            left: dict[str, int] = {}
            right: dict[str, int] = {}
            nodes = [
                [
                    [left.setdefault(c, len(left)) for c in node.dependent.columns],
                    [right.setdefault(c, len(right)) for c in node.referenced.columns],
                    int(node in self.listed) if row_id is None else None,
                    row_id,
                ]
                for node, row_id in composites
            ]
            columns = [list(left), list(right)]
            pairs.append(
                {"dependent": dependent, "referenced": referenced, "columns": columns, "nodes": nodes}
            )
        stopped = [[*tables, arity] for tables, arity in sorted(self.stopped.items())]
        return {"max_arity": self.max_arity, "pairs": pairs, "stopped": stopped}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Composites:
        valid, listed, refuted = set(), set(), {}
        for part in fields["pairs"]:
            left_names, right_names = part["columns"]
            for left, right, is_listed, row_id in part["nodes"]:
                node = Composite(
                    Side(part["dependent"], tuple(left_names[i] for i in left)),
                    Side(part["referenced"], tuple(right_names[i] for i in right)),
                )
                if row_id is not None:
                    refuted[node] = row_id
                    continue
                valid.add(node)
                if is_listed:
                    listed.add(node)
        stopped = {(t, u): arity for t, u, arity in fields.get("stopped", ())}
        return cls(frozenset(valid), refuted, frozenset(listed), fields["max_arity"], stopped)


# Sets of columns of two tables that are looked at, of one size; more are no answer to anybody.
MAX_NODES = 100_000


def stopped_texts(composites: Composites, tables: Collection[str]) -> tuple[str, ...]:
    """What is not known of composite inclusions of or in some tables, in words.

    >>> stopped_texts(Composites(frozenset(), {}, frozenset(), 4, {("t", "u"): 2}), ["u"])
    ("composite inclusions of 't' in 'u' are listed up to 2 columns: more than 100,000 combinations of 3",)
    """
    texts = []
    for (t, u), arity in sorted(composites.stopped.items()):
        if t in tables or u in tables:
            listed = f"are listed up to {arity} columns" if arity > 1 else "are not listed"
            why = f"more than {MAX_NODES:,} combinations of {arity + 1}"
            texts.append(f"composite inclusions of {t!r} in {u!r} {listed}: {why}")
    return tuple(texts)


def write_composites(root: Root, folder: str, composites: Composites) -> FileRef:
    """Write them as a new file; named a cover, since past inclusions are read from it."""
    content = json.dumps(composites.to_dict(), separators=(",", ":")).encode()
    return write_file(root, unique_name(folder, "cover", ".json"), [content])


def read_composites(root: Root, ref: FileRef | None) -> Composites:
    """The composite inclusions that a state names; none if it names no file."""
    if ref is None:
        return Composites.empty()
    content = read_file(root, ref)
    try:
        return Composites.from_dict(json.loads(content))
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedFileError(
            f"the file {ref.name!r} of the workspace does not list composite inclusions: {error}. "
            "Restore it from a backup, or track its tables anew."
        ) from error

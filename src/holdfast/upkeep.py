"""What is done to a workspace without a batch: `drop` and `merge`; and what it takes on disk.

None of it looks at rows but to merge them. Each of the two is one commit, or none if there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from holdfast.commit import Committer
from holdfast.core.store import litter
from holdfast.core.store.ledger_rows import ChangeRow, CommitRow
from holdfast.core.store.tabular import Dependencies
from holdfast.kind import Query, across_of
from holdfast.kind import kinds as known_kinds
from holdfast.muting import without_table


def drop(committer: Committer, table: str) -> int:
    """Stop to track a table: the new version. What others share with it goes, as does what is muted."""
    writer, tables = committer.writer, committer.writer.tables
    base, state = tables.current(table)
    gone = [
        ChangeRow(table, d.kind, "dropped", d.to_dict(), "the table was dropped")
        for d in Dependencies(committer.readers.listed(Query(table=table, at=tables.newest())))
    ]
    others = tables.chosen(None, base)
    commits = [CommitRow(table, "drop", None, None)]
    commits += [CommitRow(s.table, "unmute", s.to_dict(), {}) for s in without_table(others, table)]
    with writer.context(base) as context:
        for kind, cls in across_of(state.kinds).items():
            after = cls.without_table(context, committer.among(kind, base)[1], table)
            commits.append(CommitRow(cls.slot, "shrink", after.fields, {"n_inds": after.n}))
        return writer.append(base, commits, gone)


def merge(committer: Committer, table: str) -> int:
    """Merge the segments of a table, and what it shares: the version after that."""
    writer, tables = committer.writer, committer.writer.tables
    base, state = tables.current(table)
    with writer.context(base) as context:
        rows = context.relation(state, state.folder, "merging")
        columns = state.indexed_columns
        merged, number = rows.tidied(state.next_number, columns, state.orders, everything=True)
        shared = []
        for kind, cls in across_of(state.kinds).items():
            after = cls.merged(context, committer.among(kind, base)[1])
            if after is not None:
                shared.append(CommitRow(cls.slot, "merge", *after))
        if merged.segments == state.segments and not shared:
            return base
        state = replace(state, segments=merged.segments, next_number=number)
        detail = {"n_segments": len(merged.segments)}
        return writer.append(base, [CommitRow(table, "merge", state.to_dict(), detail), *shared])


def sizes(committer: Committer) -> Mapping[str, int]:
    """Bytes of the live files by what they are for; `Workspace.sizes` says what the parts are."""
    tables = committer.writer.tables
    sizes = dict.fromkeys(("locators", "rows", "indexes", "kept", "values"), 0)
    at = tables.newest()
    for state in tables.chosen(None, at):
        for ref in state.segments:
            locator = 12 * ref.n_rows if state.locator else 0  # a 64-bit hash and a 32-bit position
            sizes["locators"] += locator
            sizes["rows"] += ref.file.length - locator + (ref.deletes.length if ref.deletes else 0)
            sizes["indexes"] += sum(file.length for _, file in (*ref.indexes, *ref.orders))
        sizes["kept"] += sum(file.length for file in litter.named_files(dict(state.kept)))
    for kind in across_of(known_kinds()):
        files = litter.named_files(committer.among(kind, at)[0])
        sizes["values"] += sum(file.length for file in files)
    return {**sizes, "total": sum(sizes.values())}

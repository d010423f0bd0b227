"""The life of a dependency as the page tells it: when it held, when not, which batches and rows turned it.

When it held is read from covers (`core/cover/history.py`), so it is exact for dependencies that were never
listed, too. What turned it is what the log has of that version: the change of the dependency itself with its
rows, or else changes of narrower ones, from which it followed until then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import holdfast
from holdfast.app.explorer.origins import Origins
from holdfast.core.cover.history import Life, Stretch, merged
from holdfast.core.store.ledger_rows import ChangeRow, CommitRow, change_dict
from holdfast.core.words.asking import ask_of
from holdfast.core.words.change import WitnessRow
from holdfast.core.words.dependency import Dependency, Fd, Ind, Ucc
from holdfast.core.words.predicate import Dc, same_rule
from holdfast.core.words.row_rule import RowRule
from holdfast.errors import UsageError
from holdfast.kind import dependency_from

MOST_VERSIONS = 2_000
MOST_TURNS = 200  # that are told with what the log has of them
MOST_CHANGES = 4  # of narrower dependencies
TURNED = {True: "appeared", False: "broke"}
COUNTS = ("n_inserted", "n_deleted", "n_updated", "n_rows")


def life_fields(
    ws: holdfast.Workspace,
    reader: Any,
    arguments: tuple[Any, ...],
    dependency: Dependency,
    origins: Origins,
) -> dict[str, Any]:
    """The stretches of a life, each with what began it; and the versions of the tables since it is known.

    `note` says why nothing is known. The newest stretches and versions come, and how many there are.
    """
    stretches, note = _life(ws, reader, arguments)
    tables = {dependency.table, *((dependency.referenced.table,) if isinstance(dependency, Ind) else ())}
    commits: dict[int, list[CommitRow]] = {}
    first = stretches[0].first if stretches else 0
    for commit in ws.ledger.commits():
        if commit.table in tables and commit.version >= first:
            commits.setdefault(commit.version, []).append(commit)
    versions = [[version, _at(rows[0])] for version, rows in commits.items()]
    return {
        "stretches": [_stretch_fields(ws, s, commits, dependency, origins) for s in stretches[-MOST_TURNS:]],
        "n_stretches": len(stretches),
        "versions": versions[-MOST_VERSIONS:],
        "n_versions": len(versions),
        "note": note,
    }


def life(ws: holdfast.Workspace, reader: Any, arguments: tuple[Any, ...]) -> Life:
    """When it held and when not; a condition is known by its pin, and by the profile of its column."""
    if reader in (ws.checks, ws.profiles):
        return merged(ws.checks.life(*arguments), ws.profiles.life(*arguments))
    stretches: Life = reader.life(*arguments)
    return stretches


def _life(ws: holdfast.Workspace, reader: Any, arguments: tuple[Any, ...]) -> tuple[Sequence[Stretch], str]:
    if not hasattr(reader, "life"):
        return (), "since when is not kept for this kind of dependency."
    try:
        stretches = life(ws, reader, arguments)
    except UsageError as error:  # it is not tracked, or cannot be kept
        return (), str(error)
    if not stretches:
        return (), "nobody kept watch over it. Pin it, and its life is known from then on."
    return stretches, ""


def _stretch_fields(
    ws: holdfast.Workspace,
    stretch: Stretch,
    commits: dict[int, list[CommitRow]],
    dependency: Dependency,
    origins: Origins,
) -> dict[str, Any]:
    """A stretch with the commit that began it, and the changes: its own, or those of narrower ones."""
    begun = commits.get(stretch.first, [])
    fields: dict[str, Any] = {**stretch.to_dict(), "begun": None, "changes": []}
    if not begun:
        return fields
    fields["begun"] = {
        "at": _at(begun[0]),
        "action": begun[0].action,
        "batch_id": begun[0].batch_id,
        "tables": [
            {"table": c.table, **{n: v for n, v in (c.detail or {}).items() if n in COUNTS}} for c in begun
        ],
    }
    if stretch.holds is None or begun[0].action == "track":
        return fields
    logged = ws.ledger.changes(
        dependency.table, since=stretch.first - 1, until=stretch.first, kind=dependency.kind
    )
    turns = [(c, dependency_from(c.dependency)) for c in logged if c.change == TURNED[stretch.holds]]
    same = [(c, d) for c, d in turns if _same(d, dependency)]
    others = sorted((t for t in turns if _narrower(t[1], dependency)), key=lambda t: -len(t[1].columns))
    fields["changes"] = [
        {**_change_fields(ws, change, d, origins), "itself": bool(same)}
        for change, d in same or others[:MOST_CHANGES]
    ]
    return fields


def _change_fields(
    ws: holdfast.Workspace, change: ChangeRow, dependency: Dependency, origins: Origins
) -> dict[str, Any]:
    """A change of the log; its rows say where they came from, and whether the batch brought them."""
    fields = change_dict(change)
    for row in (row for group in fields["witnesses"] for row in group):
        [origin] = origins.of(ws, dependency.table, [WitnessRow.from_dict(row).row_id])
        row |= {"origin": origin, "new": origin["version"] == change.version, "position": origin["position"]}
    return {**fields, "ask": ask_of(dependency), "text": dependency.name}


def _same(one: Dependency, other: Dependency) -> bool:
    if isinstance(one, Dc) and isinstance(other, Dc):
        return same_rule(one.predicates, other.predicates)
    if isinstance(one, RowRule) and isinstance(other, RowRule):
        return one in (other, other.mirrored)
    return one == other


def _narrower(one: Dependency, other: Dependency) -> bool:
    """Whether one of the same kind says as much with less."""
    match one, other:
        case Ucc(), Ucc():
            return {*one.columns} < {*other.columns}
        case Fd(), Fd():
            return one.rhs == other.rhs and {*one.lhs} < {*other.lhs}
        case Dc(), Dc():
            predicates = {*one.predicates}
            return predicates < {*other.predicates} or predicates < {p.mirrored for p in other.predicates}
    return False


def _at(commit: CommitRow) -> str | None:
    return None if commit.at is None else commit.at.isoformat()

"""Parts of changes, as the classes of dependencies sum them up."""

from __future__ import annotations

from holdfast.core.words.change import Summary, TableChange


def part(
    table: str,
    n_inserted: int,
    n_deleted: int,
    n_rows: int,
    n_keys: int | None,
    *,
    n_fds: int | None = None,
    n_dcs: int | None = None,
    n_row_rules: int | None = None,
    unlisted: int = 0,
) -> TableChange:
    """A table after a batch, with so many dependencies of each kind; None: not tracked."""
    counts = (
        ("ucc", n_keys, "minimal key", "n_keys"),
        ("fd", n_fds, "minimal functional dependency", "n_fds"),
        ("dc", n_dcs, "minimal denial constraint", "n_dcs"),
        ("row", n_row_rules, "row rule", "n_row_rules"),
    )
    kept = tuple(
        Summary(kind, n, f"{n:,} {noun if n == 1 else many(noun)}", {field: n})
        for kind, n, noun, field in counts
        if n is not None
    )
    return TableChange(table, n_inserted, n_deleted, n_rows, kept, unlisted)


def many(noun: str) -> str:
    return f"{noun[:-1]}ies" if noun.endswith("y") and not noun.endswith("key") else f"{noun}s"

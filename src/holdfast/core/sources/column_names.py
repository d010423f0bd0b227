"""The names of columns: what they must be, and what is made of a header that lacks or repeats some."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.sources.read_options import ReadOptions
from holdfast.errors import NOTHING_APPLIED, DuplicateColumnError, SchemaError, shorten


def check_names(names: Sequence[str], where: str, *, table: str) -> None:
    """Raise if there is no name, one is empty or one comes twice."""
    if not names:
        raise SchemaError(
            f"{where} for table {table!r} has no columns. {NOTHING_APPLIED} Next step: check how it was made."
        )
    numbers: dict[str, int] = {}
    for k, name in enumerate(names, 1):
        if name == "":
            raise SchemaError(
                f"{where} for table {table!r} has no name for its column {k} of {len(names)}. "
                f"{NOTHING_APPLIED} Next step: name the column, or leave it out."
            )
        if name in numbers:
            raise DuplicateColumnError(
                f"{where} for table {table!r} has two columns {shorten(name)}: {numbers[name]} and {k}. "
                f"{NOTHING_APPLIED} Next step: rename one of them, or leave it out."
            )
        numbers[name] = k
        if name.encode("utf-8", "ignore").decode() != name:
            raise SchemaError(
                f"{where} for table {table!r} has half of a surrogate pair, which no text may have, in the "
                f"name of its column {k}: {shorten(name)}. {NOTHING_APPLIED} Next step: rename the column."
            )


def names_of(
    fields: Sequence[str], options: ReadOptions, where: str, *, table: str
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """(names, those at the end that the header leaves out, notes) of the columns of a CSV file.

    `fields` are those of its first record.
    """
    names, trailing, notes = completed(fields)
    if not options.header:
        names, trailing, notes = tuple(f"c{i}" for i in range(len(fields))), (), ()
    if options.names:
        if len(options.names) != len(fields):
            raise SchemaError(
                f"{where} for table {table!r} has {len(fields)} columns, and {len(options.names)} names are "
                f"given. {NOTHING_APPLIED} Next step: name each column, in their order."
            )
        names, trailing, notes = options.names, (), ()
    check_names(names, where, table=table)
    return names, trailing, notes


def completed(fields: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """(names, those at the end that it leaves out, notes) of a header.

    A column without a name is called after its place, one whose name comes again after its number.

    >>> names, trailing, notes = completed(["", "a", "b", "a", ""])
    >>> names, trailing
    (('unnamed_1', 'a', 'b', 'a_2', 'unnamed_5'), ('unnamed_5',))
    >>> print(*notes, sep="; ")
    unnamed_1 has no name in the file (--names gives one); a comes again and is called a_2 (--names)
    """
    taken, seen = set(fields), set[str]()
    names: list[str] = []
    notes: list[str] = []
    n_named = next((k for k in range(len(fields), 0, -1) if fields[k - 1]), 0)
    for k, field in enumerate(fields, 1):
        name, number = field or f"unnamed_{k}", 1
        if field in seen or not field:
            while name in taken:
                number += 1
                name = f"{field or f'unnamed_{k}'}_{number}"
        if field and name != field:
            notes.append(f"{shorten(field)[1:-1]} comes again and is called {shorten(name)[1:-1]} (--names)")
        elif not field and k < n_named:
            notes.append(f"{name} has no name in the file (--names gives one)")
        seen.add(field)
        taken.add(name)
        names.append(name)
    return tuple(names), tuple(names[n_named:]) if n_named else (), tuple(notes)

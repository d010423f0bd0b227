"""holdfast: what holds in your data, kept true while the data changes.

>>> import tempfile, pyarrow as pa, holdfast
>>> ws = holdfast.open(tempfile.mkdtemp() + "/my.hold")
>>> people = pa.table({"name": ["Lee", "Payne", "Lee"], "phone": [345, 245, 234], "age": [20, 30, 30]})
>>> [d.columns for d in ws.track("people", people).changes and ws.dependencies(table="people")]
[('phone',), ('name', 'age')]
>>> change = ws.apply("people", inserts=pa.table({"name": ["Payne"], "phone": [245], "age": [31]}))
>>> [c.dependency.columns for c in change.broke]
[('phone',)]
>>> _ = ws.track_all({"calls": pa.table({"to": [345, 234]}), "book": people}, kinds=("ind",))
>>> [str(d) for d in ws.dependencies(kind="ind")]
['calls[to] in book[phone]']

A name is imported from its module when it is first used: commands that need none of it start fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.core.store.change_log import LogEntry
    from holdfast.core.store.tabular import Dependencies, Log
    from holdfast.core.words.change import Change, DependencyChange, GateError, Pin, TableChange, WitnessRow
    from holdfast.core.words.column_rule import ColumnRule
    from holdfast.core.words.dependency import Dependency, Fd, Ind, Side, Ucc
    from holdfast.core.words.predicate import Dc, Predicate
    from holdfast.core.words.reliance import Muted, Terms, Wanted
    from holdfast.core.words.row_rule import RowRule
    from holdfast.core.words.schema import Column, Schema, Type
    from holdfast.errors import (
        AbsentRowError,
        AmbiguousRowError,
        ColumnTypeError,
        ConflictError,
        DamagedFileError,
        DuplicateColumnError,
        EngineError,
        HoldfastError,
        SchemaError,
        SourceError,
        StateFormatError,
        StoreError,
        TableExistsError,
        UnknownColumnError,
        UnknownTableError,
        UsageError,
        WorkspaceError,
    )
    from holdfast.pinning import PinChange
    from holdfast.workspace import Workspace, open

__version__ = "0.1.0"
__all__ = [
    "AbsentRowError",
    "AmbiguousRowError",
    "Change",
    "Column",
    "ColumnRule",
    "ColumnTypeError",
    "ConflictError",
    "DamagedFileError",
    "Dc",
    "Dependencies",
    "Dependency",
    "DependencyChange",
    "DuplicateColumnError",
    "EngineError",
    "Fd",
    "GateError",
    "HoldfastError",
    "Ind",
    "Log",
    "LogEntry",
    "Muted",
    "Pin",
    "PinChange",
    "Predicate",
    "RowRule",
    "Schema",
    "SchemaError",
    "Side",
    "SourceError",
    "StateFormatError",
    "StoreError",
    "TableChange",
    "TableExistsError",
    "Terms",
    "Type",
    "Ucc",
    "UnknownColumnError",
    "UnknownTableError",
    "UsageError",
    "Wanted",
    "WitnessRow",
    "Workspace",
    "WorkspaceError",
    "__version__",
    "open",
]

_MODULES = {
    "core.store.change_log": ("LogEntry",),
    "core.store.tabular": ("Dependencies", "Log"),
    "core.words.change": ("Change", "DependencyChange", "GateError", "Pin", "TableChange", "WitnessRow"),
    "core.words.column_rule": ("ColumnRule",),
    "core.words.dependency": ("Dependency", "Fd", "Ind", "Side", "Ucc"),
    "core.words.predicate": ("Dc", "Predicate"),
    "core.words.reliance": ("Muted", "Terms", "Wanted"),
    "core.words.row_rule": ("RowRule",),
    "core.words.schema": ("Column", "Schema", "Type"),
    "pinning": ("PinChange",),
    "workspace": ("Workspace", "open"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name in ("errors", "kind", "workspace"):
        return import_module(f"{__name__}.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_MODULE_OF.get(name, 'errors')}")
    globals()[name] = value = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

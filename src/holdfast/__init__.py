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
    from holdfast.core.cover.history import Life, Spell, Stretch
    from holdfast.core.cover.violating_rows import Removal, ViolatingRows
    from holdfast.core.store.change_log import LogEntry
    from holdfast.core.store.tabular import Dependencies, Log, MutedList, PinList
    from holdfast.core.words.change import Change, DependencyChange, GateError, Pin, TableChange, WitnessRow
    from holdfast.core.words.column_rule import ColumnRule
    from holdfast.core.words.condition import Condition
    from holdfast.core.words.dependency import Dependency, Fd, Ind, Side, Ucc
    from holdfast.core.words.display import TableMap
    from holdfast.core.words.predicate import Dc, Predicate, PredicateSpace
    from holdfast.core.words.reliance import Muted, Terms, Wanted
    from holdfast.core.words.row_rule import RowRule
    from holdfast.core.words.schema import Column, Schema, Type
    from holdfast.denial.check_reading import CheckReader
    from holdfast.denial.dc_explanation import DcExplanation, DcList, IndexReport, RowExplanation
    from holdfast.denial.dc_ranking import DcRanking, RankedRule
    from holdfast.denial.dc_reading import DcReader
    from holdfast.denial.row_reading import RowRuleReader
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
    from holdfast.functional.best_fds import BestFds
    from holdfast.functional.fd_explanation import FdExplanation
    from holdfast.functional.fd_past import FdHistory
    from holdfast.functional.fd_ranking import FdRanking, RankedFd
    from holdfast.functional.fd_reading import FdReader
    from holdfast.functional.key_reading import KeyExplanation, KeyReader
    from holdfast.functional.normal_forms.proposal import Decomposition
    from holdfast.functional.repairs import Repairs
    from holdfast.inclusions.ind_explanation import IndExplanation
    from holdfast.inclusions.ind_reading import IndReader
    from holdfast.inclusions.links.scored import Link, Linkage
    from holdfast.kind import Explained, Explanation
    from holdfast.lakes.answers import (
        LakeChange,
        LakeClusters,
        LakeComponents,
        LakeGraph,
        LakeInd,
        LakeMatches,
        LakeSummary,
        LakeTable,
        SearchResult,
    )
    from holdfast.lakes.lake_keeper import LakeKeeper
    from holdfast.lakes.reader.joins import LakeJoins
    from holdfast.lakes.reader.lake_reader import LakeReader
    from holdfast.lakes.reader.overlaps import LakeOverlaps
    from holdfast.pinning import PinChange
    from holdfast.profile.column_profile import ColumnProfile
    from holdfast.profile.profile_reading import ProfileReader, Suggestion, Suggestions, TableProfile
    from holdfast.workspace import Workspace, open

__version__ = "0.1.0"
__all__ = [
    "AbsentRowError",
    "AmbiguousRowError",
    "BestFds",
    "Change",
    "CheckReader",
    "Column",
    "ColumnProfile",
    "ColumnRule",
    "ColumnTypeError",
    "Condition",
    "ConflictError",
    "DamagedFileError",
    "Dc",
    "DcExplanation",
    "DcList",
    "DcRanking",
    "DcReader",
    "Decomposition",
    "Dependencies",
    "Dependency",
    "DependencyChange",
    "DuplicateColumnError",
    "EngineError",
    "Explained",
    "Explanation",
    "Fd",
    "FdExplanation",
    "FdHistory",
    "FdRanking",
    "FdReader",
    "GateError",
    "HoldfastError",
    "Ind",
    "IndExplanation",
    "IndReader",
    "IndexReport",
    "KeyExplanation",
    "KeyReader",
    "LakeChange",
    "LakeClusters",
    "LakeComponents",
    "LakeGraph",
    "LakeInd",
    "LakeJoins",
    "LakeKeeper",
    "LakeMatches",
    "LakeOverlaps",
    "LakeReader",
    "LakeSummary",
    "LakeTable",
    "Life",
    "Link",
    "Linkage",
    "Log",
    "LogEntry",
    "Muted",
    "MutedList",
    "Pin",
    "PinChange",
    "PinList",
    "Predicate",
    "PredicateSpace",
    "ProfileReader",
    "RankedFd",
    "RankedRule",
    "Removal",
    "Repairs",
    "RowExplanation",
    "RowRule",
    "RowRuleReader",
    "Schema",
    "SchemaError",
    "SearchResult",
    "Side",
    "SourceError",
    "Spell",
    "StateFormatError",
    "StoreError",
    "Stretch",
    "Suggestion",
    "Suggestions",
    "TableChange",
    "TableExistsError",
    "TableMap",
    "TableProfile",
    "Terms",
    "Type",
    "Ucc",
    "UnknownColumnError",
    "UnknownTableError",
    "UsageError",
    "ViolatingRows",
    "Wanted",
    "WitnessRow",
    "Workspace",
    "WorkspaceError",
    "__version__",
    "open",
]

_MODULES = {
    "core.cover.history": ("Life", "Spell", "Stretch"),
    "core.cover.violating_rows": ("Removal", "ViolatingRows"),
    "core.store.change_log": ("LogEntry",),
    "core.store.tabular": ("Dependencies", "Log", "MutedList", "PinList"),
    "core.words.change": ("Change", "DependencyChange", "GateError", "Pin", "TableChange", "WitnessRow"),
    "core.words.column_rule": ("ColumnRule",),
    "core.words.condition": ("Condition",),
    "core.words.display": ("TableMap",),
    "core.words.dependency": ("Dependency", "Fd", "Ind", "Side", "Ucc"),
    "core.words.predicate": ("Dc", "Predicate", "PredicateSpace"),
    "core.words.reliance": ("Muted", "Terms", "Wanted"),
    "core.words.row_rule": ("RowRule",),
    "core.words.schema": ("Column", "Schema", "Type"),
    "denial.check_reading": ("CheckReader",),
    "denial.dc_explanation": ("DcExplanation", "DcList", "IndexReport", "RowExplanation"),
    "denial.dc_ranking": ("DcRanking", "RankedRule"),
    "denial.dc_reading": ("DcReader",),
    "denial.row_reading": ("RowRuleReader",),
    "functional.fd_explanation": ("FdExplanation",),
    "functional.fd_past": ("FdHistory",),
    "functional.best_fds": ("BestFds",),
    "functional.fd_ranking": ("FdRanking", "RankedFd"),
    "functional.fd_reading": ("FdReader",),
    "functional.key_reading": ("KeyExplanation", "KeyReader"),
    "functional.normal_forms.proposal": ("Decomposition",),
    "functional.repairs": ("Repairs",),
    "inclusions.ind_explanation": ("IndExplanation",),
    "inclusions.ind_reading": ("IndReader",),
    "inclusions.links.scored": ("Link", "Linkage"),
    "kind": ("Explained", "Explanation"),
    "lakes.answers": (
        "LakeChange",
        "LakeClusters",
        "LakeComponents",
        "LakeGraph",
        "LakeInd",
        "LakeMatches",
        "LakeSummary",
        "LakeTable",
        "SearchResult",
    ),
    "lakes.lake_keeper": ("LakeKeeper",),
    "lakes.reader.joins": ("LakeJoins",),
    "lakes.reader.lake_reader": ("LakeReader",),
    "lakes.reader.overlaps": ("LakeOverlaps",),
    "pinning": ("PinChange",),
    "profile.column_profile": ("ColumnProfile",),
    "profile.profile_reading": ("ProfileReader", "Suggestion", "Suggestions", "TableProfile"),
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

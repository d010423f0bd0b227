"""Options that several classes of dependencies take: checked once, with one wording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from holdfast.core.words.schema import Nulls
from holdfast.errors import UsageError, shorten

EvidenceKind = Literal["counted", "witnessed"]


class TrackOptions(TypedDict, total=False):
    """How tables are tracked; `Workspace.track_all` says what each of them means."""

    kinds: Sequence[str]
    nulls: Nulls
    row_key: Sequence[str]
    append_only: bool
    options: Mapping[str, Any] | None
    max_columns: int | None
    as_text: bool
    columns: Sequence[str] | None
    exclude: Sequence[str]
    max_arity: int | None
    max_lhs: int | None
    max_error: float | None
    evidence: EvidenceKind | None
    max_predicates: int | None
    operators: Sequence[str] | None
    within_columns: bool
    dc_seconds: float | None
    max_dcs: int | None


class BatchParts(TypedDict, total=False):
    """What a batch does to a table; `Workspace.apply` says what each of them means."""

    inserts: Any
    deletes: Any
    updates: Any
    before: Any
    after: Any
    upserts: Any
    snapshot: Any
    allow_empty: bool


def check_share(max_error: float) -> None:
    """Up to which error something is listed."""
    if not 0 <= max_error <= 1:
        raise UsageError(f"max_error is {max_error}; expected a share from 0 to 1, such as 0.02.")


def max_error_of(options: Mapping[str, Any]) -> float:
    """The share up to which what almost holds is kept; 0 where it is not asked for."""
    max_error = options.get("max_error")
    if max_error is not None and not 0 < max_error < 1:
        raise UsageError(f"max_error is {max_error}; expected a share between 0 and 1, such as 0.01.")
    return max_error or 0.0


def evidence_of(options: Mapping[str, Any]) -> EvidenceKind | None:
    """What is to be kept of the rows; None where that is left to a cost model."""
    evidence: EvidenceKind | None = options.get("evidence")
    if evidence not in (None, "counted", "witnessed"):
        raise UsageError(f"evidence is {shorten(evidence)}; expected counted or witnessed.")
    if evidence == "witnessed" and max_error_of(options):
        raise UsageError(
            "errors are known from counted evidence only: witnessed evidence keeps some pairs of rows, not "
            "their numbers. Leave out max_error, or use evidence counted."
        )
    return evidence


def at_least_one(options: Mapping[str, Any], name: str, what: str = "") -> int:
    """A bound; 0 where none is asked for."""
    bound = options.get(name)
    if bound is not None and bound < 1:
        raise UsageError(f"{name} is {bound}; expected at least 1{what}.")
    return bound or 0

"""What normalisation proposes: tables, with the reasons for them and what they no longer guard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from holdfast.core.words.codec import Coded
from holdfast.core.words.dependency import Fd

Form = Literal["bcnf", "3nf"]
FORMS: tuple[Form, ...] = get_args(Form)
Arrow = tuple[frozenset[str], str]  # left-hand side, right-hand side
Why = Literal["constant", "nulls", "wide", "unranked", "weak"]


@dataclass(frozen=True, slots=True)
class Reference(Coded):
    """A foreign key: these columns are a key, of the same names, of another proposed table."""

    columns: tuple[str, ...]
    table: str


@dataclass(frozen=True, slots=True)
class Part(Coded):
    """A proposed table: the distinct rows of some columns.

    An empty primary key says that there is one row at most. `more_keys`: there may be keys that are not
    listed. `fds` led to the table; without any, it keeps what the others leave. `score` is the best of
    theirs. `removed` counts the values that are not repeated any more, None if that is not known.
    """

    name: str
    columns: tuple[str, ...]
    primary_key: tuple[str, ...]
    other_keys: tuple[tuple[str, ...], ...]
    more_keys: bool
    references: tuple[Reference, ...]
    fds: tuple[Fd, ...]
    score: float | None
    removed: int | None
    reason: str

    @property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.primary_key, *self.other_keys)


@dataclass(frozen=True, slots=True)
class SetAside(Coded):
    """An FD that does not follow from a key and was not used, and why."""

    fd: Fd
    score: float | None
    why: Why
    text: str


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Proposed tables, the main one first, and how they came about.

    The natural join of the parts is the table without its duplicates. `lost` are FDs used, `lost_keys` keys
    of the table, that no key of a part (and no FD inside of one) guards any more. `inside` are FDs used that
    are in a part without following from its keys: none in BCNF. `n_from_keys` of the `n_fds` follow from
    keys. `bound` is the widest left-hand side that was looked for, None if all were.
    """

    table: str
    form: Form
    parts: tuple[Part, ...]
    lost: tuple[Fd, ...]
    lost_keys: tuple[tuple[str, ...], ...]
    inside: tuple[Fd, ...]
    set_aside: tuple[SetAside, ...]
    steps: tuple[str, ...]
    n_fds: int
    n_used: int
    n_from_keys: int
    has_duplicates: bool
    bound: int | None

    @property
    def splits(self) -> bool:
        """Whether there is anything to do."""
        return len(self.parts) > 1

    @property
    def preserving(self) -> bool:
        return not self.lost and not self.lost_keys

    @property
    def complete(self) -> bool:
        """Whether the normal form holds of the data, not only with respect to the FDs used."""
        return not self.set_aside and self.bound is None

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "form": self.form,
            "complete": self.complete,
            "preserving": self.preserving,
            "has_duplicates": self.has_duplicates,
            "max_lhs": self.bound,
            "n_fds": self.n_fds,
            "n_used": self.n_used,
            "n_from_keys": self.n_from_keys,
            "parts": [part.to_dict() for part in self.parts],
            "lost": [fd.to_dict() for fd in self.lost],
            "lost_keys": [list(key) for key in self.lost_keys],
            "inside": [fd.to_dict() for fd in self.inside],
            "set_aside": [aside.to_dict() for aside in self.set_aside],
            "steps": list(self.steps),
        }

"""What a lake of tables tells: its tables and columns, the inclusions between them, its join graph.

Tables and columns have numbers that are never used again. `to_dict` gives plain JSON, the same on the page
and in `--json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.core.words.codec import Coded

BAD_LISTED = 100  # files that were left out, by name; all are counted


# -- inclusions --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class LakeSide(Coded):
    """A column of a lake, with the names that people know it by.

    >>> str(LakeSide(7, 2, "sales/orders.csv", "customer"))
    'sales/orders.csv[customer]'
    """

    id: int
    table_id: int
    table: str
    column: str

    def __str__(self) -> str:
        return f"{self.table}[{self.column}]"


@dataclass(frozen=True, slots=True)
class LakeInd(Coded):
    """An inclusion between two columns: the values of the dependent one occur in the referenced one.

    `shared` counts the values that both have; it is `n_dependent` unless the lake keeps partial inclusions.
    `coverage` and `containment` are its shares in the referenced and in the dependent column, `uniqueness` is
    the share of distinct values among the referenced column's rows, `distinctive` says how rare and how many
    the dependent column's values are. The score, 0 to 1, weighs all four: how likely the columns join.
    `samples` are a few shared values, None where they were not asked for.
    """

    dependent: LakeSide
    referenced: LakeSide
    shared: int
    n_dependent: int
    n_referenced: int
    coverage: float
    containment: float
    uniqueness: float
    distinctive: float
    score: float
    samples: tuple[str, ...] | None = field(default=None, compare=False)

    @property
    def missing(self) -> int:
        """How many values of the dependent column the referenced one lacks."""
        return self.n_dependent - self.shared

    def __str__(self) -> str:
        return f"{self.dependent} in {self.referenced}"

    def to_dict(self) -> dict[str, Any]:
        fields = Coded.to_dict(self)
        if self.samples is None:
            del fields["samples"]
        return fields


@dataclass(frozen=True, slots=True)
class LakeMatches:
    """Two columns side by side: the first texts that both have, that only the dependent one has, and that
    only the referenced one has. The columns need not be an inclusion of the lake."""

    ind: LakeInd
    matches: tuple[str, ...]
    missing: tuple[str, ...]
    others: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.ind.to_dict(),
            "matches": list(self.matches),
            "missing": list(self.missing),
            "others": list(self.others),
        }


# -- overlaps ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskedColumn(Coded):
    """A column that a lake was asked about, of a file or of one of its tables."""

    position: int  # in its table, from 0
    column: str
    n_values: int  # distinct


@dataclass(frozen=True, slots=True)
class LakeOverlap(Coded):
    """Values that a column shares with one of the lake, contained or not.

    `containment` and `coverage` are their share in the column that was asked about and in the other one, as
    they are of an inclusion; `jaccard` is their share among all values of both.
    """

    asked: AskedColumn
    other: LakeSide
    shared: int
    n_other: int

    @property
    def containment(self) -> float:
        return self.shared / self.asked.n_values

    @property
    def coverage(self) -> float:
        return self.shared / self.n_other

    @property
    def jaccard(self) -> float:
        return self.shared / (self.asked.n_values + self.n_other - self.shared)

    def __str__(self) -> str:
        return f"{self.asked.column} with {self.other}"

    def to_dict(self) -> dict[str, Any]:
        shares = {name: getattr(self, name) for name in ("containment", "coverage", "jaccard")}
        return {**Coded.to_dict(self), **shares}


# -- tables ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LakeColumn(Coded):
    """A column: how many values, and what its filters know of it."""

    id: int
    name: str
    n_values: int  # distinct
    n_rows: int
    n_missing: int
    unique: bool
    integer: bool
    null: bool
    samples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LakeTable(Coded):
    """A table: its columns, its first rows (a missing cell is None), and its inclusions, best first.

    `component` is -1 for a table that is linked to no other one, `cluster` None where its component has no
    clusters; `n_inds` counts all of its inclusions, of which `inds` may list only the best.
    """

    id: int
    name: str
    source: str
    n_rows: int
    component: int
    cluster: int | None
    columns: tuple[LakeColumn, ...]
    rows: tuple[tuple[str | None, ...], ...]
    inds: tuple[LakeInd, ...]
    n_inds: int


@dataclass(frozen=True, slots=True)
class LakeSummary(Coded):
    """The lake as a whole, and what each of its filters keeps out."""

    version: int
    n_tables: int
    n_columns: int
    n_inds: int
    n_components: int
    n_isolated: int
    filters: tuple[str, ...]
    removed: Mapping[str, int]


# -- the join graph ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LakeComponent(Coded):
    """Tables that hang together, as a circle of the overview; it bears the name of its best linked table."""

    id: int
    n_tables: int
    n_inds: int
    name: str
    x: float
    y: float
    r: float


@dataclass(frozen=True, slots=True)
class LakeComponents(Coded):
    """The largest components, and how many more there are."""

    components: tuple[LakeComponent, ...]
    n_more: int


@dataclass(frozen=True, slots=True)
class LakeNodes(Coded):
    """Tables as points: lists of one length."""

    id: list[int]
    label: list[str]
    x: list[float]
    y: list[float]
    degree: list[int]


@dataclass(frozen=True, slots=True)
class LakeEdges:
    """Links between tables: lists of one length. `start` and `end` are positions among the nodes."""

    start: list[int]
    end: list[int]
    score: list[float]
    n_inds: list[int]

    def to_dict(self) -> dict[str, Any]:
        return {"from": self.start, "to": self.end, "score": self.score, "n_inds": self.n_inds}


@dataclass(frozen=True, slots=True)
class LakeGraph(Coded):
    """The tables of a component, or of one cluster of it, and their links, best first.

    `n_edges` counts all links among the nodes, of which `edges` may list only the best.
    """

    id: int
    cluster: int | None
    name: str
    n_tables: int
    nodes: LakeNodes
    edges: LakeEdges
    n_edges: int

    def to_dict(self) -> dict[str, Any]:
        return {**Coded.to_dict(self), "clustered": False}


@dataclass(frozen=True, slots=True)
class LakeCluster(Coded):
    """Tables of a large component that are linked closely, as a circle."""

    id: int
    n_tables: int
    name: str
    x: float
    y: float
    r: float


@dataclass(frozen=True, slots=True)
class LakeClusters(Coded):
    """A component that is too large to draw at once: its clusters, and how many links lie between two.

    A link names positions in `clusters`.
    """

    id: int
    name: str
    n_tables: int
    clusters: tuple[LakeCluster, ...]
    links: tuple[tuple[int, int, int], ...]

    def to_dict(self) -> dict[str, Any]:
        return {**Coded.to_dict(self), "clustered": True}


# -- search ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FoundTable(Coded):
    id: int
    name: str
    n_rows: int


@dataclass(frozen=True, slots=True)
class FoundColumn(Coded):
    id: int
    name: str
    table_id: int
    table: str


@dataclass(frozen=True, slots=True)
class FoundValue(Coded):
    """A text as the lake compares it, and the first columns that have it."""

    value: str
    n_columns: int
    columns: tuple[FoundColumn, ...]


@dataclass(frozen=True, slots=True)
class SearchResult(Coded):
    """What a text was found in; `more` says that a list was cut."""

    tables: tuple[FoundTable, ...] = ()
    columns: tuple[FoundColumn, ...] = ()
    values: tuple[FoundValue, ...] = ()
    more: bool = False


# -- changes -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LakeChange(Coded):
    """What a `link` did, and how the lake stands now.

    `added`, `replaced` and `dropped` count tables; `known` those that were left out, since the lake has
    tables of their names. `bad` lists the first files that were left out, since they cannot be read or are
    not to be read, and why; `n_bad` counts them all. `removed` says how many inclusions each filter keeps out
    of the whole lake.
    """

    action: str  # "link", "add", "replace" or "drop"
    version: int
    n_tables: int
    n_columns: int
    n_inds: int
    n_components: int
    n_isolated: int
    added: int = 0
    replaced: int = 0
    dropped: int = 0
    known: int = 0
    n_bad: int = 0
    bad: tuple[tuple[str, str], ...] = ()  # (source, reason)
    removed: Mapping[str, int] = field(default_factory=dict)
    phases: tuple[tuple[str, float], ...] = ()  # (name, seconds)
    proposer: str = ""  # "signatures" or "index"; empty if there was nothing to match
    elapsed_s: float = 0.0
    filters: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        bad = [{"source": source, "reason": reason} for source, reason in self.bad]
        phases = [{"name": name, "seconds": seconds} for name, seconds in self.phases]
        return {**Coded.to_dict(self), "bad": bad, "phases": phases}

"""What dependencies mean at a version, of all kinds: the one place that every report takes its order from.

| kind | role | score |
|---|---|---|
| all | pinned, if somebody relies on it | as below |
| inclusion | foreign key, as `links` would choose; chance, if unlikely and of integers | of the link |
| key | primary key, if it is the best one of its table; chance, below `CHANCE` | `KeyScores` |
| functional dependency | chance, below `CHANCE` | the bound of `fd_score`; 0 with a key on the left |
| denial constraint | | by its form, `rule_score` |
| row rule | chance, if it says little | |
| column rule | chance, below `CHANCE` | as its profile says |
| of a class from elsewhere | | |

All of it is known without a look at rows: from schemas, counts, names, and the minimal keys. Cost: what is
said of `References` for inclusions, some microseconds for each dependency of another kind, and for keys that
of the minimal keys of their tables that have at most WIDEST columns. `core/words/ranks.py` says what follows
from roles and scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.core.rows.table_state import TableState
from holdfast.core.words.change import DependencyChange, Pin
from holdfast.core.words.column_rule import ColumnRule
from holdfast.core.words.condition import Condition
from holdfast.core.words.dependency import Dependency, Fd, Ind, Ucc
from holdfast.core.words.key_score import KeyScores
from holdfast.core.words.predicate import Dc
from holdfast.core.words.ranks import Rank, best_first, in_order
from holdfast.core.words.row_rule import RowRule
from holdfast.denial.rule_score import dc_score, says_little
from holdfast.functional.fd_score import score_bound

if TYPE_CHECKING:
    from holdfast.inclusions.links.references import References

# A key or functional dependency with less looks like chance.
CHANCE = 0.15
# Keys of more columns are not weighed as primary keys: hardly one was meant, and wide tables have thousands.
WIDEST = 4
# Of what nothing is known, and of row rules that say something.
USUAL = 0.5

Combinations = tuple[tuple[str, ...], ...]
Anything = TypeVar("Anything", bound=Dependency)


class TableOrder:
    """What the keys and functional dependencies of one table mean."""

    def __init__(self, state: TableState, keys: Combinations | None) -> None:
        facts = state.column_facts()
        self.key_scores, self.n_rows = KeyScores(facts), state.n_rows
        self.distinct = {f.column: f.n_distinct for f in facts}
        self._keys = [key for key in keys or () if len(key) <= WIDEST]

    @cached_property
    def primary_key(self) -> tuple[str, ...] | None:
        """The minimal key that looks like the primary key."""
        return self.key_scores.primary(self._keys)

    @cached_property
    def _left_sides(self) -> frozenset[tuple[str, ...]]:
        return frozenset(self._keys)

    def key(self, columns: tuple[str, ...]) -> Rank:
        score = self.key_scores(columns)
        if columns == self.primary_key:
            return Rank("primary key", score)
        return _unless_chance(score)

    def fd(self, fd: Fd) -> Rank:
        if fd.lhs in self._left_sides:  # told with its key, and no more than that one
            return _unless_chance(self.key_scores(fd.lhs))._replace(score=0.0)
        return _unless_chance(score_bound(fd, self.n_rows, self.distinct))


def _unless_chance(score: float) -> Rank:
    return Rank("chance" if score < CHANCE else "dependency", score)


@dataclass
class Order:
    """What dependencies mean at a version: `state` and `keys` tell of a table by its name."""

    state: Callable[[str], TableState]
    keys: Callable[[str], Combinations | None]
    pins: Iterable[Pin] = ()
    references: Callable[[], References | None] = lambda: None
    _tables: dict[str, TableOrder] = field(default_factory=dict, init=False)

    def ranks(self, dependencies: Sequence[Dependency]) -> list[Rank]:
        """The rank of each."""
        inds = [d for d in dependencies if isinstance(d, Ind)]
        references = self.references() if inds else None
        of_inds = iter([Rank()] * len(inds) if references is None else references.ranks(inds))
        ranks = [next(of_inds) if isinstance(d, Ind) else self._rank(d) for d in dependencies]
        pinned = {identity(pin) for pin in self.pins}
        return [
            rank._replace(role="pinned") if pinned and identity(d) in pinned else rank
            for d, rank in zip(dependencies, ranks, strict=True)
        ]

    def sorted(self, dependencies: Sequence[Anything]) -> list[Anything]:
        """Dependencies as they are told; those of one place stay in the order given."""
        return [dependencies[i] for i in best_first(self.ranks(dependencies))]

    def table(self, name: str) -> TableOrder:
        if name not in self._tables:
            self._tables[name] = TableOrder(self.state(name), self.keys(name))
        return self._tables[name]

    def _rank(self, dependency: Dependency) -> Rank:
        match dependency:
            case Ucc():
                return self.table(dependency.table).key(dependency.columns)
            case Fd():
                return self.table(dependency.table).fd(dependency)
            case Dc():
                return Rank("dependency", dc_score(dependency))
            case RowRule():
                return Rank("chance", 0.0) if says_little(dependency) else Rank("dependency", USUAL)
            case ColumnRule():
                return _unless_chance(dependency.score)
            case _:
                return Rank("dependency", USUAL)


def ranked(changes: Sequence[DependencyChange], before: Order, after: Order) -> tuple[DependencyChange, ...]:
    """Changes with what they mean, as they are told.

    What came is weighed by the tables after a batch, what went by those before it.
    """
    came = [c.event in ("appeared", "within") for c in changes]
    ranks: dict[bool, Any] = {}
    for is_new, order in ((True, after), (False, before)):
        ranks[is_new] = iter(
            order.ranks([c.dependency for c, new in zip(changes, came, strict=True) if new == is_new])
        )
    placed = [(c, next(ranks[is_new])) for c, is_new in zip(changes, came, strict=True)]
    return in_order(replace(c, role=rank.role, score=rank.score) for c, rank in placed)


def identity(what: Pin | Dependency) -> tuple[Any, ...]:
    """What makes a pin and a dependency the same."""
    match what:
        case Pin(rule=Dc() as rule):
            return "dc", rule.table, frozenset(rule.predicates)
        case Dc():
            return "dc", what.table, frozenset(what.predicates)
        case Pin(condition=Condition(formula=formula)):
            return "check", what.table, formula
        case Condition(formula=formula) | ColumnRule(formula=formula):
            return "check", what.table, formula
        case Pin(referenced=referenced):
            return what.kind, what.table, what.columns, referenced
        case Ind():
            return "ind", what.table, what.columns, what.referenced
        case _:
            return what.kind, what.table, what.columns, None

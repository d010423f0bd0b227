"""Which of some inclusions are foreign keys, as far as counts and names tell: for reports, that read no rows.

The choice is that of `links`, among the inclusions of the same dependent columns, and those that lead back to
them: only these can be rivals. What tells copies from references is not among them, so several columns are a
foreign key only if they refer to what looks like the primary key.
Ranges of values and lengths of texts are not known here, so they do not count. Of the foreign keys of
Chinook, Northwind and Sakila `links` proposes the same with and without them (`benchmarks/foreign_keys.py`).

Cost: 0.15 ms for each inclusion in a key of these columns, MOST of them at most; nothing but counts is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from holdfast.core.rows.table_state import TableState
from holdfast.core.words.column_facts import ColumnFacts
from holdfast.core.words.dependency import Ind
from holdfast.core.words.ranks import Rank
from holdfast.inclusions.generator import GeneratorState
from holdfast.inclusions.ind_list import inds_of
from holdfast.inclusions.links.scored import Link, Linkage, rank_links
from holdfast.inclusions.links.unmuted import unmuted_inds, unmuted_keys
from holdfast.inclusions.pair_counts import PairCounts, pair_ids

# Inclusions in keys that are weighed at most: those that cover most of their key.
MOST = 500
# Of integers in integers, a link with a lower score looks like chance; so does what is included in no key.
UNLIKELY = 0.2

Column = tuple[str, str]
Combinations = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class References:
    """The inclusions of a version, to be weighed: `table` and `keys` tell of a table by its name."""

    state: GeneratorState
    pairs: PairCounts
    table: Callable[[str], TableState]
    keys: Callable[[str], Combinations | None]

    def ranks(self, inds: Sequence[Ind]) -> list[Rank]:
        """What each of some inclusions means; they need not hold."""
        facts = {(f.table, f.column): f for f in self._facts()}
        linkage = self._linkage(inds, facts)
        links = {Ind(link.dependent, link.referenced): link for link in linkage.links}
        return [self._rank(ind, links.get(ind), facts, linkage.primary_keys) for ind in inds]

    def lost(self, near: Sequence[Ind], gone: Sequence[Ind]) -> set[Ind]:
        """Of what held once, given as if it did still, what was a foreign key, and is missed as one; `near`:
        what holds of the same columns, or almost does."""
        facts = {(f.table, f.column): f for f in self._facts()}
        now, once = self._linkage(near, facts), self._linkage([*near, *gone], facts)
        return {Ind(link.dependent, link.referenced) for link in now.lost_links(once, {*gone})}

    def _linkage(self, inds: Sequence[Ind], facts: Mapping[Column, ColumnFacts]) -> Linkage:
        keys = {
            t.table: unmuted_keys(self.table(t.table), k)
            for t in self.state.tables
            if (k := self.keys(t.table)) is not None
        }
        candidates = self._candidates(inds, facts, keys)
        return rank_links(list(facts.values()), keys, candidates, with_unproved=False)

    def _rank(
        self,
        ind: Ind,
        link: Link | None,
        facts: Mapping[Column, ColumnFacts],
        primary_keys: Mapping[str, tuple[str, ...]],
    ) -> Rank:
        to = ind.referenced
        telling = len(to.columns) == 1 or {*to.columns} == {*primary_keys.get(to.table, ())}
        if link is not None and link.chosen and telling:
            return Rank("foreign key", link.score)
        sides = [(s.table, s.columns) for s in (ind.dependent, ind.referenced)]
        columns = [facts.get((table, c)) for table, names in sides for c in names]
        numbers = all(f is not None and f.domain == "number" and f.integers for f in columns)
        if link is not None:
            return Rank("chance" if numbers and link.score < UNLIKELY else "dependency", link.score)
        return Rank("chance" if numbers else "dependency", UNLIKELY * min(1.0, ind.coverage or 0.0))

    def _facts(self) -> list[ColumnFacts]:
        """Facts about the columns that take part; the counts of their values are exact."""
        distinct, rows = self.pairs.of_columns(self.state.next_id)
        facts = []
        for table in self.state.tables:
            of_column = {f.column: f for f in self.table(table.table).column_facts(as_text=table.as_text)}
            for i, name in zip(table.ids, table.columns, strict=True):
                n_values = None if table.append_only else int(rows[i])
                facts.append(replace(of_column[name], n_values=n_values, n_distinct=int(distinct[i])))
        return facts

    def _candidates(
        self, inds: Sequence[Ind], facts: Mapping[Column, ColumnFacts], keys: Mapping[str, Combinations]
    ) -> list[Ind]:
        """The inclusions, and all that hold of the same columns: in keys, the best covered first."""
        ids = {name: i for i, name in self.state.names().items()}
        dependents = {(ind.dependent.table, c) for ind in inds for c in ind.dependent.columns}
        some = self.pairs.of_left(np.array(sorted(ids[name] for name in dependents if name in ids), np.int64))
        distinct, _ = self.pairs.of_columns(self.state.next_id)
        holds = (some.values == distinct[some.left]) & (some.left != some.right)
        left, right = some.left[holds], some.right[holds]
        back = pair_ids(right, left)
        back = back[self.pairs.at(back)[0] == distinct[right]]
        holding = np.concatenate([some.pairs[holds], back])
        # As they are here: what broke is given with what it misses now.
        every = unmuted_inds([*inds_of(self.state, self.pairs, holding), *inds], self.table)
        single = {(table, k[0]) for table, ks in keys.items() for k in ks if len(k) == 1}
        single |= {column for column, f in facts.items() if f.is_unique}
        in_keys = [
            ind
            for ind in every
            if len(ind.referenced.columns) > 1 or (ind.referenced.table, *ind.referenced.columns) in single
        ]
        return sorted(in_keys, key=lambda ind: -min(1.0, ind.coverage or 0.0))[:MOST]

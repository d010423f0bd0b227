"""The rules of a table that people should read, best first, with reasons: few of very many constraints.

A table has tens of thousands of general DCs. Nearly all are accidents of the rows at hand, and of the rest
most say again what something simpler says. So three questions are asked, and a list ends where the rules end.

1. *Is it a rule, or an accident?* Chance would have violated a rule in some rows, an accident hardly
   (`dc_chance.py`). Rules about each row (`row_rules.py`) belong to the same list: were their columns
   shuffled (`shuffling.py`), a rule would be violated by log(6 * pairs of columns) rows at
   least, the logarithm of the number of rules that there might have been.

2. *Does it follow?* What the rows alone imply (`circular_dcs.py`), then what other rules do, together with
   these and with the columns that have no NULL (`forms.implied`), is folded: it takes no place, and is
   counted by the sort of rule that implied it at last. Nothing is lost: two rows that keep the rules about
   rows, and the rules that are listed, cannot violate what is folded.

3. *Which one first?* The score, in 0..1: succinctness * surprise * (1 - STABILITY_SHARE * (1 - stability)).
   Succinctness is 2 / (predicates + different columns), as Chu, Ilyas and Papotti have it (2013): 1 for a key
   of one column; surprise is log(1 + rows_by_chance) / log(1 + rows), for a key of one column its score.

DCs that hold in every table (`circular_dcs.tautologies`) say nothing: they are not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.stability import STABILITY_SHARE, Stability, stability
from holdfast.core.store.tabular import Ranked
from holdfast.core.words.codec import Coded
from holdfast.core.words.dependency import Fd
from holdfast.core.words.predicate import Dc, PredicateSpace, as_fd, as_key
from holdfast.core.words.row_rule import RowRule
from holdfast.core.words.sentences import sentence
from holdfast.denial.circular_dcs import RowOrder, following_from_rows
from holdfast.denial.dc_chance import MeasuredDcs, Pairs, Shuffled, succinctness, surprise
from holdfast.denial.forms import implied
from holdfast.denial.row_counts import OPERATORS
from holdfast.errors import plural

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Bool = NDArray[np.bool_]
History = Callable[[U64], Stability]

# Rules, those of the highest scores, that may imply others, at most; and other DCs that are asked whether
# rules imply them, the shortest first.
MAX_PREMISES = 1 << 14
MAX_OTHERS = 1 << 14
# Rules about each row, those of the highest scores, that may be listed.
MAX_ROW_RULES = 200


@dataclass(frozen=True, slots=True)
class RankedRule:
    """A denial constraint, or a rule about each row, with its place's reasons."""

    rule: Dc | RowRule
    score: float  # 0 to 1
    succinctness: float
    surprise: float
    rows_by_chance: float | None  # rows that chance would make violate it; None of a key of one column
    by_chance: float | None  # pairs of rows; None of a row rule, too
    held_versions: int
    changed_rows: int
    reasons: tuple[str, ...]

    @property
    def sentence(self) -> str:
        return sentence(self.rule) if isinstance(self.rule, Dc) else self.rule.sentence

    def __str__(self) -> str:
        return str(self.rule)

    def to_dict(self) -> dict[str, Any]:
        meaning: dict[str, Any] = {"sentence": self.sentence}
        if isinstance(self.rule, Dc):
            key, fd = as_key(self.rule), as_fd(self.rule)
            meaning["key"] = None if key is None else list(key)
            meaning["fd"] = None if fd is None else {"lhs": list(fd[0]), "rhs": fd[1]}
        return {
            **self.rule.to_dict(),
            **meaning,
            "score": self.score,
            "reasons": list(self.reasons),
            "succinctness": self.succinctness,
            "surprise": self.surprise,
            "rows_by_chance": self.rows_by_chance,
            "by_chance": self.by_chance,
            "held_versions": self.held_versions,
            "changed_rows": self.changed_rows,
        }


@dataclass(frozen=True, slots=True)
class Folded(Coded):
    """How many constraints follow from others, by the sort of the last one that it took."""

    row_rules: int = 0
    keys: int = 0
    fds: int = 0
    others: int = 0

    @property
    def total(self) -> int:
        return self.row_rules + self.keys + self.fds + self.others


@dataclass(frozen=True, slots=True, repr=False)
class DcRanking(Coded, Ranked):
    """The first rules of a table, best first.

    n_dcs + n_row_rules = n_rules + folded.total + n_accidents + n_open.
    """

    rules: tuple[RankedRule, ...]
    n_rules: int
    n_dcs: int  # of the table, without those that hold in every table
    n_row_rules: int
    folded: Folded
    n_accidents: int
    n_open: int  # not looked at: they may be rules
    counted: bool  # pairs are counted; else different evidences are

    def ranked(self) -> Sequence[Any]:
        return self.rules


@dataclass(frozen=True)
class RowFacts:
    """The rules about each row that hold, with the rows that chance would make violate them.

    `filled` are columns without NULL; `n_pairs` of columns were compared.
    """

    rules: Sequence[RowRule] = ()
    by_chance: F64 = field(default_factory=lambda: np.empty(0))
    filled: frozenset[str] = frozenset()
    n_pairs: int = 0
    history: Stability = field(default_factory=lambda: Stability.none(0))


# -- ranking -----------------------------------------------------------------------------------------------


def rank(
    masks: U64,
    space: PredicateSpace,
    table: str,
    evidence: U64,
    counts: I64 | None,
    *,
    rows: RowFacts | None = None,
    key_scores: Mapping[str, float] | None = None,
    shuffled: Shuffled | None = None,
    history: History | None = None,
    top: int | None = None,
) -> DcRanking:
    """The first `top` rules (all, if it is None), best first; equally good ones in the order given.

    IN masks uint64[k, n_words]: the DCs, of one predicate a group, tautologies among them; evidence uint64[m,
    n_words], with counts int64[m] of ordered pairs or, witnessed, without; key_scores: of columns that are
    keys; shuffled: how many pairs would violate some DCs if columns were shuffled, as a share; history: what
    some DCs have outlived. Cost: that of `dc_chance` and `forms.implied`; words are found only for what is
    returned.
    """
    facts = RowFacts() if rows is None else rows
    names = dict.fromkeys([*(g.left for g in space.groups), *(c for r in facts.rules for c in r.columns)])
    order = RowOrder.of(tuple(names), facts.rules, facts.filled)
    dcs = MeasuredDcs(masks, space, Pairs.of(space, evidence, counts), key_scores or {})
    dcs.measure()
    if shuffled is not None:
        dcs.check_across(shuffled, order)
    about_pairs = _folded_dcs(dcs, order, history)
    about_rows = _folded_rows(facts, dcs.pairs.n_rows)
    scores = np.concatenate([about_rows.scores, about_pairs.scores])
    listed = [
        _ranked_row(facts, about_rows, i) if i < len(about_rows.at)
        else _ranked_dc(dcs, table, about_pairs, i - len(about_rows.at))
        for i in np.argsort(-scores, kind="stable")[:top].tolist()
    ]  # fmt: skip
    n_dcs, n_row_rules = int(np.count_nonzero(~dcs.tautology)), len(facts.rules)
    folded = Folded(**(about_pairs.folded + about_rows.folded))
    n_open = about_pairs.n_open + about_rows.n_open
    return DcRanking(
        rules=tuple(listed),
        n_rules=len(scores),
        n_dcs=n_dcs,
        n_row_rules=n_row_rules,
        folded=folded,
        n_accidents=n_dcs + n_row_rules - len(scores) - folded.total - n_open,
        n_open=n_open,
        counted=counts is not None,
    )


# -- what follows ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rules:
    """Rules that do not follow from others, best first: their numbers, measures, and what they outlived."""

    at: I64
    scores: F64
    surprise: F64
    past: Stability
    folded: Counter[str]  # by the fields of `Folded`
    n_open: int = 0


def _folded_dcs(dcs: MeasuredDcs, order: RowOrder, history: History | None) -> _Rules:
    """The rules among the DCs, without those that follow from others or from the rules about rows."""
    rules = np.flatnonzero(dcs.is_rule)
    past = Stability.none(len(rules)) if history is None else history(dcs.masks[rules])
    scores = dcs.scores[rules] * _steadiness(past, dcs.pairs.n_rows)
    first = np.lexsort((dcs.sizes[rules], -scores))[:MAX_PREMISES]
    others = np.flatnonzero(~dcs.is_rule & ~dcs.tautology)[:MAX_OTHERS]
    at = np.concatenate([rules[first], others])
    # Those that hold in every table help to see what follows, as those do that follow from rules about rows.
    known = np.concatenate([at, np.flatnonzero(dcs.tautology)])
    axioms = dcs.tautology[known]
    axioms[: len(at)] = following_from_rows(dcs.masks[at], dcs.space, order)
    premises = axioms | (np.arange(len(known)) < len(first))
    filled = dcs.pairs.filled(dcs.space)
    by = implied(dcs.masks[known], dcs.space, axioms, premises=premises, filled=filled)[: len(at)]
    folded: Counter[str] = Counter()
    for last, n in zip(*(part.tolist() for part in np.unique(by[by >= 0], return_counts=True)), strict=True):
        from_rows = axioms[last] and last < len(at)
        folded["row_rules" if from_rows else _sort_of(dcs.dc(int(known[last])))] += n
    staying = first[by[: len(first)] < 0]
    chosen, open_ = rules[staying], dcs.open.copy()
    open_[rules] = True  # those that are too many
    open_[rules[first]] = open_[at[by >= 0]] = False
    n_open = int(np.count_nonzero(open_))
    return _Rules(chosen, scores[staying], dcs.surprise[chosen], _some(past, staying), folded, n_open)


def _folded_rows(facts: RowFacts, n_rows: float) -> _Rules:
    """The rules about each row that are no accidents, without those that follow from others."""
    asked = log(max(1, len(OPERATORS) * facts.n_pairs))
    rules = np.flatnonzero(facts.by_chance >= asked)
    past = _some(facts.history, rules)
    measure = succinctness(np.ones(len(rules), np.int64), np.full(len(rules), 2))
    surprises = surprise(facts.by_chance[rules], n_rows)
    scores = measure * surprises * _steadiness(past, n_rows)
    best_first = np.argsort(-scores, kind="stable")
    staying: list[int] = []
    # As with DCs: kept from the best on, then dropped from the last on.
    for i in best_first[:MAX_ROW_RULES].tolist():
        if not _implied_rows(facts, rules[staying], rules[[i]])[0]:
            staying.append(i)
    for i in staying[::-1]:
        others = [j for j in staying if j != i]
        if _implied_rows(facts, rules[others], rules[[i]])[0]:
            staying = others
    at = np.array(staying, dtype=np.int64)
    left = np.setdiff1d(np.arange(len(facts.rules)), rules[at])
    follows = _implied_rows(facts, rules[at], left)
    folded = Counter({"row_rules": int(np.count_nonzero(follows))})
    n_open = int(np.count_nonzero(np.isin(left, rules[best_first[MAX_ROW_RULES:]]) & ~follows))
    return _Rules(rules[at], scores[at], surprises[at], _some(past, at), folded, n_open)


def _implied_rows(facts: RowFacts, premises: I64, asked: I64) -> Bool:
    """Which of some rules about each row others imply, by their numbers: bool[n]."""
    known, questions = ([facts.rules[i] for i in numbers.tolist()] for numbers in (premises, asked))
    names = dict.fromkeys(c for r in (*known, *questions) for c in r.columns)
    order = RowOrder.of(tuple(names), known, facts.filled)
    return np.array([order.implies(r) for r in questions], dtype=np.bool_)


def _sort_of(dc: Dc) -> str:
    """The field of `Folded`."""
    return "keys" if as_key(dc) else "fds" if as_fd(dc) is not None else "others"


def _some(past: Stability, at: I64) -> Stability:
    return Stability(past.versions[at], past.changed_rows[at])


def _steadiness(past: Stability, n_rows: float) -> F64:
    factor: F64 = 1 - STABILITY_SHARE * (1 - stability(past, int(n_rows)))
    return factor


# -- in words ----------------------------------------------------------------------------------------------


def _ranked_dc(dcs: MeasuredDcs, table: str, rules: _Rules, place: int) -> RankedRule:
    i = int(rules.at[place])
    dc, size = dcs.dc(i, table), int(dcs.sizes[i])
    key, fd = as_key(dc), as_fd(dc)
    reasons = ["is a key"] if key else []
    if fd is not None:
        reasons.append(f"is the functional dependency {Fd(table, *fd).name}")
    by_chance, rows = float(dcs.by_chance[i]), float(dcs.rows_by_chance[i])
    if size > 1:
        what = "rows" if dcs.pairs.counted else "kinds of rows"
        reasons.append(f"chance would break it {by_chance:,.0f} times, by {rows:,.0f} {what} at least")
    reasons.append(f"{plural(size, 'predicate')} on {plural(int(dcs.n_columns[i]), 'column')}")
    return RankedRule(
        rule=dc,
        score=float(rules.scores[place]),
        succinctness=float(dcs.succinctness[i]),
        surprise=float(rules.surprise[place]),
        rows_by_chance=rows if size > 1 else None,
        by_chance=by_chance if size > 1 else None,
        held_versions=int(rules.past.versions[place]),
        changed_rows=int(rules.past.changed_rows[place]),
        reasons=(*reasons, *_outlived(rules.past, place)),
    )


def _ranked_row(facts: RowFacts, rules: _Rules, place: int) -> RankedRule:
    i = int(rules.at[place])
    by_chance = float(facts.by_chance[i])
    return RankedRule(
        rule=facts.rules[i],
        score=float(rules.scores[place]),
        succinctness=2 / 3,
        surprise=float(rules.surprise[place]),
        rows_by_chance=by_chance,
        by_chance=None,
        held_versions=int(rules.past.versions[place]),
        changed_rows=int(rules.past.changed_rows[place]),
        reasons=(f"in each row; chance would break it in {by_chance:,.0f}", *_outlived(rules.past, place)),
    )


def _outlived(past: Stability, place: int) -> tuple[str, ...]:
    versions, changed = int(past.versions[place]), int(past.changed_rows[place])
    if versions <= 1:
        return ()
    return (f"held through {versions:,} versions and {plural(changed, 'changed row')}",)

"""What speaks for and against an inclusion dependency being a foreign key, one reason at a time.

Every reason is worth `weight * value` points, and points are log-odds: a link with p points is a foreign key
with probability 1 / (1 + exp(-p)), were the reasons independent and the weights learnt. They are neither; the
weights are set by hand on schemas whose foreign keys are known, the shape of each value is an argument
about chance:

- *Range.* A reference draws its values from the whole of the parent. If its d distinct values leave the
  top share g of the parent's range unused, that had a probability of (1 - g)**d. A counter 1..50 in keys
  1..20000 sits in the lowest corner. If some values are missing in the parent, and so the child's range goes
  beyond the parent's, nobody knows where the others lie: then the ranges do not speak for the link.
- *Sequence.* Two counters that start at 0 or 1 are included in each other whatever they count.
- *Chance.* Values of a sparse key (every fourth integer, codes of five letters) are not hit by accident: with
  density q, d values are all hit with probability q**d, and a share f of them with at most exp(-d * KL(f|q))
  (Chernoff). A parent without gaps proves nothing by itself.

Pure functions of a few numbers per column; no data is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, log10, prod, sqrt

import numpy as np

from holdfast.core.words.codec import Coded
from holdfast.core.words.column_facts import ColumnFacts
from holdfast.core.words.name_similarity import NameMatch

# Points of the reasons; a value is between -1 and 1, or between 0 and 1.
PRIOR = -2.0
NAME = 4.5
COVERAGE = 1.5
RANGE = 2.0
LENGTH = 1.0
CHANCE = 2.0
SEQUENCE = -1.2
FEW_VALUES = -1.2
REPETITION = 0.5
TYPE = -1.0
ERROR = -5.0

UNUSED_TAIL = 0.15  # a tail of so much of the parent that is not referred to is half as bad as the worst
PROOF_DIGITS = 6.0  # an accident with a probability of 10**-6 is none


@dataclass(frozen=True, slots=True)
class Reason(Coded):
    """One reason: it adds `points = weight * value` to a link's log-odds, and says why in words."""

    name: str
    weight: float
    value: float
    text: str

    @property
    def points(self) -> float:
        return self.weight * self.value

    def __str__(self) -> str:
        return f"{self.text}: {self.points:+.1f}"


@dataclass(frozen=True, slots=True)
class Fit:
    """How a child's values lie in its parent's: `misfit` 0 (spread over it) to 1 (in a corner), and how
    telling an agreement of the two ranges would be, 0 (five values) to 1 (thousands). `beyond`: some of the
    child's values lie outside, so that an agreement cannot be seen."""

    misfit: float
    precision: float
    beyond: bool = False

    @property
    def value(self) -> float:
        return (1 - self.misfit) * self.precision - self.misfit


def fit(child: ColumnFacts, parent: ColumnFacts) -> Fit | None:
    """The range of a child in that of its parent; None where there is no range."""
    span = parent.span
    if span is None or child.span is None:
        return None
    beyond = (child.low or 0.0) < (parent.low or 0.0) or (child.high or 0.0) > (parent.high or 0.0)
    if span <= 0:
        return Fit(0.0, 0.0, beyond)
    above = min(1.0, max(0.0, ((parent.high or 0.0) - (child.high or 0.0)) / span))
    below = min(1.0, max(0.0, ((child.low or 0.0) - (parent.low or 0.0)) / span))
    # Old rows of a parent may be referred to no more, so an unused lower end counts less.
    n, m = child.n_distinct, parent.n_distinct
    misfit = max(_unlikely(above, n, m), 0.6 * _unlikely(below, n, m))
    gap = (above + below) * parent.n_distinct
    precision = 0.0 if beyond else min(1.0, log10(1 + parent.n_distinct / (1 + gap)) / 3)
    return Fit(misfit, precision, beyond)


def _unlikely(gap: float, n_distinct: int, n_parent: int) -> float:
    """How improbable a gap is, and how large, 0 to 1. References are no fair sample: half of them count."""
    if gap <= 0:
        return 0.0
    probability: float = min(1.0, 1 - gap + 1 / n_parent) ** (n_distinct / 2)
    return (1 - probability) * gap / (gap + UNUSED_TAIL)


def prior_reason() -> Reason:
    return Reason("prior", PRIOR, 1.0, "most inclusions in a key are no foreign keys")


def name_reason(matches: Sequence[NameMatch], names_help: float) -> Reason:
    """Names: what they say for a link; and, as far as names help in this database, that they say nothing.

    `names_help` (0 to 1): where no foreign key is named after what it refers to, silence proves nothing.
    """
    value = _of_parts([_name_value(m, names_help) for m in matches])
    texts = list(dict.fromkeys(m.text for m in matches))
    return Reason("name", NAME, value, "; ".join(texts))


def _name_value(match: NameMatch, names_help: float) -> float:
    if match.blank:
        return 0.0
    if match.value >= 0.3:
        return float(match.value**1.5)
    silence = 0.65 if match.elsewhere else 0.15 if match.reference else 0.35
    return -names_help * silence * (1 - match.value)


def _of_parts(values: Sequence[float]) -> float:
    """A composite link is as good as its columns on average, and as its worst one."""
    return (sum(values) / len(values) + min(values)) / 2


def coverage_reason(child: str, parent: str, coverage: float) -> Reason:
    covered = min(1.0, coverage)
    text = f"{_percent(covered)} of {parent}'s values occur in {child}"
    value = 2 * sqrt(covered) - 1
    return Reason("coverage", COVERAGE, value if value > 0 else 0.6 * value, text)


def range_reason(pairs: Sequence[tuple[ColumnFacts, ColumnFacts]], named: float) -> Reason | None:
    """Numbers and dates: does the child's range span the parent's?

    `named` (0 to 1): two stores have the addresses 1 and 2 of 600 for a reason, if the column says so.
    """
    fits = [(f, a, b) for a, b in pairs if (f := fit(a, b)) is not None]
    if not fits:
        return None
    worst, child, parent = min(fits, key=lambda f: f[0].value)
    value = _of_parts([f.value for f, _, _ in fits])
    if worst.misfit > 0.3:
        verdict = "leaves much of the range unused"
    elif worst.beyond:
        verdict = "goes beyond"
    elif worst.precision < 0.5:
        verdict = "agrees, as small ranges often do"
    else:
        verdict = "agrees"
    text = f"the range {_range(child)} of {child} {verdict}; {parent} has {_range(parent)}"
    return Reason("range", RANGE, value if value > 0 else (1 - 0.3 * named) * value, text)


def length_reason(pairs: Sequence[tuple[ColumnFacts, ColumnFacts]]) -> Reason | None:
    """Texts: are they as long as the parent's?"""
    texts = [(a, b, a.mean_length, b.mean_length) for a, b in pairs]
    lengths = [(_apart(p, q), a, b, p, q) for a, b, p, q in texts if p is not None and q is not None]
    if not lengths:
        return None
    apart, child, parent, p, q = max(lengths, key=lambda x: x[0])
    verdict = "as long as" if apart <= 0.15 else "of other length than"
    text = f"texts of {child} are {verdict} those of {parent} ({p:.1f} and {q:.1f} characters on average)"
    return Reason("length", LENGTH, 0.5 - 1.5 * min(1.0, 2 * apart), text)


def _apart(p: float, q: float) -> float:
    return abs(p - q) / max(p, q, 1.0)


def chance_reason(
    child: str,
    parent: str,
    pairs: Sequence[tuple[ColumnFacts, ColumnFacts]],
    n_rows: int,
    coverage: float | None,
    error: float = 0.0,
) -> Reason | None:
    """How improbable the inclusion would be, had the two nothing to do with each other."""
    if len(pairs) == 1:
        (a, b), unit = pairs[0], "value"
        n_child, density = a.n_distinct, _density(b)
    else:
        # All combinations of the parent's values: the share of them that occurs in its rows.
        density = min(1.0, n_rows / prod(max(1, b.n_distinct) for _, b in pairs))
        # If nobody has counted the child's combinations: there are as many as values in one of its columns.
        n_child = max(a.n_distinct for a, _ in pairs)
        n_child = n_child if coverage is None else round(min(1.0, coverage / max(1 - error, 1e-9)) * n_rows)
        unit = "combination"
    # A parent may be dense where the child's values are: sparse keys start with a few small numbers, too.
    share = 1 - max(placed.misfit if (placed := fit(a, b)) is not None else 0.0 for a, b in pairs)
    digits = n_child * surprise(1 - error, max(density, 1e-9)) / log(10)
    value = share * min(1.0, digits / PROOF_DIGITS)
    if value < 0.1:
        return None
    inside = f"{child} is" if error <= 0 else f"{_percent(1 - error)} of {child} are"
    text = f"{parent} holds {_percent(density)} of the {unit}s possible: {inside} not in it by accident"
    return Reason("chance", CHANCE, value, text)


def surprise(share: float, density: float) -> float:
    """The Kullback-Leibler divergence of being hit with a share from being hit with a density below it.

    >>> surprise(1.0, 0.5) == log(2), surprise(0.5, 0.5), surprise(0.2, 0.5)
    (True, 0.0, 0.0)
    """
    if share <= density:
        return 0.0
    missed = (1 - share) * log((1 - share) / (1 - density)) if share < 1 else 0.0
    return share * log(share / density) + missed


def _density(parent: ColumnFacts) -> float:
    if parent.mean_length is not None:  # some letters are rare: 0.8 digits a letter, not 1.4
        return min(1.0, parent.n_distinct / 10 ** (0.8 * min(parent.mean_length, 11.0)))
    return parent.density if parent.span is not None else 1.0


def sequence_reason(pairs: Sequence[tuple[ColumnFacts, ColumnFacts]], named: float) -> Reason | None:
    """Counters from 0 or 1 on are included in all longer ones: a penalty, unless they end alike.

    `named` (0 to 1): a column that is named after the parent did not get there by accident.
    """
    values = [(_coincidence(a, b), a, b) for a, b in pairs]
    value = (1 - 0.75 * named) * sum(v for v, _, _ in values) / len(values)
    if value <= 0.01:
        return None
    _, child, parent = max(values, key=lambda v: v[0])
    kind = "small integers" if child.n_distinct <= 1000 else "integers"
    placed = fit(child, parent)
    text = f"{kind} {_range(child)} occur by chance in every sequence as long, such as {parent}"
    if placed is not None and placed.beyond:
        both = f"{_range(child)} of {child} and {_range(parent)} of {parent}"
        text = f"{kind} {both} overlap by chance, as all sequences do"
    return Reason("sequence", SEQUENCE, value, text)


def _coincidence(child: ColumnFacts, parent: ColumnFacts) -> float:
    placed = fit(child, parent)
    if placed is None or not (child.is_sequence and parent.is_sequence):
        return 0.0
    return 1 - min(1.0, 1.5 * placed.precision) * (1 - placed.misfit)


def few_values_reason(children: Sequence[ColumnFacts]) -> Reason | None:
    """One or two distinct values are included in many columns."""
    child = min(children, key=lambda c: c.n_distinct)
    if child.n_distinct > 4:
        return None
    values = "one value" if child.n_distinct == 1 else f"{child.n_distinct} values"
    return Reason("few_values", FEW_VALUES, child.n_distinct**-1.5, f"{child} has only {values}")


def repetition_reason(child: ColumnFacts) -> Reason | None:
    """The share of distinct values: references repeat."""
    n = child.n_values if child.n_values is not None else child.n_rows
    share = child.n_distinct / max(1, n)
    if child.n_distinct < 3 or share > 0.999:
        return None
    text = f"values of {child} repeat: {_percent(share)} of its values are distinct"
    return Reason("distinct_share", REPETITION, 1 - share, text)


def type_reason(children: Sequence[ColumnFacts]) -> Reason | None:
    """Fractions, dates and truth values seldom refer to anything."""
    for child in children:
        if child.domain == "number" and child.low is not None and not child.integers:
            return Reason("type", TYPE, 1.0, f"{child} has fractions, as no reference has")
        if child.domain == "bool":
            return Reason("type", TYPE, 1.0, f"{child} is true or false")
        if child.domain not in ("number", "text", "binary"):
            return Reason("type", TYPE, 0.5, f"{child} holds {child.domain}s, which seldom refer")
    return None


def error_reason(child: str, parent: str, error: float, n_missing: int) -> Reason | None:
    if error <= 0:
        return None
    values = "1 value" if n_missing == 1 else f"{n_missing:,} values"
    are = "is" if n_missing == 1 else "are"
    text = f"{values} of {child} ({_percent(error)}) {are} missing in {parent}"
    return Reason("error", ERROR, min(1.0, sqrt(error)), text)


def _percent(share: float) -> str:
    """Exact at the ends: 100 % means all.

    >>> _percent(1.0), _percent(0.99999), _percent(0.5), _percent(0.00001)
    ('100 %', '>99.9 %', '50.0 %', '<0.1 %')
    """
    if share >= 1:
        return "100 %"
    if share > 0.999:
        return ">99.9 %"
    return "<0.1 %" if 0 < share < 0.001 else f"{100 * share:.1f} %"


def _range(facts: ColumnFacts) -> str:
    """
    >>> _range(ColumnFacts("t", "d", 0, "date", 9, 9, 3, 19_723.0, 20_088.0, False, None))
    '2024-01-01..2024-12-31'
    """
    if facts.low is None or facts.high is None:
        return f"({facts.n_distinct:,} {facts.domain}s)"
    if facts.domain == "number":
        return f"{facts.low:.15g}..{facts.high:.15g}"
    if facts.domain == "date":
        return "..".join(str(np.datetime64(int(day), "D")) for day in (facts.low, facts.high))
    return f"({facts.n_distinct:,} {facts.domain}s)"

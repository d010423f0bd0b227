"""How much a rule may tell, from its form alone: few predicates, within columns rather than across them."""

from __future__ import annotations

from holdfast.core.words.predicate import Dc
from holdfast.core.words.row_rule import RowRule

# Each further predicate takes this factor of the score, and each that compares two columns a bit less than
# that: so they come by their number of predicates, and then by the columns that they compare.
SIZE_FACTOR = 0.5
ACROSS_FACTOR = 0.95


def dc_score(dc: Dc) -> float:
    """0 to 1.

    >>> from holdfast.core.words.predicate import Predicate
    >>> same, less = Predicate("zip", "=", "zip"), Predicate("net", ">", "gross")
    >>> [dc_score(Dc("t", predicates)) for predicates in ((same,), (less,), (same, less))]
    [1.0, 0.95, 0.475]
    """
    across = sum(p.left != p.right for p in dc.predicates)
    return float(SIZE_FACTOR ** (len(dc.predicates) - 1) * ACROSS_FACTOR**across)


def says_little(rule: RowRule) -> bool:
    """Whether a rule about each row is of the sort that holds by chance: `!=`, or columns far apart."""
    return rule.apart or rule.op == "!="

"""How much a rule may tell, from its form alone: few predicates, within columns rather than across them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.core.words.predicate import Dc
from holdfast.core.words.row_rule import RowRule

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

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


def dc_scores(sizes: I64, across: I64) -> F64:
    """The same of many: of their numbers of predicates, and of those that compare two columns."""
    most = [int(some.max(initial=0)) + 1 for some in (sizes, across)]
    scores = [[SIZE_FACTOR ** (n - 1) * ACROSS_FACTOR**k for k in range(most[1])] for n in range(most[0])]
    some: F64 = np.array(scores, dtype=np.float64)[sizes, across]
    return some


def says_little(rule: RowRule) -> bool:
    """Whether a rule about each row is of the sort that holds by chance: `!=`, or columns far apart."""
    return rule.apart or rule.op == "!="

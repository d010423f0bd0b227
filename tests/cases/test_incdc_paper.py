"""The order indexes of the IncDC paper: its tables 1, 2, 8 and 9, its examples 5 to 12.

The paper numbers the chains (Sorted_i) of example 6 otherwise than its algorithm 3 makes them, so chains are
compared as a set; and algorithm 3 would split example 8 otherwise, so both splits are asked. Ours never
change: where the paper inserts into an index (examples 11 and 12), it is built anew, and the new tuple ends
up in the same place.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from holdfast.core.rows.kernels import order_index
from holdfast.core.rows.kernels.operators import GE, GT, LE, LT, SYMMETRIC
from holdfast.core.rows.kernels.order_index import Hits, OrderIndex
from reference import order_index as reference

NAMES = ["Name", "Date", "SSN", "NUM", "MS", "CH", "PH", "ST", "ZIP", "SAL", "RATE", "TXA", "STX", "CTX"]

# Table 1, t0 to t6, and table 2, t7 to t9. Rates are in hundredths.
TAX = [
    ("Sadam", 20140410, 719975883, 1448, "S", "Y", 6059466, "CO", 80612, 32000, 124, 3000, 400, 2000),
    ("Duparc", 20140224, 303975883, 1401, "M", "N", 5872027, "CO", 80612, 50000, 142, 1500, 0, 0),
    ("Hannen", 20140413, 701178073, 1486, "M", "N", 1638673, "ND", 58671, 30000, 121, 3400, 0, 0),
    ("Beke", 20130403, 801350874, 1386, "M", "Y", 6192334, "UT", 84308, 55000, 204, 1300, 0, 40),
    ("Sadam", 20140329, 719975883, 1427, "S", "N", 6059466, "CO", 80612, 7500, 121, 0, 50, 0),
    ("Hannen", 20130404, 701178073, 1386, "S", "Y", 1638673, "ND", 58671, 6500, 24, 900, 0, 1000),
    ("Motwani", 20150324, 970122634, 1547, "M", "N", 8484643, "CO", 80209, 95000, 285, 1100, 0, 0),
    ("Uckun", 20130322, 435849162, 1368, "M", "Y", 5872027, "UT", 84308, 40000, 143, 3300, 0, 0),
    ("Hannen", 20140218, 701178073, 1478, "S", "N", 1638673, "ND", 58671, 33000, 205, 1400, 40, 40),
    ("Beke", 20150213, 801350874, 1533, "S", "Y", 6192334, "UT", 84308, 32000, 123, 3200, 0, 1000),
]
R1 = 7

# Table 8, t0 to t5, and table 9, t6.
SAMPLE = [
    (7, 5, 7, 9),
    (8, 6, 3, 25),
    (30, 8, 9, 11),
    (40, 0, 2, 15),
    (15, 7, 17, 22),
    (25, 2, 15, 30),
    (3, 22, 20, 10),
]
R2 = 6


class Column:
    """The values of one column of the old rows, and the half ranks of others among them."""

    def __init__(self, values: list[int], n_old: int) -> None:
        self.values = values
        self.dictionary = sorted(set(values[:n_old]))
        self.codes = np.array([self.dictionary.index(v) + 1 for v in values[:n_old]], dtype=np.int32)

    def asked(self, *values: int) -> np.ndarray:
        return np.array([reference.half_rank(v, self.dictionary) for v in values], dtype=np.int64)


def tax(name: str, n_old: int = R1) -> Column:
    return Column([row[NAMES.index(name)] for row in TAX], n_old)  # type: ignore[misc]


def sample(name: str) -> Column:
    return Column([row["ABCD".index(name)] for row in SAMPLE], R2)


def chains(index: OrderIndex) -> set[tuple[int, ...]]:
    """The rows of each chain, in order."""
    starts = index.node_offsets[index.chain_offsets]
    return {tuple(index.rows[start:stop].tolist()) for start, stop in pairwise(starts)}


def rows_of(hits: Hits) -> set[int]:
    assert (hits.probes == 0).all()
    return set(hits.rows.tolist())


def tax_index(
    first: str, second: str, op_a: int, op_b: int, n_old: int = R1
) -> tuple[OrderIndex, Column, Column]:
    a, b = tax(first, n_old), tax(second, n_old)
    return order_index.build(a.codes, b.codes, op_a, op_b), a, b


def ask(
    index: OrderIndex, a: Column, b: Column, tuple_id: int, op_a: int, op_b: int
) -> tuple[set[int], set[int]]:
    """(T^s, T-bar^s) of one tuple."""
    asked = a.asked(a.values[tuple_id]), b.asked(b.values[tuple_id])
    left = order_index.fetch(index, *asked, SYMMETRIC[op_a], SYMMETRIC[op_b])
    return rows_of(left), rows_of(order_index.fetch(index, *asked, op_a, op_b))


# --- Example 5: one inequality at a time -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "op", "as_left", "as_right"),
    [("TXA", GT, {3, 4, 5, 6}, {0, 1, 2}), ("SAL", LT, {1, 3, 6}, {0, 2, 4, 5})],
)
def test_example_5(name: str, op: int, as_left: set[int], as_right: set[int]) -> None:
    """Alone, each inequality visits every tuple, on one side or the other."""
    column = tax(name)
    index = order_index.build_column(column.codes, len(column.dictionary))
    t8 = column.asked(column.values[8])
    assert rows_of(order_index.fetch_column(index, t8, SYMMETRIC[op])) == as_left
    assert rows_of(order_index.fetch_column(index, t8, op)) == as_right


def test_example_5_both_inequalities() -> None:
    """Candidates {t3, t6} and {t0, t2}; of them (t8, t3) breaks phi_3, by its RATE."""
    index, a, b = tax_index("TXA", "SAL", GT, LT)
    as_left, as_right = ask(index, a, b, 8, GT, LT)
    assert (as_left, as_right) == ({3, 6}, {0, 2})
    rate = tax("RATE").values
    assert {t for t in as_left if rate[8] > rate[t]} == {3}
    assert {t for t in as_right if rate[t] > rate[8]} == set()


# --- Examples 6 and 7: an index and Fetch ----------------------------------------------------------------


def test_example_6() -> None:
    index, _, _ = tax_index("TXA", "SAL", GT, LT)
    assert chains(index) == {(6, 3, 1, 0, 2), (4, 5)}
    assert index.rank == 2


def test_example_7() -> None:
    index, a, b = tax_index("TXA", "SAL", GT, LT)
    assert ask(index, a, b, 8, GT, LT) == ({3, 6}, {0, 2})
    counted = order_index.count(index, a.asked(a.values[8]), b.asked(b.values[8]), GT, LT)
    assert counted.tolist() == [2]


def test_example_2_the_pairs_that_break_phi_3() -> None:
    """All of table 2 at once, both ways: (t7, t1) and (t8, t3), no others between old and new tuples."""
    index, a, b = tax_index("TXA", "SAL", GT, LT)
    asked = a.asked(*a.values[R1:]), b.asked(*b.values[R1:])
    left, right = order_index.fetch(index, *asked, LT, GT), order_index.fetch(index, *asked, GT, LT)
    rate = tax("RATE").values
    new_left = {(R1 + p, t) for p, t in zip(*map(np.ndarray.tolist, left), strict=True)}
    new_right = {(t, R1 + p) for p, t in zip(*map(np.ndarray.tolist, right), strict=True)}
    assert {(t, s) for t, s in new_left | new_right if rate[t] > rate[s]} == {(7, 1), (8, 3)}


# --- Example 8: Fetch+ across columns --------------------------------------------------------------------


def by_hand(a: Column, b: Column, op_a: int, op_b: int, *parts: list[int]) -> OrderIndex:
    """The index with these chains; no two rows are equal in both columns."""
    rows = np.array([row for part in parts for row in part], dtype=np.int32)
    chain_offsets = np.cumsum([0, *map(len, parts)]).astype(np.int64)
    node_offsets = np.arange(len(rows) + 1, dtype=np.int64)
    return OrderIndex(op_a, op_b, a.codes[rows], b.codes[rows], chain_offsets, node_offsets, rows)


@pytest.mark.parametrize("built", [False, True])
def test_example_8(built: bool) -> None:
    a, b, c, d = (sample(name) for name in "ABCD")
    if built:
        index_ac = order_index.build(a.codes, c.codes, GT, LT)
        index_bd = order_index.build(b.codes, d.codes, LT, GT)
        # Algorithm 3 puts t3 behind t1, which is nearer in C than t2; the rank is that of the paper.
        assert chains(index_ac) == {(0, 1, 3), (4, 5, 2)}
        assert chains(index_bd) == {(2, 4, 1, 5), (0, 3)}
    else:
        index_ac = by_hand(a, c, GT, LT, [4, 5, 2, 3], [0, 1])
        index_bd = by_hand(b, d, LT, GT, [2, 4, 1, 5], [0, 3])
    of_a, of_b, of_c, of_d = SAMPLE[6]
    assert rows_of(order_index.fetch(index_bd, b.asked(of_a), d.asked(of_c), LT, GT)) == {5}
    assert rows_of(order_index.fetch(index_ac, a.asked(of_b), c.asked(of_d), GT, LT)) == {2, 3}


# --- Example 9: OptIndex ---------------------------------------------------------------------------------


def test_example_9() -> None:
    """t5 and t3 tie in NUM, so < keeps them apart; an index for <= has one chain."""
    index, _, _ = tax_index("Date", "NUM", LT, LT)
    assert chains(index) == {(6, 2, 0, 4, 1, 5), (3,)}
    weak, _, _ = tax_index("Date", "NUM", LE, LE)
    assert chains(weak) == {(6, 2, 0, 4, 1, 5, 3)}


# --- Example 10: an index used in reverse ----------------------------------------------------------------


@pytest.mark.parametrize("built_for", [(LT, LT), (LE, LE), (GT, GT), (LT, GE)])
def test_example_10(built_for: tuple[int, int]) -> None:
    """Index(Date <, NUM <) answers (Date <, NUM >) from its middle, and so does every other index."""
    index, a, b = tax_index("Date", "NUM", *built_for)
    assert ask(index, a, b, 8, LT, GT) == ({0, 1, 4}, set())


def test_example_10_ties() -> None:
    """phi_4 asks for NUM >=, and an index for >= answers > by leaving out the ties (section 6.2)."""
    index, a, b = tax_index("Date", "NUM", LT, GE)
    # t3 and t5 tie in NUM; t3 is a day earlier.
    assert 5 in ask(index, a, b, 3, LT, GE)[0]
    assert 5 not in ask(index, a, b, 3, LT, GT)[0]


# --- Examples 11 and 12: a new tuple ---------------------------------------------------------------------


def test_examples_11_and_12() -> None:
    """p = q = 0 for t9 in the first chain: t6 stands before it, the others behind it, none in the middle."""
    index, a, b = tax_index("Date", "NUM", LT, LT)
    as_left, as_right = ask(index, a, b, 9, LT, LT)
    assert (as_left, as_right) == ({6}, {0, 1, 2, 3, 4, 5})
    assert ask(index, a, b, 9, LT, GT) == (set(), set())


def test_example_11_built_anew() -> None:
    """t9 comes right behind t6, and the rank does not grow."""
    without = [*range(R1), 9]
    codes = []
    for name in ("Date", "NUM"):
        values = [tax(name).values[t] for t in without]
        codes.append(np.array([sorted(values).index(v) + 1 for v in values], dtype=np.int32))
    index = order_index.build(codes[0], codes[1], LT, LT)
    assert chains(index) == {(6, 7, 2, 0, 4, 1, 5), (3,)}  # row 7 is t9


def test_example_13_the_correlation() -> None:
    """r(Date, NUM) = 0.88: high, so the index for phi_4 is turned round."""
    date, num = (np.array(tax(name).values[:R1], dtype=np.int32) for name in ("Date", "NUM"))
    assert order_index.correlation(date, num) == pytest.approx(0.88, abs=0.005)
    # On codes, which are ranks, it is higher still: but for one tie the order is the same.
    assert order_index.correlation(tax("Date").codes, tax("NUM").codes) > 0.95

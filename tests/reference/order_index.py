"""Order indexes in plain Python: the slow reference of core/rows/kernels/order_index.py.

Operators are their signs. Codes are ints, 0 is NULL; probes are half ranks: 2 * code, odd between codes.
An index is a list of chains, a chain a list of nodes ((a, b), rows).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import combinations

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
SYMMETRIC = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

Node = tuple[int, int]
Chain = list[tuple[Node, list[int]]]


def satisfies(left: int, op: str, right: int) -> bool:
    """left op right, for two half ranks of one column; 0 is NULL."""
    if left == 0 and right == 0:
        return op in ("=", "<=", ">=")
    if left == 0 or right == 0:
        return op == "!="
    return COMPARE[op](left, right)


def follows(y: Node, x: Node, op_a: str, op_b: str) -> bool:
    """Whether node y may stand behind node x in a chain; neither has a NULL."""
    return y != x and COMPARE[op_a](y[0], x[0]) and COMPARE[op_b](y[1], x[1])


def nodes_of(a: Sequence[int], b: Sequence[int]) -> dict[Node, list[int]]:
    nodes: dict[Node, list[int]] = {}
    for row, node in enumerate(zip(a, b, strict=True)):
        nodes.setdefault(node, []).append(row)
    return nodes


def build(a: Sequence[int], b: Sequence[int], op_a: str, op_b: str) -> list[Chain]:
    """Algorithm 3 to the letter (the tail that is nearest in b), except that of nodes that tie in a strict a
    no one may follow another; then the nodes with NULL in a, in b, in both."""
    nodes = nodes_of(a, b)
    rise_a = 1 if op_a in (">", ">=") else -1
    rise_b = 1 if op_b in (">", ">=") else -1
    ties = -1 if op_a in ("<", ">") else 1
    chains: list[list[Node]] = []
    for y in sorted((n for n in nodes if 0 not in n), key=lambda n: (rise_a * n[0], ties * rise_b * n[1])):
        possible = [chain for chain in chains if follows(y, chain[-1], op_a, op_b)]
        if possible:
            # Of equal tails the first chain: min() takes it.
            min(possible, key=lambda chain: abs(chain[-1][1] - y[1])).append(y)
        else:
            chains.append([y])
    by_direction = sorted(nodes, key=lambda n: (rise_a * n[0], rise_b * n[1]))
    null_a = [n for n in by_direction if n[0] == 0 and n[1] != 0]
    null_b = [n for n in by_direction if n[0] != 0 and n[1] == 0]
    both = [n for n in by_direction if n == (0, 0)]
    chains += [chain for chain in (null_a, null_b, both) if chain]
    return [[(node, nodes[node]) for node in chain] for chain in chains]


def smallest_rank(a: Sequence[int], b: Sequence[int], op_a: str, op_b: str) -> int:
    """The least number of chains that cover all nodes: by Dilworth and König, nodes less the largest
    matching of nodes with nodes that may follow them (augmenting paths)."""
    nodes = [n for n in nodes_of(a, b) if 0 not in n]
    behind = [[j for j, y in enumerate(nodes) if follows(y, x, op_a, op_b)] for x in nodes]
    before: dict[int, int] = {}

    def augment(i: int, seen: set[int]) -> bool:
        for j in behind[i]:
            if j not in seen:
                seen.add(j)
                if j not in before or augment(before[j], seen):
                    before[j] = i
                    return True
        return False

    return len(nodes) - sum(augment(i, set()) for i in range(len(nodes)))


def largest_antichain(a: Sequence[int], b: Sequence[int], op_a: str, op_b: str) -> int:
    """The same number by definition: the most nodes of which none may follow another. Exponential."""
    nodes = [n for n in nodes_of(a, b) if 0 not in n]
    for size in range(len(nodes), 0, -1):
        for some in combinations(nodes, size):
            if not any(
                follows(y, x, op_a, op_b) or follows(x, y, op_a, op_b) for x, y in combinations(some, 2)
            ):
                return size
    return 0


def fetch(
    a: Sequence[int], b: Sequence[int], probes: Sequence[tuple[int, int]], op_a: str, op_b: str
) -> list[tuple[int, int]]:
    """(probe, row), sorted: row.a op_a probe.a and row.b op_b probe.b."""
    return [
        (p, row)
        for p, (probe_a, probe_b) in enumerate(probes)
        for row in range(len(a))
        if satisfies(2 * a[row], op_a, probe_a) and satisfies(2 * b[row], op_b, probe_b)
    ]


def fetch_column(codes: Sequence[int], probes: Sequence[int], op: str) -> list[tuple[int, int]]:
    """(probe, row), by probe, then by the code of the row."""
    by_code = sorted(range(len(codes)), key=lambda row: codes[row])
    return [
        (p, row) for p, probe in enumerate(probes) for row in by_code if satisfies(2 * codes[row], op, probe)
    ]


def half_rank(value: int | None, dictionary: Sequence[int]) -> int:
    """A value in the codes of a column with these distinct values, ascending; the first has code 1."""
    if value is None:
        return 0
    below = sum(v < value for v in dictionary)
    return 2 * (below + 1) if value in dictionary else 2 * below + 1


def pairs(
    rows: Sequence[dict[str, int | None]],
    probes: Sequence[dict[str, int | None]],
    predicates: Sequence[tuple[str, str, str]],
) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """By the meaning of predicates (left, op, right), `t.left op s.right`, on values: the (probe, row) such
    that (probe, row), and such that (row, probe), satisfies all of them."""

    def holds(t: dict[str, int | None], s: dict[str, int | None]) -> bool:
        for left, op, right in predicates:
            x, y = t[left], s[right]
            if x is None or y is None:
                if op not in (("=", "<=", ">=") if x is y else ("!=",)):
                    return False
            elif not COMPARE[op](x, y):
                return False
        return True

    probe_left = {(p, r) for p, s in enumerate(probes) for r, t in enumerate(rows) if holds(s, t)}
    probe_right = {(p, r) for p, s in enumerate(probes) for r, t in enumerate(rows) if holds(t, s)}
    return probe_left, probe_right


def correlation(a: Sequence[int], b: Sequence[int]) -> float:
    both = [(x, y) for x, y in zip(a, b, strict=True) if x and y]
    n = len(both)
    if n < 2:
        return 0.0
    mean_x, mean_y = sum(x for x, _ in both) / n, sum(y for _, y in both) / n
    xx = sum((x - mean_x) ** 2 for x, _ in both)
    yy = sum((y - mean_y) ** 2 for _, y in both)
    xy = sum((x - mean_x) * (y - mean_y) for x, y in both)
    return float(xy / (xx * yy) ** 0.5) if xx and yy else 0.0

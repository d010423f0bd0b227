"""Denial constraints in other forms, slow and plain: every set is tried, every value, every pair."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, product

from reference.dc_hitting_sets import HOLDS, Dc, Group, Predicates
from reference.predicates import satisfied

OUTCOMES = tuple(HOLDS)


def both(space: Predicates, dcs: Collection[Dc]) -> set[Dc]:
    """DCs and their mirror images."""
    return set(dcs) | {space.mirrored(dc) for dc in dcs}


def closure(space: Predicates, dc: Dc) -> Dc:
    """With all that follows from a DC's predicates in each group."""
    found = set(dc)
    for g in {space.predicates[i][0] for i in dc}:
        ops = {space.predicates[i][1] for i in dc if space.predicates[i][0] == g}
        said = set.intersection(*(held for held in HOLDS.values() if ops <= held))
        found |= {i for i, (group, op) in enumerate(space.predicates) if group == g and op in said}
    return frozenset(found)


def listed(space: Predicates, dcs: Collection[Dc]) -> list[tuple[int, ...]]:
    """One of each mirrored pair, as ascending tuples, sorted."""
    return sorted({min(tuple(sorted(dc)), tuple(sorted(space.mirrored(dc)))) for dc in dcs})


def set_minimal(space: Predicates, cover: Collection[Dc], max_size: int = 0) -> list[tuple[int, ...]]:
    """All sets that are not trivial, contain a DC of the cover within groups, and do not without a member."""
    sides = both(space, cover)

    def valid(dc: Dc) -> bool:
        said = closure(space, dc)
        return any(one <= said for one in sides)

    found = [dc for dc in space.sensible if max_size <= 0 or len(dc) <= max_size]
    return listed(space, [dc for dc in found if valid(dc) and not any(valid(dc - {i}) for i in dc)])


def restricted(space: Predicates, cover: Collection[Dc], operators: Collection[str]) -> list[tuple[int, ...]]:
    """Those with one of these operators for each group that are implied; none can go, or be looser."""
    sides = both(space, cover)
    n_groups = len(space.groups)
    choices = [
        [None, *(space.number[g, op] for op in operators if (g, op) in space.number)] for g in range(n_groups)
    ]

    @cache
    def valid(dc: Dc) -> bool:
        said = closure(space, dc)
        return any(one <= said for one in sides)

    def looser(dc: Dc) -> Iterator[Dc]:
        for i in dc:
            yield dc - {i}
            g = space.predicates[i][0]
            yield from (
                (dc - {i}) | {j} for j in choices[g] if j is not None and j in closure(space, dc) - dc
            )

    every = (frozenset(i for i in chosen if i is not None) for chosen in product(*choices))
    return listed(space, [dc for dc in every if valid(dc) and not any(map(valid, looser(dc)))])


# --- Implication -----------------------------------------------------------------------------------------


RowRule = tuple[int, str, int]  # two columns of one row


def keeps(row: Mapping[int, int | None], rules: Collection[RowRule], filled: Collection[int]) -> bool:
    """Whether a row violates none of the rules, and has a value in the columns `filled`, of those it has."""
    return not any(row[c] is None for c in filled if c in row) and all(
        row[a] is None or row[b] is None or satisfied(row[a], op, row[b])
        for a, op, b in rules
        if a in row and b in row
    )


@cache
def evidences(
    groups: tuple[Group, ...], rules: tuple[RowRule, ...] = (), filled: frozenset[int] = frozenset()
) -> set[Dc]:
    """What two rows can satisfy: every value of every column, as many as there are values to compare.

    Each of them keeps the rules about rows, and has a value in the columns `filled`.
    """
    space = Predicates(groups)
    columns = sorted({c for a, b, _ in groups for c in (a, b)} | {c for a, _, b in rules for c in (a, b)})
    together = {frozenset({a, b}) for a, b, _ in groups} | {frozenset({a, b}) for a, _, b in rules}
    # Columns that are never compared with others have no influence on each other.
    parts: list[set[int]] = []
    for column in columns:
        linked = {c for pair in together if column in pair for c in pair} | {column}
        for part in [p for p in parts if p & linked]:
            linked |= part
            parts.remove(part)
        parts.append(linked)
    found: set[Dc] = {frozenset()}
    for part in parts:
        names = sorted(part)
        values = [None, *range(2 * len(names))]
        seen = set()
        all_rows = [dict(zip(names, row, strict=True)) for row in product(values, repeat=len(names))]
        allowed = [row for row in all_rows if keeps(row, rules, filled)]
        for t in allowed:
            for s in allowed:
                rows = t, s
                seen.add(
                    frozenset(
                        i
                        for i, (g, op) in enumerate(space.predicates)
                        if groups[g][0] in part
                        and satisfied(rows[0][groups[g][0]], op, rows[1][groups[g][1]])
                    )
                )
        found = {one | other for one in found for other in seen}
    return found


def implied(
    space: Predicates,
    dcs: Collection[Dc],
    dc: Dc,
    rules: tuple[RowRule, ...] = (),
    filled: frozenset[int] = frozenset(),
) -> bool:
    """Whether two rows that violate `dc` always violate one of the others, in one direction or the other.

    Each of the two keeps the rules about rows, and has a value in the columns `filled`.
    """
    sides = both(space, dcs)
    return not any(
        dc <= evidence and not any(one <= evidence for one in sides)
        for evidence in evidences(tuple(space.groups), rules, filled)
    )


Demands = Mapping[int, str]  # group: operator


def refuted(clauses: Collection[Demands], n_groups: int, dc: Demands, filled: Collection[int] = ()) -> bool:
    """Whether propagation finds that no pair meets the demands of `dc` if it meets those of no clause.

    In the groups `filled` no pair has the outcome NULL.
    """
    left = [set(OUTCOMES) - ({"null"} if g in filled else set()) for g in range(n_groups)]
    for g, op in dc.items():
        left[g] = {o for o in left[g] if op in HOLDS[o]}
    while True:
        before = [set(outcomes) for outcomes in left]
        for clause in clauses:
            open_ = [g for g, op in clause.items() if not all(op in HOLDS[o] for o in left[g])]
            if not open_:
                return True
            if len(open_) == 1:
                g = open_[0]
                left[g] = {o for o in left[g] if clause[g] not in HOLDS[o]}
        if not all(left):
            return True
        if left == before:
            return False


def not_implied(
    sides: Sequence[tuple[Demands, Demands]],
    n_groups: int,
    order: Sequence[int],
    axioms: Collection[int],
    asked: Collection[int] = (),
    filled: Collection[int] = (),
) -> list[int]:
    """Which DCs (each with its mirror image) stay: kept from the first on, then dropped from the last on.

    Those `asked` imply nothing.
    """

    def follows(i: int, numbers: Collection[int]) -> bool:
        others = [side for j in (*axioms, *numbers) if j != i for side in sides[j]]
        return refuted(others, n_groups, sides[i][0], filled)

    kept: list[int] = []
    for i in [i for i in order if i not in axioms and i not in asked]:
        if not follows(i, kept):
            kept.append(i)
    for i in kept[::-1]:
        if follows(i, kept):
            kept.remove(i)
    return sorted([*kept, *(i for i in asked if not follows(i, kept))])


# --- Support ---------------------------------------------------------------------------------------------


def support(dc: Dc, pairs: Mapping[Dc, int]) -> tuple[int, int, float]:
    """(violations, pairs that lack one predicate, the violations that chance would make)."""

    def satisfying(predicates: Dc) -> int:
        return sum(n for evidence, n in pairs.items() if predicates <= evidence)

    def by_chance(p: int, q: int) -> float:
        among = satisfying(dc - {p, q})
        return satisfying(dc - {p}) * satisfying(dc - {q}) / among if among else 0.0

    near = sum(n for evidence, n in pairs.items() if len(dc - evidence) == 1)
    chances = [by_chance(p, q) for p, q in combinations(dc, 2)]
    return satisfying(dc), near, min(chances, default=float("inf"))

"""Evidence of pairs in plain Python: the slow reference of core/evidence/kernels/pairs.py.

Masks are Python ints; evidence is a dict from mask to pairs, both in the order in which they were met.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Evidence = dict[int, list[tuple[int, int]]]
Columns = Sequence[Sequence[int]]


def agree_mask(codes: Columns, a: int, b: int, nulls_distinct: bool) -> int:
    """The columns on which two rows of a code matrix agree; code 0 is NULL."""
    return sum(
        1 << c
        for c, column in enumerate(codes)
        if column[a] == column[b] and not (nulls_distinct and column[a] == 0)
    )


def consolidated(found: Iterable[tuple[int, int, int]], keep: int) -> Evidence:
    """(mask, a, b) by mask: the first `keep` different pairs of each."""
    evidence: Evidence = {}
    for mask, a, b in found:
        pairs = evidence.setdefault(mask, [])
        if (a, b) not in pairs and len(pairs) < keep:
            pairs.append((a, b))
    return evidence


def pairs_evidence(
    codes: Columns, left: Sequence[int], right: Sequence[int], nulls_distinct: bool, keep: int
) -> Evidence:
    pairs = zip(left, right, strict=True)
    return consolidated(((agree_mask(codes, a, b, nulls_distinct), a, b) for a, b in pairs), keep)


def choose_lists(starts: Columns, ends: Columns, translated: Columns, probes: Columns) -> list[list[int]]:
    """For each batch row the shortest list of each probe; one that only this probe walks is left for one that
    others walk too, if that is at most twice as long. Probes are looked at in order."""
    chosen = [[-1] * len(starts[0]) for _ in probes]
    for b in range(len(starts[0])):
        length = [end[b] - start[b] for start, end in zip(starts, ends, strict=True)]
        members = [[k for k in probe if k >= 0] for probe in probes]
        own = {
            s: min(ks, key=lambda k, ks=ks: (length[k], ks.index(k)))
            for s, ks in enumerate(members)
            if all(translated[k][b] >= 0 for k in ks)
        }
        for s in own:
            walked = list(own.values())
            if walked.count(own[s]) == 1:
                shared = [
                    k for k in members[s] if k != own[s] and k in walked and length[k] <= 2 * length[own[s]]
                ]
                own[s] = shared[0] if shared else own[s]
        for s, k in own.items():
            chosen[s][b] = k
    return [list(of_row) for of_row in zip(*chosen, strict=True)]


def probe(
    codes: Columns,
    live: Sequence[bool],
    translated: Columns,
    looked_up: Sequence[Sequence[bool]],
    index_column: int,
    probes: Columns,
    rhs: Columns,
    own: bool,
    keep: int,
) -> Evidence:
    """The pairs that agree on the columns of a probe, for probes and batch rows that are `looked_up`.

    And, if the probe has any `rhs`, differ on one of these.

    They are met in the order of batch row, old row, each once.
    """
    found = []
    for b in range(len(translated[0])):
        for r in range(len(codes[0])):
            if (own and r >= b) or not live[r] or codes[index_column][r] != translated[index_column][b]:
                continue
            if any(
                looked_up[b][s]
                and all(codes[c][r] == translated[c][b] for c in columns if c >= 0)
                and (rhs[s][0] < 0 or any(codes[c][r] != translated[c][b] for c in rhs[s] if c >= 0))
                for s, columns in enumerate(probes)
            ):
                mask = sum(1 << c for c in range(len(codes)) if codes[c][r] == translated[c][b])
                found.append((mask, b, r))
    return consolidated(found, keep)


def contradicted(
    codes: Columns, live: Sequence[bool], translated: Columns, column: int, rhs: Sequence[int]
) -> list[bool]:
    """Whether the first live row with a batch row's value of the column differs from it on the rhs."""
    found = []
    for b in range(len(translated[0])):
        rows = [r for r in range(len(codes[0])) if live[r] and codes[column][r] == translated[column][b]]
        found.append(any(codes[c][rows[0]] != translated[c][b] for c in rhs) if rows else False)
    return found


def locate(
    codes: Columns, live: Sequence[bool], translated: Columns, columns: Sequence[int]
) -> set[tuple[int, int]]:
    """All (query, live row) that are equal on the columns."""
    return {
        (q, r)
        for q in range(len(translated[0]))
        for r in range(len(codes[0]))
        if live[r] and all(codes[c][r] == translated[c][q] for c in columns)
    }

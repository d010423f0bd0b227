"""Functional dependencies by their left-hand sides, for a picture: the best groups, all others counted.

What follows from a key is folded away. A left-hand side is a key if it is a minimal one; where keys are not
tracked, if it determines all other columns (it is a key then but for rows that repeat).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.app.explorer.listing import CHANCE, Listing, Part
from holdfast.core.words.column_sets import bits_of, columns_of, numbered

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

MOST_GROUPS = 40
# So many groups are looked at, where keys are not tracked, to see whether they determine all columns.
MOST_CLOSURES = 200


def fd_groups(listing: Listing, names: tuple[str, ...], *, follow: bool = False) -> dict[str, Any]:
    """The groups by the best score in them; each with its right-hand sides, best first. `follow`: of those
    that follow from keys instead.

    Cost: a sort of all dependencies; milliseconds for each group that is looked at.
    """
    part, keys = listing.part("fd"), listing.part("ucc")
    if part is None or part.rhs is None:
        return {"n": None, "n_of_keys": 0, "n_chance": 0, "n_groups": 0} | {
            "follow": follow,
            "columns": [],
            "groups": [],
        }
    of_keys = np.zeros(len(part.roles), dtype=np.bool_)
    if keys is not None:
        numbers = numbered(np.concatenate([part.left, keys.left]))
        is_minimal = np.zeros(int(numbers.max(initial=-1)) + 1, dtype=np.bool_)
        is_minimal[numbers[len(part.left) :]] = True
        group, of_keys = numbers[: len(part.left)], is_minimal[numbers[: len(part.left)]]
    else:
        group = numbered(part.left)
    is_chance = (part.roles == CHANCE) & ~of_keys
    meant = np.flatnonzero(of_keys if follow and keys is not None else ~of_keys & ~is_chance)
    # Parts are best first: where a group is first met, its best member is.
    _, first = np.unique(group[meant], return_index=True)
    heads = meant[np.sort(first)]
    groups: list[dict[str, Any]] = []
    n_keys, n_of_keys = 0, int(of_keys.sum())
    for looked, head in enumerate(heads.tolist()):
        if len(groups) == MOST_GROUPS:
            break
        members = meant[group[meant] == group[head]]
        if keys is None:
            is_key = looked < MOST_CLOSURES and _determines_all(part, head, len(names))
            n_keys, n_of_keys = n_keys + is_key, n_of_keys + is_key * len(members)
            if is_key != follow:
                continue
        [lhs] = columns_of(part.left[head : head + 1])
        groups.append(
            {
                "lhs": list(lhs),
                "rhs": part.rhs[members].tolist(),
                "scores": part.scores[members].round(4).tolist(),
            }
        )
    return {
        "n": len(part.roles),
        "n_of_keys": n_of_keys,
        "n_chance": int(is_chance.sum()),
        "n_groups": n_keys if follow and keys is None else len(heads) - n_keys,
        "follow": follow,
        "columns": list(names),
        "groups": groups,
    }


def _determines_all(part: Part, place: int, n_columns: int) -> bool:
    """Whether a left-hand side determines every other column: of each it has a minimal left-hand side."""
    assert part.rhs is not None
    lhs = part.left[place]
    inside = ~(part.left & ~lhs).any(axis=1)
    closed = bits_of(lhs[None, :], n_columns)[0]
    closed[part.rhs[inside]] = True
    return bool(closed.all())

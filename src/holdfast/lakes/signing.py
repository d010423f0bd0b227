"""Signatures of the columns of a part and their matrix, for the proposer that needs them (MANY, sec. 4).

They are made when that proposer is asked for or chosen, of all parts that lack them, and stay with their
parts until these are merged. One Spark job, and one that joins pieces. Cost: k * p positions for each value.
Whether they pay: `chosen_proposer`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from holdfast.core.engine.engine import Engine
from holdfast.core.engine.job_progress import Progress
from holdfast.core.store.files import FileRef
from holdfast.core.store.root import Root, root_of
from holdfast.lakes.index import join_pieces, piece_folder
from holdfast.lakes.kernels.signatures import BLOCK, bloom, transposed
from holdfast.lakes.propose import Proposer
from holdfast.lakes.sides import opened
from holdfast.lakes.state import LakeOptions, PartRef, write_array

Payload = dict[str, Any]
ARRAYS = ("signatures", "matrix")
# Blocks of 4,096 columns that one task signs and transposes; what a value takes.
BLOCKS_PER_TASK = 16
NS_VALUE = 60
# What proposing takes, in ns for each column: to order the rows of its signature, and for each block; to
# intersect its postings. Its values are looked up in any case, to describe it (docs/decisions/0014).
NS_SIGNATURE, NS_BLOCK, NS_POSTINGS = 700, 600, 600


def is_signed(part: PartRef) -> bool:
    return all(name in part.arrays for name in ARRAYS)


def signed(
    engine: Engine,
    root: Root,
    staging: str,
    parts: Sequence[PartRef],
    options: LakeOptions,
    progress: Progress | None,
) -> list[PartRef]:
    """The parts, each with `signatures` uint64[n_active, n_words] and `matrix` (`kernels/signatures.py`)."""
    payloads: list[Payload] = []
    shapes: dict[str, tuple[tuple[int, ...], type[np.generic]]] = {}
    for number, part in enumerate(parts):
        if is_signed(part):
            continue
        n_blocks = -(-part.n_active // BLOCK)
        shapes[f"signatures_{number}"] = (part.n_active, -(-options.n_bits // 64)), np.uint64
        shapes[f"matrix_{number}"] = (n_blocks, options.n_bits, BLOCK // 64), np.uint64
        firsts = range(0, n_blocks, BLOCKS_PER_TASK)
        shared = {
            "root": str(root),
            "part": part.for_tasks(),
            "options": options.to_dict(),
            "dropped": None,
            "folder": piece_folder(firsts, staging),
            "number": number,
        }
        payloads += [{**shared, "first": first * BLOCK} for first in firsts]
    ns = sum(p.n_entries for p in parts if not is_signed(p)) * NS_VALUE
    where = engine.choose(ns, parallel=True)
    results = engine.run(sign_columns, payloads, where=where, progress=progress, parallel=True)
    pieces: dict[str, list[FileRef]] = {name: [] for name in shapes}
    for written in map(json.loads, results):
        for name, ref in written.items():
            pieces[name].append(FileRef.from_dict(ref))
    arrays = join_pieces(engine, root, pieces, shapes, progress)
    return [
        part
        if is_signed(part)
        else replace(part, arrays={**part.arrays, **{name: arrays[f"{name}_{number}"] for name in ARRAYS}})
        for number, part in enumerate(parts)
    ]


def sign_columns(payload: Payload) -> bytes:
    """The task: the signatures of some blocks of matched columns, and their part of the matrix."""
    root, options = root_of(payload["root"]), LakeOptions.from_dict(payload["options"])
    side = opened(payload, payload["part"])
    first = payload["first"]
    columns = side.array("active")[first : first + BLOCKS_PER_TASK * BLOCK]
    signatures = bloom(*side.values_of(columns), options.m, options.k, options.p)
    arrays = {"signatures": signatures, "matrix": transposed(signatures, options.n_bits)}
    number = payload["number"]
    return json.dumps(
        {
            f"{name}_{number}": write_array(root, payload["folder"], name, array).to_dict()
            for name, array in arrays.items()
        }
    ).encode()


def chosen_proposer(parts: Sequence[PartRef], options: LakeOptions) -> Proposer:
    """The cheaper proposer for the columns of the last part among those of all.

    Signatures pay for each value of a part that has none yet, for each column and for each block of 4,096
    columns; the index for each column. Where integers are matched, nearly every inclusion is of them, and
    what each costs decides: 100 ns by signatures, which are validated one by one, 20 ns by the index. Partial
    inclusions need the index anyway. With the costs measured so far the index wins at every size.
    """
    if "integer" not in options.filters or options.max_error:
        return "index"
    n_new = parts[-1].n_active
    blocks = -(-sum(part.n_active for part in parts) // BLOCK)
    unsigned = sum(part.n_entries for part in parts if not is_signed(part))
    by_signatures = unsigned * NS_VALUE + n_new * (NS_SIGNATURE + NS_BLOCK * blocks)
    return "signatures" if by_signatures < n_new * NS_POSTINGS else "index"

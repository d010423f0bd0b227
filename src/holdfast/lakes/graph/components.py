"""The components of a lake's join graph, kept with every step: the part of the graph that a commit stores.

    forest_part      a group of new link files      -> its spanning forest, the inclusions of each table
    number_tables    all forests, what was before   -> the component of each table, the inclusions of each

Tables that come add links, so components only grow together: the step reads its new links, and of the old
graph one number for each table. After tables went all links are read. Places are nobody's before somebody
looks: `drawing.py`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.engine import Engine
from holdfast.core.engine.job_progress import Progress
from holdfast.core.engine.worker import Task
from holdfast.core.store.bundle import open_bundle, write_bundle
from holdfast.core.store.files import FileRef, unique_name
from holdfast.core.store.root import Root, root_of
from holdfast.lakes.graph.links import live_links, weigh
from holdfast.lakes.kernels.graph_parts import components, forest
from holdfast.lakes.state import GraphRef, open_array, write_array

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F32 = NDArray[np.float32]
Bool = NDArray[np.bool_]
Payload = dict[str, Any]

# Bytes of links that one task reads.
TASK_BYTES = 1 << 25
# What it takes for each byte of links, and for each table.
NS_BYTE, NS_TABLE = 40, 100


def connect(
    engine: Engine,
    root: Root,
    folder: str,
    staging: str,
    links: Sequence[FileRef],
    n_tables: int,
    dead: Bool,
    before: GraphRef | None = None,
    progress: Progress | None = None,
) -> GraphRef:
    """The graph of the links between tables that are not `dead`: of these alone, or beside those of `before`.

    Files (npy): `components` int32[n_tables], 0 is the largest one, -1 a dead table or one without links;
    `weights` int64[2, n_tables], the inclusions by dependent table, and by referenced table those that lie
    in another one. Two Spark jobs at most. Cost: the links that are given, and a pass over the tables.
    """
    n_bytes = sum(ref.length for ref in links)
    where = engine.choose(n_bytes * NS_BYTE + n_tables * NS_TABLE, parallel=True)

    def run(task: Task, payloads: Sequence[Payload]) -> list[dict[str, Any]]:
        full = [{"root": str(root), "folder": folder, "staging": staging, **p} for p in payloads]
        results = engine.run(task, full, where=where, progress=progress, parallel=True)
        return [json.loads(result) for result in results]

    buried = write_array(root, staging, "dead", np.asarray(dead, np.bool_)).to_dict()
    groups = [{"links": [ref.to_dict() for ref in group], "dead": buried} for group in _grouped(links)]
    forests = [planted["forest"] for planted in run(forest_part, groups)]
    earlier = {name: refs[0].to_dict() for name, refs in before.files.items()} if before is not None else None
    payload = {"forests": forests, "n_tables": n_tables, "dead": buried, "before": earlier}
    (numbered,) = run(number_tables, [payload])
    files: dict[str, tuple[FileRef, ...]] = {
        name: (FileRef.from_dict(numbered[name]),) for name in ("components", "weights")
    }
    return GraphRef(files, numbered["n_components"], numbered["n_isolated"])


def _grouped(links: Sequence[FileRef]) -> list[list[FileRef]]:
    """Files in groups of a size that suits a task."""
    groups: list[list[FileRef]] = []
    size = TASK_BYTES
    for ref in links:
        if size + ref.length > TASK_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(ref)
        size += ref.length
    return groups


def forest_part(payload: Payload) -> bytes:
    """The spanning forest of the links of some files, and the inclusions of each table in them."""
    root = root_of(payload["root"])
    dead = open_array(root, FileRef.from_dict(payload["dead"]))
    n = len(dead)
    left, right = np.empty(0, np.int32), np.empty(0, np.int32)
    weights = np.zeros((2, n), np.int64)
    for dep, ref, n_inds, _ in live_links(root, [FileRef.from_dict(r) for r in payload["links"]], dead):
        apart = dep != ref
        left, right = forest(n, np.concatenate([left, dep[apart]]), np.concatenate([right, ref[apart]]))
        weigh(weights, dep, ref, n_inds)
    tables = np.flatnonzero(weights.any(axis=0))
    arrays: dict[str, NDArray[Any]] = {
        "left": left,
        "right": right,
        "tables": tables.astype(np.int32),
        "by_dependent": weights[0, tables],
        "by_referenced": weights[1, tables],
    }
    name = unique_name(payload["staging"], "forest", ".arrow")
    planted = write_bundle(root, name, arrays, {"holdfast": "forest"})
    return json.dumps({"forest": planted.to_dict()}).encode()


def number_tables(payload: Payload) -> bytes:
    """The component of each table, numbered by size, and the inclusions of each."""
    root, n = root_of(payload["root"]), int(payload["n_tables"])
    planted = [open_bundle(root, FileRef.from_dict(ref), "forest") for ref in payload["forests"]]
    lefts, rights = ([p.array(side) for p in planted] for side in ("left", "right"))
    weights = np.zeros((2, n), np.int64)
    if payload["before"] is not None:
        old, older = (
            open_array(root, FileRef.from_dict(payload["before"][k])) for k in ("components", "weights")
        )
        weights[:, : older.shape[1]] = older
        tables, first = _stars(old)
        lefts.append(tables)
        rights.append(first)
    for p in planted:
        weights[0, p.array("tables")] += p.array("by_dependent")
        weights[1, p.array("tables")] += p.array("by_referenced")
    left, right = (np.concatenate([np.empty(0, np.int32), *ends]) for ends in (lefts, rights))
    labels = components(n, left, right)
    linked = np.zeros(n, np.bool_)
    linked[left], linked[right] = True, True
    roots, sizes = np.unique(labels[linked], return_counts=True)
    by_size = np.lexsort((roots, -sizes))
    numbers = np.full(n, -1, np.int32)
    numbers[roots[by_size]] = np.arange(len(roots), dtype=np.int32)
    component = np.where(linked, numbers[labels], -1).astype(np.int32)
    dead = open_array(root, FileRef.from_dict(payload["dead"]))
    graph = {
        "components": write_array(root, payload["folder"], "components", component).to_dict(),
        "weights": write_array(root, payload["folder"], "weights", weights).to_dict(),
        "n_components": len(roots),
        "n_isolated": int((~linked & ~dead).sum()),
    }
    return json.dumps(graph).encode()


def _stars(component: I32) -> tuple[I32, I32]:
    """Links that make the components: of each table of one with its first.

    >>> _stars(np.array([1, 0, -1, 0, 1, 0], dtype=np.int32))
    (array([0, 1, 3, 4, 5], dtype=int32), array([0, 1, 1, 0, 1], dtype=int32))
    """
    tables = np.flatnonzero(component >= 0).astype(np.int32)
    _, first, at = np.unique(component[tables], return_index=True, return_inverse=True)
    return tables, tables[first][at]

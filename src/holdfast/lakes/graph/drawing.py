"""The join graph of a lake, drawn: components, an overview of them, a place for each table, merged edges.

Input are files of links between tables, where a pair may occur in several. A constant number of jobs:

    forest_part      a group of link files   -> its spanning forest, how many links each table has
    number_tables    all forests             -> the component of each table, units of work
    deal_part        a group of link files   -> its links by unit
    merge_unit       a unit                  -> edges, one per pair, written; the strongest of them
    draw_run         some components         -> places of their tables, clusters of the great ones
    write_overview   all components          -> circles that do not overlap

A *unit* is a run of components, or a share of one that has many links. No task holds more than a unit's
links, or the strongest few per table of the components that it draws; the driver holds names of files and
counts. Everything depends on the links alone, not on how files and tasks divide them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from holdfast.core.engine.engine import Engine, Progress, Task
from holdfast.core.engine.session import available_cores
from holdfast.core.store.bundle import Bundle, open_bundle, write_bundle
from holdfast.core.store.files import FileRef, new_file, unique_name
from holdfast.lakes.kernels.circles import apart, packed
from holdfast.lakes.kernels.graph_layout import layout, layouts
from holdfast.lakes.kernels.graph_parts import communities, components, forest, spanning
from holdfast.lakes.state import GraphRef, open_array, parquet_batches, write_array

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F32 = NDArray[np.float32]
Bool = NDArray[np.bool_]
Payload = dict[str, Any]

# A component of more tables is drawn as clusters, none of which has more.
CLUSTERED = 10_000
# Edges per table that decide its place, beside a spanning forest of the strongest.
EDGES_PER_TABLE = 4
ROW_GROUP = 100_000
# Bytes of links that one task reads, and rows that it holds at a time.
TASK_BYTES = 1 << 25
BATCH_ROWS = 1 << 20
# Links of a unit, at most and at least. A table counts as some links: laying it out takes that long.
UNIT_LINKS, SMALLEST_UNIT = 2_000_000, 100_000
TABLE_COST = 20
# What drawing takes for each byte of links, of which a table counts as some: 0.25 s for 6,000 tables.
NS_BYTE = 200
TABLE_BYTES = 200
SEED = 1
GAP = 0.3  # between circles, of the radius of a circle for one table

COMPONENTS_SCHEMA = pa.schema(
    [
        ("component", pa.int32()),
        ("n_tables", pa.int32()),
        ("n_inds", pa.int64()),
        ("hub", pa.int32()),
        ("x", pa.float32()),
        ("y", pa.float32()),
        ("r", pa.float32()),
    ]
)
LAYOUT_SCHEMA = pa.schema(
    [
        ("table", pa.int32()),
        ("component", pa.int32()),
        ("cluster", pa.int32()),
        ("x", pa.float32()),
        ("y", pa.float32()),
        ("degree", pa.int32()),
    ]
)
CLUSTERS_SCHEMA = pa.schema(
    [
        ("component", pa.int32()),
        ("cluster", pa.int32()),
        ("n_tables", pa.int32()),
        ("hub", pa.int32()),
        ("x", pa.float32()),
        ("y", pa.float32()),
        ("r", pa.float32()),
    ]
)
CLUSTER_LINKS_SCHEMA = pa.schema(
    [("component", pa.int32()), ("left", pa.int32()), ("right", pa.int32()), ("n", pa.int64())]
)
EDGES_SCHEMA = pa.schema(
    [
        ("component", pa.int32()),
        ("dep_table", pa.int32()),
        ("ref_table", pa.int32()),
        ("n_inds", pa.int32()),
        ("score", pa.float32()),
    ]
)


def draw(
    engine: Engine,
    root: Path,
    folder: str,
    staging: str,
    links: Sequence[FileRef],
    n_tables: int,
    dead: Bool,
    progress: Progress | None = None,
) -> GraphRef:
    """Draw the graph of all links between tables that are not `dead`; write it into `folder`.

    Files: `components` (npy, int32[n_tables]: 0 is the largest one, -1 a dead table or one without edges),
    and in Parquet `overview`, `layout`, `clusters`, `cluster_links`, `edges`, each in the order of
    components. A table's place is relative to the middle of its component or, where there are clusters, of
    its cluster; `cluster` is -1 where there are none.
    """
    work = sum(ref.length for ref in links) + TABLE_BYTES * n_tables
    where = engine.choose_sooner(work * NS_BYTE / 1e9, parallel=True)

    def run(task: Task, payloads: Sequence[Payload]) -> list[dict[str, Any]]:
        full = [{"root": str(root), "folder": folder, "staging": staging, **p} for p in payloads]
        results = engine.run(task, full, where=where, progress=progress, parallel=True)
        return [json.loads(result) for result in results]

    buried = write_array(root, staging, "dead", np.asarray(dead, np.bool_)).to_dict()
    groups = [{"links": [ref.to_dict() for ref in group], "dead": buried} for group in _grouped(links)]
    planted = run(forest_part, groups)
    cost = sum(p["n_links"] for p in planted) + TABLE_COST * n_tables
    unit = min(UNIT_LINKS, max(SMALLEST_UNIT, cost // (4 * engine.cores)))
    forests = [p["forest"] for p in planted]
    (numbered,) = run(
        number_tables, [{"forests": forests, "n_tables": n_tables, "dead": buried, "unit": unit}]
    )
    shared = {"numbers": numbered["numbers"], "components": numbered["components"]}
    dealt = [ref for told in run(deal_part, [{**g, **shared} for g in groups]) for ref in told["dealt"]]
    n_units = numbered["n_units"]
    merged = run(merge_unit, [{**shared, "dealt": dealt, "unit": u} for u in range(n_units)])
    payloads = []
    for first, last, first_unit, last_unit in numbered["runs"]:
        own = merged[first_unit:last_unit]
        chosen, edges = [m["chosen"] for m in own], [m["edges"] for m in own if m["edges"]]
        payloads.append({**shared, "first": first, "last": last, "chosen": chosen, "edges": edges})
    drawn = run(draw_run, payloads)
    (overview,) = run(write_overview, [{**shared, "drawn": [d["drawn"] for d in drawn]}])

    def written(results: Sequence[dict[str, Any]], name: str) -> tuple[FileRef, ...]:
        return tuple(FileRef.from_dict(told[name]) for told in results if told[name] is not None)

    files = {
        "components": written([numbered], "components"),
        "overview": written([overview], "overview"),
        "layout": written(drawn, "layout"),
        "clusters": written(drawn, "clusters"),
        "cluster_links": written(drawn, "cluster_links"),
        "edges": written(merged, "edges"),
    }
    n_edges = sum(m["n_edges"] for m in merged)
    return GraphRef(files, numbered["n_components"], numbered["n_isolated"], n_edges)


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


# -- forests -----------------------------------------------------------------------------------


def forest_part(payload: Payload) -> bytes:
    """The spanning forest of the links of some files, and how many links each table has."""
    root = Path(payload["root"])
    dead = _array(root, payload["dead"])
    n = len(dead)
    left, right = np.empty(0, np.int32), np.empty(0, np.int32)
    counts = np.zeros(n, np.int64)  # links by dependent table
    for dep, ref, _, _ in _links(root, payload["links"], dead):
        left, right = forest(n, np.concatenate([left, dep]), np.concatenate([right, ref]))
        counts += np.bincount(dep, minlength=n)
    tables = np.flatnonzero(counts)
    trees: dict[str, NDArray[Any]] = {"left": left, "right": right}
    arrays = {**trees, "tables": tables.astype(np.int32), "counts": counts[tables]}
    return _told(forest=_staged(payload, "forest", arrays), n_links=int(counts.sum()))


def _links(
    root: Path, refs: Sequence[Payload], dead: Bool, *, own: bool = False
) -> Iterator[tuple[I32, I32, I32, F32]]:
    """(dep, ref, n_inds, score) of links between two live tables, batch by batch.

    `own`: also the links of tables with themselves, which only count inclusions that no link was kept for.
    """
    names = ("dep_table", "ref_table", "n_inds", "score")
    for batch in parquet_batches(root, [FileRef.from_dict(r) for r in refs], names, BATCH_ROWS):
        dep, ref, n_inds, score = (_numpy(batch.column(name)) for name in names)
        kept = ~dead[dep] & ~dead[ref]
        if not own:
            kept &= dep != ref
        if kept.any():
            yield dep[kept], ref[kept], n_inds[kept], score[kept]


def number_tables(payload: Payload) -> bytes:
    """The component of each table, numbered by size; tables by component; units and runs.

    A *run* is a run of components that are drawn together, and of the units that have their links.
    """
    root, n = Path(payload["root"]), int(payload["n_tables"])
    planted = [_bundle(root, ref, "forest") for ref in payload["forests"]]
    left, right = (
        np.concatenate([np.empty(0, np.int32), *(p.array(side) for p in planted)])
        for side in ("left", "right")
    )
    labels = components(n, left, right)
    linked = np.zeros(n, np.bool_)
    linked[left], linked[right] = True, True
    roots, sizes = np.unique(labels[linked], return_counts=True)
    by_size = np.lexsort((roots, -sizes))
    numbers = np.full(n, -1, np.int32)
    numbers[roots[by_size]] = np.arange(len(roots), dtype=np.int32)
    component = np.where(linked, numbers[labels], -1).astype(np.int32)
    tables = np.flatnonzero(linked)
    tables = tables[np.argsort(component[tables], kind="stable")].astype(np.int32)
    starts = np.append(0, np.cumsum(sizes[by_size])).astype(np.int64)

    counts = np.zeros(len(roots), np.int64)
    for p in planted:
        np.add.at(counts, component[p.array("tables")], p.array("counts"))
    first_unit, n_units, runs = _units(counts + TABLE_COST * sizes[by_size], int(payload["unit"]))
    arrays = {"tables": tables, "starts": starts, "first_unit": first_unit, "n_units": n_units}
    dead = _array(root, payload["dead"])
    return _told(
        components=write_array(root, payload["folder"], "components", component).to_dict(),
        numbers=_staged(payload, "numbers", arrays),
        n_components=len(roots),
        n_isolated=int((~linked & ~dead).sum()),
        n_units=int((first_unit + n_units).max(initial=0)),
        runs=runs,
    )


def _units(costs: I64, unit: int) -> tuple[I64, I64, list[list[int]]]:
    """(first unit, number of units) of each component, and the runs: [component, end, unit, end].

    A component of a greater cost than a unit's has units, and a run, of its own.

    >>> first, count, runs = _units(np.array([25, 4, 4, 4]), 10)
    >>> first.tolist(), count.tolist(), runs
    ([0, 3, 3, 4], [3, 1, 1, 1], [[0, 1, 0, 3], [1, 3, 3, 4], [3, 4, 4, 5]])
    """
    n_units = np.maximum(1, -(-costs // unit))
    alone = n_units > 1
    block = np.cumsum(np.where(alone, 0, costs)) // unit
    starts = np.ones(len(costs), np.bool_)
    starts[1:] = alone[1:] | alone[:-1] | (block[1:] != block[:-1])
    firsts = np.flatnonzero(starts)
    ends = np.append(firsts[1:], len(costs)) if len(firsts) else firsts
    until = np.cumsum(n_units[firsts])
    since = until - n_units[firsts]
    runs: list[list[int]] = np.stack([firsts, ends, since, until], axis=1).tolist()
    return since[np.cumsum(starts) - 1], n_units, runs


# -- edges -------------------------------------------------------------------------------------


def deal_part(payload: Payload) -> bytes:
    """The links of some files by unit, in staged files. Both directions of a pair are in one unit."""
    root = Path(payload["root"])
    dead, component = _array(root, payload["dead"]), _array(root, payload["components"])
    numbers = _bundle(root, payload["numbers"], "numbers")
    first_unit, n_units = numbers.array("first_unit"), numbers.array("n_units")
    total = int((first_unit + n_units).max(initial=0))
    dealt = []
    for links in _links(root, payload["links"], dead, own=True):
        linked = component[links[0]] >= 0
        dep, ref, n_inds, score = (column[linked] for column in links)
        own = component[dep]
        spread = np.minimum(dep, ref).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(33)
        unit = first_unit[own] + (spread % n_units[own].astype(np.uint64)).astype(np.int64)
        order = np.argsort(unit, kind="stable")
        starts = np.searchsorted(unit[order], np.arange(total + 1)).astype(np.int64)
        arrays = {"dep": dep[order], "ref": ref[order], "n_inds": n_inds[order], "score": score[order]}
        dealt.append(_staged(payload, "links", {**arrays, "starts": starts}))
    return _told(dealt=dealt)


def merge_unit(payload: Payload) -> bytes:
    """The links of a unit as edges, one per pair, written; and what is needed to draw them.

    That is: the edges to draw, how many tables each table is linked with, the INDs of each component.
    """
    root, unit = Path(payload["root"]), int(payload["unit"])
    dep, ref, n_inds, score = _unit_links(root, payload["dealt"], unit)
    key = (dep.astype(np.int64) << 32) | ref
    order = np.argsort(key, kind="stable")
    firsts = np.flatnonzero(np.diff(key[order], prepend=-1))
    n_inds = _reduced(np.add, n_inds[order].astype(np.int64), firsts)
    n_inds = np.minimum(n_inds, np.iinfo(np.int32).max)
    score = _reduced(np.maximum, score[order], firsts)
    key = key[order[firsts]]
    dep, ref = (key >> 32).astype(np.int32), (key & 0xFFFFFFFF).astype(np.int32)
    component = _array(root, payload["components"])
    members, at = np.unique(component[dep], return_inverse=True)
    totals = np.bincount(at, n_inds, len(members)).astype(np.int64)
    apart_from = dep != ref
    dep, ref, n_inds, score = (column[apart_from] for column in (dep, ref, n_inds, score))

    numbers = _bundle(root, payload["numbers"], "numbers")
    sizes = np.diff(numbers.array("starts"))
    own = component[dep]
    order = _best_first(own, score)
    table = pa.table([own[order], dep[order], ref[order], n_inds[order], score[order]], EDGES_SCHEMA.names)
    edges = _parquet(payload, "edges", table.cast(EDGES_SCHEMA)) if len(dep) else None

    left, right, best = _undirected(dep, ref, score)
    tables, degrees = np.unique(np.concatenate([left, right]), return_counts=True)
    chosen = _strongest(component, sizes, left, right, best)
    arrays: dict[str, NDArray[Any]] = {
        "left": left[chosen],
        "right": right[chosen],
        "score": best[chosen],
        "tables": tables,
        "degrees": degrees.astype(np.int32),
        "components": members,
        "n_inds": totals,
    }
    return _told(edges=edges, n_edges=len(dep), chosen=_staged(payload, "chosen", arrays))


def _unit_links(root: Path, dealt: Sequence[Payload], unit: int) -> tuple[I32, I32, I32, F32]:
    parts = []
    for ref in dealt:  # there is one at least, or there would be no unit
        bundle = _bundle(root, ref, "links")
        starts = bundle.array("starts")
        low, high = int(starts[unit]), int(starts[unit + 1])
        parts.append([bundle.array(name)[low:high] for name in ("dep", "ref", "n_inds", "score")])
    dep, other, n_inds, score = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return dep, other, n_inds, score


def _undirected(dep: I32, ref: I32, score: F32) -> tuple[I32, I32, F32]:
    """(left, right, score) with left < right, one per pair, the better score of the two directions."""
    low, high = np.minimum(dep, ref).astype(np.int64), np.maximum(dep, ref)
    key = (low << 32) | high
    order = np.argsort(key, kind="stable")
    firsts = np.flatnonzero(np.diff(key[order], prepend=-1))
    pairs = key[order[firsts]]
    best = _reduced(np.maximum, score[order], firsts)
    return (pairs >> 32).astype(np.int32), (pairs & 0xFFFFFFFF).astype(np.int32), best


def _best_first(component: I32, score: F32) -> I64:
    """The order by component and falling score; ties as they come. One sort of whole numbers."""
    bits = (np.maximum(score, 0) + np.float32(0)).astype(np.float32).view(np.uint32)
    key = (component.astype(np.uint64) << np.uint64(32)) | (~bits).astype(np.uint64)
    return np.argsort(key, kind="stable")


def _reduced(ufunc: np.ufunc, values: NDArray[Any], firsts: I64) -> NDArray[Any]:
    """`reduceat`, which refuses to reduce nothing. A share of a component may be empty."""
    return ufunc.reduceat(values, firsts) if len(firsts) else values


def _strongest(component: I32, sizes: I64, left: I32, right: I32, score: F32) -> I64:
    """Which edges to draw: a spanning forest of the best, and the best few per table of a component.

    Edges come by (left, right), which decides among equal scores. So the choice among the chosen of several
    shares of the edges is that among all.
    """
    own = component[left]
    order = _best_first(own, score)
    own = own[order]
    rank = np.arange(len(order)) - np.searchsorted(own, own)
    kept = rank < EDGES_PER_TABLE * sizes[own]
    if not kept.all():
        kept |= spanning(len(component), left[order], right[order])
    return order[kept]


# -- places ------------------------------------------------------------------------------------


def draw_run(payload: Payload) -> bytes:
    """Places for the tables of a run of components; clusters where there are too many tables."""
    root, first, last = Path(payload["root"]), int(payload["first"]), int(payload["last"])
    component = _array(root, payload["components"])
    numbers = _bundle(root, payload["numbers"], "numbers")
    starts = numbers.array("starts")
    tables = numbers.array("tables")[starts[first] : starts[last]]
    n = len(tables)
    local = np.full(len(component), -1, np.int32)  # the position of a table in the run
    local[tables] = np.arange(n, dtype=np.int32)
    parts = [_bundle(root, ref, "chosen") for ref in payload["chosen"]]
    left, right, score = (np.concatenate([p.array(k) for p in parts]) for k in ("left", "right", "score"))
    order = np.argsort((left.astype(np.int64) << 32) | right)
    chosen = order[_strongest(component, np.diff(starts), left[order], right[order], score[order])]
    a, b, weights = local[left[chosen]], local[right[chosen]], score[chosen]
    degrees, n_inds = np.zeros(n, np.int32), np.zeros(last - first, np.int64)
    for p in parts:
        np.add.at(degrees, local[p.array("tables")], p.array("degrees"))
        np.add.at(n_inds, p.array("components") - first, p.array("n_inds"))

    begins = starts[first : last + 1] - starts[first]
    great = np.flatnonzero(np.diff(begins) > CLUSTERED)
    places = np.zeros((n, 2), np.float32)
    clusters = np.full(n, -1, np.int32)
    small = np.repeat(np.diff(begins) <= CLUSTERED, np.diff(begins))
    if small.any():
        mine = small[a]
        # The nodes of great components have no edges here, and so no cost.
        places = layouts(n, a[mine], b[mine], weights[mine], SEED)[0]
    told: dict[str, list[pa.Table]] = {"clusters": [], "cluster_links": []}
    for c in great.tolist():
        low, high = int(begins[c]), int(begins[c + 1])
        mine = (a >= low) & (a < high)
        group = _Clustered(a[mine] - low, b[mine] - low, weights[mine], tables[low:high], degrees[low:high])
        places[low:high], clusters[low:high] = group.places, group.labels
        labels = np.full(len(component), -1, np.int32)
        labels[tables[low:high]] = group.labels
        own, links = group.written(first + c, _between(root, payload["edges"], first + c, labels))
        told["clusters"].append(own)
        told["cluster_links"].append(links)
    own = component[tables]
    order = np.lexsort((tables, clusters, own))
    columns = [tables, own, clusters, places[:, 0], places[:, 1], degrees]
    drawn = pa.table([c[order] for c in columns], LAYOUT_SCHEMA.names)
    hubs = tables[_hubs(own - first, degrees, tables, last - first)]
    return _told(
        layout=_parquet(payload, "layout", drawn.cast(LAYOUT_SCHEMA)),
        drawn=_staged(payload, "drawn", {"hubs": hubs, "n_inds": n_inds}),
        **{name: _parquet(payload, name, pa.concat_tables(t)) if t else None for name, t in told.items()},
    )


def _hubs(groups: I32, degrees: I32, tables: I32, n_groups: int) -> I64:
    """The position of the table of greatest degree of each group, the first table of several."""
    order = np.lexsort((tables, -degrees, groups))
    hubs: I64 = order[np.searchsorted(groups[order], np.arange(n_groups))]
    return hubs


class _Clustered:
    """A great component as clusters: tables by cluster, each cluster drawn for itself."""

    def __init__(self, left: I32, right: I32, weights: F32, tables: I32, degrees: I32) -> None:
        n = len(tables)
        self.tables, self.degrees = tables, degrees
        self.labels = communities(n, left, right, weights, SEED, largest=max(2, CLUSTERED // 2))
        self.sizes = np.bincount(self.labels)
        self.places = np.zeros((n, 2), np.float32)
        inner = self.labels[left] == self.labels[right]
        left, right, weights = left[inner], right[inner], weights[inner]
        members = np.argsort(self.labels, kind="stable")
        begins = np.append(0, np.cumsum(self.sizes))
        rank = np.empty(n, np.int32)
        rank[members] = np.arange(n, dtype=np.int32)
        by_cluster = np.argsort(self.labels[left], kind="stable")
        left, right, weights = rank[left[by_cluster]], rank[right[by_cluster]], weights[by_cluster]
        cuts = np.searchsorted(self.labels[members[left]], np.arange(len(begins)))

        def draw_cluster(c: int) -> None:
            low, high = int(begins[c]), int(begins[c + 1])
            edges = slice(int(cuts[c]), int(cuts[c + 1]))
            drawn = layout(high - low, left[edges] - low, right[edges] - low, weights[edges], SEED)
            self.places[members[low:high]] = drawn - (drawn.min(axis=0) + drawn.max(axis=0)) / 2

        # A lake has one great component at most times, so the other cores of this machine are idle.
        with ThreadPoolExecutor(available_cores()) as threads:
            list(threads.map(draw_cluster, range(len(self.sizes))))

    def written(self, component: int, links: tuple[I32, I32, I64]) -> tuple[pa.Table, pa.Table]:
        """What is written of the clusters, and of the links between them."""
        left, right, counts = links
        k = len(self.sizes)
        radii = np.sqrt(self.sizes)
        ties = counts / np.minimum(self.sizes[left], self.sizes[right])
        rough = layout(k, left, right, ties, SEED) if k > 1 else np.zeros((1, 2), np.float32)
        places = apart(rough, radii + GAP * np.sqrt(radii))
        hubs = self.tables[_hubs(self.labels, self.degrees, self.tables, k)]
        number = np.full(k, component, np.int32)
        columns = [number, np.arange(k), self.sizes, hubs, places[:, 0], places[:, 1], radii]
        own = pa.table([pa.array(c) for c in columns], CLUSTERS_SCHEMA.names).cast(
            CLUSTERS_SCHEMA, safe=False
        )
        columns = [np.full(len(left), component, np.int32), left, right, counts]
        return own, pa.table(columns, CLUSTER_LINKS_SCHEMA.names).cast(CLUSTER_LINKS_SCHEMA)


def _between(root: Path, edges: Sequence[Payload], component: int, labels: I32) -> tuple[I32, I32, I64]:
    """(left, right, n): how many edges join two clusters of a component, of all that were written.

    `labels`: the cluster of each table of the lake.
    """
    k = int(labels.max()) + 1
    keys, counts = np.empty(0, np.int64), np.empty(0, np.int64)
    names = ("component", "dep_table", "ref_table")
    for batch in parquet_batches(root, [FileRef.from_dict(r) for r in edges], names, BATCH_ROWS):
        own, dep, ref = (_numpy(batch.column(name)) for name in names)
        mine = own == component
        a, b = (labels[side[mine]].astype(np.int64) for side in (dep, ref))
        apart_from = a != b
        a, b = a[apart_from], b[apart_from]
        found, n = np.unique(np.minimum(a, b) * k + np.maximum(a, b), return_counts=True)
        keys, at = np.unique(np.concatenate([keys, found]), return_inverse=True)
        counts = np.bincount(at, np.concatenate([counts, n]), len(keys)).astype(np.int64)
    return (keys // k).astype(np.int32), (keys % k).astype(np.int32), counts


def write_overview(payload: Payload) -> bytes:
    """All components as circles beside each other, the largest in the middle."""
    root = Path(payload["root"])
    sizes = np.diff(_bundle(root, payload["numbers"], "numbers").array("starts"))
    parts = [_bundle(root, ref, "drawn") for ref in payload["drawn"]]
    hubs = np.concatenate([np.empty(0, np.int32), *(p.array("hubs") for p in parts)])
    n_inds = np.concatenate([np.empty(0, np.int64), *(p.array("n_inds") for p in parts)])
    radii = np.sqrt(sizes)
    places = packed(radii + GAP / 2)
    columns = [np.arange(len(sizes)), sizes, n_inds, hubs, places[:, 0], places[:, 1], radii]
    table = pa.table([pa.array(c) for c in columns], COMPONENTS_SCHEMA.names)
    return _told(overview=_parquet(payload, "overview", table.cast(COMPONENTS_SCHEMA, safe=False)))


# -- files -------------------------------------------------------------------------------------


def _told(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def _numpy(column: pa.Array) -> NDArray[Any]:
    """Without NULLs; not by way of pandas."""
    return np.asarray(column)


def _array(root: Path, ref: Payload) -> NDArray[Any]:
    return open_array(root, FileRef.from_dict(ref))


def _bundle(root: Path, ref: Payload, what: str) -> Bundle:
    return open_bundle(root, FileRef.from_dict(ref), what)


def _staged(payload: Payload, what: str, arrays: dict[str, NDArray[Any]]) -> Payload:
    name = unique_name(payload["staging"], what, ".arrow")
    return write_bundle(Path(payload["root"]), name, arrays, {"holdfast": what}).to_dict()


def _parquet(payload: Payload, stem: str, table: pa.Table) -> Payload:
    root, name = Path(payload["root"]), unique_name(payload["folder"], stem.replace("_", ""), ".parquet")
    with new_file(root, name) as file:
        pq.write_table(table, file, row_group_size=ROW_GROUP, compression="zstd")
    return file.ref.to_dict()

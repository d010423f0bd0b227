"""Whether files lie so far away that executors had better look at them: on a store, with no copies here.

Whoever looks at a file fetches it whole. So what is little work may be much to fetch: one row is looked up
among a thousand million in no time, once some hundred gigabytes have come. Executors have disks and lines of
their own.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.core.engine.engine import Engine
from holdfast.core.store.bucket import Bucket
from holdfast.core.store.files import FileRef
from holdfast.core.store.root import Root

# What it takes to fetch a byte, in ns: 100 MB/s.
NS_FETCHED = 10
# Fewer bytes are fetched sooner than a job has run.
FAR_BYTES = 32 << 20
# Fewer bytes of a table are fetched all the same: the next batch finds them here, and runs without a job.
TABLE_BYTES = 1 << 30


def are_far(engine: Engine, root: Root, files: Iterable[FileRef], least: int | None = None) -> bool:
    """Whether this machine would have to fetch more than so many bytes (FAR_BYTES) to look at some files, and
    executors of a cluster had looked at them sooner."""
    if not isinstance(root, Bucket) or not engine.has_cluster:
        return False
    refs, least = list(files), FAR_BYTES if least is None else least
    if sum(ref.length for ref in refs) <= least:
        return False
    n_bytes = sum(ref.length for ref in refs if not root.is_near(ref))
    return n_bytes > least and engine.choose(NS_FETCHED * n_bytes) == "spark"

"""Sources on an object store: what is known of them before they are read, and what that costs."""

from __future__ import annotations

import gzip
import io
import re
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.core.engine.engine import Engine
from holdfast.core.rows.encoding import Target, plan
from holdfast.core.sources import ReadOptions, read_split
from holdfast.core.store import bucket as buckets
from holdfast.core.store.bucket import Bucket, use_options
from trust.object_store import Faults, Request, Store, through

pytestmark = pytest.mark.xdist_group("store")


@pytest.fixture
def place(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A folder of the store for sources; what is known of stores is forgotten after."""
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "cache"))
    use_options(store.options)
    yield Bucket(f"{store.scheme}://box/{uuid.uuid4().hex}", store.options)
    buckets.forget()


CONTENTS: dict[str, Callable[[int], bytes]] = {
    "csv": lambda i: f"id,word\n{i},a\n".encode(),
    "csv.gz": lambda i: gzip.compress(f"id,word\n{i},a\n".encode()),
    "jsonl": lambda i: f'{{"id":{i},"word":"a"}}\n'.encode(),
    "parquet": lambda i: parquet_of(pa.table({"id": [i], "word": ["a"]})),
}


def parquet_of(rows: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(rows, out)
    return out.getvalue()


@pytest.mark.parametrize("kind", list(CONTENTS))
def test_many_objects_are_looked_at_side_by_side(
    place: Bucket, store: Store, tmp_path: Path, kind: str
) -> None:
    """Their bytes come with the listing. Of each but the first ones little more is asked than its header."""
    n = 40
    lock, under_way, most = threading.Lock(), Counter[str](), [0]

    def began(request: Request) -> str | None:
        with lock:
            under_way["requests"] += 1
            most[0] = max(most[0], under_way["requests"])
        return "delay" if re.search(r"/[23]\d\.", request.path) else None

    def ended(request: Request) -> None:
        with lock:
            under_way["requests"] -= 1

    for i in range(n):
        place.put(f"many/{i:02}.{kind}", CONTENTS[kind](i))
    with through(store, faults := Faults(began, ended)) as address:
        use_options(store.options_at(address))
        target = Target(tmp_path, "tables", "t", None, "equal", Engine(mode="inline"))
        source = plan(f"{place}/many", ReadOptions(), target, "staging")
    assert (len(source.splits), source.names) == (n, ("id", "word"))
    assert most[0] > 4
    assert faults.counted("HEAD") <= (n + 2 if kind == "parquet" else 2)
    assert faults.counted("GET") <= 4 * n


def test_a_stream_of_arrow(place: Bucket, store: Store, tmp_path: Path) -> None:
    """Its size, its end, where a file has its mark, its first batch, all of it."""
    out = io.BytesIO()
    rows = pa.table({"id": range(10_000)})
    with pa.ipc.new_stream(out, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=100)
    place.put("rows.arrows", out.getvalue())
    with through(store, faults := Faults()) as address:
        use_options(store.options_at(address))
        target = Target(tmp_path, "tables", "t", None, "equal", Engine(mode="inline"))
        source = plan(f"{place}/rows.arrows", ReadOptions(), target, "staging")
        assert faults.counted("GET") <= 6
        [split] = source.splits
        assert read_split(split, source.names, source.types, options=source.options, table="t") == rows
        assert faults.counted("GET") <= 9


def n_splits(source: str, folder: Path) -> int:
    target = Target(folder, "tables", "t", None, "equal", Engine(mode="spark"))
    return len(plan(source, ReadOptions(), target, "staging").splits)


def test_an_object_is_cut_as_a_file_is(place: Bucket, tmp_path: Path) -> None:
    """As one object, as a folder, and by a pattern: a source of which no bytes were seen has tiny splits."""
    content = "id,word\n" + "".join(f"{i},word {i}\n" for i in range(100_000))
    for name in ("one.csv", "two.csv"):
        (tmp_path / "files").mkdir(exist_ok=True)
        (tmp_path / "files" / name).write_text(content)
        place.put(f"files/{name}", content.encode())
    place.put("files/other.txt", b"word\n" * 2_000_000)
    for name in ("one.csv", "*.csv", "?n*.csv"):
        n = n_splits(f"{tmp_path}/files/{name}", tmp_path)
        assert 1 < n < 20
        assert n_splits(f"{place}/files/{name}", tmp_path) == n
    place.remove(["files/other.txt"])
    assert n_splits(f"{place}/files", tmp_path) == n_splits(f"{tmp_path}/files", tmp_path)

"""Sources on an object store: what is known of them before they are read, and what that costs."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core.engine.engine import Engine
from holdfast.core.rows.encoding import Target, plan
from holdfast.core.sources import ReadOptions
from holdfast.core.store import bucket as buckets
from holdfast.core.store.bucket import Bucket, use_options
from trust.object_store import Store

pytestmark = pytest.mark.xdist_group("store")


@pytest.fixture
def place(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A folder of the store for sources; what is known of stores is forgotten after."""
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "cache"))
    use_options(store.options)
    yield Bucket(f"{store.scheme}://box/{uuid.uuid4().hex}", store.options)
    buckets.forget()


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

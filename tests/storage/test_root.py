"""Roots: paths, file:// URLs and those of stores are reached; others are refused before a folder is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import holdfast
from holdfast.app import cli
from holdfast.core.store.bucket import Bucket
from holdfast.core.store.root import is_stored, local_path, object_of, root_of
from holdfast.errors import SourceError, WorkspaceError

REFUSED = [
    "hdfs://name:9000/ws",
    "hdfs:///ws",
    "dbfs:/ws",
    "https://example.org/ws",
    "file://another.host/ws",
]
STORED = [
    "s3://bucket/ws",
    "s3a://bucket/ws",
    "abfss://box@account.dfs.core.windows.net/ws",
    "gs://bucket/ws",
]
# A path of a URL has lost a slash.
SPOILED = [Path(url) for url in (*STORED, *REFUSED[:-1])]


@pytest.mark.parametrize("url", [*REFUSED, *SPOILED], ids=str)
def test_a_workspace_at_another_url_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str | Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WorkspaceError, match=r"the workspace, is a URL that holdfast cannot reach: "):
        holdfast.open(url)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("url", STORED)
def test_a_url_of_a_store_is_a_bucket(url: str) -> None:
    assert is_stored(url)
    root = root_of(url)
    assert isinstance(root, Bucket)
    assert (str(root), root_of(f"{url}/")) == (url, root)
    bucket, name = object_of(f"{url}/a/b.csv")
    assert (f"{bucket}/{name}", name) == (f"{url}/a/b.csv", "ws/a/b.csv")


@pytest.mark.parametrize("url", REFUSED)
def test_a_source_at_another_url_is_refused(tmp_path: Path, url: str) -> None:
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", pa.table({"a": [1]}))
        for act in (
            lambda: ws.track("u", url),
            lambda: ws.apply("t", inserts=url),
            lambda: ws.check("t", deletes=url),
            lambda: ws.link(url),
        ):
            with pytest.raises(SourceError, match=r"is a URL .* cannot reach.* Nothing was applied"):
                act()
        assert ws.version == 1


def test_file_urls_are_paths(tmp_path: Path) -> None:
    (tmp_path / "a b#?.csv").write_text("a\n1\n")
    (tmp_path / "more.csv").write_text("a\n2\n")
    with holdfast.open(f"file://{tmp_path}/my%20ws", engine="inline") as ws:
        ws.track("t", f"file://localhost{tmp_path}/a%20b#?.csv")
        ws.apply("t", inserts=f"file:{tmp_path}/more.csv")
        assert (ws.root, ws.n_rows("t")) == (tmp_path / "my ws", 2)


@pytest.mark.parametrize("path", ["a/b", "/a:b/c", "./s3:/b", "c:/x", "a b://c", "", "2a:/b", "x:y/z"])
def test_paths_stay_as_they_are(path: str) -> None:
    assert local_path(path, "source", SourceError) == path


def test_the_command_line_makes_no_folder_of_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a\n1\n")

    def run(workspace: str, source: str) -> Any:
        given = ["-w", workspace, "--engine", "inline", "track", "t", source]
        return CliRunner().invoke(cli.app, given, prog_name="holdfast")

    answer = run("hdfs://bucket/ws", "t.csv")
    assert answer.exit_code == 2
    assert "'hdfs://bucket/ws', the workspace, is a URL" in answer.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]
    assert run(f"file://{tmp_path}/w", f"file:{tmp_path}/t.csv").exit_code == 0
    assert (tmp_path / "w" / "holdfast.json").is_file()

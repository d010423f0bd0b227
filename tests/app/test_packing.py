"""The archive for executors: everything that tasks need, and nothing that the cluster brings itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.shell import validator
from holdfast.app import cli
from holdfast.core.engine import packing
from holdfast.core.engine.packing import FOLDER, needed_files, settings_for
from holdfast.errors import EngineError


def run(*arguments: str) -> Any:
    return CliRunner().invoke(cli.app, ["pack", *arguments], prog_name="holdfast")


def test_what_tasks_need_is_there() -> None:
    packages = {name.split("/")[0] for name, _ in needed_files()}
    assert {"numpy", "numba", "llvmlite", "pyarrow", "pandas", "deltalake", "obstore", "xxhash"} <= packages
    assert not {"pyspark", "py4j", "typer", "rich", "pytest", "holdfast"} & packages


@pytest.mark.parametrize(
    ("condition", "applies"),
    [
        ("", True),
        ('python_version >= "3.11"', True),
        ('python_version < "3.9"', False),
        (f'sys_platform == "{sys.platform}"', True),
        ('sys_platform == "win32"', False),
        ('sys_platform != "win32"', True),
        ('platform_python_implementation == "PyPy"', False),
        ("something that nobody knows", True),  # rather too much than too little
    ],
)
def test_requirements_of_other_platforms_are_left_out(condition: str, applies: bool) -> None:
    assert packing.applies(condition) is applies


def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def distribution(name: str) -> None:
        raise packing.metadata.PackageNotFoundError

    monkeypatch.setattr(packing.metadata, "distribution", distribution)
    with pytest.raises(EngineError, match="the package 'holdfast', which holdfast needs, is not installed"):
        list(needed_files())


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        packing, "needed_files", lambda: iter(())
    )  # without what others have made it is small
    archive = tmp_path / "h.tar.gz"
    done = run(str(archive))
    assert done.exit_code == 0
    assert f"  --spark-conf spark.archives={archive}#{FOLDER}\n" in done.stdout
    with tarfile.open(archive) as tar:
        names = tar.getnames()
    assert "holdfast/core/rows/tasks.py" in names
    assert [path.name for path in tmp_path.iterdir()] == ["h.tar.gz"]
    told = json.loads(run(str(archive), "--json").stdout)
    validator("pack").validate(told)
    assert told["settings"] == settings_for(str(archive))
    assert told["n_files"] == len(names) - 1  # but for the note
    refused = run(str(tmp_path / "no" / "h.tar.gz"))
    assert refused.exit_code == 2
    assert "cannot be written: No such file or directory" in refused.stderr


@pytest.mark.slow
def test_an_interpreter_that_has_nothing_else(tmp_path: Path) -> None:
    """Where no package is installed, the unpacked archive is enough to run a task, its kernels loaded."""
    packing.pack(tmp_path / "h.tar.gz")
    with tarfile.open(tmp_path / "h.tar.gz") as tar:
        tar.extractall(tmp_path / FOLDER, filter="data")
    script = (
        "import sys, time; started = time.perf_counter()\n"
        "from holdfast.core.evidence.refute import validate_part\n"
        "from holdfast.core.rows.kernels import masks; masks.warm_up()\n"
        "import holdfast, obstore; print(holdfast.__file__, 'pyspark' in sys.modules)"
    )
    bare = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path / FOLDER)}
    done = subprocess.run(
        [sys.executable, "-S", "-c", script], env=bare, cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / FOLDER}/holdfast/__init__.py False\n"), (
        done.stderr
    )

"""An archive of holdfast for a cluster's executors: the package, what it needs, and its compiled kernels.

Spark unpacks it beside each executor (`spark.archives`), so that nodes need nothing but a Python of the same
version; PySpark is theirs. Machine code travels along: an executor on a processor of the same kind starts in
seconds, not after minutes of compiling.
"""

from __future__ import annotations

import contextlib
import io
import platform
import re
import sys
import tarfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from holdfast.core.engine.kernels.cache_folders import SUFFIX, places
from holdfast.errors import EngineError

PACKAGE = Path(__file__).resolve().parents[2]
# The folder that executors find it in.
FOLDER = "holdfast_env"
# What the cluster brings itself, and what only the command line needs.
LEFT_OUT = ("pyspark", "py4j", "typer", "rich")
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def settings_for(archive: str) -> dict[str, str]:
    """The settings of Spark's with which executors use an archive."""
    return {"spark.archives": f"{archive}#{FOLDER}", "spark.executorEnv.PYTHONPATH": FOLDER}


def pack(archive: Path) -> tuple[int, int]:
    """Write the archive; how many files it has, and how many of them are kernels.

    Raises EngineError if a package that holdfast needs is not there, or not as files, or if the archive
    cannot be written.
    """
    n_files = n_kernels = 0
    draft = archive.with_name(f"{archive.name}.part")
    try:
        with tarfile.open(draft, "w:gz", compresslevel=1) as tar:
            for name, path in (*_package(), *_kernels(), *needed_files()):
                tar.add(path, name, recursive=False)
                n_files += 1
                n_kernels += path.suffix == SUFFIX
            note = f"holdfast for Python {platform.python_version()} on {platform.machine()}\n".encode()
            about = tarfile.TarInfo("holdfast-archive.txt")
            about.size = len(note)
            tar.addfile(about, io.BytesIO(note))
        draft.replace(archive)
    except OSError as error:
        raise EngineError(
            f"the archive {str(archive)!r} cannot be written: {error.strerror or error}. Name a file in a "
            "folder that is there, with room for 300 MB."
        ) from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
    return n_files, n_kernels


def _package() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield f"{PACKAGE.name}/{path.relative_to(PACKAGE).as_posix()}", path


def _kernels() -> Iterator[tuple[str, Path]]:
    """Compiled kernels, where the unpacked package looks for them: beside its sources."""
    folder = "holdfast/core/engine/kernels/__pycache__"
    names = set()
    for place in places().readable:
        for path in sorted(place.glob(f"*{SUFFIX}")):
            if path.name not in names:
                names.add(path.name)
                yield f"{folder}/{path.name}", path


def needed_files() -> Iterator[tuple[str, Path]]:
    """The files of all packages that holdfast needs to run tasks, and of those that they need."""
    waiting, seen = ["holdfast"], set(LEFT_OUT)
    while waiting:
        name = waiting.pop()
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            raise EngineError(f"the package {name!r}, which holdfast needs, is not installed here.") from None
        for requirement in distribution.requires or ():
            needed, _, condition = requirement.partition(";")
            match = _NAME.match(needed.strip())
            if match is None or "extra" in condition or not applies(condition):
                continue
            key = re.sub(r"[-_.]+", "-", match[0]).lower()
            if key not in seen:
                seen.add(key)
                waiting.append(key)
        if name == "holdfast":
            continue  # from its folder: it may be installed in place
        if distribution.files is None:
            raise EngineError(
                f"the package {name!r} does not say which files it has, so it cannot be packed."
            )
        for file in distribution.files:
            path = Path(str(file.locate()))
            if ".." not in file.parts and "__pycache__" not in file.parts and path.is_file():
                yield file.as_posix(), path


def applies(condition: str) -> bool:
    """Whether a requirement is one of this platform: the few conditions that packages of ours have."""
    if not condition.strip():
        return True
    known = {
        "python_version": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "sys_platform": sys.platform,
        "platform_system": platform.system(),
        "platform_machine": platform.machine(),
        "os_name": "posix",
        "implementation_name": sys.implementation.name,
        "platform_python_implementation": platform.python_implementation(),
    }
    match = re.fullmatch(r"\s*(\w+)\s*(==|!=|<=|>=|<|>)\s*[\"']([^\"']*)[\"']\s*", condition)
    if match is None or match[1] not in known:
        return True  # rather too much than too little

    def key(text: str) -> list[int | str]:
        return [int(part) if part.isdecimal() else part for part in text.split(".")]

    left, right = key(known[match[1]]), key(match[3])
    orders = {"==": left == right, "!=": left != right}
    if match[2] in orders:
        return orders[match[2]]
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[match[2]]

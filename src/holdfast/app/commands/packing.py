"""The command that packs holdfast for a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

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
        print(
            json.dumps(
                {"archive": str(archive), "n_files": n_files, "n_kernels": n_kernels, "settings": settings}
            )
        )
        return
    size = archive.stat().st_size / 1e6
    print(f"{archive}: {n_files:,} files, {n_kernels:,} compiled kernels ({size:,.0f} MB)")
    if not n_kernels:
        print("  no kernel is compiled here: run 'python -m holdfast.kernels' first, and pack again")
    print("use it with Spark's settings:")
    for key, value in settings.items():
        print(f"  --spark-conf {key}={value}")

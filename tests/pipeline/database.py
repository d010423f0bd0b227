"""A PostgreSQL server of the tests' own: on a loopback port, by an ordinary user, gone with the block."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PASSWORD = "s3cr3t"
ORDINARY = 65534  # nobody: the server refuses to be run by root


def programs() -> Path | None:
    """Where `initdb` and `postgres` are; None where there is no server."""
    folders = [Path(found).parent] if (found := shutil.which("initdb")) else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((f for f in folders if (f / "initdb").exists() and (f / "postgres").exists()), None)


@contextlib.contextmanager
def served(bin: Path) -> Iterator[str]:
    """The address of a new server's database, with user and password."""
    folder = Path(
        tempfile.mkdtemp(prefix="pg", dir="/tmp")
    )  # where another user may go; sockets need short names
    (folder / "password").write_text(PASSWORD)
    how: dict[str, Any] = {"cwd": folder, "check": True, "capture_output": True, "text": True}
    if os.geteuid() == 0:
        for path in (folder, folder / "password"):
            os.chown(path, ORDINARY, ORDINARY)
        how |= {"user": ORDINARY, "group": ORDINARY, "extra_groups": []}
    data = str(folder / "data")
    control = [str(bin / "pg_ctl"), "-D", data, "-w", "-l", str(folder / "log")]
    try:
        init = [
            "-U",
            "me",
            f"--pwfile={folder / 'password'}",
            "--auth=scram-sha-256",
            "-E",
            "UTF8",
            "--no-sync",
        ]
        subprocess.run([str(bin / "initdb"), "-D", data, "--locale=C", *init], **how)
        # The server keeps what it inherits open: pipes would never end.
        quiet = {**how, "capture_output": False, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        port = _started(control, folder, quiet)
        try:
            yield f"postgresql://me:{PASSWORD}@127.0.0.1:{port}/postgres"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **quiet)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _started(control: list[str], folder: Path, how: dict[str, Any]) -> int:
    """The port that the server has got; one that was free a moment ago may be another program's."""
    for _ in range(5):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port: int = free.getsockname()[1]
        where = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
        start = [*control, "-o", f"{where} -c fsync=off", "start"]
        if not subprocess.run(start, **{**how, "check": False}).returncode:
            return port
    raise AssertionError(f"PostgreSQL does not start:\n{(folder / 'log').read_text()[-4000:]}")

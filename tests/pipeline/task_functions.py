"""Task functions for tests of the engine: importable by Spark's workers, and trivial."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from holdfast.errors import AbsentRowError, DamagedFileError, HoldfastError

Payload = dict[str, Any]


class PickyError(HoldfastError):
    """An error whose constructor takes something else than a message."""

    def __init__(self, *, table: str, row: int) -> None:
        super().__init__(f"table {table!r} has no row {row}")


def double(payload: Payload) -> bytes:
    time.sleep(payload.get("sleep_s", 0))
    return str(2 * payload["n"]).encode()


def describe(payload: Payload) -> bytes:
    """The payload as the task sees it, types included."""
    return json.dumps({key: [type(value).__name__, value] for key, value in payload.items()}).encode()


def refuse(payload: Payload) -> bytes:
    if payload["n"] == 2:
        raise AbsentRowError(f"no such row: {payload['n']}. Nothing was applied.")
    if payload["n"] == 3:
        raise DamagedFileError("segment 'a' is cut short")
    return b"fine"


def picky(payload: Payload) -> bytes:
    raise PickyError(table="orders", row=payload["n"])


def stumble(payload: Payload) -> bytes:
    return str(1 // payload["n"]).encode()


def forget_bytes(payload: Payload) -> bytes:
    return payload["text"]  # type: ignore[no-any-return]


def die(payload: Payload) -> bytes:
    os._exit(3)


def process(payload: Payload) -> bytes:
    return str(os.getpid()).encode()


def numba_is_loaded(payload: Payload) -> bytes:
    import sys

    return b"yes" if "numba" in sys.modules else b"no"

"""What a file is, told by its name alone."""

from __future__ import annotations

import os
from typing import Literal

Kind = Literal["delimited", "tabs", "parquet", "lines", "json", "zip", "tar"]

_ENDINGS: dict[str, Kind] = {
    "csv": "delimited",
    "txt": "delimited",
    "tsv": "tabs",
    "tab": "tabs",
    "parquet": "parquet",
    "pq": "parquet",
    "jsonl": "lines",
    "ndjson": "lines",
    "json": "json",
    "zip": "zip",
    "tar": "tar",
    "tgz": "tar",
}
_GZIPPED: dict[str, Kind] = {
    ending: kind for ending, kind in _ENDINGS.items() if kind not in ("parquet", "zip") and ending != "tgz"
}
EXPECTED = (
    "a folder, or a file ending in .csv, .tsv, .tab, .txt, .jsonl, .ndjson or .json (each also with .gz), "
    ".parquet, .zip, .tar, .tar.gz or .tgz"
)


def kind_of(name: str) -> tuple[Kind | None, bool]:
    """The kind of a file or member by its ending, and whether it is gzipped. None: not one that is read.

    >>> kind_of("a/orders.CSV"), kind_of("orders.jsonl.gz"), kind_of("lake.tar.gz"), kind_of("README.md")
    (('delimited', False), ('lines', True), ('tar', True), (None, False))
    """
    stem, dot, ending = name.rpartition(".")
    if not dot:
        return None, False
    ending = ending.lower()
    if ending == "gz":
        inner = _GZIPPED.get(stem.rpartition(".")[2].lower()) if "." in stem else None
        return inner, inner is not None
    return _ENDINGS.get(ending), ending == "tgz"


def member_name(path: str) -> str | None:
    """The name of an archive's member, or None if it is hidden. It is only ever a name, never a path.

    >>> member_name("./a/b.csv"), member_name("/etc/x.csv"), member_name("../x.csv")
    ('a/b.csv', 'etc/x.csv', '../x.csv')
    >>> member_name("__MACOSX/._b.csv")
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if any(part[0] in "._" and part != ".." for part in parts):
        return None
    return "/".join(parts)


def shown(path: str) -> str:
    """The path as a text that any file can hold: bytes that are not UTF-8 are spelled as escapes.

    >>> shown("caf\\udce9.csv")
    'caf\\\\xe9.csv'
    """
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "backslashreplace")

"""Where commands write what other tools read: to a file, which is there whole or not at all, or to standard
output."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from holdfast.app.report.paper import Paper
from holdfast.app.report.texts import name_text, safe
from holdfast.errors import UsageError, shorten_path


def shows_to_a_person() -> bool:
    return sys.stdout.isatty()


def print_written(output: Path | None, counts: str, version: int) -> None:
    """What a file has in it; nothing where it went to standard output."""
    if not _is_standard(output):
        Paper(sys.stdout).line(f"{name_text(str(output))}: {counts} (version {version})")


def _is_standard(output: Path | None) -> bool:
    return output is None or str(output) == "-"


@contextlib.contextmanager
def written_to(output: Path | None = None) -> Iterator[IO[str]]:
    """Where a text is written, at once or piece by piece, in UTF-8."""
    if output is None or _is_standard(output):
        if shows_to_a_person():
            yield _Terminal()  # type: ignore[misc]
            return
        with contextlib.suppress(AttributeError, ValueError):
            sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
        yield sys.stdout
        return
    part = None
    try:
        if output.exists() and not output.is_file():  # a pipe, /dev/null: it cannot be replaced
            with _opened(output) as file:
                yield file
            return
        target = output.resolve()
        part = target.with_name(f".holdfast-{os.getpid()}.part")
        with _opened(part) as file:
            yield file
        os.replace(part, target)
    except OSError as error:
        raise UsageError(
            f"cannot write to {shorten_path(str(output))}: {error.strerror or error}."
        ) from error
    finally:
        if part is not None:
            part.unlink(missing_ok=True)


def _opened(path: Path) -> IO[str]:
    return open(path, "w", encoding="utf-8", errors="backslashreplace", newline="\n")


class _Terminal:
    """Standard output where a person looks at it: a name must not send it an escape sequence."""

    def write(self, text: str) -> int:
        return sys.stdout.write("\n".join(map(safe, text.split("\n"))))

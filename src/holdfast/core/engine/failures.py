"""Failures of tasks: which of them Spark may try again elsewhere, and how they come back to the driver.

An error about data or a request (a value that does not fit its column, a row that is not there) is the same
on every machine: it is an *outcome* of its task, like a result. Any other exception may be the machine's
own (a full disk, a mount that is missing, no memory), so it is raised as `TaskFailure` and Spark tries the
task again, on another machine if there is one. What the last attempt raised is in Spark's report.

Either way an exception travels as text (`describe`) and is built again on the driver (`revive`), so that its
class and its message are those that it had in the task.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import traceback
from typing import Any

from holdfast.errors import EngineError, HoldfastError, StoreError, WorkspaceError


class TaskFailure(Exception):
    """Raised in a task for Spark to see; its message is the described exception."""


def is_outcome(error: Exception) -> bool:
    """Whether the task would end like this on any machine: an error about data or a request.

    >>> from holdfast.errors import AbsentRowError, DamagedFileError
    >>> is_outcome(AbsentRowError()), is_outcome(DamagedFileError()), is_outcome(MemoryError())
    (True, False, False)
    """
    if isinstance(error, StoreError):
        return error.denied
    return isinstance(error, HoldfastError) and not isinstance(error, WorkspaceError | EngineError)


def describe(error: Exception, doing: str) -> str:
    """An exception, and what was done when it came, as one line of ASCII that `revive` takes."""
    kind = type(error)
    return json.dumps(
        {
            "doing": doing,
            "module": kind.__module__,
            "name": kind.__qualname__,
            "message": str(error),
            "holdfast": isinstance(error, HoldfastError),
            "denied": isinstance(error, StoreError) and error.denied,
            "traceback": "".join(traceback.format_exception(error)),
        }
    )


def revive(text: str) -> HoldfastError:
    """The exception that was described; if it is not one of holdfast's, an EngineError that says where."""
    fields = json.loads(text)
    if fields["holdfast"]:
        with contextlib.suppress(ImportError, AttributeError):
            kind: Any = import_name(f"{fields['module']}:{fields['name']}")
            # Not kind(message): a subclass may take other arguments.
            error: HoldfastError = kind.__new__(kind, fields["message"])
            error.args = (fields["message"],)
            if isinstance(error, StoreError):
                error.denied = fields["denied"]
            error.add_note("Raised in a Spark task:\n" + fields["traceback"])
            return error
    frames = [line.strip() for line in fields["traceback"].splitlines() if line.strip().startswith("File ")]
    where = f" ({frames[-1]})" if frames else ""
    failed = EngineError(f"{fields['doing']} failed: {fields['name']}: {fields['message'][:500]}{where}")
    failed.add_note("Raised in a task:\n" + fields["traceback"])
    return failed


def spark_failure(error: Exception, doing: str, kind: type[HoldfastError]) -> HoldfastError:
    """A job that failed as a whole: what its task raised, else the cause in one line.

    Spark's own report stays in `__context__`.
    """
    report = str(error)
    described = _described(report)
    if described is not None:
        return revive(described)
    if "No module named 'holdfast'" in report:
        return EngineError(
            f"{doing} failed: Spark's Python workers cannot import holdfast. "
            "Install it on the cluster's nodes, or add it with spark.addArtifacts."
        )
    if "Python worker exited unexpectedly" in report:
        return EngineError(
            f"{doing} failed: a Python worker died. It most likely ran out of memory: "
            "use fewer cores or give the machine more memory."
        )
    return kind(f"{doing} failed on Spark: {_cause(report) or type(error).__name__}")


def import_name(name: str) -> Any:
    """What a name like `package.module:function` stands for."""
    module, _, qualname = name.partition(":")
    named: Any = importlib.import_module(module)
    for part in qualname.split("."):
        named = getattr(named, part)
    return named


def _described(report: str) -> str | None:
    """The described exception in Spark's report, if a task of ours raised one.

    >>> report = f"Job aborted.\\nTaskFailure: {describe(KeyError('a'), 'x')}\\n\\tat org.apache..."
    >>> json.loads(_described(report))["message"]
    "'a'"
    >>> _described("Job aborted.")
    """
    _, mark, rest = report.partition(f"{TaskFailure.__name__}: ")
    if not mark:
        return None
    try:
        _, end = json.JSONDecoder().raw_decode(rest)
    except ValueError:  # a report that was cut
        return None
    return rest[:end]


def _cause(report: str) -> str:
    """The line of Spark's report that says what happened: the end of the Python traceback, else the start.

    >>> _cause("An exception was thrown.\\nTraceback (most recent call last):\\n  File x\\nKeyError: 'a'\\n")
    "KeyError: 'a'"
    """
    _, mark, trace = report.rpartition("Traceback (most recent call last):")
    if mark:
        raised = [line for line in trace.splitlines() if line and not line[0].isspace()]
        if raised:
            return raised[0][:500]
    lines = [line.strip() for line in report.splitlines() if line.strip()]
    return lines[0][:500] if lines else ""

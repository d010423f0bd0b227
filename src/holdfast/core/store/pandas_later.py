"""pyarrow without pandas, until somebody has a DataFrame.

pyarrow imports pandas at the first array or scalar that it makes of Python's values, to see whether they are
pandas': 0.2 s, of which a command has no use. If that import fails pyarrow goes on without, and tries again
where it cannot do without (`to_pandas`).
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder

import pyarrow as pa


def postpone() -> None:
    """For a process that nobody hands DataFrames to. If pandas has been imported there is nothing to gain."""
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _Absent)
        try:
            pa.scalar(0)
        finally:
            sys.meta_path.remove(_Absent)


class _Absent(MetaPathFinder):
    """Knows that there is no pandas."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not needed yet", name=name)


def needed() -> None:
    """From now on pyarrow knows pandas' objects, whatever was postponed."""
    pa.nulls(0).to_pandas()

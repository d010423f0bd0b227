"""Sources: files and in-memory tables, planned on the driver, read inside tasks.

`plan_source` looks at a source once: which columns, which types, and how to cut it into `Split`s. A
split can be read on its own, by any process that sees the file, in any order; `read_split` is the same
function in a Spark task and inline on the driver. Arrow's C++ readers do the reading.

Types of CSV and JSON lines are *guessed* from a sample and then verified on every value:
`read_split_guessed` reads with the guesses and says, for each column whose guess fails, which types its
values would survive; the caller narrows with `best_type` and reads again until nothing fails. A verified
type is a fact about the whole file, not about the sample.

Read `read_options.py` first (what a source and a split are), then `source_plan.py` and `splits.py`, and
`type_rule.py`, `respelling.py` and `odd_values.py` for the types of texts. The formats are in `csv_files.py`,
`json_lines.py`, `columnar.py`, `frames.py` and `streams.py`; databases and standard input in modules of their
names.
"""

from holdfast.core.sources.read_options import ReadOptions, Source, Split
from holdfast.core.sources.source_plan import plan_source, stored_bytes
from holdfast.core.sources.splits import read_local, read_split, read_split_guessed
from holdfast.core.sources.type_rule import best_type

__all__ = [
    "ReadOptions",
    "Source",
    "Split",
    "best_type",
    "plan_source",
    "read_local",
    "read_split",
    "read_split_guessed",
    "stored_bytes",
]

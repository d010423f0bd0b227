"""The files of a lake, from sources to raw tables of texts.

`plan_lake` looks at the sources once and cuts them into `Unit`s, each of about as many bytes as a task
should read. A unit can be read on its own, by any process that sees the files, in any order: `read_unit`
is the same function in a Spark task and inline on the driver. It gives a `RawTable` for each table and a
`BadFile` for each file, member or document that cannot be read; one bad file never stops the others.

Together the units of a plan give every table once, however the sources were cut. Read `lake_options.py` (the
options, units and tables), then `units.py`, which plans, and `raw_tables.py`, which reads.
"""

from holdfast.lakes.files.lake_options import BadFile, LakeReadOptions, RawTable, Unit
from holdfast.lakes.files.raw_tables import read_unit
from holdfast.lakes.files.units import plan_lake

__all__ = ["BadFile", "LakeReadOptions", "RawTable", "Unit", "plan_lake", "read_unit"]

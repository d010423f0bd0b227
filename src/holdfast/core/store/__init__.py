"""The files of a workspace, written once, and the ledger that says which of them count.

Read `files.py` (how a file appears, and is checked), then `ledger.py` (commits) and `ledger_files.py`
(how one lands). `format.py` is the marker of a workspace; `leases.py` and `litter.py` say what may be
removed.
"""

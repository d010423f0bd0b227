"""The files of a workspace, written once, and the ledger that says which of them count.

Read `files.py` (how a file appears, and is checked), then `ledger.py` (commits) and `ledger_files.py`
(how one lands). `root.py` is the place of a workspace, a folder or a `bucket.py`; `format.py` its marker;
`bundle.py` a file of arrays. `leases.py` and `litter.py` say what may be removed, `change_log.py` and
`change_counts.py` read the history.
"""

"""Encoded rows: segments, their indexes, the relation that they make up, and batches.

Read `segments.py` (immutable blocks of codes), `relation.py` (the live segments of a table, and the jobs that
look at them) and `encoding.py` (from a source to segments). Then `batch.py` (which rows go, which come),
`table_state.py` and `tables.py` (what a commit says of a table), and `writer.py` (what a change takes).
`matching.py` and `differing.py` find rows by content, `deletes.py` says which are gone.
"""

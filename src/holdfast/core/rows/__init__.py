"""Encoded rows: segments, their indexes, the relation that they make up, and batches.

Read `segments.py` (immutable blocks of codes), `relation.py` (the live segments of a table), `encoding.py`
(from a source to segments).
"""

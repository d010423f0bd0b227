"""Kernels of inclusions, in the order in which a value passes them.

`value_identities.py`: 96 bits by which values of all columns compare. `sorted_runs.py`: which columns have a
value, how often. `clusters.py`: sets of columns that share values, what a batch does to them, pair counts.
`tuple_lookup.py` stands alone: whether tuples of several columns occur in other rows.
"""

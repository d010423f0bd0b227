"""Inclusion dependencies (Shaabani and Meinel), of one column and of several, and foreign keys among them.

Read `inds.py` first (value runs, clusters, pair counts), then `composites.py`. Beside `inds.py` stand
`identity.py` (when two values are equal), `values.py` and `value_tasks.py` (the generator and its jobs);
beside `composites.py`, `tuples.py` and `tuple_tasks.py`. `missing.py` names the values that one lacks.
`links/` judges which inclusions are foreign keys; `ind_class.py` says how a workspace keeps them,
`ind_reading.py` how they are read.
"""

"""Running task functions on payloads, inline or on Spark; Spark's session; compiled kernels (`kernels/`).

Read `engine.py` first, then `worker.py` (what a worker does) and `session.py` (whose Spark it is). `cost.py`
decides where work runs, `failures.py` which failures Spark may try again, `rounds.py` lets classes share a
job, `packing.py` and `class_archive.py` bring what executors need.
"""

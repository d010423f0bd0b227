"""Running task functions on payloads, inline or on Spark; Spark's session; compiled kernels (`kernels/`).

Read `engine.py` first. `cost.py` decides where work runs, `failures.py` which failures Spark may try again.
"""

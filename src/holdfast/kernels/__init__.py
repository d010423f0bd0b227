"""Arrays in, arrays out. Kernels know nothing of tables, files or Spark, and import nothing of holdfast.

Each has a slow plain-Python reference in `tests/reference/` that it must equal exactly. Every
module with compiled kernels has `warm_up()`, which fills Numba's on-disk cache
(`python -m holdfast.kernels` calls them all).
"""

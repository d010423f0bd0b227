"""Arrays in, arrays out. Kernels know nothing of tables, files or Spark, and import nothing of holdfast.

Each has a slow plain-Python reference in `tests/reference/` that it must equal exactly. Kernels are
compiled when they are first called, and kept on disk: `compiling.py` says how, `places.py` where. Every
module of them has `warm_up()`, which calls each once (`python -m holdfast.kernels` calls them all).
"""

"""Kernels: arrays in, arrays out. They know nothing of tables, files or Spark.

They stand beside their users, in modules and folders called `kernels`. Each has a slow plain-Python
reference in `tests/reference/` that it must equal exactly. They are compiled when first called, and kept on
disk: `compiling.py` says how, `cache_folders.py` where. Every module of them has `warm_up()`, which calls
each once (`python -m holdfast.kernels` calls them all).
"""

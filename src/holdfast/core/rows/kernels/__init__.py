"""Codes, masks of columns, hashes and order indexes.

Read `encode.py` first (what a code is, and a half rank), then `masks.py` (sets of columns, and which contains
which): other kernels stand on them. `order_index.py` finds rows by comparisons, `locating.py` those that
equal given ones; `siphash.py` is the hash of texts.
"""

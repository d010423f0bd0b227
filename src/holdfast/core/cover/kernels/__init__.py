"""Minimal hitting sets: searched for, with an allowance, and repaired.

Read `vertices.py` (what a search is over), then `search.py`. `repair.py` takes a cover along when edges come
or go; `within.py` finds what few enough pairs of rows violate.
"""

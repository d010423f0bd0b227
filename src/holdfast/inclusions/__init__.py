"""Inclusion dependencies (Shaabani and Meinel), of one column and of several, and foreign keys among them.

Read `inds.py` (value runs, clusters, pair counts), then `composites.py`; `links/` judges which are foreign
keys.
"""

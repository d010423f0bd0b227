"""Inclusions among very many small tables (MANY), and the graph of what joins.

Read `linker.py` (one step of a lake), then `intake.py`, `index.py`, `propose.py` and `match.py`; `reader/`
answers questions without kernels, `files/` reads what is linked, `graph/` draws.
"""

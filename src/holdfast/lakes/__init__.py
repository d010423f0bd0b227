"""Inclusions among very many small tables (MANY), and the graph of what joins.

`lake_keeper.py` is what users call. Read `state.py` (parts, and what a commit says), `linker.py` (one step of
a lake), then `intake.py`, `index.py`, `propose.py` and `match.py`. `answers.py` has what is answered.
`files/` reads what is linked, `kernels/` match it, `reader/` answers questions without them, `graph/` says
what hangs together, and draws it.
"""

# Here, since whoever only offers them imports nothing else.
FILTERS = ("null", "integer", "non-unique", "coverage")

"""Keys and functional dependencies; a key is a dependency onto the row.

Read `keys.py` (SWAN), then `fd_state.py` and the two kinds of evidence, `fd_counted.py` (DynASt) and
`fd_witnessed.py`; `fd_ranking.py` says which deserve a look. `key_class.py` and `fd_class.py` are what a
workspace tracks, `key_reading.py` and `fd_reading.py` what it answers, from what `refs.py` says a commit has;
`normal_forms/` proposes tables.
"""

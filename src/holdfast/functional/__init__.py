"""Keys and functional dependencies; a key is a dependency onto the row.

Read `keys.py` (SWAN), then `fd_state.py` and the two kinds of evidence, `fd_counted.py` (DynASt) and
`fd_witnessed.py`; `fd_ranking.py` says which deserve a look. `key_class.py` and `fd_class.py` are what a
workspace tracks, `key_reading.py` and `fd_reading.py` what it answers, from what `refs.py` says a commit has;
`key_news.py` and `fd_news.py` say what a batch did, `repairs.py` proposes values, `normal_forms/` tables.
"""

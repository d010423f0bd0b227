"""Foreign keys among inclusion dependencies: names, evidence, and one consistent choice.

Read `scored.py` first: every candidate gets points, and keys and links are chosen together. The points come
from `link_evidence.py` and the similarity of names (`core/words`), by what `facts.py` counts;
`link_choice.py` and `primary_keys.py` are the two choices.
"""

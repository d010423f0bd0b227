"""Tables that say once what a functional dependency says: BCNF and 3NF.

Read `normalise.py` first: how a table is split, and why nothing is lost. `choice.py` says which dependencies
are worth it, and finds keys; `proposal.py` is the result, with its reasons.
"""

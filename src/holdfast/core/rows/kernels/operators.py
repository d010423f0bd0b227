"""The numbers of operators, and of what comes of comparing two values. Kernels and readers share them."""

from __future__ import annotations

# As the predicates of a group are numbered; an unordered group has the first two only.
EQ, NE, LT, LE, GT, GE = range(6)

# `SYMMETRIC[op]`: x op y iff y SYMMETRIC[op] x.
SYMMETRIC = (EQ, NE, GT, GE, LT, LE)

# What comes of comparing two values; NULL: one of them, or both, are missing. Of values without an order LESS
# is all that differs.
LESS, EQUAL, GREATER, NULL = range(4)

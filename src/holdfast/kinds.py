"""The classes of dependencies that holdfast brings: a line for each, in the order in which they are told of."""

from __future__ import annotations

from holdfast.kind import Entry, register

COLUMNS = ("columns", "exclude")
LIMITS = ("within_columns", "dc_seconds", "max_dcs")

register(Entry("ucc", "cover", "holdfast.functional.key_class", ("key", "keys"), ("max_columns",)))
register(
    Entry(
        "fd",
        "fds",
        "holdfast.functional.fd_class",
        ("functional dependency", "functional dependencies"),
        ("max_lhs", "max_error", "evidence"),
    )
)
register(
    Entry(
        "ind",
        "",
        "holdfast.inclusions.ind_class",
        ("inclusion", "inclusions"),
        ("as_text", "max_arity", *COLUMNS),
        across=True,
    )
)
register(
    Entry(
        "dc",
        "dcs",
        "holdfast.denial.dc_class",
        ("denial constraint", "denial constraints"),
        ("max_predicates", "max_error", "evidence", "operators", *LIMITS, *COLUMNS),
        brings=("row",),  # rules about two rows, and about one
    )
)
register(
    Entry("row", "row_rules", "holdfast.denial.row_class", ("row rule", "row rules"), ("max_error", *COLUMNS))
)
register(Entry("rule", "rules", "holdfast.denial.pinned_class"))

"""Reports for people: covers, changes, explanations, links, the log; on a terminal or in a pipe.

Everything that comes from a user's data (names and cells alike) passes through `safe` or `cell`, and
is printed as literal text, never as markup: a cell with an escape sequence, a line end or `[red]` in it
shows as its escaped self. On a terminal lines are styled and wrapped to its width; in a pipe they are
plain and whole, so that nothing is cut and `grep` finds what it looks for.
"""

from __future__ import annotations

from holdfast.app.report.changes import print_change, print_headlines, print_long_held
from holdfast.app.report.covers import print_cover, print_inds
from holdfast.app.report.dcs import print_dcs, print_row_rules
from holdfast.app.report.explanations import print_explanation, print_fd_explanation, print_ind_explanation
from holdfast.app.report.fds import print_fd_log, print_fds
from holdfast.app.report.lake import print_joins, print_lake_change, print_lake_inds, print_lake_summary
from holdfast.app.report.links import print_links
from holdfast.app.report.log import print_log
from holdfast.app.report.normal_form import print_normal_form
from holdfast.app.report.paper import Paper, progress_on
from holdfast.app.report.pins import print_pinned
from holdfast.app.report.rankings import print_dc_ranking, print_ranking
from holdfast.app.report.rules import (
    print_dc_explanation,
    print_indexes,
    print_predicates,
    print_row_explanation,
)
from holdfast.app.report.texts import (
    cell,
    columns_text,
    fd_text,
    ind_text,
    name_text,
    pin_text,
    plural,
    safe,
    share,
    side_text,
)

__all__ = [
    "Paper",
    "cell",
    "columns_text",
    "fd_text",
    "ind_text",
    "name_text",
    "pin_text",
    "plural",
    "print_change",
    "print_cover",
    "print_dc_explanation",
    "print_dc_ranking",
    "print_dcs",
    "print_explanation",
    "print_fd_explanation",
    "print_fd_log",
    "print_fds",
    "print_headlines",
    "print_ind_explanation",
    "print_indexes",
    "print_inds",
    "print_joins",
    "print_lake_change",
    "print_lake_inds",
    "print_lake_summary",
    "print_links",
    "print_log",
    "print_long_held",
    "print_normal_form",
    "print_pinned",
    "print_predicates",
    "print_ranking",
    "print_row_explanation",
    "print_row_rules",
    "progress_on",
    "safe",
    "share",
    "side_text",
]

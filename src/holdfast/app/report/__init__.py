"""Reports for people: covers, changes, explanations, links, the log; on a terminal or in a pipe.

Everything that comes from a user's data (names and cells alike) passes through `safe` or `cell`, and
is printed as literal text, never as markup: a cell with an escape sequence, a line end or `[red]` in it
shows as its escaped self. On a terminal lines are styled and wrapped to its width; in a pipe they are
plain and whole, so that nothing is cut and `grep` finds what it looks for.

Read `paper.py`, which a report is written on, and `texts.py`, then `changes.py`: what a batch did.
"""

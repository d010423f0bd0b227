"""Denial constraints in English.

All sentences are denials, or as good as one: "always has the higher" would be wrong where a value is NULL.
Column names are never preceded by "a" or "an": which one depends on how a name is spoken.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from holdfast.core.words.predicate import Dc, Operator, Predicate, contradiction, reduced

# Also of two columns of one row.
RELATIONS: Mapping[Operator, str] = {
    "=": "equals",
    "!=": "differs from",
    "<": "is less than",
    "<=": "is at most",
    ">": "is greater than",
    ">=": "is at least",
}
_HIGH: Mapping[Operator, str] = {"<": "lower", "<=": "lower", ">": "higher", ">=": "higher"}
_STRICT = ("<", ">")
_PLAIN_WORD = re.compile(r"\w[\w.#$%-]*")
# Between names these would be read as part of the sentence.
_CONNECTING = {"and", "or", "both", "all", "that", "than", "while", "never", "differ", "have", "has", "is"}


def sentence(dc: Dc) -> str:
    """The constraint in English. It says the same as the predicates, in every table, NULL included.

    "The same" is `=` (two NULLs are the same), "differ" is `!=`; of a value and NULL none is higher or lower.

    >>> same, less = Predicate("ST", "=", "ST"), Predicate("SAL", "<", "SAL")
    >>> sentence(Dc("t", (same, less, Predicate("RATE", ">", "RATE"))))
    'of two rows with the same ST, the one with the higher SAL never has the lower RATE'
    >>> sentence(Dc("t", (less, Predicate("STX", ">", "CTX"))))
    "no row's STX is greater than another row's CTX while its SAL is lower than the other's"
    """
    contradicting = contradiction(dc.predicates)
    if contradicting is not None:
        return _about_contradiction(*contradicting)
    predicates = reduced(dc.predicates)
    same = [display_name(p.left) for p in predicates if p.left == p.right and p.op == "="]
    differing = [display_name(p.left) for p in predicates if p.left == p.right and p.op == "!="]
    comparisons = [p for p in predicates if p.left != p.right or p.op not in ("=", "!=")]
    if not comparisons:
        return _about_equals(same, differing)
    rows = "two rows" + (f" with the same {_list(same)}" if same else "")
    if differing:
        rows += f" that differ in {_all_of(differing)}"
    alone = not same and not differing
    if any(p.left != p.right for p in comparisons):
        return _about_columns(comparisons, "" if alone else f"of {rows}, ")
    return _about_order(comparisons, rows, alone=alone)


def _about_equals(same: Sequence[str], differing: Sequence[str]) -> str:
    """Keys, functional dependencies, and those with several columns of which one must be the same."""
    if not differing:
        return f"no two rows have the same {_list(same)}" if same else "there is at most one row"
    having = f" with the same {_list(same)}" if same else ""
    if len(differing) == 1:
        return f"{'' if same else 'all '}rows{having} have the same {differing[0]}"
    return f"any two rows{having} have {_list([f'the same {c}' for c in differing], 'or')}"


def _about_order(comparisons: Sequence[Predicate], rows: str, *, alone: bool) -> str:
    """Columns that are higher or lower, each compared with itself.

    One that is strictly higher is the subject, since then there is "the one"; if it is t's that is lower, t
    and s are exchanged.
    """
    subject = next((p for p in comparisons if p.op in _STRICT), comparisons[0])
    if subject.op in ("<", "<="):
        comparisons, subject = [p.mirrored for p in comparisons], subject.mirrored
    name = display_name(subject.left)
    if len(comparisons) == 1:
        if subject.op in _STRICT:
            one, other = ("no row", "another row") if alone else (f"of {rows}, neither", "the other")
            return f"{one} has a higher {name} than {other}"
        one, other = ("no row's", "another row's") if alone else (f"of {rows}, neither one's", "the other's")
        return f"{one} {name} is higher than or equal to {other}"
    *conditions, denied = [p for p in comparisons if p != subject]
    who = "the one" if subject.op in _STRICT else "one"
    having = _list([_compared(p) for p in (subject, *conditions)])
    return f"of {rows}, {who} with {having} never has {_compared(denied)}"


def _compared(p: Predicate) -> str:
    name = display_name(p.left)
    return f"the {_HIGH[p.op]} {name}" if p.op in _STRICT else f"a {_HIGH[p.op]} or equal {name}"


def _about_columns(comparisons: Sequence[Predicate], of_rows: str) -> str:
    """Comparisons across columns, and others: "its" is of the first row, t, and "the other's" of s."""
    head = next(p for p in comparisons if p.left != p.right)
    one, other = ("neither one's", "the other's") if of_rows else ("no row's", "another row's")
    text = f"{of_rows}{one} {display_name(head.left)} {RELATIONS[head.op]} {other} {display_name(head.right)}"
    clauses = []
    for p in comparisons:
        if p is head:
            continue
        if p.left == p.right:
            relation = f"is {_HIGH[p.op]} than{'' if p.op in _STRICT else ' or equal to'} the other's"
        else:
            relation = f"{RELATIONS[p.op]} the other's {display_name(p.right)}"
        clauses.append(f"its {display_name(p.left)} {relation}")
    return f"{text} while {_list(clauses)}" if clauses else text


def _about_contradiction(left: str, right: str) -> str:
    what = display_name(left) if left == right else f"{display_name(left)} with {display_name(right)}"
    return f"holds in every table: its comparisons of {what} contradict each other"


def display_name(name: str) -> str:
    """A column\'s name as sentences have it: in double quotes where it would be read as part of them."""
    plain = _PLAIN_WORD.fullmatch(name) and name.lower() not in _CONNECTING
    return name if plain else '"{}"'.format(name.replace('"', '""'))


def _all_of(names: Sequence[str]) -> str:
    """Several names, none of them left out.

    >>> _all_of(["a"]), _all_of(["a", "b"]), _all_of(["a", "b", "c"])
    ('a', 'both a and b', 'all of a, b and c')
    """
    return f"{('', 'both ', 'all of ')[min(len(names), 3) - 1]}{_list(names)}"


def _list(parts: Sequence[str], word: str = "and") -> str:
    """
    >>> _list(["a"]), _list(["a", "b", "c"], "or")
    ('a', 'a, b or c')
    """
    *first, last = parts
    return f"{', '.join(first)} {word} {last}" if first else last

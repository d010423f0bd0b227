"""Keys and foreign keys for other tools: SQL DDL, dbt tests, diagrams (Mermaid, Graphviz, SVG).

SQL has row rules, too, as CHECK constraints. All of them are pure functions from a `Model` to text. What
they write is a proposal: it is what holds in the data, and no more. The same model gives the same text, to
the last byte. Read `model.py` first, which chooses the keys to declare, then `sql.py`. Apart from these stand
decompositions (`normal_form.py`) and the join graph of a lake (`join_graph.py`, `graphs.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Protocol

from holdfast.app.export.checks import Checks, checks_of
from holdfast.app.export.dbt import to_dbt
from holdfast.app.export.diagrams import to_graphviz, to_mermaid
from holdfast.app.export.er_svg import to_svg
from holdfast.app.export.model import ExportTable, ForeignKey, Model, choose_keys
from holdfast.app.export.sql import DIALECTS, to_sql


class Format(Protocol):
    """`all_keys`: declare every minimal key, not only the telling ones."""

    def __call__(self, model: Model, *, all_keys: bool = False) -> str: ...


FORMATS: Mapping[str, Format] = {
    "sql": to_sql,
    "postgres": partial(to_sql, dialect="postgres"),
    "duckdb": partial(to_sql, dialect="duckdb"),
    "dbt": to_dbt,
    "mermaid": to_mermaid,
    "graphviz": to_graphviz,
    "svg": to_svg,
}

__all__ = [
    "DIALECTS",
    "FORMATS",
    "Checks",
    "ExportTable",
    "ForeignKey",
    "Format",
    "Model",
    "checks_of",
    "choose_keys",
    "to_dbt",
    "to_graphviz",
    "to_mermaid",
    "to_sql",
    "to_svg",
]

"""Graphs for other tools: GraphML, GEXF 1.3 and JSON (nodes and links, as D3 and NetworkX read them).

Nodes and edges are written as they come, so a graph of any size needs no memory. Texts may hold anything:
markup is escaped, and characters that XML 1.0 cannot say, not even escaped, become U+FFFD. Numbers that are
not finite are left out of XML, and null in JSON.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Literal, get_args
from xml.sax.saxutils import escape

GraphFormat = Literal["graphml", "gexf", "json"]
GRAPH_FORMATS: tuple[GraphFormat, ...] = get_args(GraphFormat)


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A table. One that joins with no other has the component -1."""

    id: int
    name: str
    n_rows: int
    n_columns: int
    component: int
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """That the table `source` has columns whose values are in columns of `target`."""

    source: int
    target: int
    n_inds: int
    score: float


def write_graph(
    format: GraphFormat, nodes: Iterable[GraphNode], edges: Iterable[GraphEdge], file: IO[str]
) -> None:
    """Write a directed graph to a text file (UTF-8 is what the XML formats declare).

    Nodes are written first, then edges; both are read once.
    """
    if format not in _WRITERS:
        raise ValueError(f"unknown graph format {format!r}; known are {', '.join(GRAPH_FORMATS)}")
    for line in _WRITERS[format](nodes, edges):
        file.write(line)
        file.write("\n")


# XML 1.0, production 2: all that is no Char.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_IN_ATTRIBUTES = {'"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}


def xml_text(text: str) -> str:
    r"""A text as XML takes it, in an element or in a quoted attribute; it reads back as it was.

    >>> print(xml_text('a<b & "c"\n\x00'))
    a&lt;b &amp; &quot;c&quot;&#10;�
    """
    return escape(_FORBIDDEN.sub("\ufffd", text), _IN_ATTRIBUTES)


def _number(value: float) -> str:
    return repr(float(value))


# -- GraphML ---------------------------------------------------------------------------------------------

_GRAPHML_KEYS = (
    ("node", "name", "string"),
    ("node", "n_rows", "long"),
    ("node", "n_columns", "int"),
    ("node", "component", "int"),
    ("node", "x", "double"),
    ("node", "y", "double"),
    ("edge", "n_inds", "int"),
    ("edge", "score", "double"),
)


def _graphml(nodes: Iterable[GraphNode], edges: Iterable[GraphEdge]) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    for domain, name, kind in _GRAPHML_KEYS:
        yield f'  <key id="{name}" for="{domain}" attr.name="{name}" attr.type="{kind}"/>'
    yield '  <graph id="tables" edgedefault="directed">'
    for n in nodes:
        values = [
            f'<data key="name">{xml_text(n.name)}</data>',
            f'<data key="n_rows">{n.n_rows}</data>',
            f'<data key="n_columns">{n.n_columns}</data>',
            f'<data key="component">{n.component}</data>',
            *(
                f'<data key="{k}">{_number(v)}</data>'
                for k, v in (("x", n.x), ("y", n.y))
                if math.isfinite(v)
            ),
        ]
        yield f'    <node id="{n.id}">{"".join(values)}</node>'
    for e in edges:
        score = f'<data key="score">{_number(e.score)}</data>' if math.isfinite(e.score) else ""
        yield (
            f'    <edge source="{e.source}" target="{e.target}">'
            f'<data key="n_inds">{e.n_inds}</data>{score}</edge>'
        )
    yield "  </graph>"
    yield "</graphml>"


# -- GEXF ------------------------------------------------------------------------------------------------


def _gexf(nodes: Iterable[GraphNode], edges: Iterable[GraphEdge]) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<gexf xmlns="http://gexf.net/1.3" xmlns:viz="http://gexf.net/1.3/viz" version="1.3">'
    yield '  <graph mode="static" defaultedgetype="directed">'
    yield '    <attributes class="node">'
    for i, (name, kind) in enumerate(
        (("n_rows", "long"), ("n_columns", "integer"), ("component", "integer"))
    ):
        yield f'      <attribute id="{i}" title="{name}" type="{kind}"/>'
    yield "    </attributes>"
    yield '    <attributes class="edge">'
    yield '      <attribute id="0" title="n_inds" type="integer"/>'
    yield '      <attribute id="1" title="score" type="double"/>'
    yield "    </attributes>"
    yield "    <nodes>"
    for n in nodes:
        values = "".join(
            f'<attvalue for="{i}" value="{v}"/>' for i, v in enumerate((n.n_rows, n.n_columns, n.component))
        )
        place = ""
        if math.isfinite(n.x) and math.isfinite(n.y):
            place = f'<viz:position x="{_number(n.x)}" y="{_number(n.y)}" z="0.0"/>'
        yield (
            f'      <node id="{n.id}" label="{xml_text(n.name)}">'
            f"<attvalues>{values}</attvalues>{place}</node>"
        )
    yield "    </nodes>"
    yield "    <edges>"
    for i, e in enumerate(edges):
        score = f'<attvalue for="1" value="{_number(e.score)}"/>' if math.isfinite(e.score) else ""
        yield (
            f'      <edge id="{i}" source="{e.source}" target="{e.target}">'
            f'<attvalues><attvalue for="0" value="{e.n_inds}"/>{score}</attvalues></edge>'
        )
    yield "    </edges>"
    yield "  </graph>"
    yield "</gexf>"


# -- JSON ------------------------------------------------------------------------------------------------


def _json(nodes: Iterable[GraphNode], edges: Iterable[GraphEdge]) -> Iterator[str]:
    yield '{"directed": true, "multigraph": false, "graph": {}, "nodes": ['
    yield from _separated(
        {
            "id": n.id,
            "name": n.name,
            "n_rows": n.n_rows,
            "n_columns": n.n_columns,
            "component": n.component,
            "x": _finite(n.x),
            "y": _finite(n.y),
        }
        for n in nodes
    )
    yield '], "links": ['
    yield from _separated(
        {"source": e.source, "target": e.target, "n_inds": e.n_inds, "score": _finite(e.score)} for e in edges
    )
    yield "]}"


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _separated(records: Iterable[dict[str, object]]) -> Iterator[str]:
    """One record a line, with commas between them."""
    last = None
    for record in records:
        if last is not None:
            yield last + ","
        last = json.dumps(record)  # ASCII: lone surrogates are escaped as well
    if last is not None:
        yield last


_WRITERS: dict[str, Callable[[Iterable[GraphNode], Iterable[GraphEdge]], Iterator[str]]] = {
    "graphml": _graphml,
    "gexf": _gexf,
    "json": _json,
}

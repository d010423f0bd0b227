"""Exported graphs read back as what they were, whatever the names of the tables."""

from __future__ import annotations

import io
import json
import math
import re
from xml.etree import ElementTree

import networkx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.app.export.graphs import GRAPH_FORMATS, GraphEdge, GraphNode, write_graph

NODES = [
    GraphNode(0, "sales/orders.csv", 10, 3, 0, -1.5, 0.25),
    GraphNode(7, 'a<b> & "c"\n\tü\x00\x0b\ufffe😀', 0, 0, -1, 1e-9, 3.0),
    GraphNode(9, "]]>", 5_000_000_000, 2, 0, 0.0, 0.0),
]
EDGES = [GraphEdge(0, 9, 2, 0.75), GraphEdge(9, 0, 1, 1.0)]
GRAPHML, GEXF = "{http://graphml.graphdrawing.org/xmlns}", "{http://gexf.net/1.3}"


def text_of(format: str, nodes: list[GraphNode], edges: list[GraphEdge]) -> str:
    file = io.StringIO()
    write_graph(format, iter(nodes), iter(edges), file)  # type: ignore[arg-type]
    return file.getvalue()


def sayable(text: str) -> str:
    return re.sub("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


def xml(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text.encode())


def from_graphml(text: str) -> tuple[list[GraphNode], list[GraphEdge]]:
    tree = xml(text)
    keys = {(k.get("for"), k.get("id")) for k in tree.iter(GRAPHML + "key")}

    def values(element: ElementTree.Element, domain: str) -> dict[str, str]:
        told = {d.get("key", ""): d.text or "" for d in element.iter(GRAPHML + "data")}
        assert all((domain, name) in keys for name in told)
        return told

    nodes = []
    for node in tree.iter(GRAPHML + "node"):
        v = values(node, "node")
        numbers = (int(v[k]) for k in ("n_rows", "n_columns", "component"))
        nodes.append(GraphNode(int(node.get("id", "")), v["name"], *numbers, float(v["x"]), float(v["y"])))
    edges = []
    for edge in tree.iter(GRAPHML + "edge"):
        v = values(edge, "edge")
        ends = int(edge.get("source", "")), int(edge.get("target", ""))
        edges.append(GraphEdge(*ends, int(v["n_inds"]), float(v["score"])))
    return nodes, edges


def from_gexf(text: str) -> tuple[list[GraphNode], list[GraphEdge]]:
    tree = xml(text)

    def values(element: ElementTree.Element) -> list[str]:
        told = list(element.iter(GEXF + "attvalue"))
        assert [t.get("for") for t in told] == [str(i) for i in range(len(told))]
        return [t.get("value", "") for t in told]

    nodes = []
    for node in tree.iter(GEXF + "node"):
        place = next(node.iter("{http://gexf.net/1.3/viz}position"))
        xy = float(place.get("x", "")), float(place.get("y", ""))
        nodes.append(GraphNode(int(node.get("id", "")), node.get("label", ""), *map(int, values(node)), *xy))
    edges = []
    for i, edge in enumerate(tree.iter(GEXF + "edge")):
        assert edge.get("id") == str(i)
        n_inds, score = values(edge)
        ends = int(edge.get("source", "")), int(edge.get("target", ""))
        edges.append(GraphEdge(*ends, int(n_inds), float(score)))
    return nodes, edges


def from_json(text: str) -> tuple[list[GraphNode], list[GraphEdge]]:
    told = json.loads(text)
    return [GraphNode(**n) for n in told["nodes"]], [GraphEdge(**e) for e in told["links"]]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[GraphNode], list[GraphEdge]]:
    names = draw(st.lists(st.text(st.characters(), max_size=8), max_size=5))
    numbers, places = st.integers(0, 2**31 - 1), st.floats(-1e6, 1e6)
    nodes = [
        GraphNode(i, name, draw(numbers), draw(numbers), draw(st.integers(-1, 9)), draw(places), draw(places))
        for i, name in enumerate(names)
    ]
    ids = st.integers(0, max(0, len(nodes) - 1))
    edge = st.builds(GraphEdge, ids, ids, numbers, st.floats(0, 1))
    return nodes, draw(st.lists(edge, max_size=5)) if nodes else []


@given(graphs())
@example((NODES, EDGES))
@example(([], []))
def test_read_back(graph: tuple[list[GraphNode], list[GraphEdge]]) -> None:
    nodes, edges = graph
    assert from_json(text_of("json", nodes, edges)) == (nodes, edges)
    said = [GraphNode(n.id, sayable(n.name), n.n_rows, n.n_columns, n.component, n.x, n.y) for n in nodes]
    assert from_graphml(text_of("graphml", nodes, edges)) == (said, edges)
    assert from_gexf(text_of("gexf", nodes, edges)) == (said, edges)


def test_numbers_that_are_not_finite() -> None:
    nodes = [GraphNode(0, "a", 1, 1, -1, math.nan, math.inf)]
    edges = [GraphEdge(0, 0, 1, math.nan)]
    for format in GRAPH_FORMATS:
        text = text_of(format, nodes, edges)
        assert not re.search(r"nan|inf\b|infinity", text, re.IGNORECASE)
        if format != "json":
            xml(text)
    (node,) = json.loads(text_of("json", nodes, edges))["nodes"]
    assert (node["x"], node["y"]) == (None, None)


def test_unknown_format() -> None:
    with pytest.raises(ValueError, match="unknown graph format 'dot'; known are graphml, gexf, json"):
        text_of("dot", [], [])


def test_networkx_reads_them() -> None:
    read = networkx.read_graphml(io.BytesIO(text_of("graphml", NODES, EDGES).encode()), node_type=int)
    assert read.nodes[9] == {"name": "]]>", "n_rows": 5e9, "n_columns": 2, "component": 0, "x": 0.0, "y": 0.0}
    assert read.edges[0, 9] == {"n_inds": 2, "score": 0.75}
    told = json.loads(text_of("json", NODES, EDGES))
    assert networkx.node_link_graph(told, edges="links").edges[9, 0] == {"n_inds": 1, "score": 1.0}

"""The architecture, linted: each package imports only what stands above it, and a few names are banned."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast

ROOT = Path(holdfast.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# Top to bottom: a layer imports from itself and from those before it. One entry may be several modules.
LAYERS = (
    ("errors",),
    ("model",),
    ("kernels",),
    ("state",),
    ("storage",),
    ("pipeline",),
    ("discovery",),
    (
        "history",
        "fd_past",
        "fd_reading",
        "fd_advice",
        "dc_reading",
        "inspection",
        "writing",
        "pinning",
        "linking",
        "workspace",
    ),
    ("app", "__main__"),
)
ORDER = {name: i for i, layer in enumerate(LAYERS) for name in layer}

# Layers that import less than the order allows.
STRICTER = {
    "errors": set(),
    "kernels": set(),
    "model": {"errors"},
    "state": {"kernels"},
    "storage": {"errors", "model", "kernels"},
}
# Libraries, and who may import them while running.
RESERVED = {
    "numba": {"kernels"},
    "pyspark": {"pipeline", "workspace", "writing"},
    "py4j": {"pipeline"},
    "deltalake": {"storage"},
    "pyroaring": {"storage"},
    "typer": {"app"},
    "rich": {"app"},
}
BANNED_NAMES = {"utils", "util", "helpers", "helper", "manager", "misc", "common", "data"}


def layer_of(path: Path) -> str:
    """The first part of a module's name below `holdfast`."""
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imports(path: Path, *, running_only: bool = True) -> Iterator[tuple[int, str]]:
    """(line, absolute module name) of all imports; those under TYPE_CHECKING only if asked for."""
    package = ["holdfast", *path.relative_to(ROOT).parent.parts]

    def walk(node: ast.AST) -> Iterator[tuple[int, str]]:
        if running_only and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.orelse:
                yield from walk(child)
            return
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield node.lineno, module
            if module == "holdfast":  # `from holdfast import x`: x may be a package
                for alias in node.names:
                    yield node.lineno, f"{module}.{alias.name}"
        for child in ast.iter_child_nodes(node):
            yield from walk(child)

    yield from walk(ast.parse(path.read_text(encoding="utf-8")))


def own_layers(path: Path, *, running_only: bool = True) -> Iterator[tuple[int, str]]:
    for line, module in imports(path, running_only=running_only):
        parts = module.split(".")
        if parts[0] == "holdfast" and len(parts) > 1 and parts[1] in ORDER:
            yield line, parts[1]


each_file = pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))


@each_file
def test_imports_point_upwards(path: Path) -> None:
    layer = layer_of(path)
    if layer == "__init__":
        return  # the public face: names from everywhere
    assert layer in ORDER, f"{path.name} belongs to no layer; add it to LAYERS"
    for line, other in own_layers(path, running_only=False):
        assert ORDER[other] <= ORDER[layer], f"{path}:{line}: {layer} imports {other}, which stands below it"
        allowed = STRICTER.get(layer)
        if allowed is not None and other != layer:
            assert other in allowed, f"{path}:{line}: {layer} must not import {other}"


@each_file
def test_libraries_stay_where_they_belong(path: Path) -> None:
    for line, module in imports(path):
        library = module.split(".")[0]
        if library in RESERVED:
            assert layer_of(path) in RESERVED[library], f"{path}:{line}: {library} is for {RESERVED[library]}"


@pytest.mark.parametrize(
    "path", [p for p in FILES if layer_of(p) in ("model", "errors")], ids=lambda p: p.name
)
def test_the_words_need_only_the_standard_library(path: Path) -> None:
    import sys

    for line, module in imports(path, running_only=False):
        library = module.split(".")[0]
        assert library == "holdfast" or library in sys.stdlib_module_names, f"{path}:{line}: {library}"


def test_no_drawer_for_leftovers() -> None:
    for path in ROOT.rglob("*"):
        assert path.stem.lower() not in BANNED_NAMES, path


def test_the_lint_sees_what_it_should() -> None:
    """It would be worthless if it found nothing."""
    seen = {(layer_of(p), other) for p in FILES for _, other in own_layers(p)}
    assert {("storage", "kernels"), ("discovery", "pipeline"), ("state", "kernels")} <= seen
    libraries = {(layer_of(p), m.split(".")[0]) for p in FILES for _, m in imports(p)}
    assert {("kernels", "numba"), ("pipeline", "pyspark")} <= libraries

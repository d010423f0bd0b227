"""The architecture, linted: who may import whom, where libraries stay, and that private names are private.

What is said of names is about the package: tests and benchmarks are read in one place each, and are exempt.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.kind import kinds

ROOT = Path(holdfast.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# Rooms of the core, in this order: each imports itself and those before it.
ROOMS = tuple(f"core.{room}" for room in ("words", "store", "engine", "sources", "rows", "evidence", "cover"))
# A class of dependencies imports the core and itself, and never another class.
CLASSES = ("functional", "denial", "profile", "inclusions", "lakes")
# What stands on the classes, in this order.
TOP = (
    "step",
    "order",
    "kinds",
    "commit",
    "muting",
    "pinning",
    "upkeep",
    "by_kind",
    "workspace",
    "kernels",
    "app",
    "__main__",
)
# What a batch runs through knows the registry, and no class by name.
CLASSLESS = ("kind", "step", "commit", "upkeep", "workspace")

# Libraries, and who may import them while running; numba: see below.
RESERVED = {
    "pyspark": {"core.engine"},
    "py4j": {"core.engine"},
    "deltalake": {"core.store"},
    "obstore": {"core.store"},
    "pyroaring": {"core.rows"},
    "typer": {"app"},
    "rich": {"app"},
    "yaml": {"app"},
}
# What looks private and is not: of named tuples; and of libraries that offer nothing else.
TUPLES = {"_asdict", "_replace", "_fields"}
THEIRS = {
    ("core.engine.session", "_active_spark_context"),
    ("core.engine.session", "_jsc"),
    ("core.engine.session", "_jvm"),
    ("core.engine.session", "_gateway"),
    ("core.engine.kernels.compiling", "_rebuild"),
    ("core.engine.kernels.compiling", "_reduce"),
}
BANNED_NAMES = {"utils", "util", "helpers", "helper", "manager", "misc", "common", "data"}
# Names that mean another thing in each place, and cannot be searched for.
PRONOUNS = {"found", "told", "own", "kept", "mine", "theirs"}
# Fields of state and of the public API.
PRONOUNS_THAT_STAY = {("core.rows.table_state", "kept"), ("core.words.change", "kept")}
# Lines of a module outside of `kernels`.
MOST_LINES = 500
# Names that a module of each class may have.
SHARED_STEMS = {"__init__", "__main__", "kernels", "say", "explain", "rank"}


def module_of(path: Path) -> str:
    """Below `holdfast`: `core.rows.segments`."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path) for path in FILES}


def room_of(module: str) -> str:
    """The room of the core, the class, or the module at the top that a module belongs to."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "core" else parts[0]


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
            for alias in node.names:  # `from package import x`: x may be a module
                inner = f"{module}.{alias.name}"
                yield node.lineno, inner if inner.removeprefix("holdfast.") in MODULES else module
        for child in ast.iter_child_nodes(node):
            yield from walk(child)

    yield from walk(ast.parse(path.read_text(encoding="utf-8")))


def neighbours(path: Path) -> Iterator[tuple[int, str]]:
    """The modules of holdfast that a module imports, for types too."""
    for line, module in imports(path, running_only=False):
        if module.startswith("holdfast."):
            yield line, module.removeprefix("holdfast.")


def allowed(room: str, other: str) -> bool:
    if other in (room, "errors"):
        return True
    if room in ROOMS:
        return other in ROOMS and ROOMS.index(other) < ROOMS.index(room)
    if room == "kind":
        return other in ROOMS or other == "kinds"  # which registers what is built in
    if room in CLASSES:
        return other in ROOMS or other == "kind"
    if room in CLASSLESS:
        return other in ROOMS or other in ("kind", "kinds", "by_kind", "muting", "pinning", *CLASSLESS)
    if room in TOP:
        below = other in TOP and TOP.index(other) < TOP.index(room)
        return other in ROOMS or other in CLASSES or other == "kind" or below
    return room == "__init__"  # the public face: names from everywhere


each_file = pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))


@each_file
def test_imports(path: Path) -> None:
    module = module_of(path)
    room = room_of(module)
    known = (*ROOMS, *CLASSES, *TOP, "kind")
    assert module in ("core", "errors", "__init__") or room in known, "belongs to no room"
    for line, other in neighbours(path):
        assert allowed(room, room_of(other)), f"{path}:{line}: {room} must not import {other}"


@each_file
def test_libraries_stay_where_they_belong(path: Path) -> None:
    module = module_of(path)
    for line, name in imports(path):
        library = name.split(".")[0]
        if library in RESERVED:
            assert room_of(module) in RESERVED[library], (
                f"{path}:{line}: {library} is for {RESERVED[library]}"
            )
        if library == "numba":
            assert "kernels" in module.split("."), f"{path}:{line}: Numba is for kernels"


@pytest.mark.parametrize(
    "path", [p for p in FILES if room_of(module_of(p)) in ("core.words", "errors")], ids=lambda p: p.name
)
def test_the_words_need_only_the_standard_library_and_numpy(path: Path) -> None:
    for line, module in imports(path, running_only=False):
        library = module.split(".")[0]
        assert library in ("holdfast", "numpy") or library in sys.stdlib_module_names, (
            f"{path}:{line}: {library}"
        )


def test_what_a_batch_runs_through_names_no_kind() -> None:
    """In the code: docstrings and examples tell people of the options of kinds."""
    for module in CLASSLESS:
        tree = ast.parse((ROOT / f"{module}.py").read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and node.value in kinds():
                raise AssertionError(f"{module}.py:{node.lineno}: the kind {node.value!r} by name")


def private_uses(path: Path) -> Iterator[tuple[int, str]]:
    """(line, name) of private names of other modules: imported, or attributes that are set nowhere here."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    known = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            known.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            known.add(node.id)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("__setattr__"):
            known |= {a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("holdfast"):
            for alias in node.names:
                if alias.name.startswith("_") and not alias.name.startswith("__"):
                    yield node.lineno, alias.name
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            known_elsewhere = node.attr in TUPLES or (module_of(path), node.attr) in THEIRS
            if node.attr not in known and not known_elsewhere:
                yield node.lineno, node.attr


@each_file
def test_private_names_stay_at_home(path: Path) -> None:
    for line, name in private_uses(path):
        raise AssertionError(f"{path}:{line}: {name} is private to another module")


def names_given(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) of all that a module gives a name to."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr
            case ast.arg():
                yield node.lineno, node.arg
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.alias(asname=str()):
                yield node.lineno, str(node.asname)
            case ast.MatchAs(name=str()) | ast.MatchStar(name=str()) | ast.ExceptHandler(name=str()):
                yield node.lineno, str(node.name)


@each_file
def test_names_are_nouns(path: Path) -> None:
    module = module_of(path)
    for line, name in names_given(ast.parse(path.read_text(encoding="utf-8"))):
        if name.strip("_").lower() in PRONOUNS:
            assert (module, name) in PRONOUNS_THAT_STAY, f"{path}:{line}: say what {name} is, by a noun"


def test_stems_are_unique() -> None:
    stems = Counter(path.stem for path in FILES if room_of(module_of(path)) != "app")
    assert {stem for stem, n in stems.items() if n > 1} <= SHARED_STEMS


@each_file
def test_a_module_is_read_in_one_sitting(path: Path) -> None:
    if "kernels" not in module_of(path).split("."):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES, path


@pytest.mark.parametrize("package", [p for p in FILES if p.name == "__init__.py"], ids=module_of)
def test_every_package_says_what_lives_there_and_what_to_read_first(package: Path) -> None:
    text = ast.get_docstring(ast.parse(package.read_text(encoding="utf-8"))) or ""
    for name in re.findall(r"`([\w/]+\.py)`", text):
        assert any((folder / name).exists() for folder in (package.parent, ROOT)), f"{package}: no {name}"
    modules = [path for path in package.parent.glob("*.py") if not path.name.startswith("__")]
    if len(modules) > 2 and package.parent != ROOT:
        assert re.search(r"\bRead\b|\bfirst\b|in the order", text), f"{package}: what is to be read first?"


def test_no_drawer_for_leftovers() -> None:
    for path in ROOT.rglob("*"):
        assert path.stem.lower() not in BANNED_NAMES, path


def test_the_lint_sees_what_it_should() -> None:
    """It would be worthless if it found nothing."""
    seen = {(room_of(module_of(p)), room_of(other)) for p in FILES for _, other in neighbours(p)}
    assert {("core.rows", "core.store"), ("denial", "core.cover"), ("commit", "step")} <= seen
    libraries = {(room_of(module_of(p)), m.split(".")[0]) for p in FILES for _, m in imports(p)}
    assert {("core.engine", "numba"), ("core.engine", "pyspark")} <= libraries

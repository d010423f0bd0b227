"""The documents are executed: Python examples as doctests, console examples as commands."""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from benchmarks import glance
from pyarrow import csv, parquet
from typer.testing import CliRunner

from holdfast.app.cli import app

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "src" / "holdfast" / "app" / "examples"


DOCTESTS = ("docs/model.md", "docs/state-format.md")
# Python of which each block goes on where the one before ended, in the folder of the examples.
SCRIPTS = ("docs/api.md",)
# Python that is not executed, and why.
UNTRIED = {"docs/cluster.md": "it opens a workspace on S3"}


def python_blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", DOCTESTS)
def test_python_examples(page: str) -> None:
    assert all(block.startswith(">>> ") for block in python_blocks(page))
    failed, attempted = doctest.testfile(str(ROOT / page), module_relative=False)
    assert attempted > 0
    assert failed == 0


@pytest.mark.parametrize("page", SCRIPTS)
def test_python_scripts(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    orders = csv.read_csv("orders.csv")
    parquet.write_table(orders, "orders.parquet")
    given: dict[str, Any] = {
        "new_rows": "1-inserts.csv",
        "old_rows": orders.slice(0, 2),
        "all_rows": orders.slice(1),
        "more": "4-inserts.csv",
        "who": "5-inserts.csv",
    }
    for block in python_blocks(page):
        exec(compile(block, page, "exec"), given)
    assert given["ws"].version > 5
    given["ws"].close()


def test_every_python_block_is_executed() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]
    having = {str(page.relative_to(ROOT)) for page in pages if "```py" in page.read_text()}
    assert having == {*DOCTESTS, *SCRIPTS, *UNTRIED}


# Their examples go on where those of the page before ended.
PAGES = (
    "README.md",
    "docs/functional.md",
    "docs/denial.md",
    "docs/profiles.md",
    "docs/lakes.md",
    "docs/pins.md",
)


def console_examples() -> list[tuple[str, str]]:
    """(command, expected output) of all console blocks."""
    blocks = [re.findall(r"```console\n(.*?)```", (ROOT / page).read_text(), re.DOTALL) for page in PAGES]
    assert all(blocks)
    whole = "".join(block for page in blocks for block in page)
    parts = re.split(r"^\$ (.*)\n", whole, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def test_console_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for command, expected in console_examples():
        program, *arguments = shlex.split(command)
        assert program == "holdfast"
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        pattern = r"\.\.\.".join(re.escape(part) for part in expected.split("...")).replace(r"\.\.\.", ".*?")
        flat = re.sub(r"(?:\\ )+", r"\\s+", pattern)
        assert re.fullmatch(flat, result.stdout), f"expected:\n{expected}\ngot:\n{result.stdout}"


def test_every_console_block_is_executed() -> None:
    having = {str(p.relative_to(ROOT)) for p in ROOT.glob("**/*.md") if "```console" in p.read_text()}
    assert {page for page in having if not page.startswith(".")} == set(PAGES)


def test_the_page_of_the_benchmarks_says_what_their_reports_say() -> None:
    """`python -m benchmarks glance` writes it."""
    text = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    assert glance.page(text) == text


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 200


def test_readme_names_the_make_targets() -> None:
    readme, makefile = (ROOT / "README.md").read_text(), (ROOT / "Makefile").read_text()
    for target in ("demo", "test"):
        assert f"make {target}" in readme
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_every_decision_is_listed() -> None:
    pages = {page.name for page in (ROOT / "docs" / "decisions").glob("[0-9]*.md")}
    listed = re.findall(
        r"^- \[(\d{4})\]\((\1-[^)]+)\) ", (ROOT / "docs/decisions/README.md").read_text(), re.M
    )
    assert [name for _, name in listed] == sorted(pages)


def test_the_source_package_has_what_it_names() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    for name in (*build["sdist"]["include"], *build["wheel"]["packages"]):
        assert (ROOT / name).exists(), f"pyproject.toml names {name}, which is not there"


def test_relative_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.relative_to(ROOT)} links to {link}"

"""What notebooks show of answers: well-formed, whatever names and cells there are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

import holdfast
from holdfast.app import cell_progress

HOSTILE = "<script>alert('1')</script> & \x1b[31m\u202e"
NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebook.ipynb"


@pytest.fixture(scope="module")
def ws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[holdfast.Workspace]:
    people = pa.table(
        {"name": ["Lee", HOSTILE, "Lee"], "phone": [345, 245, 234], "age": [20, 30, 30], "lo": [1, 2, 3]}
    )
    calls = pa.table({"to": [345, 234, 345], HOSTILE: [1, 2, 3]})
    with holdfast.open(tmp_path_factory.mktemp("notebook") / "a.hold", engine="inline") as ws:
        ws.track_all({"people": people, "calls": calls}, kinds=("ucc", "fd", "ind", "dc", "row"))
        ws.pin_rule("lo <= age", table="people", owner="ann")
        ws.mute("people", "name -> lo", reason="few rows")
        yield ws


def shown(answer: object) -> ET.Element:
    text = answer._repr_html_()  # type: ignore[attr-defined]
    assert "<script" not in text
    return ET.fromstring(f"<body>{text.replace('<!--', '<!-- ')}</body>")


def test_a_workspace_is_its_tables_and_their_diagram(ws: holdfast.Workspace) -> None:
    body = shown(ws)
    cells = ["".join(cell.itertext()) for cell in body.iter("td")]
    assert {"people", "calls", "3"} <= set(cells)
    assert body.find(".//{http://www.w3.org/2000/svg}svg") is not None


def test_every_answer_is_shown(ws: holdfast.Workspace) -> None:
    new = pa.table({"name": ["Payne"], "phone": [245], "age": [31], "lo": [9]})
    for answer, words in (
        (ws.check("people", inserts=new), "phone"),
        (ws.dependencies(), "calls[to] in people[phone]"),
        (ws.log(), "track"),
        (ws.explain("people", ["phone"]), "is unique"),
        (ws.explain("people", "age -> name"), "does not hold"),
        (ws.explain("people", "not(t.age = s.age and t.lo = s.lo)"), "holds"),
        (ws.explain("people", "lo <= age"), "holds"),
        (ws.explain("calls", ["to"], referenced=holdfast.Side("people", ("phone",))), "holds"),
        (ws.violations("people", "age -> name"), "_row"),
        (ws.fds.rank("people"), "best first"),
        (ws.dcs.rank("people"), "best first"),
        (ws.inds.links(), "candidate"),
        (ws.pins(), "lo <= age"),
        (ws.muted(), "few rows"),
        (ws.map(), "2 tables, 0 references"),
    ):
        assert words in "".join(shown(answer).itertext()), answer


def test_lists_of_what_people_said_go_on_as_tables(ws: holdfast.Workspace) -> None:
    pins, muted = ws.pins(), ws.muted()
    assert pins.to_pandas().to_dict("records")[0] == {
        "table": "people",
        "kind": "check",
        "pin": "lo <= age",
        "holds": True,
        "n_violations": 0,
        "error": 0.0,
        "at_most": None,
        "severity": "error",
        "reason": None,
        "owner": "ann",
    }
    assert repr(pins) == "1 pins\n  holds          people: lo <= age"
    assert muted.to_pandas()["muted"].tolist() == ["name -> lo"]
    assert repr(muted) == "1 muted\n  people: name -> lo, few rows"
    assert ws.map().to_svg().startswith("<svg")


def test_the_joins_of_a_lake_are_shown(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "moons.csv").write_text("moon,of\nLuna,Earth\nPhobos,Mars\n")
    (tmp_path / "tables" / "planets.csv").write_text("planet\nVenus\nEarth\nMars\n")
    with holdfast.open(tmp_path / "lake.hold", engine="inline") as other:
        other.link(tmp_path / "tables")
        lake = other.lake()
        assert lake is not None
        joins = lake.joins("moons.csv")
    assert "moons.csv[of]" in "".join(shown(joins).itertext())
    assert joins.to_pandas()["referenced"].tolist() == ["planets.csv[planet]"]
    assert repr(joins).startswith("1 joins\n  0.")


def test_what_cannot_be_seen_is_a_code(ws: holdfast.Workspace) -> None:
    for answer in (ws, ws.dependencies(), ws.violations("people", "age -> name")):
        text = "".join(shown(answer).itertext())
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_a_long_list_says_how_many_more(ws: holdfast.Workspace, tmp_path: Path) -> None:
    wide = pa.table({f"c{i:02}": [i] for i in range(80)})
    with holdfast.open(tmp_path / "b.hold", engine="inline") as other:
        other.track("wide", wide, kinds=("fd",))
        text = "".join(shown(other.dependencies()).itertext())
    assert "... and 30 more" in text


def test_nothing_of_it_is_loaded_before_it_is_shown() -> None:
    script = "import sys, holdfast; holdfast.Workspace; print('holdfast.app.notebook' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True)
    assert told.stdout.strip() == "False"


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cell by cell, as a notebook would; what it shows is what the file has kept, but for times.

    With REWRITE=1 the file keeps what is shown now.
    """
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        *lines, last = "".join(cell["source"]).split("\n")
        exec("\n".join(lines), names)
        if not re.match(r"[\w.]+($|\()", last):
            exec(last, names)
            outputs = []
        else:
            answer = eval(last, names)
            shown(answer)
            texts = {"text/html": answer._repr_html_(), "text/plain": repr(answer)}
            data = {kind: text.splitlines(keepends=True) for kind, text in texts.items()}
            outputs = [
                {"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data}
            ]
        if not os.environ.get("REWRITE"):
            assert untimed(outputs) == untimed(cell["outputs"]), last
        cell["outputs"] = outputs
    if os.environ.get("REWRITE"):
        NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


def untimed(outputs: object) -> str:
    text = re.sub(r"\d{4}-\d\d-\d\d( at)? \d\d:\d\d:\d\d", "TIME", json.dumps(outputs))
    text = re.sub(r"\d+\.\d+ s\b|object at 0x\w+", "", text)
    return re.sub(r" +\\n", r"\\n", text)  # lines are filled up: a longer time has fewer spaces behind it


@dataclass(eq=False)
class Shell:
    """What a kernel has of IPython, as far as progress is concerned."""

    kernel: object = None
    lines: list[list[str]] = field(default_factory=list)  # what each showed, in turn
    ends: list[Callable[..., None]] = field(default_factory=list)

    @property
    def events(self) -> Shell:
        return self

    def register(self, event: str, call: Callable[..., None]) -> None:
        assert event == "post_run_cell"
        self.ends.append(call)

    def display(self, data: dict[str, str], *, raw: bool, display_id: bool = False) -> Line:
        assert raw
        assert display_id
        self.lines.append([data["text/html"]])
        return Line(self.lines[-1])

    def cell_ends(self) -> None:
        for call in self.ends:
            call(object())


@dataclass
class Line:
    shown: list[str]

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.shown.append(data["text/html"])


def test_a_line_below_the_cell_says_what_is_going_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_progress, "PATIENCE_S", 0.01)
    monkeypatch.setattr(cell_progress, "LOOK_S", 0.01)
    shell = Shell()
    progress = cell_progress.CellProgress(shell, shell.display)
    for n in (1, 2):
        progress("reading <orders>", 3, 10)
        until(lambda n=n: len(shell.lines) == n)
        assert "3/10" in shell.lines[-1][-1]
        assert 'value="3" max="10"' in shell.lines[-1][-1]
        assert "reading &lt;orders&gt;" in shell.lines[-1][-1]
        progress("searching", 0, 0)
        until(lambda: "searching" in shell.lines[-1][-1])
        assert "max=" not in shell.lines[-1][-1]
        shell.cell_ends()
        assert shell.lines[-1][-1] == ""  # nothing stays below the cell
    assert len(shell.lines) == 2
    shell.cell_ends()  # of a cell that asked for nothing


def test_what_is_over_at_once_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_progress, "PATIENCE_S", 1_000.0)
    shell = Shell()
    cell_progress.CellProgress(shell, shell.display)("reading", 0, 1)
    shell.cell_ends()
    assert shell.lines == []


def test_only_the_kernel_of_a_notebook_shows_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell: object = Shell()
    shown = SimpleNamespace(display=Shell.display)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    people = tmp_path / "people.csv"
    people.write_text("id\n1\n2\n")

    def stages(**how: object) -> list[str]:
        stages = []
        monkeypatch.setattr(
            cell_progress.CellProgress, "__call__", lambda _, stage, *__: stages.append(stage)
        )
        with holdfast.open(tmp_path / f"{len(list(tmp_path.iterdir()))}.hold", engine="inline", **how) as ws:
            ws.track("people", people)
        return stages

    monkeypatch.delenv("HOLDFAST_PROGRESS", raising=False)
    assert stages()
    assert stages(progress=False) == []
    monkeypatch.setenv("HOLDFAST_PROGRESS", "0")
    assert stages() == []
    monkeypatch.delenv("HOLDFAST_PROGRESS")
    shell = object()  # IPython in a terminal
    assert stages() == []
    shell = None
    assert stages() == []


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)

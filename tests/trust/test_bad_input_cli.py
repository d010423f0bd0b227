"""Bad input on the command line: exit code 2, one clear line on standard error, nothing applied."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
from holdfast.app import cli
from trust import kit

HEADER = "id,name,city,grade,score\n"
FILES: dict[str, bytes] = {
    "empty.csv": b"",
    "semicolons.csv": HEADER.replace(",", ";").encode() + b"9;Z;Rome\n",
    "ragged.csv": HEADER.encode() + b"9,Z,Rome,1,0.5\n9,Z\n",
    "missing.csv": b"id,name,city,grade\n9,Z,Rome,1\n",
    "renamed.csv": HEADER.replace("city", "town").encode() + b"9,Z,Rome,1,0.5\n",
    "retyped.csv": HEADER.encode() + b"nine,Z,Rome,1,0.5\n",
    "latin.csv": HEADER.encode() + "9,Jos\xe9,Rome,1,0.5\n".encode("latin-1"),
    "absent.csv": HEADER.encode() + b"9,Z,Rome,1,0.5\n",
    "huge.csv": HEADER.encode() + b"x" * 100_000 + b",Z,Rome,1,0.5\n",
    "escape.csv": HEADER.encode() + b"\x1b[31mred,Z,Rome,1,0.5\n",
    "twice.csv": b"a,b,a\n1,2,3\n",
    "good.csv": HEADER.encode() + b"9,Z,Rome,1,0.5\n",
}
# Arguments behind `holdfast -w W`, the class of the error, and words that the line must have.
CASES: list[tuple[str, str, tuple[str, ...]]] = [
    ("track new gone.csv", "SourceError", ("there is no file", "gone.csv", "'new'")),
    ("track new empty.csv", "SourceError", ("empty.csv", "is empty")),
    ("track new semicolons.csv", "SourceError", ("delimiter", "';'")),
    ("track new ragged.csv", "SourceError", ("line 3", "2 fields instead of 5")),
    ("track new twice.csv --names a,b,a", "DuplicateColumnError", ("two columns 'a'",)),
    ("track new latin.csv", "SourceError", ("line 2", "not utf-8", "latin-1")),
    ("track new good.csv --row-key idd", "UnknownColumnError", ("'idd'", "Did you mean 'id'?")),
    ("track people good.csv", "TableExistsError", ("'people'", "tracked already")),
    ("track new good.csv --types id=money", "UsageError", ("'money'",)),
    (
        "apply people --inserts missing.csv",
        "SchemaError",
        ("'people'", "lack", "score", "Nothing was applied"),
    ),
    ("apply people --inserts renamed.csv", "UnknownColumnError", ("'town'", "Nothing was applied")),
    (
        "apply people --inserts retyped.csv",
        "ColumnTypeError",
        ("'id'", "is int", "'nine'", "Nothing was applied"),
    ),
    ("apply people --inserts ragged.csv", "SourceError", ("line 3", "Nothing was applied")),
    ("apply people --inserts huge.csv", "ColumnTypeError", ("xxx...", "Nothing was applied")),
    ("apply people --inserts escape.csv", "ColumnTypeError", ("[31mred", "Nothing was applied")),
    (
        "apply people --deletes absent.csv",
        "AbsentRowError",
        ("(9, 'Z', 'Rome', 1, 0.5)", "Nothing was applied"),
    ),
    ("check people --deletes absent.csv", "AbsentRowError", ("(9, 'Z', 'Rome', 1, 0.5)",)),
    ("apply people", "UsageError", ("batch is empty",)),
    ("apply people --before good.csv", "UsageError", ("both",)),
    ("apply people --updates good.csv", "UsageError", ("no row key",)),
    ("apply poeple --inserts good.csv", "UnknownTableError", ("Did you mean 'people'?",)),
    ("show --table x", "UnknownTableError", ("'x'",)),
    ("show --at 99", "WorkspaceError", ("no version 99",)),
    ("explain people nam", "UnknownColumnError", ("'nam'", "Did you mean 'name'?")),
    ("pin people nam", "UnknownColumnError", ("'nam'",)),
    ("log --table x", "UnknownTableError", ("'x'",)),
    ("drop x", "UnknownTableError", ("'x'",)),
]
# The same on a workspace of the tables customers and orders, whose inclusions are tracked.
SHOP: dict[str, str] = {
    "customers.csv": "id,name\n101,Ada\n102,Bob\n",
    "orders.csv": "nr,customer\n1,101\n2,102\n",
    "more.csv": "nr,customer\n3,999\n",
    "retyped.csv": "nr,customer\nx,999\n",
    "gone.csv": "nr,customer\n77,101\n",
    "events.csv": "who\n101\n",
}
SHOP_CASES: list[tuple[str, str, tuple[str, ...]]] = [
    ("track new orders.csv --kinds ind,magic", "UsageError", ("'magic'", "ucc, fd, ind")),
    ("track new orders.csv --kinds ,", "UsageError", ("no kind", "'new'")),
    ("track new orders.csv --as-text", "UsageError", ("--as-text", "add ind to --kinds")),
    ("track new orders.csv --columns nr", "UsageError", ("--columns", "add ind, dc or row to --kinds")),
    ("track new orders.csv --exclude nr", "UsageError", ("--exclude", "add ind, dc or row to --kinds")),
    ("track new orders.csv --kinds ind --columns nrr", "UnknownColumnError", ("'nrr'", "Did you mean 'nr'?")),
    (
        "track new orders.csv --kinds ind --exclude x*",
        "UnknownColumnError",
        ("'x*'", "Columns: nr, customer"),
    ),
    ("track new orders.csv --kinds ind --exclude *", "UsageError", ("leave no column", "'new'")),
    ("track-all new=orders.csv new=more.csv", "UsageError", ("'new'", "two sources", "more.csv")),
    ("track-all more.csv sub/more.csv", "UsageError", ("'more'", "two sources", "NAME=SOURCE")),
    ("track-all new=", "UsageError", ("'new='", "NAME=SOURCE")),
    ("track-all =more.csv", "UsageError", ("'=more.csv'", "NAME=SOURCE")),
    ("track-all sub/*.csv", "UsageError", ("sub/*.csv", "NAME=SOURCE")),
    ("track-all events.csv none.csv", "SourceError", ("there is no file", "none.csv", "Nothing was applied")),
    ("track-all events.csv orders.csv", "TableExistsError", ("'orders'", "tracked already")),
    ("apply-all", "UsageError", ("no batch is given", "--inserts")),
    ("apply-all --inserts orders", "UsageError", ("--inserts has 'orders'", "TABLE=FILE")),
    ("apply-all --deletes orders=", "UsageError", ("--deletes has 'orders='", "TABLE=FILE")),
    ("apply-all --inserts =more.csv", "UsageError", ("'=more.csv'", "TABLE=FILE")),
    ("apply-all --inserts odrers=more.csv", "UnknownTableError", ("Did you mean 'orders'?",)),
    (
        "apply-all --inserts orders=more.csv --inserts orders=gone.csv",
        "UsageError",
        ("'orders'", "two --inserts", "more.csv", "gone.csv"),
    ),
    (
        "apply-all --inserts customers=customers.csv --inserts orders=retyped.csv",
        "ColumnTypeError",
        ("'nr'", "'x'", "Nothing was applied"),
    ),
    (
        "apply-all --inserts orders=more.csv --deletes orders=gone.csv",
        "AbsentRowError",
        ("(77, 101)", "Nothing was applied"),
    ),
    ("apply-all --before orders=gone.csv", "UsageError", ("both",)),
    ("check-all", "UsageError", ("no batch is given",)),
    ("check-all --inserts orders=none.csv", "SourceError", ("none.csv", "'orders'")),
    ("show --kind magic", "UsageError", ("'magic'", "ucc, fd, ind")),
    ("show --max-error 1.5", "UsageError", ("1.5", "from 0 to 1")),
    ("show --max-error nan", "UsageError", ("nan", "from 0 to 1")),
    ("show --kind ucc --max-error 0.1", "UsageError", ("--max-error", "--kind")),
    ("show --kind ucc --with-empty", "UsageError", ("--with-empty", "--kind")),
    ("show --kind ind --non-uniques", "UsageError", ("--non-uniques", "--kind")),
    ("show --kind ind --table x", "UnknownTableError", ("'x'",)),
    ("show --kind ind --at 9", "WorkspaceError", ("no version 9",)),
    ("links --table x", "UnknownTableError", ("'x'",)),
    ("links --max-error 2", "UsageError", ("from 0 to 1",)),
    ("explain orders customer --in customers", "UsageError", ("'customers'", "TABLE.COLUMN")),
    ("explain orders customer --in customer.id", "UnknownTableError", ("Did you mean 'customers'?",)),
    ("explain orders customer --in customers.idd", "UnknownColumnError", ("'idd'", "Did you mean 'id'?")),
    ("explain orders customr --in customers.id", "UnknownColumnError", ("Did you mean 'customer'?",)),
    ("explain orders customer --in customers.", "UsageError", ("no column", "'customers'")),
    ("explain orders customer --in-table customers", "UsageError", ("belong together",)),
    ("explain orders customer --in customers.id --in-column id", "UsageError", ("not all of them",)),
    ("explain orders customer --in-table x --in-column y", "UnknownTableError", ("'x'",)),
    ("explain orders customer --in orders.customer", "UsageError", ("included in itself",)),
    ("explain orders customer --in customers.name,id", "UsageError", ("columns",)),
    ("pin orders customer --in customers.idd", "UnknownColumnError", ("'idd'", "Did you mean 'id'?")),
    ("pin orders customer --in customers.name,id", "UsageError", ("1 column on its left", "2 on its")),
    ("pin orders customer --in customers.id --remove", "UsageError", ("not pinned",)),
    ("pin orders nr,customer --in customers.id,name", "UsageError", ("does not hold now",)),
]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    with holdfast.open(folder / "w", engine="inline") as ws:
        ws.track("people", kit.table_of(kit.START))
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def run(base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command line, in this process: (exit code, standard output, standard error)."""
    monkeypatch.chdir(base)

    def run(*args: str) -> tuple[int, str, str]:
        code: object = 0
        try:
            cli.main(list(args))
        except SystemExit as stop:
            code = stop.code or 0
        out, err = capsys.readouterr()
        assert isinstance(code, int)
        return code, out, err

    return run


def _judge(code: int, out: str, err: str, error: str, words: tuple[str, ...]) -> None:
    assert code == 2, err
    assert out == ""
    assert err.startswith(f"{error}: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert len(err) < 1_100
    assert "\x1b" not in err
    for word in words:
        assert word in err


@pytest.mark.parametrize(("args", "error", "words"), CASES, ids=[case[0] for case in CASES])
@pytest.mark.parametrize("more", [(), ("--json",)], ids=["plain", "json"])
def test_bad_input(
    run: Run, base: Path, args: str, error: str, words: tuple[str, ...], more: tuple[str, ...]
) -> None:
    before, files = kit.snapshot(base / "w"), kit.files_of(base / "w")
    code, out, err = run("-w", "w", "--engine", "inline", *args.split(), *more)
    _judge(code, out, err, error, words)
    assert kit.snapshot(base / "w") == before
    assert kit.files_of(base / "w") == files


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "sub").mkdir()
    for name, content in SHOP.items():
        (folder / name).write_text(content)
    with holdfast.open(folder / "w", engine="inline") as ws:
        sources = {name: folder / f"{name}.csv" for name in ("customers", "orders")}
        ws.track_all(sources, kinds=["ucc", "ind"])
    return folder


def _told(root: Path) -> tuple[dict[str, object], set[str]]:
    """What a workspace says, and its files but for litter: a table may be written when another is refused."""
    with holdfast.open(root, engine="inline", create=False) as ws:
        ws.tidy(grace_s=0)
    return kit.snapshot(root), kit.files_of(root)


@pytest.mark.parametrize(("args", "error", "words"), SHOP_CASES, ids=[case[0] for case in SHOP_CASES])
def test_bad_input_about_several_tables(
    run: Run, shop: Path, monkeypatch: pytest.MonkeyPatch, args: str, error: str, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(shop)
    before = _told(shop / "w")
    for more in ((), ("--json",)):
        code, out, err = run("-w", "w", "--engine", "inline", *args.split(), *more)
        _judge(code, out, err, error, words)
    assert _told(shop / "w") == before


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ("export --format dbt --dialect duckdb", ("--dialect", "dbt")),
        ("export -o no/where.sql", ("no/where.sql", "No such file")),
        ("export --max-error 7", ("from 0 to 1",)),
    ],
)
def test_bad_exports(
    run: Run, shop: Path, monkeypatch: pytest.MonkeyPatch, args: str, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(shop)
    _judge(*run("-w", "w", "--engine", "inline", *args.split()), "UsageError", words)


@pytest.mark.parametrize(
    "args",
    [
        "export --format xml",
        "export --dialect oracle",
        "show --max-error little",
        "track-all",
        "explain orders",
    ],
)
def test_arguments_that_cannot_be_parsed(
    run: Run, shop: Path, monkeypatch: pytest.MonkeyPatch, args: str
) -> None:
    monkeypatch.chdir(shop)
    code, out, err = run("-w", "w", *args.split())
    assert (code, out) == (2, "")
    assert "Error: " in err


def test_workspaces_that_are_none(run: Run, base: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "thesis.txt").write_text("all my work")
    newer = tmp_path / "newer"
    shutil.copytree(base / "w", newer)
    (newer / "holdfast.json").write_text('{"format": 99}')
    garbled = tmp_path / "garbled"
    shutil.copytree(base / "w", garbled)
    (garbled / "holdfast.json").write_text('{"for')
    damaged = tmp_path / "damaged"
    shutil.copytree(base / "w", damaged)
    cover = next(damaged.glob("tables/*/cover-*"))
    cover.write_bytes(cover.read_bytes()[:-1])
    for path, error, words in (
        (tmp_path / "gone", "WorkspaceError", ("there is no workspace",)),
        (base / "good.csv", "WorkspaceError", ("is a file",)),
        (plain, "WorkspaceError", ("no holdfast workspace",)),
        (newer, "StateFormatError", ("format 99", "Upgrade")),
        (garbled, "DamagedFileError", ("holdfast.json",)),
        (damaged, "DamagedFileError", (cover.name, "bytes")),
    ):
        _judge(*run("-w", str(path), "show"), error, words)
    _judge(*run("-w", str(plain), "track", "t", "good.csv"), "WorkspaceError", ("not empty", "thesis.txt"))
    assert os.listdir(plain) == ["thesis.txt"]
    assert not (tmp_path / "gone").exists()


def test_a_repeated_batch_id_is_fine(run: Run, base: Path, tmp_path: Path) -> None:
    shutil.copytree(base / "w", tmp_path / "w")
    command = ("-w", str(tmp_path / "w"), "--engine", "inline", "apply", "people", "--inserts", "good.csv")
    code, out, _ = run(*command, "--batch-id", "monday", "--json")
    assert (code, json.loads(out)["repeated"]) == (0, False)
    code, out, _ = run(*command, "--batch-id", "monday", "--json")
    assert (code, json.loads(out)["repeated"], json.loads(out)["version"]) == (0, True, 2)
    code, out, _ = run(*command, "--batch-id", "monday")
    assert code == 0
    assert "applied before" in out
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        assert (ws.version, ws.n_rows("people")) == (2, 7)


def test_in_a_process_of_its_own(base: Path) -> None:
    """What a shell sees."""
    command = "-W error -m holdfast.app.cli -w w apply people --inserts retyped.csv"
    done = subprocess.run(
        [sys.executable, *command.split()],
        cwd=base,
        capture_output=True,
        text=True,
        timeout=600,
    )
    _judge(done.returncode, done.stdout, done.stderr, "ColumnTypeError", ("'nine'", "Nothing was applied"))

"""What a key has outlived counts in its score: batches, and rows that came since."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from app.shell import Shell
from holdfast.app.commands.linking import export_table
from holdfast.app.export.model import DECLARED
from holdfast.core.cover.history import WEIGHED
from holdfast.core.words.dependency import Ucc
from holdfast.functional import key_reading

COLUMNS = ("a", "b", "c", "d")
Row = tuple[int, ...]


def table(rows: list[Row]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[]] * len(COLUMNS)
    return pa.table({name: pa.array(list(c), pa.int64()) for name, c in zip(COLUMNS, columns, strict=True)})


def is_unique(rows: list[Row], key: tuple[str, ...]) -> bool:
    at = [COLUMNS.index(c) for c in key]
    return len({tuple(row[i] for i in at) for row in rows}) == len(rows)


def expected(past: list[tuple[list[Row], int]], key: tuple[str, ...]) -> tuple[int, int]:
    """(versions, changed rows) by definition: `past` has the rows after each batch, and how many changed."""
    held: list[int] = []
    for rows, n_changed in reversed(past):
        if not is_unique(rows, key):
            break
        held.append(n_changed)
    return len(held), sum(held[:-1])  # the batch that brought it is not one that it outlived


@pytest.mark.parametrize("seed", range(4))
def test_what_keys_have_outlived_is_what_their_rows_say(tmp_path: Path, seed: int) -> None:
    """Of keys that are minimal, and of others: while batches come, in this process and in a new one."""
    random = Random(seed)
    number = iter(range(10**6))

    def row() -> Row:
        return next(number), random.randrange(6), random.randrange(8), random.randrange(9)

    keys = [k for n in range(1, 5) for k in combinations(COLUMNS, n)]
    rows = [row() for _ in range(4)]
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", table(rows))
        past = [(list(rows), 4)]
        pin_at = random.randrange(2, 16)
        for step in range(18):
            if step == pin_at:  # a version at which nothing is put to the test
                ws.pin("t", ["a"])
            gone = random.sample(rows, random.randrange(min(3, len(rows)) + 1))
            came = [row() for _ in range(random.randrange(1, 4))]
            rows = [r for r in rows if r not in gone] + came
            ws.apply("t", inserts=table(came), deletes=table(gone))
            past.append((list(rows), len(gone) + len(came)))
            with holdfast.open(tmp_path / "w", engine="inline") as again:
                for reader in (ws, again):
                    newest = reader._tables.ledger.commits("t")[-WEIGHED:]
                    n_batches = sum(c.action in ("track", "apply") for c in newest)
                    state = reader._tables.state("t")
                    history = reader.keys.outlived(state, keys, reader.version)
                    told = list(zip(history.versions.tolist(), history.changed_rows.tolist(), strict=True))
                    assert told == [expected(past[-n_batches:], key) for key in keys]


def test_a_new_life_of_a_table_has_outlived_nothing(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        for life in range(2):
            if life:
                ws.drop("t")
            ws.track("t", table([(1, 1, 1, 1), (2, 1, 1, 1)]))
            assert ws.readers.order(None).table("t").stability([("a",)]) == {("a",): 0.0}
            for i in range(4):
                ws.apply("t", inserts=table([(10 + i, 1, 1, 1)]))
            assert ws.readers.order(None).table("t").stability([("a",)])[("a",)] > 0.4


def codes(n: int) -> list[str]:
    return [f"x{i * 7919 % 1000:03}" for i in range(n)]


def shop(start: int, n: int, *, one_is_new: bool = False) -> dict[str, Any]:
    """Two columns that look alike; in the first row the second one has the value of the second row."""
    values = codes(1000)[start : start + n]
    other = values[::-1]
    if one_is_new:
        other = [other[1], *other[1:]]
    return {"tag": values, "tog": other}


def test_a_stable_key_comes_before_a_new_one(tmp_path: Path) -> None:
    """Lists, reports and exports: of two keys that look alike the one that has held for long is first."""
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", pa.table(shop(0, 200, one_is_new=True)))
        for i in range(5):
            ws.apply("t", inserts=pa.table(shop(200 + 20 * i, 20)))
        first = {name: values[:1] for name, values in shop(0, 200, one_is_new=True).items()}
        cured = {name: values[:1] for name, values in shop(0, 200).items()}
        appeared = ws.apply("t", deletes=pa.table(first), inserts=pa.table(cured))
        assert [c.dependency.columns for c in appeared.appeared] == [("tog",)]
        ranks = dict(
            zip(
                ("tag", "tog"),
                ws.readers.order(None).ranks([Ucc("t", ("tag",)), Ucc("t", ("tog",))]),
                strict=True,
            )
        )
        assert ranks["tag"].role == "primary key"
        assert ranks["tag"].score > ranks["tog"].score
        assert appeared.appeared[0].score == ranks["tog"].score
        # A check foretells what comes, and what would break is weighed by what it was.
        twice = pa.table({"tag": codes(2), "tog": ["y1", "y1"]})
        foretold, came = ws.check("t", inserts=twice), ws.apply("t", inserts=twice)
        assert foretold.changes == came.changes
        broke = {c.dependency.columns: c for c in came.broke}
        assert broke[("tag",)].score == ranks["tag"].score
        assert broke[("tog",)].score == ranks["tog"].score
        assert [c.dependency.columns for c in came.broke] == [("tag",), ("tog",)]


def test_what_a_key_has_outlived_makes_it_worth_a_declaration(tmp_path: Path) -> None:
    """New, the key may be chance: it is left out of an export. After ten batches it is declared."""
    shell = Shell(tmp_path)

    def rows(start: int, n: int) -> str:
        lines = [f"{i * 7919 % 1000},{i}" for i in range(start, start + n)]
        return shell.file(f"r{start}.csv", "\n".join(["spare,id", *lines]) + "\n")

    assert shell("track", "t", rows(0, 100), "--kinds", "ucc").code == 0
    scores = []
    for i in range(11):
        with holdfast.open(tmp_path / "my.hold", engine="inline") as ws:
            exported = export_table(ws, "t", None)
            scores.append(exported.key_scores()(("spare",)))
            listed = {
                d.columns: r.score for d in ws.dependencies("ucc") for r in ws.readers.order(None).ranks([d])
            }
            assert listed[("spare",)] == scores[-1]
        assert shell("apply", "t", "--inserts", rows(100 + i, 1)).code == 0
    assert scores == sorted(scores)
    assert scores[0] < DECLARED < scores[-1]
    assert 'UNIQUE ("spare")' in shell("export", "--format", "sql").out


def test_covers_that_do_not_fit_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As few as fit stay open, and answers about the past are the same."""
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", pa.table({"a": [1, 2], "b": [1, 1], "c": [3, 3]}))
        for i in range(6):
            ws.apply("t", inserts=pa.table({"a": [i + 3 - (i % 2)], "b": [i], "c": [i % 3]}))
    reads: list[str] = []
    read = key_reading.read_masks

    def noted(root: Any, file: Any, *arguments: Any) -> Any:
        reads.append(file.name)
        return read(root, file, *arguments)

    monkeypatch.setattr(key_reading, "read_masks", noted)
    answers = []
    for most in (key_reading.MAX_MASKS, 0):
        monkeypatch.setattr(key_reading, "MAX_MASKS", most)
        reads.clear()
        with holdfast.open(tmp_path / "w", engine="inline") as ws:
            answers.append([ws.explain("t", columns).since for columns in (["a"], ["a", "c"], ["b", "c"])])
        assert (len(reads) > len(set(reads))) == (most == 0)
    assert answers[0] == answers[1]
    assert len(set(answers[0])) > 1

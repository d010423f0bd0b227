"""Damage: whatever happens to a file of a workspace, the answer is right or there is an error that names it.

Every kind of file is removed, cut short, emptied, altered in one byte, or replaced by another of its kind.
Then a fresh look at the workspace does everything a user could ask for. Each question must have the
answer that it had before, or raise a WorkspaceError; a question that needs the file must raise one that
names it, and `verify` must find it. What a rotting disk does to a large file, of which a batch reads a few
pages, is found by `verify` and before a merge.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from holdfast.core.rows.segments import _open_segment
from holdfast.core.store import compaction, files
from holdfast.errors import DamagedFileError, WorkspaceError
from holdfast.functional.refs import key_ref
from holdfast.workspace import Workspace
from trust import kit
from trust.damages import DAMAGES, empty, flip, flip_at, remove, rot, truncate

Question = Callable[[Workspace], Any]

QUESTIONS: dict[str, Question] = {
    "tables": lambda ws: ws.tables(),
    "version": lambda ws: ws.version,
    "n_rows": lambda ws: ws.n_rows("people"),
    "dependencies": lambda ws: kit.keys_of(ws, "people"),
    "dependencies at 2": lambda ws: kit.keys_of(ws, "people", at=2),
    "non_uniques": lambda ws: sorted(ws.keys.non_uniques("people")),
    "log": lambda ws: [entry.to_dict() for entry in ws.log()],
    "explain a duplicate": lambda ws: ws.explain("people", ["city"]).to_dict(),
    "explain a key": lambda ws: ws.explain("people", ["id"]).to_dict(),
    "rows": lambda ws: kit.rows_of(ws, "people"),
    "check": lambda ws: _told(
        ws.check("people", inserts=kit.table_of(kit.BATCH[0]), deletes=kit.table_of(kit.BATCH[1]))
    ),
}
# Which question must notice, for each kind of file of the newest state.
NEEDED = {
    "segment": "rows",
    "index": "check",
    "deletes": "rows",
    "cover": "dependencies",
    "evidence": "non_uniques",
}


def _told(change: Any) -> dict[str, Any]:
    told: dict[str, Any] = change.to_dict()
    del told["elapsed_s"]
    return told


def ask(root: Path) -> dict[str, Any]:
    """The answer to every question, or the error; anything but a WorkspaceError comes through."""
    answers: dict[str, Any] = {}
    try:
        ws = holdfast.open(root, engine="inline", create=False)
    except WorkspaceError as error:
        return dict.fromkeys((*QUESTIONS, "verify"), error)
    with ws:
        for name, question in (*QUESTIONS.items(), ("verify", Workspace.verify)):
            try:
                answers[name] = question(ws)
            except WorkspaceError as error:
                answers[name] = error
    return answers


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("damage") / "w"
    kit.build(root)
    return root


@pytest.fixture(scope="module")
def truth(base: Path) -> dict[str, Any]:
    answers = ask(base)
    assert not [answer for answer in answers.values() if isinstance(answer, Exception)]
    return answers


def _others(base: Path, kind: str, name: str) -> list[str]:
    found = sorted(
        p.relative_to(base).as_posix() for p in base.glob(f"tables/*/{kind}-*") if p.name not in name
    )
    assert found
    return found


def _live(base: Path, kind: str) -> str:
    """A file of a kind that the newest state names; of segments, the one with a delete vector."""
    with holdfast.open(base, engine="inline", create=False) as ws:
        _, state = ws.writer.tables.current("people")
    deleted = next(s for s in state.segments if s.deletes is not None)
    keys = key_ref(state)
    assert keys is not None
    files = {
        "cover": keys.cover,
        "evidence": keys.evidence,
        "segment": deleted.file,
        "deletes": deleted.deletes,
        "index": deleted.indexes[0][1],
    }
    ref = files[kind]
    assert ref is not None
    return ref.name


def _judge(answers: dict[str, Any], truth: dict[str, Any], name: str, needed: str) -> None:
    for question, answer in answers.items():
        if isinstance(answer, WorkspaceError):
            assert name in str(answer), f"{question}: {answer}"
            assert len(str(answer)) < 1_000
        else:
            assert answer == truth[question], f"{question}: a wrong answer"
    assert isinstance(answers[needed], DamagedFileError), f"{needed} did not notice"
    assert isinstance(answers["verify"], DamagedFileError), "verify did not notice"


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("kind", list(NEEDED))
def test_files_of_a_table(
    base: Path, truth: dict[str, Any], tmp_path: Path, kind: str, damage: Callable[[Path, Path], None]
) -> None:
    root = tmp_path / "w"
    shutil.copytree(base, root)
    name = _live(base, kind)
    others = _others(base, kind, name)
    # One of the same length, if there is one: only the checksum tells them apart.
    content = (root / name).read_bytes()
    others = [other for other in others if (root / other).read_bytes() != content]
    same = [other for other in others if (root / other).stat().st_size == len(content)]
    damage(root / name, root / (same or others)[0])
    _judge(ask(root), truth, name, NEEDED[kind])


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_covers_of_old_versions(
    base: Path, truth: dict[str, Any], tmp_path: Path, damage: Callable[[Path, Path], None]
) -> None:
    """They are not live, but time travel reads them; `verify` looks at all of them, too."""
    root = tmp_path / "w"
    shutil.copytree(base, root)
    with holdfast.open(base, engine="inline", create=False) as ws:
        name = key_ref(ws.writer.tables.state("people", 2)).cover.name  # type: ignore[union-attr]
    damage(root / name, root / _live(base, "cover"))
    answers = ask(root)
    _judge(answers, truth, name, "dependencies at 2")
    assert answers["dependencies"] == truth["dependencies"]


def _ledger_files(base: Path) -> list[Path]:
    """The commits and the log entries, oldest first."""
    ledger = base / "ledger"
    return [*sorted(ledger.glob("*.parquet")), *sorted(ledger.glob("_delta_log/*.json"))]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("number", range(9))
def test_files_of_the_ledger(
    base: Path, truth: dict[str, Any], tmp_path: Path, number: int, damage: Callable[[Path, Path], None]
) -> None:
    root = tmp_path / "w"
    shutil.copytree(base, root)
    files = _ledger_files(root)
    assert len(files) == 4 + 5
    file = files[number]
    other = files[number - 1] if number not in (0, 4) else files[number + 1]
    damage(file, other)
    answers = ask(root)
    for question, answer in answers.items():
        if not isinstance(answer, WorkspaceError):
            assert answer == truth[question], f"{question}: a wrong answer"
    assert isinstance(answers["log"], DamagedFileError)
    assert isinstance(answers["verify"], DamagedFileError)
    # A log entry that is replaced or gone tells of another version's file; all else is named.
    told = str(answers["log"])
    assert file.name in told or "ledger" in told


@pytest.mark.parametrize("damage", [remove, empty], ids=lambda damage: damage.__name__)
def test_the_newest_log_entry(
    base: Path, truth: dict[str, Any], tmp_path: Path, damage: Callable[[Path, Path], None]
) -> None:
    """Without it the log is the sound log of the version before; a copy of it tells, and repairs it."""
    root = tmp_path / "w"
    shutil.copytree(base, root)
    entry = _ledger_files(root)[-1]
    with holdfast.open(root, engine="inline") as ws:
        damage(entry, entry)
        for act in (ws.verify, lambda: kit.apply(ws, kit.BATCH)):
            with pytest.raises(DamagedFileError, match=rf"{entry.name}.*newest version"):
                act()
    with pytest.raises(DamagedFileError, match=f"Copy 'ledger/_newest/{entry.name}'"):
        holdfast.open(root)
    shutil.copyfile(root / "ledger/_newest" / entry.name, entry)
    assert ask(root) == truth
    # Put back to the version before on purpose: then the copy has to go.
    entry.unlink()
    (root / "ledger/_newest" / entry.name).unlink()
    assert kit.snapshot(root)["version"] == truth["version"] - 1


def test_what_a_power_cut_leaves_of_a_commit_is_no_loss(
    base: Path, truth: dict[str, Any], tmp_path: Path
) -> None:
    """An entry that is empty or absent and of which there is no copy yet: nobody was told of it."""
    root = tmp_path / "w"
    shutil.copytree(base, root)
    [copy] = (root / "ledger/_newest").iterdir()
    (root / "ledger/_delta_log" / f"{int(copy.stem) + 1:020d}.json").touch()
    assert ask(root) == truth
    with holdfast.open(root, engine="inline") as ws:
        kit.apply(ws, kit.BATCH)
        [newer] = (root / "ledger/_newest").iterdir()
        assert int(newer.stem) == int(copy.stem) + 2
        ws.verify()


def test_a_workspace_without_a_copy_gets_one(base: Path, tmp_path: Path) -> None:
    """One of an earlier release, or of a process that was killed behind the entry."""
    root = tmp_path / "w"
    shutil.copytree(base, root)
    [copy] = (root / "ledger/_newest").iterdir()
    content = copy.read_bytes()
    shutil.rmtree(copy.parent)
    holdfast.open(root, engine="inline").close()
    assert copy.read_bytes() == content
    entry = _ledger_files(root)[-1]
    assert entry.read_bytes() == content
    entry.unlink()
    with pytest.raises(DamagedFileError, match=entry.name):
        holdfast.open(root)


@pytest.mark.parametrize("seed", range(4))
def test_any_byte_of_the_ledger(base: Path, truth: dict[str, Any], tmp_path: Path, seed: int) -> None:
    _flip_bytes(base, truth, tmp_path, seed, 10)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_many_bytes_of_the_ledger(base: Path, truth: dict[str, Any], tmp_path: Path, seed: int) -> None:
    _flip_bytes(base, truth, tmp_path, seed, 200)


def test_any_byte_of_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Delta's own checkpoint has no checksums: what it says must fit the log and the commits."""
    monkeypatch.setattr(compaction, "CHECKPOINT_EVERY", 3)
    base = tmp_path / "base"
    kit.build(base)
    [checkpoint] = base.glob("ledger/_delta_log/*.checkpoint.parquet")
    truth = ask(base)
    rng = random.Random(0)
    # Names of columns that are no UTF-8 once escaped as another error.
    places = [(rng.randrange(14_000), 1 << rng.randrange(8)) for _ in range(12)]
    for at, bits in [(6807, 128), (7838, 128), *places]:
        content = checkpoint.read_bytes()
        flip_at(checkpoint, at % len(content), bits)
        for question, answer in ask(base).items():
            if not isinstance(answer, WorkspaceError):
                assert answer == truth[question], f"byte {at} ^ {bits}: {question} is wrong"
        checkpoint.write_bytes(content)


def _flip_bytes(base: Path, truth: dict[str, Any], folder: Path, seed: int, n: int) -> None:
    """Any bit anywhere: never a wrong answer, never a crash."""
    rng = random.Random(seed)
    root = folder / "w"
    shutil.copytree(base, root)
    for _ in range(n):
        file = rng.choice(_ledger_files(root))
        content = file.read_bytes()
        at, bits = rng.randrange(len(content)), 1 << rng.randrange(8)
        flip_at(file, at, bits)
        answers = ask(root)
        for question, answer in answers.items():
            if not isinstance(answer, WorkspaceError):
                assert answer == truth[question], f"byte {at} ^ {bits} of {file.name}: {question} is wrong"
        file.write_bytes(content)


def test_the_marker(base: Path, tmp_path: Path) -> None:
    for damage in (remove, truncate, empty):
        root = tmp_path / damage.__name__
        shutil.copytree(base, root)
        damage(root / "holdfast.json", root)
        with pytest.raises(WorkspaceError, match=r"holdfast\.json"):
            holdfast.open(root, create=False)
        # Nor is it made anew over what is there.
        with pytest.raises(WorkspaceError):
            holdfast.open(root, create=True)


def test_a_ledger_that_is_gone(base: Path, tmp_path: Path) -> None:
    root = tmp_path / "w"
    shutil.copytree(base, root)
    shutil.rmtree(root / "ledger")
    for create in (False, True):
        with pytest.raises(DamagedFileError, match="ledger"):
            holdfast.open(root, create=create)


def test_damage_under_an_open_workspace(base: Path, tmp_path: Path) -> None:
    """What is open already stays right; `verify` reads again."""
    root = tmp_path / "w"
    shutil.copytree(base, root)
    name = _live(root, "cover")
    with holdfast.open(root, engine="inline") as ws:
        keys = kit.keys_of(ws, "people")
        flip(root / name, root)
        assert kit.keys_of(ws, "people") == keys
        with pytest.raises(DamagedFileError, match=Path(name).name):
            ws.verify()


def test_a_damaged_batch_is_not_applied(base: Path, tmp_path: Path) -> None:
    """An apply that meets damage leaves the version as it was."""
    for kind in ("segment", "index", "deletes", "cover", "evidence"):
        root = tmp_path / kind
        shutil.copytree(base, root)
        name = _live(root, kind)
        flip(root / name, root)
        with holdfast.open(root, engine="inline") as ws:
            before = ws.version
            with pytest.raises(DamagedFileError, match=Path(name).name):
                kit.apply(ws, kit.BATCH)
            assert ws.version == before
        assert not list((root / "staging").glob("*/"))


# -- Large files: opened by their stamp --------------------------------------------------------------------


N_LARGE = 60_000


def _large_row(i: int) -> pa.Table:
    return pa.table({"a": [i], "b": [i % 100], "c": [str(i)], "d": [i // 7], "e": [i % 13]})


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose first segment and index are too large to be hashed for each batch."""
    root = tmp_path_factory.mktemp("large") / "w"
    i = list(range(N_LARGE))
    columns = {"a": i, "b": [x % 100 for x in i], "c": list(map(str, i)), "d": [x // 7 for x in i]}
    with holdfast.open(root, engine="inline") as ws:
        ws.track("t", pa.table({**columns, "e": [x % 13 for x in i]}))
        ws.apply("t", inserts=_large_row(N_LARGE))
        [segment, *_] = ws.writer.tables.state("t").segments
    assert min(ref.length for ref in (segment.file, segment.indexes[0][1])) >= files._MMAP_FROM
    return root


@contextmanager
def _new_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """As in a process that has opened nothing yet; the bytes of each file that is hashed meanwhile."""
    hashes: list[int] = []
    real = files._hash
    with monkeypatch.context() as patch:
        patch.setattr(files, "_hashed", {})
        patch.setattr(files, "_hash", lambda d, n: hashes.append(n) or real(d, n))
        _open_segment.cache_clear()
        yield hashes
    _open_segment.cache_clear()


def _copied(large: Path, tmp_path: Path) -> Path:
    """A copy that has been verified: so its files have stamps."""
    root = tmp_path / "w"
    shutil.copytree(large, root)
    with holdfast.open(root, engine="inline") as ws:
        ws.verify()
    return root


def test_a_batch_of_one_row_reads_what_it_needs(
    large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "w"
    shutil.copytree(large, root)
    length = sum(p.stat().st_size for p in root.glob("tables/*/*"))
    hashed = []
    for i in range(1, 4):
        with _new_process(monkeypatch) as hashes, holdfast.open(root, engine="inline") as ws:
            assert ws.apply("t", inserts=_large_row(N_LARGE + i)).n_rows == N_LARGE + 1 + i
            hashed.append(sum(hashes))
    # A copy is hashed when it arrives; from then on it is known.
    assert hashed[0] > 0.9 * length
    assert max(hashed[1:]) < 0.02 * length
    with holdfast.open(root, engine="inline") as ws:
        ws.verify()


@pytest.mark.parametrize("kind", ["segment", "index"])
def test_a_large_file_that_a_program_alters_is_not_opened(
    large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Its length and the time of modification are as they were, but it has lost its stamp."""
    root = _copied(large, tmp_path)
    name = _large_file(root, kind)
    changed = (root / name).stat().st_ctime_ns
    while (root / name).stat().st_ctime_ns == changed:  # it ticks in steps of milliseconds
        flip(root / name, root)
        if (root / name).stat().st_ctime_ns == changed:
            flip(root / name, root)
    with _new_process(monkeypatch), holdfast.open(root, engine="inline") as ws:
        with pytest.raises(DamagedFileError, match=Path(name).name):
            ws.apply("t", inserts=_large_row(0))
        assert ws.version == 2


@pytest.mark.parametrize("at", [0.2, 0.5, 0.9])
def test_rot_is_found_by_verify_and_before_a_merge(
    large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: float
) -> None:
    root = _copied(large, tmp_path)
    name = _large_file(root, "segment")
    rot(root, name, int(at * (root / name).stat().st_size))
    with _new_process(monkeypatch), holdfast.open(root, engine="inline") as ws:
        for act in (ws.verify, lambda: ws.merge("t")):
            with pytest.raises(DamagedFileError, match=f"{Path(name).name}.*has been altered"):
                act()
        assert ws.version == 2


@pytest.mark.parametrize("kind", ["segment", "index"])
def test_a_rotten_block_is_named_and_never_followed(
    large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Numbers that lead out of an array would end the process: kernels follow them without looking."""
    root = _copied(large, tmp_path)
    name = _large_file(root, kind)
    length = (root / name).stat().st_size
    content = bytearray((root / name).read_bytes())
    content[length // 20 : -length // 20] = b"\xff" * len(content[length // 20 : -length // 20])
    (root / name).write_bytes(content)
    rot(root, name, length // 2)
    with _new_process(monkeypatch), holdfast.open(root, engine="inline") as ws:
        batches = [
            {"inserts": _large_row(3)},
            {"inserts": _large_row(3), "deletes": _large_row(4)},
            # An index is not asked for the rows that go; in a rotten segment they are not found.
            *([{"deletes": _large_row(3)}] if kind == "segment" else []),
        ]
        for batch in batches:
            for act in (ws.check, ws.apply):
                with pytest.raises(DamagedFileError, match=Path(name).name):
                    act("t", **batch)
        assert ws.version == 2


def _large_file(root: Path, kind: str) -> str:
    with holdfast.open(root, engine="inline", create=False) as ws:
        [segment, *_] = ws.writer.tables.state("t").segments
    return segment.file.name if kind == "segment" else segment.indexes[0][1].name

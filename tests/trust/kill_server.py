"""Runs operations on workspaces in forked children and kills them at a chosen write step.

    python kill_server.py    one JSON request per line in, one JSON answer per line out

The server imports everything and compiles every kernel once, then forks one child per request: a
real process and a real SIGKILL, without two seconds of imports each. It never opens a ledger itself,
because delta-rs's runtime does not survive a fork; it warms up on a ledger made of a dict, for a family of
operations when the first of them is asked for.

A write step is a call of one of the functions in `STEPS`: whatever puts bytes or names on the disk.
At step n a child dies `before` the call, in the middle (`half`: half of the file is there, as the disk
would show it), or `after` it.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import deltalake

import holdfast
import holdfast.core.cover.news
import holdfast.core.rows.batch
import holdfast.core.rows.encoding
import holdfast.functional.keys
import holdfast.inclusions.inclusions
from holdfast.core.rows import relation
from holdfast.core.rows.writer import Writer
from holdfast.core.store import compaction, files, format, ledger_files, litter
from holdfast.core.store.ledger_rows import ChangeRow, CommitRow
from holdfast.core.words.dependency import Side
from holdfast.errors import ConflictError, HoldfastError, TableExistsError
from holdfast.inclusions import inds, values
from holdfast.workspace import Workspace
from trust import every, kit, shop, twins

CHILD_TIMEOUT_S = 600.0
Half = Callable[..., None]


# --- The fault --------------------------------------------------------------------------------------------


def half_file(file: files.NewFile) -> None:
    file.flush()
    path = file._path
    os.truncate(path, path.stat().st_size // 2)


def half_marker(root: Path) -> None:
    root.mkdir(parents=True, exist_ok=True)
    (root / f".{format.MARKER}.{secrets.token_hex(6)}").write_text('{"form')


def half_ledger(location: str, **_: Any) -> None:
    log = Path(location.removeprefix("file://")) / "_delta_log"
    log.mkdir(parents=True)
    (log / f"_commit_{secrets.token_hex(6)}.json.tmp").write_text('{"protocol":{"minRea')


def half_entry(table: Any, *_: Any, **__: Any) -> None:
    log = Path(table.table_uri.removeprefix("file://")) / "_delta_log"
    (log / f"_commit_{secrets.token_hex(6)}.json.tmp").write_text('{"add":{"path":"commit-')


def half_copy(root: Path, delta_version: int) -> None:
    copies = root / "ledger" / "_newest"
    copies.mkdir(exist_ok=True)
    (copies / f"{delta_version:020d}.json.{secrets.token_hex(6)}").write_text('{"add":{"path":"com')


def half_checkpoint(table: Any) -> None:
    checkpoint(table)
    (Path(table.table_uri.removeprefix("file://")) / "_delta_log" / "_last_checkpoint").unlink()


def half_removal(path: Path, **_: Any) -> None:
    for file in [f for f in Path(path).rglob("*") if f.is_file()][::2]:
        file.unlink()


checkpoint = deltalake.DeltaTable.create_checkpoint
STEPS: list[tuple[Any, str, Half | None]] = [
    (format, "create_marker", half_marker),
    (os, "link", None),
    (deltalake.DeltaTable, "create", half_ledger),
    (ledger_files, "sync_folder", None),
    (files.NewFile, "seal", half_file),
    (deltalake.DeltaTable, "create_write_transaction", half_entry),
    (ledger_files, "sync_file", None),
    (ledger_files, "keep_newest", half_copy),
    (deltalake.DeltaTable, "create_checkpoint", half_checkpoint),
    (shutil, "rmtree", half_removal),
    (litter, "remove_file", None),
]


class Fault:
    """Counts the write steps of this process; dies at one of them."""

    def __init__(self, step: int, moment: str, report: int) -> None:
        self.step, self.moment, self.report = step, moment, report
        self.seen = 0

    def install(self) -> None:
        for owner, name, half in STEPS:
            setattr(owner, name, self.wrapped(getattr(owner, name), name, half))

    def wrapped(self, original: Any, name: str, half: Half | None) -> Any:
        def step(*args: Any, **kwargs: Any) -> Any:
            number = self.seen
            self.seen += 1
            due = number == self.step
            if due and self.moment == "before":
                self.die(name)
            if due and self.moment == "half" and half is not None:
                half(*args, **kwargs)
                self.die(name)
            result = original(*args, **kwargs)
            if due:
                self.die(name)
            return result

        return step

    def die(self, name: str) -> None:
        os.write(self.report, json.dumps({"point": name}).encode())
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)  # the signal is on its way


# --- The operations ---------------------------------------------------------------------------------------


def build(root: Path) -> dict[str, Any]:
    kit.build(root)
    return {}


def track(root: Path, ws: Workspace | None = None) -> dict[str, Any]:
    with ws or holdfast.open(root, engine="inline") as opened:
        try:
            opened.track("people", kit.table_of(kit.START))
        except TableExistsError:
            return {"repeated": True}
    return {"repeated": False}


def apply(root: Path) -> dict[str, Any]:
    with holdfast.open(root, engine="inline", create=False) as ws:
        return {"repeated": kit.apply(ws, kit.BATCH, batch_id="the batch").repeated}


def apply_merging(root: Path) -> dict[str, Any]:
    relation.MERGE_FANOUT = 2
    return apply(root)


def apply_housekeeping(root: Path) -> dict[str, Any]:
    """The commit is followed by a compaction of the ledger and a checkpoint."""
    compaction.COMPACT_EVERY = 3
    compaction.CHECKPOINT_EVERY = 1
    return apply(root)


def apply_tidying(root: Path) -> dict[str, Any]:
    result = apply(root)
    tidy(root)
    return result


def merge(root: Path) -> dict[str, Any]:
    with holdfast.open(root, engine="inline", create=False) as ws:
        before = ws.version
        return {"repeated": ws.merge("people") == before}


def pin(root: Path) -> dict[str, Any]:
    with holdfast.open(root, engine="inline", create=False) as ws:
        repeated = bool(ws.pins())
        if not repeated:
            ws.pin("people", ["id"])
        return {"repeated": repeated}


def drop(root: Path) -> dict[str, Any]:
    with holdfast.open(root, engine="inline", create=False) as ws:
        repeated = not ws.tables()
        if not repeated:
            ws.drop("people")
        return {"repeated": repeated}


def tidy(root: Path) -> dict[str, Any]:
    with holdfast.open(root, engine="inline", create=False) as ws:
        return {"repeated": ws.tidy(grace_s=0.0) == 0}


def follow(root: Path) -> dict[str, Any]:
    """One more batch on top, so that evidence and indexes are used, not only named."""
    with holdfast.open(root, engine="inline", create=False) as ws:
        kit.apply(ws, kit.NEXT, batch_id="next")
        wrong = ws.explain("people", ["city"])
        assert not wrong.unique
        assert len({row.values["city"] for row in wrong.duplicates[0]}) == 1
    return kit.snapshot(root)


# Of tables that refer to each other:


def shop_build(root: Path) -> dict[str, Any]:
    shop.build(root)
    return {}


def shop_track(root: Path) -> dict[str, Any]:
    with holdfast.open(root, engine="inline") as ws:
        try:
            shop.track(ws)
        except TableExistsError:
            return {"repeated": True}
    return {"repeated": False}


def shop_join(root: Path) -> dict[str, Any]:
    """One more table takes part in what the others share."""
    with holdfast.open(root, engine="inline", create=False) as ws:
        repeated = "returns" in ws.tables()
        if not repeated:
            ws.track("returns", shop.table_of("returns", shop.RETURNS), kinds=("ucc", "ind"))
        return {"repeated": repeated}


def shop_apply(root: Path) -> dict[str, Any]:
    with holdfast.open(root, engine="inline", create=False) as ws:
        return {"repeated": shop.apply(ws, shop.ONE, batch_id="the batch").repeated}


def shop_apply_all(root: Path) -> dict[str, Any]:
    with holdfast.open(root, engine="inline", create=False) as ws:
        return {"repeated": shop.apply(ws, shop.BOTH, batch_id="the batch").repeated}


def shop_apply_merging(root: Path) -> dict[str, Any]:
    """Segments and runs are merged, the files of clusters and of pair counts are summed up."""
    relation.MERGE_FANOUT = values.MERGE_FANOUT = 2
    inds.MAX_SUMS = 1
    return shop_apply_all(root)


def shop_apply_tidying(root: Path) -> dict[str, Any]:
    result = shop_apply_all(root)
    tidy(root)
    return result


def shop_merge(root: Path) -> dict[str, Any]:
    with holdfast.open(root, engine="inline", create=False) as ws:
        before = ws.version
        return {"repeated": ws.merge("orders") == before}


def shop_pin(root: Path) -> dict[str, Any]:
    with holdfast.open(root, engine="inline", create=False) as ws:
        repeated = len(ws.pins()) > 1
        if not repeated:
            ws.pin("orders", ["part", "supplier"], referenced=Side("parts", ("part", "supplier")))
        return {"repeated": repeated}


def shop_drop(root: Path) -> dict[str, Any]:
    with holdfast.open(root, engine="inline", create=False) as ws:
        repeated = "parts" not in ws.tables()
        if not repeated:
            ws.drop("parts")
        return {"repeated": repeated}


def shop_follow(root: Path) -> dict[str, Any]:
    """A batch on top of all tables that are there, so that what they share is used, not only named."""
    with holdfast.open(root, engine="inline", create=False) as ws:
        there = ws.tables()
        if "parts" not in there:
            ws.track("parts", shop.table_of("parts", shop.START["parts"]), kinds=("ucc", "ind"))
        if "visits" in there:
            shop.apply(ws, {t: part for t, part in shop.NEXT.items() if t in there}, batch_id="next")
        else:
            shop.apply(ws, shop.HISTORY[1], batch_id="next")
    return kit.snapshot(root)


# Of tables with functional dependencies:


def twins_build(root: Path) -> dict[str, Any]:
    twins.build(root)
    return {}


def twins_track(root: Path) -> dict[str, Any]:
    with holdfast.open(root, engine="inline") as ws:
        try:
            twins.track(ws, twins.COUNTED)
        except TableExistsError:
            return {"repeated": True}
    return {"repeated": False}


def twins_apply(root: Path) -> dict[str, Any]:
    with holdfast.open(root, engine="inline", create=False) as ws:
        return {"repeated": twins.apply(ws, kit.BATCH, batch_id="the batch").repeated}


def twins_apply_one(root: Path) -> dict[str, Any]:
    """Keys, exact and approximate dependencies of one table, with their evidence."""
    with holdfast.open(root, engine="inline", create=False) as ws:
        change = kit.apply(ws, kit.BATCH, twins.COUNTED, batch_id="the batch")
        return {"repeated": change.repeated}


def twins_apply_merging(root: Path) -> dict[str, Any]:
    relation.MERGE_FANOUT = 2
    return twins_apply(root)


def twins_apply_tidying(root: Path) -> dict[str, Any]:
    result = twins_apply(root)
    tidy(root)
    return result


def twins_merge(root: Path) -> dict[str, Any]:
    with holdfast.open(root, engine="inline", create=False) as ws:
        before = ws.version
        return {"repeated": ws.merge(twins.COUNTED) == before}


def twins_drop(root: Path) -> dict[str, Any]:
    with holdfast.open(root, engine="inline", create=False) as ws:
        repeated = twins.WITNESSED not in ws.tables()
        if not repeated:
            ws.drop(twins.WITNESSED)
        return {"repeated": repeated}


def twins_follow(root: Path) -> dict[str, Any]:
    """A batch on top, so that evidence and indexes are used, not only named."""
    with holdfast.open(root, engine="inline", create=False) as ws:
        twins.apply(ws, kit.NEXT, batch_id="next")
        assert not ws.fds.explain(twins.COUNTED, ["grade"], "city").holds
        assert ws.fds.log(twins.COUNTED)
    return kit.snapshot(root)


# Of tables that are tracked for every kind there is:


def every_build(root: Path) -> dict[str, Any]:
    every.build(root)
    return {}


def every_track(root: Path) -> dict[str, Any]:
    with holdfast.open(root, engine="inline") as ws:
        try:
            every.track(ws)
        except TableExistsError:
            return {"repeated": True}
    return {"repeated": False}


def every_apply(root: Path) -> dict[str, Any]:
    with holdfast.open(root, engine="inline", create=False) as ws:
        change = every.apply(ws, every.BATCH, every.COUNTED, batch_id="the batch")
        return {"repeated": change.repeated}


def every_upsert(root: Path) -> dict[str, Any]:
    """Into the table with witnessed evidence, its files merged as it comes."""
    relation.MERGE_FANOUT = 2
    with holdfast.open(root, engine="inline", create=False) as ws:
        upserts = every.table_of(every.UPSERTS)
        return {"repeated": ws.apply(every.WITNESSED, upserts=upserts, batch_id="the batch").repeated}


def every_snapshot(root: Path) -> dict[str, Any]:
    with holdfast.open(root, engine="inline", create=False) as ws:
        snapshot = every.table_of(every.SNAPSHOT)
        return {"repeated": ws.apply(every.COUNTED, snapshot=snapshot, batch_id="the batch").repeated}


def every_pin(root: Path) -> dict[str, Any]:
    """Ten pins as one commit: five are new, and unmute; the others have other terms from now on."""
    with holdfast.open(root, engine="inline", create=False) as ws:
        wanted = [w for table in every.TWINS for w in every.wanted(table, severity="warning")]
        return {"repeated": not ws.pin_all(wanted).pinned}


def every_mute(root: Path) -> dict[str, Any]:
    with holdfast.open(root, engine="inline", create=False) as ws:
        before = ws.version
        every.mute(ws)
        return {"repeated": ws.version == before}


def every_merge(root: Path) -> dict[str, Any]:
    with holdfast.open(root, engine="inline", create=False) as ws:
        before = ws.version
        return {"repeated": ws.merge(every.COUNTED) == before}


def every_drop(root: Path) -> dict[str, Any]:
    """The table that others refer to: what is muted of that goes with it."""
    with holdfast.open(root, engine="inline", create=False) as ws:
        repeated = every.SORTS not in ws.tables()
        if not repeated:
            ws.drop(every.SORTS)
        return {"repeated": repeated}


def every_follow(root: Path) -> dict[str, Any]:
    """A batch on top, so that what each kind keeps is used, not only named."""
    with holdfast.open(root, engine="inline", create=False) as ws:
        every.apply(ws, every.NEXT, *every.TWINS, batch_id="next")
    return kit.snapshot(root)


def recover(root: Path, operation: str) -> dict[str, Any]:
    """What a killed operation has left; the operation again; tidying; a batch on top."""
    found = kit.snapshot(root) if (root / format.MARKER).exists() else None
    again = OPERATIONS[operation](root)
    repeated = kit.snapshot(root)
    tidy(root)
    left = sorted(kit.files_of(root))
    with holdfast.open(root, engine="inline", create=False) as ws:
        needed = sorted(kit.needed_files(ws))
    last = follow_up(root, operation)
    return {
        "found": found,
        **again,
        "snapshot": repeated,
        "left": left,
        "needed": needed,
        "last": last,
    }


def follow_up(root: Path, operation: str) -> dict[str, Any]:
    if operation == "drop":
        return kit.snapshot(root)
    follows = {"shop": shop_follow, "twins": twins_follow, "every": every_follow}
    return follows.get(family_of(operation), follow)(root)


def family_of(operation: str) -> str:
    """Whose tables an operation is about; "" for the people of `kit`."""
    family = operation.split("_")[0]
    return family if family in ("shop", "twins", "every") else ""


OPERATIONS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "build": build,
    "track": track,
    "apply": apply,
    "apply_merging": apply_merging,
    "apply_housekeeping": apply_housekeeping,
    "apply_tidying": apply_tidying,
    "merge": merge,
    "pin": pin,
    "drop": drop,
    "tidy": tidy,
    "follow": follow,
    "shop_build": shop_build,
    "shop_track": shop_track,
    "shop_join": shop_join,
    "shop_apply": shop_apply,
    "shop_apply_all": shop_apply_all,
    "shop_apply_merging": shop_apply_merging,
    "shop_apply_tidying": shop_apply_tidying,
    "shop_merge": shop_merge,
    "shop_pin": shop_pin,
    "shop_drop": shop_drop,
    "shop_follow": shop_follow,
    "twins_build": twins_build,
    "twins_track": twins_track,
    "twins_apply": twins_apply,
    "twins_apply_one": twins_apply_one,
    "twins_apply_merging": twins_apply_merging,
    "twins_apply_tidying": twins_apply_tidying,
    "twins_merge": twins_merge,
    "twins_drop": twins_drop,
    "twins_follow": twins_follow,
    "every_build": every_build,
    "every_track": every_track,
    "every_apply": every_apply,
    "every_upsert": every_upsert,
    "every_snapshot": every_snapshot,
    "every_pin": every_pin,
    "every_mute": every_mute,
    "every_merge": every_merge,
    "every_drop": every_drop,
    "every_follow": every_follow,
    "snapshot": kit.snapshot,
}


# --- The server -------------------------------------------------------------------------------------------


class FakeLedger:
    """A ledger without delta-rs, to warm up on."""

    def __init__(self) -> None:
        self.versions: list[list[CommitRow]] = []

    @property
    def version(self) -> int:
        return len(self.versions)

    def heads(self, version: int | None = None) -> dict[str, int]:
        heads = {row.table: i for i, rows in enumerate(self.versions[:version], 1) for row in rows}
        return {table: i for table, i in heads.items() if self.commit_row(i, table).action != "drop"}

    def commit_row(self, version: int, table: str | None = None) -> CommitRow:
        return next(row for row in self.versions[version - 1] if table in (None, row.table))

    def commits(self, table: str) -> list[CommitRow]:
        return [row for rows in self.versions for row in rows if row.table == table]

    def latest(self, table: str, until: int, since: int, most: int) -> list[CommitRow]:
        return [row for row in self.commits(table) if since < row.version <= until][-most:]

    def find_batch(self, *_: str) -> None:
        return None

    def append(self, base: int, commits: Sequence[CommitRow], changes: Sequence[ChangeRow]) -> int:
        if base != self.version:
            raise ConflictError("not the newest")
        # Through JSON, as in the real one.
        states = [json.loads(json.dumps(commit.state)) for commit in commits]
        rows = [
            CommitRow(c.table, c.action, state, c.detail, version=base + 1)
            for c, state in zip(commits, states, strict=True)
        ]
        self.versions.append(rows)
        return self.version


@cache
def warm_up(family: str) -> None:
    """Load and compile all that the operations of a family use, but for delta-rs."""
    with tempfile.TemporaryDirectory(prefix="holdfast-warm-") as folder:
        ws = _on_a_fake_ledger(Path(folder))
        WARM_UPS[family](ws)


def _warm_up_people(ws: Workspace) -> None:
    track(Path(ws.root), ws)
    for batch in (*kit.HISTORY, kit.BATCH, kit.NEXT):
        kit.apply(ws, batch)
    ws.keys.non_uniques("people")
    ws.keys.duplicates(ws.writer.tables.state("people"), [2])
    kit.rows_of(ws, "people")
    ws.merge("people")


def _warm_up_shop(ws: Workspace) -> None:
    shop.track(ws)
    ws.track("visits", shop.table_of("visits", shop.START["visits"]), kinds=("ind",), append_only=True)
    for changes in (*shop.HISTORY, shop.BOTH, shop.NEXT):
        shop.apply(ws, changes)
    ws.merge("orders")
    kit.inclusions_of(ws, {table: kit.rows_of(ws, table) for table in ws.tables()})
    ws.drop("parts")


def _warm_up_twins(ws: Workspace) -> None:
    for table in twins.TABLES:
        twins.track(ws, table)
    for batch in (*kit.HISTORY, kit.BATCH, kit.NEXT):
        twins.apply(ws, batch)
    for table in twins.TABLES:
        kit.fds_of(ws, table, kit.rows_of(ws, table))
    names = ws.schema(twins.COUNTED).names
    ws.fds.explain(twins.COUNTED, [names[3]], names[2])
    ws.merge(twins.COUNTED)


def _warm_up_every(ws: Workspace) -> None:
    every.fill(ws)
    every.apply(ws, every.BATCH, every.COUNTED)
    ws.apply(every.WITNESSED, upserts=every.table_of(every.UPSERTS))
    ws.apply(every.WITNESSED, snapshot=every.table_of(every.SNAPSHOT))
    every.apply(ws, every.NEXT, *every.TWINS)
    ws.dependencies(max_error=0.1)
    ws.dependencies(at=every.BUILT)
    kit.inclusions_of(ws, {table: kit.rows_of(ws, table) for table in ws.tables()})
    ws.merge(every.COUNTED)
    ws.drop(every.SORTS)


WARM_UPS: dict[str, Callable[[Workspace], None]] = {
    "": _warm_up_people,
    "shop": _warm_up_shop,
    "twins": _warm_up_twins,
    "every": _warm_up_every,
}


def _on_a_fake_ledger(root: Path) -> Workspace:
    format.create_marker(root)
    with mock.patch("holdfast.core.rows.writer.Ledger.create", return_value=FakeLedger()):
        return Workspace(Writer(root, engine="inline"))


def child(request: dict[str, Any], report: int) -> None:
    """In the forked child: never returns."""
    try:
        fault = Fault(request.get("step", -1), request.get("moment", "before"), report)
        if "step" in request:
            fault.install()
        root = Path(request["root"])
        if request.get("recover"):
            result = recover(root, request["operation"])
        else:
            result = OPERATIONS[request["operation"]](root)
        answer = {"result": result, "steps": fault.seen}
    except HoldfastError as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    except BaseException:
        answer = {"error": traceback.format_exc()}
    data = json.dumps(answer).encode()
    while data:
        data = data[os.write(report, data) :]
    os._exit(0)


def serve(request: dict[str, Any]) -> dict[str, Any]:
    reading, writing = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        child(request, writing)
    os.close(writing)
    killer = time.monotonic() + request.get("kill_after_s", CHILD_TIMEOUT_S)
    parts: list[bytes] = []
    os.set_blocking(reading, False)
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        try:
            while part := os.read(reading, 1 << 16):
                parts.append(part)
        except BlockingIOError:
            pass
        if done:
            break
        if time.monotonic() >= killer:
            os.kill(pid, signal.SIGKILL)
            killer = float("inf")
        time.sleep(0.0005)
    os.close(reading)
    told = json.loads(b"".join(parts) or b"{}")
    if os.WIFSIGNALED(status):
        late = "kill_after_s" not in request and "point" not in told
        if os.WTERMSIG(status) != signal.SIGKILL or late:
            return {"error": f"the child died by signal {os.WTERMSIG(status)} by itself or by the timeout"}
        return {"killed": True, "point": told.get("point")}
    return {"killed": False, **told}


def main() -> None:
    warnings.simplefilter("error")
    import cases.constant_columns  # noqa: F401 - from here on there is a class from elsewhere

    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        warm_up(family_of(request["operation"]))
        print(json.dumps(serve(request)), flush=True)


if __name__ == "__main__":
    main()

"""The processes of `test_two_writers.py`: each says that it is ready, waits for the others, works.

    python writer.py    one JSON list of [ROLE, ROOT, WHO, N] per line in, one of their answers per line out

The server imports everything and loads every kernel once, then forks one child per writer: real processes
that share nothing but the disk, without two seconds of imports each. Like `kill_server.py` it never opens a
ledger itself. It answers when all children of a request are gone.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import holdfast
from holdfast.errors import ConflictError, HoldfastError, TableExistsError
from holdfast.workspace import Workspace
from trust import kill_server, kit, shop

MAX_TRIES = 200
CHILD_TIMEOUT_S = 300.0
Part = tuple[str, str, int, int]


def row(who: int, number: int) -> kit.Row:
    """A row that no other writer makes; its columns but `id` collide with others now and then."""
    return (1000 * who + number, f"n{number}", f"c{(who + number) % 3}", number % 4, who / 2)


def batches(who: int, n: int) -> list[tuple[list[kit.Row], list[kit.Row]]]:
    """Inserts, and now and then a delete of what the same writer has inserted before."""
    return [
        ([row(who, 2 * i), row(who, 2 * i + 1)], [row(who, 2 * i - 1)] if i % 3 == 2 else [])
        for i in range(n)
    ]


def shop_batches(who: int, n: int) -> list[shop.Batch]:
    """Of one table or of two. All writers use the same few values, which so come and go at the same time."""
    made: list[shop.Batch] = []
    for i in range(n):
        order = [(1000 * who + j, 20 + j % 3, 30 + j % 2, f"c{j % 3}") for j in range(i + 1)]
        part = [(20 + j % 3, 30 + who, 1000.0 * who + j) for j in range(i + 1)]
        gone = i % 3 == 2  # what it has brought in the batch before goes again
        orders, parts = ([order[i]], order[i - 1 : i] * gone), ([part[i]], part[i - 1 : i] * gone)
        both = {"orders": orders, "parts": parts}
        made.append({1: {"orders": orders}, 2: {"parts": parts}}.get(who, both))
    return made


Apply = Callable[[Workspace, Any, str], Any]


def apply_all(root: Path, who: int, made: Sequence[Any], apply: Apply) -> dict[str, Any]:
    """Apply batches one by one, each until it is in."""
    conflicts, versions = 0, []
    with holdfast.open(root, engine="inline", create=False) as ws:
        for i, batch in enumerate(made):
            for _ in range(MAX_TRIES):
                try:
                    change = apply(ws, batch, f"{who}-{i}")
                except ConflictError:
                    conflicts += 1
                    continue
                assert not change.repeated
                versions.append(change.version)
                break
            else:
                raise AssertionError(f"batch {i} lost {MAX_TRIES} times")
    return {"conflicts": conflicts, "versions": versions}


def in_table(table: str) -> Apply:
    return lambda ws, batch, batch_id: kit.apply(ws, batch, table, batch_id=batch_id)


def same_table(root: Path, who: int, n: int) -> dict[str, Any]:
    return apply_all(root, who, batches(who, n), in_table("people"))


def own_table(root: Path, who: int, n: int) -> dict[str, Any]:
    return apply_all(root, who, batches(who, n), in_table(f"people-{who}"))


def in_shop(root: Path, who: int, n: int) -> dict[str, Any]:
    return apply_all(
        root, who, shop_batches(who, n), lambda ws, batch, batch_id: shop.apply(ws, batch, batch_id=batch_id)
    )


def once(root: Path, who: int, n: int) -> dict[str, Any]:
    """Apply one batch, without a second try."""
    with holdfast.open(root, engine="inline", create=False) as ws:
        try:
            return {"version": kit.apply(ws, batches(who, 1)[0]).version}
        except ConflictError as error:
            return {"error": type(error).__name__, "message": str(error)}


def same_batch(root: Path, who: int, n: int) -> dict[str, Any]:
    """The same batch with the same id as everybody else, until it is in."""
    with holdfast.open(root, engine="inline", create=False) as ws:
        for _ in range(MAX_TRIES):
            try:
                change = kit.apply(ws, kit.BATCH, batch_id="shared")
            except ConflictError:
                continue
            return {"repeated": change.repeated, "version": change.version}
    raise AssertionError("never in")


def track(root: Path, who: int, n: int) -> dict[str, Any]:
    """Make the workspace, if need be, and track the same table as everybody else."""
    with holdfast.open(root, engine="inline") as ws:
        try:
            return {"version": ws.track("people", kit.table_of([row(who, i) for i in range(n)])).version}
        except (TableExistsError, ConflictError) as error:
            return {"error": type(error).__name__, "message": str(error)}


def track_in_shop(root: Path, who: int, n: int) -> dict[str, Any]:
    """Make the workspace, if need be, and track a table of one's own that shares values with the others'."""
    rows = [(j, 20 + j % who, who, f"c{j}") for j in range(n)]
    for conflicts in range(MAX_TRIES):
        with holdfast.open(root, engine="inline") as ws:
            try:
                source = shop.table_of("orders", rows)
                version = ws.track(f"orders-{who}", source, kinds=("ucc", "ind")).version
            except ConflictError:
                continue
            return {"version": version, "conflicts": conflicts, "rows": rows}
    raise AssertionError("never in")


def same_shop_batch(root: Path, who: int, n: int) -> dict[str, Any]:
    """The same batch of two tables with the same id as everybody else, until it is in."""
    with holdfast.open(root, engine="inline", create=False) as ws:
        for _ in range(MAX_TRIES):
            try:
                change = shop.apply(ws, shop.BOTH, batch_id="shared")
            except ConflictError:
                continue
            return {"repeated": change.repeated, "version": change.version}
    raise AssertionError("never in")


def read_in_shop(root: Path, who: int, n: int) -> dict[str, Any]:
    """Read until version n has come; in every version seen, tables and inclusions must be of one moment."""
    n_looks, seen, deadline = 0, set(), time.monotonic() + 300
    with holdfast.open(root, engine="inline", create=False) as ws:
        while time.monotonic() < deadline:
            version = ws.version
            n_looks += 1
            if version not in seen:
                seen.add(version)
                rows = {
                    t: kit.rows_of_state(ws, ws.writer.tables.state(t, version)) for t in ws.tables(version)
                }
                assert sorted(kit.inds_of(ws, at=version)) == kit.expected_inds(ws, rows), version
            if version >= n:
                return {"n_looks": n_looks, "seen": sorted(seen)}
    raise AssertionError(f"version {n} never came")


def read(root: Path, who: int, n: int) -> dict[str, Any]:
    """Read until version n has come; every version seen must be whole."""
    n_looks, seen, deadline = 0, set(), time.monotonic() + 300
    with holdfast.open(root, engine="inline", create=False) as ws:
        while time.monotonic() < deadline:
            version, state = ws.writer.tables.current("people")
            n_looks += 1
            if version not in seen:
                seen.add(version)
                keys = sorted(list(d.columns) for d in ws.keys.listed(state))
                rows = kit.rows_of_state(ws, state)
                assert len(rows) == state.n_rows
                assert keys == kit.minimal_keys(rows), (version, keys)
                assert keys == kit.keys_of(ws, "people", at=version)
            if version >= n:
                return {"n_looks": n_looks, "seen": sorted(seen)}
    raise AssertionError(f"version {n} never came")


ROLES: dict[str, Callable[[Path, int, int], dict[str, Any]]] = {
    "same_table": same_table,
    "own_table": own_table,
    "once": once,
    "same_batch": same_batch,
    "track": track,
    "read": read,
    "in_shop": in_shop,
    "track_in_shop": track_in_shop,
    "same_shop_batch": same_shop_batch,
    "read_in_shop": read_in_shop,
}


# --- The server -------------------------------------------------------------------------------------------


def child(part: Part, report: int, go: int, said: int) -> NoReturn:
    """In the forked child: says that it is ready, waits until all are, works, and never returns."""
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(said, 1)
        os.dup2(said, 2)
        role, root, who, n = part
        os.write(report, b"\n")
        os.read(go, 1)
        try:
            answer = ROLES[role](Path(root), who, n)
        except HoldfastError as error:
            answer = {"failed": f"{type(error).__name__}: {error}"}
        gc.collect()  # what nobody has closed says so
        data = json.dumps(answer).encode()
        while data:
            data = data[os.write(report, data) :]
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        os.write(said, traceback.format_exc().encode())
        os._exit(1)
    os._exit(0)


class Child:
    """A writer, as the server sees it."""

    def __init__(self, part: Part, go: tuple[int, int]) -> None:
        self.said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - `answer` closes it
        self.report, report = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(go[1])
            child(part, report, go[0], self.said.fileno())
        os.close(report)

    def read(self, n: int, deadline: float) -> bytes:
        """What it reports; nothing where it is gone or late. Where nobody waits for it, all of them end."""
        ready = select.select([self.report, 0], [], [], max(0.0, deadline - time.monotonic()))[0]
        if 0 in ready:  # the test is gone: it asks for nothing more before it has its answer
            os.killpg(0, signal.SIGKILL)
        return os.read(self.report, n) if ready else b""

    def answer(self, deadline: float) -> dict[str, Any]:
        parts = []
        while part := self.read(1 << 16, deadline):
            parts.append(part)
        if time.monotonic() >= deadline:
            os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.report)
        with self.said as said:
            said.seek(0)
            told = said.read().decode()
        if status or told:
            return {"failed": f"{told}\nended with {os.waitstatus_to_exitcode(status)}"}
        answer: dict[str, Any] = json.loads(b"".join(parts))
        return answer


def serve(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Writers that start at the same moment: the end of a pipe that all of them read is closed."""
    deadline = time.monotonic() + CHILD_TIMEOUT_S
    go = os.pipe()
    children = [Child(part, go) for part in parts]
    for process in children:
        process.read(1, deadline)
    for end in go:
        os.close(end)
    return [process.answer(deadline) for process in children]


def main() -> None:
    warnings.simplefilter("error")
    for family in ("", "shop"):
        kill_server.warm_up(family)
    gc.collect()
    gc.freeze()  # children need not look through what they have from here
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        print(json.dumps(serve(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()

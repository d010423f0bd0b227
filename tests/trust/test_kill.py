"""SIGKILL at every write step of track, apply, merge, pin, mute, drop and tidy: whole before, or whole after.

`kill_server.py` runs an operation in a child of its own and kills it at the n-th write step: before the
write, when half of it is on the disk, or right after it. n counts up until an operation survives. After
every kill another process opens the workspace and reads all of it (rows from the segments, checksums,
history) and holds its dependencies against the oracle; then the same operation runs again and must end
where an undisturbed one ends. Operations of the `shop` have several tables, whose rows, keys and
inclusions must be of one version, together with the generator that they share. Those of the `twins` have two
tables with functional dependencies, of both kinds of evidence; those of `every` have tables that are tracked
for every kind of the registry, of which each must be as it was before, or as it is after.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import kind as contract

SERVER = Path(__file__).parent / "kill_server.py"
# Those that start from nothing; the others from the history of `kit`, `shop`, `twins` or `every`.
FROM_NOTHING = ("track", "shop_track", "twins_track", "every_track")
FAST = ("track", "apply_merging", "merge", "shop_drop")
OF_THE_SHOP = (
    "shop_apply_all",
    "shop_track",
    "shop_join",
    "shop_apply",
    "shop_apply_merging",
    "shop_apply_tidying",
    "shop_merge",
    "shop_pin",
)
OF_THE_TWINS = (
    "twins_apply_one",
    "twins_apply",
    "twins_track",
    "twins_apply_merging",
    "twins_apply_tidying",
    "twins_merge",
    "twins_drop",
)
OF_EVERY_KIND = (
    "every_track",
    "every_apply",
    "every_upsert",
    "every_snapshot",
    "every_pin",
    "every_mute",
    "every_merge",
    "every_drop",
)
OTHERS = ("apply", "apply_housekeeping", "apply_tidying", "pin", "drop")
ALL = (*FAST, *OF_THE_SHOP, *OF_THE_TWINS, *OF_EVERY_KIND, *OTHERS)
AT_RANDOM = (*FAST, *OF_THE_SHOP, *OF_THE_TWINS, "every_apply", "every_snapshot", *OTHERS)
MOMENTS = ("before", "half", "after")
RANDOM_KILLS = 30  # of each operation, in the slow tests


class Server:
    """The other end of `kill_server.py`."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            assert self._read() == {"ready": True}
        except BaseException:
            self.close()  # left open, it would fail some other test
            raise

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer

    def ask(self, operation: str, root: Path, **more: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"operation": operation, "root": str(root), **more}) + "\n")
        self.process.stdin.flush()
        return self._read()

    def run(self, operation: str, root: Path) -> dict[str, Any]:
        """The result of an operation that nobody disturbs."""
        answer = self.ask(operation, root)
        assert not answer["killed"]
        result: dict[str, Any] = answer["result"]
        return result

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(timeout=300)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


class Scene:
    """A workspace before an operation, and what it looks like before and after."""

    def __init__(self, server: Server, folder: Path, operation: str) -> None:
        self.server, self.folder, self.operation = server, folder, operation
        self.base = folder / "base"
        self.before: dict[str, Any] | None = None
        self.n_killed = 0
        family = f"{operation.split('_')[0]}_" if operation.startswith(("shop_", "twins_", "every_")) else ""
        if operation not in FROM_NOTHING:
            server.run(f"{family}build", self.base)
            self.before = server.run("snapshot", self.base)
        calm = self.copy("calm")
        server.run(operation, calm)
        self.after = server.run("snapshot", calm)
        assert self.after != self.before
        self.last = server.run("snapshot" if operation == "drop" else f"{family}follow", calm)

    def copy(self, name: str) -> Path:
        root = self.folder / name
        if self.base.exists():
            shutil.copytree(self.base, root)
        return root

    def check(self, root: Path, where: str) -> str:
        """Which state a killed workspace is in; and that nothing is lost or stuck."""
        answer = self.server.ask(self.operation, root, recover=True)["result"]
        nothing = {"version": 0, "tables": {}, "inclusions": None, "past": {}, "log": []}
        found = answer["found"] or nothing
        assert found in (self.before or nothing, self.after), where
        committed = found == self.after
        assert answer["repeated"] == committed, where
        assert answer["snapshot"] == self.after, where
        litter = [name for name in answer["left"] if name.startswith((".", "staging/"))]
        assert litter in ([], ["staging/tidied"]), where
        kept = [name for name in answer["left"] if name.startswith(("tables/", "values/"))]
        assert kept == answer["needed"], where
        assert answer["last"] == self.last, where
        shutil.rmtree(root)
        return "after" if committed else "before"

    def kill_at_every_step(
        self, moments: tuple[str, ...], first: int = 0, every: int = 1
    ) -> dict[str, set[str]]:
        """Kill at every step, or at some; the write steps seen, with the states they left."""
        seen: dict[str, set[str]] = {}
        for moment in moments:
            for step in range(first, 1000, every):
                root = self.copy(f"{moment}-{step}")
                answer = self.server.ask(self.operation, root, step=step, moment=moment)
                if not answer["killed"]:
                    assert answer["steps"] in range(step + 1 - every, step + 1)
                    break
                self.n_killed += 1
                where = f"{self.operation} killed {moment} step {step} ({answer['point']})"
                seen.setdefault(answer["point"], set()).add(self.check(root, where))
            else:
                pytest.fail("an operation of 1000 steps?")
        return seen


@pytest.mark.parametrize("operation", FAST)
def test_killed_in_the_middle_of_every_write(server: Server, tmp_path: Path, operation: str) -> None:
    seen = Scene(server, tmp_path, operation).kill_at_every_step(("half",))
    _judge(operation, seen)


@pytest.mark.parametrize(("operation", "every"), [("every_apply", 9), ("every_pin", 3), ("every_mute", 2)])
def test_killed_where_every_kind_is_kept(server: Server, tmp_path: Path, operation: str, every: int) -> None:
    """Some steps of them; the slow tests take all."""
    scene = Scene(server, tmp_path, operation)
    kinds = {k for table in scene.after["tables"].values() for k in table["holding"]}
    assert kinds == {*contract.kinds(), "constant"}
    seen = scene.kill_at_every_step(("half",), first=1, every=every)
    assert "before" in set().union(*seen.values())


@pytest.mark.slow
@pytest.mark.parametrize("operation", ALL)
def test_killed_at_every_write_step(
    server: Server, tmp_path: Path, operation: str, record_property: Callable[[str, object], None]
) -> None:
    """Of every kind there are many steps, and what is there after one is what is there before the next."""
    scene = Scene(server, tmp_path, operation)
    _judge(operation, scene.kill_at_every_step(MOMENTS[operation in OF_EVERY_KIND :]))
    record_property("kills", scene.n_killed)


def _judge(operation: str, seen: dict[str, set[str]]) -> None:
    """The injected faults were where they should be, and the log entry alone turned before into after."""
    expected = {
        "track": {"create_marker", "link", "create", "seal", "sync_file", "rmtree"},
        "apply": {"seal", "create_write_transaction", "sync_file", "rmtree"},
        "apply_merging": {"seal", "create_write_transaction", "rmtree"},
        "apply_housekeeping": {"seal", "create_write_transaction", "create_checkpoint"},
        "apply_tidying": {"seal", "create_write_transaction", "remove_file"},
        "merge": {"seal", "create_write_transaction", "rmtree"},
        "pin": {"seal", "create_write_transaction"},
        "drop": {"seal", "create_write_transaction"},
        "shop_track": {"create_marker", "link", "create", "seal", "sync_file", "rmtree"},
        "shop_join": {"seal", "create_write_transaction", "sync_file", "rmtree"},
        "shop_apply": {"seal", "create_write_transaction", "sync_file", "rmtree"},
        "shop_apply_all": {"seal", "create_write_transaction", "sync_file", "rmtree"},
        "shop_apply_merging": {"seal", "create_write_transaction", "rmtree"},
        "shop_apply_tidying": {"seal", "create_write_transaction", "remove_file"},
        "shop_merge": {"seal", "create_write_transaction", "rmtree"},
        "shop_pin": {"seal", "create_write_transaction", "sync_file"},
        "shop_drop": {"seal", "create_write_transaction", "rmtree"},
        "twins_track": {"create_marker", "link", "create", "seal", "sync_file", "rmtree"},
        "twins_apply": {"seal", "create_write_transaction", "sync_file", "rmtree"},
        "twins_apply_one": {"seal", "create_write_transaction", "sync_file", "rmtree"},
        "twins_apply_merging": {"seal", "create_write_transaction", "rmtree"},
        "twins_apply_tidying": {"seal", "create_write_transaction", "remove_file"},
        "twins_merge": {"seal", "create_write_transaction", "rmtree"},
        "twins_drop": {"seal", "create_write_transaction", "sync_file"},
        "every_track": {"create_marker", "link", "create", "seal", "sync_file", "rmtree"},
        "every_apply": {"seal", "create_write_transaction", "sync_file", "rmtree"},
        "every_upsert": {"seal", "create_write_transaction", "sync_file", "rmtree"},
        "every_snapshot": {"seal", "create_write_transaction", "sync_file", "rmtree"},
        "every_pin": {"seal", "create_write_transaction", "sync_file", "rmtree"},
        "every_mute": {"seal", "create_write_transaction", "sync_file"},
        "every_merge": {"seal", "create_write_transaction", "rmtree"},
        "every_drop": {"seal", "create_write_transaction", "rmtree"},
    }
    assert set(seen) >= expected[operation]
    assert "before" in seen["seal"]
    assert set().union(*seen.values()) == {"before", "after"}


def _random_kills(server: Server, folder: Path, operation: str, n_kills: int, seed: int) -> None:
    scene = Scene(server, folder, operation)
    rng = random.Random(seed)
    longest, n_killed = 0.2, 0
    for i in range(20 * n_kills):
        root = scene.copy(f"random-{i}")
        after_s = rng.uniform(0.0, longest)
        answer = server.ask(operation, root, kill_after_s=after_s)
        if not answer["killed"]:
            longest = max(0.02, 0.8 * longest)  # it was done by then
        n_killed += answer["killed"]
        scene.check(root, f"{operation} killed after {after_s:.4f} s")
        if n_killed == n_kills:
            return
    pytest.fail(f"only {n_killed} of {20 * n_kills} runs were killed in time")


def test_killed_at_random_moments(server: Server, tmp_path: Path) -> None:
    for i, operation in enumerate((*FAST, "twins_apply_one", "shop_apply_all")):
        _random_kills(server, tmp_path / operation, operation, 1, seed=i)


@pytest.mark.slow
@pytest.mark.parametrize("operation", AT_RANDOM)
def test_killed_at_many_random_moments(
    server: Server, tmp_path: Path, operation: str, record_property: Callable[[str, object], None]
) -> None:
    _random_kills(server, tmp_path, operation, RANDOM_KILLS, seed=1)
    record_property("kills", RANDOM_KILLS)


def test_killed_again_and_again(server: Server, tmp_path: Path) -> None:
    """One workspace that is killed at every step in turn, with its litter left where it is."""
    scene = Scene(server, tmp_path, "apply")
    root = scene.copy("worn")
    for step in range(1000):
        answer = server.ask("apply", root, step=step, moment="half")
        if not answer["killed"]:
            break
        assert server.run("snapshot", root) in (scene.before, scene.after), answer["point"]
    assert scene.check(root, "the end") == "after"

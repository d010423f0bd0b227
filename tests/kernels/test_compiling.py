"""Where machine code is kept, what it depends on, and that compiling is told.

Most run a copy of the machinery with tiny kernels in processes of their own: what a cache is for shows only
in the next process.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core.engine.kernels import activity, cache_folders, compiling, warming

KERNELS = Path(compiling.__file__).parent
PACKAGE = KERNELS.parents[2]
MODULES = sorted(PACKAGE.rglob("kernels/*.py"))
MACHINERY = ("__init__", "activity", "cache_folders", "compiling", "warming")
OF_COPY = "holdfast.core.engine.kernels"
TOLD = "\nfrom holdfast.core.engine.kernels import activity\nprint(activity._n_compiled)"

CALLEE = """
from holdfast.core.engine.kernels.compiling import njit

STEP = 1

@njit(cache=True)
def stepped(x):
    return x + STEP
"""
WARM_UP = """
def warm_up():
    stepped(1)
"""
CALLER = """
from holdfast.core.engine.kernels.callee import stepped
from holdfast.core.engine.kernels.compiling import njit

@njit(cache=True)
def twice(x):
    return stepped(stepped(x))

def warm_up():
    twice(1)
"""

# Root without its capabilities: permissions hold for it, and it can still reach its interpreter.
SETPRIV = shutil.which("setpriv") if os.geteuid() == 0 else None
ORDINARY = [SETPRIV, "--bounding-set=-all", "--inh-caps=-all"] if SETPRIV else []


class Copy:
    """A copy of holdfast's kernels, of which each run is a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "site-packages"
        self.package = self.root / "holdfast"
        self.kernels = self.package / "core" / "engine" / "kernels"
        self.temporary = folder / "tmp"
        self.kernels.mkdir(parents=True)
        self.temporary.mkdir()
        self.temporary.chmod(0o1777)

    def write(self, **sources: str) -> None:
        for name, source in sources.items():
            (self.kernels / f"{name}.py").write_text(source)

    def close(self) -> None:
        """Only read from now on."""
        if os.geteuid() == 0 and not ORDINARY:
            pytest.skip("root can write everywhere, and there is no setpriv")
        (self.kernels / "__pycache__").mkdir(exist_ok=True)
        for folder in (self.kernels / "__pycache__", self.kernels, *self.kernels.parents[:4]):
            folder.chmod(0o555)

    def open(self) -> None:
        for folder in (*self.kernels.parents[3::-1], self.kernels, self.kernels / "__pycache__"):
            if folder.exists():
                folder.chmod(0o755)

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        removed = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "TMPDIR", "PYTHONPATH")
        environment = {name: value for name, value in os.environ.items() if name not in removed}
        environment |= {"PYTHONPATH": str(self.root), "TMPDIR": str(self.temporary), "HOME": "/dev/null/home"}
        done = subprocess.run(
            [*ORDINARY, sys.executable, "-B", *arguments],
            env=environment | variables,
            cwd="/",
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done

    def own_entries(self) -> list[Path]:
        return sorted(self.temporary.rglob("*.nbc"))


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Copy]:
    copy = Copy(tmp_path)
    copy.write(**{name: (KERNELS / f"{name}.py").read_text() for name in MACHINERY})
    for folder in (copy.package, copy.package / "core", copy.package / "core" / "engine"):
        (folder / "__init__.py").write_text("")
    (copy.package / "kernels.py").write_text((PACKAGE / "kernels.py").read_text())
    copy.write(callee=CALLEE, caller=CALLER)
    yield copy
    copy.open()


TWICE = "from holdfast.core.engine.kernels.caller import twice; print(twice(40))" + TOLD


def test_what_is_compiled_in_is_compiled_again_when_it_changes(copy: Copy) -> None:
    assert copy.run("-c", TWICE).stdout == "42\n2\n"
    copy.write(callee=CALLEE.replace("STEP = 1", "STEP = 2"))
    assert copy.run("-c", TWICE).stdout == "44\n2\n"
    assert copy.run("-c", TWICE).stdout == "44\n0\n"
    names = [path.name for path in (copy.kernels / "__pycache__").glob("*.nbc")]
    assert sorted(name.split(".cpython")[0] for name in names) == [
        f"{OF_COPY}.callee.stepped",
        f"{OF_COPY}.caller.twice",
    ]


def test_what_is_compiled_in_through_others_is_compiled_again(copy: Copy) -> None:
    """A chain of three kernels, the last of them in another package."""
    folder = copy.package / "core" / "rows" / "kernels"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent):
        (package / "__init__.py").write_text("")
    last = CALLEE + WARM_UP
    (folder / "last.py").write_text(last)
    middle = last.replace("STEP = 1", "from holdfast.core.rows.kernels.last import stepped as by_one")
    copy.write(callee=middle.replace("x + STEP", "by_one(x)"))
    assert copy.run("-c", TWICE).stdout.split()[0] == "42"
    before = {path.name for path in (copy.kernels / "__pycache__").glob("*.nbc")}
    (folder / "last.py").write_text(last.replace("STEP = 1", "STEP = 2"))
    assert copy.run("-c", TWICE).stdout.split()[0] == "44"
    after = {path.name for path in (copy.kernels / "__pycache__").glob("*.nbc")}
    assert len(before) == len(after) == 3
    assert not before & after, "of all three"


def test_times_of_files_do_not_matter(copy: Copy) -> None:
    assert copy.run("-c", TWICE).stdout == "42\n2\n"
    for path in copy.kernels.glob("*.py"):
        os.utime(path, (1, 1))
    assert copy.run("-c", TWICE).stdout == "42\n0\n"


def test_without_a_home_and_with_sources_that_are_only_read(copy: Copy) -> None:
    copy.write(masks=(PACKAGE / "core" / "rows" / "kernels" / "masks.py").read_text())
    copy.close()
    code = (
        f"import numpy as np; from {OF_COPY}.masks import popcounts\n"
        "print(popcounts(np.array([[7], [8]], np.uint64)))"
    )
    done = copy.run("-c", code + TOLD)
    assert (done.stdout, done.stderr) == ("[3 1]\n1\n", "")
    (entry,) = copy.own_entries()
    assert stat.S_IMODE(entry.parent.parent.stat().st_mode) == 0o700
    assert copy.run("-c", code + TOLD).stdout == "[3 1]\n0\n"


def test_what_the_administrator_compiled_serves_all(copy: Copy) -> None:
    done = copy.run("-m", "holdfast.kernels")
    assert done.stdout.startswith(f"kernels: 1 modules ready in {copy.kernels / '__pycache__'} (")
    copy.close()
    assert copy.run("-c", TWICE).stdout == "42\n0\n"
    assert copy.own_entries() == []
    # What is not there yet goes to a folder of the user's own, and is found there beside the other.
    both = TWICE.replace("print(", "print(twice(0.5), ", 1)
    assert copy.run("-c", both).stdout == "2.5 42\n2\n"
    assert len(copy.own_entries()) == 2
    assert copy.run("-c", both).stdout == "2.5 42\n0\n"


def test_nowhere_to_write(copy: Copy) -> None:
    nowhere = (
        "from holdfast.core.engine.kernels import cache_folders; cache_folders._candidates = lambda: []\n"
    )
    done = copy.run("-c", nowhere + TWICE)
    assert done.stdout == "42\n2\n"
    assert done.stderr == (
        "kernels cannot be kept (no folder can be written): every process compiles them again. "
        "Set NUMBA_CACHE_DIR to a folder that can be written.\n"
    )


def test_a_named_folder_comes_first(copy: Copy) -> None:
    copy.run("-c", TWICE)
    named = copy.root.parent / "named"
    assert copy.run("-c", TWICE, NUMBA_CACHE_DIR=str(named)).stdout == "42\n2\n"
    assert copy.run("-c", TWICE, NUMBA_CACHE_DIR=str(named)).stdout == "42\n0\n"
    assert len(list(named.rglob("*.nbc"))) == 2


def test_the_folder_for_caches_of_the_user(copy: Copy) -> None:
    copy.close()
    cache = copy.temporary / "cache"
    assert copy.run("-c", TWICE, XDG_CACHE_HOME=str(cache)).stdout == "42\n2\n"
    assert {path.parent.parent for path in copy.own_entries()} == {cache / "holdfast"}


def test_what_came_along_serves_all(copy: Copy) -> None:
    """What is compiled for the baseline is found where nothing can be written."""
    if not compiling.baselines():
        pytest.skip("this processor is less than the baseline")
    baseline = {"NUMBA_CPU_NAME": compiling.baselines()[0], "NUMBA_CPU_FEATURES": ""}
    done = copy.run("-m", "holdfast.kernels", "--ship")
    assert "kernels: 2 entries for" in done.stdout
    assert {path.suffix for path in (copy.kernels / "compiled").iterdir()} == {".nbc", ".txt"}
    assert not list((copy.kernels / "__pycache__").glob("*.nbc"))
    copy.close()
    assert copy.run("-c", TWICE).stdout == "42\n0\n"
    assert copy.own_entries() == []
    lesser = "from holdfast.core.engine.kernels import compiling; compiling.baselines = lambda: ()\n"
    assert copy.run("-c", lesser + TWICE).stdout == "42\n2\n"
    assert copy.run("-c", TWICE, **baseline).stdout == "42\n0\n"


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is nothing beside the one core")
def test_much_is_compiled_beside_each_other(copy: Copy) -> None:
    names = [f"caller{i}" for i in range(compiling.MANY_MODULES)]
    copy.write(**dict.fromkeys(names, CALLER))
    imports = f"from holdfast.core.engine.kernels import {', '.join(names)}\n"
    code = f"{imports}print([m.twice(40) for m in ({', '.join(names)})]){TOLD}"
    assert copy.run("-c", code).stdout == f"{[42] * len(names)}\n0\n"
    # Of what is there already, one more type of arguments is compiled here.
    assert copy.run("-c", code.replace("40", "0.5")).stdout == f"{[2.5] * len(names)}\n{len(names) + 1}\n"


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is nothing beside the one core")
def test_what_is_compiled_beside_starts_nothing_further(copy: Copy, tmp_path: Path) -> None:
    """Each worker meets modules that nobody has compiled yet: it would begin all of it once more."""
    names = [f"caller{i}" for i in range(compiling.MANY_MODULES + 1)]
    copy.write(**dict.fromkeys(names, CALLER))
    others = f"from holdfast.core.engine.kernels import {', '.join(names)}\n"
    copy.write(caller=f"{others}{CALLER}    {names[0]}.twice(2)\n")
    begun = tmp_path / "begun"
    begun.mkdir(mode=0o777)
    begun.chmod(0o777)
    noted = f"\ndef main():\n    (pathlib.Path({str(begun)!r}) / str(os.getpid())).touch()\n    _main()\n"
    source = (KERNELS / "warming.py").read_text()
    copy.write(warming=source.replace("\ndef main(", "\nimport pathlib\ndef _main(") + noted)
    copy.run("-m", "holdfast.kernels")
    assert len([*begun.iterdir()]) == 1


def test_a_damaged_entry_is_none(copy: Copy) -> None:
    copy.run("-c", TWICE)
    cut, changed = (copy.kernels / "__pycache__").glob("*.nbc")
    cut.write_bytes(cut.read_bytes()[:-1])
    changed.write_bytes(changed.read_bytes()[:99] + b"..." + changed.read_bytes()[102:])
    assert copy.run("-c", TWICE).stdout == "42\n2\n"
    assert copy.run("-c", TWICE).stdout == "42\n0\n"


def test_what_the_cache_has_is_loaded_and_nothing_compiled(copy: Copy) -> None:
    load = "from holdfast.core.engine.kernels import caller, compiling; print(compiling.load_entries())\n"
    assert copy.run("-c", load + TWICE).stdout == "0\n42\n2\n"
    seen = "print(sum(caller.twice.stats.cache_hits.values()))\n"
    assert copy.run("-c", load + seen + TWICE).stdout == "2\n1\n42\n0\n"


def test_warming_tells_how_far_it_is_in_a_pipe(copy: Copy) -> None:
    code = "from holdfast.core.engine.kernels import warming; warming.SAY_AFTER_S = 0; warming.main()"
    done = copy.run("-c", code)
    line = r"compiling kernels, once: \d so far, [01] of 1 modules ready"
    assert re.fullmatch(rf"({line}\n)+", done.stderr)
    assert done.stderr.splitlines()[-1].endswith("1 of 1 modules ready")
    assert done.stdout.count("\n") == 1


def test_warming_with_nowhere_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "places", lambda: cache_folders.Places((), None))
    with pytest.raises(SystemExit, match="no folder can be written"):
        warming.main()


# --- Whose folder it is -----------------------------------------------------------------------------------


def test_a_private_folder_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "holdfast" / "kernels-1"
    assert cache_folders._made_private(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert cache_folders._made_private(folder)


def test_folders_that_others_may_have_filled(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert not cache_folders._made_private(tmp_path / "link" / "kernels-1")
    (tmp_path / "open" / "kernels-1").mkdir(parents=True)
    (tmp_path / "open").chmod(0o777)
    assert not cache_folders._made_private(tmp_path / "open" / "kernels-1")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)  # without the bit that keeps others from renaming
    assert not cache_folders._made_private(tmp_path / "shared" / "holdfast" / "kernels-1")
    (tmp_path / "shared").chmod(0o1777)
    assert cache_folders._made_private(tmp_path / "shared" / "holdfast" / "kernels-1")
    (tmp_path / "file").write_text("")
    assert not cache_folders._made_private(tmp_path / "file" / "kernels-1")


def test_the_folder_of_another_user(copy: Copy) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a folder of another user's")
    copy.close()
    foreign = copy.temporary / f"holdfast-{os.geteuid()}"  # whoever comes first in /tmp takes the name
    foreign.mkdir(mode=0o777)
    os.chown(foreign, 65534, 65534)
    code = "from holdfast.core.engine.kernels.cache_folders import places; print(places().writable)"
    assert not copy.run("-c", code).stdout.startswith(str(copy.temporary))


# --- What it depends on -----------------------------------------------------------------------------------


def test_imports_are_seen_in_the_text() -> None:
    for path in MODULES:
        names = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert not node.level, f"{path}: by its full name, so that it is seen"
                parts = (node.module or "").split(".")
                if parts[0] == "holdfast" and parts[-1] == "kernels":
                    names |= {f"{node.module}.{alias.name}" for alias in node.names}
                elif parts[0] == "holdfast" and "kernels" in parts:
                    names.add(str(node.module))
            elif isinstance(node, ast.Import):
                names |= {n.name for n in node.names if n.name.startswith("holdfast.")}
        assert compiling.imported(path.read_text()) == names, path.name


def test_all_kernels_are_kept_like_this() -> None:
    modules = warming.kernel_modules()
    assert len(set(modules)) == len(modules) > 30
    for path in MODULES:
        source = path.read_text()
        if path.parent != KERNELS:
            assert "import njit" not in source.replace(f"from {OF_COPY}.compiling import njit", "")
            name = ".".join(("holdfast", *path.relative_to(PACKAGE).with_suffix("").parts))
            assert ("@njit" in source) <= (name in modules)


def test_what_is_compiled_in_is_of_kernel_modules() -> None:
    """An edit of another module would not be seen: names that it gives are not used in compiled functions."""
    for path in MODULES:
        tree = ast.parse(path.read_text())
        foreign = {
            alias.asname or alias.name
            for node in tree.body
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("holdfast.")
            for alias in node.names
            if "kernels" not in f"{node.module}.{alias.name}".split(".")
        }
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and "njit" in "".join(map(ast.dump, node.decorator_list)):
                used = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                assert not used & foreign, f"{path}: {node.name} has {used & foreign} compiled in"


def test_a_closure_is_refused() -> None:
    step = 1
    with pytest.raises(TypeError, match="is a closure"):
        compiling.njit(cache=True)(lambda x: x + step)


# --- Telling ----------------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(activity.time, "monotonic", lambda: now[0])
    fresh = {"_depth": 0, "_n_compiled": 0, "_seconds": 0.0, "_since": None, "_until": 0.0}
    fresh |= {"_entries_before": None, "_n_by_workers": 0, "_workers_until": 0.0, "_looked": 0.0}
    for name, value in fresh.items():
        monkeypatch.setattr(activity, name, value)
    return now


def test_compiling_is_told_after_a_second(clock: list[float]) -> None:
    assert activity.compiling() is None
    activity.begin()
    clock[0] += 0.6
    activity.begin()
    assert activity.compiling() is None
    clock[0] += 0.6
    assert activity.compiling() == 0
    activity.end()
    assert activity.compiling() == 1
    activity.end()
    assert activity.compiling() == 2
    clock[0] += 0.6
    assert activity.compiling() is None


def test_what_workers_compile_is_seen(
    clock: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity, "places", lambda: cache_folders.Places((tmp_path,), tmp_path))
    (tmp_path / "old.nbc").touch()
    activity.watch_workers()
    (tmp_path / "ours.nbc").touch()
    activity.entry_written("ours.nbc")
    assert activity.compiling() is None
    (tmp_path / "theirs.nbc").touch()
    clock[0] += 1
    assert activity.compiling() == 1
    clock[0] += 11
    assert activity.compiling() is None

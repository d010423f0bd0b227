"""The steps of the Dockerfile, as far as they go without Docker; and what an installed wheel is like.

The environments have the dependencies of this one, so that nothing is downloaded but the build backend.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path

import pytest

from holdfast.core.engine.kernels import compiling

ROOT = Path(__file__).parents[2]
SETPRIV = shutil.which("setpriv") if os.geteuid() == 0 else None
ORDINARY = [SETPRIV, "--bounding-set=-all", "--inh-caps=-all"] if SETPRIV else []


def steps_of(dockerfile: str) -> list[list[str]]:
    """The steps of each stage, a line each."""
    text = re.sub(r"\\\n", " ", dockerfile)
    stages = re.split(r"^FROM .*$", text, flags=re.MULTILINE)[1:]
    return [re.findall(r"^RUN (.*)$", stage, flags=re.MULTILINE) for stage in stages]


def environment(folder: Path) -> dict[str, str]:
    """A virtual environment with the packages of this one, but for holdfast."""
    venv.create(folder, with_pip=True)
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / python / "site-packages"
    (packages / "these.pth").write_text(sysconfig.get_path("purelib") + "\n")
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return kept | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_a_wheel_for_every_python_that_is_here() -> None:
    pythons = f"{sys.executable} no-such-python"
    done = subprocess.run(
        ["make", "-n", "wheels", f"PYTHONS={pythons}"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    folder = f".venv/wheels/{sys.version_info.major}.{sys.version_info.minor}"
    assert f'exec "$python" -m venv {folder};' in done.stdout
    assert f"{folder}/bin/python -m holdfast.kernels --ship" in done.stdout
    assert "there is no no-such-python here: no wheel for it" in done.stdout


@pytest.mark.slow  # compiles all kernels
@pytest.mark.skipif(not compiling.baselines(), reason="this processor is less than the baseline")
def test_the_steps_of_the_image(tmp_path: Path) -> None:
    source, wheels = tmp_path / "src", tmp_path / "wheels"
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in tracked.stdout.splitlines():
        if not name.startswith(("tests/", "benchmarks/")) and (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, source / name)
    stages = steps_of((ROOT / "Dockerfile").read_text())
    assert len(stages) == 2
    for stage, steps in zip(("build", "final"), stages, strict=True):
        variables = environment(tmp_path / stage)
        runnable = [step for step in steps if step.startswith(("pip ", "python "))]
        assert runnable
        for step in runnable:
            # The variable PIP_NO_DEPS would hold for the build backend, too.
            command = step.replace("/wheels", str(wheels)).replace("pip install", "pip install --no-deps")
            done = subprocess.run(
                command, shell=True, cwd=source, env=variables, capture_output=True, text=True
            )
            assert done.returncode == 0, (step, done.stderr)
    [wheel] = wheels.iterdir()
    assert wheel.name.endswith(f"{compiling.platform.machine()}.whl")

    # A user without a home, whose installation is only read.
    site = tmp_path / "final"
    subprocess.run(["chmod", "-R", "a-w", str(site)], check=True)
    if os.geteuid() == 0 and not ORDINARY:
        pytest.skip("root can write everywhere, and there is no setpriv")
    work = tmp_path / "work"
    work.mkdir()
    rows = "\n".join(f"{i},{i % 7},name {i % 50}" for i in range(347))
    (work / "people.csv").write_text(f"id,team,name\n{rows}\n")
    nobody = {"HOME": "/dev/null/home", "TMPDIR": str(work), "PATH": os.environ["PATH"]}
    started = time.monotonic()
    done = subprocess.run(
        [
            *ORDINARY,
            str(site / "bin" / "holdfast"),
            "track",
            "people",
            "people.csv",
            "--kinds",
            "ucc,fd,ind,dc",
        ],
        cwd=work,
        env=nobody,
        capture_output=True,
        text=True,
    )
    seconds = time.monotonic() - started
    subprocess.run(["chmod", "-R", "u+w", str(site)], check=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("people: 347 rows, 2 minimal keys")
    assert "compiling" not in done.stderr
    assert not list(work.rglob("*.nbc"))
    print(f"first result after {seconds:.1f} s")

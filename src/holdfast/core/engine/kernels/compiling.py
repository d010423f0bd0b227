"""Compiling kernels, and keeping their machine code on disk.

`njit` is Numba's with a cache of our own behind `cache=True`. In Numba's:

- only the file of a kernel is looked at, though kernels of other modules are compiled into it: after a
  change to those the old machine code would run on;
- there is one place, and an error where it cannot be written;
- all signatures of a kernel share an index. Of two processes that add to it at once, one may be left with
  the other's machine code.

Here an entry is one file, named by everything that its machine code depends on: the sources of the kernel's
module and of the kernel modules that it imports, Python, Numba, the processor, the types of the arguments.
It appears whole, under its final name, and does not change afterwards, so there is nothing to lock. Its
content begins with a checksum; one that does not fit is an entry that is not there. Times of files do not
matter: what an administrator compiled, or what came with a wheel or an image, is valid for all
(`cache_folders.py`).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import pkgutil
import platform
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core import config, event
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from holdfast.core.engine.kernels import activity
from holdfast.core.engine.kernels.cache_folders import BESIDE, SUFFIX, places, say_uncached

DIGEST_BYTES = hashlib.sha256().digest_size
MANY_MODULES = 3
"""So many modules without any machine code are compiled beside each other: starting that takes seconds."""

_dispatchers: list[Any] = []


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Numba's `njit`, with `KernelCache` instead of Numba's own cache.

    Options stand in the sources of the kernels, which entries depend on: none may be added here.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        dispatcher: Any = numba.njit(**options)(function)
        if cache and not config.DISABLE_JIT:  # then it is the function itself
            dispatcher._cache = KernelCache(function)
            _dispatchers.append(dispatcher)
        return dispatcher

    return compiled


class KernelCache:
    """The entries of one kernel: what a dispatcher asks of its cache. No errors of files leave it."""

    def __init__(self, function: Any) -> None:
        if function.__closure__ is not None:
            raise TypeError(
                f"{function.__qualname__} is a closure: its machine code depends on more than sources"
            )
        module = function.__module__
        self._kernel = f"{module}.{function.__qualname__}.{sys.implementation.cache_tag}."
        self._stamp = stamp(module)

    @property
    def cache_path(self) -> str | None:
        folder = places().writable
        return None if folder is None else str(folder)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The compiled kernel for these types of arguments; None if it has to be compiled."""
        # What machine code calls; not `target.refresh()`, which loads all that the compiler needs: 0.2 s.
        rtsys.initialize(target)
        names = self.entries(signature, target.codegen())
        content = _content(names, signature)
        if content is None and compiled_beside():
            content = _content(names, signature)
        return None if content is None else CompileResult._rebuild(target, *content[1])

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a compiled kernel, and forget what was compiled of it from other sources."""
        names = self.entries(signature, result.codegen)
        folder = places().writable
        if folder is None:
            say_uncached("no folder can be written")
        elif not names:
            say_uncached("the sources cannot be read")
        elif result.library.has_dynamic_globals or not all(lifted.can_cache for lifted in result.lifted):
            say_uncached(f"{self._kernel} uses addresses of this process")
        else:
            try:
                _write(folder / names[0], (signature, result._reduce()))
                activity.entry_written(names[0])
                for other in os.listdir(folder):
                    if other.startswith(self._kernel) and not other.startswith(self.begin):
                        (folder / other).unlink(missing_ok=True)
            except OSError as error:
                say_uncached(f"{folder}: {error.strerror}")

    def enable(self) -> None:
        """Asked for by Numba; there is nothing to switch."""

    disable = flush = enable

    def entries(self, signature: Any, codegen: Any) -> list[str]:
        """The names that an entry may have: for this very processor, which is the name of what is compiled
        here, and for the baseline that it surpasses. None if the sources are unknown."""
        if not self._stamp:
            return []
        triple, *_ = here = codegen.magic_tuple()
        targets = [here, *((triple, name, "") for name in baselines())]
        options = (numba.__version__, str(config.OPT), config.BOUNDSCHECK, signature)
        digests = [hashlib.sha256(repr((*options, target)).encode()).hexdigest() for target in targets]
        return [f"{self.begin}.{digest[:24]}{SUFFIX}" for digest in digests]

    @property
    def begin(self) -> str:
        """How the names of the kernel's entries begin."""
        return self._kernel + self._stamp


def load_entries() -> int:
    """Load all machine code that the cache has of the modules imported so far, and compile none; how much."""
    n_loaded = 0
    for dispatcher, signature in _entries():
        dispatcher.compile(signature)
        n_loaded += 1
    return n_loaded


@functools.cache
def compiled_beside() -> bool:
    """Compile what was never compiled before of the modules imported so far, on all cores; whether it was
    done. Once in a process, if it is much: after an installation, or a change of a module that many import.

    In processes of their own: it is safe whatever this one's main module does. If one fails, the kernel that
    is needed now is compiled here, which says why.
    """
    modules: dict[str, bool] = {}
    names = [name for folder in places().readable for name in _names(folder)]
    for dispatcher in _dispatchers:
        module = dispatcher.py_func.__module__
        there = any(name.startswith(dispatcher._cache.begin) for name in names)
        modules[module] = modules.get(module, False) or there
    new = [module for module, there in modules.items() if not there]
    in_task = "pyspark.worker" in sys.modules or BESIDE in os.environ  # whose cores are not ours
    if len(new) < MANY_MODULES or places().writable is None or in_task or (os.cpu_count() or 1) < 2:
        return False
    n_kernels = sum(dispatcher.py_func.__module__ in new for dispatcher in _dispatchers)
    with activity.expecting(n_kernels):
        command = [sys.executable, "-m", "holdfast.kernels", *new]
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return True


def modules_ready() -> set[str]:
    """The modules, of those imported so far, of which the cache has machine code for this processor."""
    return {dispatcher.py_func.__module__ for dispatcher, _ in _entries()}


def _entries() -> Iterator[tuple[Any, Any]]:
    """(kernel, signature) of all machine code for this processor in the cache."""
    names = {name: folder for folder in reversed(places().readable) for name in _names(folder)}
    by_kernel: dict[str, list[str]] = {}
    for name in names:
        by_kernel.setdefault(name.rpartition(SUFFIX)[0].rpartition(".")[0], []).append(name)
    for dispatcher in _dispatchers:
        for name in by_kernel.get(dispatcher._cache.begin, ()):
            content = _read(names[name] / name)
            # Those of another processor, on a home that several machines share, have other names here.
            if content is not None and name in dispatcher._cache.entries(
                content[0], dispatcher.targetctx.codegen()
            ):
                yield dispatcher, content[0]


# --- What an entry depends on -----------------------------------------------------------------------------

# The processors that kernels are compiled for when they are shipped, and what they have. By LLVM's names.
BASELINES = {
    "x86_64": ("x86-64-v3", ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "xsave")),
    "aarch64": ("generic", ()),
    "arm64": ("apple-m1", ()),
}


@functools.cache
def baselines() -> tuple[str, ...]:
    """The baseline that this processor surpasses, if there is one."""
    name, needed = BASELINES.get(platform.machine(), ("", ("there is none",)))
    features = llvm.get_host_cpu_features()
    return (name,) if all(features.get(feature) for feature in needed) else ()


@functools.cache
def stamp(module: str) -> str:
    """A digest of the sources that are compiled into a module's kernels; empty if they cannot be read.

    Those are its own, and all kernel modules that it imports, directly or not: constants are compiled in as
    functions are.
    """
    sources: dict[str, bytes] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in sources:
            continue
        source = _source(name)
        if source is None:
            return ""
        sources[name] = source
        waiting += imported(source.decode()) - {__name__}  # how entries are kept is not compiled in
    digest = hashlib.sha256()
    for name in sorted(sources):
        digest.update(name.encode() + hashlib.sha256(sources[name]).digest())
    return digest.hexdigest()[:16]


_IMPORT = re.compile(
    # from holdfast.core.rows.kernels.masks import ...; from holdfast.core.rows.kernels import masks, ...
    r"^[ \t]*(?:from|import)[ \t]+(holdfast(?:\.\w+)*\.kernels\.\w+)"
    r"|^[ \t]*from[ \t]+(holdfast(?:\.\w+)*\.kernels)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)",
    re.MULTILINE,
)


def imported(source: str) -> set[str]:
    """The kernel modules that a module imports. By their text: parsing all would take half a second.

    >>> text = "from holdfast.core.rows.kernels.masks import mask_of"
    >>> sorted(imported(f"{text}\\nfrom holdfast.lakes.kernels import a, b as c"))
    ['holdfast.core.rows.kernels.masks', 'holdfast.lakes.kernels.a', 'holdfast.lakes.kernels.b']
    """
    names = set()
    for one, package, several in _IMPORT.findall(source):
        members = re.findall(r"\w+", re.sub(r"\bas\s+\w+|#[^\n]*", "", several))
        names |= {one} if one else {f"{package}.{member}" for member in members}
    return names


@functools.cache
def _source(module: str) -> bytes | None:
    """By the package's loader: it may be in an archive."""
    package, _, name = module.rpartition(".")
    try:
        return pkgutil.get_data(package, f"{name}.py")
    except OSError:
        return None


# --- Files ------------------------------------------------------------------------------------------------


def _names(folder: Path) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.endswith(SUFFIX)]
    except OSError:
        return []


def _content(names: list[str], signature: Any) -> Any:
    """The first entry that has one of the names and was compiled for the signature; None if there is none."""
    for name in names:
        for folder in places().readable:
            content = _read(folder / name)
            if content is not None and content[0] == signature:
                return content
    return None


def _read(path: Path) -> Any:
    """What was written; None if there is no such file, or not all of it, or not for us."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, body = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    return pickle.loads(body) if hashlib.sha256(body).digest() == digest else None


def _write(path: Path, content: Any) -> None:
    body = dumps(content)
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        draft.write_bytes(hashlib.sha256(body).digest() + body)
        draft.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


# --- Telling ----------------------------------------------------------------------------------------------


class _Listener(event.Listener):  # type: ignore[misc]
    """Passes on to `activity` what Numba tells of our kernels."""

    def on_start(self, compilation: Any) -> None:
        if _is_kernel(compilation):
            activity.begin()

    def on_end(self, compilation: Any) -> None:
        if _is_kernel(compilation):
            activity.end()


def _is_kernel(compilation: Any) -> bool:
    return str(compilation.data["dispatcher"].py_func.__module__).startswith("holdfast.")


event.register("numba:compile", _Listener())

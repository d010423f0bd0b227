"""The command line: `holdfast -w my.hold COMMAND`.

- `--json` prints one document on standard output; whatever else there is to say goes to standard error.
- Exit codes: 0 fine; 1 something that is guarded would not hold (`check`); 2 bad input or usage; 70 an error
  in holdfast itself; 130 interrupted; 143 the same by SIGTERM.
- Commands that read import neither Spark nor Numba (a test watches), so they answer in well under 2 s.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

import holdfast
from holdfast.app.calls import INTERRUPTED, TERMINATED, Globals, as_command, reported, use_cluster
from holdfast.app.options import EngineName
from holdfast.errors import hides_interrupt

# The module of each command, in the order of `holdfast --help`.
COMMANDS = {
    "track": "changing",
    "track-all": "changing",
    "apply": "changing",
    "apply-all": "changing",
    "check": "changing",
    "check-all": "changing",
    "show": "showing",
    "profile": "profiling",
    "link": "lakes",
    "joins": "lakes",
    "overlaps": "lakes",
    "graph": "exploring",
    "explore": "exploring",
    "links": "linking",
    "export": "linking",
    "report": "reporting",
    "normalise": "normalising",
    "log": "reading",
    "explain": "reading",
    "violations": "cleaning",
    "repairs": "cleaning",
    "pin": "relying",
    "pins": "relying",
    "mute": "muting",
    "muted": "muting",
    "drop": "changing",
    "merge": "changing",
    "verify": "reading",
    "pack": "packing",
    "doctor": "doctor",
}
# Python looks for cycles whenever there are so many objects more. A command makes some 50,000 that stay
# while it imports what it needs: by Python's own 700 it looks 116 times, a fifteenth of the time of `show`.
MORE_OBJECTS = 25_000
STYLE: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


class LazyCommands(Mapping[str, Any]):
    """The commands by name; the module of one is imported when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        return _command(name, COMMANDS[name])

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


@cache
def _command(name: str, module: str) -> Any:
    """A command as Typer runs it: an app that has no other is that command."""
    function = getattr(import_module(f"holdfast.app.commands.{module}"), name.replace("-", "_"))
    alone = typer.Typer(add_completion=False, **STYLE)
    alone.command(name)(as_command(function))
    return typer.main.get_command(alone)


class Group(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = LazyCommands()  # type: ignore[assignment]


app = typer.Typer(
    name="holdfast",
    help="What holds in your data, kept true while the data changes.",
    cls=Group,
    no_args_is_help=True,
    **STYLE,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"holdfast {holdfast.__version__}")
        raise typer.Exit


@app.callback()
def options(
    ctx: typer.Context,
    workspace: Annotated[
        str | None,  # not a path: one would fold the slashes of a URL
        typer.Option(
            "-w",
            "--workspace",
            metavar="PATH",
            envvar="HOLDFAST_WORKSPACE",
            help="The workspace: a folder, or a URL such as s3://bucket/folder. If none is named: .holdfast, "
            "here or in a folder above.",
        ),
    ] = None,
    engine: Annotated[
        EngineName,
        typer.Option(
            "--engine", help="Where work runs: auto runs small work in this process and the rest on Spark."
        ),
    ] = EngineName.auto,
    master: Annotated[
        str | None,
        typer.Option(
            "--master",
            metavar="URL",
            help="The cluster that Spark runs on: spark://host:7077, yarn, k8s://... "
            "(or HOLDFAST_MASTER, or spark-defaults.conf).",
        ),
    ] = None,
    remote: Annotated[
        str | None,
        typer.Option("--remote", metavar="URL", help="A Spark Connect server: sc://host:15002."),
    ] = None,
    spark_conf: Annotated[
        list[str] | None,
        typer.Option("--spark-conf", metavar="KEY=VALUE", help="A setting of Spark's; may be repeated."),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    ctx.obj = Globals(workspace, engine, debug)
    if master or remote or spark_conf:
        with reported(ctx):
            use_cluster(master, remote, spark_conf or [])


def _is_news(record: logging.LogRecord) -> bool:
    """Py4J logs an interrupt with its traceback to the root logger; we say it ourselves, in one word."""
    return not (record.exc_info and hides_interrupt(record.exc_info[1]))


_terminated = threading.Event()


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    """SIGTERM ends a command as Ctrl-C does, or a cluster would go on with its jobs."""
    _terminated.set()
    handler = signal.getsignal(signal.SIGINT)  # PySpark's cancels all jobs
    if callable(handler):
        handler(signal.SIGINT, frame)
    raise KeyboardInterrupt


def main(args: Sequence[str] | None = None) -> None:
    """The entry point of `holdfast`."""
    gc.set_threshold(MORE_OBJECTS)
    logging.getLogger().addFilter(_is_news)
    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)
    for stream in (sys.stdout, sys.stderr):
        # Where the terminal cannot show a character its escape stands in, rather than a traceback.
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        app(args=args, prog_name="holdfast")
    except (KeyboardInterrupt, SystemExit) as ended:
        if isinstance(ended, SystemExit) and ended.code != INTERRUPTED:
            raise
        sys.exit(TERMINATED if _terminated.is_set() else INTERRUPTED)


if __name__ == "__main__":
    main()

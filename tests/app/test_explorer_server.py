"""The server of the page: who is let in, what every answer carries, what a hostile lake can do (nothing)."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import io
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import webbrowser
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from queue import Queue
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

import holdfast
from app.serving import answering
from app.shell import WHAT_IS_IMPORTED, Shell
from holdfast.app.commands import exploring
from holdfast.app.explorer import Explorer, ExplorerServer, lake_answers, server
from holdfast.core.store.change_log import LogEntry
from holdfast.core.store.ledger_rows import ChangeRow
from holdfast.core.words.sameness import NONE, DependencySet
from holdfast.errors import DamagedFileError, UnknownTableError, UsageError
from holdfast.kind import entries, kinds
from holdfast.lakes.reader.lake_reader import LakeReader
from lake_maker import make_lake

# Names and cells that would do harm if anybody took them for markup, script, a path or a number.
HOSTILE = [
    "<script>alert(1)</script>",
    "</script><!--",
    "'; DROP TABLE t; --",
    "../../etc/passwd",
    "a\u2028b\u2029c",
    "\u202egpj.exe",
    "\x00\x1b[31m\r\nSet-Cookie: a=b",
    "\ud800",
    "😀" * 10,
    "NaN",
    "__proto__",
    "",
]
NOUNS = {kind: list(entries()[kind].nouns) for kind in kinds()}
EMPTY = {"version": 0, "tables": [], "nouns": NOUNS}  # a workspace
PATIENCE_S = 90.0  # nothing here takes long, but the machine may be busy with other things
PAGE = {
    "index.html": b"<!doctype html><title>holdfast</title>",
    "app.js": b"'use strict';" + b"/* long */" * 2_000,
    "style.css": b"body {}",
    "icons/mark.svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    "secret.py": b"not for the page",
}


@dataclass
class Told:
    document: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return self.document


@dataclass
class FakeLake:
    """Answers with what it was asked, and sees to it that it is asked by one thread at a time."""

    version: int = 1
    state: object = None
    n_inside: int = 0

    def _told(self, **asked: Any) -> Told:
        self.n_inside += 1
        assert self.n_inside == 1, "two threads at once"
        time.sleep(0.001)
        self.n_inside -= 1
        return Told({"names": HOSTILE, "lake": self.version, **asked})

    def summary(self) -> Told:
        return self._told(n_tables=3)

    def components(self, limit: int) -> Told:
        return self._told(limit=limit)

    def component(self, id: int, max_edges: int) -> Told:
        return self._told(id=id, max_edges=max_edges, labels=["table"] * 5_000)

    def cluster(self, component: int, id: int, max_edges: int) -> Told:
        return self._told(component=component, id=id, max_edges=max_edges)

    def table(self, id: int) -> Told:
        if id == 404:
            raise UnknownTableError(f"the lake has no table {id}.")
        if id == 500:
            raise RuntimeError("a bug: " + "x" * 1_000)
        if id == 501:
            raise DamagedFileError("the file 'lake/x' is cut short.")
        if id == 502:
            return Told({"score": float("nan")})
        return self._told(id=id)

    def ind(self, dependent: int, referenced: int, limit: int) -> Told:
        if dependent == referenced:
            raise UsageError("a column is always in itself.")
        return self._told(dependent=dependent, referenced=referenced, limit=limit)

    def search(self, text: str, what: str, limit: int) -> Told:
        return self._told(q=text, what=what, limit=limit)


@dataclass
class FakeWorkspace:
    version: int = 1
    linked: bool = True
    entries: list[LogEntry] = field(default_factory=list)
    opened: Callable[[int, object], FakeLake] = FakeLake
    lake_state: object = None  # None: another one with each version

    def tables(self, at: int | None = None) -> list[str]:
        return HOSTILE[:3]

    def kinds(self, table: str, at: int | None = None) -> tuple[str, ...]:
        return ("ucc", "fd")

    def n_rows(self, table: str, at: int | None = None) -> int:
        return 7

    @property
    def readers(self) -> FakeWorkspace:
        return self

    def muted_at(self, at: int | None) -> DependencySet:
        return NONE

    def log(self, table: str | None = None) -> list[LogEntry]:
        if table not in (None, *self.tables()):
            raise UnknownTableError.from_missing(table or "", self.tables())
        return self.entries

    def lake(self) -> FakeLake | None:
        state = self.version if self.lake_state is None else self.lake_state
        return self.opened(self.version, state) if self.linked else None


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        assert self.headers["content-type"] == "application/json"
        assert self.body.isascii()
        return json.loads(self.body)


@dataclass
class Client:
    """Asks a server over real sockets."""

    server: ExplorerServer

    @property
    def cookie(self) -> str:
        return f"holdfast={self.server.token}"

    def head(self, path: str = "", method: str = "GET") -> bytes:
        """The first lines of a request for what is below the page, without the empty line that ends them."""
        lines = [
            f"{method} /{self.server.place}/{path} HTTP/1.1",
            f"Host: 127.0.0.1:{self.server.port}",
            f"Cookie: {self.cookie}",
        ]
        return "".join(f"{line}\r\n" for line in lines).encode()

    def __call__(
        self,
        path: str = "",
        *,
        method: str = "GET",
        raw: bool = False,
        body: bytes | None = None,
        **headers: str,
    ) -> Answer:
        """What a path below that of the page gives who has the cookie; with `raw` it is sent as it is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if not raw:
            path, given = f"/{self.server.place}/{path}", {"Cookie": self.cookie, **given}
        try:
            connection.request(method, path, body, given)
            got = connection.getresponse()
            return Answer(got.status, {n.lower(): v for n, v in got.getheaders()}, got.read())
        finally:
            connection.close()

    def sends(self, text: bytes) -> bytes:
        """What bytes give, until the server hangs up."""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE_S) as s:
            s.sendall(text)
            return b"".join(iter(lambda: s.recv(65_536), b""))


@pytest.fixture
def workspace() -> FakeWorkspace:
    return FakeWorkspace()


@pytest.fixture
def page(tmp_path: Path) -> Path:
    for name, content in PAGE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.fixture
def ask(workspace: FakeWorkspace, page: Path) -> Iterator[Client]:
    with answering(ExplorerServer(Explorer(workspace), folder=page)) as running:
        yield Client(running)


def all_gone(running: ExplorerServer) -> None:
    """Waits until the server has forgotten all connections that were closed."""
    end = time.monotonic() + PATIENCE_S
    while running._strangers:
        assert time.monotonic() < end, "connections that are closed are forgotten"
        time.sleep(0.01)


# --- Who is let in ----------------------------------------------------------------------------------------


def test_only_this_machine_can_reach_it(ask: Client) -> None:
    assert ask.server.socket.getsockname()[0] == "127.0.0.1"
    assert ask.server.address == f"http://127.0.0.1:{ask.server.port}/{ask.server.token}/"
    assert len(ask.server.token) >= 40


def test_the_token_is_needed_for_everything(ask: Client) -> None:
    token, place = ask.server.token, ask.server.place
    wrong = ["/", "//", "/app.js", "/api/summary", "/favicon.ico", "/%00/", "*"]
    wrong += [f"/{token[:-1]}/", f"/{token}x/", f"/x/{token}/", f"/{token.swapcase()}/"]
    wrong += [f"http://127.0.0.1/{token}/", f"/?{token}", f"/{place}", f"/{place}/", f"/{place}/app.js"]
    wrong += [f"/{place}/api/summary", f"/{place}x/", f"/{place}/enter/", f"/{place}/{token}/"]
    for path in wrong:
        for method in ("GET", "HEAD", "POST"):
            got = ask(path, raw=True, method=method)
            assert got.status == 403, path
            assert got.body == (b"" if method == "HEAD" else b'{"error":"forbidden"}')
            assert token not in str(got.headers)
    assert ask().status == 200
    assert ask.sends(b"GET /\xff\xfe/ HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize("path", ["", "/", "/api/summary", "/index.html?q=1"])
def test_the_token_is_exchanged_for_a_cookie(ask: Client, path: str) -> None:
    """The address of the page has no token: nobody finds it in a browser's history, or is sent it."""
    token, place = ask.server.token, ask.server.place
    assert not ask.server.entered.is_set()
    got = ask(f"/{token}{path}", raw=True)
    assert (got.status, got.headers["location"]) == (302, f"/{place}/enter")
    cookie = f"holdfast={token}; Path=/{place}/; HttpOnly; SameSite=Strict"
    assert got.headers["set-cookie"] == cookie
    assert ask.server.entered.is_set()
    # A browser that comes from elsewhere sends no strict cookie: this page leads on, and says nothing.
    got = ask(f"/{place}/enter", raw=True)
    assert (got.status, got.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b'content="0; url=./"' in got.body
    assert token not in str(got)
    assert ask(f"/{place}/", raw=True).status == 403
    got = ask(f"/{place}/", raw=True, Cookie=cookie.partition(";")[0])
    assert (got.status, got.body) == (200, PAGE["index.html"])
    assert token not in str(got)


def test_only_the_cookie_of_this_server_is_taken(ask: Client) -> None:
    token = ask.server.token
    wrong = ["", "holdfast", "holdfast=", f"holdfast={token}x", f"Holdfast={token}", f"other={token}", token]
    wrong += [f"holdfast={ask.server.place}", f"x=holdfast={token}", f'holdfast="{token}"', "holdfast=\xff"]
    for cookie in wrong:
        assert ask(Cookie=cookie).status == 403, cookie
    # Another server of this machine may have given one of the same name.
    for cookie in (f"a=b; holdfast={token}", f"holdfast=x;holdfast={token};c", f"holdfast={token}"):
        assert ask(Cookie=cookie).status == 200, cookie


def test_two_servers_have_two_tokens(workspace: FakeWorkspace, page: Path) -> None:
    with (
        ExplorerServer(Explorer(workspace), folder=page) as a,
        ExplorerServer(Explorer(workspace), folder=page) as b,
    ):
        assert len({a.token, b.token, a.place, b.place}) == 4


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{}", "127.0.0.1", "127.0.0.1:1", "localhost.:{}", ""]
)
def test_a_foreign_host_is_refused(ask: Client, host: str) -> None:
    """A site whose name points at 127.0.0.1 for a moment sends its own name, even if it knew the token."""
    got = ask(Host=host.format(ask.server.port))
    assert got.status == 403
    assert got.json() == {"error": "forbidden"}


@pytest.mark.parametrize("host", ["127.0.0.1:{}", "localhost:{}", "LOCALHOST:{}"])
def test_its_own_names_are_let_in(ask: Client, host: str) -> None:
    assert ask(Host=host.format(ask.server.port)).status == 200


def test_no_host_or_two_are_refused(ask: Client) -> None:
    line = f"GET /{ask.server.token}/ HTTP/1.1\r\n".encode()
    own = f"Host: 127.0.0.1:{ask.server.port}\r\n".encode()
    end = b"Connection: close\r\n\r\n"
    assert ask.sends(line + end).startswith(b"HTTP/1.1 403")
    assert ask.sends(line + own + b"Host: evil\r\n" + end).startswith(b"HTTP/1.1 403")
    assert ask.sends(line + own + end).startswith(b"HTTP/1.1 302")
    assert ask.sends(ask.head() + end).startswith(b"HTTP/1.1 200")
    assert ask.sends(ask.head() + b"Host: evil\r\n" + end).startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_nothing_but_reading(ask: Client, method: str) -> None:
    for got in (
        ask("api/summary", method=method),
        ask(f"/{ask.server.token}/", raw=True, method=method),
        ask("enter", method=method),
    ):
        assert got.status == 405
        assert got.headers["allow"] == "GET, HEAD"
        assert got.headers["connection"] == "close"


def test_a_body_is_no_second_request(ask: Client) -> None:
    """What is sent along with a request is not taken for the next one."""
    second = ask.head() + b"\r\n"
    for method in ("POST", "GET"):
        first = ask.head("api/summary", method) + b"Content-Length: %d\r\n\r\n" % len(second)
        got = ask.sends(first + second)
        assert got.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "text", [b"\x16\x03\x01\r\n\r\n", b"GET\r\n\r\n", b"BREW / HTTP/1.1\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"]
)
def test_what_is_no_request(ask: Client, text: bytes) -> None:
    got = ask.sends(text)
    head, _, body = got.partition(b"\r\n\r\n")
    assert b"<" not in body  # no page of http.server's own
    if head:
        assert b"Content-Security-Policy" in head or body == b""
    assert b"Python" not in head


def test_long_requests_are_refused(ask: Client) -> None:
    assert ask("x" * 70_000).status == 414
    assert ask(X="y" * 70_000).status == 431


# --- What every answer carries ----------------------------------------------------------------------------


def test_headers_of_every_answer(ask: Client) -> None:
    paths = ["", "app.js", "api/summary", "api/table?id=404", "api/table?id=500", "api/none", "nothing"]
    answers = [ask(path) for path in paths]
    answers += [
        ask("/", raw=True),
        ask(f"/{ask.server.token}", raw=True),
        ask(method="POST"),
        ask(method="HEAD"),
    ]
    answers += [ask("x" * 70_000)]
    for got in answers:
        for name, value in server.HEADERS.items():
            assert got.headers[name.lower()] == value
        assert got.headers["server"] == "holdfast"
        assert "access-control-allow-origin" not in got.headers
    policy = server.HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


def test_nothing_is_said_on_the_terminal(ask: Client, capfd: pytest.CaptureFixture[str]) -> None:
    for path in ("", "api/summary", "api/table?id=500", "nothing"):
        ask(path)
    ask("/", raw=True)
    with socket.create_connection(("127.0.0.1", ask.server.port)) as s:  # a browser that hangs up
        s.sendall(ask.head("api/component?id=1")[:-10])
    all_gone(ask.server)
    assert capfd.readouterr() == ("", "")


def test_a_traceback_if_asked_for(ask: Client, capfd: pytest.CaptureFixture[str]) -> None:
    ask.server.debug = True
    ask("api/table?id=500")
    assert "RuntimeError" in capfd.readouterr().err


def test_idle_connections_are_closed(ask: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server._Handler, "timeout", 0.05)
    for text in (b"", b"GET / HTTP/1.1\r\nHo"):
        with contextlib.suppress(ConnectionError):  # closed before it was sent, on a busy machine
            assert ask.sends(text) == b""


def test_a_connection_is_kept_for_more(ask: Client) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", ask.server.port, timeout=PATIENCE_S)
    for method in ("GET", "HEAD", "GET"):
        connection.request(method, f"/{ask.server.place}/api/summary", headers={"Cookie": ask.cookie})
        used = connection.sock
        assert connection.getresponse().read() or method == "HEAD"
        assert connection.sock is used
    connection.close()


def test_many_idle_connections_keep_nobody_out(ask: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_STRANGERS", 5)
    address = ("127.0.0.1", ask.server.port)
    kept = http.client.HTTPConnection(*address, timeout=PATIENCE_S)
    kept.request("GET", f"/{ask.server.place}/api/summary", headers={"Cookie": ask.cookie})
    kept.getresponse().read()
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(address, timeout=PATIENCE_S)) for _ in range(12)]
        for i, one in enumerate(idle[:8]):
            with contextlib.suppress(OSError):  # hung up on already
                one.sendall(b"GET / HTTP/1.1\r\nHo" if i % 2 else b"")
        assert ask("api/summary").status == 200
        for one in idle[:6]:  # the oldest were hung up on
            with contextlib.suppress(ConnectionResetError):
                assert one.recv(1) == b""
        for one in idle[-3:]:
            one.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert one.recv(12) == b"HTTP/1.1 403"
        # Whoever knows the token is not hung up on.
        kept.request("GET", f"/{ask.server.place}/api/summary", headers={"Cookie": ask.cookie})
        assert kept.getresponse().status == 200
    kept.close()
    all_gone(ask.server)


def test_connections_end_with_the_server(workspace: FakeWorkspace, page: Path) -> None:
    """One that is kept for more is hung up on at once, not when it was idle for long."""
    with answering(ExplorerServer(Explorer(workspace), folder=page)) as running:
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE_S)
        cookie = {"Cookie": Client(running).cookie}
        connection.request("GET", f"/{running.place}/api/summary", headers=cookie)
        connection.getresponse().read()
        kept = connection.sock
    assert kept.recv(1) == b""
    connection.close()


def test_small_answers_are_sent_at_once(ask: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Header and body are two writes, and the second one does not wait."""
    seen = []
    admit = ask.server.admit

    def spied(request: socket.socket) -> None:
        if request.fileno() >= 0:
            seen.append(request.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        admit(request)

    monkeypatch.setattr(ask.server, "admit", spied)
    ask("api/summary")
    assert seen[0]


# --- The files of the page --------------------------------------------------------------------------------


def test_files(ask: Client) -> None:
    for name, kind in {
        "": "text/html; charset=utf-8",
        "index.html": "text/html; charset=utf-8",
        "app.js": "text/javascript; charset=utf-8",
        "style.css": "text/css; charset=utf-8",
        "icons/mark.svg": "image/svg+xml",
    }.items():
        got = ask(name)
        assert (got.status, got.headers["content-type"]) == (200, kind)
        assert got.body == PAGE[name or "index.html"]


@pytest.mark.parametrize(
    "path",
    [
        "../server.py",
        "..%2fserver.py",
        "%2e%2e/server.py",
        "icons/../app.js",
        "icons/",
        "icons",
        "/etc/passwd",
        "//etc/passwd",
        "..\\server.py",
        "app.js%00.html",
        "app.js/",
        "APP.JS",
        "secret.py",
        "api",
        "api/",
        "api/../app.js",
        "api/__class__",
        "api/answer",
        "api/Summary",
    ],
)
def test_no_path_leads_elsewhere(ask: Client, path: str) -> None:
    got = ask(path)
    assert got.status == 404
    assert set(got.json()) == {"error"}


def test_a_file_that_comes_later_is_not_served(ask: Client, page: Path) -> None:
    (page / "later.js").write_bytes(b"x")
    assert ask("later.js").status == 404


def test_head(ask: Client) -> None:
    for path in ("", "app.js", "api/summary", "nothing", "api/table?id=404"):
        for encoding in ("identity", "gzip"):
            got, head = (ask(path, method=m, Accept_Encoding=encoding) for m in ("GET", "HEAD"))
            assert head.body == b""
            assert (head.status, head.headers["content-length"]) == (got.status, str(len(got.body)))


def test_gzip(ask: Client) -> None:
    for path in ("app.js", "api/component?id=1"):
        plain = ask(path)
        assert "content-encoding" not in plain.headers
        assert len(plain.body) > server.GZIP_FROM
        zipped = ask(path, Accept_Encoding="br, gzip")
        assert zipped.headers["content-encoding"] == "gzip"
        assert gzip.decompress(zipped.body) == plain.body
        assert len(zipped.body) < len(plain.body) / 10
        assert "content-encoding" not in ask(path, Accept_Encoding="gzip;q=0").headers
    assert "content-encoding" not in ask("api/summary", Accept_Encoding="gzip").headers  # small


# --- The answers ------------------------------------------------------------------------------------------


def test_routes(ask: Client) -> None:
    def told(path: str) -> dict[str, Any]:
        got = ask(f"api/{path}")
        assert got.status == 200, got.body
        document: dict[str, Any] = got.json()
        for name in ("names", "lake", "labels"):
            document.pop(name, None)
        return document

    assert told("components") == {"limit": 2_000}
    assert told("component?id=3&max_edges=9") == {"id": 3, "max_edges": 9}
    assert told("component?id=3") == {"id": 3, "max_edges": lake_answers.USUAL_EDGES}
    assert told("cluster?component=1&id=2") == {
        "component": 1,
        "id": 2,
        "max_edges": lake_answers.USUAL_EDGES,
    }
    assert told("table?id=5") == {"id": 5}
    assert told("ind?dependent=5&referenced=6") == {"dependent": 5, "referenced": 6, "limit": 100}
    assert told("search?q=a%26b") == {"q": "a&b", "what": "all", "limit": 50}
    assert told("search?q=&what=value&limit=1000") == {"q": "", "what": "value", "limit": 1000}


def test_summary(ask: Client) -> None:
    told = ask("api/summary").json()
    assert told["lake"] == {"names": HOSTILE, "lake": 1, "n_tables": 3, "version": 1, "changed": 1}
    tables = [{"name": name, "n_rows": 7, "kinds": ["ucc", "fd"]} for name in HOSTILE[:3]]
    assert told["workspace"] == {"version": 1, "tables": tables, "nouns": NOUNS}


def test_hostile_names_stay_texts(ask: Client) -> None:
    got = ask("api/table?id=1")
    assert got.json()["names"] == HOSTILE
    assert b"\x00" not in got.body
    assert b"\n" not in got.body


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("table", "'id' is missing"),
        ("table?id=", "''; expected a whole number from 0"),
        ("table?id=-1", "'-1'; expected a whole number"),
        ("table?id=1.5", "'1.5'; expected"),
        ("table?id=%2B1", "'+1'; expected"),
        ("table?id=1_0", "'1_0'; expected"),
        ("table?id=%D9%A3", "expected a whole number"),
        ("table?id=99999999999999999999999", "expected a whole number"),
        ("table?id=2147483648", "from 0 to 2,147,483,647"),
        ("table?id=1&id=2", "twice"),
        ("table?id=1&x=2", "'x' is not known. Known: id."),
        ("summary?x=2", "'x' is not known. There is none."),
        ("table?id=%FF", "not UTF-8"),
        ("table?" + "&".join(f"a{i}=1" for i in range(30)), "more than 20"),
        (
            "component?id=1&max_edges=1000001",
            "'max_edges' is '1000001'; expected a whole number from 0 to 1,000,000",
        ),
        ("cluster?id=1", "'component' is missing"),
        ("ind?dependent=1", "'referenced' is missing"),
        ("ind?dependent=1&referenced=1", "always in itself"),
        ("search", "'q' is missing"),
        ("search?q=a&what=x", "'x'; expected one of all, table, column, value"),
        ("search?q=a&limit=0", "from 1 to 1,000"),
        ("search?q=" + "a" * 10_001, "longer than 10,000"),
        ("workspace/dependencies?table=t&kind=x", "expected one of ucc, fd"),
        ("workspace/dependencies?kind=fd", "'table' is missing"),
        ("workspace/dependencies?table=t&least_score=1.5", "from 0 to 1"),
    ],
)
def test_wrong_parameters(ask: Client, path: str, told: str) -> None:
    got = ask(f"api/{path}")
    assert got.status == 400
    assert told in got.json()["error"]


def test_errors(ask: Client) -> None:
    got = ask("api/table?id=404")
    assert (got.status, got.json()) == (404, {"error": "the lake has no table 404."})
    assert ask("api/workspace/log?table=nobody").status == 404
    got = ask("api/none")
    assert (got.status, got.json()) == (404, {"error": "there is nothing at api/none."})
    got = ask("api/table?id=500")
    assert got.status == 500
    assert got.json()["error"].startswith("internal error: RuntimeError: 'a bug: xxx")
    assert len(got.body) < 400
    got = ask("api/table?id=501")
    assert (got.status, got.json()) == (500, {"error": "the file 'lake/x' is cut short."})
    assert ask("api/table?id=502").status == 500  # NaN is no JSON
    assert ask("api/table?id=1").status == 200  # the lock is free


def test_a_workspace_without_a_lake(ask: Client, workspace: FakeWorkspace) -> None:
    workspace.linked = False
    assert ask("api/summary").json()["lake"] is None
    for path in ("components", "component?id=0", "cluster?component=0&id=0", "table?id=0", "search?q=a"):
        got = ask(f"api/{path}")
        assert got.status == 404
        assert "link one with 'holdfast link'" in got.json()["error"]


def test_a_new_version_is_seen(ask: Client, workspace: FakeWorkspace) -> None:
    assert ask("api/components").json()["lake"] == 1
    assert ask("api/workspace/log").json() == {"entries": []}
    at = datetime(2026, 1, 1, tzinfo=UTC)
    workspace.version, workspace.entries = 2, [LogEntry(2, at, ("t",), "apply", None, ({},), ())]
    assert ask("api/components").json()["lake"] == 2
    assert ask("api/summary").json()["lake"]["version"] == 2
    assert [e["version"] for e in ask("api/workspace/log").json()["entries"]] == [2]


def test_answers_say_the_version(ask: Client, workspace: FakeWorkspace) -> None:
    assert ask("api/summary").headers["holdfast-version"] == "1"
    workspace.version = 2
    assert ask("api/table?id=404").headers["holdfast-version"] == "2"
    assert "holdfast-version" not in ask("index.html").headers
    assert "holdfast-version" not in ask("/wrong/api/summary", raw=True).headers


def test_a_lake_that_did_not_change_stays_open(ask: Client, workspace: FakeWorkspace) -> None:
    """A batch for a tracked table must not cost the lake what it has read so far."""
    workspace.lake_state = "as it was"
    assert ask("api/components").json()["lake"] == 1
    workspace.version = 2
    assert ask("api/components").json()["lake"] == 1  # the reader that was opened at version 1
    assert ask("api/summary").json()["lake"]["version"] == 2
    workspace.version, workspace.lake_state = 3, "another"
    assert ask("api/components").json()["lake"] == 3
    workspace.version, workspace.linked = 4, False
    assert ask("api/components").status == 404


def test_files_that_went_with_a_commit(ask: Client, workspace: FakeWorkspace) -> None:
    """Another process commits and tidies up between our look at the version and our reading."""

    class Stale(FakeLake):
        def components(self, limit: int) -> Told:
            if self.version == 1:
                workspace.version = 2
                raise DamagedFileError("the file 'lake/x' is missing.")
            return super().components(limit)

    workspace.opened = Stale
    assert ask("api/components").json()["lake"] == 2


def test_many_at_once(ask: Client) -> None:
    paths = ["api/summary", "api/component?id=1", "api/table?id=404", "app.js", "api/search?q=x"] * 12
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda p: ask(p, Accept_Encoding="gzip"), paths))
    assert [a.status for a in answers] == [200, 200, 404, 200, 200] * 12
    bodies = {path: {a.body for p, a in zip(paths, answers, strict=True) if p == path} for path in paths}
    assert all(len(found) == 1 for found in bodies.values())


# --- Tracked tables ---------------------------------------------------------------------------------------


def test_log(ask: Client, workspace: FakeWorkspace) -> None:
    change = ChangeRow("t", "ucc", "broke", {"kind": "ucc", "table": "t", "columns": ["a"]}, "why", None)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    workspace.entries = [
        LogEntry(v, at, ("t",), "apply", None, ({},), (change,) * (300 if v == 250 else 0))
        for v in range(1, 251)
    ]
    entries = ask("api/workspace/log").json()["entries"]
    assert [e["version"] for e in entries] == list(range(250, 50, -1))
    assert (entries[0]["n_changes"], len(entries[0]["changes"])) == (300, 200)
    assert {c["text"] for c in entries[0]["changes"]} == {"[a]"}
    assert entries[1] == {**workspace.entries[248].to_dict(), "n_changes": 0, "n_muted": 0}


def test_a_real_workspace(tmp_path: Path, page: Path) -> None:
    """The real thing fits: empty, then with a table that another process has tracked."""
    path = tmp_path / "my.hold"
    with holdfast.open(path, engine="inline") as writer, holdfast.open(path, engine="inline") as reader:
        explorer = Explorer(reader)
        assert explorer.answer("summary", {}) == {"lake": None, "workspace": EMPTY, "write": False}
        with pytest.raises(UnknownTableError):
            explorer.answer("workspace/dependencies", {"table": "people"})
        assert explorer.answer("workspace/log", {}) == {"entries": []}
        writer.track(
            "people", pa.table({"name": ["a", "b"], "age": [1, 1]}), kinds=("ucc", "fd", "ind", "dc")
        )
        told = explorer.answer("summary", {})["workspace"]
        assert told["version"] == 1
        assert [(t["name"], t["n_rows"]) for t in told["tables"]] == [("people", 2)]
        json.dumps(explorer.answer("workspace/dependencies", {"table": "people"}))
        json.dumps(explorer.answer("workspace/table", {"name": "people"}))
        json.dumps(explorer.answer("workspace/log", {"table": "people"}))
        with pytest.raises(UnknownTableError):
            explorer.answer("workspace/log", {"table": "nobody"})


# --- A lake -----------------------------------------------------------------------------------------------


@pytest.fixture
def lake(workspace: FakeWorkspace, tmp_path: Path) -> LakeReader:
    """Tables with hostile names; the values of each are in those of the first."""
    names = [name for name in HOSTILE if name != "\ud800"]
    texts = [f"{name}!" for name in names]
    tables = [
        (name, (f"{name}?", "n"), (texts[i:] + texts[:2], "7" * (len(texts) - i + 2)))
        for i, name in enumerate(names)
    ]
    tables[0] = (names[0], (f"{names[0]}?", "empty"), (texts, [None] * len(texts)))
    root = tmp_path / "lake.hold"
    root.mkdir()
    reader = LakeReader(root, make_lake(root, tables[:6], tables[6:], dropped=[names[2]]), 1)
    workspace.opened = lambda version, state: reader  # type: ignore[assignment,return-value]
    return reader


def test_a_lake(ask: Client, lake: LakeReader) -> None:
    def told(path: str) -> Any:
        got = ask(f"api/{path}")
        assert got.status == 200, got.body
        return got.json()

    summary = told("summary")["lake"]
    assert summary["n_tables"] == lake.state.n_tables
    [circle, *_] = told("components")["components"]
    assert told("component?id=0") == lake.component(0).to_dict()
    drawn = told("component?id=0&max_edges=2")
    assert drawn["n_tables"] == circle["n_tables"] == len(drawn["nodes"]["id"])
    assert len(drawn["edges"]["from"]) == 2 < drawn["n_edges"]
    labels = dict(zip(drawn["nodes"]["id"], drawn["nodes"]["label"], strict=True))
    for number, name in labels.items():
        table = told(f"table?id={number}")
        assert table["name"] == name
        assert table["columns"][0]["name"] == f"{name}?"
        tables = told(f"search?q={quote(name)}&what=table")["tables"]
        assert number in [t["id"] for t in tables] or not name
        [value] = told(f"search?q={quote(name)}!&what=value")["values"]
        assert value["value"] == f"{name}!"
    ind = table["inds"][0]
    ends = f"dependent={ind['dependent']['id']}&referenced={ind['referenced']['id']}"
    both = told(f"ind?{ends}")
    assert {name: both[name] for name in ind} == ind
    assert len(both["matches"]) == ind["shared"]


def test_what_a_lake_has_not(ask: Client, lake: LakeReader) -> None:
    assert ask("api/table?id=2").status == 404  # dropped
    assert ask("api/table?id=1000").status == 404
    assert ask("api/ind?dependent=0&referenced=1000").status == 404
    for path in ("component?id=1000", "cluster?component=0&id=0", "cluster?component=1000&id=0"):
        got = ask(f"api/{path}")
        assert got.status in (400, 404)
        assert "has no c" in got.json()["error"]


# --- Starting ---------------------------------------------------------------------------------------------


def test_a_port_that_is_taken(ask: Client, workspace: FakeWorkspace, page: Path) -> None:
    with pytest.raises(UsageError, match=rf"port {ask.server.port} of 127\.0\.0\.1: .*Give another --port"):
        ExplorerServer(Explorer(workspace), ask.server.port, folder=page)


def test_the_page_is_in_the_package() -> None:
    found = server.page_files()
    assert "index.html" in found
    assert all("\\" not in name and ".." not in name for name in found)


# --- The command ------------------------------------------------------------------------------------------


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A workspace without anything in it."""
    holdfast.open(tmp_path / "my.hold", engine="inline").close()
    return Shell(tmp_path)


def test_explore_serves_until_it_is_interrupted(shell: Shell) -> None:
    command = [sys.executable, "-c", WHAT_IS_IMPORTED, "-w", "my.hold", "explore", "--no-browser"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=shell.folder, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:[0-9]+/[A-Za-z0-9_-]{40,}/", address)
        cookies = urllib.request.HTTPCookieProcessor()
        browser = urllib.request.build_opener(cookies)
        with browser.open(address, timeout=PATIENCE_S) as got:
            page = got.url.removesuffix("enter")
            assert b"url=./" in got.read()
        with browser.open(f"{page}api/summary", timeout=PATIENCE_S) as got:
            assert json.load(got) == {"lake": None, "workspace": EMPTY, "write": False}
        with browser.open(page, timeout=PATIENCE_S) as got:
            assert b"<title>" in got.read()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (0, "", f"{exploring.ONLY_READS}; Ctrl-C ends it\nended\n[]\n")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Queue[str]:
    """What browsers are started with. There is a screen, and the server waits until one is started."""
    addresses: Queue[str] = Queue()

    def start(address: str) -> bool:
        addresses.put(address)
        return True

    monkeypatch.setattr(webbrowser, "open", start)
    monkeypatch.setattr(exploring, "_has_screen", lambda: True)
    return addresses


def test_a_browser_is_started_with_a_file_that_leads_to_the_page(
    shell: Shell, opened: Queue[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other users see a browser's command line: they must not get in, however fast they are."""
    files: list[Path] = []

    def serve(self: ExplorerServer) -> None:
        address = opened.get(timeout=PATIENCE_S)
        assert self.token not in address
        assert self.place not in address
        file = Path(urllib.request.url2pathname(address.removeprefix("file://")))
        files.append(file)
        assert [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent)] == [0o600, 0o700]
        assert {path.stat().st_uid for path in (file, file.parent)} == {os.geteuid()}
        assert f'content="0; url={self.address}"' in file.read_text()
        self.entered.set()  # as the first request does
        end = time.monotonic() + PATIENCE_S
        while file.exists():
            assert time.monotonic() < end, "the file goes when somebody has come by it"
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(ExplorerServer, "serve_forever", serve)
    assert shell("explore").code == 0
    assert len(files) == 1
    assert not files[0].parent.exists()


def test_the_file_goes_at_the_end_though_nobody_came(
    shell: Shell, opened: Queue[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def serve(self: ExplorerServer) -> None:
        opened.put(opened.get(timeout=PATIENCE_S))
        raise KeyboardInterrupt

    monkeypatch.setattr(ExplorerServer, "serve_forever", serve)
    assert shell("explore").code == 0
    file = Path(urllib.request.url2pathname(opened.get().removeprefix("file://")))
    assert file.name == "page.html"
    assert not file.parent.exists()


def test_no_browser_if_not_wanted_or_without_a_place_for_the_file(
    shell: Shell, opened: Queue[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def serve(self: ExplorerServer) -> None:
        assert threading.current_thread() is threading.main_thread()
        assert all(thread.name != "browser" for thread in threading.enumerate())
        raise KeyboardInterrupt

    monkeypatch.setattr(ExplorerServer, "serve_forever", serve)
    assert shell("explore", "--no-browser").code == 0
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    outcome = shell("explore")
    assert outcome.code == 0
    assert outcome.out.startswith("http://127.0.0.1:")
    assert opened.empty()


def test_a_screen_and_a_terminal_are_needed_for_a_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert not exploring._has_screen()


def test_explore_says_why_it_cannot(shell: Shell, ask: Client) -> None:
    outcome = shell("explore", "--no-browser", "--port", str(ask.server.port))
    assert (outcome.code, outcome.out) == (2, "")
    assert f"UsageError: cannot listen on port {ask.server.port}" in outcome.err
    assert shell("explore", "--port", "70000").code == 2
    missing = Shell(shell.folder / "nowhere")("explore", "--no-browser")
    assert (missing.code, missing.out) == (2, "")

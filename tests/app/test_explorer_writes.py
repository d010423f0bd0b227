"""What the page may change: pins and mutes, by requests of its own, where the server was started to write."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from app.serving import explored
from holdfast.app.explorer import ExplorerServer
from holdfast.app.explorer.server import MOST_BODY
from holdfast.core.words.dependency import Fd, Ind, Side, Ucc
from holdfast.core.words.sameness import said
from holdfast.errors import ConflictError

PATIENCE_S = 90.0
ACTIONS = ("pin", "unpin", "mute", "unmute")
OWN = {"Content-Type": "application/json", "Holdfast-Write": "1"}
KEY = {"table": "orders", "ask": "[id]"}


@dataclass
class Client:
    server: ExplorerServer

    def head(self) -> dict[str, str]:
        return {"Cookie": f"holdfast={self.server.token}"}

    def __call__(
        self,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        method: str = "POST",
    ) -> tuple[int, dict[str, Any], dict[str, str]]:
        """(status, answer, headers) of a request that has the cookie."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)
        try:
            given = {**self.head(), **(OWN if headers is None else headers)}
            connection.request(method, f"/{self.server.place}/api/{path}", body, given)
            got = connection.getresponse()
            text = got.read()
            answer = json.loads(text) if text else {}
            return got.status, answer, {name.lower(): value for name, value in got.getheaders()}
        finally:
            connection.close()

    def act(self, action: str, **fields: Any) -> dict[str, Any]:
        status, answer, _ = self(f"workspace/{action}", json.dumps(fields).encode())
        assert status == 200, answer
        return answer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "my.hold"
    with holdfast.open(path, engine="inline") as ws:
        orders = pa.table(
            {
                "id": [1, 2, 3, 4],
                "zip": ["a", "a", "b", "b"],
                "city": ["x", "x", "y", "y"],
                "who": [1, 1, 2, 3],
            }
        )
        people = pa.table({"no": [1, 2, 3, 4, 5], "name": ["a", "b", "c", "d", "e"]})
        kinds = ("ucc", "fd", "ind", "row", "profile")
        ws.track_all({"orders": orders, "people": people}, kinds=kinds)
    return path


@contextmanager
def served(path: Path, *, write: bool) -> Iterator[Client]:
    with holdfast.open(path, engine="inline") as ws, explored(ws, write=write) as server:
        yield Client(server)


@pytest.fixture
def ask(path: Path) -> Iterator[Client]:
    with served(path, write=True) as client:
        yield client


def state(path: Path) -> tuple[int, list[str], list[str]]:
    """(version, what is pinned, what is muted), as another process sees it."""
    with holdfast.open(path, engine="inline") as ws:
        return ws.version, [str(p) for p in ws.pins()], [str(m) for m in ws.muted()]


def test_what_the_page_does_is_in_the_workspace(ask: Client, path: Path) -> None:
    assert ask("summary", method="GET", headers={})[1]["write"] is True
    terms = {"at_most": "1%", "severity": "warning", "reason": "why", "owner": "ann"}
    status, answer, headers = ask("workspace/pin", json.dumps({**KEY, **terms}).encode())
    assert (status, answer["version"], headers["holdfast-version"]) == (200, 2, "2")
    assert {name: answer["pinned"][0][name] for name in terms} == terms
    assert state(path) == (2, ["[id]"], [])
    assert ask.act("unpin", **KEY)["version"] == 3
    assert state(path) == (3, [], [])
    assert ask.act("mute", **KEY, reason="of course")["muted"]["reason"] == "of course"
    assert state(path) == (4, [], ["[id]"])
    assert ask.act("mute", **KEY)["version"] == 4  # as it was
    assert [m["reason"] for m in ask.act("pin", **KEY)["unmuted"]] == ["of course"]
    assert state(path) == (5, ["[id]"], [])
    ask.act("unpin", **KEY)
    ask.act("mute", **KEY)
    assert ask.act("unmute", **KEY)["version"] == 8
    assert state(path) == (8, [], [])


def test_whatever_is_listed_can_be_named(ask: Client, path: Path) -> None:
    """By its text, or by what it says as JSON, which no name can make ambiguous."""
    listed = ask("workspace/dependencies?table=orders", method="GET", headers={})[1]["dependencies"]
    assert {d["kind"] for d in listed} == {"ucc", "fd", "ind", "row", "profile"}
    for d in listed:
        table = d["dependent"]["table"] if d["kind"] == "ind" else d["table"]
        ask.act("mute", table=table, ask=d["text"])
    told = ask("workspace/dependencies?table=orders", method="GET", headers={})[1]
    assert told["n_muted"] == told["n"] == len(listed)
    assert {(d["role"], d["muted"], d["pinned"]) for d in told["dependencies"]} == {("muted", True, False)}
    ind = Ind(Side("orders", ("who",)), Side("people", ("no",)))
    for dependency in (Ucc("orders", ("id",)), Fd("orders", ("zip",), "city"), ind):
        ask.act("unmute", table="orders", ask=json.dumps(said(dependency)))
        ask.act("pin", table="orders", ask=json.dumps(said(dependency)))
    told = ask("workspace/dependencies?table=orders", method="GET", headers={})[1]
    pinned = [d["text"] for d in told["dependencies"] if d["pinned"]]
    assert sorted(pinned) == ["[id]", "orders[who] in people[no]", "zip -> city"]


def test_what_the_workspace_refuses_is_told_as_it_says_it(ask: Client, path: Path) -> None:
    ask.act("pin", **KEY)
    before = state(path)
    cases = [
        ("mute", KEY, 400, "is pinned, so it cannot be muted"),
        ("unmute", KEY, 400, "is not muted"),
        ("unpin", {"table": "orders", "ask": "[zip]"}, 400, "is not pinned"),
        ("pin", {**KEY, "at_most": "many"}, 400, "is no tolerance"),
        ("pin", {**KEY, "severity": "grave"}, 400, "expected one of error, warning, info"),
        ("pin", {**KEY, "terms": "x"}, 400, "the parameter 'terms' is not known"),
        ("mute", {"table": "orders"}, 400, "the parameter 'ask' is missing"),
        ("mute", {"table": "orders", "ask": "[nothing]"}, 404, "no column 'nothing'"),
        ("mute", {"table": "nobody", "ask": "[id]"}, 404, "nobody"),
        ("mute", {"table": "orders", "ask": '{"kind": "fd"}'}, 400, "names no dependency"),
        ("mute", {"table": "orders", "ask": "{}"}, 404, "no column '{}'"),
        ("mute", {"table": "people", "ask": json.dumps(said(Ucc("orders", ("id",))))}, 400, "not 'people'"),
    ]
    for action, fields, expected, words in cases:
        status, answer, _ = ask(f"workspace/{action}", json.dumps(fields).encode())
        assert (status, words in answer["error"]) == (expected, True), (action, fields, answer)
    assert state(path) == before


def test_a_conflict_is_told(ask: Client, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = state(path)

    def append(*_: object) -> int:
        raise ConflictError("another writer committed first. Run it again.")

    monkeypatch.setattr("holdfast.core.rows.writer.Writer.append", append)
    for action in ("pin", "mute"):
        status, answer, _ = ask(f"workspace/{action}", json.dumps(KEY).encode())
        assert (status, answer) == (409, {"error": "another writer committed first. Run it again."})
    monkeypatch.undo()
    assert state(path) == before


# --- Who may --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ACTIONS)
def test_a_server_that_only_reads(path: Path, action: str) -> None:
    with served(path, write=False) as client:
        status, answer, _ = client(f"workspace/{action}", json.dumps(KEY).encode())
        assert (status, "explore --write" in answer["error"]) == (403, True)
        assert client("summary", method="GET", headers={})[1]["write"] is False
    assert state(path)[0] == 1


FORM = "application/x-www-form-urlencoded"
FOREIGN = {
    "no header": {"Content-Type": "application/json"},
    "another value": {**OWN, "Holdfast-Write": "0"},
    "another origin": {**OWN, "Origin": "https://example.com"},
    "no origin": {**OWN, "Origin": "null"},
    "another port": {**OWN, "Origin": "http://127.0.0.1:1"},
    "another site": {**OWN, "Sec-Fetch-Site": "cross-site"},
    "same site": {**OWN, "Sec-Fetch-Site": "same-site"},  # another port of this machine
}


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("action", ACTIONS)
def test_what_is_not_from_the_page(ask: Client, path: Path, action: str, headers: dict[str, str]) -> None:
    status, answer, told = ask(f"workspace/{action}", json.dumps(KEY).encode(), headers)
    assert (status, "not from this page" in answer["error"], told["connection"]) == (403, True, "close")
    assert state(path)[0] == 1


def test_the_page_tells_where_it_is_from(ask: Client, path: Path) -> None:
    for host in ask.server.hosts:
        origin = {**OWN, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
        assert ask("workspace/mute", json.dumps(KEY).encode(), origin)[0] == 200


@pytest.mark.parametrize(
    "kind", ["", "text/plain", FORM, "multipart/form-data; boundary=x", "application/jsonp"]
)
def test_types_that_forms_have(ask: Client, path: Path, kind: str) -> None:
    headers = {"Holdfast-Write": "1", **({"Content-Type": kind} if kind else {})}
    status, answer, _ = ask("workspace/pin", json.dumps(KEY).encode(), headers)
    assert (status, "application/json" in answer["error"]) == (400, True)
    assert state(path)[0] == 1


def test_a_foreign_host_or_no_cookie(ask: Client, path: Path) -> None:
    body = json.dumps(KEY).encode()
    assert ask("workspace/pin", body, {**OWN, "Host": "example.com"})[0] == 403
    assert ask("workspace/pin", body, {**OWN, "Cookie": "holdfast=x"})[:2] == (403, {"error": "forbidden"})
    assert state(path)[0] == 1


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_only_post_changes_something(ask: Client, path: Path, method: str) -> None:
    body = None if method in ("GET", "HEAD") else json.dumps(KEY).encode()
    for action in ACTIONS:
        status, _, headers = ask(f"workspace/{action}", body, method=method)
        assert (status, headers["allow"]) == (405, "POST")
    assert state(path)[0] == 1


def test_other_routes_take_no_body(ask: Client) -> None:
    for route in ("summary", "workspace/dependencies", "workspace/pins", "workspace/pin/"):
        status, _, headers = ask(route, json.dumps(KEY).encode())
        assert (status, headers["allow"], headers["connection"]) == (405, "GET, HEAD", "close")


# --- What is sent ---------------------------------------------------------------------------------------

BODIES = {
    "nothing": b"",
    "no JSON": b"{",
    "a list": b"[]",
    "no texts": b'{"table": "orders", "ask": ["id"]}',
    "a number": b'{"table": "orders", "ask": 7}',
    "no UTF-8": b'{"table": "\xff", "ask": "[id]"}',
    "deep": b"[" * 30_000,
    "too long": b'{"table": "orders", "ask": "[id]", "reason": "' + b"x" * 20_000 + b'"}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_bodies_that_say_nothing(ask: Client, path: Path, body: bytes) -> None:
    status, answer, _ = ask("workspace/mute", body)
    assert (status, set(answer)) == (400, {"error"})
    assert state(path)[0] == 1


def sent(ask: Client, head: list[str], body: bytes, *, cut: bool = False) -> bytes:
    """What bytes give; with `cut` nothing more is sent after them."""
    lines = [
        f"POST /{ask.server.place}/api/workspace/mute HTTP/1.1",
        f"Host: 127.0.0.1:{ask.server.port}",
        *(f"{name}: {value}" for name, value in {**ask.head(), **OWN}.items()),
        *head,
    ]
    with socket.create_connection(("127.0.0.1", ask.server.port), timeout=PATIENCE_S) as s:
        s.sendall("".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body)
        if cut:
            s.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: s.recv(65_536), b""))


def test_lengths(ask: Client, path: Path) -> None:
    body = json.dumps(KEY).encode()
    good = f"Content-Length: {len(body)}"
    # What is larger is refused by its length alone: not a byte of it is waited for.
    for head in (
        [],
        [f"Content-Length: {MOST_BODY + 1}"],
        ["Content-Length: 99999999999999999999"],
        ["Content-Length: -1"],
        [f"Content-Length: +{len(body)}"],
        [good, good],
        ["Transfer-Encoding: chunked"],
        [good, "Transfer-Encoding: chunked"],
    ):
        got = sent(ask, head, b"")
        assert got.startswith(b"HTTP/1.1 400 "), head
        assert b"Nothing was changed" in got
    cut = sent(ask, [good], body[:-1], cut=True)
    assert cut.startswith(b"HTTP/1.1 400 ")
    assert b"cut short" in cut
    assert state(path)[0] == 1
    # What follows a body is no second request.
    assert sent(ask, [good], body + b"GET / HTTP/1.1\r\n\r\n").count(b"HTTP/1.1 ") == 1
    assert state(path) == (2, [], ["[id]"])


def test_the_largest_body(ask: Client, path: Path) -> None:
    body = json.dumps(KEY).encode()
    assert ask("workspace/mute", body + b" " * (MOST_BODY - len(body)))[0] == 200

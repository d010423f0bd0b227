"""What the page's server offers beyond answers: news of versions, TLS, limits."""

from __future__ import annotations

import contextlib
import http.client
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from app.serving import explored
from app.shell import Shell
from holdfast.app.commands import exploring
from holdfast.app.explorer import Explorer, ExplorerServer, Place, limits, listeners, server
from holdfast.app.explorer.listeners import Listeners
from holdfast.errors import DamagedFileError, UsageError

PATIENCE_S = 90.0


def until(condition: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.005)
    return found


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[holdfast.Workspace]:
    with holdfast.open(tmp_path / "my.hold", engine="inline") as made:
        made.track("t", pa.table({"a": [1, 2]}))
        yield made


class Stream:
    """A page that listens."""

    def __init__(self, running: ExplorerServer, method: str = "GET", cookie: str | None = None) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE_S)
        self.connection.request(
            method,
            f"/{running.place}/api/events",
            headers={"Cookie": f"holdfast={running.token}" if cookie is None else cookie},
        )
        self.got = self.connection.getresponse()

    def event(self) -> tuple[str, str] | None:
        """The next event; None at the end of the stream. Heartbeats are passed over."""
        fields: dict[str, str] = {}
        for line in self.got:
            text = line.decode().rstrip("\n")
            if not text and fields.get("event"):
                return fields["event"], fields.get("data", "")
            name, _, value = text.partition(":")
            fields[name] = value.strip()
        return None

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.got.close()
        self.connection.close()


# --- News -------------------------------------------------------------------------------------------------


def test_each_listener_is_told_of_every_new_version(
    ws: holdfast.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "LOOK_S", 0.01)
    with explored(ws) as running:
        streams = [Stream(running) for _ in range(3)]
        for stream in streams:
            assert stream.got.status == 200
            headers = {name.lower(): value for name, value in stream.got.getheaders()}
            assert headers["content-type"] == "text/event-stream"
            for name, value in server.HEADERS.items():
                assert headers[name.lower()] == value
            assert stream.event() == ("version", "1")
        ws.apply("t", inserts=pa.table({"a": [3]}))
        assert [stream.event() for stream in streams] == [("version", "2")] * 3
        streams.pop().close()
        ws.apply("t", inserts=pa.table({"a": [4]}))
        assert [stream.event() for stream in streams] == [("version", "3")] * 2
        for stream in streams:
            stream.close()


def test_streams_end_with_the_server(ws: holdfast.Workspace) -> None:
    with explored(ws) as running:
        stream = Stream(running)
        assert stream.event() == ("version", "1")
    assert stream.event() is None
    stream.close()
    until(lambda: not len(running.listeners))
    until(lambda: all(thread.name != "versions" for thread in threading.enumerate()))


def test_one_thread_looks_for_all_and_only_while_somebody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "LOOK_S", 0.01)
    monkeypatch.setattr(listeners, "HEARTBEAT_S", 0.01)
    looks: list[str] = []
    gone = threading.Event()

    def look() -> int:
        looks.append(threading.current_thread().name)
        return 7

    def send(line: bytes) -> None:
        if gone.is_set():
            raise ConnectionResetError

    def listen() -> None:
        with contextlib.suppress(ConnectionResetError):
            told.serve(send)

    until(lambda: all(thread.name != "versions" for thread in threading.enumerate()))  # of tests before
    told = Listeners(look)
    threads = [threading.Thread(target=listen) for _ in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: len(told) == 4 and len(looks) > 5)
    assert sum(thread.name == "versions" for thread in threading.enumerate()) == 1
    gone.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    until(lambda: all(thread.name != "versions" for thread in threading.enumerate()))
    assert (len(told), set(looks)) == (0, {"versions"})
    n = len(looks)
    time.sleep(0.05)
    assert len(looks) == n


def test_the_oldest_listener_goes_when_there_are_too_many(ws: holdfast.Workspace) -> None:
    with explored(ws) as running:
        streams = []
        for _ in range(listeners.MOST + 1):
            streams.append(Stream(running))
            assert streams[-1].event() == ("version", "1")
        assert streams[0].event() == ("full", "")
        assert streams[0].event() is None
        until(lambda: len(running.listeners) == listeners.MOST)
        for stream in streams:
            stream.close()


def test_a_listener_that_is_gone_is_noticed(ws: holdfast.Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "HEARTBEAT_S", 0.01)
    with explored(ws) as running:
        stream = Stream(running)
        assert stream.event() == ("version", "1")
        assert len(running.listeners) == 1
        stream.close()
        until(lambda: not len(running.listeners))


def test_a_look_that_fails_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "LOOK_S", 0.01)
    answers = iter([1, DamagedFileError("cut short"), 2])
    sent: list[bytes] = []

    def look() -> int:
        answer = next(answers, 2)
        if isinstance(answer, Exception):
            raise answer
        return answer

    told = Listeners(look)
    thread = threading.Thread(target=told.serve, args=(sent.append,))
    thread.start()
    until(lambda: len(sent) == 2)
    told.close()
    thread.join(PATIENCE_S)
    assert sent == [b"event: version\ndata: 1\n\n", b"event: version\ndata: 2\n\n"]
    told.serve(sent.append)  # closed: it returns at once
    assert len(sent) == 2


def test_strangers_hear_nothing(ws: holdfast.Workspace) -> None:
    with explored(ws) as running:
        with Stream(running, cookie="") as stream:
            assert stream.got.status == 403
        with Stream(running, method="HEAD") as stream:
            assert (stream.got.status, stream.got.read()) == (200, b"")
        assert len(running.listeners) == 0


# --- Limits -----------------------------------------------------------------------------------------------


def asked(running: ExplorerServer, path: str = "api/summary", **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE_S)
    with contextlib.closing(connection):
        given = {"Cookie": f"holdfast={running.token}", **headers}
        connection.request("GET", f"/{running.place}/{path}", headers=given)
        got = connection.getresponse()
        got.read()
        return got


def test_a_page_gone_wild_is_told_to_wait(ws: holdfast.Workspace) -> None:
    with explored(ws) as running:
        running.requests = limits.Bucket(rate=0.001, burst=2)
        assert [asked(running).status for _ in range(2)] == [200, 200]
        got = asked(running)
        assert (got.status, got.headers["Content-Type"]) == (429, "application/json")
        assert 1 <= int(got.headers["Retry-After"]) <= 1000
        # Strangers take nothing from it, and are told nothing of it.
        assert asked(running, Cookie="").status == 403


def test_long_addresses_and_heads_are_refused(ws: holdfast.Workspace) -> None:
    with explored(ws) as running:
        room = limits.LONGEST_ADDRESS - len(f"/{running.place}/api/summary?q=")
        assert (
            asked(running, "api/summary?q=" + "x" * room).status == 400
        )  # it may be asked; nothing takes it
        assert asked(running, "api/summary?q=" + "x" * (room + 1)).status == 414
        many = {f"X-{i}": "y" * 1000 for i in range(40)}
        assert asked(running, **many).status == 431


# --- Beyond this machine ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl here")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    made = (
        f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout {key} -out {cert}"
    )
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([openssl, *made.split(), *names], check=True, capture_output=True)
    return cert, key


def test_another_host_needs_a_certificate(certificate: tuple[Path, Path]) -> None:
    for host in ("0.0.0.0", "10.0.0.7", "::", "shop.example"):
        with pytest.raises(UsageError, match="--cert FILE --key FILE, or say --insecure"):
            Place.of(host)
        assert Place.of(host, insecure=True).scheme == "http"
        assert Place.of(host, *certificate).scheme == "https"
    for host in (None, "localhost", "127.0.0.1", "::1", "[::1]"):
        assert Place.of(host).scheme == "http"


def test_certificates_that_cannot_be_used(certificate: tuple[Path, Path], tmp_path: Path) -> None:
    cert, key = certificate
    with pytest.raises(UsageError, match="--key is missing"):
        Place.of("0.0.0.0", cert)
    with pytest.raises(UsageError, match="--cert is missing"):
        Place.of("0.0.0.0", key=key)
    with pytest.raises(UsageError, match=r"there is no file .*nowhere\.pem"):
        Place.of("0.0.0.0", cert, tmp_path / "nowhere.pem")
    with pytest.raises(UsageError, match="cannot be used"):
        Place.of("0.0.0.0", key, key)


def test_names_that_lead_there_are_the_only_hosts() -> None:
    assert Place.of("10.0.0.7", insecure=True).hosts(80) == {"10.0.0.7", "10.0.0.7:80"}
    assert Place.of("Shop.Example", insecure=True).hosts(8080) == {"shop.example:8080"}
    assert Place.of("::1").hosts(8080) == {"[::1]:8080"}
    everywhere = Place.of("0.0.0.0", insecure=True)
    assert everywhere.hosts(8080) == {f"{socket.gethostname().lower()}:8080"}


def test_the_page_over_tls(ws: holdfast.Workspace, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    with explored(ws, at=Place.of("127.0.0.1", cert, key)) as running:
        assert running.address == f"https://127.0.0.1:{running.port}/{running.token}/"
        # One that says nothing, and one that speaks plainly, keep nobody out.
        silent = socket.create_connection(("127.0.0.1", running.port))
        plain = socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE_S)
        with plain, contextlib.suppress(ConnectionError):  # hung up on before all of it was read
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert not plain.recv(100).startswith(b"HTTP")
        context = ssl.create_default_context(cafile=str(cert))
        connection = http.client.HTTPSConnection(
            "127.0.0.1", running.port, timeout=PATIENCE_S, context=context
        )
        connection.request("GET", f"/{running.token}/")
        got = connection.getresponse()
        got.read()
        cookie = got.headers["Set-Cookie"]
        assert cookie.endswith("; HttpOnly; SameSite=Strict; Secure")
        connection.request("GET", f"/{running.place}/api/summary", headers={"Cookie": cookie.split(";")[0]})
        assert connection.getresponse().status == 200
        connection.close()
        silent.close()


def test_explore_says_that_it_would_be_read_by_others(
    tmp_path: Path, ws: holdfast.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = Shell(tmp_path)
    outcome = shell("explore", "--no-browser", "--host", "0.0.0.0")
    assert (outcome.code, outcome.out) == (2, "")
    assert "others on the network could read the token" in outcome.err

    def serve(self: ExplorerServer) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ExplorerServer, "serve_forever", serve)
    outcome = shell("explore", "--no-browser", "--host", "localhost")
    assert (outcome.code, outcome.out[:17]) == (0, "http://localhost:")


def test_the_first_answer_is_worked_out_before_somebody_asks(ws: holdfast.Workspace) -> None:
    explorer = Explorer(ws)
    exploring.prepare(explorer)
    assert explorer.version == 1

"""An object store on this machine, and a proxy before it that counts, delays, breaks.

    with served() as store:                 # S3, as moto speaks it; `served_azure`: Azure, as Azurite does
        store.new_bucket("box")
        with through(store, Faults(...)) as address: ...

The server is a process of its own: it outlives writers that are killed, and shares no lock of theirs.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import http.client
import http.server
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

START_S = 600
# A port that was free a moment ago may be another program's now.
ATTEMPTS = 5
MOTO = """
import threading
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
threading.Event().wait()
"""


@dataclass(frozen=True)
class Store:
    """A server, by its address."""

    address: str

    def new_bucket(self, name: str) -> None:
        request = urllib.request.Request(f"{self.address}/{name}", method="PUT")
        with urllib.request.urlopen(request):
            pass

    scheme = "s3"
    secret = b"secret"

    @property
    def options(self) -> dict[str, str]:
        """What reaches it, by the names that Delta Lake has."""
        return self.options_at(self.address)

    def options_at(self, address: str) -> dict[str, str]:
        """What reaches it at another address, such as a proxy's."""
        return options_for(address)

    def environment_at(self, address: str) -> dict[str, str]:
        """The same as variables of the environment."""
        return {name.upper(): value for name, value in self.options_at(address).items()}

    def signed(self, method: str, path: str, headers: dict[str, str]) -> dict[str, str]:
        """The headers of a request that was changed on the way; what was signed does not matter to moto."""
        return headers

    def translated(self, path: str, headers: dict[str, str]) -> tuple[str, dict[str, str]]:
        """(path, headers) of a request as the server is asked it."""
        return path, headers


def options_for(address: str) -> dict[str, str]:
    return {
        "aws_endpoint_url": address,
        "aws_access_key_id": "someone",
        "aws_secret_access_key": "secret",
        "aws_region": "us-east-1",
        "aws_allow_http": "true",
    }


def environment_for(address: str) -> dict[str, str]:
    """The same as variables of the environment."""
    return {name.upper(): value for name, value in options_for(address).items()}


# The account that Azurite has, by its documentation: of nobody, and the same everywhere.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
# Before it, listings ignored where they were to start, and Delta Lake needs that.
LEAST_AZURITE = (3, 37)
# The headers that a signature is about, in its order.
SIGNED = (
    *("content-encoding", "content-language", "content-length", "content-md5", "content-type", "date"),
    *("if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"),
)


class AzureStore(Store):
    """Azure's blob storage, as Azurite serves it: the account is the first part of a path."""

    scheme = "az"
    secret = KEY.encode()

    def new_bucket(self, name: str) -> None:
        path = f"/{ACCOUNT}/{name}?restype=container"
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06", "Content-Length": "0"}
        request = urllib.request.Request(
            f"{self.address}{path}", method="PUT", headers=self.signed("PUT", path, headers)
        )
        with urllib.request.urlopen(request):
            pass

    def options_at(self, address: str) -> dict[str, str]:
        return {
            "azure_storage_account_name": ACCOUNT,
            "azure_storage_account_key": KEY,
            "azure_storage_endpoint": f"{address}/{ACCOUNT}",
            "azure_allow_http": "true",
        }

    def signed(self, method: str, path: str, headers: dict[str, str]) -> dict[str, str]:
        given = {name.lower(): value for name, value in headers.items()}
        if given.get("content-length") == "0":
            given["content-length"] = ""
        own = "".join(f"{n}:{given[n]}\n" for n in sorted(given) if n.startswith("x-ms-"))
        place, _, query = path.partition("?")
        asked = "".join(f"\n{n.lower()}:{v}" for n, v in sorted(urllib.parse.parse_qsl(query)))
        lines = [method, *(given.get(name, "") for name in SIGNED)]
        text = "\n".join(lines) + f"\n{own}/{ACCOUNT}{place}{asked}"
        code = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
        kept = {name: value for name, value in headers.items() if name.lower() != "authorization"}
        return {**kept, "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(code).decode()}"}


class GcsStore(Store):
    """Google's storage, as far as its clients ask for it in the way of S3: see `served_gcs`."""

    scheme = "gs"
    secret = b"nobody@example.com"

    def options_at(self, address: str) -> dict[str, str]:
        keys = {"client_email": self.secret.decode(), "private_key": "", "private_key_id": ""}
        account = {**keys, "gcs_base_url": address, "disable_oauth": True}
        return {"google_service_account_key": json.dumps(account), "google_allow_http": "true"}


class _S3AsGcs(Store):
    """An S3 server that is asked in the way of Google's."""

    def translated(self, path: str, headers: dict[str, str]) -> tuple[str, dict[str, str]]:
        place, mark, query = path.partition("?")
        given = {name.lower(): value for name, value in headers.items()}
        if (generation := given.pop("x-goog-if-generation-match", None)) is not None:
            assert generation == "0"  # if there is none of the name
            given["If-None-Match"] = "*"
        if (source := given.pop("x-goog-copy-source", None)) is not None:
            given["x-amz-copy-source"] = source
        given["authorization"] = "AWS4-HMAC-SHA256 Credential=someone/20260101/us-east-1/s3/aws4_request"
        return urllib.parse.quote(urllib.parse.unquote(place)) + mark + query, given


def azurite() -> str | None:
    """The program, if there is one: HOLDFAST_AZURITE names it, or it is on the path."""
    return os.environ.get("HOLDFAST_AZURITE") or shutil.which("azurite-blob")


def why_no_azure() -> str | None:
    """Why there is no Azure on this machine; None if there is."""
    program = azurite()
    if program is None:
        return "there is no azurite-blob here (npm install azurite; HOLDFAST_AZURITE names it)"
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    if tuple(int(part) for part in done.stdout.strip().split(".")[:2]) < LEAST_AZURITE:
        return f"azurite {done.stdout.strip()} ignores where a listing starts: 3.37 does not"
    return None


@contextlib.contextmanager
def served() -> Iterator[Store]:
    """An S3 server that ends with the block."""
    with _ending([sys.executable, "-c", MOTO], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        port = process.stdout.readline().decode().strip()
        assert port, "moto did not start"
        yield Store(f"http://127.0.0.1:{port}")


@contextlib.contextmanager
def served_azure() -> Iterator[Store]:
    """An Azure server that ends with the block; it keeps everything in memory."""
    quiet = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    program = azurite() or ""
    with contextlib.ExitStack() as stack:
        port = listening(
            stack,
            lambda port: _ending([program, "--blobHost", "127.0.0.1", "--blobPort", str(port), *quiet]),
        )
        yield AzureStore(f"http://127.0.0.1:{port}")


@contextlib.contextmanager
def served_gcs() -> Iterator[Store]:
    """S3 behind a proxy that takes what Google's clients send: their addresses, conditions, credentials.

    The clients are tried with it, not Google's server.
    """
    with served() as s3, through(_S3AsGcs(s3.address), Faults()) as address:
        yield GcsStore(address)


Starting = contextlib.AbstractContextManager[subprocess.Popen[bytes]]


@contextlib.contextmanager
def _ending(command: list[str], stdout: int = subprocess.DEVNULL) -> Iterator[subprocess.Popen[bytes]]:
    """A process, with all that it has started: none outlives the block."""
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(
        command, stdin=nowhere, stdout=stdout, stderr=nowhere, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def listening(stack: contextlib.ExitStack, starting: Callable[[int], Starting]) -> int:
    """The port on which a process listens that is told it; it ends with the stack."""
    deadline = time.monotonic() + START_S
    for _ in range(ATTEMPTS):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port: int = free.getsockname()[1]
        process = stack.enter_context(starting(port))
        while process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return port
            assert time.monotonic() < deadline, f"{process.args!r:.200} does not listen"
            time.sleep(0.05)
    raise AssertionError(f"{process.args!r:.200} did not start")


# --- What can go wrong between a client and a store ---------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """What a client asks."""

    number: int
    method: str
    path: str


@dataclass
class Faults:
    """What to do with each request: a function of it answers with one of `ACTIONS`, or None to pass it on."""

    choose: Callable[[Request], str | None] = lambda request: None
    on_answer: Callable[[Request], object] = lambda request: None
    seen: list[Request] = field(default_factory=list)
    n_bytes: int = 0  # that clients were sent

    def counted(self, method: str = "", pattern: str = "") -> int:
        """How many requests there were of a method, to paths with a pattern in them."""
        return sum(
            method in ("", request.method) and re.search(pattern, request.path) is not None
            for request in self.seen
        )


ACTIONS = ("busy", "delay", "cut", "lost", "blind", "denied")


@contextlib.contextmanager
def through(store: Store, faults: Faults) -> Iterator[str]:
    """The address of a proxy before a store that does to requests what the faults say.

    busy: 503 SlowDown, and the store is not asked. denied: 403, neither. delay: half a second more. cut: half
    of the answer's body.
    lost: the store does it, and the connection ends without an answer. blind: conditions of a put are left
    out, as by a store that ignores them.
    """
    host, port = store.address.removeprefix("http://").split(":")
    lock = threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # head and body are two packets: the second one does not wait

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with lock:
                place, mark, query = self.path.partition("?")
                path = urllib.parse.unquote(place) + mark + query
                request = Request(len(faults.seen), self.command, path)
                faults.seen.append(request)
            action = faults.choose(request)
            assert action in (None, *ACTIONS)
            if action == "delay":
                time.sleep(0.5)
            if action == "busy":
                self.reply(503, [], b"<Error><Code>SlowDown</Code></Error>")
                return
            if action == "denied":
                self.reply(403, [], b"<Error><Code>AccessDenied</Code></Error>")
                return
            headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            if action == "blind":
                headers.pop("If-None-Match", None)
                headers.pop("if-none-match", None)
                headers.pop("x-goog-if-generation-match", None)
                headers = store.signed(self.command, self.path, headers)
            path, headers = store.translated(self.path, headers)
            headers["Host"] = f"{host}:{port}"
            connection = http.client.HTTPConnection(host, int(port), timeout=300)
            with contextlib.closing(connection):
                connection.request(self.command, path, body, headers)
                response = connection.getresponse()
                content = response.read()
            faults.n_bytes += len(content)
            faults.on_answer(request)
            if action == "lost":
                self.close_connection = True
                return
            kept = [
                (n, v)
                for n, v in response.getheaders()
                if n.lower() not in ("transfer-encoding", "connection")
            ]
            if action == "cut" and len(content) > 1:
                self.reply(response.status, kept, content, send=len(content) // 2)
                self.close_connection = True
                return
            self.reply(response.status, kept, content)

        def reply(
            self, status: int, headers: list[tuple[str, str]], body: bytes, send: int | None = None
        ) -> None:
            self.send_response_only(status)
            names = {name.lower() for name, _ in headers}
            for name, value in headers:
                self.send_header(name, value)
            if "content-length" not in names:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body[:send])

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = answer

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # a client that was killed

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()

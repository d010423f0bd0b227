"""The web server of the page: for the browser of the person who started it, and for nobody else.

- It listens on 127.0.0.1, elsewhere only with TLS or if the user says that it need not be (`place.py`). Other
  users of the machine, and pages of other sites, can reach that too; so whoever does not know a random token
  is told 403 and nothing else.
- The token is shown once: the address with the token gives a cookie (HttpOnly, SameSite=Strict) and leads on
  to the page, whose address has no token. A browser keeps and tells addresses; a cookie it keeps to itself.
- A browser sends a cookie to every port of 127.0.0.1, so to servers of other users, too. Therefore the cookie
  is for one path only, that of the page, and that path is random: both are needed, and neither tells the
  other.
- The Host header must name this very server: a foreign site whose name is made to point at 127.0.0.1 (DNS
  rebinding) sends its own name.
- It only reads, by GET and HEAD, unless it was started to change something. The files of the page are read at
  the start and looked up by name, so no path leads anywhere else.
- What changes something is a POST to one of a few routes, with a JSON body of bounded size and a header of
  our own. A form of another site can have neither the type nor the header, and its script would have to ask
  the server first (OPTIONS), which answers nobody; nor would the strict cookie come along. A browser that
  tells where a request comes from (Origin, Sec-Fetch-Site) must tell that it comes from this page. No other
  body is ever read.
- Connections on which nobody showed the token are few, and the oldest goes when another comes: whoever opens
  many, or sends a byte a minute, keeps nobody else out.
- Whoever has the token is limited, too, but generously (`limits.py`): a page gone wild is told 429, and no
  request is longer than a page's are.
- Pages that listen for new versions (`listeners.py`) are few, and end with the server.
- Whatever a lake holds reaches the page as JSON in ASCII, and the page may load nothing but its own files
  (Content-Security-Policy): a hostile name or cell stays a text.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import secrets
import socket
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from importlib.resources.abc import Traversable
from socketserver import TCPServer
from typing import Any

from holdfast.app.explorer.api import READ_ONLY, Explorer
from holdfast.app.explorer.limits import LONGEST_ADDRESS, LONGEST_HEAD, Bucket
from holdfast.app.explorer.listeners import Listeners
from holdfast.app.explorer.place import Place
from holdfast.app.explorer.queries import fields_of, takes_gzip
from holdfast.app.explorer.routes import (
    Download,
    ForeignError,
    NotFoundError,
    ReadOnlyError,
    fields_of_body,
)
from holdfast.errors import (
    ConflictError,
    HoldfastError,
    UnknownColumnError,
    UnknownTableError,
    UsageError,
    WorkspaceError,
    shorten,
)

GZIP_FROM = 10_000  # bytes; less is not worth the work
IDLE_S = 30.0  # a connection on which nothing is asked, or taken, is closed
MOST_STRANGERS = 128  # connections without the token, each with a thread and a file descriptor

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the first address has the token in it
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# What a request that changes something carries, with the value "1".
WRITE = "Holdfast-Write"
MOST_BODY = 64 * 1024  # bytes
# The version of the workspace: a page that sees another one is out of date.
VERSION = "Holdfast-Version"
JSON_TYPE = "application/json"
CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": JSON_TYPE,
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".txt": "text/plain; charset=utf-8",
}
INDEX = "index.html"
COOKIE = "holdfast"
# Where the token's address leads: the browser comes from another site there (a file, a chat), and sends no
# cookie that is strict. From this page on to that of the workspace it stays on one site.
ENTRANCE = "enter"
EVENTS = "api/events"


@dataclass(frozen=True)
class _Body:
    """What is sent, and as what."""

    content_type: str
    plain: bytes

    @cached_property
    def zipped(self) -> bytes:
        return gzip.compress(self.plain, 5, mtime=0)


def page_files(folder: Traversable | None = None) -> dict[str, _Body]:
    """The files of the page by their paths, as they are at the start; only types that a page needs."""
    bodies: dict[str, _Body] = {}

    def take(place: Traversable, path: str) -> None:
        for item in place.iterdir():
            name = f"{path}{item.name}"
            if item.is_dir():
                take(item, f"{name}/")
            elif (kind := CONTENT_TYPES.get(f".{item.name.rpartition('.')[2]}")) is not None:
                bodies[name] = _Body(kind, item.read_bytes())

    take(files("holdfast.app.explorer") / "static" if folder is None else folder, "")
    return bodies


def page_that_leads_to(address: str) -> bytes:
    """A page that is left at once for an address of ours; no character of ours means anything in HTML."""
    return (
        '<!doctype html><meta charset="utf-8"><title>holdfast</title>'
        f'<meta http-equiv="refresh" content="0; url={address}"><a href="{address}">holdfast</a>\n'
    ).encode("ascii")


class ExplorerServer(ThreadingHTTPServer):
    """Serves the page of a workspace at `page_address`, to whoever has come by `address`, token and all.

    The first who did sets `entered`. No address with the token belongs on a command line: other users of the
    machine can see those.
    """

    daemon_threads = True  # an idle browser must not keep the process alive
    request_queue_size = 64

    def __init__(
        self,
        explorer: Explorer,
        port: int = 0,
        *,
        at: Place | None = None,
        folder: Traversable | None = None,
        debug: bool = False,
    ) -> None:
        self.explorer, self.debug = explorer, debug
        self.at = at or Place()
        self.address_family = self.at.family
        self.requests, self.listeners = Bucket(), Listeners(explorer.newest_version)
        self.files = page_files(folder)
        self.token, self.place = secrets.token_urlsafe(32), secrets.token_urlsafe(16)
        self.entered = threading.Event()
        self._open: set[Any] = set()  # sockets
        self._strangers: dict[Any, None] = {}  # those of them without the token, the oldest first
        self._sockets_lock = threading.Lock()
        try:
            super().__init__((self.at.host, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UsageError(
                f"cannot listen on port {port} of {self.at.host}: {reason}. Give another --port, or none to "
                "have a free one chosen."
            ) from error
        self.hosts = self.at.hosts(self.port)

    def server_bind(self) -> None:
        # That of HTTPServer looks up the machine's name, which can take seconds.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.at.host, self.port

    def get_request(self) -> tuple[Any, Any]:
        request, client = super().get_request()
        if self.at.tls is not None:
            # Hands are shaken when the connection is first read, in its own thread: who stalls stalls nobody.
            request = self.at.tls.wrap_socket(request, server_side=True, do_handshake_on_connect=False)
        return request, client

    def shutdown(self) -> None:
        self.listeners.close()
        super().shutdown()

    def server_close(self) -> None:
        """No connection outlives the server: a page sees at once that it is gone."""
        self.listeners.close()
        super().server_close()
        with self._sockets_lock:
            for request in self._open:
                _hang_up(request)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        return f"{self._base}/{self.token}/"

    @property
    def page_address(self) -> str:
        return f"{self._base}/{self.place}/"

    @property
    def _base(self) -> str:
        return f"{self.at.scheme}://{self.at.shown}:{self.port}"

    def knows(self, cookies: list[str]) -> bool:
        """Whether one of the cookies is ours. There may be several of its name: other servers give them."""
        pairs = (pair.strip().partition("=") for header in cookies for pair in header.split(";"))
        return any(name == COOKIE and _same(value, self.token) for name, _, value in pairs)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._sockets_lock:
            while len(self._strangers) >= MOST_STRANGERS:
                oldest = next(iter(self._strangers))
                del self._strangers[oldest]
                _hang_up(oldest)
            self._strangers[request] = None
            self._open.add(request)
        super().process_request(request, client_address)

    def admit(self, request: Any) -> None:
        """The token came over this connection: it stays."""
        with self._sockets_lock:
            self._strangers.pop(request, None)

    def shutdown_request(self, request: Any) -> None:
        self.admit(request)
        with self._sockets_lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The browser hung up, mostly. A terminal is no place for it."""
        if self.debug:
            traceback.print_exc()


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: ExplorerServer
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    # Header and body are two writes: the second would wait 40 ms for the browser to acknowledge the first.
    disable_nagle_algorithm = True

    def _answer(self) -> None:
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            self.close_connection = True  # what is sent along is hardly ever read: it is no next request
        if len(self.path) > LONGEST_ADDRESS or self._head_size() > LONGEST_HEAD:
            self.close_connection = True
            long = len(self.path) > LONGEST_ADDRESS
            self._refuse(
                HTTPStatus.REQUEST_URI_TOO_LONG if long else HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            )
            return
        path, _, query = self.path.partition("?")
        first, slash, below = path.removeprefix("/").partition("/")
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or hosts[0].strip().lower() not in self.server.hosts or path[:1] != "/":
            self._refuse(HTTPStatus.FORBIDDEN)
        elif _same(first, self.server.token):
            self.server.admit(self.connection)
            self._answer_admitted(None, query)
        elif not _same(first, self.server.place):
            self._refuse(HTTPStatus.FORBIDDEN)
        elif below == ENTRANCE and self.command in ("GET", "HEAD"):
            self._send(HTTPStatus.OK, _Body(CONTENT_TYPES[".html"], page_that_leads_to("./")))
        elif not self.server.knows(self.headers.get_all("Cookie") or []):
            self._refuse(HTTPStatus.FORBIDDEN)
        else:
            self.server.admit(self.connection)
            self._answer_admitted(below if slash else None, query)

    def _head_size(self) -> int:
        return sum(len(name) + len(value) for name, value in self.headers.items())

    def _answer_admitted(self, path: str | None, query: str) -> None:
        """Whoever has shown the token or the cookie; the path below that of the page, None outside of it."""
        if wait_s := self.server.requests.wait_s():
            document = _json({"error": "too many requests at once."})
            self._answer_json(HTTPStatus.TOO_MANY_REQUESTS, document, {"Retry-After": str(wait_s)})
            return
        route = (path or "").removeprefix("api/")
        if path is not None and path != route and self.server.explorer.changes(route):
            self._act(route)
        elif self.command not in ("GET", "HEAD"):
            self.close_connection = True
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are answered.")
        elif path is None:
            self._let_in()
        elif path == EVENTS:
            self._stream()
        elif path != route:
            status, answer = self._document(lambda: self.server.explorer.answer(route, fields_of(query)))
            version = {VERSION: str(self.server.explorer.version)}
            if isinstance(answer, Download):
                self._send_download(answer, version)
            else:
                self._answer_json(status, answer, version)
        else:
            body = self.server.files.get(path or INDEX)
            if body is None:
                self._refuse(HTTPStatus.NOT_FOUND, "there is nothing here.")
            else:
                self._send(HTTPStatus.OK, body)

    # Methods that are not listed are refused by http.server, through `send_error`.
    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _answer

    def _act(self, route: str) -> None:
        """Changes something, if the request is allowed to."""
        self.close_connection = True  # whether its body is read or not
        if self.command != "POST":
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "only POST changes something.", {"Allow": "POST"})
            return

        def act() -> dict[str, Any]:
            if not self.server.explorer.write:
                raise ReadOnlyError(READ_ONLY)
            self._check_origin()
            return self.server.explorer.act(route, fields_of_body(self._body()))

        status, document = self._document(act)
        assert isinstance(document, bytes)
        self._answer_json(status, document, {VERSION: str(self.server.explorer.version)})

    def _check_origin(self) -> None:
        """An error unless the request is one of this page's own."""
        origins = {f"{self.server.at.scheme}://{host}" for host in self.server.hosts}
        ours = {"Origin": origins, "Sec-Fetch-Site": {"same-origin"}}
        foreign = [name for name, known in ours.items() if {*self.headers.get_all(name, [])} - known]
        if foreign or self.headers.get_all(WRITE) != ["1"]:
            what = f"its {foreign[0]} is another one" if foreign else f"it has no header {WRITE}: 1"
            raise ForeignError(f"the request is not from this page: {what}. Nothing was changed.")

    def _body(self) -> bytes:
        """What was sent: JSON of bounded size, whole."""
        lengths, types = (self.headers.get_all(name, []) for name in ("Content-Length", "Content-Type"))
        if [text.partition(";")[0].strip().lower() for text in types] != [JSON_TYPE]:
            raise UsageError(f"the body has to be {JSON_TYPE}. Nothing was changed.")
        plain = len(lengths) == 1 and lengths[0].isascii() and lengths[0].isdigit()
        if "Transfer-Encoding" in self.headers or not plain or len(lengths[0]) > 9:
            raise UsageError("the body has to have one Content-Length. Nothing was changed.")
        if int(lengths[0]) > MOST_BODY:
            raise UsageError(f"the body is larger than {MOST_BODY:,} bytes. Nothing was changed.")
        body = self.rfile.read(int(lengths[0]))
        if len(body) < int(lengths[0]):
            raise UsageError("the body is cut short. Nothing was changed.")
        return body

    def _document(self, ask: Callable[[], dict[str, Any] | Download]) -> tuple[HTTPStatus, bytes | Download]:
        """An answer, or the error, as JSON; or the file that it is."""
        try:
            answer = ask()
            return HTTPStatus.OK, answer if isinstance(answer, Download) else _json(answer)
        except HoldfastError as error:
            if self.server.debug:
                traceback.print_exc()
            return _status(error), _json({"error": str(error)})
        except Exception as error:
            if self.server.debug:
                traceback.print_exc()
            message = f"internal error: {type(error).__name__}: {shorten(str(error), 300)}"
            return HTTPStatus.INTERNAL_SERVER_ERROR, _json({"error": message})

    # -- sending --

    def _answer_json(self, status: HTTPStatus, document: bytes, more: dict[str, str] | None = None) -> None:
        self._send(status, _Body(JSON_TYPE, document), more)

    def _refuse(
        self, status: HTTPStatus, reason: str | None = None, more: dict[str, str] | None = None
    ) -> None:
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            more = {"Allow": "GET, HEAD", **(more or {})}
        self._answer_json(status, _json({"error": reason or status.phrase.lower()}), more)

    def _let_in(self) -> None:
        """Gives the cookie, and leads on to where it is needed."""
        self.server.entered.set()
        place = f"/{self.server.place}/"
        secure = "" if self.server.at.tls is None else "; Secure"
        cookie = f"{COOKIE}={self.server.token}; Path={place}; HttpOnly; SameSite=Strict{secure}"
        headers = {"Location": f"{place}{ENTRANCE}", "Set-Cookie": cookie}
        self._send(HTTPStatus.FOUND, _Body(JSON_TYPE, b"{}"), headers)

    def _stream(self) -> None:
        """Versions as they come, until the page or the server ends. What is late is late: nothing is kept."""
        self.close_connection = True
        self.send_response(HTTPStatus.OK)
        for name, value in {**HEADERS, "Content-Type": "text/event-stream", "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.server.listeners.serve(self.wfile.write)

    def _send(self, status: HTTPStatus, body: _Body, more: dict[str, str] | None = None) -> None:
        zipped = len(body.plain) > GZIP_FROM and takes_gzip(self.headers.get_all("Accept-Encoding") or [])
        sent = body.zipped if zipped else body.plain
        self.send_response(status)
        for name, value in {**HEADERS, **(more or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", body.content_type)
        self.send_header("Content-Length", str(len(sent)))
        self.send_header("Vary", "Accept-Encoding")
        if zipped:
            self.send_header("Content-Encoding", "gzip")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(sent)

    def _send_download(self, download: Download, more: dict[str, str]) -> None:
        """A file of a length that nobody knows yet: its end is told, so one that is cut short is known."""
        chunked = self.request_version != "HTTP/1.0"
        self.close_connection = self.close_connection or not chunked
        self.send_response(HTTPStatus.OK)
        for name, value in {**HEADERS, **more}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", download.content_type)
        self.send_header("Content-Disposition", f'attachment; filename="{download.name}"')
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "HEAD":
            return
        try:
            for piece in filter(None, download.pieces):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            self.wfile.write(b"0\r\n\r\n" if chunked else b"")
        except Exception:
            self.close_connection = True  # without its end: the browser says that it failed
            raise

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What is no request that http.server understands; it would answer with a page of its own."""
        self.close_connection = True
        if not hasattr(self, "headers"):
            self.headers = self.MessageClass()
        self._refuse(HTTPStatus(code))

    def version_string(self) -> str:
        return "holdfast"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a path has the token in it, and the terminal is the user's."""


def _hang_up(connection: Any) -> None:
    """The thread of a connection wakes up, and closes it."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _same(text: str, secret: str) -> bool:
    """Whether a part of a request is a secret; how long that takes does not tell how much of it is right."""
    return secrets.compare_digest(text.encode("latin-1", "replace"), secret.encode())


def _status(error: HoldfastError) -> HTTPStatus:
    match error:
        case NotFoundError() | UnknownTableError() | UnknownColumnError():
            return HTTPStatus.NOT_FOUND
        case ReadOnlyError() | ForeignError():
            return HTTPStatus.FORBIDDEN
        case ConflictError():
            return HTTPStatus.CONFLICT
        case WorkspaceError():
            return HTTPStatus.INTERNAL_SERVER_ERROR
        case _:
            return HTTPStatus.BAD_REQUEST


def _json(document: dict[str, Any]) -> bytes:
    # ASCII: right in every encoding, lone surrogates too.
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")

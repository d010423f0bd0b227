"""Where the page is served: which address, by which names, and whether nobody can listen on the way.

Beyond this machine the token and all rows would go over the network for everybody on it to read. So an
address that is not loopback needs a certificate, or the word of the user that none is needed (`insecure`): a
tunnel, a network of one's own.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import UsageError, shorten

LOOPBACK = "127.0.0.1"
LOCAL_NAMES = (LOOPBACK, "localhost")


@dataclass(frozen=True)
class Place:
    """A host to listen on, and the TLS context if there is one."""

    host: str = LOOPBACK
    tls: ssl.SSLContext | None = None

    @classmethod
    def of(
        cls,
        host: str | None = None,
        cert: Path | None = None,
        key: Path | None = None,
        *,
        insecure: bool = False,
    ) -> Place:
        """What a user asked for; an error if it would be read by others on the way."""
        host = (host or LOOPBACK).strip().strip("[]").lower()
        if (cert is None) != (key is None):
            missing = "--key" if key is None else "--cert"
            raise UsageError(f"a certificate needs its key: {missing} is missing.")
        tls = None if cert is None or key is None else context_of(cert, key)
        if tls is None and not insecure and not is_loopback(host):
            raise UsageError(
                f"--host {shorten(host)} is not this machine alone, so others on the network could read the "
                "token and the rows. Give a certificate with --cert FILE --key FILE, or say --insecure if "
                "nobody else can listen there."
            )
        return cls(host, tls)

    @property
    def family(self) -> socket.AddressFamily:
        return socket.AF_INET6 if ":" in self.host else socket.AF_INET

    @property
    def scheme(self) -> str:
        return "http" if self.tls is None else "https"

    @property
    def shown(self) -> str:
        """The host as addresses have it; of all of this machine's addresses its name."""
        if self.host in ("0.0.0.0", "::"):
            return socket.gethostname().lower()
        return f"[{self.host}]" if ":" in self.host else self.host

    def hosts(self, port: int) -> frozenset[str]:
        """What a Host header may say: another site's name that leads here is none of them.

        >>> sorted(Place("10.0.0.7").hosts(8080))
        ['10.0.0.7:8080']
        >>> sorted(Place().hosts(80))
        ['127.0.0.1', '127.0.0.1:80', 'localhost', 'localhost:80']
        """
        names = LOCAL_NAMES if self.host in LOCAL_NAMES else (self.shown,)
        usual = 80 if self.tls is None else 443
        ports = (f":{port}", "") if port == usual else (f":{port}",)
        return frozenset(f"{name}{end}" for name in names for end in ports)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> [is_loopback(h) for h in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "10.0.0.7", "shop")]
    [True, True, True, False, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def context_of(cert: Path, key: Path) -> ssl.SSLContext:
    """TLS with a certificate chain and its key, as PEM."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2

    def no_password() -> str:
        raise UsageError(f"the key {str(key)!r} needs a password. Give one that needs none.")

    try:
        context.load_cert_chain(cert, key, no_password)
    except FileNotFoundError:
        missing = cert if not cert.exists() else key
        raise UsageError(f"there is no file {str(missing)!r}.") from None
    except (ssl.SSLError, OSError) as error:
        raise UsageError(
            f"the certificate {str(cert)!r} with the key {str(key)!r} cannot be used: "
            f"{getattr(error, 'reason', None) or error.strerror or error}. Both are PEM files."
        ) from None
    return context

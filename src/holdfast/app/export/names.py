"""Names that fit: what a target takes for a name, made from any text, always to the same result."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from itertools import count

DIGEST = 6


def digest(text: str, length: int = DIGEST) -> str:
    """A few hexadecimal digits that depend on the text alone.

    >>> digest("orders"), digest("orders", 8)
    ('cdb767', 'cdb7678f')
    """
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()[:length]


def lower_ascii(name: str) -> str:
    """Lower case as databases do it that do not tell `A` from `a`: ASCII only."""
    return "".join(c.lower() if c.isascii() else c for c in name)


def fit(names: Iterable[str], *, max_bytes: int | None = None, ignores_case: bool = False) -> dict[str, str]:
    r"""A name that the target accepts for each name; different ones for different names.

    Most names are their own. One that is empty, too long (in UTF-8), or has characters that no database
    takes in a name (NUL, lone surrogates) is altered, and ends with a digest of what it was; so does one
    that the target cannot tell from another.

    >>> fit(["a", "A", "", "b\0"], ignores_case=True)
    {'a': 'a', 'A': 'A_a3a008', '': '_0e5751', 'b\x00': 'b_7068c4'}
    """
    names = list(names)
    fitted: dict[str, str] = {}
    taken: set[str] = set()

    def fold(name: str) -> str:
        return lower_ascii(name) if ignores_case else name

    # Names that can stay come first, so that an altered one never takes the name of another.
    for name in names:
        if name and _cut(name, max_bytes) == name and fold(name) not in taken:
            fitted[name] = name
            taken.add(fold(name))
    for name in names:
        if name in fitted:
            continue
        for length in count(DIGEST):
            end = "_" + digest(name, length)
            room = None if max_bytes is None else max_bytes - len(end)
            candidate = _cut(name, room) + end
            if fold(candidate) not in taken:
                break
        fitted[name] = candidate
        taken.add(fold(candidate))
    return {name: fitted[name] for name in names}


def _cut(name: str, max_bytes: int | None) -> str:
    """What of the name can be kept, in whole characters."""
    encoded = name.replace("\0", "").encode("utf-8", "ignore")
    return encoded[:max_bytes].decode("utf-8", "ignore")

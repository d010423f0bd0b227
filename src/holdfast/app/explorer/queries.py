"""What the head of a request says, where Python's server does not read it."""

from __future__ import annotations

from urllib.parse import parse_qsl

from holdfast.errors import UsageError


def fields_of(query: str) -> dict[str, str]:
    """The parameters of a query.

    >>> fields_of("q=a%20b&what=")
    {'q': 'a b', 'what': ''}
    """
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=20)
    except UnicodeDecodeError:
        raise UsageError("the query is not UTF-8.") from None
    except ValueError:
        raise UsageError("the query has more than 20 parameters.") from None
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise UsageError("the query has a parameter twice.")
    return fields


def takes_gzip(accepted: list[str]) -> bool:
    """Whether an Accept-Encoding header allows gzip.

    >>> [takes_gzip([text]) for text in ("br, gzip", "gzip; q=0.5", "gzip;q=0.000, br", "*", "")]
    [True, True, False, False, False]
    """
    for part in ",".join(accepted).lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() == "gzip":
            weight = weight.replace(" ", "").removeprefix("q=")
            return weight == "" or weight.strip("0.") != ""
    return False

"""Record ends of delimited text, one character at a time: the slow reference of records.py."""

from __future__ import annotations


def record_ends(data: bytes, delimiter: int, quote: int | None) -> list[tuple[int, int, int, int]]:
    """(position, records, lines, line ends before the record) behind every line end outside quotes."""
    ends = []
    at, records, lines = 0, 0, 0
    while at < len(data):
        begun, start = lines, at
        while at < len(data) and data[at] not in b"\r\n":  # one field each round
            if quote is not None and data[at] == quote:
                at += 1
                while at < len(data):
                    if data[at] == quote:
                        if data[at + 1 : at + 2] == bytes([quote]):
                            at += 2
                            continue
                        at += 1
                        break
                    lines += data[at] == 10
                    at += 1
                else:
                    return ends  # never closed
            while at < len(data) and data[at] != delimiter and data[at] not in b"\r\n":
                at += 1
            if at < len(data) and data[at] == delimiter:
                at += 1
                if at == len(data):
                    return ends
        if at == len(data):
            return ends
        records += at > start
        lines += 1
        at += 2 if data[at : at + 2] == b"\r\n" else 1
        ends.append((at, records, lines, begun))
    return ends

"""The calls of a job: which function with which payload, each distinct value of a payload's field once.

Payloads of one job are much alike. Each of the 17,000 tasks that look for duplicates among 1 B rows names the
same thousand segments; written out they are 16 GB of JSON, and every worker would be sent all of them. Here a
value is written once however many payloads have it, and a payload is some small numbers. A list that is large
all the same lies in a file of the workspace, and the job carries its name.

What comes out is what went in by way of JSON, field by field. Large values are parsed once in a process and
shared by its tasks, which must not change them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.store.bundle import Bundle, open_bundle, write_bundle
from holdfast.core.store.files import FileRef
from holdfast.core.store.root import Root, root_of

Payload = dict[str, Any]
Call = tuple[str, Payload]  # the name of a task function, its payload

# A value of so many characters is worth remembering that it was parsed.
LARGE = 2_048
# A list of calls of so many bytes travels as a file.
STAGED_BYTES = 1 << 18


class Calls:
    """Calls by number."""

    def __init__(self, texts: Sequence[str], fields: NDArray[np.int32], offsets: NDArray[np.int64]) -> None:
        self._texts = texts
        self._fields = fields  # of all calls: the function, then name and value of each field, as texts
        self._offsets = offsets

    @classmethod
    def of(cls, calls: Sequence[Call]) -> Calls:
        """Cost: of each distinct value one JSON text, if payloads share the very object; else of each."""
        numbers: dict[str, int] = {}
        by_identity: dict[int, int] = {}

        def number(text: str) -> int:
            return numbers.setdefault(text, len(numbers))

        def value(part: Any) -> int:
            if not isinstance(part, list | dict | str):
                return number(json.dumps(part))
            known = by_identity.get(id(part))  # the calls keep it alive
            if known is None:
                known = by_identity[id(part)] = number(json.dumps(part))
            return known

        fields: list[int] = []
        offsets = [0]
        for function, payload in calls:
            fields.append(number(function))
            for name, part in payload.items():
                fields += (number(name), value(part))
            offsets.append(len(fields))
        return cls(list(numbers), np.array(fields, np.int32), np.array(offsets, np.int64))

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, i: int) -> Call:
        numbers = self._fields[self._offsets[i] : self._offsets[i + 1]].tolist()
        texts = [self._texts[n] for n in numbers]
        return texts[0], {name: _parsed(text) for name, text in zip(texts[1::2], texts[2::2], strict=True)}

    def functions(self) -> Iterator[str]:
        """The names of the functions, each once."""
        for n in dict.fromkeys(self._fields[self._offsets[:-1]].tolist()):
            yield self._texts[n]

    @property
    def n_bytes(self) -> int:
        return sum(map(len, self._texts)) + self._fields.nbytes + self._offsets.nbytes

    def staged(self, root: Root, name: str) -> FileRef:
        """Write the calls as a file of a workspace."""
        texts = pa.array(self._texts, pa.large_string())
        arrays = {"texts": texts, "fields": self._fields, "offsets": self._offsets}
        return write_bundle(root, name, arrays, {"holdfast": "calls"}, compress=True)


def calls_of(reference: Calls | tuple[str, FileRef]) -> Calls:
    """The calls that a job carries, or names; opened once in a process."""
    return reference if isinstance(reference, Calls) else _opened(*reference)


@lru_cache(maxsize=2)
def _opened(root: str, ref: FileRef) -> Calls:
    bundle: Bundle = open_bundle(root_of(root), ref, "calls")
    return Calls(_Texts(bundle.arrow("texts")), bundle.array("fields"), bundle.array("offsets"))


class _Texts(Sequence[str]):
    """Texts of an Arrow array, one by one: of many a task asks for few."""

    def __init__(self, texts: pa.Array) -> None:
        self._array = texts

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, i: Any) -> Any:
        return self._array[i].as_py()


def _parsed(text: str) -> Any:
    return json.loads(text) if len(text) < LARGE else _parsed_once(text)


@lru_cache(maxsize=64)
def _parsed_once(text: str) -> Any:
    return json.loads(text)

"""One way from dataclasses to JSON and back.

What goes into a ledger row, a task's payload or an answer is a frozen dataclass that is `Coded`: the `kind`
that its class may have, then its fields by name; tuples as lists, dataclasses and named tuples in it as
objects. Law: `from_dict(to_dict(x)) == x`. A field that the JSON lacks has its default, and one that the
class lacks is ignored: so neither a new field with a default nor a field that goes needs a migration.

Cost: the fields; types are looked at once for each class.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Self, TypeVar, Union

Coder = Callable[[Any], Any]
Field = tuple[str, Coder, Coder]  # name, encoder, decoder
Kind = TypeVar("Kind")
PLAIN = (str, int, float, bool, Any)


class Coded:
    """A dataclass with `to_dict` and `from_dict`.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Span(Coded):
    ...     name: str
    ...     ends: tuple[int, int] = (0, 0)
    >>> Span("a", (1, 2)).to_dict(), Span.from_dict({"name": "b"})
    ({'name': 'a', 'ends': [1, 2]}, Span(name='b', ends=(0, 0)))
    """

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        cls: Any = type(self)
        fields = {name: encode(getattr(self, name)) for name, encode, _ in _fields_of(cls)}
        kind = getattr(self, "kind", None)
        return fields if kind is None or "kind" in fields else {"kind": kind, **fields}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        return decoded(cls, fields)


def decoded(cls: type[Kind], fields: Mapping[str, Any]) -> Kind:
    """A dataclass from its fields as JSON has them."""
    untyped: Any = cls
    return cls(**_decoded(_fields_of(untyped), fields))


def _decoded(coders: Iterable[Field], fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: decode(fields[name]) for name, _, decode in coders if name in fields}


@functools.cache
def _fields_of(cls: Any) -> tuple[Field, ...]:
    """The fields that a dataclass or a named tuple is made of."""
    names = (
        [f.name for f in dataclasses.fields(cls) if f.init] if dataclasses.is_dataclass(cls) else cls._fields
    )
    hints = typing.get_type_hints(cls)
    return tuple((name, *_coders(hints[name], f"{cls.__name__}.{name}")) for name in names)


def _same(value: Any) -> Any:
    return value


def _coders(hint: Any, where: str) -> tuple[Coder, Coder]:
    """(encoder, decoder) for the type of a field."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in PLAIN:
        return _same, _same
    if origin is Literal:
        return _same, _one_of(arguments, where)
    if origin in (Union, types.UnionType):
        alternatives = [a for a in arguments if a is not type(None)]
        if all(a in PLAIN for a in alternatives):
            return _same, _same
        if len(alternatives) == 1:
            return _optional(*_coders(alternatives[0], where))
    if origin is list or (origin is tuple and arguments[-1] is ...):
        return _sequence(origin, *_coders(arguments[0], where))
    if origin is tuple:
        return _fixed([_coders(a, where) for a in arguments])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(*_coders(arguments[1], where))
    if hasattr(hint, "to_dict"):  # coded, or with a form of its own
        return (lambda v: v.to_dict()), getattr(hint, "from_dict", _same)
    if isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields"):
        tuple_fields = _fields_of(hint)
        return (
            lambda v: {name: encode(x) for (name, encode, _), x in zip(tuple_fields, v, strict=True)},
            lambda v: hint(**_decoded(tuple_fields, v)),
        )
    raise TypeError(f"{where} is of type {hint}, which JSON does not have")


def _one_of(allowed: tuple[Any, ...], where: str) -> Coder:
    def decode(value: Any) -> Any:
        if value not in allowed:
            raise ValueError(f"{where} is {value!r}; expected one of {', '.join(map(repr, allowed))}")
        return value

    return decode


def _optional(encode: Coder, decode: Coder) -> tuple[Coder, Coder]:
    return (lambda v: None if v is None else encode(v)), (lambda v: None if v is None else decode(v))


def _sequence(make: Any, encode: Coder, decode: Coder) -> tuple[Coder, Coder]:
    if encode is _same:
        return list, make
    return (lambda v: [encode(x) for x in v]), (lambda v: make([decode(x) for x in v]))


def _fixed(coders: list[tuple[Coder, Coder]]) -> tuple[Coder, Coder]:
    encoders, decoders = [e for e, _ in coders], [d for _, d in coders]
    return (
        lambda v: [e(x) for e, x in zip(encoders, v, strict=True)],
        lambda v: tuple([d(x) for d, x in zip(decoders, v, strict=True)]),
    )


def _mapping(encode: Coder, decode: Coder) -> tuple[Coder, Coder]:
    if encode is _same:
        return dict, dict
    return (lambda v: {k: encode(x) for k, x in v.items()}), (lambda v: {k: decode(x) for k, x in v.items()})

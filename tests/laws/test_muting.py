"""Muting changes what reports tell, and nothing that is known: along any history, with restarts."""

from __future__ import annotations

import tempfile
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast import Change, Side, Wanted
from holdfast.core.words.reliance import Muted
from holdfast.core.words.sameness import identity
from holdfast.errors import UsageError

KINDS = ("ucc", "fd", "ind", "dc", "profile")
ROW = st.tuples(st.none() | st.integers(0, 3), st.none() | st.integers(0, 2), st.none() | st.integers(0, 2))
WHAT = st.sampled_from(("mute", "unmute", "pin", "unpin"))
INCLUSION = Side("parents", ("id",))
# Of each kind, listed or not.
QUESTIONS: list[tuple[Any, Side | None]] = [
    (["no"], None),
    (["ref", "a"], None),
    ("a -> b", None),
    ("not(t.a = s.a and t.b < s.b)", None),
    ("a <= b", None),
    ("a > 1", None),
    ("no is not null", None),
    (["ref"], INCLUSION),
]


def children(rows: list[Any]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * 4
    return pa.table(
        {n: pa.array(v, pa.int64()) for n, v in zip(("no", "ref", "a", "b"), columns, strict=True)}
    )


def known(ws: holdfast.Workspace) -> list[str]:
    return sorted(repr(d.to_dict()) for d in ws.dependencies())


def told(change: Change) -> list[tuple[str, str, str]]:
    """What a batch did, but for what it means."""
    return sorted((c.event, repr(c.dependency.to_dict()), c.reason) for c in change.changes)


def wanted(question: Any, referenced: Side | None) -> Wanted:
    if isinstance(question, str):
        return Wanted("children", rule=question)
    return Wanted("children", tuple(question), referenced)


def open_both(folder: str) -> list[holdfast.Workspace]:
    return [holdfast.open(f"{folder}/{name}.hold", engine="inline") for name in ("loud", "plain")]


@given(st.data())
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_any_history(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        loud, plain = both = open_both(folder)
        rows = {i: (i, *row) for i, row in enumerate(data.draw(st.lists(ROW, min_size=1, max_size=5)))}
        for ws in both:
            ws.track("parents", pa.table({"id": pa.array([0, 1, 2], pa.int64())}), kinds=("ucc", "ind"))
            ws.track("children", children(list(rows.values())), kinds=KINDS, row_key=["no"])
        reasons: dict[int, str] = {}  # of the questions that are muted
        pinned: set[int] = set()
        for step in range(1, data.draw(st.integers(2, 5))):
            for i in data.draw(st.lists(st.integers(0, len(QUESTIONS) - 1), max_size=3)):
                change_one(loud, i, data.draw(WHAT), reasons, pinned)
            if data.draw(st.booleans()):
                gone = data.draw(st.lists(st.sampled_from(sorted(rows)), unique=True)) if rows else []
                new = enumerate(data.draw(st.lists(ROW, max_size=3)))
                come = {10 * step + i: (10 * step + i, *row) for i, row in new}
                rows = {i: row for i, row in rows.items() if i not in gone} | come
                batch: dict[str, Any] = {"inserts": children(list(come.values()))} if come else {}
                batch |= {"deletes": pa.table({"no": pa.array(gone, pa.int64())})} if gone else {}
                if batch:
                    foretold = loud.check("children", **batch)
                    done = [ws.apply("children", **batch) for ws in both]
                    assert told(foretold) == told(done[0]) == told(done[1])
                    check_roles(loud, done[0])
            if data.draw(st.booleans()):
                for ws in both:
                    ws.close()
                loud, plain = both = open_both(folder)
            muted = {str(m): m.reason for m in loud.muted()}
            assert muted == {name(i): reason for i, reason in reasons.items()}
            assert known(loud) == known(plain)
            ranked = list(loud.dependencies(ranked=True))
            roles = [rank.role for rank in loud.readers.order(None).ranks(ranked)]
            assert roles == sorted(roles, key="muted".__eq__)  # they come last
            of_muted = {identity(m.dependency) for m in loud.muted()}
            assert [d for d, role in zip(ranked, roles, strict=True) if role == "muted"] == [
                d for d in ranked if identity(d) in of_muted
            ]
        for ws in both:
            ws.close()


def name(i: int) -> str:
    question, referenced = QUESTIONS[i]
    if referenced is not None:
        return f"{Side('children', tuple(question))} in {referenced}"
    return question if isinstance(question, str) else f"[{', '.join(question)}]"


def change_one(ws: holdfast.Workspace, i: int, what: str, reasons: dict[int, str], pinned: set[int]) -> None:
    """Mute or pin one of the questions, as the model says that it goes."""
    question, referenced = QUESTIONS[i]
    version = ws.version
    if what == "mute":
        if i in pinned:
            with pytest.raises(UsageError, match="is pinned"):
                ws.mute("children", question, referenced)
            assert ws.version == version
            return
        done: Muted = ws.mute("children", question, referenced, f"at {version}")
        assert (str(done), done.reason) == (name(i), f"at {version}")
        reasons.pop(i, None)
        reasons[i] = done.reason
    elif what == "unmute":
        if i not in reasons:
            with pytest.raises(UsageError, match="is not muted"):
                ws.unmute("children", question, referenced)
            return
        assert ws.unmute("children", question, referenced).reason == reasons.pop(i)
    elif what == "pin":
        change = ws.pin_all([wanted(question, referenced)])
        assert [str(m) for m in change.unmuted] == ([name(i)] if i in reasons else [])
        reasons.pop(i, None)
        pinned.add(i)
    elif i in pinned:
        ws.unpin(wanted(question, referenced))
        pinned.remove(i)


def check_roles(ws: holdfast.Workspace, change: Change) -> None:
    """What is muted comes last among the changes of one event and kind, and nothing else has its role."""
    muted = {identity(m.dependency) for m in ws.muted()}
    for c in change.changes:
        assert (c.role == "muted") == (identity(c.dependency) in muted)
        assert c.to_dict()["muted"] == (c.role == "muted")

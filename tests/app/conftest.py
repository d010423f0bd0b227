"""What the tests of the command line share."""

from __future__ import annotations

import pytest

from holdfast.app.report import paper


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What standard error holds must not depend on how fast the machine is."""
    monkeypatch.setattr(paper, "WORD_AFTER_S", float("inf"))

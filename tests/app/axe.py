"""What axe-core says of a page: the rules of WCAG 2.1, A and AA."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest

package = pytest.importorskip("axe_playwright_python")
AXE = (files(package) / "axe.min.js").read_text("utf-8")
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa")
# Best practice, as axe calls it: one main landmark, a first heading, nothing outside of landmarks.
ALSO = (
    "landmark-one-main",
    "landmark-no-duplicate-main",
    "landmark-unique",
    "page-has-heading-one",
    "region",
)


def serious(page: Any) -> list[str]:
    """Serious violations of a page as it is; each with its element."""
    page.evaluate(AXE)
    how = {
        "resultTypes": ["violations"],
        "runOnly": RULES,
        "rules": {rule: {"enabled": True} for rule in ALSO},
    }
    violations = page.evaluate("(how) => axe.run(document, how)", how)["violations"]
    return [
        f"{v['id']}: {node['html'][:200]} {node.get('failureSummary', '')}"
        for v in violations
        if v["impact"] in ("serious", "critical") or v["id"] in ALSO
        for node in v["nodes"][:3]
    ]

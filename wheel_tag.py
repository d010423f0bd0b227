"""What the build of a wheel asks: for whom is it?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelTag(BuildHookInterface[Any]):
    """A wheel with compiled kernels is for the platform that they are for; one without is for all."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        tag = Path(self.root, "src/holdfast/core/engine/kernels/compiled/wheel-tag.txt")
        if version == "standard" and tag.is_file():
            build_data.update(pure_python=False, tag=tag.read_text(encoding="utf-8").strip())

"""Conditions tested on rows, those that compare two columns among them: these compare as in row rules.

Violations are counted, so a batch adds those of what it inserts and subtracts those of what it deletes.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from holdfast.core.rows import condition_tests
from holdfast.core.rows.kernels.operators import NULL
from holdfast.core.words.predicate import Operator
from holdfast.denial.row_counting import Rows
from holdfast.denial.row_counts import SATISFYING


def check_part(payload: dict[str, Any]) -> bytes:
    """The violations of each condition in some rows of a segment."""
    rows = Rows.of(payload)
    places = rows.segment.schema.places

    def compared(left: str, op: Operator, right: str) -> pa.Array:
        outcomes = rows.outcomes(places[left], places[right])
        return pa.array(np.isin(outcomes, SATISFYING[op]), mask=outcomes == NULL)

    return condition_tests.check_rows(payload, rows, compared)


violations = partial(condition_tests.violations, task=check_part)

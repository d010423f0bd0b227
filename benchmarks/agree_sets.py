"""What sharing is worth in the kernel that counts agree sets: the same pairs with it and without.

    python -m benchmarks.agree_sets [FOLDER]

Tables of the shapes of adult (32,561 x 15) and claims (101,984 x 10): read from adult.csv and claims.csv of a
folder if it has them, else generated and seeded. Of each a batch of 50 rows and of 1 %; adult also from
scratch. Seconds are those of the one thread that counts, so that other work on the machine matters less.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from holdfast.core.evidence.kernels.agree_counts import agree_counts, warm_up

SEED = 20261115
REPEATS = 5
N_KINDS = 500  # of rows in a generated table
TYPICAL = 0.6  # of the values of a row follow from its kind
# Columns as (different values, share of the most frequent one, which the others divide by Zipf's law).
SHAPES: dict[str, tuple[int, list[tuple[int, float]]]] = {
    "adult": (
        32_561,
        [
            (73, 0.03), (9, 0.70), (21_648, 0.0004), (16, 0.32), (16, 0.32), (7, 0.46), (15, 0.13), (6, 0.40),
            (5, 0.85), (2, 0.67), (119, 0.92), (92, 0.95), (94, 0.47), (42, 0.90), (2, 0.76),
        ],
    ),
    "claims": (
        101_984,
        [
            (1328, 0.01), (1966, 0.05), (395, 0.05), (395, 0.05), (157, 0.08), (8, 0.50), (6, 0.60),
            (1504, 0.20), (14_893, 0.30), (5, 0.50),
        ],
    ),
}  # fmt: skip


def generated(n_rows: int, columns: list[tuple[int, float]]) -> np.ndarray:
    """int32[n_columns, n_rows]: codes from 1 on. Rows of a kind are alike, as they are in real tables."""
    rng = np.random.default_rng(SEED)
    kind = (rng.random(n_rows) ** 2 * N_KINDS).astype(np.int64)
    codes = np.empty((len(columns), n_rows), dtype=np.int32)
    for c, (n_values, largest) in enumerate(columns):
        others = 1 / np.arange(1, n_values)
        steps = np.cumsum(np.append(largest, others * (1 - largest) / others.sum()))
        typical = rng.random(n_rows) < TYPICAL
        at = np.where(typical, rng.random(N_KINDS)[kind], rng.random(n_rows))
        codes[c] = 1 + np.minimum(np.searchsorted(steps, at), n_values - 1)
    return codes


def table_codes(name: str, folder: Path | None) -> np.ndarray:
    """int32[n_columns, n_rows]: the table read from the folder, or one of its shape; 0 is NULL."""
    path = folder / f"{name}.csv" if folder else None
    if path is None or not path.exists():
        return generated(*SHAPES[name])
    columns = pd.read_csv(path)
    return np.array([pd.factorize(columns[column])[0] + 1 for column in columns], dtype=np.int32)


def fastest(codes: np.ndarray, rows: np.ndarray, own: bool, share: bool, repeats: int) -> tuple[float, Any]:
    """Seconds of the fastest of several runs, and the result."""
    live = np.ones(codes.shape[1], dtype=np.bool_)
    seconds = []
    for _ in range(repeats):
        started = time.thread_time()
        result = agree_counts(codes, live, rows, own, share=share)
        seconds.append(time.thread_time() - started)
    return min(seconds), result


def sharing(folder: Path | None = None) -> list[dict[str, Any]]:
    """For each table and batch: {table, batch, columns, pairs, masks, shared_s, unshared_s}; one core.

    Both give the same agree sets and counts; a difference is an error.
    """
    warm_up()
    found = []
    for name in SHAPES:
        codes = table_codes(name, folder)
        n_columns, n_rows = codes.shape
        rng = np.random.default_rng(SEED)
        for n_batch in [50, n_rows // 100] + ([n_rows] if name == "adult" else []):
            own = n_batch == n_rows
            chosen = np.sort(rng.choice(n_rows, n_batch, replace=False))
            rows = np.ascontiguousarray(codes[:, chosen])
            repeats = 2 if own else REPEATS
            shared_s, (masks, counts, _) = fastest(codes, rows, own, True, repeats)
            unshared_s, (same_masks, same_counts, _) = fastest(codes, rows, own, False, repeats)
            if not (np.array_equal(masks, same_masks) and np.array_equal(counts, same_counts)):
                raise AssertionError(f"{name}, {n_batch} rows: sharing changes the agree sets")
            found.append(
                {
                    "table": f"{name}, {'from scratch' if own else f'{n_batch:,} rows'}",
                    "batch": n_batch,
                    "columns": n_columns,
                    "pairs": int(counts.sum()),
                    "masks": len(masks),
                    "shared_s": shared_s,
                    "unshared_s": unshared_s,
                }
            )
    return found


if __name__ == "__main__":
    for row in sharing(Path(sys.argv[1]) if len(sys.argv) > 1 else None):
        print(
            f"{row['table']:22} {row['pairs']:12,} pairs {row['masks']:7,} agree sets"
            f" {row['shared_s'] * 1e3:8.1f} ms shared {row['unshared_s'] * 1e3:8.1f} ms not"
        )

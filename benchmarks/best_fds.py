"""The 20 best functional dependencies of wide tables, without the others: seconds, and which are certain.

python -m benchmarks.best_fds [DIR]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import tables

SHAPES = (("uniprot", 1_000), ("ncvoter94", 100_000))
N = 20
ORDERS = ("redundancy", "score")


def best(folder: Path | None = None) -> list[dict[str, Any]]:
    """For each table and order: {table, by, n_rows, n_columns, elapsed_s, processor_s, n_certain}.

    Tables are tracked for nothing but keys of one column before, in a warm session.
    """
    import holdfast

    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, n_rows in SHAPES:
            table = tables.generated(name, n_rows)
            if folder is not None and (folder / f"{name}.csv").exists():
                table = tables.complete(name, folder / f"{name}.csv")
            table.ensure_files()
            with holdfast.open(Path(scratch) / name) as ws:
                ws.track(name, str(table.csv), kinds=("ucc",), max_columns=1)
                ws.fds.best(name, 1, max_lhs=1)  # kernels are there
                for by in ORDERS:
                    began, used = time.perf_counter(), time.process_time()
                    answer = ws.fds.best(name, N, by=by)
                    rows.append(
                        {
                            "table": name,
                            "by": by,
                            "n_rows": table.n_rows,
                            "n_columns": table.n_columns,
                            "elapsed_s": time.perf_counter() - began,
                            "processor_s": time.process_time() - used,
                            "n_certain": answer.n_certain,
                        }
                    )
    return rows


if __name__ == "__main__":
    for row in best(Path(sys.argv[1]) if len(sys.argv) > 1 else None):
        print(
            f"{row['table']:10} {row['n_rows']:8,} x {row['n_columns']:3} by {row['by']:10} "
            f"{row['elapsed_s']:6.2f} s, {row['processor_s']:6.2f} s of a processor, "
            f"{row['n_certain']} certain"
        )

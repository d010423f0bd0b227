"""The lake beside the tracked tables, in short: how much is linked, and its largest components."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.app.document.writing import and_more, command_of, faint, wide
from holdfast.app.explorer import Explorer
from holdfast.app.report.texts import name_text
from holdfast.errors import plural

MOST_COMPONENTS = 10


def lake(explorer: Explorer) -> Iterator[str]:
    summary = explorer.answer("summary", {})["lake"]
    if summary is None:
        return
    yield '<section id="lake"><h2>The lake</h2>'
    of = f"{plural(summary['n_tables'], 'table')} with {plural(summary['n_columns'], 'column')}"
    components = plural(summary["n_components"], "component")
    joined = f"{plural(summary['n_inds'], 'inclusion')} between them, which make {components}"
    alone = f"{plural(summary['n_isolated'], 'table')} without any" if summary["n_isolated"] else ""
    yield faint("; ".join(filter(None, (of, joined, alone))))
    answer = explorer.answer("components", {})
    largest = answer["components"][:MOST_COMPONENTS]
    yield wide(
        [
            {
                "component": name_text(component["name"]),
                "tables": f"{component['n_tables']:,}",
                "inclusions": f"{component['n_inds']:,}",
            }
            for component in largest
        ],
        "The largest components",
    )
    yield and_more(len(answer["components"]) + answer["n_more"] - len(largest), "", "explore")
    yield f'<p class="faint">What a table can be joined with: {command_of("joins", "TABLE")}</p></section>'

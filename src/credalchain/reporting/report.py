"""Everything a study found, as files and as one page that needs no network."""

import base64
import html
import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.figure import Figure

from credalchain.experiments.store import Store
from credalchain.experiments.study import Study
from credalchain.experiments.summary import summarize
from credalchain.files import replacing
from credalchain.reporting.figures import missing_figure, trade_off_figure
from credalchain.reporting.tables import dataset_table, equal_completeness_table, measure_table
from credalchain.text import for_file_name, in_table, to_csv, visible


def write_report(study: Study, store: Store, folder: Path) -> list[Path]:
    """Write tables (CSV), figures (PNG and SVG) and ``report.html``; the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    results = store.results(study)
    summary = summarize(results)
    tables = {
        "datasets": dataset_table(store.facts()),
        **{measure: measure_table(summary, measure) for measure in study.measures},
    }
    if {"set_accuracy", "completeness"} <= set(study.measures):
        tables["set_accuracy_at_equal_completeness"] = equal_completeness_table(summary, results)
    files, taken = [], set[str]()
    for name, table in {"summary": summary, **tables}.items():
        name = _unused(name, taken)
        files.append(_write(folder / f"{name}.csv", to_csv(table).encode()))
    pictures = []
    for name, title, figure in _figures(study, summary):
        name = _unused(name, taken)
        png, svg = _rendered(figure, "png"), _rendered(figure, "svg")
        files += [_write(folder / f"{name}.png", png), _write(folder / f"{name}.svg", svg)]
        pictures.append((title, svg))
    page = _page(study, store, results, tables, pictures)
    files.append(_write(folder / "report.html", page.encode()))
    return files


def _figures(study: Study, summary: pd.DataFrame) -> Iterator[tuple[str, str, Figure]]:
    if not {"set_accuracy", "completeness"} <= set(study.measures):
        return
    damage = "removed" if study.corruption in ("uniform", "per-label") else "changed"
    yield "trade_off", "Set-accuracy against completeness", trade_off_figure(summary, damage)
    if len(study.levels) < 2:
        return
    keys = ["dataset", "method", "strategy"]
    for (dataset, method, strategy), part in summary.groupby(keys, sort=False):
        words = method if strategy == "none" else f"{method}, {strategy}"
        title = f"{dataset}: {words}"
        name = f"missing_{dataset}_{method}_{strategy}"
        yield name, title, missing_figure(part, title, damage)


def _unused(words: str, taken: set[str]) -> str:
    """A file name for ``words`` that is not taken, in capitals or not, and now is."""
    first = name = for_file_name(words)
    for number in itertools.count(2):
        if name.casefold() not in taken:
            break
        name = f"{first}_{number}"
    taken.add(name.casefold())
    return name


def _rendered(figure: Figure, kind: str) -> bytes:
    buffer = io.BytesIO()
    # the same bytes for the same picture
    with matplotlib.rc_context({"svg.hashsalt": "credalchain"}):
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        figure.savefig(buffer, format=kind, dpi=140, metadata=metadata)
    return buffer.getvalue()


def _write(path: Path, content: bytes) -> Path:
    with replacing(path) as file:
        file.write(content)
    return path


# -- the page ------------------------------------------------------------------------------

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem;
       color: #1a1a1a; background: #fff; }
h1, h2 { line-height: 1.2; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(24rem, 1fr)); gap: 1rem; }
figure { margin: 0; } img { max-width: 100%; height: auto; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.9rem; }
th, td { padding: 0.25rem 0.6rem; border-bottom: 1px solid #ddd; text-align: right;
         white-space: nowrap; }
th { background: #f3f3f3; } td:first-child, th:first-child { text-align: left; }
summary { cursor: pointer; padding: 0.4rem 0; font-weight: 600; }
.problem { background: #fdf0e6; border-left: 4px solid #D55E00; padding: 0.5rem 1rem; }
"""


def _page(
    study: Study,
    store: Store,
    results: pd.DataFrame,
    tables: dict[str, pd.DataFrame],
    pictures: list[tuple[str, bytes]],
) -> str:
    title = _text(f"Study: {study.name}")
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{title}</h1>",
        f"<p>{_text(_in_words(study, results))}</p>",
        *_problems(study, store),
        "<h2>Data sets</h2>",
        _table(tables["datasets"].round(3)),
        "<h2>Figures</h2>",
        *_picture_grid(pictures),
        "<h2>Tables</h2>",
        "<p>In percent, mean over folds and repetitions ± standard deviation over repetitions.</p>",
    ]
    for name, table in tables.items():
        if name != "datasets":
            parts.append(f"<details><summary>{_text(name)}</summary>{_table(table)}</details>")
    parts += ["<h2>Software</h2>", _table(_software(results)), "</body></html>"]
    return "\n".join(parts)


def _in_words(study: Study, results: pd.DataFrame) -> str:
    return (
        f"{len(results):,} results: {study.repeats} x {study.folds}-fold cross-validation "
        f"({study.split}), settings {study.settings!r}, labels damaged by {study.corruption!r} at "
        f"{', '.join(f'{100 * level:g} %' for level in study.levels)}, seed {study.seed}. "
        "Folds, damage and label orders are the same for all methods, so all curves are paired."
    )


def _problems(study: Study, store: Store) -> list[str]:
    missing = store.n_open(study)
    if not missing:
        return []
    errors = store.errors(study)
    words = f"{missing} tasks of this study have no result yet, {len(errors)} of them failed."
    return [f'<p class="problem">{_text(words)}</p>']


def _picture_grid(pictures: list[tuple[str, bytes]]) -> list[str]:
    """Images in the page itself; as images, so that their ids cannot clash."""
    lines = []
    for turn, (title, svg) in enumerate(pictures):
        if turn == 1:
            lines.append('<div class="pictures">')
        data = base64.b64encode(svg).decode()
        source = f"data:image/svg+xml;base64,{data}"
        lines.append(f'<figure><img alt="{_text(title)}" src="{source}"></figure>')
    return [*lines, "</div>"] if len(pictures) > 1 else lines


def _text(words: str) -> str:
    """Text for the page, inside quotes as well."""
    return html.escape(visible(words))


def _table(table: pd.DataFrame) -> str:
    with pd.option_context("display.max_colwidth", None):  # names may differ at their ends
        content = in_table(table, visible).to_html(index=False, border=0)
    return f'<div class="scroll">{content}</div>'


def _software(results: pd.DataFrame) -> pd.DataFrame:
    columns = [name for name in results.columns if name.startswith("version_")]
    rows: list[dict[str, Any]] = [
        {"package": name.removeprefix("version_"), "versions": ", ".join(map(str, values))}
        for name, values in ((name, sorted(results[name].unique())) for name in columns)
    ]
    return pd.DataFrame(rows)

"""Everything a study found, as files and as one page that needs no network."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from credalchain._utils.files import replacing
from credalchain._utils.text import for_file_name, plural, to_csv
from credalchain.experiments.store import Store
from credalchain.experiments.study import Study
from credalchain.experiments.summary import groups, spread_unit, summarize
from credalchain.reporting.caution import caution_parameters, damage_word
from credalchain.reporting.figures import missing_figure, rendered, trade_off_figure
from credalchain.reporting.findings import compare_methods, curve_name
from credalchain.reporting.page import PageContent, render
from credalchain.reporting.sentences import in_words
from credalchain.reporting.tables import (
    comparison_table,
    dataset_table,
    equal_completeness_table,
    measure_table,
    standing_table,
    with_display_columns,
)


def findings_in_words(study: Study, store: Store) -> list[str]:
    """The main findings of a study, one a line."""
    return in_words(compare_methods(study, store.results(study)), damage_word(study))


def write_report(study: Study, store: Store, folder: Path) -> list[Path]:
    """Write tables (CSV), figures (PNG and SVG) and ``report.html``; the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    content = _content(study, store)
    tables = {
        "summary": content.all_numbers,
        "datasets": content.datasets,
        **content.tables,
        "software": content.software,
    }
    files, taken = [], set[str]()
    for name, table in tables.items():
        name = _unused(name, taken)
        files.append(_write(folder / f"{name}.csv", to_csv(table).encode()))
    figures = list(_figures(content))
    for name, figure in figures:
        name = _unused(name, taken)
        figure.draw_without_rendering()  # its layout, which takes longer than drawing: once
        figure.set_layout_engine("none")
        for kind in ("png", "svg"):
            files.append(_write(folder / f"{name}.{kind}", rendered(figure, kind)))
    files.append(_write(folder / "report.html", render(content, figures[1:]).encode()))
    return files


def _content(study: Study, store: Store) -> PageContent:
    results = store.results(study)
    over = spread_unit(results)
    summary = summarize(results, over=over)
    findings, parameters, damage = (
        compare_methods(study, results),
        caution_parameters(study, results),
        damage_word(study),
    )
    tables = {}
    if findings.is_comparable:
        tables["set_accuracy_at_equal_completeness"] = equal_completeness_table(
            summary, results, over, damage
        )
    if findings.shares:
        tables["findings"] = standing_table(findings, damage)
    if any(share_findings.comparisons for share_findings in findings.shares):
        tables["tests"] = comparison_table(findings, damage)
    for measure in study.measures:
        tables[measure] = measure_table(summary, measure, parameters, damage)
    return PageContent(
        study=study,
        findings=findings,
        summary=summary,
        caution_parameters=parameters,
        damage=damage,
        problem=_problem(study, store),
        n_results=len(results),
        datasets=dataset_table(store.facts()).round(3),
        all_numbers=with_display_columns(summary, parameters, damage),
        software=_software(results),
        tables=tables,
    )


def _problem(study: Study, store: Store) -> str:
    missing = store.n_open(study)
    if not missing:
        return ""
    return (
        f"{plural(missing, 'task')} of this study without a result, of which "
        f"{len(store.errors(study))} failed. "
        "Methods are compared on repetitions that all methods of a data set have."
    )


def _figures(content: PageContent) -> Iterator[tuple[str, Figure]]:
    summary, damage = content.summary, content.damage
    if not content.findings.is_comparable:
        return
    yield "trade_off", trade_off_figure(summary, damage)
    if len(content.study.levels) < 2:
        return
    for (dataset, method, strategy), part in groups(summary, ["dataset", "method", "strategy"]):
        title = f"{dataset}: {curve_name(method, strategy)}"
        parameter = getattr(content.caution_parameters[method], "name", "")
        name = f"missing_{dataset}_{method}_{strategy}"
        yield name, missing_figure(part, title, damage, parameter)


def _unused(words: str, taken: set[str]) -> str:
    """A file name for ``words`` that is not taken, in capitals or not, and now is."""
    first = name = for_file_name(words)
    for number in itertools.count(2):
        if name.casefold() not in taken:
            break
        name = f"{first}_{number}"
    taken.add(name.casefold())
    return name


def _write(path: Path, content: bytes) -> Path:
    with replacing(path) as file:
        file.write(content)
    return path


def _software(results: pd.DataFrame) -> pd.DataFrame:
    columns = [name for name in results.columns if name.startswith("version_")]
    rows: list[dict[str, Any]] = [
        {"package": name.removeprefix("version_"), "versions": ", ".join(map(str, values))}
        for name, values in ((name, sorted(results[name].unique())) for name in columns)
    ]
    return pd.DataFrame(rows)

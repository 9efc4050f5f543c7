"""The report of a study: tables and charts as files, and one page that holds everything."""

import base64
import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from credalchain._utils.files import atomic_write
from credalchain._utils.text import for_file_name, plural, to_csv, visible, with_spread
from credalchain.studies import findings as found
from credalchain.studies.charts import (
    Chart,
    Plot,
    asset,
    errors_plot,
    key_chart,
    level_chart,
    positives_plot,
    sheet,
    trade_off_plot,
)
from credalchain.studies.findings import WIDEST_GAP, in_percent, percent, spread_words
from credalchain.studies.latex import NUMBER, booktabs, pgfplots
from credalchain.studies.results import Store
from credalchain.studies.study_file import Study
from credalchain.studies.trials import TARGET

_MAX_METHODS = 12  # on the first screen; all are in the tables
_MAX_CURVES = 7  # in charts
_MAX_ROWS_ON_PAGE = 2000  # of a table
_AREA_NAMES = {
    "set_accuracy": "rows without a wrong answer",
    "selective_error": "wrong answers",
    "recall_micro": "positives found",
}
_MAX_ROWS_IN_PAPER = 200  # of a table
_TABLE_COMPLETENESS = (0.6, 0.7, 0.8, 0.9, 0.95, 1.0)


def findings_in_words(study: Study, store: Store) -> list[str]:
    """Return the main findings of a study as sentences.

    Parameters
    ----------
    study : Study
        The study that was run.
    store : Store
        Its results.

    Returns
    -------
    list of str
        One finding each.

    See Also
    --------
    compare_methods : The numbers behind the sentences.
    write_report : A page with all of them.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from credalchain.studies import Store, findings_in_words, load_study, run_study
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "study.toml")
    ...     _ = file.write_text('''
    ... data = ["embedded:yeast"]
    ... cross_validation = { folds = 2 }
    ... method = [{ name = "chain", s = [0.0] }]
    ... ''')
    ...     study, store = load_study(file), Store(folder)
    ...     n_failed = run_study(study, store)
    ...     findings = findings_in_words(study, store)
    >>> findings[0][:42]
    '“chain, branching” is the only method. Row'
    """
    return found.in_words(found.compare_methods(study, store.results(study)), _damage(study))


def write_report(study: Study, store: Store, folder: Path) -> list[Path]:
    """Write the report of a study: tables (CSV), charts (SVG) and ``report.html``.

    The folder ``latex`` holds tables (booktabs) and figures for a paper, a figure for each data set
    and level of corruption as PDF and as source (pgfplots), as wide as a column.

    Parameters
    ----------
    study : Study
        The study that was run.
    store : Store
        Its results.
    folder : Path
        Folder to write to; created if needed.

    Returns
    -------
    list of Path
        The files, the page last.

    See Also
    --------
    findings_in_words : The main findings as sentences.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from credalchain.studies import Store, load_study, run_study, write_report
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "study.toml")
    ...     _ = file.write_text('''
    ... data = ["embedded:yeast"]
    ... cross_validation = { folds = 2 }
    ... method = [{ name = "chain", s = [0.0] }]
    ... ''')
    ...     study, store = load_study(file), Store(folder)
    ...     n_failed = run_study(study, store)
    ...     files = write_report(study, store, Path(folder, "report"))
    >>> files[0].name, files[-1].name
    ('summary.csv', 'report.html')
    """
    report = _Report(study, store)
    page = report.page().encode()
    files = {f"{name}.csv": _csv(table).encode() for name, table in report.tables.items()}
    for name, table in report.tables.items():
        if len(table) <= _MAX_ROWS_IN_PAPER and name != "summary":  # which is too wide
            files[f"latex/{name}.tex"] = booktabs(table).encode()
    files |= {f"latex/{name}": content for name, content in report.figures()}
    files |= {**report.charts, "report.html": page}
    (folder / "latex").mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        with atomic_write(folder / name) as file:
            file.write(content)
    return [folder / name for name in files]


def _damage(study: Study) -> str:
    """Return what was done to training labels; empty if nothing was."""
    if not any(study.levels):
        return ""
    return "removed" if study.corruption in ("uniform", "per-label") else "changed"


class _Report:
    """Everything that files and the page show."""

    def __init__(self, study: Study, store: Store) -> None:
        self.study, self.damage = study, _damage(study)
        self.results = results = store.results(study)
        self.findings = found.compare_methods(study, results)
        self.summary = found.summarize(results, over=self.findings.spread_over)
        about = ["method", "caution_parameter", "larger_is_more_cautious"]
        self.parameters = {  # of each method ("" if none), and whether larger is more cautious
            method: (name, larger)
            for method, name, larger in results[about].drop_duplicates("method").to_numpy()
        }
        self.problem = ""
        if n_open := store.n_open(study):
            self.problem = (
                f"{plural(n_open, 'task')} of this study without a result, of which "
                f"{len(store.errors(study))} failed. "
                "Methods are compared on repetitions that all methods of a data set have."
            )
        versions = [name for name in results.columns if name.startswith("version_")]
        used = [", ".join(map(str, sorted(results[name].unique()))) for name in versions]
        packages = [name.removeprefix("version_") for name in versions]
        self.friedman: dict[tuple[str, float], str] = {}  # p-values of areas
        self.areas: Mapping[tuple[float, str], Mapping[str, Any]] = {}  # by level and method
        self.tables = {
            "summary": self._named(self.summary),
            "datasets": pd.DataFrame(store.facts()).round(3),
            "software": pd.DataFrame({"package": packages, "versions": used}),
            **dict(self._shown_tables()),
        }
        self.charts: dict[str, bytes] = {}  # files, which the sections of the page add
        self.n_labels = {facts["dataset"]: float(facts["labels"]) for facts in store.facts()}
        self.means, self.curves = "", self.summary  # the name of the curves over all data sets
        if self.findings.is_comparable and len(self.findings.datasets) > 1:
            drawn = [measure for measure in found.AREA_MEASURES if measure in study.measures]
            means = found.mean_curves(results, drawn, over=self.findings.spread_over)
            if len(means):
                self.means = str(means["dataset"].iloc[0])
                self.n_labels[self.means] = float(np.mean(list(self.n_labels.values())))
                self.curves = pd.concat([means, self.summary], ignore_index=True)

    def _shown_tables(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield tables in percent: what was found, and all measures."""
        shares, summary = _TABLE_COMPLETENESS, self.summary
        if self.findings.is_comparable:
            over = self.findings.spread_over
            table: Any = found.at_completeness(
                self.results, shares, widest_gap=WIDEST_GAP, over=over
            )
            for share in shares:
                cells = map(in_percent, table.pop(share), table.pop(f"{share}_spread"))
                table[f"{percent(share)} answered"] = list(cells)
            yield "set_accuracy_at_equal_completeness", self._named(table)
            yield from self._areas()
            yield from self._against_rivals()
        columns = "method set_accuracy spread average_rank first_on datasets friedman_p"
        yield from self._found("findings", columns, [
            (at, s.curve, 100 * s.accuracy, 100 * s.spread, s.rank, s.n_first, len(at.datasets),
             _p(at.friedman))
            for at in self.findings.shares for s in at.standings
        ])  # fmt: skip
        columns = "first second dataset difference p p_holm shown"
        yield from self._found("tests", columns, [
            (at, test.first, test.second, test.dataset or f"all {test.n}", 100 * test.difference,
             _p(test.p), _p(test.corrected), "yes" if test.is_shown else "no")
            for at in self.findings.shares for test in at.comparisons if not np.isnan(test.p)
        ])  # fmt: skip
        measured = {
            name: list(map(in_percent, summary[name], summary[f"{name}_spread"]))
            for name in self.study.measures
        }
        yield "measures", self._named(summary[found.KEYS].assign(**measured))

    def _areas(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield areas under curves: means and ranks over data sets, for each, and tests."""
        over, measures = self.findings.spread_over, found.area_measures(self.study)
        folds = found.areas_of_folds(self.results, measures)
        compared = list(found.compare_areas(self.study, folds, over))
        rows: dict[tuple[float, str], dict[str, Any]] = defaultdict(dict)
        for measure, at in compared:
            if p := _p(at.friedman):
                self.friedman[measure, at.level] = p if p.startswith("<") else f"= {p}"
            for s in at.standings:
                row = rows[at.level, s.curve]
                row[measure] = in_percent(abs(s.accuracy), s.spread)
                row[f"{measure}_rank"] = round(s.rank, 2)
        if not rows:
            return
        for key, seconds in found.seconds_of_fold(self.results).items():
            if key in rows:
                rows[key]["seconds"] = float(f"{seconds:.3g}")
        self.areas = rows
        keys = pd.DataFrame(rows.keys(), columns=["missing", "method"])
        yield "areas", self._named(keys.join(pd.DataFrame(rows.values())))
        table = found.areas(folds, measures, over=over)
        for measure in measures:
            table[measure] = list(map(in_percent, table[measure], table.pop(f"{measure}_spread")))
        yield "areas_by_data_set", self._named(table)
        tests = [
            (at.level, measure, test.first, test.second, test.dataset or f"all {test.n}",
             round(100 * test.difference, 2), _p(test.p), _p(test.corrected),
             "yes" if test.is_shown else "no")
            for measure, at in compared for test in at.comparisons if not np.isnan(test.p)
        ]  # fmt: skip
        columns = "missing measure first second dataset difference p p_holm shown"
        if tests:
            yield "area_tests", self._named(pd.DataFrame(tests, columns=columns.split()))

    def _against_rivals(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield the difference of a method to its best rivals, which varies with the split."""
        rows = [
            {"missing": at.level, "method": at.curve, "dataset": dataset,
             **{f"{percent(share)} answered": _difference(of_split[share])
                for share in found.RIVAL_SHARES}}
            for at in self.findings.rivalries
            for dataset, of_split in at.differences.groupby(level="dataset", sort=False)
        ]  # fmt: skip
        if rows:
            yield "rivals", self._named(pd.DataFrame(rows))

    def _found(
        self, name: str, columns: str, rows: list[tuple[Any, ...]]
    ) -> Iterator[tuple[str, pd.DataFrame]]:
        if rows:
            cells = [(at.level, percent(at.share), *others) for at, *others in rows]
            table = pd.DataFrame(cells, columns=["missing", "answered", *columns.split()])
            yield name, self._named(table.round(2))

    def _named(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table whose columns ``s`` and ``missing`` are called what they are.

        If all methods have the same caution parameter, the column of its values gets its name; if
        not, there are two, ``parameter`` and ``value``.
        """
        if not self.damage:
            table = table.drop(columns="missing")
        table = table.rename(columns={"missing": self.damage})
        if "s" not in table:
            return table
        position = list(table.columns).index("s")
        names = table["method"].map(lambda method: self.parameters[method][0])
        values = table.pop("s").where(names != "")
        different = [name for name in dict.fromkeys(names) if name]
        if len(different) == 1 and different[0] not in table:
            table.insert(position, different[0], values)
        elif different:
            table.insert(position, "parameter", names)
            table.insert(position + 1, "value", values)
        return table

    # -- the page ------------------------------------------------------------------------------

    def page(self) -> str:
        """Return the page, which needs no network."""
        style, script = asset("colours.css") + asset("style.css"), asset("script.js")
        title = _text(f"Study: {self.study.name}")
        policy = (
            f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
            "base-uri 'none'; form-action 'none'"
        )
        parts = {
            "findings": self._overview(),
            "curves": self._curves(),
            "levels": self._levels(),
            "tables": self._tables(),
            "about": self._about(),
        }
        sections = {name: text for name, part in parts.items() if (text := "\n".join(part))}
        links = [f'<a href="#{name}">{name.capitalize()}</a>' for name in sections]
        return "\n".join([
            "<!doctype html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<style>{style}</style></head><body><header><h1>{title}</h1>",
            f'<nav aria-label="Sections">{"".join(links)}</nav></header><main>',
            *(f'<section id="{name}">{content}</section>' for name, content in sections.items()),
            f"</main><script>{script}</script></body></html>\n",
        ])  # fmt: skip

    def _link(self, name: str) -> str:
        """Return a link to a table as CSV: the same bytes as in the file beside the page.

        A long table is in that file only, or the page would take megabytes.
        """
        if len(self.tables[name]) > _MAX_ROWS_ON_PAGE:
            return f'<a href="{name}.csv">{name}.csv</a>'
        data = base64.b64encode(_csv(self.tables[name]).encode()).decode()
        href = f"data:text/csv;charset=utf-8;base64,{data}"
        return f'<a download="{name}.csv" href="{href}">{name}.csv</a>'

    def _overview(self) -> Iterator[str]:
        findings = self.findings
        if self.problem:
            yield f'<p class="problem">{_text(self.problem)}</p>'
        leads, rivals = found.leads(findings, self.damage), found.rival_lines(findings, self.damage)
        is_led_by_rivals = findings.reference != "" and len(rivals) > 0
        lines = [*rivals, *leads] if is_led_by_rivals else [*leads, *rivals]
        lines += found.remarks(findings)
        n_leads = len(rivals) if is_led_by_rivals else 1
        yield from (f'<p class="lead">{_text(line)}</p>' for line in lines[:n_leads])
        if is_led_by_rivals:
            yield from self._differences()
        if findings.shares and len(findings.curves) > 1:
            level = findings.levels[0]
            yield from self._ranking(findings.at_level(level))
            words = (
                f"Rows without a wrong answer in percent ± {spread_words(findings)}, where methods "
                "answer the same share of labels: on the line between two neighbouring values of "
                f"caution whose shares are at most {100 * WIDEST_GAP:.0f} points apart. Means and "
                "ranks are over data sets on which all methods of a column reach the share; the "
                "best has the lowest average rank. "
            )
            if self.damage:
                words += f"{percent(level)} of the training labels {self.damage}. "
            if (n_more := len(findings.curves) - _MAX_METHODS) > 0:
                words += f"{plural(n_more, 'more method')} in the tables. "
            if self.areas:
                low, high = map(percent, found.AREA_SHARES)
                words += (
                    f"Areas are mean heights of curves from {low} to {high} answered, with ranks. "
                    "Seconds are those of a fold: to fit, and to predict at all values of caution. "
                )
            yield f'<p class="quiet">{_text(words)}{self._link("findings")} '
            yield f"{self._link('areas') if self.areas else ''}</p>"
        yield from (f"<p>{_text(line)}</p>" for line in lines[n_leads:])

    def _differences(self) -> Iterator[str]:
        """Yield a table of the differences to the best rivals: data sets, levels and shares."""
        of_levels = {
            f"{percent(at.level)} {self.damage}": at.differences.groupby(level="dataset").mean()
            for at in self.findings.rivalries
        }
        points = 100 * pd.concat(of_levels, axis=1).reindex(list(self.findings.datasets))
        shares = "".join(
            f'<th scope="col" class="number">{percent(share)}</th>' for share in found.RIVAL_SHARES
        )
        yield _scroll("Differences to the best rivals")
        yield '<table class="differences"><thead>'
        if self.damage:
            n = len(found.RIVAL_SHARES)
            levels = (
                f'<th scope="colgroup" colspan="{n}">{_text(name)}</th>' for name in of_levels
            )
            yield f'<tr><th scope="col">labels</th>{"".join(levels)}</tr>'
        heads = f'<th scope="col">data set / answered</th>{shares * len(of_levels)}'
        yield f"<tr>{heads}</tr></thead><tbody>"
        for dataset, row in points.iterrows():
            cells = "".join(map(_difference_cell, row))
            yield f'<tr><th scope="row">{_text(str(dataset))}</th>{cells}</tr>'
        means = "".join(map(_difference_cell, points.mean()))
        yield f'</tbody><tfoot><tr><th scope="row">mean</th>{means}</tr></tfoot></table></div>'
        words = (
            "Rows without a wrong answer where the same share of labels is answered: difference to "
            "the best rival, in points."
        )
        yield f'<p class="quiet">{words} {self._link("rivals")}</p>'

    def _ranking(self, shares: list[found.ShareFindings]) -> Iterator[str]:
        """Yield a table of methods and shares, with areas under curves and times."""
        n, level = len(self.findings.datasets), shares[0].level
        order = found.in_order(self.findings, level)
        of_areas = [*found.area_measures(self.study), "seconds"] if self.areas else []
        heads = [
            f'<th scope="col" class="number">{percent(at.share)} answered'
            f"<br><small>{len(at.datasets)} of {plural(n, 'data set')}</small></th>"
            for at in shares
        ]
        heads += [
            f'<th scope="col" class="number">{_AREA_NAMES.get(name, name)}'
            f"<br><small>{'of a fold' if name == 'seconds' else 'area'}</small></th>"
            for name in of_areas
        ]
        yield _scroll("Methods where they answer the same share of labels")
        yield '<table class="findings sortable"><thead><tr><th scope="col">method</th>'
        yield f"{''.join(heads)}</tr></thead><tbody>"
        for curve in order[:_MAX_METHODS]:
            cells = "".join(_ranking_cell(at, curve, n) for at in shares)
            row = self.areas.get((level, curve), {})
            cells += "".join(_area_cell(row.get(k, ""), row.get(f"{k}_rank")) for k in of_areas)
            yield f'<tr><th scope="row">{_text(curve)}</th>{cells}</tr>'
        yield "</tbody></table></div>"

    def _curves(self) -> Iterator[str]:
        if not self.findings.is_comparable:
            return
        curves = self._first_curves()
        keys = {found.curve_name(*curve): key_chart(i) for i, curve in enumerate(curves)}
        items = [f"<li>{key.svg()}<span>{_text(name)}</span></li>" for name, key in keys.items()]
        legend = f'<ul class="legend">{"".join(items)}</ul>'
        for file, about, plots in self._plots(curves):
            panels = {title: plot.chart() for title, plot in plots.items()}
            self.charts[f"{file}.svg"] = sheet(panels, keys).file(about)
            yield f"<h2>{about}</h2>"
            if file == "trade_off":
                yield f"<p>{_text(self._about_points())}</p>"
            elif file == "positives_found":
                yield (
                    "<p>Of the true labels, the share that is answered yes (recall_micro). Open "
                    "labels are the questions that a person would be asked.</p>"
                )
            means = {t: panel for t, panel in panels.items() if self.means and self.means in t}
            yield legend
            if not means:
                yield _panels(about, panels)
                continue
            yield _panels(about, means)
            others = {title: panel for title, panel in panels.items() if title not in means}
            yield f"<details><summary>Each data set ({plural(len(others), 'chart')})</summary>"
            yield _panels(about, others) + "</details>"

    def _first_curves(self) -> list[tuple[str, str]]:
        """Return the methods that come first, with strategies, in the order of the study."""
        findings, summary = self.findings, self.summary
        order = found.in_order(findings, findings.levels[0] if findings.shares else 0.0)
        first = sorted(order, key=lambda curve: curve != findings.reference)[:_MAX_CURVES]
        curves = dict.fromkeys(zip(summary["method"], summary["strategy"], strict=True))
        return [curve for curve in curves if found.curve_name(*curve) in first]

    def _plots(self, curves: list[tuple[str, str]]) -> Iterator[tuple[str, str, dict[str, Plot]]]:
        """Yield the name of a file, what it shows, and a plot for each data set and level."""
        parts = {
            f"{dataset}, {percent(level)} {self.damage}" if self.damage else str(dataset):
            (str(dataset), part)
            for (dataset, level), part in found.groups(self.curves, ["dataset", "missing"])
        }  # fmt: skip
        plots = {title: trade_off_plot(part, curves) for title, (_, part) in parts.items()}
        yield "trade_off", "Set-accuracy against completeness", plots
        if "selective_error" in self.study.measures:
            plots = {title: errors_plot(part, curves) for title, (_, part) in parts.items()}
            yield "selective_errors", "Wrong answers against completeness", plots
        if "recall_micro" in self.study.measures:
            plots = {
                title: positives_plot(part, curves, self.n_labels[dataset])
                for title, (dataset, part) in parts.items()
            }
            yield "positives_found", "Positives found against questions", plots

    def figures(self) -> Iterator[tuple[str, bytes]]:
        """Yield figures for a paper: their files and contents."""
        if not self.findings.is_comparable:
            return
        curves = self._first_curves()
        names = [found.curve_name(*curve) for curve in curves]
        for file, _, plots in self._plots(curves):
            for title, plot in plots.items():
                words = f"{file}, {title}".replace(" %", "").replace(", ", "-")
                name = for_file_name(words.replace(" ", "-"))
                yield f"{name}.pdf", plot.pdf(names)
                yield f"{name}.pgf", pgfplots(plot, names).encode()

    def _levels(self) -> Iterator[str]:
        """Draw the figures of the paper: measures by the share of corrupted labels."""
        if len(self.study.levels) < 2:
            return
        panels: dict[str, Chart] = {}
        first = self._first_curves()
        for key, part in found.groups(self.summary, ["dataset", "method", "strategy"]):
            dataset, method, strategy = map(str, key)
            if (method, strategy) not in first:
                continue
            title = f"{dataset}: {found.curve_name(method, strategy)}"
            panels[title] = level_chart(part, self.parameters[method][0] or "", self.damage)
        about = f"Measures by the share of labels {self.damage}"
        self.charts["by_level.svg"] = sheet(panels, {}).file(about)
        yield f"<h2>{about}</h2>"
        yield f"<details><summary>{plural(len(panels), 'chart')}</summary>"
        yield _panels(about, panels) + "</details>"

    def _about_points(self) -> str:
        """Return what moves a point along a curve, for each method by its right name."""
        methods_of: dict[str, list[str]] = defaultdict(list)
        for method, (name, larger) in self.parameters.items():
            way = f" ({'larger' if larger else 'smaller'} is more cautious)" if name else ""
            methods_of[(name or "none") + way].append(method)
        parts = [f"{words}, of {found.quoted(*methods)}" for words, methods in methods_of.items()]
        parts = parts if len(parts) > 1 else list(methods_of)
        about = f"Each point is a value of the caution parameter: {'; '.join(parts)}. "
        if TARGET in {name for name, _ in self.parameters.values()}:
            about += (
                f"{TARGET} is the share of labels that is to be answered: the study names no "
                "values of caution, so in every fold values were chosen that answer these shares "
                "of the test rows, whose labels play no part (chosen_value in summary.csv is their "
                "mean). "
            )
        if len(self.findings.curves) > _MAX_CURVES:
            about += f"{_MAX_CURVES} of {len(self.findings.curves)} methods are drawn. "
        return f"{about}Bands are ± {spread_words(self.findings)}. Scales differ between charts."

    def _tables(self) -> Iterator[str]:
        spread = _text(spread_words(self.findings))
        yield f"<h2>Tables</h2><p>In percent, mean over folds and repetitions ± {spread}. "
        yield f"All numbers: {self._link('summary')}. "
        yield "For LaTeX, tables and figures are in the folder latex beside this page.</p>"
        for name, frame in list(self.tables.items())[3:]:
            title = f"{name.replace('_', ' ')} ({plural(len(frame), 'row', ',')})"
            yield f"<details><summary>{title}</summary>"
            yield f"<p>{_text(about)}</p>" if (about := self._about_table(name)) else ""
            table = _table(frame, title) if len(frame) <= _MAX_ROWS_ON_PAGE else ""
            yield f'<div class="bar">{self._link(name)}</div>{table}</details>'

    def _about_table(self, name: str) -> str:
        """Return what a reader needs to know about a table; empty if its heads say it."""
        if name == "rivals":
            return (
                "Set-accuracy of a method minus that of its best rival, which is chosen on other "
                f"{self.findings.spread_over} for each data set and share, in points: mean ± "
                "standard deviation over splits (folds of all repetitions), and in how many of "
                "them the method is ahead."
            )
        if name not in ("areas", "areas_by_data_set"):
            return ""
        low, high = map(percent, found.AREA_SHARES)
        about = f"The mean height of the curves from {low} to {high} of the labels answered"
        if name == "areas_by_data_set":
            return f"{about}; nothing where a curve does not reach from one end to the other."
        tests = [
            f"{measure}{f' ({percent(level)} {self.damage})' if self.damage else ''}: p {p}"
            for (measure, level), p in self.friedman.items()
        ]
        friedman = f"Friedman's test that all methods are equal: {'; '.join(tests)}."
        return (
            f"{about}, over data sets on which all methods compared have it; rank 1 is best. "
            + (friedman if tests else "Friedman's test needs three methods and three data sets.")
        )

    def _about(self) -> Iterator[str]:
        study, damage = self.study, ""
        if self.damage:
            levels = found.join_with_and(map(percent, study.levels))
            damage = f", training labels {self.damage} ({study.corruption}) at {levels}"
        words = (
            f"{plural(len(self.results), 'result', ',')}: {study.repeats} x {study.folds}-fold "
            f"cross-validation, settings {study.settings!r}{damage}, seed "
            f"{study.seed}. Random choices are the same for all methods, so comparisons are paired."
        )
        yield f"<h2>How it was run</h2><p>{_text(words)}</p>"
        for name, title in (("datasets", "Data sets"), ("software", "Software")):
            yield f"<h3>{title}</h3><p>{self._link(name)}</p>{_table(self.tables[name], title)}"


def _difference(of_split: "pd.Series[float]") -> str:
    """Return the mean and spread of a difference, and in how many splits it is positive."""
    values = 100 * of_split.dropna()
    if values.empty:
        return ""
    spread = with_spread(values.mean(), values.std(), ".1f")
    return f"{spread} ({(values > 0).sum()} of {len(values)})"


def _csv(table: pd.DataFrame) -> str:
    """Return a table as CSV; a minus before a number with its spread is no formula."""
    is_number = table.map(lambda cell: NUMBER.fullmatch(str(cell)) is not None).all()
    return to_csv(table, numbers=[str(name) for name in table.columns[is_number]])


def _p(p: float) -> str:
    """Return a p-value for a cell; empty for NaN."""
    return "" if np.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def _text(words: str) -> str:
    """Return text for the page, inside quotes as well."""
    return escape(visible(words))


def _digest(words: str) -> str:
    """Return what a policy allows: this text and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(words.encode()).digest()).decode()


def _scroll(label: str) -> str:
    """Return the start of a box in which a table scrolls by itself, by keyboard too."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{_text(label)}">'


def _panels(about: str, charts: Mapping[str, Chart]) -> str:
    """Return charts below their titles; ``about`` is what all of them show."""
    figures = [
        f"<figure><figcaption>{_text(title)}</figcaption>{chart.svg(f'{about}: {title}')}</figure>"
        for title, chart in charts.items()
    ]
    return f'<div class="panels">{"".join(figures)}</div>'


def _ranking_cell(at: found.ShareFindings, curve: str, n_datasets: int) -> str:
    standing = next((one for one in at.standings if one.curve == curve), None)
    if standing is None:
        n = at.left_out[curve]
        note = f"reached on {n} of {n_datasets}" if n else "not reached"
        return f'<td class="number" data-v="">-<small>{note}</small></td>'
    notes = [note for note in found.notes(at, standing) if note != found.NOT_TESTED]
    small = f"<small>{', '.join(notes)}</small>"
    best = " best" * (curve in (at.best.curve, *at.tied_with_best))
    value = f'data-v="{standing.accuracy:.6f}"'  # for sorting
    return f'<td class="number{best}" {value}>{found.accuracy(standing)}{small}</td>'


def _area_cell(value: Any, rank: float | None) -> str:
    small = "" if rank is None else f"<small>rank {rank:.2f}</small>"
    return f'<td class="number">{value}{small}</td>'


def _difference_cell(points: Any) -> str:
    """Return a difference to the best rival, coloured by its size."""
    if np.isnan(points):
        return '<td class="number"></td>'
    size = "equal" if abs(points) < 1 else "ahead" if points > 0 else "behind"
    strong = " strong" * (abs(points) >= 5)
    shown = f"{points:+.1f}" if abs(points) >= 0.05 else "0.0"
    return f'<td class="number {size}{strong}">{shown}</td>'


def _table(frame: pd.DataFrame, label: str) -> str:
    """Return a table in a box of its own, without columns that are empty."""
    cells = frame.map(lambda cell: f"{cell:.6g}" if isinstance(cell, float) else str(cell))
    cells = cells.replace("nan", "")
    cells = cells.loc[:, (cells != "").any()].map(_text)
    kinds = [
        "number" if all(NUMBER.fullmatch(cell) for cell in cells[name] if cell) else "name"
        for name in cells
    ]
    columns = zip(map(str, cells), kinds, strict=True)
    heads = [f'<th scope="col" class="{kind}">{_text(name)}</th>' for name, kind in columns]
    row = "".join(f'<td class="{kind}">%s</td>' for kind in kinds)
    body = "".join(f"<tr>{row % tuple(one)}</tr>\n" for one in cells.to_numpy())
    return (
        f'{_scroll(label)}<table class="sortable"><thead><tr>{"".join(heads)}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )

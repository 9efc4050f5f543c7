"""The page of a study: one file that needs no network, light and dark, on any screen."""

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

import pandas as pd
from matplotlib.figure import Figure

from credalchain._utils.text import plural
from credalchain.experiments.grid import TARGET
from credalchain.experiments.study import Study
from credalchain.experiments.summary import groups
from credalchain.reporting.caution import Cautions
from credalchain.reporting.figures import curves_of, inline_svg, key_figure, trade_off_panel
from credalchain.reporting.findings import Findings, curve_name
from credalchain.reporting.markup import download, table, text
from credalchain.reporting.overview import overview
from credalchain.reporting.sentences import (
    join_with_and,
    level_words,
    percent,
    quoted,
    spread_words,
)


@dataclass(frozen=True)
class PageContent:
    """Everything the page shows.

    Attributes
    ----------
    study : Study
    findings : Findings
    summary : DataFrame
        What the curves show: means and spreads by data set, method, value of caution and level.
    caution_parameters : dict
        The caution parameter of each method.
    damage : str
        What was done to training labels; empty if nothing.
    problem : str
        What is not done yet; empty if nothing.
    n_results : int
    datasets, all_numbers, software : DataFrame
    tables : dict of DataFrame
        Tables by the names of their files.
    """

    study: Study
    findings: Findings
    summary: pd.DataFrame
    caution_parameters: Cautions
    damage: str
    problem: str
    n_results: int
    datasets: pd.DataFrame
    all_numbers: pd.DataFrame
    software: pd.DataFrame
    tables: Mapping[str, pd.DataFrame]


def render(content: PageContent, level_figures: Sequence[tuple[str, Figure]] = ()) -> str:
    """Return the whole page; ``level_figures`` show what damage does, by the names of files."""
    style, script = _asset("style.css"), _asset("script.js")
    title = text(f"Study: {content.study.name}")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{style}</style></head><body>",
        *_head(content, title),
        "<main>",
        *overview(content.findings, content.damage, content.problem, _link(content, "findings")),
        *_curves(content, level_figures),
        *_tables(content),
        *_about(content),
        "</main>",
        f"<script>{script}</script></body></html>\n",
    ]
    return "\n".join(parts)


def _link(content: PageContent, name: str) -> str:
    """A link to a table under the name of its file; nothing if there is no such table."""
    frame = content.tables.get(name)
    return "" if frame is None else download(name, frame, f"{name}.csv")


def _asset(name: str) -> str:
    return resources.files("credalchain.reporting").joinpath("assets", name).read_text("utf-8")


def _digest(words: str) -> str:
    """What a policy allows: this text and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(words.encode()).digest()).decode()


def _head(content: PageContent, title: str) -> Iterator[str]:
    study, findings = content.study, content.findings
    times = "once" if study.repeats == 1 else f"{study.repeats} times"
    words = (
        f"{plural(len(findings.datasets), 'data set')}, {plural(len(findings.curves), 'method')}, "
        f"{study.folds}-fold cross-validation {times}"
    )
    curves = {"curves": "Curves"} if findings.is_comparable else {}
    links = {"findings": "Findings", **curves, "tables": "Tables", "about": "How it was run"}
    yield f'<header><h1>{title}</h1><p class="quiet">{words}</p><nav aria-label="Sections">'
    yield from (f'<a href="#{name}">{word}</a>' for name, word in links.items())
    yield "</nav></header>"


def _curves(content: PageContent, level_figures: Sequence[tuple[str, Figure]]) -> Iterator[str]:
    if not content.findings.is_comparable:
        return
    summary, damage = content.summary, content.damage
    curves = curves_of(summary)
    yield '<section id="curves"><h2>Set-accuracy against completeness</h2>'
    yield f'<p>{text(_about_points(content))}</p><ul class="legend">'
    for index, curve in enumerate(curves):
        yield f"<li>{inline_svg(key_figure(index), '')}<span>{text(curve_name(*curve))}</span></li>"
    yield '</ul><div class="panels">'
    for (dataset, level), part in groups(summary, ["dataset", "missing"]):
        title = f"{dataset}, {level_words(level, damage)}" if damage else str(dataset)
        svg = inline_svg(
            trade_off_panel(part, curves), f"Set-accuracy against completeness: {title}"
        )
        yield f"<figure><figcaption>{text(title)}</figcaption>{svg}</figure>"
    yield "</div>"
    if level_figures:
        yield f"<details><summary>By the share of training labels {damage}</summary>"
        yield '<div class="panels">'
        for _, figure in level_figures:
            label = f"Measures by the share of labels {damage}: {figure.get_suptitle()}"
            yield f"<figure>{inline_svg(figure, label)}</figure>"
        yield "</div></details>"
    yield "</section>"


def _about_points(content: PageContent) -> str:
    """What moves a point along a curve, for each method by its right name."""
    by_name: dict[str, list[str]] = {}
    for method, caution in content.caution_parameters.items():
        by_name.setdefault("" if caution is None else caution.in_words, []).append(method)
    without = by_name.pop("", [])
    is_one = len(by_name) == 1 and not without
    parts = [
        words if is_one else f"{words}, of {quoted(*methods)}" for words, methods in by_name.items()
    ]
    sentences = []
    if parts:
        sentences.append(f"Each point is a value of the caution parameter: {'; '.join(parts)}.")
    if without:
        has = "has" if len(without) == 1 else "have"
        sentences.append(f"{quoted(*without)} {has} no caution parameter.")
    if any(caution and caution.name == TARGET for caution in content.caution_parameters.values()):
        sentences.append(
            f"{TARGET} is the share of labels that is to be answered: the study names no values of "
            "caution, so in every fold values were chosen on training rows (chosen_value in the "
            "table of all numbers is their mean)."
        )
    sentences.append("Further up, fewer rows have a wrong answer; further right, more is answered.")
    sentences.append(f"Bands are ± {spread_words(content.findings)}. Scales differ between charts.")
    return " ".join(sentences)


def _tables(content: PageContent) -> Iterator[str]:
    spread = text(spread_words(content.findings))
    yield '<section id="tables"><h2>Tables</h2>'
    yield f"<p>Measures are in percent, mean over folds and repetitions ± {spread}.</p>"
    yield f"<p>{download('summary', content.all_numbers, 'All numbers as CSV')}</p>"
    for name, frame in content.tables.items():
        title = f"{name.replace('_', ' ')} ({plural(len(frame), 'row', ',')})"
        yield f"<details><summary>{text(title)}</summary>"
        yield f'<div class="bar">{_link(content, name)}</div>'
        yield f"{table(frame, title)}</details>"
    yield "</section>"


def _about(content: PageContent) -> Iterator[str]:
    study = content.study
    damage, shared = "", "Folds"
    if content.damage:
        levels = join_with_and(percent(level) for level in study.levels)
        damage = f", training labels {content.damage} ({study.corruption}) at {levels}"
        shared = "Folds, damaged labels"
    words = (
        f"{plural(content.n_results, 'result', ',')}: "
        f"{study.repeats} x {study.folds}-fold cross-validation "
        f"({study.split}), settings {study.settings!r}{damage}, seed {study.seed}. {shared} and "
        "label orders are the same for all methods, so all comparisons are paired."
    )
    yield f'<section id="about"><h2>How it was run</h2><p>{text(words)}</p>'
    for name, frame in (("datasets", content.datasets), ("software", content.software)):
        title = "Data sets" if name == "datasets" else "Software"
        yield f"<h3>{title}</h3><p>{download(name, frame, f'{name}.csv')}</p>"
        yield table(frame, title)
    yield "</section>"

"""The first screen of the page: what came out, and how methods were compared."""

import math
from collections.abc import Iterator

from credalchain._utils.text import plural
from credalchain.reporting.findings import WIDEST_GAP, Findings, ShareFindings, Standing
from credalchain.reporting.markup import scroll, text
from credalchain.reporting.sentences import (
    accuracy,
    join_with_and,
    leads,
    p_value,
    percent,
    share_sentence,
    spread_words,
    tests_in_words,
    unreached,
    verdict_words,
    without_comparison,
)
from credalchain.reporting.significance import MIN_FOLDS, datasets_needed

_MAX_METHODS = 12  # on the first screen; all are in the tables


def overview(findings: Findings, damage: str, problem: str, link: str) -> Iterator[str]:
    """The section of findings.

    ``problem`` says what is not done yet; ``link`` is one to all findings as a table.
    """
    yield '<section id="findings" aria-label="Findings">'
    if problem:
        yield f'<p class="problem">{text(problem)}</p>'
    if findings.shares:
        yield from _compared(findings, damage, link)
    else:
        yield f'<p class="lead">{text(without_comparison(findings))}</p>'
    yield "</section>"


def _compared(findings: Findings, damage: str, link: str) -> Iterator[str]:
    first, *others = leads(findings, damage)
    yield f'<p class="lead">{text(first)}</p>'
    if len(findings.curves) > 1:
        yield from _table(findings)
        yield f'<p class="quiet">{text(_below_table(findings, damage))} {link}</p>'
    others += [*unreached(findings), *tests_in_words(findings)]
    yield from (f"<p>{text(line)}</p>" for line in others)
    if len(findings.curves) > 1:
        shares = findings.at_level(findings.levels[0])
        sentences = [share_sentence(findings, share_findings, damage) for share_findings in shares]
        yield from _details("The same in sentences", sentences)
    yield from _details("How methods were compared", _how(findings))


def _details(title: str, lines: list[str]) -> Iterator[str]:
    yield f"<details><summary>{text(title)}</summary>"
    yield from (f"<p>{text(line)}</p>" for line in lines)
    yield "</details>"


# -- the table -----------------------------------------------------------------------------


def _table(findings: Findings) -> Iterator[str]:
    """Methods and shares, at the least level of damage."""
    shares = findings.at_level(findings.levels[0])
    heads = [
        f'<th scope="col" class="number">{percent(share_findings.share)} answered'
        f"{_on_how_many(findings, share_findings)}</th>"
        for share_findings in shares
    ]
    yield scroll("Methods where they answer the same share of labels")
    yield f'<table class="findings sortable"><thead><tr><th scope="col">method</th>{"".join(heads)}'
    yield "</tr></thead><tbody>"
    for curve in _by_rank(findings, shares)[:_MAX_METHODS]:
        cells = "".join(
            _cell(share_findings, curve, findings.n_datasets) for share_findings in shares
        )
        yield f'<tr><th scope="row">{text(curve)}</th>{cells}</tr>'
    yield f"</tbody>{_foot(shares)}</table></div>"


def _on_how_many(findings: Findings, share_findings: ShareFindings) -> str:
    if findings.n_datasets == 1:
        return ""
    return f"<br><small>{len(share_findings.datasets)} of {findings.n_datasets} data sets</small>"


def _by_rank(findings: Findings, shares: list[ShareFindings]) -> list[str]:
    """Methods by the number of shares where they are compared, then by their mean rank there."""
    ranks: dict[str, list[float]] = {curve: [] for curve in findings.curves}
    for share_findings in shares:
        for standing in share_findings.standings:
            ranks[standing.curve].append(standing.rank)
    last = [float(len(findings.curves))]
    means = {curve: sum(values or last) / len(values or last) for curve, values in ranks.items()}
    return sorted(means, key=lambda curve: (-len(ranks[curve]), means[curve]))


def _cell(share_findings: ShareFindings, curve: str, n_datasets: int) -> str:
    standing = next((s for s in share_findings.standings if s.curve == curve), None)
    if standing is None:
        n = share_findings.left_out[curve]
        note = f"reached on {n} of {n_datasets}" if n else "not reached"
        return f'<td class="number" data-v="">-<small>{note}</small></td>'
    is_best = curve in (share_findings.best.curve, *share_findings.tied_with_best)
    lines = [f"rank {standing.rank:.2f}"] if len(share_findings.datasets) > 1 else []
    lines += [_beside_best(share_findings, standing, is_best)]
    small = "".join(f"<small>{line}</small>" for line in lines if line)
    kind = "number best" if is_best else "number"
    value = f"{100 * standing.accuracy:.6f}"  # for sorting
    return f'<td class="{kind}" data-v="{value}">{accuracy(standing)}{small}</td>'


def _beside_best(share_findings: ShareFindings, standing: Standing, is_best: bool) -> str:
    if len(share_findings.standings) == 1:
        return "alone"
    if is_best:
        return "best, tied" if share_findings.tied_with_best else "best"
    return verdict_words(share_findings.verdict(standing.curve), of_other=True)


def _foot(shares: list[ShareFindings]) -> str:
    """Friedman's test, where there is one."""
    p_values = [share_findings.friedman for share_findings in shares]
    if all(map(math.isnan, p_values)):
        return ""
    cells = "".join(
        f'<td class="number">{"" if math.isnan(p) else text(f"p {p_value(p)}")}</td>'
        for p in p_values
    )
    return f'<tfoot><tr><th scope="row">Friedman\'s test: all equal?</th>{cells}</tr></tfoot>'


def _below_table(findings: Findings, damage: str) -> str:
    over = "mean over data sets " if findings.n_datasets > 1 else ""
    words = (
        f"Rows without a wrong answer in percent (set-accuracy), {over}± "
        f"{spread_words(findings)}, where so many of the labels are answered (completeness)"
    )
    if damage:
        level = findings.levels[0]
        words += f", {percent(level) if level else 'none'} of the training labels {damage}"
    small = ["the average rank over data sets"] if findings.n_datasets > 1 else []
    if any(share_findings.is_tested for share_findings in findings.at_level(findings.levels[0])):
        small.append("what tests say of a method against the best")
    words += f". Small print: {join_with_and(small)}." if small else "."
    n_more = len(findings.curves) - _MAX_METHODS
    return f"{words} {plural(n_more, 'more method')} in the tables." if n_more > 0 else words


# -- how methods were compared -------------------------------------------------------------


def _how(findings: Findings) -> list[str]:
    return [
        "A method that answers less is wrong in fewer rows, so methods are compared where they "
        "answer the same share of labels: on the straight line between two neighbouring values of "
        "the caution parameter, if the shares they answer are at most "
        f"{100 * WIDEST_GAP:.0f} points apart.",
        "At each share only those data sets count on which all methods compared reach it like "
        "that; a method that does so on fewer than half of the data sets is left out. The first "
        "lines say what is not compared where. The best method has the lowest average rank over "
        "data sets, then the highest mean.",
        f"± is {spread_words(findings)}{_limit(findings)}; for a mean over data sets, the root of "
        "the sum of their squares, divided by the number of data sets.",
        "Two methods are tested over data sets (Wilcoxon's signed-rank test) if there are enough "
        "of them for any difference to show after Holm's correction, "
        f"{datasets_needed(1)} for two methods and {datasets_needed(3)} for three; otherwise over "
        "the folds of each data set (the corrected resampled t-test of Nadeau and Bengio, which "
        f"allows for training sets that share rows), if these have {MIN_FOLDS} results. With "
        "three methods and three data sets or more, Friedman's test asks whether there is any "
        "difference at all. A difference that is not shown may still be there.",
    ]


def _limit(findings: Findings) -> str:
    if findings.spread_over == "folds":
        return ""
    return ", which says what other shufflings of the rows would change, not what other rows would"

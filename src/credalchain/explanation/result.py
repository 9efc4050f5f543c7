"""Explanations: steps, reasons, questions and training rows; as text, HTML and data."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from scipy.special import expit

from credalchain._utils import notebook
from credalchain._utils.text import visible
from credalchain.labels import ABSTAIN, and_more

if TYPE_CHECKING:
    import pandas as pd

_MAX_STEPS = 20  # in a notebook
_MAX_LABELS = 12  # in a line of text
_MAX_QUESTIONS = 10
_WORDS = {1: "yes", 0: "no", ABSTAIN: "*"}


@dataclass(frozen=True)
class Reason:
    """Contribution of one observation to the lower and upper log-odds of a label.

    Parameters
    ----------
    source : {"prior", "feature", "label"}
        Kind of the observation.
    name : str
        Name of the feature or label.
    value : str
        Observed value.
    lower, upper : float
        Contribution to the lower and to the upper log-odds.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier, explain
    >>> X = [["sun"], ["sun"], ["sun"], ["rain"], ["rain"], ["fog"]]
    >>> Y = [[1, 0], [1, 0], [1, None], [0, 1], [0, 1], [None, 1]]
    >>> chain = CredalChainClassifier(s=0.5, order="given").fit(X, Y)
    >>> reason = explain(chain, ["fog"]).steps[0].reasons[0]
    >>> reason.source, reason.name, reason.value, round(reason.size, 2)
    ('feature', 'feature0', 'fog', 6.4)
    """

    source: str
    name: str
    value: str
    lower: float
    upper: float

    @property
    def size(self) -> float:
        """Greatest distance by which it moves the bounds."""
        return max(abs(self.lower), abs(self.upper))


@dataclass(frozen=True)
class Step:
    """Label on its way along the chain.

    Parameters
    ----------
    label : str
        Name of the label.
    answer : int
        0, 1, or -1 if it was left open.
    known : bool
        True if the answer was known already.
    threshold : float
        Threshold of the label.
    lower_log_odds, upper_log_odds : float
        Bounds of its log-odds.
    reasons : tuple of Reason, default=()
        Contributions that add up to the log-odds: first those for the answer, then those against
        it, each by decreasing size; for an open label, by decreasing size. Empty if the model is
        not a sum, or if the label was never observed in training.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier, explain
    >>> X = [["sun"], ["sun"], ["sun"], ["rain"], ["rain"], ["fog"]]
    >>> Y = [[1, 0], [1, 0], [1, None], [0, 1], [0, 1], [None, 1]]
    >>> chain = CredalChainClassifier(s=0.5, order="given").fit(X, Y)
    >>> step = explain(chain, ["fog"]).steps[0]
    >>> step.label, step.word, round(step.lower, 3), round(step.upper, 3)
    ('label0', '*', 0.002, 0.998)
    """

    label: str
    answer: int
    known: bool
    threshold: float
    lower_log_odds: float
    upper_log_odds: float
    reasons: tuple[Reason, ...] = ()

    @property
    def lower(self) -> float:
        """Lower probability of the label."""
        return float(expit(self.lower_log_odds))

    @property
    def upper(self) -> float:
        """Upper probability of the label."""
        return max(self.lower, float(expit(self.upper_log_odds)))  # equal up to rounding

    @property
    def word(self) -> str:
        """Answer in words: yes, no or ``*``."""
        return _WORDS[self.answer]


@dataclass(frozen=True)
class Question:
    """Answer to an open label, and what it would settle.

    Parameters
    ----------
    label : str
        The open label.
    answer : int
        0 or 1.
    settles : tuple of (str, int)
        Other open labels, and their new answers.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier, explain
    >>> X = [["sun"], ["sun"], ["sun"], ["rain"], ["rain"], ["fog"]]
    >>> Y = [[1, 0], [1, 0], [1, None], [0, 1], [0, 1], [None, 1]]
    >>> chain = CredalChainClassifier(s=0.5, order="given").fit(X, Y)
    >>> explain(chain, ["fog"]).questions[0]
    Question(label='label0', answer=0, settles=(('label1', 1),))
    """

    label: str
    answer: int
    settles: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class SimilarRow:
    """Training row that weighs in the answers of a joint forest.

    Parameters
    ----------
    row : int
        Number of the row in the training data, from 0.
    weight : float
        Share of the total weight, which includes that of the other members of the forest.
    labels : tuple of (str, int)
        Its labels that were observed: name and 0 or 1.
    in_common : tuple of str
        Splits of the trees that have both rows in one leaf, the most frequent first.
    unknown : tuple of str, default=()
        Its labels that were missing.

    Examples
    --------
    >>> from sklearn.ensemble import ExtraTreesRegressor
    >>> from credalchain import CredalJointForest, explain
    >>> X = [[0.1], [0.2], [0.3], [0.7], [0.8], [0.9]] * 5
    >>> Y = [[0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [1, 0]] * 5
    >>> trees = ExtraTreesRegressor(20, min_samples_leaf=2, bootstrap=True)
    >>> forest = CredalJointForest(trees, members=(), random_state=0).fit(X, Y)
    >>> similar = explain(forest, [0.8]).similar[0]
    >>> similar.labels
    (('label0', 1), ('label1', 1))
    """

    row: int
    weight: float
    labels: tuple[tuple[str, int], ...]
    in_common: tuple[str, ...]
    unknown: tuple[str, ...] = ()

    @property
    def labels_as_text(self) -> str:
        """Labels that are yes, and those that are missing; of many the first."""
        words = [visible(name) for name, y in self.labels if y == 1]
        words += [f"{visible(name)} unknown" for name in self.unknown]
        return _first_of(words) or "none"

    def __str__(self) -> str:
        text = f"training row {self.row}, weight {self.weight:.3f}: {self.labels_as_text}"
        shared = ", ".join(map(visible, self.in_common[:3]))
        return f"{text} (both: {shared})" if shared else text


@dataclass(frozen=True)
class Explanation:
    """Explanation of the answers of one row.

    Parameters
    ----------
    steps : tuple of Step
        Labels in the order of the chain; for joint decisions, from most to least certain.
    questions : tuple of Question, default=()
        For every open label and both answers, the other labels that this answer would settle.
    setting : str, default=""
        Caution of the decision, such as "s = 2, branching".
    similar : tuple of SimilarRow, default=()
        For a joint forest, the training rows that weigh most.
    no_reasons : str, default=""
        Reason why no step has reasons; empty if steps have some.
    n_left_out : int, default=0
        Number of labels that were not explained.
    is_chain : bool, default=True
        True if later labels were conditioned on earlier ones.

    See Also
    --------
    credalchain.explain : Explain the answers of one row.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier, explain
    >>> X = [["sun"], ["sun"], ["sun"], ["rain"], ["rain"], ["fog"]]
    >>> Y = [[1, 0], [1, 0], [1, None], [0, 1], [0, 1], [None, 1]]
    >>> chain = CredalChainClassifier(s=0.5, order="given").fit(X, Y)
    >>> explanation = explain(chain, ["sun"])
    >>> explanation.setting, [step.word for step in explanation.steps]
    ('s = 0.5, branching', ['yes', 'no'])
    >>> explanation.to_frame().columns.tolist()
    ['step', 'label', 'source', 'name', 'value', 'lower', 'upper']
    """

    steps: tuple[Step, ...]
    questions: tuple[Question, ...] = ()
    setting: str = ""
    similar: tuple[SimilarRow, ...] = ()
    no_reasons: str = ""
    n_left_out: int = 0
    is_chain: bool = True

    @property
    def against_probability(self) -> tuple[str, ...]:
        """Labels whose answer is less likely than its opposite, taken separately.

        A joint decision answers with the likeliest combination of labels.
        """
        return tuple(
            step.label
            for step in self.steps
            if not step.known
            and {1: step.upper < step.threshold, 0: step.lower > step.threshold}.get(step.answer)
        )

    def remarks(self) -> list[str]:
        """Return further remarks.

        Returns
        -------
        list of str
            A sentence each.
        """
        names = ", ".join(map(visible, self.against_probability))
        words = "less likely by themselves, but in the likeliest combination of all labels"
        return [f"{words}: {names}"] if names else []

    @property
    def about_reasons(self) -> str:
        """Sentence on why there are no reasons, or in which unit they are."""
        if not self.no_reasons:
            return "reasons in log-odds"
        instead = "; similar training rows below" if self.similar else ""
        return f"no reasons: {self.no_reasons}{instead}"

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as lists, dicts, texts and numbers, for JSON.

        Returns
        -------
        dict
            All fields; infinite numbers as texts.
        """
        steps = [
            {**asdict(step), "answer": step.word, "lower": step.lower, "upper": step.upper}
            for step in self.steps
        ]
        questions = [
            {**asdict(asked), "answer": _WORDS[asked.answer], "settles": _words(asked.settles)}
            for asked in self.questions
        ]
        return {
            "setting": self.setting,
            "labels": _for_json(steps),
            "labels_left_out": self.n_left_out,
            "no_reasons": self.no_reasons,
            "questions": questions,
            "similar": _for_json(
                [{**asdict(row), "labels": _words(row.labels)} for row in self.similar]
            ),
        }

    def to_frame(self) -> "pd.DataFrame":
        """Return the reasons as a pandas data frame.

        Returns
        -------
        DataFrame
            One row per reason, and per label the row "all".
        """
        import pandas as pd

        rows = []
        for step_index, step in enumerate(self.steps):
            total = Reason("all", "", step.word, step.lower_log_odds, step.upper_log_odds)
            for reason in (total, *step.reasons):
                rows.append((step_index, step.label, *vars(reason).values()))
        columns = ["step", "label", "source", "name", "value", "lower", "upper"]
        return pd.DataFrame(rows, columns=columns)

    @property
    def _head(self) -> str:
        return f"{self.setting}; {self.about_reasons}"

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, top: int = 3) -> str:
        """Return the explanation as lines of text.

        Parameters
        ----------
        top : int, default=3
            Greatest number of reasons for a label, and of similar rows.

        Returns
        -------
        str
            Lines for labels, reasons, similar rows and questions.
        """
        lines, steps = [self._head], list(self.steps)
        if self.n_left_out:  # what is open first, else the chain's order
            steps.sort(key=lambda step: step.answer != ABSTAIN)
        for step in steps:
            suffix = " (known)" if step.known else ""
            bounds = f"[{step.lower:.3f}, {step.upper:.3f}]"
            lines.append(f"{visible(step.label)}: {step.word}{suffix} {bounds}")
            for reason in step.reasons[:top]:
                words = " ".join(filter(None, (reason.name, reason.value)))
                lines.append(f"    {reason.lower:+.2f} to {reason.upper:+.2f}  {visible(words)}")
        if self.n_left_out:
            lines.append(and_more(0, self.n_left_out))
        others = [*self.remarks(), *map(str, self.similar[:top])]
        others += self.questions_in_words()[:_MAX_QUESTIONS]
        return "\n".join([*lines, *others])

    def _repr_html_(self) -> str:
        """Return a table for notebooks: what is open first, then the chain's order."""
        steps = sorted(self.steps, key=lambda step: step.answer != ABSTAIN)[:_MAX_STEPS]
        head = ["label", "answer", "0 to 1", *([] if self.no_reasons else ["reasons, in log-odds"])]
        table = notebook.table(head, [self._row_as_html(step) for step in steps])
        more = and_more(len(steps), len(self.steps) + self.n_left_out, "label")
        others = [
            *self.remarks(),
            *map(str, self.similar[:5]),
            *self.questions_in_words()[:_MAX_QUESTIONS],
        ]
        below = [*filter(None, [more]), *others]
        return notebook.page(notebook.words(self._head), table, *map(notebook.words, below))

    def _row_as_html(self, step: Step) -> list[str]:
        cells = [
            notebook.name_of(step.label),
            notebook.answer(step.answer) + (" (known)" if step.known else ""),
            notebook.interval(step.answer, step.lower, step.upper),
        ]
        if not self.no_reasons:
            lines = [f"{r.lower:+.2f} to {r.upper:+.2f} {r.name} {r.value}" for r in step.reasons]
            cells.append("<br>".join(notebook.text(visible(line)) for line in lines[:3]))
        return cells

    def questions_in_words(self) -> list[str]:
        """Return one line for each answer that would settle something.

        Returns
        -------
        list of str
            For instance "if rock is no: pop is yes".
        """
        lines = []
        for question in self.questions:
            settled = [f"{visible(name)} is {_WORDS[y]}" for name, y in question.settles]
            start = f"if {visible(question.label)} is {_WORDS[question.answer]}: "
            lines += [start + _first_of(settled)] if settled else []
        return lines


def _first_of(words: Sequence[str]) -> str:
    """Return the first of several words, and how many more there are."""
    more = and_more(_MAX_LABELS, len(words))
    return ", ".join([*words[:_MAX_LABELS], *filter(None, [more])])


def _words(answers: Sequence[tuple[str, int]]) -> dict[str, str]:
    return {name: _WORDS[y] for name, y in answers}


def _for_json(value: Any) -> Any:
    """Return a value without tuples and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _for_json(cell) for key, cell in value.items()}
    if isinstance(value, (list, tuple)):
        return [_for_json(cell) for cell in value]
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value

"""How many answers a person has to give until nearly all labels are settled.

    python benchmarks/reviewers.py [DATA ...]

A third of the rows is reviewed by somebody who knows the truth and is asked one label at a time;
after every answer the other open labels of the row are thought over again. Orders of questions
are compared until 95 % of the labels are settled, by the person or by the model, at the same share
of rows with a wrong label in the end.
"""

import sys
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from credalchain import CredalChainClassifier, JointDecision
from credalchain.datasets import load
from credalchain.explanation.questions import expected_settled_labels

SETTLED, ROWS = 0.95, 250
ANSWERED = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)  # by the model alone, before anybody is asked
ORDERS = ("settles most", "least sure", "random")


class Review:
    """A person who knows the truth, and a model."""

    def __init__(self, model: Any, X: Any, truth: Any, caution: float) -> None:
        self.model, self.X, self.truth = model, X, truth
        model.set_params(**{model.caution_parameter: caution})
        self.known = np.full(truth.shape, -1, np.int8)
        found = model.infer(X, known=self.known)
        self.labels, self.interval = found.labels.copy(), found.interval.copy()
        self.start = (self.labels != -1).mean()

    def run(self, order: str, rng: np.random.RandomState) -> tuple[int, float]:
        """Answers that were needed, and the share of rows with a wrong label in the end."""
        n_asked = 0
        scores = np.full(self.truth.shape, -np.inf)
        self.rescore(scores, order, rng, np.arange(len(self.truth)))
        while (self.labels != -1).mean() < SETTLED:
            row, label = np.unravel_index(scores.argmax(), scores.shape)
            self.known[row, label] = self.truth[row, label]
            n_asked += 1
            one = np.array([row])
            found = self.model.infer(self.X[one], known=self.known[one])
            self.labels[row], self.interval[row] = found.labels[0], found.interval[0]
            scores[row] = -np.inf
            self.rescore(scores, order, rng, one)
        wrong = ((self.labels != -1) & (self.labels != self.truth)).any(axis=1)
        return n_asked, float(wrong.mean())

    def rescore(self, scores: Any, order: str, rng: Any, rows: Any) -> None:
        is_open, interval = self.labels[rows] == -1, self.interval[rows]
        if order == "settles most":
            gains = expected_settled_labels(
                self.model, self.X[rows], self.known[rows], is_open, interval
            )
            value = gains[..., 0] + 1e-3 * gains[..., 1]
        elif order == "least sure":
            value = -np.abs(interval.mean(axis=-1) - 0.5)
        else:
            value = rng.random_sample((len(rows), self.truth.shape[1]))
        scores[rows] = np.where(is_open, value, -np.inf)


def cautious_value(model: Any, X: Any, completeness: float) -> float:
    """The caution at which about so many labels are answered, by bisection."""
    sign = 1 if model.larger_is_more_cautious else -1
    bold, cautious = (1e-4, 1e4)[::sign]
    for _ in range(30):
        middle = float(np.sqrt(bold * cautious))
        answered = (model.predict_path(X, [middle])[0] != -1).mean()
        bold, cautious = (bold, middle) if answered < completeness else (middle, cautious)
    return bold


def compare(name: str, seed: int = 0) -> dict[str, Any]:
    """Answers needed by each order and model, at the row error that random order ends with.

    A more cautious model asks more and errs less, so each order is run at several values of
    caution, and its answers are interpolated at one row error.
    """
    data = load(f"mulan:{name}")
    X, Y = np.asarray(data.X, dtype=float), np.asarray(data.Y, dtype=np.int8)
    train, test = train_test_split(np.arange(len(X)), test_size=1 / 3, random_state=seed)
    test = test[:ROWS]
    models = {
        "naive chain": CredalChainClassifier(random_state=0),
        "recommended": JointDecision(reward=0.5, random_state=0),
    }
    found: dict[str, Any] = {}
    for kind, model in models.items():
        model.fit(X[train], Y[train])
        curves: dict[str, list[tuple[float, int]]] = {order: [] for order in ORDERS}
        for share in ANSWERED:
            caution = cautious_value(model, X[test], share)
            for order in ORDERS:
                review = Review(model, X[test], Y[test], caution)
                n_asked, wrong = review.run(order, np.random.RandomState(seed))
                curves[order].append((wrong, n_asked))
        target = curves["random"][len(ANSWERED) // 2][0]
        found[kind] = {"row error": target, "labels": int(Y[test].size), "curves": curves}
        for order, curve in curves.items():
            errors, asked = np.array(sorted(curve)).T
            asked = np.minimum.accumulate(asked)  # more errors are no reason to ask more
            found[kind][order] = float(np.interp(target, errors, asked))
        ratio = found[kind]["settles most"] / found[kind]["random"]
        print(f"{name}, {kind}: {found[kind]}, ratio {ratio:.2f}", flush=True)
    return found


def main() -> None:
    for name in sys.argv[1:] or ("emotions", "yeast", "scene", "flags"):
        compare(name)


if __name__ == "__main__":
    main()

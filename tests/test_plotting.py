"""Pictures: what is drawn, not how it looks (look at `make demo` for that)."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from credalchain import CredalChainClassifier
from credalchain.metrics import completeness, set_accuracy
from credalchain.plotting import CompletenessCurveDisplay, plot_predictions


@pytest.fixture
def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    Y = (X + rng.normal(size=(80, 3)) > 0).astype(int)
    yield CredalChainClassifier(random_state=0).fit(X, Y), X, Y
    plt.close("all")


def test_curve_from_estimator(fitted):
    chain, X, Y = fitted
    values = [0.5, 2, 8]
    display = CompletenessCurveDisplay.from_estimator(chain, X, Y, values=values)
    expected = [chain.infer(X, s=s) for s in values]
    np.testing.assert_allclose(display.completeness, [completeness(Y, p) for p in expected])
    np.testing.assert_allclose(display.set_accuracy, [set_accuracy(Y, p) for p in expected])
    x, y = display.line_.get_data()
    np.testing.assert_allclose(x, display.completeness)
    np.testing.assert_allclose(y, display.set_accuracy)
    assert {text.get_text() for text in display.ax_.texts} == {"s = 0.5", "s = 8"}
    assert display.ax_.get_legend().get_texts()[0].get_text() == "CredalChainClassifier"


def test_curve_on_given_axes_with_looks(fitted):
    chain, X, Y = fitted
    _, ax = plt.subplots()
    path = chain.predict_path(X, [0, 1])
    display = CompletenessCurveDisplay.from_predictions(Y, path, ax=ax, color="red", name="mine")
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.line_.get_color() == "red"
    assert not ax.texts


def test_predictions_show_words_names_and_wrong_answers(fitted):
    chain, X, Y = fitted
    prediction = chain.infer(X, s=3.0)
    rows = [3, 5, 9]
    ax = plot_predictions(prediction, rows=rows, Y_true=Y)
    words = [text.get_text() for text in ax.texts]
    expected = np.array(["no", "yes", "*"])[prediction.labels[rows]].ravel().tolist()
    assert words == expected
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["row 3", "row 5", "row 9"]
    crosses = [line for line in ax.lines if line.get_marker() == "x"]
    answered = prediction.labels[rows] != -1
    assert len(crosses) == (answered & (prediction.labels[rows] != Y[rows])).sum()


def test_the_first_rows_are_shown_by_default(fitted):
    chain, X, _ = fitted
    assert len(plot_predictions(chain.infer(X)).get_yticks()) == 8
    assert len(plot_predictions(chain.infer(X[:2])).get_yticks()) == 2

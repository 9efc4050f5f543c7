"""Pictures: what is drawn, not how it looks (look at `make demo` for that)."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from credalchain import CredalChainClassifier, CredalPrediction, Exactness, JointDecision, explain
from credalchain.metrics import completeness, interval_calibration_error, set_accuracy
from credalchain.plotting import (
    CompletenessCurveDisplay,
    IntervalCalibrationDisplay,
    plot_explanation,
    plot_predictions,
)
from credalchain.prediction import log_odds


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


# -- many labels, and few ----------------------------------------------------------------------


def made_up(n, m, names=None):
    rng = np.random.default_rng(m)
    bounds = np.sort(rng.uniform(size=(n, m, 2)), axis=-1)
    labels = np.where(bounds[..., 0] > 0.5, 1, np.where(bounds[..., 1] < 0.5, 0, -1))
    names = tuple(f"label {j}" for j in range(m)) if names is None else tuple(names)
    return CredalPrediction(labels.astype(np.int8), log_odds(bounds), (Exactness.EXACT,) * m, names)


@pytest.mark.parametrize(("m", "drawn"), [(2, 2), (14, 14), (20, 20), (21, 20), (1000, 20)])
def test_labels_of_a_picture_of_predictions(m, drawn):
    prediction = made_up(3, m)
    ax = plot_predictions(prediction)
    names = [tick.get_text() for tick in ax.get_xticklabels()]
    assert len(names) == drawn
    if drawn == m:
        assert names == list(prediction.label_names)
        assert ax.get_xlabel() == ""
    else:
        assert ax.get_xlabel() == f"and {m - 20} more label{'s' * (m > 21)}"
        n_open = prediction.abstained.sum(axis=0)
        assert n_open[int(names[0].split()[1])] == n_open.max()
    width, height = ax.figure.get_size_inches()
    assert 2 < width < 25
    assert height < 5
    plt.close("all")


def test_what_is_asked_for_is_drawn_in_a_figure_of_bounded_size():
    prediction = made_up(90, 70)
    ax = plot_predictions(prediction, max_labels=None, max_rows=2)
    assert len(ax.get_xticks()) == 70
    assert ax.get_xlabel() == "and 88 more rows"
    assert max(ax.figure.get_size_inches()) <= 50
    ax = plot_predictions(prediction, max_labels=1, max_rows=None)
    assert len(ax.get_yticks()) == 90
    assert ax.get_xlabel() == "and 69 more labels"
    assert max(ax.figure.get_size_inches()) <= 50
    with pytest.raises(ValueError, match="max_labels must be a whole number, at least 1"):
        plot_predictions(prediction, max_labels=0)
    plt.close("all")


def test_the_right_cells_are_drawn_where_labels_are_chosen():
    prediction = made_up(4, 50)
    ax = plot_predictions(prediction, rows=[2, 0], max_labels=7)
    chosen = [int(tick.get_text().split()[1]) for tick in ax.get_xticklabels()]
    words = np.array(["no", "yes", "*"])[prediction.labels[np.ix_([2, 0], chosen)]]
    assert [text.get_text() for text in ax.texts] == words.ravel().tolist()
    plt.close("all")


def test_long_names_are_cut_and_have_room():
    long = made_up(1, 2, ["a name that goes on and on and on", "b"])
    short = made_up(1, 2, ["a", "b"])
    figures = []
    for prediction in (short, long):
        ax = plot_predictions(prediction)
        figures.append(ax.figure.get_size_inches())
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["a name that goes on and…", "b"]
    assert (figures[1] > figures[0]).all()
    plt.close("all")


@pytest.fixture(scope="module")
def many_labels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    Y = (X @ rng.normal(size=(3, 60)) + rng.normal(size=(80, 60)) > 1).astype(int)
    return CredalChainClassifier(s=1.0, random_state=0).fit(X, Y), X


@pytest.mark.slow
def test_a_picture_of_many_steps(many_labels):
    chain, X = many_labels
    whole = explain(chain, X[0], max_labels=None)
    assert len(whole.steps) == 60
    for explanation in (whole, explain(chain, X[0], max_labels=20)):
        figure = plot_explanation(explanation)
        words = [text.get_text() for ax in figure.axes for text in ax.texts]
        assert sum(word in ("yes", "no", "*") for word in words) == 20
        assert figure.get_supxlabel() == "and 40 more labels"
        assert figure.get_size_inches()[1] < 25
    names = [step.label for step in whole.steps]
    drawn = [word for word in words if word in names]
    assert drawn == sorted(drawn, key=names.index)  # in the order of the chain
    few = plot_explanation(explain(chain, X[0], labels=["label3", 5]), top=1)
    assert few.get_supxlabel() == "and 58 more labels"
    plt.close("all")


# -- intervals against what was observed ---------------------------------------------------------


def intervals(lower, upper):
    bounds = np.stack([lower, upper], axis=-1)
    labels = np.where(lower > 0.5, 1, np.where(upper < 0.5, 0, -1)).astype(np.int8)
    m = labels.shape[1]
    names = tuple(f"label{j}" for j in range(m))
    return CredalPrediction(labels, log_odds(bounds), (Exactness.EXACT,) * m, names)


def test_calibration_display_of_reliable_and_of_sure_intervals():
    rng = np.random.default_rng(0)
    p = rng.uniform(0, 1, (20_000, 1))
    truth = (rng.uniform(size=p.shape) < p).astype(int)
    reliable = intervals(np.maximum(p - 0.05, 0), np.minimum(p + 0.05, 1))
    display = IntervalCalibrationDisplay.from_predictions(truth, reliable)
    counted = display.reliability
    assert counted.calibration_error == 0
    for bars in display.bars_:
        segments = np.array(bars.get_segments())  # (bars, ends, x and y)
        assert (segments[:, 0, 0] <= segments[:, 0, 1]).all()  # mean lower <= share
        assert (segments[:, 1, 0] >= segments[:, 1, 1]).all()
        assert (bars.get_colors()[:, 3] < 1).all()  # pale
    sure = np.where(p > 0.5, 0.95, 0.05)
    display = IntervalCalibrationDisplay.from_predictions(truth, intervals(sure, sure), name="$x$")
    assert [len(bars.get_segments()) for bars in display.bars_] == [2, 2]  # empty bins left out
    assert all((bars.get_colors()[:, 3] == 1).all() for bars in display.bars_)
    error = display.reliability.calibration_error
    assert display.ax_.get_title() == rf"\$x\$: calibration error {error:.3f}"
    assert error == pytest.approx(0.2, abs=0.02)
    share = truth[p <= 0.5].mean()
    np.testing.assert_allclose(display.bars_[0].get_segments()[0], [(0.05, share)] * 2)
    plt.close("all")


def test_calibration_display_from_an_estimator(fitted):
    chain, X, Y = fitted
    _, ax = plt.subplots()
    missing = np.where(np.arange(len(Y))[:, None] % 3 == 0, np.nan, Y)
    display = IntervalCalibrationDisplay.from_estimator(chain, X, missing, n_bins=4, ax=ax)
    assert display.ax_ is ax
    assert display.reliability.cells.shape == (2, 4)
    assert display.reliability.cells.sum() == 2 * np.isfinite(missing).sum()
    expected = interval_calibration_error(missing, chain.infer(X), n_bins=4)
    assert display.reliability.calibration_error == expected
    assert ax.get_title().startswith("CredalChainClassifier: ")
    pipeline = make_pipeline(StandardScaler(), CredalChainClassifier(random_state=0)).fit(X, Y)
    assert IntervalCalibrationDisplay.from_estimator(pipeline, X, Y).reliability.cells.sum() > 0


def test_calibration_display_of_one_label_given_as_class_names(fitted):
    _, X, Y = fitted
    y = np.where(Y[:, 0] == 1, "yes", "no")
    chain = CredalChainClassifier(random_state=0).fit(X, y)
    display = IntervalCalibrationDisplay.from_estimator(chain, X, y)
    assert display.reliability.cells.sum() == 2 * len(X)


def test_calibration_display_without_a_single_cell():
    nothing = intervals(np.full((2, 1), 0.2), np.full((2, 1), 0.4))
    display = IntervalCalibrationDisplay.from_predictions([[-1], [-1]], nothing, name="none")
    assert [len(bars.get_segments()) for bars in display.bars_] == [0, 0]
    assert display.ax_.get_title() == "none: calibration error nan"
    plt.close("all")


def test_a_joint_decision_is_no_chain():
    """Its answers are not linked, and training rows stand where a sum has reasons."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    Y = (X[:, :2] > 0).astype(int)
    explanation = explain(JointDecision(random_state=0).fit(X, Y), X[0])
    assert not explanation.is_chain
    chain, _, rows = plot_explanation(explanation).axes
    assert not chain.lines
    assert "training rows" in rows.get_title()
    words = [text.get_text() for text in rows.texts]
    assert words == [f"row {one.row}: {one.labels_as_text}" for one in explanation.similar[:5]]
    chained = explain(CredalChainClassifier(order="given").fit(X, Y), X[0])
    assert plot_explanation(chained).axes[0].lines

"""Explanations add up to the bounds they explain, and their questions hold."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from credalchain import (
    CredalBinaryRelevanceClassifier,
    CredalChainClassifier,
    CredalChainEnsemble,
    CredalForest,
    CredalJointForest,
    CredalWrapper,
    JointDecision,
    LocalChainModel,
    NaiveCredal,
    PromisedClassifier,
    explain,
)
from credalchain.explanation.result import Explanation, Question, SimilarRow
from credalchain.plotting import plot_explanation
from problems import cases
from profiles import examples


def extended_sum(parts):
    """Contributions with infinities: any -inf wins, as 0/0 counts as 0."""
    if -np.inf in parts:
        return -np.inf
    return sum(parts)


@examples(200)
@given(cases())
def test_reasons_add_up_to_the_log_odds(case):
    chain = case.estimator()
    x, known = case.rows[:1], case.known[:1]
    explanation = explain(chain, x, known=known)
    prediction = chain.infer(x, known=known)
    names = list(chain.label_names_)
    assert sorted(step.label for step in explanation.steps) == sorted(names)
    observed = (case.Y != -1).any(axis=0)
    for step in explanation.steps:
        j = names.index(step.label)
        assert step.answer == prediction.labels[0, j]
        assert step.known == (known[0, j] != -1)
        bounds = (step.lower_log_odds, step.upper_log_odds)
        assert bounds == tuple(prediction.log_odds[0, j])
        if observed[j]:
            totals = [
                extended_sum([getattr(r, side) for r in step.reasons])
                for side in ("lower", "upper")
            ]
            np.testing.assert_allclose(totals, bounds, atol=1e-9)
        sign = {1: 1, 0: -1, -1: 0}[step.answer]
        middles = [reason.lower + reason.upper for reason in step.reasons]
        against = [sign * middle < 0 for middle in middles]
        assert against == sorted(against)  # what spoke for the answer comes first
        for side in (True, False):
            pairs = zip(step.reasons, against, strict=True)
            sizes = [reason.size for reason, is_against in pairs if is_against == side]
            assert sizes == sorted(sizes, reverse=True)


@examples(100)
@given(cases(with_known=False))
def test_questions_settle_what_they_say(case):
    chain = case.estimator()
    names = list(chain.label_names_)
    before = chain.infer(case.rows[:1]).labels[0]
    explanation = explain(chain, case.rows[:1])
    assert len(explanation.questions) == 2 * (before == -1).sum()
    for question in explanation.questions:
        known = np.full((1, len(names)), -1)
        known[0, names.index(question.label)] = question.answer
        after = chain.infer(case.rows[:1], known=known).labels[0]
        settled = {
            (names[k], after[k])
            for k in range(len(names))
            if before[k] == -1 and after[k] != -1 and names[k] != question.label
        }
        assert set(question.settles) == settled


@pytest.fixture(scope="module")
def songs():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "tempo": rng.normal(120, 20, 90),
            "key": rng.choice(["C", "D"], 90),
            "live": rng.random(90) < 0.5,
        }
    )
    Y = pd.DataFrame({"rock": X.tempo > 120, "pop": X.key == "C", "folk": rng.random(90) < 0.5})
    return CredalChainClassifier(s=2.0, order="given").fit(X, Y), X, Y


def test_values_are_in_the_features_own_units(songs):
    chain, X, _ = songs
    row = X.iloc[:1].assign(tempo=121.0, key="never heard", live=None)
    (first, *_) = explain(chain, row).steps
    values = {reason.name: reason.value for reason in first.reasons}
    cuts = chain.model_.discretizer.binnings_[0].cuts
    low, high = cuts[cuts < 121].max(), cuts[cuts >= 121].min()
    assert values["tempo"] == f"{low:.4g} to {high:.4g}"
    assert values["key"] == "never seen"
    assert values["live"] == "missing"
    ends = [explain(chain, X.iloc[:1].assign(tempo=t)).steps[0] for t in (0.0, 999.0)]
    words = [next(r.value for r in step.reasons if r.name == "tempo") for step in ends]
    assert words == [f"at most {cuts[0]:.4g}", f"above {cuts[-1]:.4g}"]


def test_frame_and_text(songs):
    chain, X, _ = songs
    explanation = explain(chain, X.iloc[:1])
    frame = explanation.to_frame()
    assert list(frame.columns) == ["step", "label", "source", "name", "value", "lower", "upper"]
    assert (frame.source == "all").sum() == 3
    for j, group in frame[frame.source != "all"].groupby("label", sort=False):
        total = frame[(frame.source == "all") & (frame.label == j)].iloc[0]
        assert group.lower.sum() == pytest.approx(total.lower, abs=1e-9)
    assert "rock" in str(explanation)


def test_one_row_only(songs):
    chain, X, _ = songs
    with pytest.raises(ValueError, match="x must be one row, got 2"):
        explain(chain, X.iloc[:2])
    with pytest.raises(
        ValueError, match=r"known must have shape \(1, 3\), one row .*, got \(1, 2\)"
    ):
        explain(chain, X.iloc[:1], known=[1, 0])


def test_relevance_has_no_questions_and_a_vector_is_a_row():
    X = np.random.default_rng(0).normal(size=(50, 2))
    alone = CredalBinaryRelevanceClassifier(s=5).fit(X, (X > 0).astype(int))
    explanation = explain(alone, X[0])
    assert explanation.questions == ()
    assert {reason.source for step in explanation.steps for reason in step.reasons} == {
        "prior",
        "feature",
    }


def test_models_that_are_not_sums_give_intervals_and_decisions():
    class Local:
        def bounds(self, X, j, history, *, s):
            return np.full(len(X), 0.4), np.full(len(X), 0.6 + 0.1 * j)

    chain = CredalChainClassifier.from_model(LocalChainModel(Local(), 2), n_features=1)
    explanation = explain(chain, [0.0])
    assert [step.reasons for step in explanation.steps] == [(), ()]
    assert all(step.word == "*" for step in explanation.steps)
    assert plot_explanation(explanation).axes


def test_picture(songs):
    chain, X, _ = songs
    explanation = explain(chain, X.iloc[:1], known=[1, -1, -1])
    figure = plot_explanation(explanation, top=2)
    words = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert "rock (known)" in words
    assert sum(word in ("yes", "no", "*") for word in words) == 3
    assert any(word.startswith("tempo") for word in words)


def test_a_row_of_mixed_kinds_and_known_of_any_kind(songs):
    chain, X, _ = songs
    from_list = explain(
        CredalChainClassifier(s=2.0, order="given").fit(
            X.to_numpy(dtype=object), [[1, 0, 1]] * 45 + [[0, 1, 0]] * 45
        ),
        [121.0, "C", True],
    )
    assert len(from_list.steps) == 3
    assert explain(chain, X.iloc[:1], known=[1, None, np.nan]).steps[0].known


def test_a_label_never_observed_has_no_reasons():
    X = np.arange(6.0)[:, None]
    with pytest.warns(UserWarning, match="never observed"):
        chain = CredalChainClassifier(order="given").fit(X, [[i % 2, np.nan] for i in range(6)])
    step = explain(chain, X[0]).steps[1]
    assert step.reasons == ()
    assert (step.lower, step.upper) == (0, 1)


OTHERS = {
    "forest": CredalChainClassifier(CredalForest(), s=3.0, random_state=0),
    "wrapper": CredalChainClassifier(CredalWrapper(n_members=4), s=2.0, random_state=0),
    "ensemble": CredalChainEnsemble(n_chains=3, s=1.0, random_state=0),
    "joint": JointDecision(CredalChainEnsemble(n_chains=3, random_state=0), reward=0.2),
}
WHY_NOT = {
    "forest": "a forest is not a sum",
    "wrapper": "a wrapped classifier does not say",
    "ensemble": "the mean of several chains is not a sum",
    "joint": "labels are treated as independent",
}


@pytest.mark.parametrize("name", OTHERS)
def test_models_that_are_no_sum(name):
    """Bounds, decisions and questions; no reasons."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    Y = (X[:, [0, 0, 1, 2]] + 0.8 * rng.normal(size=(150, 4)) > 0).astype(int)
    model = OTHERS[name].fit(X[:120], Y[:120])
    opened = np.flatnonzero((model.predict_partial(X[120:]) == -1).any(axis=1))
    x = X[120 + opened[0]]
    known = [-1, -1, -1, 1]
    explanation = explain(model, x, known=known)
    prediction = model.infer([x], known=[known])
    names = list(prediction.label_names)
    for step in explanation.steps:
        j = names.index(step.label)
        assert step.answer == prediction.labels[0, j]
        assert (step.lower_log_odds, step.upper_log_odds) == tuple(prediction.log_odds[0, j])
        assert step.reasons == ()
        assert step.known == (j == 3)
    for question in explanation.questions:
        told = np.array(known)
        told[names.index(question.label)] = question.answer
        after = model.infer([x], known=[told]).labels[0]
        for label, y in question.settles:
            assert after[names.index(label)] == y
    figure = plot_explanation(explanation)
    assert len(figure.axes) == 2
    assert WHY_NOT[name] in explanation.no_reasons
    for text in (str(explanation), explanation._repr_html_(), explanation.about_reasons):
        assert WHY_NOT[name] in text
    assert "no reasons: " in figure.get_supxlabel()
    assert str(explanation).startswith("decided jointly" if name == "joint" else "s = ")


def test_caution_parameters_do_not_mix():
    X, Y = [[0.0], [1.0]] * 4, [[0, 1], [1, 0]] * 4
    decision = JointDecision(CredalChainClassifier()).fit(X, Y)
    with pytest.raises(ValueError, match="s and strategy must be None for a JointDecision"):
        explain(decision, [0.0], s=1.0)
    with pytest.raises(ValueError, match="reward must be None for CredalChainClassifier"):
        explain(CredalChainClassifier().fit(X, Y), [0.0], reward=1.0)


def test_a_joint_forest_has_training_rows_and_says_unexplained_because():
    X = np.random.default_rng(0).normal(size=(60, 2))
    forest = CredalJointForest(random_state=0).fit(X, (X > 0).astype(int))
    explanation = explain(forest, X[0])
    assert explanation.similar
    assert "similar training rows below" in explanation.about_reasons
    assert "a joint forest is not a sum" in str(explanation)


def test_a_strategy_that_is_no_sum_says_so():
    X = np.random.default_rng(0).normal(size=(60, 2))
    chain = CredalChainClassifier(strategy="tree-marginalization").fit(X, (X > 0).astype(int))
    assert "with this strategy" in explain(chain, X[0]).no_reasons
    assert explain(chain, X[0], strategy="branching").no_reasons == ""
    assert explain(chain, X[0], strategy="branching").about_reasons == "reasons in log-odds"


# -- some of many labels ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def tags():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    Y = (X @ rng.normal(size=(4, 40)) + rng.normal(size=(120, 40)) > 1).astype(int)
    return X, pd.DataFrame(Y, columns=[f"tag {j}" for j in range(40)])


MANY = {
    "chain": CredalChainClassifier(s=1.0, random_state=0),
    "dynamic": CredalChainClassifier(s=1.0, order="dynamic"),
    "relevance": CredalBinaryRelevanceClassifier(s=1.0),
    "joint forest": CredalJointForest(s=2.0, random_state=0),
    "decision": JointDecision(CredalJointForest(random_state=0), reward=1.0),
    "promised": PromisedClassifier(
        CredalChainClassifier(random_state=0), {"row_error": 0.5}, random_state=0
    ),
}


@pytest.mark.parametrize("name", MANY)
def test_some_labels_are_explained_as_all_are(name, tags):
    X, Y = tags
    model = MANY[name].fit(X[:100], Y[:100])
    whole = explain(model, X[101], max_labels=None)
    assert len(whole.steps) == 40
    assert whole.n_left_out == 0
    chosen = explain(model, X[101], labels=["tag 7", 3, "tag 3", np.int64(12)])
    assert {step.label for step in chosen.steps} == {"tag 7", "tag 3", "tag 12"}
    assert chosen.n_left_out == 37
    short = explain(model, X[101], max_labels=8)
    assert len(short.steps) == 8
    assert short.n_left_out == 32
    assert "and 32 more" in str(short)
    for part in (chosen, short):
        places = [whole.steps.index(step) for step in part.steps]  # equal, reasons and all
        assert places == sorted(places)
        names = {step.label for step in part.steps}
        assert part.questions == tuple(q for q in whole.questions if q.label in names)
        assert part.similar == whole.similar
    n_open = sum(step.answer == -1 for step in whole.steps)
    assert sum(step.answer == -1 for step in short.steps) >= min(n_open, 6)


@pytest.mark.parametrize("name", ["chain", "dynamic", "relevance", "promised"])
def test_what_spoke_for_an_answer_comes_first(name, tags):
    X, Y = tags
    model = MANY[name].fit(X[:100], Y[:100])
    for i in range(100, 110):
        for step in explain(model, X[i], max_labels=None).steps:
            sign = {1: 1, 0: -1, -1: 0}[step.answer]
            against = [sign * (reason.lower + reason.upper) < 0 for reason in step.reasons]
            assert step.reasons
            assert against == sorted(against)
            sizes = [
                [r.size for r, a in zip(step.reasons, against, strict=True) if a == s]
                for s in (0, 1)
            ]
            assert all(one == sorted(one, reverse=True) for one in sizes)


def test_labels_that_are_not_there(tags):
    X, Y = tags
    chain = CredalChainClassifier(random_state=0).fit(X, Y)
    for bad in ("tag 99", 40, -1, 1.5, True):
        with pytest.raises(ValueError, match="labels must be names of labels .*tag 0.* below 40"):
            explain(chain, X[0], labels=[bad])
    with pytest.raises(ValueError, match="max_labels must be a whole number"):
        explain(chain, X[0], max_labels=0)
    assert len(explain(chain, X[0], labels="tag 9").steps) == 1


def test_all_of_it_as_json(tags):
    X, Y = tags
    chain = CredalChainClassifier(s=1.0, base=NaiveCredal(epsilon=0), random_state=0).fit(X, Y)
    explanation = explain(chain, X[0], labels=range(5))
    found = json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
    assert [one["label"] for one in found["labels"]] == [step.label for step in explanation.steps]
    assert [one["answer"] for one in found["labels"]] == [step.word for step in explanation.steps]
    for one, step in zip(found["labels"], explanation.steps, strict=True):
        assert (one["lower"], one["upper"]) == (step.lower, step.upper)
        pairs = [(float(r["lower"]), float(r["upper"])) for r in one["reasons"]]
        assert pairs == [(r.lower, r.upper) for r in step.reasons]
    assert found["labels_left_out"] == 35
    forest = explain(CredalJointForest(random_state=0).fit(X, Y), X[0])
    assert json.loads(json.dumps(forest.to_dict()))["similar"][0]["row"] == forest.similar[0].row


def test_long_lists_are_cut_in_words():
    settles = tuple((f"tag {j}", 0) for j in range(30))
    explanation = Explanation((), (Question("a", 1, settles),), "")
    (line,) = explanation.questions_in_words()
    assert line.endswith("tag 11 is no, and 18 more")
    row = SimilarRow(0, 0.5, tuple((f"tag {j}", 1) for j in range(13)), ())
    assert row.labels_as_text.endswith("tag 11, and 1 more")


def test_answers_against_their_own_probability_are_named():
    """Either both labels or none: each alone is unlikely, the pair is the likeliest vector."""
    Y = [[1, 1, 1, 0]] * 40 + [[0, 0, 1, 0]] * 11 + [[0, 1, 0, 1]] * 25 + [[0, 0, 0, 1]] * 24
    X = np.zeros((100, 1))
    explanation = explain(JointDecision(random_state=0).fit(X, Y), X[0], reward=2.0)
    answers = {step.label: (step.answer, step.upper) for step in explanation.steps}
    against = [name for name, (y, p) in answers.items() if (p < 0.5) == (y == 1) and p != 0.5]
    assert list(explanation.against_probability) == against
    assert "label0" in against
    assert "less likely by themselves" in str(explanation)
    assert "less likely by themselves" in explanation._repr_html_()


def test_bounds_have_digits_enough_to_be_true():
    rng = np.random.default_rng(0)
    X = 1.78 + rng.integers(0, 40, (300, 2)) * 1e-5
    Y = (X > 1.7802).astype(int)
    forest = CredalJointForest(random_state=0).fit(X, Y)
    for row in X[:20]:
        for similar in explain(forest, row).similar:
            for text in similar.in_common:
                parts = text.replace("<=", "<").split(" < ")
                name = next(part for part in parts if part.startswith("feature"))
                value = float(np.float32(row[int(name.removeprefix("feature"))]))
                at = parts.index(name)
                assert at == 0 or float(parts[at - 1]) < value
                assert at + 1 == len(parts) or value <= float(parts[at + 1])


def test_a_row_of_a_data_frame():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=40), "b": rng.choice(["x", "y"], 40)})
    chain = CredalChainClassifier(order="given").fit(X, (X[["a"]] > 0).astype(int))
    assert str(explain(chain, X.iloc[3])) == str(explain(chain, X.iloc[[3]]))


def small_forest(**params):
    trees = ExtraTreesRegressor(10, min_samples_leaf=3, bootstrap=True)
    return CredalJointForest(trees, members=(), random_state=0, **params)


@pytest.mark.parametrize("missing", ["ignorable", "conservative"])
def test_training_rows_without_the_label_are_no_evidence_for_it(missing):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    Y = (X[:, [0, 1, 0]] + 0.3 * rng.normal(size=(80, 3)) > 0).astype(float)
    Y[rng.random(Y.shape) < 0.3] = np.nan
    Y[::3] = np.nan
    forest = small_forest(missing=missing).fit(X, Y)
    for model in (forest, JointDecision.from_fitted(forest)):
        for i in range(0, 12, 3):
            for known in (None, [1, -1, -1]):
                every = explain(model, X[i], known=known).similar
                assert every
                assert all(one.labels for one in every)
                some = explain(model, X[i], known=known, labels=["label1"]).similar
                assert some
                assert all("label1" not in one.unknown for one in some)
                assert [one for one in every if "label1" not in one.unknown] == [
                    one for one in some if one in every
                ]


def test_what_is_said_in_place_of_reasons_is_true(songs):
    _, X, Y = songs
    chain = CredalChainClassifier(base=CredalForest(ExtraTreesClassifier(5)), random_state=0)
    joint, independent = "training rows", "treated as independent"
    for decision, words in (
        (JointDecision(small_forest()), joint),
        (JointDecision(small_forest(), joint="independent"), independent),
        (JointDecision(chain, calibration_folds=None), independent),
    ):
        explanation = explain(decision.fit(X, Y), X.iloc[0])
        assert words in explanation.no_reasons
        assert sum(other in explanation.no_reasons for other in (joint, independent)) == 1


DOCUMENTS = ["sun and wind", "rain and fog", "sun", "fog", "rain and wind"] * 12


@pytest.mark.parametrize("calibration", [None, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("inside", [True, False])
def test_features_behind_pipelines_have_their_names(inside, calibration):
    """Of a promise over a pipeline, and of a pipeline that ends in a promise."""
    weather = ["sun", "rain", "fog"]
    Y = np.array([[word in text for word in weather] for text in DOCUMENTS]).astype(int)
    numbers = pd.DataFrame(Y + np.random.default_rng(0).normal(size=Y.shape), columns=weather)
    folds = {"calibration": calibration, "method": "cross_fit"} if calibration else {}
    options = {"random_state": 0} | folds
    for transformer, X, rows, names in (
        (StandardScaler(), numbers, [numbers.iloc[0], numbers[:1]], weather),
        (StandardScaler(), numbers.to_numpy(), [numbers.to_numpy()[0]], ["feature0", "feature1"]),
        (PCA(2), numbers, [numbers.iloc[0]], ["pca0", "pca1"]),
        (MaxAbsScaler(), sparse.csr_array(Y), [sparse.csr_array(Y)[0]], ["feature0", "feature1"]),
        (TfidfVectorizer(), DOCUMENTS, [DOCUMENTS[0], DOCUMENTS[:1]], weather),
    ):
        for classifier in (JointDecision(small_forest()), CredalChainClassifier(random_state=0)):
            if inside:
                pipeline = make_pipeline(transformer, classifier)
                model = PromisedClassifier(pipeline, {"row_error": 0.4}, **options)
            else:
                promised = PromisedClassifier(classifier, {"row_error": 0.4}, **options)
                model = make_pipeline(transformer, promised)
            model.fit(X, Y)
            texts = set()
            for row in rows:
                explanation = explain(model, row)
                found = {name for one in explanation.similar for name in one.in_common}
                found |= {reason.name for step in explanation.steps for reason in step.reasons}
                assert any(name in text for text in found for name in names)
                texts.add(str(explanation))
                known = explain(model, row, known=[1, -1, -1], labels=[0, 2])
                assert [step.known for step in known.steps if step.label == "label0"] == [True]
            assert len(texts) == 1


def test_a_single_value_is_no_row():
    chain = CredalChainClassifier().fit([[0.0], [1.0]] * 5, [[0], [1]] * 5)
    for bad in ("fog", 1.0):
        with pytest.raises(ValueError, match=f"x must be one row of features, got {bad!r}"):
            explain(chain, bad)

"""Model files: round trips, refusals, and a fuzz of bytes and of arrays."""

import os
import pickle
import resource
import stat
import subprocess
import sys
import zipfile
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB

from credalchain import (
    TRUSTED_TYPES,
    CredalBinaryRelevanceClassifier,
    CredalChainClassifier,
    CredalChainEnsemble,
    CredalForest,
    CredalJointForest,
    CredalLogistic,
    CredalWrapper,
    Discretizer,
    JointDecision,
    KernelPowerset,
    LabelPowerset,
    LocalBase,
    NaiveCredal,
    Strategy,
    load_model,
    marginalization,
    save_model,
)
from credalchain.model_files import ModelFileError, read_description
from credalchain.persistence import archive
from model_edits import rewrite
from profiles import scaled

rng = np.random.default_rng(0)
N = 60
FRAME = pd.DataFrame(
    {
        "age": np.where(rng.random(N) < 0.1, np.nan, rng.normal(40, 10, N)),
        "city": rng.choice(["Paris", "Oslo", "Ürümqi"], N),
        "member": rng.random(N) < 0.5,
        "size": pd.Categorical(rng.choice(["S", "L"], N), categories=["S", "M", "L"]),
        "grade": pd.Categorical(rng.choice([1, 2], N), categories=[1, 2, 3]),
        "empty": [None] * N,
    }
)
LABELS = pd.DataFrame(rng.integers(0, 2, (N, 3)), columns=["rock", "pop", "fólk"]).astype(float)
LABELS[rng.random(LABELS.shape) < 0.2] = np.nan
CODES = rng.integers(0, 3, (N, 4))
NUMBERS = rng.normal(size=(N, 4))

MODELS = {
    "mixed frame": lambda: CredalChainClassifier(s=0.7, random_state=3).fit(FRAME, LABELS),
    "relevance": lambda: CredalBinaryRelevanceClassifier(threshold=[0.4, 0.5, 0.6]).fit(
        NUMBERS, LABELS
    ),
    "codes": lambda: CredalChainClassifier(
        NaiveCredal(discretizer=None, epsilon=0, prior="credal", denominator="class"),
        order=[2, 0, 1],
        strategy=marginalization,
    ).fit(CODES, LABELS),
    "dynamic": lambda: CredalChainClassifier(
        order="dynamic", random_state=np.random.RandomState(0)
    ).fit(NUMBERS, LABELS),
    "sparse": lambda: CredalChainClassifier(
        NaiveCredal(discretizer=Discretizer(n_bins=3), missing_features="conservative")
    ).fit(sparse.csr_array(np.maximum(NUMBERS, 0)), LABELS),
    "frozen": lambda: CredalChainClassifier(
        NaiveCredal(discretizer=FrozenEstimator(Discretizer().fit(NUMBERS)))
    ).fit(NUMBERS, LABELS),
    "class names": lambda: CredalChainClassifier().fit(NUMBERS, np.where(CODES[:, 0], "yes", "no")),
    "after partial_fit": lambda: (
        CredalChainClassifier(threshold=np.float64(0.4))
        .partial_fit(NUMBERS[:30], LABELS[:30])
        .partial_fit(NUMBERS[30:], LABELS[30:])
    ),
}
SMALL = ExtraTreesClassifier(n_estimators=7, max_depth=4, random_state=np.random.RandomState(0))
GROVE = ExtraTreesRegressor(n_estimators=7, max_depth=4, bootstrap=True)
COMPLETE = np.nan_to_num(np.asarray(LABELS, dtype=float))
OTHERS = {
    "forest": lambda: CredalChainClassifier(CredalForest(SMALL), s=0.5, random_state=0).fit(
        FRAME.drop(columns="empty"), LABELS
    ),
    "default forest": lambda: CredalBinaryRelevanceClassifier(CredalForest()).fit(NUMBERS, LABELS),
    "random forest": lambda: CredalChainClassifier(
        CredalForest(RandomForestClassifier(n_estimators=5)), strategy="marginalization"
    ).fit(NUMBERS, LABELS),
    "logistic": lambda: CredalChainClassifier(
        CredalLogistic("posterior", n_members=3), order=[1, 2, 0]
    ).fit(FRAME[["city", "member", "grade"]], LABELS),
    "wrapper": lambda: CredalChainClassifier(
        CredalWrapper(GaussianNB(), n_members=2, quantiles=(0.2, 0.8)), random_state=1
    ).fit(NUMBERS, LABELS),
    "contamination": lambda: CredalChainClassifier(CredalWrapper(source="contamination")).fit(
        NUMBERS, np.column_stack([LABELS, np.ones(N)])
    ),
    "venn-abers": lambda: CredalChainClassifier(
        CredalWrapper(source="venn-abers"), random_state=0
    ).fit(NUMBERS, LABELS),
    "ensemble": lambda: CredalChainEnsemble(n_chains=4, s=0.4, random_state=0).fit(FRAME, LABELS),
    "forests": lambda: CredalChainEnsemble(CredalForest(SMALL), n_chains=3, n_jobs=2).fit(
        FRAME.drop(columns="empty"), LABELS
    ),
    "joint forest": lambda: CredalJointForest(GROVE, missing="conservative", random_state=0).fit(
        FRAME, LABELS
    ),
    "members": lambda: JointDecision(
        CredalJointForest(GROVE, members=[KernelPowerset(), LabelPowerset(GaussianNB())]),
        random_state=0,
    ).fit(NUMBERS, COMPLETE),
    "recommended": lambda: JointDecision(random_state=0).fit(FRAME, COMPLETE),
    "joint": lambda: JointDecision(
        CredalChainEnsemble(CredalForest(SMALL), n_chains=2, random_state=0), reward=0.7
    ).fit(NUMBERS, LABELS),
}
INPUT = {
    "forest": FRAME.drop(columns="empty"),
    "forests": FRAME.drop(columns="empty"),
    "ensemble": FRAME,
    "joint forest": FRAME,
    "recommended": FRAME,
    "logistic": FRAME[["city", "member", "grade"]],
    "mixed frame": FRAME,
    "codes": CODES,
    "sparse": sparse.csr_array(np.maximum(NUMBERS, 0)),
}


def answers(classifier, X):
    prediction = classifier.infer(X)
    return (
        prediction.labels.tobytes(),
        prediction.log_odds.tobytes(),
        prediction.label_names,
        classifier.predict(X).tolist(),
    )


@pytest.mark.parametrize("name", MODELS)
def test_round_trip(name, tmp_path):
    classifier, X = MODELS[name](), INPUT.get(name, NUMBERS)
    save_model(classifier, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert answers(classifier, X) == answers(again, X)
    assert type(again) is type(classifier)
    assert again.s == classifier.s
    assert again.model_.counts == classifier.model_.counts
    if hasattr(classifier, "feature_names_in_"):
        assert again.feature_names_in_.tolist() == classifier.feature_names_in_.tolist()
    again.set_params(s=3.0).partial_fit(X, LABELS if again.n_labels_ == 3 else again.predict(X))
    again.fit(X, LABELS)


@pytest.mark.parametrize("name", OTHERS)
def test_round_trip_of_other_bases(name, tmp_path):
    classifier, X = OTHERS[name](), INPUT.get(name, NUMBERS)
    save_model(classifier, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert answers(classifier, X) == answers(again, X)
    assert type(again) is type(classifier)
    assert again.predict_proba(X).tobytes() == classifier.predict_proba(X).tobytes()
    values = [0.1, 0.9]
    assert again.predict_path(X, values).tobytes() == classifier.predict_path(X, values).tobytes()
    save_model(again, tmp_path / "again")
    assert answers(load_model(tmp_path / "again"), X) == answers(classifier, X)
    again.fit(X, LABELS)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in OTHERS if name != "venn-abers"])
def test_skops_needs_no_more_than_the_trusted_types(name):
    import skops.io

    classifier, X = OTHERS[name](), INPUT.get(name, NUMBERS)
    again = skops.io.loads(skops.io.dumps(classifier), trusted=TRUSTED_TYPES)
    assert answers(again, X) == answers(classifier, X)


def test_joint_decisions_keep_what_they_learned(tmp_path):
    decision = OTHERS["joint"]()
    assert decision.exponent_ != 1
    save_model(decision, tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert again.exponent_ == decision.exponent_
    assert again.get_params(deep=False) | {"estimator": None} == decision.get_params(deep=False) | {
        "estimator": None
    }
    for bad in (0, -1.0, "x", float("1e999")):
        text = "Infinity" if bad == float("inf") else bad
        with pytest.raises(ModelFileError):
            load_model(
                rewrite(tmp_path / "m", tmp_path / "e", lambda d, a, t=text: d.update(exponent=t))
            )


def test_never_observed_labels_are_kept(tmp_path):
    for base in (CredalForest(SMALL), CredalLogistic(n_members=2), CredalWrapper()):
        with pytest.warns(UserWarning, match="never observed"):
            classifier = CredalChainClassifier(base).fit(NUMBERS, LABELS.assign(pop=np.nan))
        save_model(classifier, tmp_path / "m")
        assert answers(load_model(tmp_path / "m"), NUMBERS) == answers(classifier, NUMBERS)


def test_trees_that_would_never_end(tmp_path):
    """A walk through a damaged tree must not go in circles or out of bounds."""
    save_model(OTHERS["default forest"](), tmp_path / "m")

    def circle(description, arrays):
        left = arrays["forest_left"].copy()
        left[arrays["forest_feature"] < 1000] = 0
        arrays["forest_left"] = left

    def far(description, arrays):
        arrays["forest_feature"] = np.where(arrays["forest_feature"] < 1000, 900, 2**31 - 1).astype(
            np.int32
        )

    def empty(description, arrays):
        arrays["forest_counts"] = np.zeros_like(arrays["forest_counts"])

    def rootless(description, arrays):
        arrays["forest_n_trees"] = arrays["forest_n_trees"] * 0
        arrays["forest_roots"] = arrays["forest_roots"][:0]

    for change in (circle, far, empty, rootless):
        with pytest.raises(ModelFileError, match="is not a valid model|branches|column|rows|roots"):
            load_model(rewrite(tmp_path / "m", tmp_path / "e", change))


def test_nodes_that_two_ways_lead_to(tmp_path):
    """Each would double the time of a walk."""
    save_model(OTHERS["default forest"](), tmp_path / "m")

    def join(description, arrays):
        arrays["forest_right"] = arrays["forest_left"].copy()

    with pytest.raises(ModelFileError, match="one way that leads to it"):
        load_model(rewrite(tmp_path / "m", tmp_path / "e", join))


def test_ensembles_whose_chains_do_not_fit_together(tmp_path):
    save_model(OTHERS["forests"](), tmp_path / "m")

    def other_words(description, arrays):
        description["models"][1]["numbers"]["words"] = {}

    with pytest.raises(ModelFileError, match="same labels and features"):
        load_model(rewrite(tmp_path / "m", tmp_path / "e", other_words))


def test_hostile_archives(tmp_path):
    save_model(MODELS["codes"](), tmp_path / "m")
    twice = tmp_path / "twice"
    with zipfile.ZipFile(tmp_path / "m") as source, zipfile.ZipFile(twice, "w") as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
        with pytest.warns(UserWarning, match="Duplicate"):
            target.writestr(name, source.read(name))
    with pytest.raises(ModelFileError, match="holds other things"):
        load_model(twice)
    too_deep = mock.patch.object(archive, "content_digest", side_effect=RecursionError)
    with too_deep, pytest.raises(ModelFileError, match="or it is damaged"):
        load_model(tmp_path / "m")


def test_what_is_saved_can_be_loaded(tmp_path):
    """Or it is not saved: a model that cannot be read again is lost."""

    class Own(ExtraTreesClassifier):
        pass

    own = CredalChainClassifier(CredalForest(Own(n_estimators=2))).fit(NUMBERS, LABELS)
    swapped = CredalChainClassifier(CredalForest(SMALL)).fit(NUMBERS, LABELS)
    swapped.set_params(base=CredalLogistic())
    named = CredalChainClassifier().fit(pd.DataFrame({"a\0": np.arange(N)}), LABELS)
    for lost in (own, swapped, named):
        with pytest.raises(ValueError, match="cannot be saved"):
            save_model(lost, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dtype", ["i1", "u8", "O", "U3", "f8", "?"])
def test_classes_keep_their_type(dtype, tmp_path):
    y = np.array([0, 1] * (N // 2)).astype(dtype)
    classifier = CredalChainClassifier(random_state=np.int64(3)).fit(NUMBERS, y)
    save_model(classifier, tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert again.classes_.dtype == classifier.classes_.dtype
    assert again.classes_.tolist() == classifier.classes_.tolist()
    assert again.random_state == 3


@pytest.mark.parametrize(
    "content",
    [
        ["contamination", "text"],
        ["contamination", [7.5, 0.1]],
        ["bag", [0.5, 0.1], [], [0, 7]],
        ["magic", [0.5, 0.1]],
        ["contamination", GaussianNB()],
    ],
)
def test_wrapped_classifiers_that_are_none(content, tmp_path):
    import skops.io

    save_model(OTHERS["contamination"](), tmp_path / "m")

    def swap(description, arrays):
        labels = skops.io.loads(arrays["skops"].tobytes(), trusted=[])
        labels["labels"][1] = content
        arrays["skops"] = np.frombuffer(skops.io.dumps(labels), np.uint8)

    with pytest.raises(ModelFileError):
        load_model(rewrite(tmp_path / "m", tmp_path / "e", swap))


def test_code_in_a_wrapped_classifier_is_refused(tmp_path):
    class Own(GaussianNB):
        pass

    chain = CredalChainClassifier(CredalWrapper(Own(), "contamination")).fit(NUMBERS, LABELS)
    with pytest.raises(ValueError, match="skops does not trust.*Own"):
        save_model(chain, tmp_path / "m")
    save_model(OTHERS["wrapper"](), tmp_path / "m")
    import skops.io

    def smuggle(description, arrays):
        content = {"estimator": Own(), "labels": [], "before": []}
        arrays["skops"] = np.frombuffer(skops.io.dumps(content), np.uint8)

    with pytest.raises(ModelFileError, match="(?i)untrusted"):
        load_model(rewrite(tmp_path / "m", tmp_path / "e", smuggle))


def test_a_base_of_your_own_is_code(tmp_path):
    class Own(LocalBase):
        def fit_local(self, X, Y, order, *, rng):
            return None

    chain = CredalChainClassifier(Own()).fit(NUMBERS, LABELS)
    with pytest.raises(ValueError, match="because others are code"):
        save_model(chain, tmp_path / "m")


def test_description(tmp_path):
    save_model(MODELS["mixed frame"](), tmp_path / "model")
    about = read_description(tmp_path / "model")
    assert about["schema"] == 1
    assert about["package"] == "0.1.0"
    assert about["label_names"] == ["rock", "pop", "fólk"]
    assert about["feature_names"] == list(FRAME.columns)
    assert about["parameters"]["s"] == 0.7
    assert about["base"]["prior"] == "laplace"


def test_what_cannot_be_saved_says_so(tmp_path):
    own = Strategy("mine", nested=False, merge=lambda zero, one, untold: zero)
    with pytest.raises(ValueError, match="strategy of your own cannot be saved.*'mine'"):
        save_model(CredalChainClassifier(strategy=own).fit(NUMBERS, LABELS), tmp_path / "m")
    for unfitted in (CredalChainClassifier(), JointDecision()):
        with pytest.raises(ValueError, match="only (a )?fitted"):
            save_model(unfitted, tmp_path / "m")
    odd = CredalForest(ExtraTreesClassifier(n_estimators=2, class_weight={0: 1, 1: 2}))
    with pytest.raises(ValueError, match="parameter that is not a number or a text"):
        save_model(CredalChainClassifier(odd).fit(NUMBERS, LABELS), tmp_path / "m")
    with pytest.raises(FileNotFoundError, match="folder .* does not exist"):
        save_model(MODELS["codes"](), tmp_path / "nowhere" / "m")
    with pytest.raises(OSError, match="is not a file"):
        save_model(MODELS["codes"](), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_other_files_are_refused(tmp_path):
    model = MODELS["codes"]()
    cases = {
        "pickle": (pickle.dumps(model), "pickle"),
        "text": (b"a,b\n1,2\n", "not a credalchain model"),
        "empty": (b"", "not a credalchain model"),
        "zip": (None, "not a credalchain model"),
    }
    for name, (content, message) in cases.items():
        path = tmp_path / name
        if content is None:
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("x", "y")
        else:
            path.write_bytes(content)
        with pytest.raises(ModelFileError, match=message):
            load_model(path)
    np.savez(tmp_path / "objects.npz", json=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ModelFileError):
        load_model(tmp_path / "objects.npz")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_model(tmp_path / "nothing")


def test_a_pickle_is_not_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "exploded"),))

    (tmp_path / "bomb").write_bytes(pickle.dumps(Bomb()))
    np.savez(tmp_path / "bomb.npz", json=np.array([Bomb()], dtype=object), allow_pickle=True)
    for name in ("bomb", "bomb.npz"):
        with pytest.raises(ModelFileError):
            load_model(tmp_path / name)
    assert not (tmp_path / "exploded").exists()


def test_a_newer_schema_is_refused(tmp_path):
    save_model(MODELS["codes"](), tmp_path / "m")
    newer = rewrite(tmp_path / "m", tmp_path / "n", lambda d, a: d.update(schema=3, package="9.0"))
    with pytest.raises(ModelFileError, match="schema 3, written by credalchain 9.0.*update"):
        load_model(newer)
    for bad in (0, "1", None, True):
        other = rewrite(tmp_path / "m", tmp_path / "n", lambda d, a, bad=bad: d.update(schema=bad))
        with pytest.raises(ModelFileError, match="no valid schema"):
            load_model(other)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mixed frame", "codes"])
def test_flipped_bytes_never_change_an_answer(name, tmp_path):
    """Either the same answers or a clear refusal; the zip's checksums see to it."""
    classifier, X = MODELS[name](), INPUT[name]
    expected = answers(classifier, X)
    save_model(classifier, tmp_path / "m")
    content = (tmp_path / "m").read_bytes()
    random = np.random.default_rng(1)
    refused = 0
    for _ in range(400):
        damaged = bytearray(content)
        for at in random.integers(0, len(content), size=random.integers(1, 4)):
            damaged[at] ^= int(random.integers(1, 256))
        (tmp_path / "damaged").write_bytes(damaged)
        try:
            again = load_model(tmp_path / "damaged")
        except ModelFileError:
            refused += 1
        else:
            assert answers(again, X) == expected
    assert refused > 300
    for length in random.integers(0, len(content), size=40):
        (tmp_path / "cut").write_bytes(content[:length])
        with pytest.raises(ModelFileError):
            load_model(tmp_path / "cut")


def edits(random):
    """Ways to change a valid file into one that is valid as an archive and wrong inside."""
    strange = [None, -1, 2**70, 1.5, "x", [], {}, True, [1, 2], float(2**63)]

    def one_key(description, arrays):
        where = description
        while True:
            key = random.choice(list(where))
            if isinstance(where[key], dict) and random.random() < 0.7:
                where = where[key]
                continue
            where[key] = strange[random.integers(len(strange))]
            return

    def no_key(description, arrays):
        del description[random.choice(list(description))]

    def column(description, arrays):
        if description.get("discretizer"):
            columns = description["discretizer"]["columns"]
            columns[random.integers(len(columns))] = {
                "kind": str(random.choice(["numeric", "words", "values", "odd"])),
                "cuts": int(random.integers(-2, 99)),
                "keys": ["a", "a"],
            }

    def pick(arrays):
        return str(random.choice(list(arrays)))

    def value(description, arrays):
        name = pick(arrays)
        flat = arrays[name].copy()
        if flat.size:
            at = np.unravel_index(random.integers(flat.size), flat.shape)
            odd = random.choice([-1, 0, 1, 7, 2**40, -(2**62)])
            flat[at] = np.int64(odd).astype(flat.dtype)
        arrays[name] = flat

    def shape(description, arrays):
        name = pick(arrays)
        ways = [
            lambda a: a.ravel(),
            lambda a: a[:-1],
            lambda a: a[None],
            lambda a: np.repeat(a, 2, 0),
        ]
        arrays[name] = ways[random.integers(len(ways))](arrays[name])

    def dtype(description, arrays):
        name = pick(arrays)
        arrays[name] = arrays[name].astype(
            random.choice(["f8", "i1", "u8", "U8", "?", "c16", "M8[s]"])
        )

    def gone(description, arrays):
        del arrays[pick(arrays)]

    return [one_key, no_key, column, value, shape, dtype, gone]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # casting numbers to dates and back is our doing
@pytest.mark.parametrize("name", ["mixed frame", "codes", "forest", "logistic", "ensemble"])
@pytest.mark.parametrize("signed", [True, False])
def test_edited_contents_are_refused_or_harmless(name, signed, tmp_path):
    """An edit changes no answer. Signed anew it is another model, and still never a crash."""
    classifier, X = {**MODELS, **OTHERS}[name](), INPUT[name]
    expected = answers(classifier, X)
    save_model(classifier, tmp_path / "m")
    random = np.random.default_rng(2)
    loaded = 0
    turns = scaled(600)
    for turn in range(turns):
        change = edits(random)[turn % 7]
        edited = rewrite(tmp_path / "m", tmp_path / "e.npz", change, signed=signed)
        try:
            again = load_model(edited)
        except ModelFileError:
            continue
        loaded += 1
        if not signed:
            assert answers(again, X) == expected
        try:
            again.infer(X)
        except (ValueError, TypeError) as error:
            assert str(error)
    assert loaded / turns < 250 / 600


@pytest.mark.slow
def test_files_are_written_whole_or_not_at_all(tmp_path):
    """A full disk, made by a limit on the size of files: the old file stays, no litter."""
    save_model(MODELS["codes"](), tmp_path / "m")
    before = (tmp_path / "m").read_bytes()
    code = (
        "import numpy as np, sys\n"
        "from credalchain import *\n"
        "rng = np.random.default_rng(0)\n"
        "X, Y = rng.normal(size=(500, 40)), rng.integers(0, 2, (500, 9))\n"
        "model = CredalChainClassifier().fit(X, Y)\n"
        f"save_model(model, {str(tmp_path / 'm')!r})\n"
    )

    def limit():
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    done = subprocess.run(
        [sys.executable, "-B", "-c", code],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )
    assert done.returncode != 0
    assert "File too large" in done.stderr
    assert (tmp_path / "m").read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["m"]


def test_permissions_are_those_of_an_ordinary_file(tmp_path):
    save_model(MODELS["codes"](), tmp_path / "m")
    (tmp_path / "ordinary").touch()
    modes = {stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in ("m", "ordinary")}
    assert len(modes) == 1


def test_other_members_links_and_permissions(tmp_path):
    save_model(MODELS["codes"](), tmp_path / "m")
    junk = rewrite(tmp_path / "m", tmp_path / "j", lambda d, a: a.update(junk=np.zeros(9)))
    with pytest.raises(ModelFileError, match="holds other things"):
        load_model(junk)
    (tmp_path / "m").chmod(0o600)
    (tmp_path / "link").symlink_to(tmp_path / "m")
    save_model(MODELS["codes"](), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o600
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "fifo")


@pytest.mark.parametrize(
    "change",
    [
        lambda d, a: d.pop("package"),
        lambda d, a: d.update(package={}),
        lambda d, a: d.update(label_names=["a", "a\0", "b"]),
        lambda d, a: d.update(label_names=["a", "\ud800", "b"]),
        lambda d, a: a.update(counts_feature=np.full_like(a["counts_feature"], 2**62)),
    ],
)
def test_more_edits_that_are_signed(change, tmp_path):
    save_model(MODELS["codes"](), tmp_path / "m")
    with pytest.raises(ModelFileError):
        load_model(rewrite(tmp_path / "m", tmp_path / "e", change))


def put(name, place, value):
    def change(description, arrays):
        arrays[name] = arrays[name].copy()
        arrays[name][place] = value

    return change


def declare(*path, value):
    def change(description, arrays):
        for key in path[:-1]:
            description = description[key]
        description[path[-1]] = value

    return change


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        ("logistic", put("logistic_labels", (0, 0, 0), 1e308), "coefficients must be .* to 1e.100"),
        ("logistic", put("logistic_features", (1, 0), -np.inf), "coefficients must be"),
        ("logistic", declare("numbers", "empty", value=[0]), "empty must be different columns"),
        ("logistic", declare("numbers", "empty", value=[9]), "empty must be different columns"),
        ("logistic", declare("base", "C", value=-1.0), "C must be a positive number, got -1.0"),
        ("forest", declare("numbers", "empty", value=[2, 2]), "empty must be different columns"),
        ("forest", declare("numbers", "n_columns", value=2**40), "n_columns must be at most"),
        ("forest", declare("base", "forest", "class", value="Tree"), "unknown class .* 'Tree'"),
        ("forest", declare("base", "forest", "parameters", "max_depth", value=-1), "max_depth"),
        ("forest", declare("parameters", "order", value="dynamic"), "dynamic order needs a base"),
        ("forest", put("forest_counts", 0, 1e308), "more than 0 rows and at most"),
        ("codes", declare("parameters", "n_jobs", value=2 * 10**10), "n_jobs must be .* 1000"),
        ("codes", declare("classifier", value="Oracle"), "classifier must be one of .*'Oracle'"),
        ("codes", lambda d, a: d.pop("base"), r"missing or not of the kind.*\(KeyError: 'base'\)"),
        ("frozen", declare("discretizer", "n_bins", value=1), "n_bins .* at least 2, got 1"),
        ("class names", declare("classes", value=["no"]), "classes must be two"),
        ("class names", declare("classes_dtype", value="<U1"), "cannot be of type '<U1'"),
        ("ensemble", declare("parameters", "n_chains", value=-1), "n_chains must be a whole"),
        ("ensemble", declare("classifier", value="CredalChainClassifier"), "cannot have a model"),
        (
            "joint",
            declare("decision", "n_samples", value=2 * 10**10),
            "n_samples .* at most 100000",
        ),
        ("joint", declare("decision", "n_jobs", value=0), "n_jobs must be .* got 0"),
    ],
)
def test_what_would_fail_when_predicting_or_fitting_is_not_loaded(model, change, message, tmp_path):
    save_model({**MODELS, **OTHERS}[model](), tmp_path / "m")
    with pytest.raises(ModelFileError, match=f"^.*e.npz is not a valid model file: .*{message}"):
        load_model(rewrite(tmp_path / "m", tmp_path / "e", change))


def test_coefficients_are_of_double_precision(tmp_path):
    """In half precision they would overflow at a large s."""
    save_model(OTHERS["logistic"](), tmp_path / "m")

    def halve(description, arrays):
        arrays.update(logistic_features=arrays["logistic_features"].astype(np.float16))

    again = load_model(rewrite(tmp_path / "m", tmp_path / "e", halve))
    assert not np.isnan(again.infer(INPUT["logistic"], s=1e6).log_odds).any()


def test_columns_without_a_value_and_logistic_regression(tmp_path):
    """Such a column cannot be predicted from, so it was not there in fit."""
    classifier = CredalChainClassifier(CredalLogistic(n_members=2)).fit(NUMBERS, LABELS)
    save_model(classifier, tmp_path / "m")
    change = declare("numbers", "empty", value=[1])
    with pytest.raises(ModelFileError, match="cannot have columns without a value"):
        load_model(rewrite(tmp_path / "m", tmp_path / "e", change))


def test_sampled_decisions_along_a_dynamic_order(tmp_path):
    chain = CredalChainClassifier(order="dynamic").fit(NUMBERS, LABELS)
    save_model(JointDecision.from_fitted(chain), tmp_path / "m")
    change = declare("decision", "joint", value="sampled")
    with pytest.raises(ModelFileError, match="along a fixed order"):
        load_model(rewrite(tmp_path / "m", tmp_path / "e", change))


def without_a_step(p0, p1, scores):
    return [p0[:-1], p1, scores]


def with_a_step_of_two(p0, p1, scores):
    p1[-1, 1] = 2.0
    return [p0, p1, scores]


def with_a_step_that_is_no_number(p0, p1, scores):
    p0[0, 1] = np.nan
    return [p0, p1, scores]


def with_scores_that_decrease(p0, p1, scores):
    return [p0, p1, scores[::-1].copy()]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without_a_step, "one step more than scores"),
        (with_a_step_of_two, "must be probabilities"),
        (with_a_step_that_is_no_number, "must be probabilities"),
        (with_scores_that_decrease, "increase"),
    ],
)
def test_calibrators_that_do_not_cover_every_probability(change, message, tmp_path):
    import skops.io

    save_model(OTHERS["venn-abers"](), tmp_path / "m")

    def damage(description, arrays):
        content = skops.io.loads(arrays["skops"].tobytes(), trusted=[])
        content["labels"][1][2] = change(*content["labels"][1][2])
        arrays["skops"] = np.frombuffer(skops.io.dumps(content), np.uint8)

    with pytest.raises(ModelFileError, match=f"Venn-Abers.*{message}"):
        load_model(rewrite(tmp_path / "m", tmp_path / "e", damage))


def test_coefficients_of_wrapped_classifiers(tmp_path):
    """Of a label that is 0, that is 1, and that is left out."""
    import skops.io

    chain = CredalChainClassifier(CredalWrapper(source="contamination"), order="given")
    save_model(chain.fit(NUMBERS, LABELS), tmp_path / "m")
    for column in range(4, 8):

        def damage(description, arrays, column=column):
            content = skops.io.loads(arrays["skops"].tobytes(), trusted=[])
            content["labels"][2][1].coef_[0, column] = np.inf
            arrays["skops"] = np.frombuffer(skops.io.dumps(content), np.uint8)

        with (
            pytest.warns(RuntimeWarning, match="invalid value"),
            pytest.raises(ModelFileError, match="gave nan as a probability"),
        ):
            load_model(rewrite(tmp_path / "m", tmp_path / "e", damage))


def test_counts_that_would_wrap_around():
    from credalchain import ChainCounts

    n = 2**53 - 1
    label = np.array([[1, 1]])
    pair = np.array([[[[1, 0]], [[0, 1]]]]).reshape(1, 2, 1, 2)
    feature = np.full((2048, 1, 2), 2**52)
    with pytest.raises(ValueError, match="too large"):
        ChainCounts(n, np.array([2048]), label, feature, pair)

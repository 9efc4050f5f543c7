"""Model files: round trips, files that are not models, and models changed at random."""

import copy
import json
import os
import pickle
import resource
import stat
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from scipy import sparse
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from credalchain import (
    TRUSTED_TYPES,
    CredalBinaryRelevanceClassifier,
    CredalChainClassifier,
    CredalChainEnsemble,
    CredalForest,
    CredalJointForest,
    CredalWrapper,
    Discretizer,
    JointDecision,
    NaiveCredal,
    PromisedClassifier,
    Strategy,
    explain,
    load_model,
    marginalization,
    save_model,
)
from credalchain.model_files import FORMAT, ModelFileError, read_about, untrusted_types
from credalchain.model_selection import unwrap
from profiles import scaled

TURNS = int(os.environ.get("CREDALCHAIN_FUZZ", scaled(100)))  # mutations of each kind of model
MEMORY = 2 * 2**30  # bytes that loading and asking a model may add

rng = np.random.default_rng(0)
N = 40
FRAME = pd.DataFrame(
    {
        "age": np.where(rng.random(N) < 0.1, np.nan, rng.normal(40, 10, N)),
        "city": rng.choice(["Paris", "Oslo", "Ürümqi"], N),
        "member": rng.random(N) < 0.5,
        "size": pd.Categorical(rng.choice(["S", "L"], N), categories=["S", "M", "L"]),
        "grade": pd.Categorical(rng.choice([1, 2], N), categories=[1, 2, 3]),
    }
)
Y = rng.integers(0, 2, (N, 3))
LABELS = pd.DataFrame(Y, columns=["rock", "pop", "fólk"]).astype(float)
LABELS[rng.random(LABELS.shape) < 0.2] = np.nan
CODES = rng.integers(0, 3, (N, 4))
NUMBERS = rng.normal(size=(N, 4))
SPARSE = sparse.csr_array(np.maximum(NUMBERS, 0))
TREES = ExtraTreesClassifier(n_estimators=5, max_depth=3, random_state=0)
GROVE = ExtraTreesRegressor(n_estimators=5, max_depth=3, bootstrap=True)

KINDS = {
    "naive, frame": (CredalChainClassifier(s=0.7), FRAME, LABELS),
    "naive, numbers": (CredalChainClassifier(threshold=[0.4, 0.5, 0.6]), NUMBERS, LABELS),
    "naive, codes": (
        CredalChainClassifier(
            NaiveCredal(discretizer=None, epsilon=0, prior="credal", denominator="class"),
            order=[2, 0, 1],
            strategy=marginalization,
        ),
        CODES,
        LABELS,
    ),
    "naive, sparse": (
        CredalChainClassifier(
            NaiveCredal(discretizer=Discretizer(n_bins=3), missing_features="conservative")
        ),
        SPARSE,
        LABELS,
    ),
    "naive, frozen": (
        CredalChainClassifier(NaiveCredal(discretizer=FrozenEstimator(Discretizer().fit(NUMBERS)))),
        NUMBERS,
        LABELS,
    ),
    "dynamic": (CredalChainClassifier(order="dynamic"), NUMBERS, LABELS),
    "classes": (CredalChainClassifier(), NUMBERS, np.where(CODES[:, 0], "yes", "no")),
    "relevance": (CredalBinaryRelevanceClassifier(), NUMBERS, LABELS),
    "forest": (CredalChainClassifier(CredalForest(TREES), s=0.5), FRAME, LABELS),
    "contamination": (
        CredalChainClassifier(CredalWrapper(source="contamination")),
        FRAME[["age", "city"]].fillna(0),
        np.column_stack([LABELS, np.ones(N)]),
    ),
    "bag": (CredalChainClassifier(CredalWrapper(GaussianNB(), n_members=2)), NUMBERS, LABELS),
    "ensemble": (CredalChainEnsemble(n_chains=3, s=0.4), FRAME, LABELS),
    "forests": (CredalChainEnsemble(CredalForest(TREES), n_chains=2), FRAME, LABELS),
    "independent": (JointDecision(CredalChainClassifier(), reward=0.7), NUMBERS, LABELS),
    "joint forest": (CredalJointForest(GROVE, missing="conservative"), FRAME, LABELS),
    "recommended": (JointDecision(CredalJointForest(GROVE)), FRAME, Y),
    "promised": (
        PromisedClassifier(
            CredalChainClassifier(),
            {"selective_error": {0: 0.7, "label2": 0.8}},
            confidence=0.5,
            calibration=0.5,
        ),
        NUMBERS,
        np.asarray(LABELS),
    ),
    "cross-fitted": (
        PromisedClassifier(
            CredalJointForest(GROVE), {"row_error": 0.5}, calibration=2, method="cross_fit"
        ),
        FRAME,
        Y,
    ),
}


def fitted(kind):
    classifier, X, labels = KINDS[kind]
    return copy.deepcopy(classifier).set_params(random_state=0).fit(X, labels), X


def answers(classifier, X):
    prediction = classifier.infer(X)
    return (
        prediction.labels.tobytes(),
        prediction.log_odds.tobytes(),
        prediction.label_names,
        classifier.predict(X).tolist(),
        classifier.predict_proba(X).tobytes(),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(kind, tmp_path):
    classifier, X = fitted(kind)
    expected = answers(classifier, X)
    save_model(classifier, tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert type(again) is type(classifier)
    assert answers(again, X) == expected
    assert untrusted_types(tmp_path / "m") == []
    assert set(skops.io.get_untrusted_types(file=tmp_path / "m")) <= set(TRUSTED_TYPES)
    save_model(again, tmp_path / "again")
    assert answers(load_model(tmp_path / "again"), X) == expected
    again.fit(X, KINDS[kind][2])


def test_round_trip_of_pipelines_and_searches(tmp_path):
    pipeline = make_pipeline(StandardScaler(), CredalChainClassifier(random_state=0))
    search = GridSearchCV(pipeline, {"credalchainclassifier__s": [0.5, 2.0]}, cv=2)
    for estimator in (pipeline, search):
        estimator.fit(NUMBERS, Y)
        save_model(estimator, tmp_path / "m")
        again = load_model(tmp_path / "m", trusted=untrusted_types(tmp_path / "m"))
        assert again.predict(NUMBERS).tolist() == estimator.predict(NUMBERS).tolist()


def test_types_that_nobody_trusts_are_named(tmp_path):
    chain = CredalChainClassifier(CredalWrapper(DecisionTreeClassifier(), "contamination"))
    save_model(chain.fit(NUMBERS, LABELS), tmp_path / "m")
    with pytest.raises(ModelFileError, match=r"not trusted: sklearn.tree._tree.Tree.*trusted="):
        load_model(tmp_path / "m")
    again = load_model(tmp_path / "m", trusted=["sklearn.tree._tree.Tree"])
    assert answers(again, NUMBERS) == answers(chain, NUMBERS)


def own_merge(zero, one, dropped):
    return zero


def test_code_of_the_user(tmp_path):
    own = Strategy("mine", nested=False, merge=own_merge)
    chain = CredalChainClassifier(strategy=own).fit(NUMBERS, LABELS)
    save_model(chain, tmp_path / "m")
    with pytest.raises(ModelFileError, match="own_merge"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize("dtype", ["i1", "u8", "O", "U3", "f8", "?"])
def test_classes_keep_their_type(dtype, tmp_path):
    y = np.array([0, 1] * (N // 2)).astype(dtype)
    classifier = CredalChainClassifier().fit(NUMBERS, y)
    save_model(classifier, tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert again.classes_.dtype == classifier.classes_.dtype
    assert again.classes_.tolist() == classifier.classes_.tolist()


def test_many_columns_take_few_members(tmp_path):
    chain = CredalChainClassifier().fit(np.tile(NUMBERS, 50), LABELS)
    save_model(chain, tmp_path / "m")
    with zipfile.ZipFile(tmp_path / "m") as archive:
        assert len(archive.namelist()) < 20


def test_what_was_computed_for_predictions_is_not_stored(tmp_path):
    decision, X = fitted("recommended")
    save_model(decision, tmp_path / "before")
    decision.predict_partial(X)
    save_model(decision, tmp_path / "after")
    sizes = [(tmp_path / name).stat().st_size for name in ("before", "after")]
    assert abs(sizes[0] - sizes[1]) < 100


def test_what_cannot_be_saved(tmp_path):
    for unfitted in (CredalChainClassifier(), JointDecision(), PromisedClassifier()):
        with pytest.raises(ValueError, match="only a fitted estimator can be saved"):
            save_model(unfitted, tmp_path / "m")
    chain, _ = fitted("naive, codes")
    with pytest.raises(FileNotFoundError, match="folder .* does not exist"):
        save_model(chain, tmp_path / "nowhere" / "m")
    with pytest.raises(OSError, match="is not a file"):
        save_model(chain, tmp_path)
    chain.strategy = Strategy("mine", nested=False, merge=lambda zero, one, dropped: zero)
    with pytest.raises(ValueError, match="cannot be saved"):
        save_model(chain, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_not_models(tmp_path):
    model, _ = fitted("naive, codes")
    contents = {
        "pickle": (pickle.dumps(model), "looks like a pickle"),
        "text": (b"a,b\n1,2\n", "not a credalchain model"),
        "empty": (b"", "not a credalchain model"),
        "skops": (skops.io.dumps(model), "not a credalchain model"),
    }
    for name, (content, message) in contents.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ModelFileError, match=message):
            load_model(tmp_path / name)
    os.mkfifo(tmp_path / "fifo")
    for name in ("nothing", "fifo"):
        with pytest.raises(FileNotFoundError, match="there is no file"):
            load_model(tmp_path / name)


def test_a_pickle_is_not_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "exploded"),))

    (tmp_path / "bomb").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ModelFileError):
        load_model(tmp_path / "bomb")
    assert not (tmp_path / "exploded").exists()


def test_versions(tmp_path):
    save_model(fitted("naive, codes")[0], tmp_path / "m")
    assert read_about(tmp_path / "m")["format"] == FORMAT
    with zipfile.ZipFile(tmp_path / "new", "w") as archive:
        archive.writestr("credalchain.json", json.dumps({"format": FORMAT + 1, "version": "9.0"}))
    with pytest.raises(ModelFileError, match=r"written by credalchain 9\.0, whose"):
        load_model(tmp_path / "new")


def test_words_of_labels_are_kept_and_validated(tmp_path):
    words = {"ja": 1, "nein": 0, "k.a.": None}
    save_model(fitted("naive, codes")[0], tmp_path / "m", label_words=words)
    assert read_about(tmp_path / "m")["label_words"] == words
    about = {"format": FORMAT, "version": "9.0", "label_words": {"ja": 2}}
    with zipfile.ZipFile(tmp_path / "bad", "w") as archive:
        archive.writestr("credalchain.json", json.dumps(about))
    with pytest.raises(ModelFileError, match=r"label_words must mean 0, 1 or null, got .*'ja': 2"):
        load_model(tmp_path / "bad")


def test_flipped_bytes_never_change_an_answer(tmp_path):
    """The archive's checksums find the damage, or it is where nobody looks."""
    classifier, X = fitted("naive, codes")
    expected = answers(classifier, X)
    save_model(classifier, tmp_path / "m")
    content = (tmp_path / "m").read_bytes()
    random = np.random.default_rng(1)
    found = 0
    for _ in range(100):
        damaged = bytearray(content)
        for at in random.integers(0, len(content), size=random.integers(1, 4)):
            damaged[at] ^= int(random.integers(1, 256))
        (tmp_path / "damaged").write_bytes(damaged)
        try:
            again = load_model(tmp_path / "damaged")
        except ModelFileError:
            found += 1
        else:
            assert answers(again, X) == expected
    assert found > 60
    (tmp_path / "cut").write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelFileError):
        load_model(tmp_path / "cut")


def test_files_are_written_whole_or_not_at_all(tmp_path):
    """A full disk, made by a limit on the size of files: the old file stays, no litter."""
    save_model(fitted("naive, codes")[0], tmp_path / "m")
    before = (tmp_path / "m").read_bytes()
    random, limit = np.random.default_rng(0), resource.getrlimit(resource.RLIMIT_FSIZE)
    X, Y = random.normal(size=(500, 40)), random.integers(0, 2, (500, 9))
    larger = CredalChainClassifier().fit(X, Y)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limit[1]))  # Python ignores SIGXFSZ
    try:
        with pytest.raises(OSError, match="File too large"):
            save_model(larger, tmp_path / "m")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert (tmp_path / "m").read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["m"]


def test_permissions_and_links(tmp_path):
    chain, _ = fitted("naive, codes")
    save_model(chain, tmp_path / "m")
    (tmp_path / "ordinary").touch()
    modes = {stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in ("m", "ordinary")}
    assert len(modes) == 1
    (tmp_path / "m").chmod(0o600)
    (tmp_path / "link").symlink_to(tmp_path / "m")
    save_model(chain, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o600


# -- models changed at random ----------------------------------------------------------------------

STRANGE = [None, True, -1, 0, 1, 7, 2**31, 2**70, -0.5, 1.5, 1e308, float("nan"), float("inf")]
STRANGE += ["", "x", "\0", [], [[]], [1, 2], {}, {"x": 1}, np.zeros(3), np.array("x")]
NUMBERS_TO_SET = [-1, 0, 1, 2, 7, 2**31, 2**40, -(2**62), 0.5, -0.5, 1e-300, 1e308, np.nan, np.inf]
DTYPES = ["f8", "f4", "i8", "i4", "i1", "u8", "U8", "?", "c16", "M8[s]", ">f8", ">i4", "O"]


def places(part, path=()):
    """Yield the paths to everything that a fitted model holds."""
    if path:
        yield path
    if hasattr(part, "_fields"):
        items = [(name, getattr(part, name)) for name in part._fields]
    elif isinstance(part, dict):
        items = list(part.items())
    elif isinstance(part, (list, tuple)):
        items = list(enumerate(part))
    elif type(part).__module__.startswith("credalchain"):
        items = list(vars(part).items())
    else:
        return
    for key, value in items:
        if key not in ("_lock", "_tables", "_prepared"):
            yield from places(value, (*path, key))


def replaced(part, path, change):
    """Return the part with what stands at the path changed; in place where it can be."""
    key, *rest = path
    if hasattr(part, "_fields"):
        inner = getattr(part, key)
        return part._replace(**{key: replaced(inner, rest, change) if rest else change(inner)})
    if isinstance(part, tuple):
        part = list(part)
        part[key] = replaced(part[key], rest, change) if rest else change(part[key])
        return tuple(part)
    holder = part if isinstance(part, (dict, list)) else vars(part)
    holder[key] = replaced(holder[key], rest, change) if rest else change(holder[key])
    return part


def changed(value, random):
    """Return another value: an array with another element, shape or type, or anything else."""
    if not isinstance(value, np.ndarray) or random.random() < 0.2:
        if isinstance(value, (int, float)) and random.random() < 0.5:
            return value + [-1, 1, 0.5, -value, 1e10][random.integers(5)]
        return copy.deepcopy(STRANGE[random.integers(len(STRANGE))])
    array, way = value.copy(), random.integers(6)
    if way < 3 and array.size and array.dtype.kind in "biuf":
        at = np.unravel_index(random.integers(array.size), array.shape)
        number = np.float64(NUMBERS_TO_SET[random.integers(len(NUMBERS_TO_SET))])
        array[at] = number.astype(array.dtype)
    elif way == 3 and len(array) > 1:
        array[[0, -1]] = array[[-1, 0]]
    elif way == 4 and array.size:
        ways = [array[:-1], array.ravel(), array[None], array.T, array[:0], np.repeat(array, 2, 0)]
        array = ways[random.integers(len(ways))]
    else:
        array = array.astype(DTYPES[random.integers(len(DTYPES))])
    return array


@pytest.fixture
def little_memory():
    """A parameter that asks for terabytes shows as a MemoryError."""
    statm = Path("/proc/self/statm")
    if not statm.exists():  # elsewhere than on Linux nobody says how much is in use
        yield
        return
    used = int(statm.read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def ask(classifier, X):
    """Call every method, and check that the answers make sense."""
    n, m = X.shape[0], len(classifier.label_names_)
    prediction = classifier.infer(X)
    assert prediction.log_odds.shape == (n, m, 2)
    assert not np.isnan(prediction.log_odds).any(), "bounds are not numbers"
    lower, upper = np.moveaxis(prediction.interval, -1, 0)
    assert (lower <= upper + 1e-12).all(), "lower bounds above upper ones"
    path = getattr(classifier, "predict_path", None) or classifier.estimator_.predict_path
    labels = [prediction.labels, classifier.predict_partial(X), *path(X, [0.0, 0.5, 3.0])]
    assert all(one.shape == (n, m) and np.isin(one, [-1, 0, 1]).all() for one in labels)
    assert np.isin(classifier.predict(X), classifier.classes_).all()
    p = classifier.predict_proba(X)
    assert ((p >= 0) & (p <= 1)).all(), "not a probability"
    explain(classifier, X[:1])


def columns_fit(classifier, X):
    """Tell whether a loaded model still takes the rows: names and categories may be others."""
    final, _ = unwrap(classifier)
    names = getattr(final, "feature_names_in_", None)
    has_names = hasattr(X, "columns")
    same_names = has_names and names is not None and list(names) == list(X.columns)
    return final.n_features_in_ == X.shape[1] and (names is None or same_names)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of numbers that are changed into something else
@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("kind", KINDS)
def test_changed_models_raise_or_answer_soundly(kind, tmp_path):
    classifier, X = fitted(kind)
    save_model(classifier, tmp_path / "m")
    ask(load_model(tmp_path / "m"), X[:3])
    where, random, found = list(places(classifier)), np.random.default_rng(7), 0
    for turn in range(TURNS):
        path = where[random.integers(len(where))]
        try:
            other = copy.deepcopy(classifier)
            replaced(other, path, lambda value: changed(value, random))
            save_model(other, tmp_path / "e")
        except Exception:  # a state that skops cannot write
            continue
        try:
            loaded = load_model(tmp_path / "e")
        except ModelFileError as error:
            found += 1
            assert 10 < len(str(error)) < 1000
            assert "\n" not in str(error)
            continue
        if columns_fit(loaded, X):
            try:
                ask(loaded, X[:3])
            except ValueError as error:  # a model of other rows
                assert str(error)
            except Exception as error:
                raise AssertionError(f"turn {turn}, {path}: loaded, then {error!r}") from error
    assert found > TURNS / 8

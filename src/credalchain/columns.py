"""What the columns of a table hold, and how they are prepared for a classifier.

skrub makes numbers of dates, texts and categories with many values; numbers written with units,
separators or words for "missing" are read here, before it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.validation import check_is_fitted

from credalchain import preprocessing
from credalchain._utils.text import visible
from credalchain._utils.validation import check_instance, import_extra
from credalchain.exceptions import warn_about_data
from credalchain.labels import MISSING, as_labels, column_names

if TYPE_CHECKING:
    import pandas as pd

RARE = 10  # rows with an answer, below which little can be learned
_MANY_CATEGORIES = 40
_NEARLY_ALL = 0.95  # share of rows with distinct whole numbers from which they are identifiers
_MAX_ABSENT = 5  # different words that may stand for "missing" among numbers or dates
_WORDS_OF_NAMES, _WORDS_OF_TEXT = 2.0, 4.0  # on average: texts have more, if they are repeated
_IDENTIFIER = re.compile(r"(?:(?:^|[\W_])(?:id|uuid|guid)|(?-i:[a-z]I[dD]))$", re.IGNORECASE)
# a number, perhaps with a sign or unit before or after it, such as "-1.145,25 EUR"
_NUMBER = (
    r"^(?P<minus>-?)\s*(?P<sign>[^\W\d_]{1,3}(?=\s)|[^\w\s.,'()-]{1,2})?\s*"
    r"(?P<digits>-?\d(?:[\d.,' ]*\d)?(?:[eE][-+]?\d+)?)\s*(?P<unit>[^\w\s.,'()-]|[^\W\d_]{1,4})?$"
)
_FORMATS = [(".", ""), (".", ","), (",", ""), (",", "."), *((d, t) for t in " '" for d in ".,")]
_PART_OF_DATE = r"year|month|day|hour|minute|second|total_seconds|weekday"
_ENCODED = re.compile(rf"(?s)(?P<column>.*)_(?P<part>{_PART_OF_DATE}|\d+)")
_SHOWN_WORDS = 3


@dataclass(frozen=True)
class Feature:
    """A column of features.

    Attributes
    ----------
    name : str
    kind : {"numbers", "categories", "many categories", "dates", "text"}
    missing : float
        Share of the rows.
    n_distinct : int
    note : str
        What was found without being asked, "" if nothing.
    left_out : str
        Why there is nothing to learn from it, "" if there is.
    number_format : tuple of (str, str, str), or None
        Decimal mark, thousands separator and unit of numbers that are read from texts.
    date_format : str
    absent : tuple of str
        Texts that mean "missing" in this column.
    """

    name: str
    kind: str
    missing: float
    n_distinct: int
    note: str = ""
    left_out: str = ""
    number_format: tuple[str, str, str] | None = None
    date_format: str = ""
    absent: tuple[str, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether classifiers of this package learn from it as it is."""
        is_known = self.kind in ("numbers", "categories", "many categories")
        return not self.left_out and is_known and self.number_format is None and not self.absent


@dataclass(frozen=True)
class Label:
    """A column of labels: how often yes, no and missing, and what to think about."""

    name: str
    n_yes: int
    n_no: int
    n_missing: int
    note: str


def describe_features(
    X: Any, *, na: Sequence[str] = (), decimal: str = "", thousands: str = ""
) -> list[Feature]:
    """Describe each column of a data frame or array.

    Parameters
    ----------
    X : data frame or array of shape (n, p)
    na : sequence of str
        Texts that mean "missing".
    decimal, thousands : str
        Of numbers in texts; "" is to be found out.
    """
    formats = [
        form
        for form in _FORMATS
        if form[0] in (decimal or form[0]) and form[0] != thousands
        if form[1] in ("", thousands or form[1])
    ]
    return [
        _feature(str(name), column, tuple(na), formats)
        for name, column in preprocessing.named_columns(X)
    ]


def _feature(
    name: str, column: Any, na: tuple[str, ...], formats: list[tuple[str, str]]
) -> Feature:
    keys, missing = preprocessing.values_and_missing(np.asarray(column), name)
    present = keys[~missing]
    share = float(np.mean(missing)) if len(keys) else 0.0
    is_text = keys.dtype.kind != "f" and not hasattr(column.dtype, "categories")
    if is_text and len(present):
        return _text_feature(Feature(name, "text", share, 0), present, na, formats)
    n_distinct = len(np.unique(present))
    kind = "numbers" if keys.dtype.kind == "f" else "categories"
    return _judged(Feature(name, kind, share, n_distinct), present)


def _text_feature(
    feature: Feature, present: Any, na: tuple[str, ...], formats: list[tuple[str, str]]
) -> Feature:
    """Describe a column of texts: numbers and dates among them are found by their digits."""
    pd = _pandas()
    texts = pd.Series(present).str.strip()
    given = tuple(word for word in na if texts.eq(word).any())
    is_given = texts.isin(given)
    is_word = ~texts.str.contains(r"\d") & ~is_given
    words = tuple(texts[is_word].unique()[: _MAX_ABSENT + 1].tolist())
    is_absent = is_given | is_word
    if len(words) <= _MAX_ABSENT and 2 * is_absent.sum() < len(texts):
        found = _numbers_or_dates(texts[~is_absent], formats)
        is_coarse = texts[~is_absent].nunique() <= preprocessing.FEW_ROWS
        if found and not (words and is_coarse):  # a word among few values may be one of them
            notes = [f"{', '.join(map(repr, words))} {_cells(is_word)} as missing"] * bool(words)
            values, form = texts[~is_absent], found.get("number_format")
            example = max(values.iloc[:1000], key=len)
            if form is None:
                notes.append(f"{example!r} is read as a date, {found['date_format']}")
            else:
                values = read_numbers(values, *form)
                if not re.fullmatch(_pattern(".", ""), example):
                    number = read_numbers(pd.Series([example]), *form).iloc[0]
                    notes.append(f"{example!r} is read as {number:.10g} (--decimal, --thousands)")
            feature = replace(
                feature, **found,
                missing=feature.missing + (1 - feature.missing) * float(is_absent.mean()),
                n_distinct=int(values.nunique()), note="; ".join(notes), absent=given + words,
            )  # fmt: skip
            return _judged(feature, values.to_numpy())
    texts = texts[~is_given]
    n_distinct, n = int(texts.nunique()), len(texts)
    n_words = float(texts.str.count(r"[^\W\d_]{2,}").mean()) if n else 0.0
    all_differ = preprocessing.looks_like_identifiers(n_distinct, n)
    kind, left_out = "categories", ""
    if all_differ and n_words < _WORDS_OF_NAMES:
        kind, left_out = "many categories", "hardly any words, and most rows differ, like names"
    elif all_differ or (n_distinct > _MANY_CATEGORIES and n_words >= _WORDS_OF_TEXT):
        kind = "text"
    elif n_distinct > _MANY_CATEGORIES:
        kind = "many categories"
    share = feature.missing + (1 - feature.missing) * float(is_given.mean())
    feature = replace(feature, kind=kind, missing=share, n_distinct=n_distinct, absent=given)
    return _judged(replace(feature, left_out=left_out), texts.to_numpy())


def _cells(chosen: Any) -> str:
    n = int(chosen.sum())
    return "(1 cell) is taken" if n == 1 else f"({n} cells) are taken"


def _numbers_or_dates(texts: "pd.Series[str]", formats: list[tuple[str, str]]) -> dict[str, Any]:
    """Find the format in which all texts are numbers, or dates; empty if there is none."""
    for part in (texts.iloc[:1000], texts):  # most columns are settled by some rows
        parts = _plain_marks(part).str.extract(_NUMBER)
        digits, units = parts["digits"], sorted({*_units(parts)} - {""})
        fitting = [form for form in formats if digits.str.fullmatch(_pattern(*form)).all()]
        if digits.isna().any() or len(units) > 1 or not fitting:
            break
    else:
        return {"kind": "numbers", "number_format": (*fitting[0], *units, "")[:3]}
    skrub = _skrub()
    parser = skrub.ToDatetime()
    try:
        parser.fit_transform(texts)
    except skrub.core.RejectColumn:
        return {}
    return {"kind": "dates", "date_format": parser.format_}


def _pattern(decimal: str, thousands: str) -> str:
    groups = rf"|[1-9]\d{{0,2}}(?:{re.escape(thousands)}\d{{3}})+" if thousands else ""
    return rf"-?(?:\d+{groups})(?:{re.escape(decimal)}\d+)?(?:[eE][-+]?\d+)?"


def _plain_marks(texts: Any) -> Any:
    """Return texts with one kind of minus, of space and of apostrophe."""
    return texts.str.strip().str.translate(str.maketrans("\u2212\u00a0\u202f\u2019", "-  '"))


def _units(parts: "pd.DataFrame") -> "pd.Series[str]":
    return parts["sign"].fillna("") + parts["unit"].fillna("")


def read_numbers(texts: Any, decimal: str, thousands: str, unit: str) -> Any:
    """Return the numbers in a series of texts; NaN where there is none, or of another unit."""
    parts = _plain_marks(texts.astype("str")).str.extract(_NUMBER)
    is_number = parts["digits"].str.fullmatch(_pattern(decimal, thousands))
    digits = parts["digits"].where(is_number & _units(parts).isin(["", unit]))
    digits = digits.str.replace(thousands, "", regex=False).str.replace(decimal, ".", regex=False)
    return _pandas().to_numeric(digits, errors="coerce") * np.where(
        parts["minus"] == "-", -1.0, 1.0
    )


def _judged(feature: Feature, present: Any) -> Feature:
    """Return the feature with a reason to leave it out, if there is one."""
    n, n_distinct = len(present), feature.n_distinct
    left_out = feature.left_out
    if n == 0:
        left_out = "no values"
    elif n < preprocessing.FEW_ROWS:
        return feature
    elif n_distinct == 1 and feature.missing == 0:
        left_out = "the same in all rows"
    elif feature.kind != "dates":
        is_whole = feature.kind == "numbers" and (present == np.floor(present)).all()
        if is_whole and n_distinct > _NEARLY_ALL * n:
            left_out = f"{n_distinct} different whole numbers in {n} rows, like identifiers"
        elif _IDENTIFIER.search(feature.name) and n_distinct > preprocessing.FEW_ROWS:
            left_out = f"{n_distinct} different values, and a name like identifiers"
    return replace(feature, left_out=left_out)


def describe_labels(Y: Any) -> list[Label]:
    """Describe each column of labels."""
    labels = as_labels(Y, require_zero=False)
    names = column_names(Y) or [f"label{j}" for j in range(labels.shape[1])]
    counts = np.stack([(labels == value).sum(axis=0) for value in (1, 0, MISSING)], axis=1)
    described = []
    for name, (n_yes, n_no, n_missing) in zip(names, counts.tolist(), strict=True):
        rare, note = min(n_yes, n_no), ""
        if n_yes + n_no == 0:
            note = "never observed: it will be left open in every row"
        elif rare == 0:
            note = (
                f"always {'no' if n_yes == 0 else 'yes'}: the other answer cannot be learned (a "
                "chain leaves it open), and it does not count in shares of labels answered"
            )
        elif rare < RARE:
            rows = "1 row is" if rare == 1 else f"{rare} rows are"
            note = f"only {rows} {'yes' if n_yes < n_no else 'no'}"
        described.append(Label(name, n_yes, n_no, n_missing, note))
    return described


# -- preparing -----------------------------------------------------------------------------------


class CellReader(TransformerMixin, BaseEstimator):
    """Read numbers, dates, and cells that mean "missing", out of columns of texts.

    Parameters
    ----------
    numbers : dict of str to (str, str, str)
        Decimal mark, thousands separator and unit of columns that hold numbers.
    dates : dict of str to str
        The format of columns that hold dates.
    absent : dict of str to list of str
        Texts that mean "missing", by column.
    """

    def __init__(
        self,
        numbers: Mapping[str, tuple[str, str, str]],
        dates: Mapping[str, str],
        absent: Mapping[str, Sequence[str]],
    ) -> None:
        self.numbers = numbers
        self.dates = dates
        self.absent = absent

    def fit(self, X: "pd.DataFrame", y: Any = None) -> Self:
        """Remember the names of the columns; ``y`` is ignored."""
        self.feature_names_in_ = np.array(X.columns, dtype=object)
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: "pd.DataFrame") -> "pd.DataFrame":
        """Return the table with numbers and dates in place of texts, and missing cells as NaN.

        A cell that holds no such value is missing, too, with a warning.
        """
        check_is_fitted(self)
        read = {}
        for name in self.read_columns():
            column, kind = X[name], "number"
            column = column.mask(column.astype("str").str.strip().isin(self.absent.get(name, ())))
            values = column
            if name in self.dates:
                kind, form = "date", self.dates[name]
                values = _pandas().to_datetime(column, format=form, errors="coerce")
            elif name in self.numbers and column.dtype.kind not in "biuf":
                values = read_numbers(column, *self.numbers[name])
            invalid = column[values.isna() & column.notna()]
            if len(invalid):
                warn_about_data(
                    f"column {visible(name)!r} of X: cells that hold no {kind} as in fit, such as "
                    f"{visible(str(invalid.iloc[0]))!r}, are taken as missing."
                )
            read[name] = values
        return X.assign(**read)

    def check_state(self) -> None:
        """Validate a stored reader."""
        for kind, form in (("numbers", tuple), ("dates", str), ("absent", list)):
            formats = getattr(self, kind)
            check_instance(kind, formats, dict)
            for name, value in formats.items():
                check_instance(f"{kind} of {name!r}", value, form)
                if not all(isinstance(part, str) for part in (name, *value)):
                    raise ValueError(f"{kind} must hold texts, got {value!r} of {name!r}.")
        if {len(value) for value in self.numbers.values()} - {3}:
            raise ValueError("numbers must hold a decimal mark, a separator and a unit.")

    def read_columns(self) -> list[str]:
        """Return the names of the columns of texts that are read."""
        return sorted({*self.numbers, *self.dates, *self.absent})

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the columns, which stay what they are."""
        return self.feature_names_in_


class WordEncoder(TransformerMixin, BaseEstimator):
    """Encode a column of texts as 0 and 1: which of the words that tell most about labels it has.

    Parameters
    ----------
    n_words : int, default=100
        Columns, at the most.

    Attributes
    ----------
    words_ : list of str
        Those that correlate most with any label; the most frequent, without labels.
    """

    def __init__(self, n_words: int = 100) -> None:
        self.n_words = n_words

    def fit(self, X: "pd.Series[str]", y: Any = None) -> Self:
        """Choose words by the texts ``X`` (n,) and the labels ``y`` (n, m)."""
        counts = self._counter().fit(X.fillna(""))
        has_word = counts.transform(X.fillna(""))
        frequency = np.asarray(has_word.sum(axis=0)).ravel()
        weight = frequency
        if y is not None:
            labels = np.ma.masked_equal(as_labels(y, require_zero=False), MISSING)
            centred = np.ma.filled(labels - labels.mean(axis=0), 0.0)
            spread = np.maximum(np.linalg.norm(centred, axis=0), 1e-12)
            expected = np.outer(frequency, centred.mean(axis=0))
            weight = np.abs((has_word.T @ centred - expected) / spread).max(axis=1)
            weight = weight / np.sqrt(frequency)
        best = np.sort(np.argsort(-weight, kind="stable")[: self.n_words])
        self.words_: list[str] = counts.get_feature_names_out()[best].tolist()
        self.column_ = str(X.name)
        return self

    def transform(self, X: "pd.Series[str]") -> "pd.DataFrame":
        """Return a data frame with a column of 0 and 1 for each word."""
        check_is_fitted(self)
        has_word = self._counter(self.words_).transform(X.fillna("")).toarray()
        frame: pd.DataFrame = _pandas().DataFrame(has_word, X.index, self.get_feature_names_out())
        return frame

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the columns, such as "lyrics: word 'rock'"."""
        return np.array([f"{self.column_}: word {word!r}" for word in self.words_], dtype=object)

    def check_state(self) -> None:
        """Validate a stored encoder."""
        check_instance("words_", self.words_, list)
        if not all(isinstance(word, str) for word in (self.column_, *self.words_)):
            raise ValueError(f"words_ must be texts, got {self.words_!r}.")

    def _counter(self, words: list[str] | None = None) -> CountVectorizer:
        pattern = r"(?u)\b\w+\b"
        return CountVectorizer(
            vocabulary=words, binary=True, dtype=np.float32, token_pattern=pattern
        )


def build_vectorizer(
    features: Sequence[Feature], *, keep_categories: bool = False, seed: int = 0
) -> list[BaseEstimator]:
    """Build the steps that go before a classifier, unfitted; none where columns need none.

    Parameters
    ----------
    features : sequence of Feature
        The columns that are learned from.
    keep_categories : bool
        Whether categories with many values stay categories, as naive chains use them.
    seed : int
    """
    numbers = {f.name: f.number_format for f in features if f.number_format is not None}
    dates = {f.name: f.date_format for f in features if f.kind == "dates"}
    absent = {f.name: list(f.absent) for f in features if f.absent}
    encoders = []
    for i, feature in enumerate(features):
        encoder = _encoder(feature, keep_categories=keep_categories, seed=seed)
        if encoder is not None:
            encoders.append((f"encoded{i}", encoder, feature.name))
    reader = CellReader(numbers, dates, absent)
    steps: list[BaseEstimator] = [reader] if reader.read_columns() else []
    if encoders:
        columns = ColumnTransformer(
            encoders, remainder="passthrough", verbose_feature_names_out=encoded_name
        )
        steps.append(columns.set_output(transform="pandas"))
    return steps


def _encoder(feature: Feature, *, keep_categories: bool, seed: int) -> Any:
    if feature.kind == "dates":
        return _skrub().DatetimeEncoder(add_weekday=True)
    if feature.kind == "text":
        return WordEncoder()
    if feature.kind == "many categories" and not keep_categories:
        return _skrub().StringEncoder(random_state=seed)
    return None


def vectorized_columns(steps: Sequence[Any]) -> list[str]:
    """Return the columns of texts that fitted steps read, as they are called in the user's table.

    Parameters
    ----------
    steps : sequence of fitted transformers
    """
    names: set[str] = set()
    for step in steps:
        if isinstance(step, CellReader):
            names |= {*step.read_columns()}
        elif isinstance(step, ColumnTransformer):
            names |= {c for name, _, c in step.transformers_ if isinstance(c, str)}
        else:
            kinds = getattr(step, "column_to_kind_", {})  # of a TableVectorizer
            names |= {name for name, kind in kinds.items() if kind != "numeric"}
    return sorted(names)


def encoded_name(transformer: str, name: str) -> str:
    """Return the name of an encoded column, such as "day: weekday" or "lyrics: 07"."""
    match = _ENCODED.fullmatch(name) if transformer != "remainder" else None
    return f"{match['column']}: {match['part'].replace('_', ' ')}" if match else name


def readable_names(steps: Sequence[Any]) -> dict[str, str]:
    """Return what columns of encoded texts are about, such as "lyrics: words 'rock', 'guitar'".

    Parameters
    ----------
    steps : sequence of fitted transformers
        Those with skrub's StringEncoder in a ColumnTransformer or a TableVectorizer are known.
    """
    names = {}
    for step in steps:
        fitted = getattr(step, "named_transformers_", None) or getattr(step, "transformers_", {})
        for encoder in fitted.values():
            vectorizer: Any = getattr(encoder, "vectorizer_", None)
            if not hasattr(vectorizer, "vocabulary_"):
                continue
            words = vectorizer.get_feature_names_out()
            what = "words" if vectorizer.analyzer == "word" else "letters"
            n_outputs = len(encoder.all_outputs_)
            weights = encoder.tsvd_.components_ if hasattr(encoder, "tsvd_") else np.eye(n_outputs)
            for name, weight in zip(encoder.all_outputs_, np.abs(weights), strict=True):
                best = [j for j in np.argsort(-weight)[:_SHOWN_WORDS] if weight[j] > 0]
                shown = ", ".join(repr(str(words[j])) for j in best)
                readable = f"{encoder.input_name_}: {what} {shown}"
                names[name] = names[encoded_name("", name)] = readable
    return names


def _pandas() -> Any:
    return import_extra("pandas", 'Texts need pandas: pip install "credalchain[data]"')


def _skrub() -> Any:
    return import_extra("skrub", 'Dates and texts need skrub: pip install "credalchain[cli]"')

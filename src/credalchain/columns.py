"""Kinds of columns of a table, and their preparation for a classifier.

skrub makes numbers of dates and categories with many values; numbers written with units,
separators or words for "missing" are read here, before it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import r_regression
from sklearn.utils.validation import check_is_fitted

from credalchain import preprocessing
from credalchain._utils.text import plural, visible
from credalchain._utils.validation import check_instance, import_extra
from credalchain.exceptions import warn_about_data
from credalchain.labels import MISSING, as_labels, column_names

if TYPE_CHECKING:
    import pandas as pd

RARE = 10  # rows with an answer, below which little can be learned
_MANY_CATEGORIES = 40
_NEARLY_ALL = 0.95  # share of rows with distinct values from which they are identifiers or names
_MAX_ABSENT = 5  # different words that may stand for "missing" among numbers or dates
_WORDS_OF_NAMES, _WORDS_OF_TEXT = 2.0, 4.0  # on average: texts have more, if they are repeated
_N_WORDS, _ROWS_FOR_WORDS = 100, 20_000
_IDENTIFIER = re.compile(r"(?:(?:^|[\W_])(?:id|uuid|guid)|(?-i:[a-z]I[dD]))$", re.IGNORECASE)
# a number, perhaps with a sign or unit before or after it, such as "-1.145,25 EUR"
_NUMBER = (
    r"^(?P<minus>-?)\s*(?P<sign>[^\W\d_]{1,3}(?=\s)|[^\w\s.,'()-]{1,2})?\s*"
    r"(?P<digits>-?\d(?:[\d.,' ]*\d)?(?:[eE][-+]?\d+)?)\s*(?P<unit>[^\d\s.,'()_-]{1,5})?$"
)
_FORMATS = [(".", ""), (".", ","), (",", ""), (",", "."), *((d, t) for t in " '" for d in ".,")]
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
        Note for the user, "" if there is none.
    left_out : str
        Reason to leave the column out, "" if there is none.
    number_format : tuple of (str, str, str), or None
        Decimal mark, thousands separator and unit of numbers that are read from texts.
    date_format : str
    absent : tuple of str
        Texts that mean "missing" in this column.
    """

    name: str
    kind: str
    missing: float = 0.0
    n_distinct: int = 0
    note: str = ""
    left_out: str = ""
    number_format: tuple[str, str, str] | None = None
    date_format: str = ""
    absent: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<{self.name}: {self.kind}>"

    @property
    def is_plain(self) -> bool:
        """True if classifiers of this package learn from it without preparation."""
        is_known = self.kind in ("numbers", "categories", "many categories")
        return not self.left_out and is_known and self.number_format is None and not self.absent


@dataclass(frozen=True)
class Label:
    """A column of labels: counts of yes, no and missing, and a note for the user."""

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
        Decimal mark and thousands separator of numbers in texts; "" means to detect them.
    """
    formats = [
        form
        for form in _FORMATS
        if form[0] in (decimal or form[0]) and form[0] != thousands
        if form[1] in ("", thousands or form[1])
    ]
    features = []
    for name, column in preprocessing.named_columns(X):
        keys, missing = preprocessing.values_and_missing(np.asarray(column), name)
        values, is_number = _pandas().Series(keys[~missing]), keys.dtype.kind == "f"
        found: dict[str, Any] = {"kind": "numbers" if is_number else "categories"}
        if not is_number and not hasattr(column.dtype, "categories"):
            values, found = _read_texts(values.str.strip(), na, formats)
        found["missing"] = 1 - len(values) / max(len(keys), 1)
        found["n_distinct"] = int(values.nunique())
        feature = Feature(name, **found)
        features.append(replace(feature, left_out=_reason_to_leave_out(feature, values)))
    return features


def _read_texts(
    texts: "pd.Series[str]", na: Sequence[str], formats: list[tuple[str, str]]
) -> tuple[Any, dict[str, Any]]:
    """Return the values in a column of texts, and what they are: numbers and dates have digits."""
    is_given = texts.isin(na)
    is_word = ~texts.str.contains(r"\d") & ~is_given
    given, words = (tuple(texts[some].unique().tolist()) for some in (is_given, is_word))
    read = texts[~is_given & ~is_word]
    if len(words) <= _MAX_ABSENT and 2 * len(read) > len(texts):
        found = _numbers_or_dates(read, formats)
        # a word among few values may be one of them
        if found and not (words and read.nunique() <= preprocessing.FEW_ROWS):
            cells = plural(int(is_word.sum()), "cell")
            notes = [f"{', '.join(map(repr, words))} ({cells}) taken as missing"] * bool(words)
            example = max(read.iloc[:1000], key=len)
            if found["kind"] == "dates":
                notes.append(f"{example!r} is read as a date, {found['date_format']}")
            else:
                read = read_numbers(read, *found["number_format"])
                if not re.fullmatch(_pattern(".", ""), example):
                    number = read_numbers(_pandas().Series([example]), *found["number_format"])
                    notes.append(
                        f"{example!r} is read as {number[0]:.10g} (--decimal, --thousands)"
                    )
            return read, {**found, "note": "; ".join(notes), "absent": given + words}
    texts = texts[~is_given]
    n_distinct, kind = texts.nunique(), "categories"
    all_differ = preprocessing.looks_like_identifiers(n_distinct, len(texts))
    if all_differ or n_distinct > _MANY_CATEGORIES:
        n_words = float(texts.str.count(r"[^\W\d_]{2,}").mean())
        needed = _WORDS_OF_NAMES if all_differ else _WORDS_OF_TEXT
        kind = "text" if n_words >= needed else "many categories"
    return texts, {"kind": kind, "absent": given}


def _numbers_or_dates(texts: "pd.Series[str]", formats: list[tuple[str, str]]) -> dict[str, Any]:
    """Find the format in which all texts are numbers, or dates; empty if there is none."""
    for part in (texts.iloc[:1000], texts):  # most columns are settled by some rows
        digits, units = _digits_and_units(part)
        fitting = [form for form in formats if digits.str.fullmatch(_pattern(*form)).all()]
        unit = sorted({*units} - {""})
        if digits.isna().any() or len(unit) > 1 or not fitting:
            break
    else:
        return {"kind": "numbers", "number_format": (*fitting[0], *unit, "")[:3]}
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


def _digits_and_units(texts: Any) -> tuple[Any, Any]:
    """Return digits with their sign, NaN where there are none, and units such as "EUR"."""
    plain = texts.astype("str").str.strip()  # with one kind of minus, of space and of apostrophe
    plain = plain.str.translate(str.maketrans("\u2212\u00a0\u202f\u2019", "-  '"))
    parts = plain.str.extract(_NUMBER)
    return parts["minus"] + parts["digits"], parts["sign"].fillna("") + parts["unit"].fillna("")


def read_numbers(texts: Any, decimal: str, thousands: str, unit: str) -> Any:
    """Return the numbers in a series of texts; NaN where there is none, or of another unit."""
    digits, units = _digits_and_units(texts)
    digits = digits.where(
        digits.str.fullmatch(_pattern(decimal, thousands)) & units.isin(["", unit])
    )
    digits = digits.str.replace(thousands, "", regex=False).str.replace(decimal, ".", regex=False)
    return _pandas().to_numeric(digits, errors="coerce")


def _reason_to_leave_out(feature: Feature, values: Any) -> str:
    """Return why nothing can be learned from the values of a column, "" if something can."""
    n, n_distinct, kind = len(values), feature.n_distinct, feature.kind
    if n == 0:
        return "no values"
    if n < preprocessing.FEW_ROWS:
        return ""
    if n_distinct == 1 and feature.missing == 0:
        return "the same in all rows"
    all_differ = n_distinct > _NEARLY_ALL * n
    if all_differ and kind == "numbers" and (values == np.floor(values)).all():
        return f"{n_distinct} different whole numbers in {n} rows, like identifiers"
    if all_differ and kind == "many categories":
        return "hardly any words, and nearly all rows differ, like names"
    if _IDENTIFIER.search(feature.name) and n_distinct > preprocessing.FEW_ROWS and kind != "dates":
        return f"{n_distinct} different values, and a name like identifiers"
    return ""


def describe_labels(Y: Any) -> list[Label]:
    """Describe each column of labels."""
    labels = as_labels(Y, require_zero=False)
    names = column_names(Y) or [f"label{j}" for j in range(labels.shape[1])]
    described = []
    for name, column in zip(names, labels.T, strict=True):
        n_yes, n_no, n_missing = (int((column == value).sum()) for value in (1, 0, MISSING))
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


class TablePreparer(TransformerMixin, BaseEstimator):
    """Make numbers and categories of columns, as they were described.

    Cells that mean "missing" become missing. Numbers are read out of texts, dates become their
    parts, texts the words that tell most about labels, many categories their letters.

    Parameters
    ----------
    features : list of Feature
        The columns that are learned from.
    keep_categories : bool, default=False
        If True, keep categories with many values as categories, for naive chains.
    random_state : int, default=0

    Attributes
    ----------
    encoders_ : dict of str to transformer
        skrub's and scikit-learn's encoders, by column.
    """

    def __init__(
        self, features: Sequence[Feature], *, keep_categories: bool = False, random_state: int = 0
    ) -> None:
        self.features = features
        self.keep_categories = keep_categories
        self.random_state = random_state

    @property
    def is_needed(self) -> bool:
        """True if there is a column to prepare."""
        return any(not f.is_plain or self._has_letters(f) for f in self.features)

    def fit(self, X: "pd.DataFrame", y: Any = None) -> Self:
        """Fit encoders to the columns ``X``, and to the labels ``y`` if there are any."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: "pd.DataFrame", y: Any = None) -> "pd.DataFrame":
        """Fit encoders, and return the columns that they make."""
        self.feature_names_in_ = np.array(X.columns, dtype=object)
        self.n_features_in_ = X.shape[1]
        self.encoders_: dict[str, Any] = {}
        return self._prepared(X, y, fit=True)

    def transform(self, X: "pd.DataFrame") -> "pd.DataFrame":
        """Return the columns of numbers and categories.

        Cells that hold no number, or no date, as in fit are missing, with a warning.
        """
        check_is_fitted(self)
        return self._prepared(X, None, fit=False)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the columns, such as "day: weekday" or "lyrics: word 'rock'"."""
        return np.array(self.names_, dtype=object)

    def check_state(self) -> None:
        """Validate a stored preparation."""
        for feature in self.features:
            check_instance("features", feature, Feature)
            form = feature.number_format or ("", "", "")
            texts = [feature.name, feature.kind, feature.date_format, *feature.absent, *form]
            if not all(isinstance(text, str) for text in texts) or len(form) != 3:
                raise ValueError(f"a column must be described by texts, got {feature!r}.")
        check_instance("encoders_", self.encoders_, dict)
        for encoder in self.encoders_.values():
            check_instance("encoders_", encoder, BaseEstimator)

    def _prepared(self, X: "pd.DataFrame", y: Any, *, fit: bool) -> "pd.DataFrame":
        parts = []
        for feature in self.features:
            column = _read_column(feature, X[feature.name])
            if fit:
                self._add_encoder(feature, column, y)
            encoder = self.encoders_.get(feature.name)
            if encoder is None:
                parts.append(column.rename(feature.name))
                continue
            column = column.fillna("") if feature.kind == "text" else column
            made = encoder.fit_transform(column) if fit else encoder.transform(column)
            if feature.kind == "text":
                names = [f"{feature.name}: word {word!r}" for word in encoder.vocabulary_]
                made = _pandas().DataFrame(made.toarray(), column.index, names)
            else:
                made = made.rename(columns={part: _named(feature.name, part) for part in made})
            parts.append(made)
        table: pd.DataFrame = _pandas().concat(parts, axis=1)
        self.names_ = table.columns.tolist()
        return table

    def _add_encoder(self, feature: Feature, column: Any, y: Any) -> None:
        """Choose the encoder of a column, if it needs one."""
        if feature.kind == "dates":
            self.encoders_[feature.name] = _skrub().DatetimeEncoder(add_weekday=True)
        elif feature.kind == "text":
            self.encoders_[feature.name] = _word_counter(_telling_words(column.fillna(""), y))
        elif self._has_letters(feature):
            self.encoders_[feature.name] = _skrub().StringEncoder(random_state=self.random_state)

    def _has_letters(self, feature: Feature) -> bool:
        return feature.kind == "many categories" and not self.keep_categories


def _read_column(feature: Feature, column: Any) -> Any:
    """Return a column with numbers and dates in place of texts, and missing cells as NaN."""
    if feature.absent:
        column = column.mask(column.astype("str").str.strip().isin(feature.absent))
    if feature.kind == "dates":
        values = _pandas().to_datetime(column, format=feature.date_format, errors="coerce")
    elif feature.number_format and column.dtype.kind not in "biuf":
        values = read_numbers(column, *feature.number_format)
    else:
        return column
    invalid = column[values.isna() & column.notna()]
    if len(invalid):
        warn_about_data(
            f"column {visible(feature.name)!r} of X: cells that hold no {feature.kind[:-1]} as in "
            f"fit, such as {visible(str(invalid.iloc[0]))!r}, are taken as missing."
        )
    return values


def _telling_words(texts: "pd.Series[str]", y: Any) -> list[str]:
    """Return the words that correlate most with any label; the most frequent, without labels."""
    some = slice(None, None, -(-len(texts) // _ROWS_FOR_WORDS) or 1)
    counter = _word_counter(None)
    has_word = counter.fit_transform(texts[some])
    weight = np.asarray(has_word.sum(axis=0)).ravel()
    if y is not None:
        found = [np.zeros(len(weight))]
        for label in as_labels(y, require_zero=False)[some].T:
            known = label != MISSING
            if known.any():  # words are not centred: many are in few rows
                centred = label[known] - label[known].mean()
                found.append(r_regression(has_word[known], centred, center=False))
        weight = np.abs(found).max(axis=0)
    best = np.sort(np.argsort(-weight, kind="stable")[:_N_WORDS])
    words: list[str] = counter.get_feature_names_out()[best].tolist()
    return words


def _word_counter(words: list[str] | None) -> CountVectorizer:
    pattern = r"(?u)\b\w+\b"
    return CountVectorizer(vocabulary=words, binary=True, dtype=np.uint8, token_pattern=pattern)


def vectorized_columns(steps: Sequence[Any]) -> list[str]:
    """Return the columns of texts that fitted steps read, as they are called in the user's table.

    Parameters
    ----------
    steps : sequence of fitted transformers
    """
    names: list[str] = []
    for step in steps:
        if isinstance(step, TablePreparer):
            encoded = {*step.encoders_}
            names += [f.name for f in step.features if not f.is_plain or f.name in encoded]
        else:
            kinds = getattr(step, "column_to_kind_", {})  # of a TableVectorizer
            names += [name for name, kind in kinds.items() if kind != "numeric"]
    return names


def readable_names(steps: Sequence[Any]) -> dict[str, str]:
    """Return what columns of encoded texts are about, such as "lyrics: words 'rock', 'guitar'".

    Parameters
    ----------
    steps : sequence of fitted transformers
        skrub's encoders in a preparation of this package, or in a TableVectorizer, are known.
    """
    names: dict[str, str] = {}
    for step in steps:
        encoders = getattr(step, "encoders_", None) or getattr(step, "transformers_", {})
        for encoder in encoders.values():
            outputs = getattr(encoder, "all_outputs_", [])
            name = str(getattr(encoder, "input_name_", ""))
            names |= {part: _named(name, part) for part in outputs if part.startswith(name + "_")}
            vectorizer: Any = getattr(encoder, "vectorizer_", None)
            if not hasattr(vectorizer, "vocabulary_"):
                continue
            words = vectorizer.get_feature_names_out()
            what = "words" if vectorizer.analyzer == "word" else "letters"
            weights = (
                encoder.tsvd_.components_ if hasattr(encoder, "tsvd_") else np.eye(len(outputs))
            )
            for part, weight in zip(outputs, np.abs(weights), strict=True):
                best = [j for j in np.argsort(-weight)[:_SHOWN_WORDS] if weight[j] > 0]
                shown = ", ".join(repr(str(words[j])) for j in best)
                names[part] = names[_named(name, part)] = f"{name}: {what} {shown}"
    return names


def _named(column: str, part: str) -> str:
    """Return the name of an encoded column, such as "day: weekday" or "lyrics: 07"."""
    return f"{column}: {part.removeprefix(f'{column}_').replace('_', ' ')}"


def _pandas() -> Any:
    return import_extra("pandas", 'Texts need pandas: pip install "credalchain[data]"')


def _skrub() -> Any:
    return import_extra("skrub", 'Dates and texts need skrub: pip install "credalchain[cli]"')

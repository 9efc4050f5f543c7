"""``credalchain fit``."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from credalchain._utils.files import check_folder
from credalchain._utils.progress import Progress
from credalchain._utils.text import plural, table_size
from credalchain.chains.naive import counts as counting
from credalchain.chunks import trees
from credalchain.cli import options as o
from credalchain.cli.console import note
from credalchain.cli.promise import check_calibration, read_promise
from credalchain.cli.stream import LabelledChunks, fits_memory, is_chunked, reads_chunked
from credalchain.cli.tables import (
    load_table,
    read_labelled,
    refuse_to_replace,
    take_groups,
    usable_features,
)
from credalchain.joint.decision import default_reward
from credalchain.model_files import save_model, untrusted_types
from credalchain.promises.caution import MIN_ROWS, CautionChoice, choose_caution
from credalchain.promises.classifier import PromisedClassifier
from credalchain.review.exchange import add_answers
from credalchain.review.rows import row_keys
from credalchain.review.store import AnswerStore

DEFAULT_COMPLETENESS = 0.8  # of the labels, where nobody says how cautious to be
_CALIBRATION = 0.3
_TABLES = (".csv", ".tsv", ".parquet", ".pq", ".arff")


@o.with_table_options
@o.with_classifier_options
def fit(
    data: o.Data,
    out: Annotated[str, typer.Option(help="Where the model goes.")],
    labels: o.LabelsOption = None,
    ignore: o.Ignore = "",
    use: o.Use = "",
    tag_separator: o.TagSeparator = "",
    groups: o.Groups = "",
    case_sensitive: o.CaseSensitive = False,
    promise: Annotated[
        list[str] | None,
        typer.Option(
            help="What errors may be at most, such as row-error=0.1 (one row in ten has a wrong "
            "answer), or row-error:toxic=0.01 for one label; caution is chosen to keep it. "
            "May be repeated; see tune."
        ),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(help="That the promise is kept; without, it is kept on average."),
    ] = None,
    calibration: Annotated[
        float, typer.Option(help="Share of the rows that is kept apart for the promise.")
    ] = _CALIBRATION,
    answered: Annotated[
        float | None,
        typer.Option(
            help="Choose caution so that about this share of the labels is answered, by rows held "
            f"out; {DEFAULT_COMPLETENESS:g} if neither --promise nor --s or --reward is given."
        ),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            help="Rows from which bins or trees are learned if DATA is read in chunks (a folder, a "
            "glob, a compressed or a very large file), chosen by a hash of their numbers; "
            f"{counting.SAMPLE_SIZE} for bins and {trees.SAMPLE_SIZE} for trees, if not given.",
            min=1,
        ),
    ] = None,
    answers: Annotated[
        str,
        typer.Option(
            help="A file of the review page: what people answered is learned from, too. Rows that "
            "are in DATA get the labels; others are added."
        ),
    ] = "",
    *,
    options: o.ClassifierOptions,
) -> None:
    """Learn from a table with labels and write a model file.

    Example: `credalchain fit songs.csv --labels rock,pop,folk --out songs.model`, or, better,
    the same with `--promise row-error=0.1`
    """
    classifier = o.build_classifier(options)
    if promise:
        check_calibration(calibration)
        for name in options.caution:
            raise ValueError(f"--{name} is chosen by --promise: give one of them.")
        classifier = PromisedClassifier(
            classifier,
            read_promise(promise),
            confidence=confidence,
            calibration=calibration,
            random_state=options.seed,
        )
    elif confidence is not None or calibration != _CALIBRATION:
        name = "--confidence" if confidence is not None else "--calibration"
        raise ValueError(f"{name} is for --promise.")
    if answered is not None:
        _check_answered(answered, options, promise)
    if out in ("", "-"):
        raise ValueError(f"--out {out!r}: a model goes to a file, and this names none.")
    if Path(out).suffix.lower() in _TABLES:
        raise ValueError(f"--out {out}: a model is no table; give it another ending, or none.")
    refuse_to_replace(out, data, *filter(None, [answers]))
    check_folder(Path(out))
    if answers and promise:
        raise ValueError(
            "--answers and --promise: reviewed rows were chosen because the model was unsure, so "
            "they cannot show that a promise is kept; give one of them."
        )
    if answers and data == "-":
        raise ValueError("--answers is for data in a file, not from stdin.")
    if answers and groups:
        raise ValueError("--answers and --groups: reviewed rows have no group; give one of them.")
    whole = {
        "--answers": answers,
        "--tag-separator": tag_separator,
        "--groups": groups,
        "--promise": promise,
    }
    needs_all = [name for name, is_given in whole.items() if is_given]
    if needs_all and is_chunked(data) and not fits_memory(data):
        raise ValueError(f"{needs_all[0]} is for data that is read whole, and {data} is large.")
    caution = None if promise or options.caution else Caution(answered, options.seed)
    if reads_chunked(data, classifier, needs_all=bool(needs_all)):
        chunks = LabelledChunks(data, labels or [], ignore)
        _fit_in_chunks(classifier, chunks, use, caution, out, sample)
        return
    X, Y = read_labelled(data, labels or [], ignore, tag_separator, case_sensitive=case_sensitive)
    if answers:
        X, Y = _with_answers(X, Y, data, answers)
    X, group_of = take_groups(X, groups)
    X = usable_features(X, Y, use)
    with Progress("steps (choose caution, fit)" if caution else "steps", 2) as steps:
        chosen = "" if caution is None else caution.choose(classifier, X, Y, len(X), group_of)
        steps(1)
        classifier.fit(X, Y, **({"groups": group_of} if promise else {}))
    _save(classifier, out)
    for line in (str(classifier.report_) if promise else chosen).splitlines():
        note(line)
    note(f"{table_size(len(X), X.shape[1], Y.shape[1])} -> {out}")


@dataclass(frozen=True)
class Caution:
    """How cautious, by the share of labels that is to be answered; None: the usual one."""

    answered: float | None
    seed: int

    def choose(self, classifier: Any, X: Any, Y: Any, n_rows: int, groups: Any = None) -> str:
        """Set the classifier's caution by some of the ``n_rows`` rows it will be fitted to.

        What was chosen, in words.
        """
        if len(X) < MIN_ROWS and self.answered is None:
            parameter = classifier.caution_parameter
            value = classifier.get_params()[parameter]
            value = default_reward(Y.shape[1]) if value is None else value
            return f"note: too few rows to choose caution by: {parameter} = {value:.4g}"
        with warnings.catch_warnings():  # they come again when all rows are fitted
            warnings.simplefilter("ignore", UserWarning)
            chosen = self._chosen(classifier, X, Y, n_rows, groups)
        classifier.set_params(**{chosen.parameter: chosen.value})
        how = " (--answered, --promise or a value of your own choose otherwise)"
        return f"{chosen}{how if self.answered is None else ''}"

    def _chosen(self, classifier: Any, X: Any, Y: Any, n_rows: int, groups: Any) -> CautionChoice:
        return choose_caution(
            classifier,
            X,
            Y,
            completeness=DEFAULT_COMPLETENESS if self.answered is None else self.answered,
            n_rows=n_rows,
            random_state=self.seed,
            groups=groups,
        )


def _save(classifier: Any, out: str) -> None:
    save_model(classifier, out)
    names = untrusted_types(out)
    if names:
        options = " ".join(f"--trust {name}" for name in names)
        note(f"note: commands load {out} only if its types are trusted: credalchain {options} ...")


def _with_answers(X: Any, Y: Any, data: str, answers: str) -> tuple[Any, Any]:
    """What people answered on the review page, added to the data."""
    with warnings.catch_warnings():  # of the dialect, which was told
        warnings.simplefilter("ignore", UserWarning)
        frame, _ = load_table(data)
    cells = frame.drop(columns=[name for name in Y.columns if name in frame.columns])
    with AnswerStore(answers, create=False) as store:
        added = add_answers(X, Y, row_keys(cells, store.version), store)
    note(
        f"{answers}: {plural(added.n_filled, 'missing label')} of rows in {data} filled, "
        f"{plural(added.n_replaced, 'other')} replaced, {plural(added.n_rows, 'row')} added"
    )
    return added.X, added.Y


def _check_answered(answered: float, options: o.ClassifierOptions, promise: Any) -> None:
    if not 0 < answered <= 1:
        raise ValueError(f"--answered must be between 0 and 1, got {answered:g}.")
    if promise:
        raise ValueError("--answered and --promise both choose caution: give one of them.")
    for name in options.caution:
        raise ValueError(f"--{name} is chosen by --answered: give one of them.")


def _fit_in_chunks(
    classifier: Any,
    chunks: LabelledChunks,
    use: str,
    caution: Caution | None,
    out: str,
    sample: int | None,
) -> None:
    """In constant memory, whatever the size of the data.

    Which columns are usable, and how cautious to be, is found on a sample of rows.
    """
    X, Y = chunks.sample(use)
    chosen = "" if caution is None else caution.choose(classifier, X, Y, chunks.n_rows)
    chunks.fit(classifier, sample_size=sample)
    _save(classifier, out)
    for line in filter(None, (chosen, classifier.learned_from_)):
        note(line)
    size = table_size(chunks.n_rows, classifier.n_features_in_, len(classifier.label_names_))
    note(f"{size} -> {out}")

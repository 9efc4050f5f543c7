"""``credalchain fit``."""

import warnings
from typing import Annotated, Any

import typer

from credalchain.bases.wrapper.codec import check_can_be_saved
from credalchain.chunks import counting, trees
from credalchain.cli import options as o
from credalchain.cli.console import note
from credalchain.cli.promise import check_calibration, read_promise
from credalchain.cli.stream import LabelledPieces, is_in_pieces, is_large
from credalchain.cli.tables import read_labelled, read_table, tell_columns
from credalchain.model_files import save_model
from credalchain.promises.caution import choose_caution
from credalchain.promises.classifier import PromisedClassifier
from credalchain.review.exchange import add_answers
from credalchain.review.rows import row_keys
from credalchain.review.store import AnswerStore

_CALIBRATION = 0.3


@o.with_classifier_options
def fit(
    data: o.Data,
    out: Annotated[str, typer.Option(help="Where the model goes.")],
    labels: o.Labels = None,
    ignore: o.Ignore = "",
    tag_separator: o.TagSeparator = "",
    promise: Annotated[
        list[str] | None,
        typer.Option(
            help="What errors may be at most, such as row-error=0.1 (one row in ten has a wrong "
            "answer), or selective-error:toxic=0.01 for one label; caution is chosen to keep it. "
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
            "out, such as 0.8."
        ),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            help="Rows from which bins or trees are learned if DATA is read in pieces (a folder, a "
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
    the same with `--method recommended --promise row-error=0.1`
    """
    classifier = o.build_classifier(options)
    if promise:
        check_calibration(calibration)
        for name, usual in (("s", o.ClassifierOptions.s), ("reward", o.ClassifierOptions.reward)):
            if getattr(options, name) != usual:
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
    if out == "-":
        raise ValueError("--out -: a model goes to a file, not to stdout.")
    if answers and promise:
        raise ValueError(
            "--answers and --promise: reviewed rows were chosen because the model was unsure, so "
            "they cannot show that a promise is kept; give one of them."
        )
    if answers and data == "-":
        raise ValueError("--answers is for data in a file, not from stdin.")
    whole = {
        "--answered": answered is not None,
        "--answers": answers,
        "--tag-separator": tag_separator,
    }
    needs_all = [name for name, is_given in whole.items() if is_given]
    if needs_all and is_in_pieces(data):
        raise ValueError(f"{needs_all[0]} is for data that is read whole.")
    can_be_in_pieces = not needs_all and hasattr(classifier, "fit_chunks")
    if is_in_pieces(data) or (is_large(data) and can_be_in_pieces):
        _fit_in_pieces(classifier, data, labels or [], ignore, out, sample)
        return
    X, Y = read_labelled(data, labels or [], ignore, tag_separator)
    if answers:
        X, Y = _with_answers(X, Y, data, answers)
    tell_columns(X, Y)
    if options.base == "wrapper":
        check_can_be_saved(o.wrapped_estimator(options.estimator))
    if options.method == "joint":
        note(f"fitting {Y.shape[1]} labels several times over; this takes a while")
    if answered is not None:
        chosen = choose_caution(classifier, X, Y, completeness=answered, random_state=options.seed)
        classifier.set_params(**{chosen.parameter: chosen.value})
        note(str(chosen))
    classifier.fit(X, Y)
    save_model(classifier, out)
    if promise:
        for line in str(classifier.report_).splitlines():
            note(line)
    note(f"{len(X)} rows, {X.shape[1]} features, {Y.shape[1]} labels -> {out}")


def _with_answers(X: Any, Y: Any, data: str, answers: str) -> tuple[Any, Any]:
    """What people answered on the review page, added to the data."""
    with warnings.catch_warnings():  # of the dialect, which was told
        warnings.simplefilter("ignore", UserWarning)
        frame, _ = read_table(data)
    keys = row_keys(frame.drop(columns=[name for name in Y.columns if name in frame.columns]))
    with AnswerStore(answers, create=False) as store:
        added = add_answers(X, Y, keys, store)
    note(
        f"{answers}: {added.n_filled} missing labels of rows in {data} filled, {added.n_replaced} "
        f"others replaced, {added.n_rows} rows added"
    )
    return added.X, added.Y


def _check_answered(answered: float, options: o.ClassifierOptions, promise: Any) -> None:
    if not 0 < answered <= 1:
        raise ValueError(f"--answered must be between 0 and 1, got {answered:g}.")
    if promise:
        raise ValueError("--answered and --promise both choose caution: give one of them.")
    for name in ("s", "reward"):
        if getattr(options, name) != getattr(o.ClassifierOptions, name):
            raise ValueError(f"--{name} is chosen by --answered: give one of them.")


def _fit_in_pieces(
    classifier: Any, data: str, labels: list[str], ignore: str, out: str, sample: int | None
) -> None:
    """In constant memory, whatever the size of the data."""
    if not hasattr(classifier, "fit_chunks"):
        raise ValueError(
            f"{data} is read in pieces, from which a classifier with --promise does not learn."
        )
    pieces = LabelledPieces(data, labels, ignore)
    pieces.fit(classifier, sample_size=sample)
    save_model(classifier, out)
    note(classifier.learned_from_)
    n_features, n_labels = classifier.n_features_in_, len(classifier.label_names_)
    note(f"{pieces.n_rows} rows, {n_features} features, {n_labels} labels -> {out}")

"""``credalchain fit``."""

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from credalchain._utils.files import check_folder
from credalchain._utils.progress import Progress
from credalchain._utils.text import plural, table_size
from credalchain.cli import options as o
from credalchain.cli import tables
from credalchain.cli.console import note
from credalchain.cli.promise import read_promise
from credalchain.datasets.files import READING
from credalchain.model_files import save_model, untrusted_types
from credalchain.model_selection import unwrap
from credalchain.promises.caution import MIN_ROWS, choose_cautions
from credalchain.promises.classifier import PromisedClassifier
from credalchain.review.exchange import add_answers
from credalchain.review.rows import row_keys
from credalchain.review.store import AnswerStore

DEFAULT_COMPLETENESS = 0.8  # of the labels, where nobody says how cautious to be
_TABLES = (".csv", ".tsv", ".parquet", ".pq", ".arff")


@o.with_options
def fit(
    data: str,
    *,
    out: str,
    promise: list[str] | None = None,
    confidence: float | None = None,
    per_label: bool = False,
    calibration: float = o.CALIBRATION,
    answered: float | None = None,
    sample: Annotated[int | None, typer.Option(min=1)] = None,
    missing: str = "ignorable",
    answers: str = "",
    table: tables.LearningOptions,
    options: o.ClassifierOptions,
) -> None:
    """Fit a model to a labelled table and write it to a file.

    Example: `credalchain fit songs.csv --labels rock,pop,folk --out songs.model`, or, better,
    the same with `--promise row-error=0.1`

    Parameters
    ----------
    out
        The model file to write.
    promise
        A bound on a risk, such as row-error=0.1 (at most one row in ten has a wrong answer), or
        row-error:toxic=0.01 for one label; caution is chosen to keep it. May be repeated; see tune.
    per_label
        Make the promise about each label separately, where there are enough rows to test it, and
        about the others together.
    answered
        Share of the labels to answer; caution is chosen on held-out rows. 0.8 if none of --promise,
        --s and --reward is given.
    sample
        Rows from which bins or trees are learned if DATA is read in chunks; if not given, 100000,
        and 20000 for forests in chains.
    missing
        With --promise. ignorable: labels are missing at random; conservative: the promise holds
        whatever the missing labels are.
    answers
        A file of the review page, whose answers are learned from as well: labels of rows in DATA
        are filled in, other rows are added.
    """
    promises = read_promise(promise or [])
    classifier = o.build_classifier(options, over_scores=bool(table.scores), risks=promises)
    for_promise = {
        "--confidence": confidence is not None,
        "--per-label": per_label,
        "--calibration": calibration != o.CALIBRATION,
        "--missing": missing != "ignorable",
    }
    for name in [name for name, given in for_promise.items() if given and not promise]:
        raise ValueError(f"{name} is for --promise.")
    if answered is not None and not 0 < answered <= 1:
        raise ValueError(f"--answered must be between 0 and 1, got {answered:g}.")
    if answered is not None and promise:
        raise ValueError("--answered and --promise both choose caution: give one of them.")
    chooser = "--promise" if promise else "--answered" if answered is not None else ""
    for name in options.caution if chooser else ():
        raise ValueError(f"--{name} is chosen by {chooser}: give one of them.")
    if out in ("", "-"):
        raise ValueError(f"--out must name a file to write the model to, got {out!r}.")
    if Path(out).suffix.lower() in _TABLES:
        raise ValueError(
            f"--out {out}: a model file cannot end like a table; use another ending, or none."
        )
    tables.check_output_path(out, data, *filter(None, [answers]))
    check_folder(Path(out))
    if answers and data == "-":
        raise ValueError("--answers is for data in a file, not from stdin.")
    if answers and table.groups:
        raise ValueError("--answers and --groups: reviewed rows have no group; give one of them.")
    whole = "--answers" if answers else table.whole or ("--promise" if promise else "")
    chooses = not promise and not options.caution
    group_of, chosen, original, chunks = None, "", None, None
    if tables.is_read_in_chunks(data, classifier, whole):
        chunks = tables.LabelledChunks(data, table)  # columns, caution: chosen by a sample of rows
        X, Y, features = chunks.sample(sample or o.sample_size(options))
    else:
        X, Y = table.read(data)
        if answers:  # what people answered on the review page
            cells = tables.load_table(data)[0].drop(columns=Y.columns, errors="ignore")
            with AnswerStore(answers, create=False) as store:
                keys = row_keys(cells)
                reviewed = add_answers(X, Y, keys, store)
            X, Y, original = reviewed.X, reviewed.Y, reviewed.original
            note(
                f"{answers}: {plural(reviewed.n_filled, 'missing label')} of rows in {data} "
                f"filled, {plural(reviewed.n_replaced, 'other')} replaced, "
                f"{plural(reviewed.n_added, 'row')} added"
            )
            if promise:
                note(
                    f"{answers}: {plural(reviewed.n_blind, 'row')} answered without suggestions "
                    "may be drawn for calibration"
                )
        X, features, group_of = table.features(X, Y)
    model = o.build_model(classifier, features, options)
    n_rows = len(X) if chunks is None else chunks.n_rows
    if options.method == "recommended" and options.trees is None and not table.scores:
        o.note_long_fit(n_rows, X.shape[1], Y.shape[1], options.jobs)
    words = "steps (choose caution, fit)" if chooses else "steps"
    with o.forest_cache(), Progress(words, 1 + chooses) as steps:
        if chooses:
            some = slice(None) if chunks is None else tables.evenly_spaced_rows(len(X))
            rows = X[some], Y[some], n_rows
            chosen = _choose_caution(model, *rows, answered, options.seed, group_of)
        steps(int(chooses))
        if promise:
            model = PromisedClassifier(
                model,
                promises,
                confidence=confidence,
                missing=missing,
                per_label=per_label,
                calibration=calibration,
                random_state=options.seed,
            )
            model.fit(X, Y, groups=group_of, original_labels=original)
        elif chunks is not None:
            model = tables.fit_chunks(model, chunks, X, Y, sample)
        else:
            model.fit(X, Y)
    classifier, _ = unwrap(model)
    save_model(model, out, label_words=READING.get().words)
    names = untrusted_types(out)
    if names:
        trust = " ".join(f"--trust {name}" for name in names)
        note(f"note: commands load {out} only if its types are trusted: credalchain {trust} ...")
    learned_from = getattr(classifier, "learned_from_", None) or ""
    about = str(classifier.report_) if promise else f"{chosen}\n{learned_from}"
    for line in filter(None, about.splitlines()):
        note(line)
    note(f"{table_size(n_rows, X.shape[1], Y.shape[1])} -> {out}")


def _choose_caution(
    model: Any, X: Any, Y: Any, n_rows: int, answered: float | None, seed: int, groups: Any
) -> str:
    """Set the model's caution by some of the ``n_rows`` rows it will be fitted to.

    Return what was chosen, in words.
    """
    classifier, _ = unwrap(model)
    if len(X) < MIN_ROWS and answered is None:
        value = o.default_caution(classifier, Y.shape[1])
        name = classifier.caution_parameter
        return f"note: too few rows to choose caution by: {name} = {value:.4g}"
    with warnings.catch_warnings():  # they come again when all rows are fitted
        warnings.simplefilter("ignore", UserWarning)
        share = DEFAULT_COMPLETENESS if answered is None else answered
        (chosen,) = choose_cautions(
            model, X, Y, [share], n_rows=n_rows, random_state=seed, groups=groups
        )
    classifier.set_params(**{chosen.parameter: chosen.value})
    how = " (--answered, --promise or a value of your own choose otherwise)"
    return f"{chosen}{how if answered is None else ''}"

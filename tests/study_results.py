"""Folders of results that nobody computed: curves whose differences are known."""

from itertools import product

import numpy as np

from credalchain.studies.results import Store
from credalchain.studies.study_file import Method, Study
from credalchain.studies.tasks import expand

GRID = tuple(float(s) for s in range(11))  # caution 0 answers all labels, 10 none
MEASURES = ("set_accuracy", "completeness")


def a_study(
    datasets, methods, *, folds=5, repeats=2, levels=(0.0,), name="made", measures=MEASURES
):
    """``methods`` are names, or methods of a study."""
    methods = tuple(m if isinstance(m, Method) else Method(m, kind="relevance") for m in methods)
    return Study(
        name, 0, "default", tuple(datasets), methods, "uniform", levels, folds, repeats, measures
    )


def results_of(study, folder, skill, *, noise=0.01, grid=GRID, caution=None, strategy="none"):
    """A store whose methods have set-accuracy ``skill(method, dataset)`` more than a common line.

    Every fold has noise of its own. ``caution(method)`` gives the two columns about the caution
    parameter; without it they say s.
    """
    store = Store(folder)
    store.open(study)
    sizes = {"features": 2, "labels": 3, "rows": 100, "cardinality": 1.5, "density": 0.5}
    store.save_facts([{"dataset": name, "domain": "", **sizes} for name in study.data])
    for turn, task in enumerate(expand(study)):
        rng = np.random.default_rng(turn)
        store.save(task, list(_records(task, rng, skill, noise, grid, caution, strategy)))
    return store


def _records(task, rng, skill, noise, grid, caution, strategy):
    more = skill(task.method.name, task.dataset)
    about = {"dataset": task.dataset, "method": task.method.name, "strategy": strategy}
    extra = {"caution_parameter": "s", "larger_is_more_cautious": True}
    extra = extra if caution is None else caution(task.method.name)
    for fold, level in product(range(task.study.folds), task.study.levels):
        error = rng.normal(scale=noise)
        for s in grid:
            answered = 1 - s / 10
            yield {
                **about, "s": s, "missing": level, "repetition": task.repetition, "fold": fold,
                **dict.fromkeys(task.study.measures, 0.5),
                "set_accuracy": 0.8 - 0.5 * answered + more - level / 10 + error,
                "completeness": answered, "fit_seconds": 1.0, "predict_seconds": 1.0, **extra,
            }  # fmt: skip

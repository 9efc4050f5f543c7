"""Label vectors drawn from chains."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from credalchain.bases.ensemble import EnsembleModel
from credalchain.bases.protocol import Labels
from credalchain.labels import MISSING
from credalchain.odds import probabilities


def sample_labels(
    classifier: Any,
    X: Any,
    n_samples: int,
    random_state: Any = None,
    *,
    known: Any = None,
    exponent: float = 1.0,
) -> Labels:
    """Label vectors drawn from the precise chains: int8, (n_samples, n, m).

    Each label is drawn from its probability given the labels drawn before it; the chains of an
    ensemble take turns.

    Parameters
    ----------
    classifier : fitted classifier of this package
    X : array-like, data frame or scipy sparse of shape (n, n_features)
    n_samples : int
    random_state : int, RandomState or None
    known : array-like of shape (n, m), optional
        Labels that were answered already, -1 elsewhere. They are told as they are.
    exponent : float
        The odds of every label drawn are raised to this power, as a calibration wants it.
    """
    rng = check_random_state(random_state)
    encoded, n_rows = classifier._encode(X)
    model = classifier.model_
    if isinstance(model, EnsembleModel):
        members = zip(model.models, model.orders, strict=True)
        chains = [(one, encoded[id(one)], order) for one, order in members]
    else:
        order = classifier.order_
        if order is None:
            raise ValueError("labels can be drawn along a fixed order only, not a dynamic one.")
        chains = [(model, encoded, order)]
    never = model.never_observed()
    told = classifier._read_known(known, n_rows)
    samples = np.zeros((n_samples, n_rows, classifier.n_labels_), dtype=np.int8)
    rows = np.arange(n_rows)
    for at in range(n_samples):
        one, codes, order = chains[at % len(chains)]
        walk = one.begin(codes, s=0.0, strategy=classifier._strategy(), precise=True)
        for j in order.tolist():
            if not never[j]:
                lower, _ = walk.log_odds(j, rows)
                samples[at, :, j] = rng.random_sample(n_rows) < probabilities(exponent * lower)
            if told is not None:
                given = told[:, j] != MISSING
                samples[at, given, j] = told[given, j]
            if classifier._chained():
                walk.tell(j, samples[at, :, j], rows)
    return samples

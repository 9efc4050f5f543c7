"""Label vectors drawn from chains."""

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from credalchain.array_types import Labels
from credalchain.bases.ensemble import EnsembleModel
from credalchain.labels import UNDECIDED
from credalchain.odds import probabilities
from credalchain.typing import LabelsLike, MatrixLike, RandomStateLike


def sample_labels(
    classifier: BaseEstimator,
    X: MatrixLike,
    n_samples: int,
    random_state: RandomStateLike = None,
    *,
    known: LabelsLike | None = None,
    exponent: float = 1.0,
    alike: bool = False,
) -> Labels:
    """Label vectors drawn from the precise chains: int8, (n_samples, n, m).

    Each label is drawn from its probability given the labels drawn before it; draws alternate
    between the chains of an ensemble.

    Parameters
    ----------
    classifier : fitted classifier of this package
    X : array-like, data frame or scipy sparse of shape (n, n_features)
    n_samples : int
    random_state : int, RandomState or None
    known : array-like of shape (n, m), optional
        Labels that were answered already, -1 elsewhere. They are used as they are.
    exponent : float
        The odds of every label drawn are raised to this power, for calibration.
    alike : bool
        Use the same random numbers for all rows, so that a row's draws do not depend on the others.
    """
    rng = check_random_state(random_state)
    encoded = classifier.encode(X)
    request = classifier.request(encoded, s=0.0, known=known, precise=True)
    model = classifier.model_
    if isinstance(model, EnsembleModel):
        chains = model.chains(encoded)
    elif classifier.order_ is None:
        raise ValueError("labels can be drawn along a fixed order only, not a dynamic one.")
    else:
        chains = [(model, encoded, classifier.order_)]
    shape = (encoded.shape[0], model.n_labels)
    forced = np.broadcast_to(request.forced_labels(), shape)
    samples = np.empty((n_samples, *shape), dtype=np.int8)
    rows = np.arange(shape[0])
    for i in range(n_samples):
        chain, codes, order = chains[i % len(chains)]
        walk = chain.begin(codes, s=0.0, strategy=request.strategies[0], precise=True)
        for j in order.tolist():
            y = samples[i, :, j]
            if not request.never_observed[j]:
                lower, _ = walk.log_odds(j, rows)
                drawn = rng.random_sample(1 if alike else shape[0])
                y[:] = drawn < probabilities(exponent * lower)
            y[forced[:, j] != UNDECIDED] = forced[forced[:, j] != UNDECIDED, j]
            if request.chained:
                walk.set_label(j, y, rows)
    return samples

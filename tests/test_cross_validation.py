"""Cross-validation along the values of a caution parameter."""

from sklearn.model_selection import KFold

from credalchain import CredalChainClassifier, cross_val_partial
from credalchain.chains.interface import fitted_folds
from credalchain.model_selection import predict_along, score_path


def test_one_cross_validation_for_labels_bounds_and_scores(yeast):
    X, Y = yeast.X[:300, :10], yeast.Y[:300, :4]
    chain = CredalChainClassifier(order="given", s=1.0)
    splits = list(KFold(3).split(X))
    expected = cross_val_partial(chain, X, Y, cv=splits)
    for rows, held_out, fitted in fitted_folds([chain] * 3, X, Y, splits):
        alone = predict_along(fitted, held_out, [1.0, 4.0], ["completeness"])
        path = predict_along(fitted, held_out, [1.0, 4.0], ["completeness", "maximin_accuracy"])
        assert (path.labels == alone.labels).all()
        assert (path.labels[0] == expected[rows]).all()
        assert alone.bounds == ()
        (answered,) = score_path(["completeness"], Y[rows], alone)
        assert answered == [(labels != -1).mean() for labels in alone.labels]

"""The bases of this package: one line each.

Model files and the types that a safe loader may trust are derived from it. A base is a folder with
an estimator, its fitted model and a codec for model files (``ARRAYS``, ``describe``, ``restore``).
"""

from dataclasses import dataclass
from types import ModuleType

from credalchain.bases.forest import CredalForest, ForestChainModel, PackedForest
from credalchain.bases.forest import codec as forest_codec
from credalchain.bases.inputs import TableEncoder
from credalchain.bases.logistic import CoefficientSet, CredalLogistic, LogisticChainModel
from credalchain.bases.logistic import codec as logistic_codec
from credalchain.bases.naive import NaiveChainModel, NaiveCredal
from credalchain.bases.naive import codec as naive_codec
from credalchain.bases.wrapper import CredalWrapper, WrappedChainModel
from credalchain.bases.wrapper import codec as wrapper_codec


@dataclass(frozen=True)
class RegisteredBase:
    """A base by its name in files and on the command line.

    ``parts`` are the further types that a fitted model holds.
    """

    name: str
    estimator: type
    model: type
    codec: ModuleType
    parts: tuple[type, ...] = ()


BASES = {
    base.name: base
    for base in (
        RegisteredBase("naive", NaiveCredal, NaiveChainModel, naive_codec, naive_codec.PARTS),
        RegisteredBase("forest", CredalForest, ForestChainModel, forest_codec, (PackedForest,)),
        RegisteredBase(
            "logistic", CredalLogistic, LogisticChainModel, logistic_codec, (CoefficientSet,)
        ),
        RegisteredBase(
            "wrapper", CredalWrapper, WrappedChainModel, wrapper_codec, wrapper_codec.PARTS
        ),
    )
}

SHARED_PARTS = (TableEncoder,)


def base_of(model: object) -> RegisteredBase | None:
    """The base that a fitted model belongs to."""
    return next((base for base in BASES.values() if isinstance(model, base.model)), None)

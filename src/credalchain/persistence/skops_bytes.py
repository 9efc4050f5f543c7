"""scikit-learn's own estimators as bytes, through skops.

skops restores types by name from lists it trusts, and runs nothing else. What it does not trust
is refused when saving, and again when loading.
"""

import io
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.persistence.archive import check_size


def to_bytes(content: Any) -> NDArray[np.uint8]:
    """As an array; types that skops does not trust are refused."""
    blob = _skops().dumps(content)
    untrusted = _skops().get_untrusted_types(data=blob)
    if untrusted:
        raise ValueError(
            "a classifier cannot be saved if it holds types that skops does not trust: "
            f"{untrusted}."
        )
    return np.frombuffer(blob, np.uint8)


def from_bytes(array: NDArray[Any]) -> Any:
    """What :func:`to_bytes` was given."""
    blob = array.tobytes()
    check_size(zipfile.ZipFile(io.BytesIO(blob)))
    return _skops().loads(blob, trusted=[])


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            "a classifier inside a model needs a package: pip install skops"
        ) from error
    return skops.io

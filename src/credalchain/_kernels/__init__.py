"""Array functions only: counts, log-odds tables, sums, the walk along the chain, forests.

Every function here takes and gives plain arrays that were checked before; none
looks at its input twice. They are compiled by numba, release the GIL and are not
parallel themselves.

Importing numba takes longer than importing the rest of the package, so a kernel's
module is imported when the kernel is first asked for (PEP 562).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOME = {
    "count_codes": "counting",
    "count_sparse_codes": "counting",
    "count_zeros": "counting",
    "sum_categories": "counting",
    "add_zero_codes": "log_odds",
    "bound_evidence": "log_odds",
    "fill_pairs": "log_odds",
    "fill_table": "log_odds",
    "find_evidence": "log_odds",
    "add_rows": "sums",
    "add_sparse_rows": "sums",
    "forest_bounds": "trees",
    "tell_guesses": "walk",
    "walk_chain": "walk",
    "widest_stars_with_zeros": "walk",
}

if TYPE_CHECKING:
    from credalchain._kernels.counting import (
        count_codes,
        count_sparse_codes,
        count_zeros,
        sum_categories,
    )
    from credalchain._kernels.log_odds import (
        add_zero_codes,
        bound_evidence,
        fill_pairs,
        fill_table,
        find_evidence,
    )
    from credalchain._kernels.sums import add_rows, add_sparse_rows
    from credalchain._kernels.trees import forest_bounds
    from credalchain._kernels.walk import (
        tell_guesses,
        walk_chain,
        widest_stars_with_zeros,
    )

    __all__ = [
        "add_rows",
        "add_sparse_rows",
        "add_zero_codes",
        "bound_evidence",
        "count_codes",
        "count_sparse_codes",
        "count_zeros",
        "fill_pairs",
        "fill_table",
        "find_evidence",
        "forest_bounds",
        "sum_categories",
        "tell_guesses",
        "walk_chain",
        "widest_stars_with_zeros",
    ]
else:

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        kernel = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = kernel
        return kernel

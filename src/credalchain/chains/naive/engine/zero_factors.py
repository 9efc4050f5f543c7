"""Zero factors in kernels; ``layout`` says how they are counted."""

from credalchain._utils.compiler import kernel_helper
from credalchain.chains.naive.engine.layout import INFINITE, NUMERATOR_MASK


@kernel_helper
def resolve_zeros(value: int, zeros: int) -> int:
    """A sum whose zero factors are counted separately: a zero in the numerator wins."""
    if zeros & NUMERATOR_MASK:
        return -INFINITE
    return INFINITE if zeros else value

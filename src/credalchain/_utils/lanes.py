"""Blocks of sixteen numbers side by side ("lanes"), which kernels keep in vector registers.

A row of a table is made of such blocks. One of 64-bit numbers is two cache lines and four vector
registers, wide enough to hide the look-up of the next row, and a table of a thousand such rows
stays in the second-level cache. The bodies are spelled out because the compiler vectorises only
what it sees.
"""

from typing import Any

from credalchain._utils.compiler import kernel_helper

BLOCK = 16

# fmt: off


@kernel_helper
def repeat(value: Any) -> Any:
    """The same number 16 times, as a tuple."""
    return (
        value, value, value, value, value, value, value, value,
        value, value, value, value, value, value, value, value,
    )


@kernel_helper
def load(row: Any) -> Any:
    """A block as a tuple."""
    return (
        row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7],
        row[8], row[9], row[10], row[11], row[12], row[13], row[14], row[15],
    )


@kernel_helper
def plus(a: Any, row: Any) -> Any:
    """The sum of a tuple and a block."""
    return (
        a[0] + row[0], a[1] + row[1], a[2] + row[2], a[3] + row[3],
        a[4] + row[4], a[5] + row[5], a[6] + row[6], a[7] + row[7],
        a[8] + row[8], a[9] + row[9], a[10] + row[10], a[11] + row[11],
        a[12] + row[12], a[13] + row[13], a[14] + row[14], a[15] + row[15],
    )


@kernel_helper
def plus_product(a: Any, factor: Any, row: Any) -> Any:
    """The sum of a tuple and a multiple of a block."""
    return (
        a[0] + factor * row[0], a[1] + factor * row[1],
        a[2] + factor * row[2], a[3] + factor * row[3],
        a[4] + factor * row[4], a[5] + factor * row[5],
        a[6] + factor * row[6], a[7] + factor * row[7],
        a[8] + factor * row[8], a[9] + factor * row[9],
        a[10] + factor * row[10], a[11] + factor * row[11],
        a[12] + factor * row[12], a[13] + factor * row[13],
        a[14] + factor * row[14], a[15] + factor * row[15],
    )


@kernel_helper
def store(a: Any, row: Any) -> None:
    """A tuple into a block."""
    row[0], row[1], row[2], row[3] = a[0], a[1], a[2], a[3]
    row[4], row[5], row[6], row[7] = a[4], a[5], a[6], a[7]
    row[8], row[9], row[10], row[11] = a[8], a[9], a[10], a[11]
    row[12], row[13], row[14], row[15] = a[12], a[13], a[14], a[15]

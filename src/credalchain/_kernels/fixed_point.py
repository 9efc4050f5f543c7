"""Log-odds as 64-bit integers, with a rounding bound that is known.

Integer sums are associative: the same bits come out for any order of the features,
any number of threads, dense or sparse input. And the error of a sum is bounded by
the number of its terms, so a comparison outside that band is certain.

Three facts carry the bound:

- every term is the logarithm of a ratio between 1e-111 and 1e111, so it is below
  2**8 in size (the estimators refuse parameters that could break this);
- a sum has at most ``terms`` of them, so ``2**8 * terms * 2**bits < 2**62``;
- a term is the difference of two logarithms of probabilities, each computed with less
  than 16 roundings, its logarithm to 4 units in the last place (below 0.2 units of
  2**-40) and rounded to the grid (0.5 more): every term is within 1.4 units. What a
  star adds is made from such terms; 4 units leave room for a strategy that triples them.

Infinite terms are kept apart, as numbers of zero factors, because ``inf - inf``
would lose them: the low half of a 64-bit lane counts zeros above the fraction bar,
the high half zeros below it.
"""

ZERO_ABOVE = 1  # one factor 0 in the numerator: log-odds of -inf
ZERO_BELOW = 1 << 32  # one factor 0 in the denominator: log-odds of +inf
ABOVE_MASK = ZERO_BELOW - 1


def fraction_bits(terms: int) -> int:
    """Bits behind the binary point, for sums of at most ``terms`` terms."""
    return min(40, 54 - int(terms).bit_length())

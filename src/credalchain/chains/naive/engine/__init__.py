"""The engine of the naive credal model: sums of log-odds in 64-bit integers, compiled.

What is computed is defined in ``formulas.py`` and, in exact fractions, in ``exact.py``. Here is how
it is computed fast, in reading order: ``fixed_point`` (integers for log-odds), ``tables`` (what
each observation adds), ``walk`` (sums over features, then along the chain), ``kernels`` (what of
these is compiled, and the layout in memory).
"""

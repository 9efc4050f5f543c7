"""The engine of the naive credal model: sums of log-odds in 64-bit integers, compiled.

What is computed is defined in ``formulas.py`` and, in exact fractions, in ``exact.py``. Here is how
it is computed fast, in reading order: ``layout`` (numbers and their layout in memory),
``tables`` (what each observation adds), ``fixed_order`` (sums over features, then the walk for all
strategies and values of s at once), ``walk`` (the same label by label, in any order),
``compiled_terms`` (large tables, compiled), and the kernels beside their callers.
"""

"""Numbers that kernels and their callers agree on."""

STAR = -1  # an answer beside 0 and 1: abstained
FREE = -2  # in ``forced``: nobody has said what this label is

LANES = 16  # 64-bit lanes in a block of a table: two cache lines
STEP = 4  # lanes that the walk adds at a time

NEVER_SEEN, SAYS_NOTHING = -1, -2  # in place of the row in which an observation was counted

LEAF = 2**31 - 1  # in place of the feature that a node of a tree splits on
INFINITE = 2**62  # larger than any sum

"""Numbers that kernels and their callers agree on."""

STAR = -1  # an answer beside 0 and 1: abstained
FREE = -2  # in ``forced``: nobody has said what this label is

LANES = 16  # 64-bit lanes that are added at a time: two cache lines
STEP = 4  # lanes that are filled or told at a time

NEVER_SEEN, SAYS_NOTHING = -1, -2  # in place of the row in which an observation was counted
NO_DATA = -1  # in place of a count of 0, where the counts of all categories are 0

LEAF = 2**31 - 1  # in place of the feature that a node of a tree splits on
INFINITE = 2**62  # larger than any sum

"""What the walk writes and reads about a label, beside the answers 0 and 1."""

STAR = -1  # abstained
FREE = -2  # in ``forced``: nobody has said what this label is

"""Joint models: weights on label vectors, and decisions about all labels of a row together."""

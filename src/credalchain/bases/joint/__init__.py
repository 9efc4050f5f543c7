"""All labels at once: weights on the label vectors of training rows."""

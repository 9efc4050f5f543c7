"""What processes of ``shell.start_process`` are forked from: imports done, kernels loaded."""

import credalchain.cli.review
import credalchain.review.server  # noqa: F401
from credalchain import CredalChainClassifier

CredalChainClassifier(order="given").fit([[0.0], [1.0], [2.0]], [[0, 1], [1, 0], [0, 1]]).infer(
    [[0.5]]
)

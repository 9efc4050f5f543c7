import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))  # oracle.py and problems.py

settings.register_profile(
    "ours",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ours")


@pytest.fixture(scope="session")
def yeast():
    """The real yeast data that the package river ships."""
    from credalchain.datasets import load_embedded_yeast

    return load_embedded_yeast()

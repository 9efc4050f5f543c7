"""How long tests search at random: ``pytest --hypothesis-profile=quick|usual|thorough``.

``make check`` uses the first, ``make test`` the second, ``make test-full`` the third.
"""

from hypothesis import HealthCheck, settings

_COMMON = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow],
}
_THOROUGH, _USUAL, _QUICK = 100, 20, 5  # examples of a test that does not say how many it needs

settings.register_profile("thorough", max_examples=_THOROUGH, **_COMMON)
settings.register_profile("usual", max_examples=_USUAL, **_COMMON)
settings.register_profile("quick", max_examples=_QUICK, derandomize=True, **_COMMON)


def scaled(n):
    """Return ``n`` in the thorough profile, in proportion less in the others, at least one."""
    return max(1, n * settings.default.max_examples // _THOROUGH)


def examples(n):
    """For a test that needs ``n`` random examples to be thorough."""
    return settings(max_examples=scaled(n))

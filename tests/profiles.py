"""How long tests search at random: ``pytest --hypothesis-profile=quick`` or ``thorough``."""

from hypothesis import HealthCheck, settings

_COMMON = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow],
}
_THOROUGH, _QUICK = 100, 10  # examples of a test that does not say how many it needs

settings.register_profile("thorough", max_examples=_THOROUGH, **_COMMON)
settings.register_profile("quick", max_examples=_QUICK, derandomize=True, **_COMMON)


def scaled(n):
    """``n`` in the thorough profile, in proportion less in the quick one."""
    return n * settings.default.max_examples // _THOROUGH


def examples(n):
    """For a test that needs ``n`` random examples to be thorough."""
    return settings(max_examples=scaled(n))

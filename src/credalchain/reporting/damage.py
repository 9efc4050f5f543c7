"""What a study did to its training labels, in one word."""

from credalchain.experiments.study import Study


def damage_word(study: Study) -> str:
    """What was done to labels: "removed" or "changed"; empty if nothing was."""
    if not any(study.levels):
        return ""
    return "removed" if study.corruption in ("uniform", "per-label") else "changed"

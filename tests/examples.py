"""On how many examples a property is tried: on all of them where slow tests run, too, else on a third."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

_leaving_out: list[str] = []


def quick_run() -> None:
    """Say, before tests are collected, that this run leaves slow tests out."""
    _leaving_out.append("slow")


def examples(most: int) -> int:
    """Return how many of ``most`` examples to draw in this run."""
    return max(1, most // 3) if _leaving_out else most


def whatever_the_pace() -> None:
    """Never fail a property because this machine is slow now."""
    settings.register_profile("any pace", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("any pace")

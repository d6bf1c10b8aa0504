"""The table and the JSON of a replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bench.world.bounds import Bounds
from bench.world.setting import Setting
from bench.world.tally import Tally

HEAD = (
    "policy", "makespan h", "x oracle", "x bound", "mean JCT h", "x oracle", "x bound", "mean wait h", "p95 h",
    "longest h", "OOM", "own/neighbour/outsider/gate", "cap", "watchdog", "lost GPU-h", "memory", "CPU s",
)  # fmt: skip


def best(tallies: Sequence[Tally]) -> tuple[float, float] | None:
    """Return the best makespan and the best mean JCT of the clairvoyant policies, None where none was run."""
    known = [one for one in tallies if one.policy.startswith("oracle-")]
    return (min(one.makespan for one in known), min(one.mean_jct for one in known)) if known else None


def row(one: Tally, bound: Bounds, oracle: tuple[float, float] | None) -> list[str]:
    """Return one policy's cells."""
    span, jct = oracle or (0.0, 0.0)
    return [
        one.policy,
        f"{one.makespan / 3600:.2f}",
        f"{one.makespan / span:.3f}" if span else "-",
        f"{one.makespan / bound.makespan:.3f}",
        f"{one.mean_jct / 3600:.2f}",
        f"{one.mean_jct / jct:.2f}" if jct else "-",
        f"{one.mean_jct / bound.mean_jct:.2f}",
        f"{one.mean_wait / 3600:.2f}",
        f"{one.p95_wait / 3600:.1f}",
        f"{one.longest_wait / 3600:.1f}",
        str(one.oom_kills),
        "/".join(str(count) for count in one.ooms.values()),
        str(one.cap_kills),
        str(one.watchdog_kills),
        f"{one.lost_gpu_hours:.1f}",
        f"{one.memory_use:.2f}",
        f"{one.cpu:.1f}",
    ]


def heading(setting: Setting, count: int, bound: Bounds) -> str:
    """Return the lines above the table: the conditions, and how a row of several devices was taken."""
    groups = "a row of n devices starts on n at once" if setting.gangs else "a row of n devices is n jobs of one"
    beside = [
        f"shape {setting.shape}",
        groups,
        "interference" if setting.interference else "no interference",
        f"outsiders {setting.outsiders}" if setting.outsiders else "no outsiders",
    ]
    if setting.wrong > 1:
        beside.append(f"durations wrong by up to {setting.wrong:g} x")
    if setting.edits:
        beside.append(f"sources edited before {setting.edits:g} % of submissions")
    if setting.merged:
        beside.append("arguments do not matter")
    beside += [f"{name}={value}" for name, value in setting.knobs.items()]
    return (
        f"{setting.trace}: {count} jobs on {setting.devices} x {setting.cap:.0f} MiB, stretch {setting.stretch:g}; "
        f"{', '.join(beside)}.\n"
        f"Bounds: makespan {bound.makespan / 3600:.2f} h, mean JCT {bound.mean_jct / 3600:.2f} h."
    )


def table(tallies: Sequence[Tally], bound: Bounds) -> str:
    """Return the table as Markdown."""
    oracle = best(tallies)
    lines = [list(HEAD), ["---"] * len(HEAD), *(row(one, bound, oracle) for one in tallies)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def as_data(setting: Setting, tallies: Sequence[Tally], bound: Bounds) -> dict[str, Any]:
    """Return everything as JSON types."""
    return {
        "setting": asdict(setting),
        "bounds": asdict(bound),
        "policies": {one.policy: {**asdict(one), "oom_kills": one.oom_kills} for one in tallies},
    }

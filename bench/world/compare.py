"""The same trace under another, independent simulator, for the policies that both have."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bench.world import submissions
from bench.world.setting import Setting, load
from bench.world.tally import Tally

THEIRS = {
    "carma": "carma-magm",
    "gate-reference": "gate-agentcanvas",
    "gate-reference-idle": "gate-agentcanvas-idle",
}
"""What the other simulator calls a policy, where it is not what we call it."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One policy under both: seconds, and kills by lack of memory."""

    policy: str
    ours: tuple[float, float, int]
    theirs: tuple[float, float, int]

    @property
    def apart(self) -> float:
        """Return the larger of both differences, of the makespan and of the mean JCT, as a share."""
        return max(abs(a / b - 1) for a, b in zip(self.ours[:2], self.theirs[:2], strict=True))


def pairs(ours: Mapping[str, Tally], theirs: Mapping[str, tuple[float, float, int]]) -> list[Pair]:
    """Return what both have."""
    return [
        Pair(name, (one.makespan, one.mean_jct, one.oom_kills), theirs[THEIRS.get(name, name)])
        for name, one in ours.items()
        if THEIRS.get(name, name) in theirs
    ]


def other(simulator: Path, setting: Setting, names: list[str]) -> dict[str, tuple[float, float, int]]:
    """Return makespan, mean JCT and kills per policy of the other simulator, run on the same rows.

    It is to take ``--trace --devices --cap --policies --json FILE`` and, as this one, a row of n devices as a gang.
    """
    with tempfile.TemporaryDirectory() as where:
        trace, told = Path(where, "trace.csv"), Path(where, "told.json")
        rows = submissions.stretched(load(setting.trace, setting.cap), setting.stretch)
        submissions.write(trace, rows[: setting.limit] if setting.limit else rows)
        command = [sys.executable, str(simulator), "--trace", str(trace), "--devices", str(setting.devices)]
        command += ["--cap", f"{setting.cap:.0f}", "--json", str(told)]
        command += ["--policies", ",".join(THEIRS.get(name, name) for name in names)]
        command += ["--interference"] if setting.interference else []
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=1800)
        results = json.loads(told.read_text())["results"]
    return {one["policy"]: (one["makespan"], one["mean_jct"], one["oom_kills"]) for one in results}


def table(setting: Setting, simulator: Path, names: list[str]) -> tuple[str, bool]:
    """Return both side by side as Markdown, and whether all are within one per cent."""
    gangs = replace(setting, gangs=True)
    found = pairs({name: gangs.play(name) for name in names}, other(simulator, gangs, names))
    lines = ["| policy | makespan h | other | mean JCT h | other | OOM | other | apart |", "|" + " --- |" * 8]
    for one in found:
        (span, jct, dead), (its_span, its_jct, its_dead) = one.ours, one.theirs
        lines.append(
            f"| {one.policy} | {span / 3600:.2f} | {its_span / 3600:.2f} | {jct / 3600:.2f} | {its_jct / 3600:.2f} "
            f"| {dead} | {its_dead} | {one.apart:.2%} |"
        )
    return "\n".join(lines), all(one.apart <= 0.01 for one in found)

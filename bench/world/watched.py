"""A run as the product watches it: its window, its charges, when they settle, and the row that it leaves."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bench.world.readings import decisive, patient
from bench.world.runs import Device, Run
from bench.world.sediment import MIB, Sediment
from calibration.domain.charge import Settled, held, settle
from calibration.domain.deaths import Death
from calibration.domain.knobs import Knobs
from calibration.domain.ladder import Basis
from calibration.domain.preallocation import took_what_it_was_given
from calibration.domain.samples import RAM
from calibration.domain.sediment import Key, Row
from calibration.domain.windows import Window, close, flat_band, observe
from placement.domain.world.snapshot import Charge

WALL = 1_700_000_000.0
"""Unix second of the replay's second 0."""


@dataclass(slots=True)
class Held:
    """One charge of a running job, bytes."""

    granted: int
    at_start: int
    cap: int | None
    margin: int
    basis: Basis
    now: Settled | None = None

    def charge(self, used: int | None) -> Charge:
        """Return it as the gate sees it."""
        settled = self.now is not None and self.now.settled
        return Charge(self.granted, held(self.granted, used), used, self.at_start, settled, cap=self.cap)


class Watched:
    """What the product knows of one running job."""

    def __init__(self, run: Run, device: Device, uuid: str, key: Key, charges: dict[str, Held], knobs: Knobs) -> None:
        self.run, self.device, self.uuid, self.key = run, device, uuid, key
        self.charges, self.knobs, self._patient = charges, knobs, patient(knobs)
        self.window = Window(started_at=run.start)
        self.last = run.start
        self.told: int | None = None  # settled peak that estimates may stand on
        self.free_before = 0
        self.look_at = run.start + 1
        self.per_process = False
        self.most: dict[str, int] = {}  # what the device gives to one run

    @property
    def cold(self) -> bool:
        """Return whether it came with nothing known and has not settled: nobody joins it."""
        first = self.charges[self.uuid]
        return first.basis is Basis.COLD_START and (first.now is None or not first.now.settled)

    def advance(self, t: float) -> None:
        """Bring the window up to the readings of every second until ``t``."""
        ram = int(self.run.job.row.ram * MIB)
        busy = self.run.busy if self.per_process else self.device.busy
        for second, level, share in decisive(self.run.seen(t), self.last, busy):
            amounts = {"vram": int(level * MIB), "ram": ram}
            self.window = observe(self.window, second, amounts, share, self._patient)
            self.last = second

    def settle(self, t: float, learned: Sediment) -> bool:
        """Settle what may settle at this second; return whether a charge was lowered or a first run settled."""
        self.advance(t)
        level = self.window.levels.get("vram")
        changed = False
        for pool, kept in self.charges.items():
            kind = "ram" if pool == RAM else "vram"
            before = kept.now
            kept.now = settle(
                kept.granted,
                kept.basis,
                self.window,
                self.knobs,
                kind=kind,
                at=t,
                measured_need=kept.at_start,
                seconds_to_peak=learned.seconds_to_peak(self.key, kind),
                seen_on_device=level is not None and level.peak > 0,
                fixed_cap=kept.cap if kind == "vram" else None,
                before=before if before is not None and before.settled else None,
            )
            changed |= kept.now.granted < kept.granted or (kept.now.settled and not (before and before.settled))
            kept.granted = kept.now.granted
        self._plan_look(t, learned)
        self._tell(learned)
        return changed

    def _plan_look(self, t: float, learned: Sediment) -> None:
        """Work out the first second at which the device's charge could settle."""
        kept = self.charges[self.uuid]
        if kept.now is not None and kept.now.settled:
            self.look_at = t + 1 if self.run.rising else math.inf  # its level is news until it stays
            return
        knobs, needed = self.knobs, learned.seconds_to_peak(self.key, "vram")
        level = self.window.levels.get("vram")
        if kept.basis is Basis.MEASURED and needed is not None:
            at = self.run.start + knobs.settle_peak_factor * needed + knobs.settle_seconds
        elif level is None:
            at = t + 1
        else:
            worked = knobs.settle_seconds - level.worked_seconds
            if worked <= 0:  # long enough, but nothing that proves it is on the device
                worked = math.inf
            at = level.at + min(worked, knobs.unproven_settle_seconds - level.flat_seconds)
        self.look_at = max(t + 1, math.ceil(at - 1e-6))

    def _tell(self, learned: Sediment) -> None:
        """Let estimates stand on a peak that settled by proof, and again when it rises."""
        kept, level = self.charges[self.uuid], self.window.levels.get("vram")
        if level is None or kept.now is None or kept.now.proof not in ("worked", "learned"):
            return
        if self.told is None or level.peak > self.told + flat_band(level.peak, self.knobs):
            self.told = level.peak
            peaks = {"vram": level.peak}
            row = Row(self.key, False, peaks, "running", open=True, at=WALL + self.run.start)
            learned.tell(row, self.key, self.run.job.row.id)

    def over(self, t: float, how: str, receipt: bool) -> Row | None:
        """Return the row that the run leaves; ``how`` is completed, cap, oom or watchdog."""
        self.advance(t)
        deaths: dict[str, Death] = {"cap": "cap", "oom": "room", "watchdog": "watchdog"}
        kept = self.charges[self.uuid]
        kinds = {"ram" if pool == RAM else "vram": one for pool, one in self.charges.items()}
        given = took_what_it_was_given(
            self.window,
            int(self.device.capacity * MIB),
            self.free_before,
            kept.cap if receipt else None,
            knobs=self.knobs,
        )
        return close(
            self.window,
            t,
            "completed" if how == "completed" else "cap_exceeded" if how != "oom" else "oom",
            key=self.key,
            wall=WALL + t,
            charge={kind: one.at_start for kind, one in kinds.items()},
            cap={kind: one.cap for kind, one in kinds.items() if one.cap is not None},
            died_of={} if how == "completed" else {"vram": deaths[how]},
            preallocated=given,
            most=self.most,
            knobs=self._patient,
        )

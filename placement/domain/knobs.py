"""Every figure that can be turned, once: default, unit, help, bounds; overrides are handed in as values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

MIB = 1 << 20
# The most that a figure may be where it does not say: what no machine has, and no date or sum chokes on.
MOST = {
    "MiB": 2.0**30, "GiB": 2.0**20, "s": 31_536_000.0, "h": 876_000.0, "d": 36_500.0, "jobs": 1e6,
    "processes": 4_194_304.0,
}  # fmt: skip


class KnobError(ValueError):
    """An override that no knob can take; the message names each one and what it accepts."""


@dataclass(frozen=True, slots=True)
class Knob:
    """One row of the table. ``low`` and ``high`` are inclusive; ``choices`` replaces them for words."""

    name: str
    default: int | float | str
    unit: str
    help: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def env(self) -> str:
        """Return the name of the environment variable that overrides it."""
        return f"TIDEGATE_{self.name.upper()}"

    def parse(self, value: object) -> int | float | str:
        """Return the value in the knob's own type. Raise ValueError with what it accepts."""
        if self.choices:
            if value not in self.choices:
                raise ValueError(f"must be one of {', '.join(self.choices)}, not {_clip(value)}")
            return str(value)
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError(f"must be a number in {self.unit}, not {_clip(value)}")
        try:
            number = float(value)
        except (ValueError, OverflowError):
            raise ValueError(f"must be a number in {self.unit}, not {_clip(value)}") from None
        whole = isinstance(self.default, int)
        if not math.isfinite(number):
            raise ValueError(f"must be a number in {self.unit}, not {_clip(value)}")
        if whole and not number.is_integer():
            raise ValueError(f"must be a whole number in {self.unit}, not {_clip(value)}")
        low, high = self.low or 0.0, math.inf if self.high is None else self.high
        if not low <= number <= high:
            raise ValueError(f"must be from {low:g} to {high:.10g} {self.unit}, not {_clip(value)}")
        return int(number) if whole else number


def _clip(value: object) -> str:
    """Return a value for a sentence; Python writes no number of more than 4,300 digits."""
    if isinstance(value, int) and abs(value) > 10**40:
        return "a number of more than 40 digits"
    shown = repr(value)
    return shown if len(shown) <= 43 else f"{shown[:42]}…"


def _knob(
    default: int | float | str,
    unit: str,
    help: str,
    low: float | None = 0,
    high: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    most = MOST.get(unit) if high is None else high
    return field(
        default=default,
        metadata={"unit": unit, "help": help, "low": low, "high": most, "choices": choices},
    )


@dataclass(frozen=True, slots=True)
class Knobs:
    """The values in force. Sizes in MiB, times in the unit that the name ends with, shares from 0 to 1."""

    stale_seconds: float = _knob(5.0, "s", "a pool not read for longer admits nothing", 0.5, 3600)
    node_stale_seconds: float = _knob(5.0, "s", "a node that ends no tick for longer takes nothing", 1, 3600)
    node_no_work_seconds: float = _knob(
        15.0, "s", "a node whose start worker left a message lying for longer takes nothing", 1, 3600
    )
    disk_low_mib: int = _knob(1024, "MiB", "less free disk for run directories than this admits nothing")
    process_reserve: int = _knob(64, "processes", "fewer processes left to make than this admits nothing")
    cold_start_share: float = _knob(
        0.40, "of declared", "a first run needs at least this share of a device to be free", 0, 1
    )
    cold_ram_share: float = _knob(0.5, "of what is left", "the most RAM that a first run is charged", 0, 1)
    cold_ram_min_mib: int = _knob(2048, "MiB", "the least RAM a first run is charged (or the share below)")
    cold_ram_min_share: float = _knob(0.10, "of RAM", "the least RAM a first run is charged, as a share", 0, 1)
    floor_vram_mib: int = _knob(256, "MiB", "kept free on a device, or the share below, whichever is smaller")
    floor_vram_share: float = _knob(0.01, "of the device", "kept free on a device, as a share", 0, 1)
    floor_ram_mib: int = _knob(32768, "MiB", "kept free of RAM, or the share below, whichever is smaller")
    floor_ram_share: float = _knob(0.15, "of RAM", "kept free of RAM, as a share", 0, 1)
    ram_high: float = _knob(0.925, "of RAM", "above this use a node admits nothing", 0, 1)
    ram_low: float = _knob(0.85, "of RAM", "below this use a node admits again", 0, 1)
    watch_ram_mib: int = _knob(1024, "MiB", "free RAM under which the watchdog acts (or the share)")
    watch_ram_share: float = _knob(0.02, "of RAM", "free RAM under which the watchdog acts, as a share", 0, 1)
    watch_ram_max_mib: int = _knob(4096, "MiB", "free RAM above which the watchdog never acts")
    watch_over_mib: int = _knob(256, "MiB", "a job this little above its charge is never stopped")
    watch_policy: str = _knob(
        "risk",
        "rule",
        "warn: stop nobody; risk: stop when others are at risk; cap: at the job's cap, too. A node can have its own",
        None,
        None,
        ("warn", "risk", "cap"),
    )
    watch_samples: int = _knob(3, "looks", "a job above its cap for fewer in a row is not stopped for that", 1, 60)
    watch_near_share: float = _knob(0.8, "of the cap", "a job whose RAM is above is looked at more often", 0.1, 1)
    watch_near_seconds: float = _knob(0.25, "s", "between two looks at a job near its cap", 0.1, 1)
    overtaking: str = _knob(
        "easy",
        "rule",
        "easy: pass where no plan is delayed; none: strict order",
        None,
        None,
        ("easy", "none"),
    )
    ageing_hours: float = _knob(24.0, "h", "so many hours of waiting raise a job by one priority", 0.01)
    default_duration_seconds: float = _knob(3600.0, "s", "an unknown run is expected to last", 1)
    plan_quantile: float = _knob(
        0.75, "of runs", "a plan expects a run to take as long as this share of the runs like it", 0.01, 1
    )
    overdue_share: float = _knob(0.2, "of the time run", "what an overdue run still takes", 0, 10)
    quota_jobs: int = _knob(0, "jobs", "a person may run at once, 0: any number; People sets it for one person")
    quota_vram_mib: int = _knob(0, "MiB", "device memory that one person's jobs may hold at once, 0: any")
    quota_ram_mib: int = _knob(0, "MiB", "RAM that one person's jobs may hold at once, 0: any")
    fast_failures: int = _knob(
        3, "runs", "so many fast failures in a row hold the rest of their group, 0: never", 0, 100
    )
    fast_failure_seconds: float = _knob(
        10.0, "s", "a run that fails within this time of its start failed fast", 0, 3600
    )
    cycle_seconds: float = _knob(0.8, "s", "a tick runs a cycle unasked so long after the last", 0.05, 60)
    redispatch_seconds: float = _knob(2.0, "s", "an admitted job without a runner is sent again", 0.2)
    drain_drop_mib: int = _knob(64, "MiB", "memory drains until it falls by less between readings")
    drain_max_seconds: float = _knob(5.0, "s", "the longest wait for memory of an ended job", 0, 60)
    revoke_seconds: float = _knob(
        30.0, "s", "whoever loses a lease while it runs has to leave its device within", 0, 3600
    )
    taken_hours: float = _knob(24.0, "h", "the longest time for which a person may take a device for themselves", 0.1)
    taken_idle_minutes: float = _knob(
        60.0, "min", "a taken device that nothing of its person uses for so long is free again, 0: never", 0, 100_000
    )
    taken_warning_minutes: float = _knob(10.0, "min", "so long before that it is announced", 0, 100_000)
    grace_seconds: float = _knob(10.0, "s", "between asking a job to stop and killing it", 0, 3600)
    log_limit_mib: int = _knob(256, "MiB", "above this a log keeps its head and tail", 1)
    leftovers: str = _knob(
        "sweep",
        "rule",
        "sweep: end what a job leaves; list: only show it",
        None,
        None,
        ("sweep", "list"),
    )
    sweep_seconds: float = _knob(5.0, "s", "between asking what a job leaves to end and killing it", 0, 3600)
    history_share: float = _knob(0.05, "of the figure", "a figure that moves by less is not written", 0, 1)
    history_mib: int = _knob(256, "MiB", "a size that moves by less is not written")
    history_seconds: float = _knob(10.0, "s", "a job's decision is written down at most once in")
    keep_second_hours: float = _knob(2.0, "h", "readings of each second are kept")
    keep_ten_days: float = _knob(2.0, "d", "readings of each ten seconds are kept")
    keep_minutes_days: float = _knob(30.0, "d", "readings of each five minutes are kept")
    keep_history_days: float = _knob(90.0, "d", "decisions and leases are kept after the end of their job")
    keep_forecast_days: float = _knob(30.0, "d", "forecasts are kept with what became of them, for their accuracy", 1)
    keep_audit_days: float = _knob(730.0, "d", "entries of the audit are kept", 1)
    keep_notice_days: float = _knob(30.0, "d", "notices to people are kept", 1)
    keep_run_days: float = _knob(30.0, "d", "run directories are kept")
    keep_run_gib: float = _knob(20.0, "GiB", "run directories are kept up to")

    @classmethod
    def with_overrides(cls, overrides: Mapping[str, object]) -> Knobs:
        """Return the defaults with these values in place. Raise KnobError naming every one that is wrong."""
        values: dict[str, Any] = {}
        wrong: list[str] = []
        for name, value in overrides.items():
            if name not in BY_NAME:
                wrong.append(f"There is no knob {name!r}.")
                continue
            try:
                values[name] = BY_NAME[name].parse(value)
            except ValueError as error:
                wrong.append(f"{name} {error}.")
        if wrong:
            raise KnobError(" ".join(wrong))
        knobs = cls(**values)
        if knobs.ram_low >= knobs.ram_high:
            raise KnobError(f"ram_low ({knobs.ram_low}) must be below ram_high ({knobs.ram_high}).")
        return knobs


_DEFAULTS = Knobs()
TABLE: tuple[Knob, ...] = tuple(
    Knob(name=f.name, default=getattr(_DEFAULTS, f.name), **f.metadata) for f in fields(Knobs)
)
BY_NAME: Mapping[str, Knob] = {knob.name: knob for knob in TABLE}

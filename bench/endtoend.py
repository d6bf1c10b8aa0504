"""The real service against the replay: the same trace, so many times as fast, with a kill -9 of all of it half-way.

    python -m bench.endtoend [--trace synthetic-carma:3] [--speed 60] [--kill-at 0.5] [--jobs 60]
        [--broker redis|files] [--devices 4] [--cap 40960] [--only-kill] [--apart 1] [--json]

The service is started on an empty database with simulated devices; a person per script submits through the API when
the trace says so; jobs are processes that hold simulated memory as their rows say. Times of jobs' lives (the rows',
and knobs like settle_seconds) are divided by the speed, those of the machine stay: it is looked at once a second. The
replay gets the same rows and knobs at the same speed, twice: as it is (the gate answers at the next whole second, a
granted job is there at once), and with the two medians that the service showed: from an event to the grant that it
allowed, and from a grant to the job's first line. The second is what the service is judged by: the middle of 16 plays
that differ in when within a second the devices are looked at, which is chance on the service's side, too. A job that
died of memory comes back at the end of the queue on both sides.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Sequence

from bench.follow.figures import Course, apart, ratio, table
from bench.follow.live import Killed, follow
from bench.follow.played import faster, phases, play
from bench.world.setting import load
from calibration.domain.knobs import Knobs as InstrumentKnobs
from placement.domain.knobs import Knobs

NEAR = 0.05  # of the replay's figure
LIVES = (
    "settle_seconds",
    "unproven_settle_seconds",
    "default_duration_seconds",
    "fast_failure_seconds",
    "ageing_hours",
)
"""Knobs that are times of jobs' lives: they are divided by the speed."""
ROOM = {"floor_ram_mib": 64, "watch_ram_mib": 32, "watch_ram_share": 0.001, "ram_high": 0.99, "ram_low": 0.98}
"""Main memory is no subject here, on a machine that others use."""


def arguments() -> argparse.ArgumentParser:
    """Return the parser."""
    parser = argparse.ArgumentParser(prog="python -m bench.endtoend", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trace", default="synthetic-carma:3", help="as bench.replay takes it")
    parser.add_argument("--speed", type=float, default=60.0)
    parser.add_argument("--jobs", type=int, default=0, help="the first so many rows, 0 for all")
    parser.add_argument("--devices", type=int, default=4)
    parser.add_argument("--cap", type=float, default=40960.0, metavar="MIB", help="memory of a device")
    parser.add_argument("--broker", choices=["redis", "files"], default="redis")
    parser.add_argument("--kill-at", type=float, metavar="SHARE", help="of the replay's makespan")
    parser.add_argument("--only-kill", action="store_true", help="leave out the run without a kill")
    parser.add_argument("--only-replay", action="store_true", help="leave out the service")
    parser.add_argument("--apart", type=float, metavar="SECONDS", help="list the rows that differ by more than this")
    parser.add_argument("--json", action="store_true")
    return parser


def turned(speed: float) -> dict[str, float]:
    """Return the knobs at a speed."""
    usual = {**dataclasses.asdict(InstrumentKnobs.defaults()), **dataclasses.asdict(Knobs())}
    return {**ROOM, **{name: round(usual[name] / speed, 4) for name in LIVES}}


def judged(course: Course, replay: Course) -> list[tuple[str, float | None, bool]]:
    """Return makespan and mean JCT as multiples of the replay's, and whether they are near it."""
    found = []
    for name in ("makespan s", "mean JCT s"):
        times = ratio(course.figures()[name], replay.figures()[name])
        found.append((name, times, times is not None and abs(times - 1) <= NEAR))
    return found


def between(courses: Sequence[Course]) -> str:
    """Return between what the figures of several courses lie."""
    told = []
    for name in ("makespan s", "mean JCT s", "longest wait s", "starts out of order", "cap kills"):
        values = [course.figures()[name] for course in courses]
        told.append(f"{name} {min(values):.1f} to {max(values):.1f}")
    return "; ".join(told)


def told_of_kill(course: Course, killed: Killed, calm: Course) -> list[str]:
    """Return what the kill met and cost."""
    cost = ratio(course.figures()["makespan s"], calm.figures()["makespan s"])
    return [
        f"kill -9 at {killed.at:.1f} s with {killed.running} jobs running and {len(killed.before)} waiting; "
        f"back after {killed.back - killed.at:.1f} s; makespan {cost or 0:.3f} x that of {calm.name}",
        f"lost {course.lost or 'none'}; ran twice {list(course.twice) or 'none'}; "
        f"places in the queue that changed: {killed.swapped()}",
    ]


def main() -> int:
    """Print one table; return 1 when a goal is missed."""
    options = arguments().parse_args()
    rows = faster(load(options.trace, options.cap), options.speed)
    rows = rows[: options.jobs] if options.jobs else rows
    knobs = turned(options.speed)
    plain = play(rows, options.devices, options.cap, knobs, name="replay as it is")
    if options.only_replay:
        print(table([plain], plain))
        return 0
    calm, killed, course = None, None, None
    if not options.only_kill:
        calm, _ = follow(rows, options.devices, options.cap, knobs, broker=options.broker)
    if options.kill_at is not None:
        at = options.kill_at * plain.figures()["makespan s"]
        course, killed = follow(
            rows, options.devices, options.cap, knobs, broker=options.broker, kill_at=at, name="killed half-way"
        )
    real = calm or course
    if real is None:
        raise SystemExit("There is nothing to do: --only-kill needs --kill-at.")
    chances = phases(
        rows, options.devices, options.cap, knobs, start=real.start, reaction=real.reaction, name="replay, late"
    )
    replay = chances[len(chances) // 2]
    courses = [one for one in (plain, replay, calm, course) if one is not None]
    print(f"{options.trace}: {len(rows)} jobs on {options.devices} x {options.cap:g} MiB at {options.speed:g} x,")
    print(f"broker {options.broker}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; knobs {knobs}")
    print(f"medians: event to grant {real.reaction * 1000:.0f} ms, grant to first line {real.start * 1000:.0f} ms")
    recorded, begun = (seconds * 1000 for seconds in real.tardy)
    print(
        f"p95: from a row's arrival to a job on record {recorded:.0f} ms, from a grant to the first line {begun:.0f} ms"
    )
    print(table(courses, replay))
    print(f"the late replay at {len(chances)} phases of the looks: {between(chances)}")
    if options.apart is not None:
        print("\n".join(apart(replay, real, options.apart)))
    missed = []
    if calm is not None:
        for name, times, near in judged(calm, replay):
            print(f"{'met' if near else 'MISSED'}: {name} {times or 0:.3f} x the replay's, within {NEAR:.0%}")
            missed += [] if near else [name]
        if calm.lost or calm.twice:
            print(f"MISSED: lost {calm.lost}, ran twice {list(calm.twice)} without a kill")
            missed.append("lost")
    if course is not None and killed is not None:
        print("\n".join(told_of_kill(course, killed, calm or replay)))
        if course.lost or course.twice or killed.swapped():
            missed.append("kill")
        print("MISSED: 0 lost, 0 twice, no place changed" if "kill" in missed else "met: 0 lost, 0 twice, order stands")
    if options.json:
        print(json.dumps([dataclasses.asdict(one) for one in courses]))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

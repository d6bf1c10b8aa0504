"""One service in one process, new or with a long past, that measures what it is asked to: see bench.growth.

Each line on stdin names what to do, each line on stdout is its answer as JSON.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence
from html import unescape
from pathlib import Path
from typing import Any

import django
from django.conf import settings

RUNNING, QUEUED = 4, 20
FIRST = 3000  # seconds that the first job sleeps; each sleeps another second longer, which makes it a key of its own
GIB = 1 << 30


class Side:
    """A node with four devices, each of them full, and jobs that wait for one."""

    def __init__(self, jobs: int, days: float, keys: int, script: Path) -> None:
        from django.core.management import call_command
        from django.test import Client

        from placement.models import Role
        from placement.services import cycle_row
        from tests.integration.rows import a_user

        call_command("migrate", interactive=False, verbosity=0)
        cycle_row.ensure()
        self.script = script
        self.user = a_user("ada", Role.ADMIN)
        self.began = time.monotonic()
        self._past(jobs, days, keys, [self.user.pk, *(a_user(f"user{n}").pk for n in range(19))])
        self.filled = time.monotonic() - self.began
        self.client = Client()
        self.client.force_login(self.user)
        self.middle = max(1, jobs // 2)
        self._begin()

    def _draft(self, number: int) -> Any:
        from placement.domain.submitting.submission import Submission

        return Submission(
            name=f"queued-{number}", command=f"python3 {self.script} {FIRST + number}", cwd="/tmp", gpu="one",
            declared_ram=32 << 20, declared_vram=20 * GIB,
        )  # fmt: skip

    def _past(self, jobs: int, days: float, keys: int, users: list[int]) -> None:
        from bench import history
        from calibration.probes.choose import Instrument
        from placement.models import Device
        from placement.services import drafting, nodes
        from tests.integration.rows import a_decision, an_estimate

        instrument = Instrument(settings.NODE, simulate=settings.SIMULATE, simulated_dir=settings.SIMULATED_DIR)
        nodes.discover(settings.NODE, instrument.read())
        pools = ("ram", *Device.objects.order_by("index").values_list("uuid", flat=True)[:3])
        draft = drafting.draft(self.user, self._draft(0))
        past = history.Past(
            jobs, max(jobs, 200 * (RUNNING + QUEUED)), days, keys, settings.NODE, tuple(pools), jobs // 10
        )
        history.write(past, draft, str(FIRST), users, a_decision(), an_estimate(20 * GIB))

    def _begin(self) -> None:
        from placement import loop
        from placement.models import Job
        from placement.services import jobs, starting
        from tests.wait import until

        self.loop = loop
        for number in range(RUNNING + QUEUED):
            jobs.submit(self.user, self._draft(number))

        def send(node: str, starts: Sequence[tuple[int, int]]) -> bool:
            starting.start_all(starts)
            return True

        def running() -> bool:
            loop.tick(send, asked_by_end=True)
            return Job.objects.filter(state="running").count() == RUNNING

        until(running, 60, f"{RUNNING} running jobs", 0.2)

    def calls(self) -> dict[str, Callable[[], float]]:
        """Return what can be measured; each returns its milliseconds."""
        return {
            "queue page": lambda: self._get("/"),
            "job list": lambda: self._get("/jobs/"),
            "job list, deep inside": lambda: self._get(f"/jobs/?before={self.middle + 51}"),
            "job list, one outcome": lambda: self._get("/jobs/?outcome=failed"),
            "job list, own and one outcome": lambda: self._get("/jobs/?whose=mine&outcome=failed"),
            "job list, a name": lambda: self._get("/jobs/?q=run-1"),
            "job page": lambda: self._get(f"/jobs/{self.middle}"),
            "devices page": lambda: self._get("/devices"),
            "chart of 10 minutes": lambda: self._get(f"/devices/{settings.NODE}/ram/series?span=10m"),
            "audit": lambda: self._get("/audit"),
            "submit, form": self._form,
            "submit, API": self._api,
            "tick": self._tick,
            "tick after an end": self._tick_after_an_end,
        }

    def _get(self, path: str) -> float:
        self._commit()
        return self._timed(lambda: self.client.get(path), 200)

    def _form(self) -> float:
        page = self.client.get("/submit").content.decode()
        form = {}
        for tag in re.findall(r"<input[^>]*>", page):
            name, value = re.search(r'name="([^"]*)"', tag), re.search(r'value="([^"]*)"', tag)
            if name and ('type="radio"' not in tag or "checked" in tag):
                form[name[1]] = unescape(value[1]) if value else ""
        form |= {"command": f"python3 {self.script} {FIRST}", "cwd": "/tmp", "gpu": "one", "declared_vram": "20 GiB"}
        return self._forgotten(lambda: self._timed(lambda: self.client.post("/submit", form), 302))

    def _api(self) -> float:
        body = {"command": f"python3 {self.script} {FIRST}", "cwd": "/tmp", "gpu": "one", "declared_vram": 20 * GIB}
        post = lambda: self.client.post("/api/v1/jobs", json.dumps(body), "application/json")  # noqa: E731
        return self._forgotten(lambda: self._timed(post, 201))

    def _tick(self) -> float:
        began = time.perf_counter()
        assert self.loop.tick(lambda *_: True, asked_by_end=True)
        return (time.perf_counter() - began) * 1000

    def _tick_after_an_end(self) -> float:
        from calibration import services as instrument

        instrument.raise_version()  # as each end does: estimates are made anew from what past runs taught
        return self._tick()

    def _timed(self, call: Callable[[], Any], status: int) -> float:
        began = time.perf_counter()
        answer = call()
        took = (time.perf_counter() - began) * 1000
        if answer.status_code != status:
            raise AssertionError(f"{answer.status_code}: {answer.content[:300]!r}")
        return took

    def _forgotten(self, submit: Callable[[], float]) -> float:
        """Measure a submission and take its job away again, so that the queue stays what it was."""
        from placement.models import Job

        before = Job.objects.order_by("-pk").values_list("pk", flat=True)[0]
        took = submit()
        assert Job.objects.filter(pk__gt=before).delete()[0] == 1
        return took

    def _commit(self) -> None:
        """Commit something, so that no page may answer with what it kept."""
        from django.db.models import F

        from placement.models import Cycle

        Cycle.objects.update(wanted=F("wanted") + 1)

    def end(self) -> None:
        """Kill the jobs that run."""
        from placement.runner.members import kill_members, members
        from placement.runner.record import read_started

        for run_dir in settings.RUNS.glob("*-*"):
            started = read_started(run_dir)
            if started is not None:
                kill_members(members(started), signal.SIGKILL)


def main() -> None:
    """Fill, then answer until stdin ends."""
    jobs, days, keys, script = sys.argv[1:]
    django.setup()
    from bench import history

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else prints must not spoil an answer

    def say(what: Any) -> None:
        print(json.dumps(what), file=answers, flush=True)

    side = Side(int(jobs), float(days), int(keys), Path(script))
    try:
        calls = side.calls()
        say({"filled": side.filled, "sizes": history.sizes(), "calls": list(calls)})
        for line in sys.stdin:
            say(calls[line.strip()]())
    finally:
        side.end()


if __name__ == "__main__":
    main()

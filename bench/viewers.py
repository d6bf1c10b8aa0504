"""What open pages cost: so many viewers who look once a second, a long queue, and a long past.

    python -m bench.viewers [--viewers 50 200] [--seconds 20] [--waiting 1000] [--finished 10000] [--json]

A service of its own gets jobs that run, and the rest as copies of rows in its database: submitting 11,000 jobs would
measure the gate. Each viewer holds one connection, asks once a second for what changed, as an open page does, and
begins at a moment of its own; some of them are people who own what is shown. Latency counts from the moment at which
the look was due, so a late answer makes the next look late, too. CPU is what the web server's processes took, in
percent of one core. Weight is what comes over the wire, packed: of the first load with all that the page links, then
per minute and viewer.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import threading
import time
from pathlib import Path
from typing import Any

from bench.latency import quantile
from bench.pages import Ask
from tests.person import Person, sign_in
from tests.service import LiveService, live_service

PEOPLE = ("ann", "ben", "cho", "dan")
COPIES = """
import itertools
from django.contrib.auth.models import User
from django.utils import timezone
from placement.models import Job, Member
users = [User.objects.create_user(name) for name in {people!r}]
for user in users:
    Member.objects.create(user=user, role="submitter")
owners = itertools.cycle([*users, User.objects.get(username="admin")])
wait, over = (Job.objects.filter(state=state).order_by("id").last() for state in ("queued", "finished"))
def copies(row, count, **more):
    fields = [f for f in Job._meta.concrete_fields if f.attname not in ("id", "form_key", "user_id")]
    same = {{f.attname: getattr(row, f.attname) for f in fields}}
    return (Job(**{{**same, **more, "user": next(owners), "name": f"{{row.name}} {{n}}"}}) for n in range(count))
Job.objects.bulk_create(copies(over, {finished}, ended_at=timezone.now()), batch_size=500)
Job.objects.bulk_create(copies(wait, {waiting}), batch_size=500)
"""


class Viewer(threading.Thread):
    """One open page: a look a second from a moment of its own."""

    def __init__(self, address: str, cookie: str, ends: float) -> None:
        super().__init__(daemon=True)
        self.ask = Ask(address, cookie, poll=True)
        self.ends = ends
        self.late: list[float] = []  # ms from when a look was due to its whole answer
        self.empty = 0
        self.bytes = 0
        self.wrong: list[bytes] = []

    def run(self) -> None:
        """Look until the end; what comes before the first second is no open page yet."""
        due = time.perf_counter() + random.random()
        while due < self.ends:
            time.sleep(max(0.0, due - time.perf_counter()))
            try:
                head, body = self.ask.once()
            except OSError as error:
                self.wrong.append(str(error).encode())
                return
            status = head.split(b" ", 2)[1]
            if status not in (b"200", b"204"):
                self.wrong.append(head[:200])
                return
            self.late.append((time.perf_counter() - due) * 1000)
            self.empty += status == b"204"
            self.bytes += len(head) + 4 + len(body)
            due = max(due + 1, time.perf_counter())


def fill(service: LiveService, person: Person, options: argparse.Namespace) -> None:
    """Make jobs run, and rows wait and be over."""
    person.wait_for(person.submit("true", gpu="none", declared_ram="16 MiB"), "finished")
    large = [person.submit(f"sleep 3600 # large {n}", gpu="one", declared_vram="20 GiB") for n in range(2)]
    small = [person.submit(f"sleep 3600 # {n}", gpu="none", declared_ram="16 MiB") for n in range(options.running - 2)]
    for job in (*large, *small):
        person.wait_for(job, "running", 120)
    person.submit("sleep 1 # waits", gpu="one", declared_vram="20 GiB", declared_ram="16 MiB")
    code = COPIES.format(people=PEOPLE, waiting=options.waiting - 1, finished=options.finished)
    service.manage("shell", "-c", code)
    time.sleep(5)  # the gate says of each why it waits


def cpu(service: LiveService) -> float:
    """Return the seconds of CPU that the web server and its workers have taken."""
    web = int(service.up()["children"]["web"]["pid"])
    pids = [web, *(int(p) for p in Path(f"/proc/{web}/task/{web}/children").read_text().split())]
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def weight(address: str, cookie: str) -> dict[str, int]:
    """Return the packed bytes of the page, and of all that it links."""
    page = Ask(address + "/", cookie)
    _, body = page.once()
    text = gzip.decompress(body).decode() if body[:2] == b"\x1f\x8b" else body.decode()
    links = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', text))
    parts = {link: len(Ask(address + link, cookie).once()[1]) for link in links}
    return {"page": len(body), "plain": len(text.encode()), "links": sum(parts.values()), "files": len(parts)}


def watched(service: LiveService, cookies: list[str], count: int, seconds: float) -> dict[str, Any]:
    """Return what so many viewers saw in so many seconds, and what they cost."""
    ends = time.perf_counter() + seconds
    viewers = [Viewer(service.address + "/fragments/queue", cookies[n % len(cookies)], ends) for n in range(count)]
    before, began = cpu(service), time.perf_counter()
    for viewer in viewers:
        viewer.start()
    for viewer in viewers:
        viewer.join()
    took = time.perf_counter() - began
    spent = cpu(service) - before
    if wrong := [head for viewer in viewers for head in viewer.wrong]:
        raise SystemExit(f"{len(wrong)} viewers were answered {wrong[0]!r}")
    times = [one for viewer in viewers for one in viewer.late]
    looks = len(times)
    return {
        "viewers": count,
        "looks": looks,
        "p50": quantile(times, 0.5),
        "p95": quantile(times, 0.95),
        "p99": quantile(times, 0.99),
        "empty": sum(viewer.empty for viewer in viewers) / looks,
        "cpu": 100 * spent / took,
        "minute": 60 * sum(viewer.bytes for viewer in viewers) / took / count,
    }


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Return figures by number of viewers, and the weight of the first load."""
    with live_service(broker=options.broker, simulate="2x24GiB") as service:
        admin = sign_in(service)
        fill(service, admin, options)
        people = [admin, *(sign_in(service, name) for name in PEOPLE)]
        cookies = ["; ".join(f"{c.name}={c.value}" for c in person.cookies) for person in people]
        return {
            "weight": weight(service.address, cookies[0]),
            "watched": [watched(service, cookies, count, options.seconds) for count in options.viewers],
            "load": os.getloadavg()[0],
        }


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--viewers", type=int, nargs="+", default=[50, 200])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--waiting", type=int, default=1000)
    parser.add_argument("--finished", type=int, default=10_000)
    parser.add_argument("--running", type=int, default=20)
    parser.add_argument("--broker", choices=["redis", "files"], default="redis")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = run(options)
    if options.json:
        print(json.dumps(found))
        return
    heavy = {name: size if name == "files" else size / 1024 for name, size in found["weight"].items()}
    print(
        f"first load {heavy['page'] + heavy['links']:.1f} KiB: page {heavy['page']:.1f} (plain {heavy['plain']:.0f}), "
        f"{heavy['files']} files {heavy['links']:.1f}; load {found['load']:.1f}"
    )
    names = ("viewers", "looks/s", "p50 ms", "p95 ms", "p99 ms", "CPU %", "204 %", "KiB/min")
    print(" ".join(f"{name:>8}" for name in names))
    for row in found["watched"]:
        rate, minute, empty = row["looks"] / options.seconds, row["minute"] / 1024, 100 * row["empty"]
        figures = (row["viewers"], rate, row["p50"], row["p95"], row["p99"], row["cpu"], empty, minute)
        print(" ".join(f"{figure:8.1f}" for figure in figures))


if __name__ == "__main__":
    main()

"""What the queue's JSON and page cost beside the least a view of Django could do, and whether the tick suffers.

    python -m bench.pages [--seconds 6] [--rounds 3] [--connections 8] [--running 20] [--waiting 80] [--json]

A service of its own is filled with jobs that run, wait and have finished; a reference (bench.plain) reads the same
database under gunicorn with the same options. Each address is asked in turn for some seconds over kept connections
by a client of its own process (which takes packed answers, as browsers do), as many rounds as asked; figures are
medians over the rounds. "poll" is the fragment asked for with the version that was answered last, as an open page
does: mostly 204. Lateness of the tick: how much more than a second passed between two looks at the machine, over all
of the time.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import socket
import sqlite3
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.floor import ROOT
from bench.latency import quantile
from tests.person import Person, sign_in
from tests.service import LiveService, live_service
from tests.wait import until

GOALS = {"json": ("plain json", 0.6), "page": ("plain page", 0.8), "fragment": ("plain page", 0.8)}


def fill(person: Person, running: int, waiting: int, finished: int) -> None:
    """Submit jobs of each kind and wait until they are what they are to be."""
    for number in range(finished):
        done = person.submit(f"true # {number}", gpu="none", declared_ram="16 MiB")
    person.wait_for(done, "finished", 120)
    small = [
        person.submit(f"sleep 3600 # {number}", gpu="none", declared_ram="16 MiB") for number in range(running - 2)
    ]
    large = [person.submit(f"sleep 3600 # large {n}", gpu="one", declared_vram="20 GiB") for n in range(2)]
    for job in (*small, *large):
        person.wait_for(job, "running", 120)
    for number in range(waiting):
        person.submit(f"sleep 1 # waits {number}", gpu="one", declared_vram="20 GiB", declared_ram="16 MiB")
    seen = person.call("/api/v1/queue")
    assert (len(seen["running"]), len(seen["queued"])) == (running, waiting), seen


@contextmanager
def reference(data: Path) -> Iterator[str]:
    """Serve bench.plain as the product is served, and yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number, port = listener.fileno(), listener.getsockname()[1]
        arguments = ("--bind", f"fd://{number}", "-k", "gthread", "-w", "1", "--threads", "8", "--log-level", "error")
        process = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", "bench.plain:application", *arguments],
            env={**os.environ, "PLAIN_DATABASE": str(data / "tidegate.sqlite3")},
            cwd=ROOT,
            pass_fds=(number,),
        )
    try:
        address = f"http://127.0.0.1:{port}"
        until(lambda: _answers(address), 20, "the reference to answer", 0.1)
        yield address
    finally:
        process.terminate()
        process.wait(20)


def _answers(address: str) -> bool:
    try:
        return b" 200 " in Ask(address + "/json", "").once()[0]
    except OSError:
        return False


class Ask:
    """One kept connection that asks one address again and again; cheap, so that it is the server that is measured."""

    def __init__(self, address: str, cookie: str, *, poll: bool = False) -> None:
        url = urlsplit(address)
        self.where = (url.hostname or "", url.port or 80)
        self.path, self.cookie, self.poll = url.path, cookie, poll
        self.version = ""
        self.socket = socket.create_connection(self.where, timeout=20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def once(self) -> tuple[bytes, bytes]:
        """Return the head and the body of one answer."""
        path = f"{self.path}?v={self.version}" if self.poll else self.path
        cookie = f"Cookie: {self.cookie}\r\n" if self.cookie else ""
        htmx = "HX-Request: true\r\n" if "/fragments/" in self.path else ""
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {self.where[0]}\r\nAccept-Encoding: gzip\r\n{cookie}{htmx}\r\n".encode()
        )
        raw = b""
        while b"\r\n\r\n" not in raw:
            raw += self._more()
        head, _, body = raw.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        parts = [body]
        left = (int(length[1]) if length else 0) - len(body)
        while left > 0:
            parts.append(self._more())
            left -= len(parts[-1])
        body = b"".join(parts)
        plain = gzip.decompress(body) if self.poll and body[:2] == b"\x1f\x8b" else body
        if self.poll and (found := re.search(rb'hx-get="[^"]*[?;&]v=([^"&]+)"', plain)):
            self.version = found[1].decode()
        return head, body

    def _more(self) -> bytes:
        got = self.socket.recv(1 << 18)
        if not got:
            raise OSError("the server closed the connection")
        return got


def load(address: str, cookie: str, connections: int, seconds: float, poll: bool) -> dict[str, Any]:
    """Return rate and latencies (ms) of one address under so many connections."""
    times: list[float] = []
    wrong: list[bytes] = []
    ends = time.perf_counter() + seconds

    def one() -> None:
        ask = Ask(address, cookie, poll=poll)
        while (began := time.perf_counter()) < ends:
            head, _ = ask.once()
            times.append((time.perf_counter() - began) * 1000)
            if b" 200 " not in head[:20] and b" 204 " not in head[:20]:
                wrong.append(head)
                return

    threads = [threading.Thread(target=one) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong or not times:
        raise SystemExit(f"{address} answered {wrong[:1]!r:.200}")
    _, body = Ask(address, cookie).once()
    return {"rate": len(times) / seconds, "p50": quantile(times, 0.5), "p99": quantile(times, 0.99), "size": len(body)}


class Ticks(threading.Thread):
    """Watches when a look at the machine is stored."""

    def __init__(self, data: Path) -> None:
        super().__init__(daemon=True)
        self.data, self.over = data, threading.Event()
        self.seen: list[float] = []

    def run(self) -> None:
        """Note each new time until told to stop."""
        uri = f"file:{self.data}/tidegate.sqlite3?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=10)) as base:
            while not self.over.wait(0.05):
                at = base.execute("SELECT max(tick_clock) FROM placement_node").fetchone()[0]
                if at and (not self.seen or at != self.seen[-1]):
                    self.seen.append(at)

    def lateness(self) -> list[float]:
        """Return by how many ms each look came more than a second after the one before."""
        pairs = zip(self.seen, self.seen[1:], strict=False)
        return [max(0.0, (b - a - 1) * 1000) for a, b in pairs]


def asked(address: str, cookie: str, connections: int, seconds: float, *, poll: bool) -> dict[str, Any]:
    """Return the figures of one address, asked by a process of its own."""
    words = [address, cookie, str(connections), str(seconds), str(int(poll))]
    done = subprocess.run(
        [sys.executable, "-m", "bench.pages", "--ask", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    return dict(json.loads(done.stdout))


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Return median figures by address, the ratios, and the tick's lateness."""
    with live_service(broker=options.broker, simulate="2x24GiB") as service:
        person = sign_in(service)
        fill(person, options.running, options.waiting, options.finished)
        cookie = "; ".join(f"{c.name}={c.value}" for c in person.cookies)
        with reference(service.data) as plain:
            return _measured(options, service, plain, cookie)


def _measured(options: argparse.Namespace, service: LiveService, plain: str, cookie: str) -> dict[str, Any]:
    ours = service.address
    addresses = {
        "plain json": (plain + "/json", "", False),
        "json": (ours + "/api/v1/queue", cookie, False),
        "plain page": (plain + "/page", "", False),
        "page": (ours + "/", cookie, False),
        "fragment": (ours + "/fragments/queue", cookie, False),
        "poll": (ours + "/fragments/queue", cookie, True),
    }
    ticks = Ticks(service.data)
    ticks.start()
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in addresses}
    for number in range(-1, options.rounds):  # the first round warms up
        for name, (address, cookies, poll) in addresses.items():
            seconds = options.seconds if number >= 0 else 0.5
            seen = asked(address, cookies, options.connections, seconds, poll=poll)
            if number >= 0:
                rounds[name].append(seen)
    ticks.over.set()
    ticks.join()
    figures = {
        name: {key: statistics.median(row[key] for row in seen) for key in seen[0]} for name, seen in rounds.items()
    }
    late = ticks.lateness()
    return {
        "figures": figures,
        "ratios": {name: figures[name]["rate"] / figures[base]["rate"] for name, (base, _) in GOALS.items()},
        "late": {
            "p50": quantile(late, 0.5),
            "p95": quantile(late, 0.95),
            "p99": quantile(late, 0.99),
            "ticks": len(late),
        },
        "load": os.getloadavg()[0],
    }


def main() -> None:
    """Print one table; with --ask only load one address and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--running", type=int, default=20)
    parser.add_argument("--waiting", type=int, default=80)
    parser.add_argument("--finished", type=int, default=30)
    parser.add_argument("--broker", choices=["redis", "files"], default="redis")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--ask", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ask:
        address, cookie, connections, seconds, poll = options.ask
        print(json.dumps(load(address, cookie, int(connections), float(seconds), poll == "1")))
        return
    found = run(options)
    if options.json:
        print(json.dumps(found))
        return
    print(f"{options.connections} connections, load {found['load']:.1f} on {os.cpu_count()} cores")
    print(f"{'':12} {'req/s':>8} {'p50 ms':>8} {'p99 ms':>8} {'KiB':>8}")
    for name, row in found["figures"].items():
        print(f"{name:12} {row['rate']:8.0f} {row['p50']:8.1f} {row['p99']:8.1f} {row['size'] / 1024:8.1f}")
    for name, ratio in found["ratios"].items():
        base, goal = GOALS[name]
        print(f"{name} is {ratio:.2f} x {base} (goal {goal})")
    late = found["late"]
    shown = ", ".join(f"{late[name]:.0f} ({name})" for name in ("p50", "p95", "p99"))
    print(f"a tick was late by {shown} ms, of {late['ticks']}")


if __name__ == "__main__":
    main()

"""A service as `import tidegate` sees it, in a thread of the test: grants, makes wait, revokes as the test says."""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tidegate import leases, waiting

CLIENT = Path(__file__).resolve().parent.parent / "placement" / "client"

Row = dict[str, Any]
WAITS: Row = {"state": "waiting", "reasons": ["gpu0 has 2.0 GB left; job 7 holds 6.0 GB."]}


class Fake:
    """Rows by key, and what was said. ``decide`` returns the answer for a row, each time that it is looked at."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.said: list[tuple[str, str, Row]] = []
        self.decide: Callable[[Row], Row] = self.grant
        self.notices: list[Row] = []
        self.fails: list[int] = []  # statuses of the next answers
        self.lock = threading.Lock()
        self.url = ""

    def clear(self) -> None:
        """Forget everything, so that the next test begins with a service that grants at once."""
        with self.lock:
            self.rows.clear()
            self.said.clear()
            self.decide, self.notices, self.fails = self.grant, [], []

    def grant(self, row: Row) -> Row:
        """Grant on as many devices as are wanted at least, each its even share."""
        ask, count = row["ask"], row["ask"]["min_devices"]
        each, more = divmod(ask["group_bytes"], count)
        sizes = [each + (n < more) + ask["per_device_bytes"] for n in range(count)]
        first = ask["device_id"] or 0
        members = [
            {"uuid": f"GPU-{first + n}", "device_id": first + n, "node": "here", "bytes": size}
            | {"kind": ask["kind"], "backend": ask["backend"]}
            for n, size in enumerate(sizes)
        ]
        lease = {"id": 100 + row["id"], "group_bytes": ask["group_bytes"], "members": members}
        return {"state": "granted", "lease": lease | {"per_device_bytes": ask["per_device_bytes"]}}

    def answer(self, method: str, path: str, body: Row, token: str) -> tuple[int, Row]:
        with self.lock:
            self.said.append((method, path, body))
            if self.fails:
                return self.fails.pop(0), {"sentence": "Not now."}
            if token != "Bearer tg_job":
                return 401, {"detail": "The token is unknown."}
            match path.split("/"):
                case ["requests"]:
                    row = self.rows.setdefault(body["key"], body | {"id": len(self.rows) + 1, "looks": 0})
                    return 200, self.look(row)
                case ["requests", "withdraw"]:
                    row = self.rows.get(body["key"], {})
                    if not row:
                        return 404, {"sentence": "There is no such request."}
                    granted = row.get("last", {}).get("state") == "granted"
                    return 200, row["last"] if granted else {"id": row["id"], "state": "withdrawn"}
                case ["requests", number]:
                    return 200, self.look(next(r for r in self.rows.values() if r["id"] == int(number)))
                case ["notices"]:
                    return 200, {"notices": self.notices}
            return 200, {}

    def look(self, row: Row) -> Row:
        row["looks"] += 1
        row["last"] = {"id": row["id"], "notices": self.notices} | self.decide(row)
        return row["last"]

    def paths(self, ending: str) -> list[Row]:
        """Return the bodies of the calls whose address ends so."""
        with self.lock:
            return [body | {"path": path} for _, path, body in self.said if path.endswith(ending)]

    def asks(self) -> list[Row]:
        """Return the bodies of the requests that were posted, a repeated one once."""
        return list(self.rows.values())


def _start() -> tuple[Fake, ThreadingHTTPServer]:
    fake = Fake()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def do_GET(self) -> None:
            self._answer("GET", {})

        def do_POST(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            self._answer("POST", json.loads(self.rfile.read(size) or b"{}"))

        def _answer(self, method: str, body: Row) -> None:
            path = self.path.removeprefix("/api/v1/inside/")
            status, told = fake.answer(method, path, body, self.headers.get("Authorization", ""))
            text = json.dumps(told).encode()
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "http://127.0.0.1:9/elsewhere")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    fake.url = f"http://127.0.0.1:{server.server_address[1]}"
    return fake, server


@contextlib.contextmanager
def service() -> Iterator[Fake]:
    """Yield a fake that answers at its ``url``."""
    fake, server = _start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()


def environment(fake: Fake, devices: int = 2) -> dict[str, str]:
    """Return what the runner gives a job that may be granted any of so many devices."""
    return {
        "TIDEGATE_URL": fake.url,
        "TIDEGATE_TOKEN": "tg_job",
        "TIDEGATE_JOB_ID": "7",
        "TIDEGATE_DEVICE_UUIDS": ",".join(f"GPU-{n}" for n in range(devices)),
        "TIDEGATE_DEVICE_INDICES": ",".join(str(n) for n in range(devices)),
        "CUDA_VISIBLE_DEVICES": ",".join(str(n) for n in range(devices)),
    }


class _Mark:
    """Stands in for a service: sets an event when its letter's turn has come."""

    def __init__(self) -> None:
        self.seen = threading.Event()

    def post(self, *_: object) -> Row:
        self.seen.set()
        return {}


@functools.cache
def _running() -> Fake:
    """Return one for this process, to its end: what is given back late would keep asking for one that is gone."""
    return _start()[0]


def in_a_job(monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Make this process a job of a fake's, with nothing left of the test before: all it held is given back."""
    fake = _running()
    gc.collect()
    mark = _Mark()
    leases.ready()
    leases.send(mark, "", {}, os.getpid())  # type: ignore[arg-type]
    assert mark.seen.wait(30)
    fake.clear()
    for name, value in environment(fake).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(waiting, "SHORTEST", 0.005)
    monkeypatch.setattr(waiting, "LONGEST", 0.01)
    monkeypatch.setattr(leases, "AGAIN", 0.01)
    return fake

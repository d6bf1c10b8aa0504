"""A job in a container asks for more: it finds the package, and its socket leads to the service."""

from __future__ import annotations

import json
import os
import shlex
import socket
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tidegate import mounted, service

from placement.domain.jobs import Outcome
from placement.services import job_tokens, relay
from tests import inside
from tests.engines import Docker, docker
from tests.integration.engine_here import log_of, node_with
from tests.integration.loop_here import Here
from tests.wait import until

ASKS = """
import tidegate
with tidegate.cuda(1) as place:
    print(place.reserved, place.memory_bytes)
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[Docker]:
    with docker() as made:
        yield made


@pytest.fixture
def node(settings: Any, tmp_path: Path, engine: Docker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    with inside.service() as fake:
        settings.URL = fake.url
        with node_with(engine, settings, tmp_path, monkeypatch) as made:
            made.fake = fake  # type: ignore[attr-defined]
            yield made


@pytest.fixture
def stands(settings: Any, tmp_path: Path) -> Iterator[inside.Fake]:
    """A relay to a fake service; yields that."""
    settings.DATA = tmp_path
    with inside.service() as fake:
        settings.URL = fake.url
        made = relay.Relay()
        made.stand()
        yield fake


def ask(path: str) -> dict[str, Any]:
    return service.Service("http://elsewhere:1", "tg_job", "7", path).get("notices")


@pytest.mark.django_db(transaction=True)
def test_a_container_job_reserves_by_its_socket_and_gives_it_back(
    node: Here, engine: Docker, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_tokens, "of", lambda job: "tg_job")
    command = "unset TIDEGATE_DEVICE_UUIDS; " + shlex.join(  # the fake has devices of its own
        [sys.executable, "-s", "-c", ASKS]
    )
    job = node.end(node.submit(command, image="team/train:2", environment={"PYTHONPATH": "/mine"}))
    assert (job.outcome, log_of(job)) == (Outcome.COMPLETED, "True 1000000000\n")
    fake: inside.Fake = node.fake  # type: ignore[attr-defined]
    assert len(fake.asks()) == 1
    assert fake.paths("/release") or fake.paths("/withdraw")
    line = next(words for words in reversed(engine.asked()) if words[0] == "run")
    volumes = {line[at + 1] for at, word in enumerate(line) if word == "--volume"}
    assert f"{settings.DATA}/inside:{settings.DATA}/inside:ro" in volumes
    assert "tg_job" not in " ".join(line)


def test_the_relay_hands_on_and_says_what_it_cannot_reach(
    stands: inside.Fake, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "inside"
    path = str(place / "socket")
    assert ask(path) == {"notices": []}
    assert (place / "socket").stat().st_mode & 0o777 == 0o666
    again = relay.Relay()  # a new worker takes the place of one that is going
    again.stand()
    assert ask(path) == {"notices": []}
    assert [one.name for one in place.iterdir()] == ["socket"]
    (place / "socket").unlink()
    again.stand()
    assert ask(path) == {"notices": []}
    large = urllib.request.build_opener(mounted.handler(path))
    body = json.dumps({"key": "k" * (3 << 20)}).encode()
    request = urllib.request.Request(
        "http://x/api/v1/inside/requests/withdraw", body, {"Authorization": "Bearer tg_job"}
    )
    with pytest.raises(urllib.error.HTTPError, match="404"):
        large.open(request, timeout=30)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        settings.URL = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        (place / "socket").unlink()
        relay.Relay().stand()
        with pytest.raises(service.NoAnswer, match="does not reach the service"):
            ask(path)
    (place / "socket").unlink()
    with pytest.raises(service.NoAnswer, match=rf"by the socket {path}, does not answer"):
        ask(path)


def test_a_folder_with_a_long_name_is_no_hindrance(settings: Any, tmp_path: Path) -> None:
    settings.DATA = tmp_path / ("long" * 30)
    with inside.service() as fake:
        settings.URL = fake.url
        relay.Relay().stand()
        told = relay.variables()
        assert len(told["TIDEGATE_SOCKET"]) > 108
        until(lambda: Path(told["TIDEGATE_SOCKET"]).exists(), 5, "the socket")
        assert ask(told["TIDEGATE_SOCKET"]) == {"notices": []}
    settings.URL = "https://tidegate.example/"
    assert relay.variables()["TIDEGATE_URL"] == "http://tidegate.example"


def open_files() -> list[str]:
    return os.listdir("/proc/self/fd")


def dialled(path: str) -> socket.socket:
    """Return a connection as a program in a container can make one."""
    made = socket.socket(socket.AF_UNIX)
    made.connect(path)
    return made


def test_who_says_nothing_and_who_reads_nothing_is_in_nobodys_way(
    stands: inside.Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "inside" / "socket")
    assert ask(path) == {"notices": []}  # it stands, with all that it opens for itself
    before = open_files()
    silent = [dialled(path) for _ in range(relay._MOST + 100)]
    assert ask(path) == {"notices": []}
    ours = len(before) + len(silent)
    until(lambda: len(open_files()) <= ours + relay._MOST + 2, 5, "the oldest to be let go of")
    for one in silent:
        one.close()
    until(lambda: len(open_files()) <= len(before) + 2, 5, "the silent ones to be let go of")
    monkeypatch.setattr(relay, "_LONGEST_S", 0.3)
    stands.notices = [{"id": n, "text": "x" * 1000} for n in range(2000)]  # more than sockets hold
    lazy = [dialled(path) for _ in range(5)]
    for one in lazy:
        one.sendall(b"GET /api/v1/inside/notices HTTP/1.0\r\nAuthorization: Bearer tg_job\r\n\r\n")
    until(lambda: len(open_files()) <= len(before) + len(lazy) + 2, 10, "those who do not read to be cut off")
    for one in lazy:
        one.close()


def test_whoever_finds_a_long_line_waits_for_a_place(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(0)
        first = dialled(path)  # all that the line holds
        with pytest.raises(BlockingIOError):
            mounted._dial(path, 0.2)
        threading.Timer(0.3, lambda: listener.accept()[0].close()).start()
        mounted._dial(path, 30).close()
        first.close()

from __future__ import annotations

import multiprocessing
import os
import time
from collections import Counter
from multiprocessing.queues import Queue as ProcessQueue
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from kombu import Connection, Exchange, Queue
from kombu.transport import TRANSPORT_ALIASES

from scheduler_site.broker import NetworkMount, Transport, file_system_of, refuse_network_mount
from tests.wait import until

PRODUCERS, EACH, CONSUMERS = 4, 400, 4
MOUNTS = """\
20 1 8:1 / / rw - ext4 /dev/sda1 rw
21 20 0:40 / /home rw - nfs4 server:/home rw
22 21 8:2 / /home/local\\040disk rw - xfs /dev/sdb1 rw
"""


def connect(folder: Path) -> Connection:
    TRANSPORT_ALIASES["safefs"] = "scheduler_site.broker:Transport"
    return Connection("safefs://", transport_options={"folder": str(folder), "polling_interval": 0.01})


def the_queue(name: str = "node.one") -> Queue:
    return Queue(name, Exchange(name, type="direct"), routing_key=name)


def produce(folder: Path, producer: int) -> None:
    with connect(folder) as connection:
        queue = connection.SimpleQueue(the_queue())
        for number in range(EACH):
            queue.put({"id": f"{producer}-{number}"})


def consume(folder: Path, done: Any, results: ProcessQueue[list[str]]) -> None:
    received = []
    with connect(folder) as connection:
        queue = connection.SimpleQueue(the_queue(), no_ack=True)
        while True:
            # Read before the queue is: only emptiness seen after the last message was sent is the end.
            over = done.is_set()
            try:
                received.append(queue.get_nowait().payload["id"])
            except Empty:
                if over:
                    break
                time.sleep(0.005)
    results.put(received)


def test_many_producers_and_consumers_lose_and_double_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    done, results = context.Event(), context.Queue()
    consumers = [context.Process(target=consume, args=(tmp_path, done, results)) for _ in range(CONSUMERS)]
    producers = [context.Process(target=produce, args=(tmp_path, number)) for number in range(PRODUCERS)]
    for process in consumers + producers:
        process.start()
    for process in producers:
        process.join(120)
    done.set()
    received = [identifier for _ in consumers for identifier in results.get(timeout=120)]
    for process in consumers:
        process.join(120)

    assert [process.exitcode for process in producers + consumers] == [0] * (PRODUCERS + CONSUMERS)
    assert Counter(received) == Counter(f"{p}-{n}" for p in range(PRODUCERS) for n in range(EACH))


def test_messages_come_out_in_the_order_they_went_in(tmp_path: Path) -> None:
    with connect(tmp_path) as connection:
        queue = connection.SimpleQueue(the_queue(), no_ack=True)
        for number in range(5):
            queue.put(number)

        assert [queue.get(timeout=20).payload for _ in range(5)] == [0, 1, 2, 3, 4]


def test_queues_do_not_mix_and_names_cannot_leave_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "broker"
    with connect(folder) as connection:
        outside = connection.SimpleQueue(the_queue("../../escape"), no_ack=True)
        inside = connection.SimpleQueue(the_queue("node.two"), no_ack=True)
        outside.put("a")
        inside.put("b")

        assert (outside.qsize(), inside.qsize()) == (1, 1)
        assert inside.get(timeout=20).payload == "b"
    assert [path.name for path in tmp_path.iterdir()] == ["broker"]


def test_a_message_that_was_not_acknowledged_comes_back(tmp_path: Path) -> None:
    with connect(tmp_path) as connection:
        queue = connection.SimpleQueue(the_queue())
        queue.put("once")
        queue.get(timeout=20)
    with connect(tmp_path) as connection:
        again = connection.SimpleQueue(the_queue(), no_ack=True)

        assert again.get(timeout=20).payload == "once"


def test_a_half_written_message_is_not_seen(tmp_path: Path) -> None:
    with connect(tmp_path) as connection:
        queue = connection.SimpleQueue(the_queue(), no_ack=True)
        queue.put("whole")
        (folder,) = (tmp_path / "queues").iterdir()
        (folder / ".draft-0000").write_text('{"body": "ha')

        assert queue.get(timeout=20).payload == "whole"
        with pytest.raises(Empty):
            queue.get_nowait()


def test_two_processes_that_bind_at_once_both_receive_a_fanout(tmp_path: Path) -> None:
    everyone = Exchange("everyone", type="fanout")
    with connect(tmp_path) as one, connect(tmp_path) as two:
        queues = [
            connection.SimpleQueue(Queue(name, everyone), no_ack=True) for connection, name in ((one, "a"), (two, "b"))
        ]
        one.Producer().publish("hello", exchange=everyone, declare=[everyone])

        assert [until(lambda q=q: q.qsize(), 20, "a copy") for q in queues] == [1, 1]


@pytest.mark.parametrize(
    "folder, kind",
    [
        pytest.param("/var/lib", "ext4", id="the root file system"),
        pytest.param("/home/ada/tidegate", "nfs4", id="below a network mount"),
        pytest.param("/home/local disk/x", "xfs", id="a local disk mounted inside a network mount"),
        pytest.param("/homework", "ext4", id="a name that only begins like a mount point"),
    ],
)
def test_file_system_is_that_of_the_longest_mount_point(folder: str, kind: str) -> None:
    assert file_system_of(Path(folder), MOUNTS) == kind


def test_network_mounts_are_refused_with_a_way_out() -> None:
    with pytest.raises(NetworkMount, match=r"nfs4.*--data"):
        refuse_network_mount(Path("/home/ada"), MOUNTS)
    refuse_network_mount(Path("/home/local disk"), MOUNTS)


def test_the_folder_is_for_this_account_alone(tmp_path: Path) -> None:
    with connect(tmp_path) as connection:
        connection.SimpleQueue(the_queue()).put("x")

    assert all(os.stat(path).st_mode & 0o077 == 0 for path in (tmp_path / "queues").iterdir())


def test_what_is_no_message_is_dropped_and_the_next_one_comes(tmp_path: Path) -> None:
    with connect(tmp_path) as connection:
        queue = connection.SimpleQueue(the_queue(), no_ack=True)
        (folder,) = (tmp_path / "queues").iterdir()
        bad = [
            b"",
            b"{",
            b"null",
            b"[]",
            b'{"a": 1}',
            b'{"properties": []}',
            b'{"properties": {}}',
            b"[" * 9999,
            b"\xff",
        ]
        for number, content in enumerate(bad):
            (folder / f"{number}-bad").write_bytes(content)
        (folder / "9-folder").mkdir()
        os.mkfifo(folder / "9-pipe")
        (folder / "9-link").symlink_to("/etc/hostname")
        queue.put({"id": "good"})
        assert queue.get(timeout=20).payload == {"id": "good"}
        with pytest.raises(Empty):
            queue.get_nowait()
        assert [path.name for path in folder.iterdir()] == [".claimed-9-folder"]


@pytest.mark.parametrize("content", ["", "{", "[1]", '[["a"]]', "7", "null"])
def test_a_table_of_bindings_that_was_cut_off_loses_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    def there_and_back() -> Any:
        with connect(tmp_path) as connection:
            queue = connection.SimpleQueue(the_queue(), no_ack=True)
            queue.put({"id": "good"})
            return queue.get(timeout=20).payload

    there_and_back()
    (table,) = (path for path in (tmp_path / "bindings").iterdir() if path.suffix == ".json")
    whole = table.read_text()
    table.write_text(content)
    assert there_and_back() == {"id": "good"}
    monkeypatch.setattr(Transport, "_declared", {})  # as in a process that has just started
    assert there_and_back() == {"id": "good"}
    assert table.read_text() == whole


def test_a_worker_that_waits_looks_up_often_enough_to_end_soon(tmp_path: Path) -> None:
    with connect(tmp_path) as connection, connection.Consumer(the_queue(), callbacks=[]):
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            connection.drain_events(timeout=20.0)
        assert time.monotonic() - began < 10.0

from __future__ import annotations

from pathlib import Path

import pytest
from celery import Celery

from scheduler_site import queues


@pytest.mark.parametrize(
    "url, folder",
    [
        ("safefs:///var/lib/tidegate/broker", Path("/var/lib/tidegate/broker")),
        ("redis://redis:6379/0", None),
        ("redis+socket:///run/redis.sock?virtual_host=0", None),
    ],
)
def test_only_the_file_broker_has_a_folder(url: str, folder: Path | None) -> None:
    assert queues.folder_of(url) == folder


@pytest.mark.parametrize("url", ["safefs://", "safefs://host/folder", "safefs:relative"])
def test_a_folder_that_is_not_absolute_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="safefs:///absolute/directory"):
        queues.folder_of(url)


@pytest.mark.parametrize(
    "task, queue",
    [
        ("placement.tasks.tick", "node.one"),
        ("placement.tasks.wake", "node.one"),
        ("placement.tasks.prune", "start.one"),
        ("placement.tasks.start", "start.one"),
    ],
)
def test_starts_have_a_queue_of_their_own(task: str, queue: str) -> None:
    app = Celery("test", set_as_current=False)
    app.conf.update(queues.rules("one"))

    assert app.amqp.router.route({}, task)["queue"].name == queue


def test_a_late_tick_expires_and_nothing_waits_for_results() -> None:
    rules = queues.rules("one")

    assert rules["beat_schedule"]["tick"]["options"]["expires"] == 2
    assert rules["task_ignore_result"] is True
    assert rules["task_acks_late"] is False

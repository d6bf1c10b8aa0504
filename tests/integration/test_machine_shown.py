"""What a reader learns of a machine and of a job's memory beyond the charges: limits, disk, cached files."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from placement.models import Node, Role
from placement.services import flags
from tests.integration.loop_here import MIB, Here, here
from tests.integration.rows import GIB, a_machine, a_user
from tests.wait import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def node(settings: Any, tmp_path: Path) -> Iterator[Here]:
    with here(settings, tmp_path) as made:
        yield made


@pytest.mark.parametrize(
    ("note", "disk", "told"),
    [
        ("/slice", 93 * GIB, "atlas: RAM is what the control group /slice allows; 93.0 GiB of disk left for runs."),
        ("host", None, "atlas: RAM is all that the host has; how much disk is left for runs is unknown."),
    ],
)  # fmt: skip
def test_the_devices_page_says_what_bounds_the_ram_and_how_much_disk_is_left(
    client: Client, note: str, disk: int | None, told: str
) -> None:
    a_machine()
    Node.objects.update(capacity_note=note, disk_free=disk)
    client.force_login(a_user("vic", Role.VIEWER))
    assert told in client.get("/devices").content.decode()


def test_cached_files_of_a_job_are_told_and_are_no_need(
    node: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flags, "_CACHED_WORTH_TELLING", 64 * MIB)
    weights = tmp_path / "weights"
    with weights.open("wb") as file:
        for _ in range(100):
            file.write(b"w" * MIB)
    program = tmp_path / "holds.py"
    program.write_text(
        "import mmap, pathlib, sys, time\n"
        "file = open(sys.argv[1], 'rb')\n"
        "held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)\n"
        "sum(held[at] for at in range(0, len(held), 4096))\n"
        "pathlib.Path(sys.argv[1] + '.read').touch()\n"
        "time.sleep(60)\n"
    )
    job = node.run(shlex.join([sys.executable, "-S", str(program), str(weights)]))
    until((tmp_path / "weights.read").exists, 20, "the file to be mapped")

    def flagged() -> bool:
        node.tick()
        job.refresh_from_db()
        return any(flag.endswith("of cached files, which are no need: the kernel can drop them") for flag in job.flags)

    until(flagged, 20, "the flag", 0.1)
    assert job.used["ram"] is not None
    assert job.used["ram"] < 64 * MIB

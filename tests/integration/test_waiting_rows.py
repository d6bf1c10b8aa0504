"""What a waiting job's row says: rewritten when something moved, and who made it impossible."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from calibration import clock
from calibration.models import PoolNow
from placement.domain.submitting.submission import Submission
from placement.models import Device, Job, Member, Node
from placement.services import admission, cycle_row, jobs, nodes

pytestmark = pytest.mark.django_db
GIB = 1 << 30


@pytest.fixture
def admin() -> User:
    user = User.objects.create_superuser("ada")
    Member.objects.create(user=user, role="admin")
    return user


@pytest.fixture(autouse=True)
def machine() -> Device:
    cycle_row.ensure()
    now, epoch = clock.now(), clock.epoch()
    node = Node.objects.create(name="testnode", tick_clock=now, epoch=epoch, disk_free=1 << 40, processes_free=9999)
    device = Device.objects.create(uuid="U0", node=node, name="gpu0", declared=24 * GIB, simulated=True)
    for pool, kind, name, total in (("ram", "ram", "RAM", 64 * GIB), ("U0", "vram", "gpu0", 24 * GIB)):
        PoolNow.objects.create(
            node="testnode", pool=pool, kind=kind, name=name, state="ok", total=total, free=total, used=0,
            external=0, unexplained=0, read_at=now + 3600, epoch=epoch,
        )  # fmt: skip
    PoolNow.objects.update(read_at=now)
    return device


def submit(user: User, gib: int, **more: object) -> Job:
    asked = {"command": "true", "cwd": "/tmp", "gpu": "one", "declared_vram": gib * GIB, "declared_ram": GIB, **more}
    return jobs.submit(user, Submission(name="j", **asked))


def test_a_job_that_became_impossible_names_the_edit_and_who_made_it(admin: User, machine: Device) -> None:
    blocker = submit(admin, 20)
    job = submit(admin, 20, command="false")
    assert admission.run()
    blocker.refresh_from_db()
    assert blocker.state == "admitted"
    nodes.edit_device(admin, machine.pk, {"declared": 8 * GIB})
    assert admission.run()
    job.refresh_from_db()
    assert job.code == "infeasible"
    assert "ada changed the declared capacity of gpu0 of testnode from 24.0 GiB to 8.0 GiB at " in job.headline
    assert job.decision["headline"] == job.headline


def test_a_row_is_left_alone_while_only_ages_move(admin: User) -> None:
    submit(admin, 20)
    job = submit(admin, 20, command="false")
    assert admission.run()
    job.refresh_from_db()
    first = job.decided_at
    assert job.code == "booked"
    assert admission.run()
    job.refresh_from_db()
    assert job.decided_at == first

"""Each address while figures are unknown and devices odd: a driver that tells nothing, one that is gone, one pool."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from calibration.models import PoolNow
from placement.models import Device, Job
from tests.integration.rows import UUIDS
from tests.integration.test_every_route import LARGE, addresses, routes, there

assert there  # the fixture

pytestmark = pytest.mark.django_db
FIGURES = ("total", "free", "used", "reserved", "busy", "external", "unexplained", "files", "read_at", "index")


def nothing_told() -> None:
    """Of no pool anything is known, of no job what it uses or is charged with a figure."""
    PoolNow.objects.update(
        **dict.fromkeys(FIGURES), state="unmeasured", message="not supported", owners={"job:1": None}
    )
    for job in Job.objects.exclude(charges={}):
        kept = {"granted": 0, "held": 0, "at_start": 0, "margin": 0}
        job.charges = {pool: {**kept, "cap": None, "force": {}} for pool in job.charges}
        job.used = dict.fromkeys(job.charges)
        job.save()


def never_read() -> None:
    PoolNow.objects.all().delete()


def gone() -> None:
    PoolNow.objects.filter(kind="vram").update(**dict.fromkeys(FIGURES), state="gone", message="it fell off the bus")
    Device.objects.filter(uuid=UUIDS[0]).update(draining=True, measurable=False)


def lost() -> None:
    PoolNow.objects.update(state="lost", message="<b>no</b>", read_at=None)


def one_pool() -> None:
    Device.objects.update(one_pool=True, shares=True)
    PoolNow.objects.filter(kind="vram").update(**dict.fromkeys(FIGURES))


def parent_without_instances() -> None:
    Device.objects.filter(uuid=UUIDS[0]).update(heading=True, uuid="GPU-heading")
    Device.objects.filter(uuid=UUIDS[1]).update(parent="GPU-heading", uuid="MIG-1")
    PoolNow.objects.filter(pool=UUIDS[0]).update(**dict.fromkeys(FIGURES), pool="GPU-heading", state="heading")


def zero() -> None:
    PoolNow.objects.update(**dict.fromkeys(("total", "free", "used", "reserved", "external", "unexplained"), 0))
    Device.objects.update(declared=1)


def huge() -> None:
    PoolNow.objects.update(**dict.fromkeys(("total", "free", "used", "external", "unexplained", "files"), 2**62))
    PoolNow.objects.update(owners={"job:1": 2**62}, left=[["job:1", 2**62, 4e9]], reserved=2**61)


RARER = (never_read, gone, lost, one_pool, zero, huge)


@pytest.mark.parametrize(
    "odd", [nothing_told, parent_without_instances, *(pytest.param(odd, marks=pytest.mark.slow) for odd in RARER)]
)
def test_no_address_fails_for_want_of_a_figure(there: dict[str, tuple[object, ...]], odd: Any) -> None:
    some = {name: values[:3] if name == "job_id" else values[:1] for name, values in there.items()}
    odd()
    wrong = []
    for who in ("ada", "ben", "vic"):
        client = Client(raise_request_exception=False)
        client.force_login(get_user_model().objects.get(username=who))
        for address in (address for route in routes() for address in addresses(route, some)):
            if LARGE.search(address) and not address.endswith("/submit"):
                continue
            if (status := client.get(address).status_code) >= 500:
                wrong.append(f"{address} answers {status} to {who}")
    assert wrong == []

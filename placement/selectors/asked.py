"""What somebody asks a list of jobs for: whose, which, in what order; the same words in the address and in the form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import urlencode

from django.db.models import F, Q, QuerySet

from placement.domain.jobs import State
from placement.models import Job
from placement.selectors import wording

STATES = {"waiting": "waiting", "running": "running", "finished": "finished"}
SORTS = {
    "": "in turn",
    "newest": "newest first",
    "oldest": "oldest first",
    "start": "by expected start",
    "name": "by name",
    "owner": "by owner",
}
LONGEST = 100  # characters of a text that is looked for
NO_DEVICE = "none"
MOST_PAGES = 1000


@dataclass(frozen=True, slots=True)
class Asked:
    """One question to the lists of a page. Everything left at "" asks for all, in the queue's own order."""

    whose: str = ""  # "mine", "" everybody's
    q: str = ""  # a part of a name or of an owner's name, or "#41"
    state: str = ""
    user: str = ""
    workload: str = ""
    device: str = ""  # UUID; "none": jobs that use no device
    reason: str = ""  # code of the leading objection
    sort: str = ""
    page: int = 1

    @property
    def all(self) -> bool:
        """Return whether nothing is left out and the order is the queue's."""
        return self == _ALL

    @property
    def narrow(self) -> bool:
        """Return whether some jobs are left out."""
        return replace(self, sort="", page=1) != _ALL

    @property
    def states(self) -> tuple[str, ...]:
        """Return the lists that can have an answer: who asks for a reason asks for what waits."""
        if self.reason:
            return ("waiting",) if self.state in ("", "waiting") else ()
        return (self.state,) if self.state else tuple(STATES)

    def query(self, **other: Any) -> str:
        """Return the address part that asks this, with some of it otherwise; "" for all."""
        asked = replace(self, **other)
        pairs = ((f.name, getattr(asked, f.name)) for f in fields(asked))
        return urlencode([(name, value) for name, value in pairs if value and (name, value) != ("page", 1)])

    def only(self, jobs: QuerySet[Job], viewer: int) -> QuerySet[Job]:
        """Return those of the jobs that are asked for; ``viewer`` is the id of whoever asks for their own."""
        if self.whose == "mine":
            jobs = jobs.filter(user_id=viewer)
        if self.user:
            jobs = jobs.filter(user__username=self.user)
        if self.workload:
            jobs = jobs.filter(Q(key_workload=self.workload) | Q(workload__name=self.workload))
        if self.reason:
            jobs = jobs.filter(code=self.reason)
        if self.device == NO_DEVICE:
            jobs = jobs.filter(gpu="none")
        elif self.device:
            there = Q(device=self.device) | Q(more_devices__contains=self.device) | Q(device_wanted=self.device)
            inside = Q(state=State.RUNNING, charges__has_key=self.device)  # asked for as it ran
            jobs = jobs.filter(there | inside | Q(state=State.QUEUED, forecast__device=self.device))
        return jobs.filter(matching(self.q)) if self.q else jobs

    def ordered(self, jobs: QuerySet[Job], usual: tuple[str, ...]) -> QuerySet[Job]:
        """Return the jobs in the order that is asked for, else in the usual one."""
        by: dict[str, tuple[Any, ...]] = {
            "newest": ("-id",),
            "oldest": ("id",),
            "start": (F("forecast__expected_at").asc(nulls_last=True), "id"),
            "name": ("name", "array_index", "id"),
            "owner": ("user__username", "id"),
        }
        return jobs.order_by(*by.get(self.sort, usual))


_ALL = Asked()


def read(given: Mapping[str, str]) -> Asked:
    """Return what an address or a form asks for; what means nothing asks for nothing."""

    def text(name: str) -> str:
        return str(given.get(name, "")).replace("\0", "").strip()[:LONGEST]

    def one_of(name: str, known: Mapping[str, Any]) -> str:
        value = text(name)
        return value if value in known else ""

    page = text("page")
    return Asked(
        whose="mine" if text("whose") == "mine" else "",
        q=text("q"),
        state=one_of("state", STATES),
        user=text("user"),
        workload=text("workload"),
        device=text("device"),
        reason=one_of("reason", wording.CODES),
        sort=one_of("sort", SORTS),
        page=min(int(page), MOST_PAGES) if page.isascii() and page.isdecimal() and int(page) > 0 else 1,
    )


def matching(text: str) -> Q:
    """Return what "#41" or a part of a name finds; a bare number finds the job and the names that contain it."""
    number = text.removeprefix("#")
    named = Q(name__icontains=text) | Q(user__username__icontains=text)
    if not (number.isascii() and number.isdecimal() and len(number) < 19):
        return named
    return Q(pk=int(number)) if text.startswith("#") else Q(pk=int(number)) | named

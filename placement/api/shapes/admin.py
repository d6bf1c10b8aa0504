"""People, knobs and the audit."""

from __future__ import annotations

from pydantic import Field

from placement.api.shapes.judgement import Loose
from placement.api.shapes.kinds import Amount, Body, Bytes, MaybeMoment, Moment, Query, Shape
from placement.api.shapes.token import RoleWord


class Person(Shape):
    """A user, as admins see them. Quotas: null as for everybody, 0 no limit."""

    id: int
    name: str
    role: RoleWord
    account: str | None = Field(description="The Unix account that their jobs run as.")
    active: bool = Field(description="False: kept out.")
    last_login: MaybeMoment
    quota_jobs: int | None
    quota_vram: Bytes
    quota_ram: Bytes
    runs: int
    waits: int
    tokens: int = Field(description="In force.")


class PersonList(Shape):
    """Everybody, by name."""

    people: list[Person]


class PeopleAsked(Query):
    """Whom."""

    q: str = Field("", max_length=150, description="A part of the name.")


class PersonSaid(Shape):
    """What was done, and the person after it."""

    message: str
    person: Person


class PersonLink(Shape):
    """A one-time login, told only now and valid for a day."""

    person: Person
    link: str


class PersonBody(Body):
    """Somebody new."""

    name: str
    role: str = Field(description="viewer, submitter, operator or admin.")


class PersonChange(Body):
    """A change of a person; what is left out or null stays."""

    role: str | None = None
    account: str | None = Field(None, description='"" for none.')
    root: bool = Field(False, description="Where the account is root: that is meant.")
    active: bool | None = Field(None, description="false keeps them out; their jobs go on, their tokens are dead.")


class QuotaBody(Body):
    """What one person's jobs may hold at once: null or left out as for everybody, 0 no limit."""

    jobs: int | None = None
    vram: Amount = None
    ram: Amount = None


class Entry(Shape):
    """One change."""

    id: int
    at: Moment
    who: str
    action: str
    subject: str
    detail: Loose
    words: str = Field(description="The detail as people read it.")


class EntryList(Shape):
    """One page of changes, newest first."""

    entries: list[Entry]
    older: int | None
    newer: int | None


class AuditAsked(Query):
    """Which changes."""

    who: str = Field("", max_length=150)
    action: str = Field("", max_length=60)
    text: str = Field("", max_length=200, description="A part of whom or what it is about.")
    before: int | None = Field(None, ge=0, lt=2**63, description="`older` of the page before.")
    after: int | None = Field(None, ge=0, lt=2**63, description="`newer` of a page.")


class Knob(Shape):
    """One figure that may be turned."""

    name: str
    subject: str
    help: str
    unit: str
    value: int | float | str
    default: int | float | str
    accepts: str
    choices: list[str]
    turned: bool
    who: str | None
    at: MaybeMoment


class KnobList(Shape):
    """Knobs, by subject."""

    knobs: list[Knob]


class KnobsAsked(Query):
    """Which knobs."""

    q: str = Field("", max_length=100, description="A part of name or help.")
    turned: bool = Field(False, description="Only those that are not at their default.")


class KnobBody(Body):
    """A value."""

    value: int | float | str


class KnobSaid(Shape):
    """What was done, and the knob after it."""

    message: str
    knob: Knob

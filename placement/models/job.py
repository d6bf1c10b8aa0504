from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from placement.domain.jobs import Outcome, State
from placement.domain.world.requests import Exclusive, Gpu, Request, shared
from placement.models.array import JobArray
from placement.models.holds import Holdable
from placement.models.packed import PackedJSON
from placement.models.workload import Workload


def states() -> list[tuple[str, str]]:
    return [(s.value, s.value) for s in State]


def outcomes() -> list[tuple[str, str]]:
    return [(o.value, o.value.replace("_", " ")) for o in Outcome]


class Job(Holdable):
    """One submission. Bytes are ints; ``charges`` is {pool id: {granted, held, at_start, cap, margin, settled, note}}
    and ``used`` {pool id: bytes or null}; ``decision`` and ``estimate`` are the newest as JSON.

    Identities ({boot_id, pid, start_ticks}) come from the run directory. Every change of ``state`` is a conditional
    UPDATE in services.
    """

    kind = models.CharField(max_length=8, default="run", db_default="run")  # as domain.taken.Kind
    taken_used_at = models.DateTimeField(null=True, blank=True)  # of a hold: its device was seen in use, to the minute
    name = models.CharField(max_length=200)
    note = models.CharField(max_length=500, blank=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="jobs")
    workload = models.ForeignKey(Workload, models.SET_NULL, null=True, blank=True, related_name="jobs")
    params = models.JSONField(default=dict, blank=True)
    command = models.TextField(blank=True)
    argv = models.JSONField(null=True, blank=True)
    setup = models.TextField(blank=True)
    cwd = models.CharField(max_length=1000)
    environment = models.BinaryField(default=bytes, blank=True)  # encrypted JSON of the submission's own values
    workers = models.PositiveIntegerField(default=1)
    gpu = models.CharField(max_length=8, default="none")
    exclusive = models.CharField(max_length=8, default="no")
    reserves = models.BooleanField(default=False, db_default=False)  # it asks for more devices: it sees all of its node
    node_wanted = models.CharField(max_length=100, blank=True)
    device_wanted = models.CharField(max_length=100, blank=True)
    devices_wanted = models.JSONField(null=True, blank=True)  # {min, max, prefer_max, per_device, group: bytes to
    # reserve exactly or null, even, kind, backend}; null: one device at most, any, with nothing reserved exactly
    declared_ram = models.BigIntegerField(null=True, blank=True)
    declared_vram = models.BigIntegerField(null=True, blank=True)
    time_limit_s = models.FloatField(null=True, blank=True)
    priority = models.IntegerField(default=0)
    form_key = models.CharField(max_length=64, null=True, blank=True, unique=True)  # one submit per form
    retry_of = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="retries")
    retry_policy = models.JSONField(default=dict, blank=True)  # {times, on, wait_s, longest_s}, {} for none
    retry_number = models.PositiveIntegerField(default=0)  # which further try Tidegate made of it, 0: none
    not_before = models.DateTimeField(null=True, blank=True)
    tied = models.BooleanField(default=False)  # it waits for other jobs, or did: rows of Dependency say for which
    array = models.ForeignKey(JobArray, models.PROTECT, null=True, blank=True, related_name="jobs", db_index=False)
    array_index = models.PositiveIntegerField(null=True, blank=True)
    image = models.CharField(max_length=300, null=True, blank=True)  # its command runs in a container of this image
    engine = models.CharField(max_length=8, null=True, blank=True)  # docker or podman, empty: the node's first

    key_workload = models.CharField(max_length=200)
    key_fingerprint = models.CharField(max_length=80, blank=True)
    key_params = models.TextField(blank=True)
    key_script = models.CharField(max_length=500, blank=True)

    state = models.CharField(max_length=10, choices=states, default=State.QUEUED.value)
    outcome = models.CharField(max_length=16, choices=outcomes, blank=True)
    sentence = models.CharField(max_length=1000, blank=True)  # how it ended, with the figures
    evidence = models.JSONField(default=dict, blank=True)
    attempt = models.PositiveIntegerField(default=1)
    submitted_at = models.DateTimeField(auto_now_add=True)
    admitted_at = models.DateTimeField(null=True)
    admitted_clock = models.FloatField(null=True)
    dispatched_clock = models.FloatField(null=True)
    started_at = models.DateTimeField(null=True)
    started_clock = models.FloatField(null=True)
    ended_at = models.DateTimeField(null=True)
    duration_s = models.FloatField(null=True)
    exit_code = models.IntegerField(null=True)
    exit_signal = models.IntegerField(null=True)

    node = models.CharField(max_length=100, blank=True)
    device = models.CharField(max_length=100, blank=True)
    more_devices = models.TextField(blank=True, default="", db_default="")  # UUIDs beside it, as granted, by commas
    basis = models.CharField(max_length=16, blank=True)
    charges = models.JSONField(default=dict, blank=True)
    used = models.JSONField(default=dict, blank=True)
    estimate = PackedJSON(default=dict, blank=True)
    decision = PackedJSON(default=dict, blank=True)
    decided_at = models.DateTimeField(null=True)
    headline = models.CharField(max_length=500, blank=True)
    code = models.CharField(max_length=24, blank=True)
    plan = models.JSONField(default=dict, blank=True)  # {node, device, at (clock), epoch}

    run_dir = models.CharField(max_length=1000, blank=True)
    runner = models.JSONField(default=dict, blank=True)
    child = models.JSONField(default=dict, blank=True)
    members = models.JSONField(default=list, blank=True)
    leftovers = models.JSONField(default=list, blank=True)
    leader_exit = models.JSONField(default=dict, blank=True)
    unsupervised = models.BooleanField(default=False)
    stop_reason = models.CharField(max_length=40, blank=True)
    stop_by = models.CharField(max_length=150, blank=True)
    stop_requested_at = models.DateTimeField(null=True)
    stop_clock = models.FloatField(null=True)
    flags = models.JSONField(default=list, blank=True)  # sentences shown as words beside the state
    demo = models.BooleanField(default=False)
    pinned = models.BooleanField(default=False)  # its run directory is kept
    pruned_at = models.DateTimeField(null=True, blank=True)  # when its decisions and leases were let go

    class Meta:
        indexes = [
            models.Index(fields=["state", "-priority", "id"], name="jobs_by_state"),  # reader: snapshots.take
            models.Index(fields=["state", "-ended_at", "-id"], name="jobs_by_end"),  # reader: queue page
            models.Index(fields=["user", "-id"], name="jobs_by_user"),  # reader: own jobs
            models.Index(fields=["outcome", "-id"], name="jobs_by_outcome"),  # reader: selectors.lists
            models.Index(fields=["user", "outcome", "-id"], name="jobs_by_user_and_outcome"),  # the same
            models.Index(fields=["-id", "name"], name="jobs_by_name"),  # the same: a stretch of ids is searched
            models.Index(fields=["state", "pruned_at", "ended_at"], name="jobs_not_pruned"),  # services.retention
            models.Index(fields=["state", "id"], name="jobs_tied", condition=Q(tied=True)),  # reader: conditions.ties
            models.Index(
                fields=["array", "state", "id"], name="jobs_by_array", condition=Q(array__isnull=False)
            ),  # reader: conditions.in_sight, the array's page
            models.Index(
                fields=["user", "key_workload", "-ended_at"], name="jobs_by_group", condition=Q(state="finished")
            ),  # reader: services.groups
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["retry_of"], name="one_automatic_retry_per_job", condition=Q(retry_number__gt=0)
            ),
            models.CheckConstraint(
                condition=(Q(state="finished") & ~Q(outcome="")) | (~Q(state="finished") & Q(outcome="")),
                name="only_a_finished_job_has_an_outcome",
            ),
        ]

    @property
    def devices(self) -> tuple[str, ...]:
        """Return the UUIDs of its devices in the order of their grant, () without any."""
        return (self.device, *filter(None, self.more_devices.split(","))) if self.device else ()

    def request(self) -> Request:
        """Return what it asks for of nodes and devices."""
        asked = self.devices_wanted or {}
        group = [asked[name] for name in ("min", "max", "prefer_max", "per_device", "group")] if asked else []
        group += [asked.get("even", True), asked.get("kind"), asked.get("backend")] if asked else []
        where = self.node_wanted or None, self.device_wanted or None
        engine = (self.engine or "any") if self.image else ""
        return shared(Gpu(self.gpu), Exclusive(self.exclusive), *where, *group, engine=engine)

    def __str__(self) -> str:
        return f"#{self.pk} {self.name}"

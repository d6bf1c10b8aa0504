"""Django's admin as a window on the rows: it shows them and changes nothing, because only services write."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.paginator import Paginator
from django.http import HttpRequest
from django.utils.functional import cached_property

from placement.models import (
    AuditEntry,
    DecisionRecord,
    Dependency,
    Device,
    GroupHold,
    Job,
    JobArray,
    Lease,
    Member,
    Node,
    Workload,
)


class Bounded(Paginator):
    """Pages of a table of any size: no more rows are counted than a person would turn over."""

    MOST = 10_000

    @cached_property
    def count(self) -> int:
        """Return how many rows can be turned over."""
        return int(self.object_list.values("pk")[: self.MOST].count())


class ReadOnly(admin.ModelAdmin):
    """Rows to look at, newest first."""

    show_full_result_count = False
    paginator = Bounded
    ordering = ("-pk",)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


# People are changed on the People page, where each change is checked and on record.
admin.site.unregister(get_user_model())
admin.site.unregister(Group)


@admin.register(Job)
class JobAdmin(ReadOnly):
    list_display = ("id", "name", "user", "state", "outcome", "node", "basis", "submitted_at")
    list_filter = ("state", "outcome")
    exclude = ("environment",)


@admin.register(Workload)
class WorkloadAdmin(ReadOnly):
    list_display = ("name", "summary", "gpu", "workers")
    exclude = ("environment",)


@admin.register(Device)
class DeviceAdmin(ReadOnly):
    list_display = ("name", "node", "uuid", "declared", "exclusive_only", "draining", "retired")


@admin.register(Node)
class NodeAdmin(ReadOnly):
    list_display = ("name", "ram_declared", "draining")


@admin.register(Lease)
class LeaseAdmin(ReadOnly):
    list_display = ("job", "attempt", "node", "pool", "bytes", "granted_at", "released_at")


@admin.register(JobArray)
class ArrayAdmin(ReadOnly):
    list_display = ("id", "name", "user", "size", "limit", "made_at")


@admin.register(Dependency)
class DependencyAdmin(ReadOnly):
    list_display = ("job", "when", "on", "named")


@admin.register(GroupHold)
class GroupHoldAdmin(ReadOnly):
    list_display = ("held_at", "user", "key_workload", "why", "released_at", "released_by")


@admin.register(DecisionRecord)
class DecisionAdmin(ReadOnly):
    list_display = ("job", "at", "verdict", "code", "headline")


@admin.register(Member)
class MemberAdmin(ReadOnly):
    list_display = ("user", "role", "account", "quota_jobs", "quota_vram", "quota_ram")


@admin.register(AuditEntry)
class AuditAdmin(ReadOnly):
    list_display = ("at", "who", "action", "subject")

"""One file per noun; this package is what the rest imports."""

from __future__ import annotations

from placement.models.array import JobArray
from placement.models.audit import AuditEntry, KnobOverride
from placement.models.conditions import Dependency, GroupHold
from placement.models.cycle import Cycle
from placement.models.decision import DecisionRecord
from placement.models.forecast import Forecast, ForecastRecord
from placement.models.inside import InsideRequest, InsideSession, RequestState
from placement.models.job import Job
from placement.models.later import AskedLater
from placement.models.lease import Lease
from placement.models.member import LoginAttempt, LoginLink, Member, Role
from placement.models.node import Device, Node
from placement.models.notice import Delivery, Hook, Notice, NoticeSettings
from placement.models.progress import JobProgress
from placement.models.token import Scope, Token
from placement.models.wait_cycle import WaitCycle
from placement.models.workload import IrrelevantArgument, Workload

__all__ = [
    "AskedLater",
    "AuditEntry",
    "Cycle",
    "DecisionRecord",
    "Delivery",
    "Dependency",
    "Device",
    "Forecast",
    "ForecastRecord",
    "GroupHold",
    "Hook",
    "InsideRequest",
    "InsideSession",
    "IrrelevantArgument",
    "Job",
    "JobArray",
    "JobProgress",
    "KnobOverride",
    "Lease",
    "LoginAttempt",
    "LoginLink",
    "Member",
    "Node",
    "Notice",
    "NoticeSettings",
    "RequestState",
    "Role",
    "Scope",
    "Token",
    "WaitCycle",
    "Workload",
]

"""The API is what its description says: called as it says, and otherwise, by schemathesis over every operation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, settings
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi import checks

from calibration.domain import keys
from placement.api.service import schema as described
from placement.models import Device, JobArray, Role
from placement.services import tokens, workloads
from scheduler_site.wsgi import application
from tests.integration.rows import a_finished, a_job, a_machine, a_running, a_user

EXAMPLES, MORE = 6, 60  # of each operation
CONFIG = {
    "phases": {"coverage": {"enabled": False}},
    "generation": {"max-examples": EXAMPLES},
}
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]
load_all_checks()


def load(**changes: Any) -> Any:
    """Return the description with the application behind it."""
    loaded = schemathesis.openapi.from_dict(described(), config=SchemathesisConfig.from_dict({**CONFIG, **changes}))
    loaded.app = application
    loaded.hook("map_path_parameters")(existing)
    return loaded


def existing(context: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
    """Let most made-up names be those of what is there: an operation on nothing says little."""
    for name, value in (path_parameters or {}).items():
        if name not in _there or type(value) is not type(_there[name][0]):
            continue
        number = len(value) if isinstance(value, str) else value
        if number > 0 and number % 4:
            path_parameters[name] = _there[name][number % len(_there[name])]  # type: ignore[index]
    return path_parameters


_there: dict[str, list[Any]] = {}


@pytest.fixture
def open_database(db: None) -> Iterator[None]:
    """Requests leave the connection of the test as it is."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def headers(open_database: None, tmp_path: Path) -> dict[str, str]:
    """A token of an admin, and something of everything to act on."""
    admin, ada = a_user("root", Role.ADMIN), a_user("ada")
    node = a_machine()
    own, others = a_job(admin), a_job(ada)
    ended, running = a_finished(ada), a_running(ada, run_dir=str(tmp_path))
    (tmp_path / "stdout.log").write_text("epoch 1\nValueError: größer\n")
    array = JobArray.objects.create(name="fold", user=ada, size=2, limit=1)
    for index in range(2):
        a_job(ada, array=array, array_index=index)
    row, _ = workloads.define(admin, 'name = "train"\ncommand = "python train.py"\n')
    kept, _ = tokens.make(ada, "another", "read")
    _, text = tokens.make(admin, "schemathesis", "full")
    _there.clear()
    _there.update(
        job_id=[j.pk for j in (own, others, ended, running)],
        array_id=[array.pk],
        user_id=[admin.pk, ada.pk],
        token_id=[kept.pk],
        node_id=[node.pk],
        device_id=list(Device.objects.values_list("pk", flat=True)),
        name=["ram_high", "kept_priority"],
        ident=[row.name, keys.named(row.name)],
    )
    return {"Authorization": f"Bearer {text}", "Accept-Encoding": "identity"}


schema = load()


more = load(generation={"max-examples": MORE})


@pytest.mark.slow
@more.parametrize()
@settings(deadline=None, suppress_health_check=list(HealthCheck))
def test_every_answer_is_as_described_more_often(case: Any, headers: dict[str, str]) -> None:
    case.call_and_validate(headers=headers, checks=CHECKS)


@schema.parametrize()
@settings(deadline=None, suppress_health_check=list(HealthCheck))
def test_every_answer_is_as_described(case: Any, headers: dict[str, str]) -> None:
    case.call_and_validate(headers=headers, checks=CHECKS)


def test_each_operation_is_a_test_of_its_own(request: pytest.FixtureRequest) -> None:
    """Of tests that have one id xdist would run one."""
    ids = [item.nodeid for item in request.session.items]
    assert len(ids) == len(set(ids))

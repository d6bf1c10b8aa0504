"""Jobs in control groups, by the loop of a node: their limit, what the kernel counts, what is removed, what is told."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from calibration.domain.attribution import attribute
from calibration.domain.resources import gib
from calibration.models import Sediment
from placement import loop, snapshots
from placement.domain.containing.containment import of_job, of_node, why_not
from placement.domain.world import reservations
from placement.models import Job, Node, Role
from placement.runner import cgroup
from placement.runner.cgroup import Group
from placement.runner.containment import read_held
from placement.services import containing, lifecycle, node_tick
from tests.integration.loop_here import MIB, Here, here
from tests.integration.rows import a_user
from tests.wait import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def node(settings: Any, tmp_path: Path) -> Iterator[Here]:
    containing.here.cache_clear()
    with here(settings, tmp_path) as made:
        yield made
    containing.here.cache_clear()


def limited(settings: Any) -> None:
    if not containing.limits(containing.here(settings.RAM_LIMIT).plan.kind):
        pytest.skip("nothing on this machine keeps a group in its memory")


def python(program: str) -> str:
    return shlex.join([sys.executable, "-S", "-c", program])


def holding(mib: int) -> str:
    return python(f"b = b'x' * ({mib} << 20); import time; time.sleep(60)")


def group_of(job: Job) -> Group:
    held = read_held(lifecycle.run_dir_of(job))
    assert held is not None
    return held.group


def test_a_job_is_kept_in_its_cap_counted_by_the_kernel_and_its_group_goes_with_it(node: Here, settings: Any) -> None:
    limited(settings)
    job = node.run(f"{holding(100)} & {holding(100)} & wait")

    def counted() -> bool:
        node.tick()
        job.refresh_from_db()
        return (job.used["ram"] or 0) > 200 * MIB

    until(counted, 10, "both processes' memory")
    assert job.used["ram"] < 260 * MIB  # resident sizes would count Python twice
    cap = job.charges["ram"]["cap"]
    force = job.charges["ram"]["force"]
    assert (force["kind"], force["bytes"]) == ("cgroup", cap)
    assert force["sentence"].startswith("kept in ")
    assert force["sentence"].endswith(" by its control group")
    group = group_of(job)
    assert cgroup.limit_of(group) == cap
    assert {rule for _, rule in _rules(job).values()} == {"cgroup"}

    job.charges["ram"]["cap"] = cap + 512 * MIB
    job.save(update_fields=["charges"])
    node.tick()
    assert cgroup.limit_of(group) == cap + 512 * MIB
    job.refresh_from_db()
    assert job.charges["ram"]["force"]["bytes"] == cap + 512 * MIB

    job.charges["ram"]["cap"] = cap
    job.save(update_fields=["charges"])
    node.tick()
    assert cgroup.limit_of(group) == cap + 512 * MIB, "a limit was lowered"
    lifecycle.stop_for(job, "cancel", "over", {})
    node.end(job)
    assert not Path(group.memory or group.path).exists()


def _rules(job: Job) -> dict[int, tuple[str, str]]:
    agent = loop.agent()
    found = attribute(agent.instrument.read(), node_tick._claims(agent, [job]))
    return {pid: rule for pid, rule in found.rules.items() if rule[0] == f"job:{job.pk}"}


@pytest.mark.parametrize("then", ["echo went on; sleep 60", "exit 0", "exit 3"])
def test_who_passes_it_is_ended_by_the_kernel_and_the_record_says_so(
    node: Here, settings: Any, tmp_path: Path, then: str
) -> None:
    limited(settings)
    grows = python("b = bytearray(bytes(900 << 20))")
    job = node.run(f"until [ -e {tmp_path}/go ]; do sleep 0.05; done; {grows}; {then}")
    (tmp_path / "go").touch()
    limit = job.charges["ram"]["cap"]
    assert limit < 900 * MIB
    node.end(job)

    assert job.outcome == "cap_exceeded"
    assert "RAM limit" in job.sentence
    assert job.evidence["memory"] == "ram"
    assert Sediment.objects.get(owner=f"job:{job.pk}").next_charge["ram"] > limit


def test_under_a_policy_that_only_warns_nothing_limits_and_the_group_still_counts(node: Here, settings: Any) -> None:
    limited(settings)
    Node.objects.update(watch_policy="warn")
    job = node.run(holding(100))
    node.tick()
    job.refresh_from_db()
    assert cgroup.limit_of(group_of(job)) is None
    assert job.charges["ram"]["force"]["sentence"] == "watched, not kept: the policy only warns"
    until(lambda: loop.agent().groups.claim(job)["group_ram"] > 100 * MIB, 10, "what the kernel counts")


def test_the_limit_follows_a_policy_that_is_changed_while_a_job_runs(node: Here, settings: Any) -> None:
    limited(settings)
    job = node.run(holding(100))
    until(lambda: loop.agent().groups.claim(job)["group_ram"] > 100 * MIB, 10, "what the kernel counts")

    def told(policy: str) -> str:
        Node.objects.update(watch_policy=policy)
        node.tick()
        job.refresh_from_db()
        return str(job.charges["ram"]["force"]["sentence"])

    assert told("").startswith("kept in ")
    assert told("warn") == "watched, not kept: the policy only warns"
    assert cgroup.limit_of(group_of(job)) is None
    assert told("cap").startswith("kept in ")
    assert cgroup.limit_of(group_of(job)) == job.charges["ram"]["cap"]

    told("warn")
    job.charges["ram"]["cap"] = 64 * MIB  # less than it holds: a limit would end it at once
    job.save(update_fields=["charges"])
    assert told("risk").endswith("its policy only warned when it began, and it holds too much to be limited now")
    assert cgroup.limit_of(group_of(job)) is None
    assert job.state == "running"


def test_all_jobs_together_leave_the_machine_its_reserve(node: Here, settings: Any) -> None:
    limited(settings)
    plan = containing.here(settings.RAM_LIMIT).plan
    if plan.scope:
        pytest.skip("the slice is systemd's")
    node.tick()
    knobs, _ = snapshots.knobs_now()
    total = loop.agent().instrument.ram().total
    assert total is not None
    limit = cgroup.limit_of(Group("", plan.memory, 1) if plan.memory else Group(plan.base, plan.base, 2))
    assert limit == (total - reservations.floor_of("ram", total, knobs)) // 4096 * 4096
    assert limit < total


def test_switched_off_a_job_has_no_group_and_the_node_says_so(node: Here, settings: Any, client: Client) -> None:
    settings.RAM_LIMIT = "off"
    job = node.run("sleep 60")
    node.tick()
    job.refresh_from_db()
    assert read_held(lifecycle.run_dir_of(job)) is None
    assert job.charges["ram"]["force"]["kind"] == "watched"
    told = "watchdog only: control groups are switched off (TIDEGATE_RAM_LIMIT)"
    assert Node.objects.get().containment["sentence"] == told
    client.force_login(a_user("vic", Role.VIEWER))
    assert told in client.get("/devices/testnode/ram").content.decode()


LOADER = """
import os, time
held = bytearray(b"x") * (450 << 20)
for _ in range(4):
    if not os.fork():
        time.sleep(60)
        os._exit(0)
print("up", flush=True)
time.sleep(60)
"""


def test_a_loader_whose_workers_share_its_memory_is_not_taken_for_five_times_of_it(node: Here, settings: Any) -> None:
    settings.RAM_LIMIT = "off"
    Node.objects.update(watch_policy="cap")
    job = node.run(python(LOADER))
    cap = job.charges["ram"]["cap"]
    assert 450 * MIB < cap < 600 * MIB
    until(lambda: "up" in (lifecycle.run_dir_of(job) / "stdout.log").read_text(), 20, "its workers")
    node.tick()
    resident = sum(
        one.rss or 0 for one in loop.agent().instrument.read().processes.values() if _is_member(job, one.pid)
    )
    assert resident > 4 * cap
    for _ in range(5):
        node.tick()
        assert loop.agent().watchdog.every() is not None, "it is near its cap"
        loop.agent().glance()
    job.refresh_from_db()
    assert (job.state, job.stop_reason) == ("running", "")
    assert 450 * MIB < job.used["ram"] < cap


def _is_member(job: Job, pid: int) -> bool:
    return any(one.pid == pid for one in loop.agent().known[f"job:{job.pk}"])


def test_a_job_that_its_limit_ended_after_its_runner_was_killed_is_charged_more_next_time(
    node: Here, settings: Any, tmp_path: Path
) -> None:
    limited(settings)
    go = tmp_path / "go"
    grow = "import os, time\nend = time.monotonic() + 60\n"
    grow += (
        f"while not os.path.exists({str(go)!r}) and time.monotonic() < end: time.sleep(0.02)\nb = b'x' * (900 << 20)"
    )
    job = node.run(python(grow))
    cap = job.charges["ram"]["cap"]
    assert cap < 900 * MIB
    os.kill(job.runner["pid"], signal.SIGKILL)
    go.touch()
    node.end(job)
    assert job.outcome == "cap_exceeded"
    assert f"at its own limit of {gib(cap)}" in job.sentence
    assert "its runner was killed" in job.sentence
    assert (job.exit_code, job.evidence["memory"], job.evidence["group"]["memory_max"]) == (None, "ram", cap)
    again = node.run(python(grow))
    assert again.charges["ram"]["granted"] > job.charges["ram"]["granted"]


def test_a_group_that_nobody_removed_goes_at_the_next_start_and_those_of_others_stay(
    node: Here, settings: Any, tmp_path: Path
) -> None:
    plan = containing.here(settings.RAM_LIMIT).plan
    if not plan.base:
        pytest.skip("no groups can be made on this machine")
    mine = containing.name_of(Job(pk=99, attempt=1))
    settings.RUNS = tmp_path / "another"
    others = containing.name_of(Job(pk=99, attempt=1))
    settings.RUNS = tmp_path / "runs"
    for name in (mine, others):
        cgroup.make(Group(f"{plan.base}/{name}", "", 2))
    try:
        node.tick()
        assert not Path(plan.base, mine).exists()
        assert Path(plan.base, others).exists()
    finally:
        cgroup.remove(Group(f"{plan.base}/{others}", "", 2))


def test_what_a_node_and_a_job_are_told() -> None:
    assert of_node("scope", True) == "kernel: a control group per job, made by systemd"
    assert of_node("watched", False) == "watchdog only: no control group can limit memory here"
    assert "ends them" in of_node("watched", True)
    assert why_not([("user", "no bus")]) == "a scope of the account's systemd: no bus"
    assert of_job(None, "no group", warns_only=False, planned=True).sentence == "watched, not kept: no group"
    assert of_job(None, "", warns_only=False, planned=False).sentence.endswith("can limit memory on its node")

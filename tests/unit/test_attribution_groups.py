from __future__ import annotations

from calibration.domain.attribution import attribute
from tests.unit.test_attribution import ident, job, look, pool, proc

KEPT = "/tidegate.slice/tidegate-1a-7-1"


def test_the_control_group_is_stronger_than_parents_and_a_difference_is_told():
    table = [proc(300), proc(500, 300, cgroup=f"/box{KEPT}/inner"), proc(600, 300, cgroup="/elsewhere")]
    claims = [job(1, 300), job(7, group="tidegate-1a-7-1")]
    found = attribute(look(table), claims)
    assert found.rules == {300: ("job:1", "root"), 500: ("job:7", "cgroup"), 600: ("job:1", "root")}
    assert found.disputes == {500: ("job:7", "job:1")}


def test_what_lost_everything_else_is_found_by_its_group_and_a_name_that_only_begins_alike_is_not():
    table = [proc(500, 1, cgroup=KEPT), proc(501, 1, cgroup=f"{KEPT}2"), proc(502, 1, cgroup="/tidegate-1a-7-1.scope")]
    assert attribute(look(table), [job(7, group="tidegate-1a-7-1")]).rules == {500: ("job:7", "cgroup")}


def test_the_runner_beside_its_job_in_a_scope_stays_the_services():
    scope = "/tidegate.slice/tidegate-1a-7-1.scope"
    table = [proc(200, cgroup=f"{scope}/runner"), proc(300, 200, cgroup=f"{scope}/job")]
    claim = job(7, 300, supervisor=ident(200), group="tidegate-1a-7-1.scope/job")
    assert attribute(look(table), [claim]).rules == {200: ("tidegate", "supervisor"), 300: ("job:7", "cgroup")}


def test_main_memory_is_what_the_kernel_counts_in_the_group_and_what_is_outside_of_it():
    table = [proc(300, cgroup=KEPT, ram=70), proc(301, 300, cgroup=KEPT, ram=70), proc(302, 300, ram=5, ram_exact=True)]
    claim = job(7, 300, group="tidegate-1a-7-1", group_ram=90)
    found = attribute(look(table, pool("ram", 200)), [claim])
    assert found.owners["job:7"] == {"ram": 95}
    assert (found.external["ram"], found.unexplained["ram"], found.exact["job:7"]) == (0, 105, True)


def test_a_container_belongs_to_the_job_that_its_label_names_before_any_marker():
    table = [proc(300), proc(800, 1, cgroup="/docker/abc"), proc(801, 800, cgroup="/docker/abc")]
    claims = [job(7, 300), job(8, marker="8")]
    asked = []

    def container_of(path):
        asked.append(path)
        return {"/docker/abc": "job:7"}.get(path)

    rules = attribute(look(table), claims, marker_of=lambda pid: "8", container_of=container_of).rules
    assert rules[800] == rules[801] == ("job:7", "container")
    assert asked == ["/docker/abc"]
    assert 800 not in attribute(look(table), [job(9)], container_of=container_of).rules

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.domain.attribution import attribute, device_use, elsewhere, unexplained_growth
from calibration.domain.samples import Claim, Identity, PoolSample, PoolState, ProcessSample, Reading
from tests.examples import examples

BOOT = "boot-1"


def ident(pid, ticks=100, boot=BOOT):
    return Identity(boot, pid, ticks)


def proc(pid, ppid=1, ticks=100, **more):
    return ProcessSample(pid, ppid, ticks, **({"ram": 0} | more))


def pool(name, used=None, processes=(), state=PoolState.OK):
    kind = "ram" if name == "ram" else "vram"
    return PoolSample(name, kind, name, state, total=10**6, used=used, processes=tuple(processes))


def look(processes, *pools):
    return Reading("n", BOOT, 1.0, 1.0, {p.pool: p for p in pools}, {p.pid: p for p in processes})


def job(number, root=None, ticks=100, **more):
    roots = () if root is None else (ident(root, ticks),)
    return Claim(f"job:{number}", roots=roots, **more)


def owner_of(reading, claims, pid, **more):
    return attribute(reading, claims, **more).rules.get(pid)


CHAIN = [proc(500, 400), proc(400, 300), proc(300, 1), proc(1, 0, 1)]


def test_a_descendant_belongs_to_the_root_above_it():
    assert owner_of(look(CHAIN), [job(1, 300)], 500) == ("job:1", "root")
    assert owner_of(look(CHAIN), [job(1, 999)], 500) is None


def test_the_services_own_processes_are_its_own_unless_a_job_has_them():
    service, web, nursery, job_1, escaped = proc(300), proc(310, 300), proc(320, 300), proc(330, 320), proc(340, 330)
    other = proc(900, 1)
    reading = look([proc(1, 0, 1), service, web, nursery, job_1, escaped, other], pool("ram", 100))
    claims = [job(1, 330), job(2, known=frozenset({ident(320)}))]
    rules = attribute(reading, claims, service=300).rules
    assert {pid: rules.get(pid) for pid in (300, 310, 320, 330, 340, 900)} == {
        300: ("tidegate", "service"),
        310: ("tidegate", "service"),
        320: ("job:2", "known"),
        330: ("job:1", "root"),
        340: ("job:1", "root"),
        900: None,
    }
    assert owner_of(reading, claims, 310) is None
    assert owner_of(reading, claims, 310, service=77) is None, "a supervisor that is gone has nobody"


def test_a_cycle_of_parents_ends():
    loop = look([proc(10, 20), proc(20, 10), proc(7, 7)])
    assert attribute(loop, [job(1, 300)]).rules == {}


def test_a_long_chain_reaches_its_root():
    links = [proc(pid, pid - 1, pid) for pid in range(301, 2500)]
    assert owner_of(look([proc(300), *links]), [job(1, 300)], 2499) == ("job:1", "root")


def test_the_nearest_owner_wins():
    assert owner_of(look(CHAIN), [job(1, 300), job(2, 400)], 500)[0] == "job:2"
    assert owner_of(look(CHAIN), [job(2, 400), job(1, 300)], 300)[0] == "job:1"


def test_orphans_come_back_through_the_runner_whose_own_memory_is_the_services():
    runner = proc(200, 1, 50, ram=10)
    table = [runner, proc(500, 200, ram=70)]
    found = attribute(look(table, pool("ram", 100)), [job(1, 300, supervisor=ident(200, 50))])
    assert found.rules == {200: ("tidegate", "supervisor"), 500: ("job:1", "supervisor")}
    assert found.owners == {"job:1": {"ram": 70}, "tidegate": {"ram": 10}}
    assert (found.external["ram"], found.unexplained["ram"]) == (0, 20)


def test_a_runner_of_another_job_inside_a_job_keeps_its_own_children():
    table = [proc(200), proc(300, 200), proc(210, 300), proc(310, 210)]
    claims = [job(1, 300, supervisor=ident(200)), job(2, supervisor=ident(210))]
    rules = attribute(look(table), claims).rules
    assert rules[310] == ("job:2", "supervisor")
    assert rules[210] == ("tidegate", "supervisor")


def test_two_claims_on_one_root_are_told_apart_by_the_marker_else_the_later_has_it():
    claims = [job(1, 300, marker="1"), job(2, 300, marker="2")]
    assert owner_of(look(CHAIN), claims, 500)[0] == "job:2"
    assert owner_of(look(CHAIN), claims, 500, marker_of=lambda pid: "1")[0] == "job:1"


def test_once_known_stays_known_and_so_do_its_children():
    table = [proc(500, 1), proc(501, 500)]
    claim = job(1, 300, known=frozenset({ident(500)}))
    assert attribute(look(table), [claim]).rules == {500: ("job:1", "known"), 501: ("job:1", "known")}


def test_the_marker_decides_only_where_nothing_better_does():
    marks = {500: "1", 600: "1", 50: "1"}
    table = [*CHAIN, proc(600, 1), proc(50, 1, 20)]
    asked = []

    def marker_of(pid):
        asked.append(pid)
        return marks.get(pid)

    rules = attribute(
        look(table), [job(1, marker="1", supervisor=ident(9, 90)), job(2, 300)], marker_of=marker_of
    ).rules
    assert rules[500] == ("job:2", "root")
    assert rules[600] == ("job:1", "marker")
    assert 50 not in rules  # older than the job: a copied environment
    assert 500 not in asked


def test_an_owner_that_has_not_begun_takes_nobody_by_the_marker():
    stranger = look([proc(600, 1, 900)])
    assert attribute(stranger, [job(1, marker="1")], marker_of=lambda pid: "1").rules == {}
    earlier = Claim("job:1", roots=(ident(300, boot="boot-0"),), marker="1")
    assert attribute(stranger, [earlier], marker_of=lambda pid: "1").rules == {}


def test_a_session_counts_while_a_member_holds_its_number():
    alone = [proc(500, 1, 200, session=300)]
    claim = job(1, 300, sessions=(300,))
    assert attribute(look(alone), [claim]).rules == {}
    with_root = [proc(300, 1, 100, session=300), *alone]
    assert attribute(look(with_root), [claim]).rules[500] == ("job:1", "session")
    led_by_runner = [proc(300, 1, 100, session=300), proc(500, 1, 200, session=300)]
    runner = job(1, supervisor=ident(300), sessions=(300,))
    assert attribute(look(led_by_runner), [runner]).rules[500] == ("job:1", "session")


REUSED = [
    ("the number of the root went to a stranger", [proc(4000, 1, 900, uid=7), proc(4011, 4000, 910)], 4011, False),
    ("ticks unchanged, whatever the wall clock did", [proc(4000, 1, 100), proc(4010, 4000, 150)], 4010, True),
    ("a lower number is no elder", [proc(4000, 1, 100), proc(310, 4000, 510)], 310, True),
    ("a child older than its parent", [proc(4000, 1, 100), proc(4012, 4000, 99)], 4012, False),
]


@pytest.mark.parametrize("name, table, pid, member", REUSED, ids=[case[0] for case in REUSED])
def test_reused_numbers(name, table, pid, member):
    claim = job(1, 4000, sessions=(4000,), known=frozenset({ident(4000), ident(4010, 150)}))
    table = [proc(p.pid, p.ppid, p.start_ticks, session=4000) if not member else p for p in table]
    assert (pid in attribute(look(table), [claim]).rules) is member


def test_an_identity_of_an_earlier_boot_is_somebody_else():
    assert attribute(look(CHAIN), [Claim("job:1", roots=(ident(300, boot="boot-0"),))]).rules == {}


def test_a_stranger_who_took_the_number_is_not_charged_for_the_drivers_entry():
    reading = look([proc(500, 1, 900)], pool("GPU-a", 3000, [(500, 3000)]))
    found = attribute(reading, [job(1, 300, known=frozenset({ident(500, 100)}))])
    assert found.owners["job:1"]["GPU-a"] == 0
    assert found.external["GPU-a"] == 3000


def test_memory_of_ours_and_of_others_on_one_device():
    table = [
        proc(500, 300, ram=1200),
        proc(300, ram=800),
        proc(113, ram=4000),
        proc(999, ram=300, user="eve", name="x"),
    ]
    gpu = pool("GPU-a", 13934, [(113, 10000), (500, 3000), (999, 400)])
    found = attribute(look(table, pool("ram", 9000), gpu), [job(1, 300), Claim("res:ram", roots=(ident(113),))])
    assert found.owners == {"job:1": {"ram": 2000, "GPU-a": 3000}, "res:ram": {"ram": 4000, "GPU-a": 10000}}
    assert (found.external["GPU-a"], found.unexplained["GPU-a"]) == (400, 534)
    assert (found.external["ram"], found.unexplained["ram"]) == (300, 2700)
    assert found.external_who["GPU-a"] == ((999, "eve", "x", 400),)


def test_a_size_that_is_not_reported_is_unknown_and_never_zero():
    reading = look([proc(79)], pool("GPU-a", 14360, [(79, None)]), pool("ram", 10))
    found = attribute(reading, [job(7, 79), job(8)])
    assert found.owners["job:7"] == {"GPU-a": None, "ram": 0}
    assert found.owners["job:8"] == {"GPU-a": 0, "ram": 0}
    assert found.unexplained["GPU-a"] is None


def test_an_outsider_without_a_size_makes_the_outside_unknown():
    found = attribute(look([proc(79), proc(80)], pool("GPU-a", 900, [(79, 100), (80, None)])), [job(7, 79)])
    assert (found.owners["job:7"]["GPU-a"], found.external["GPU-a"], found.unexplained["GPU-a"]) == (100, None, None)
    assert found.external_who["GPU-a"] == ((80, "", "", None),)


@pytest.mark.parametrize("state", [state for state in PoolState if state is not PoolState.OK])
def test_in_a_pool_that_was_not_read_all_use_is_unknown(state):
    found = attribute(look(CHAIN, pool("GPU-a", 5, [(500, 5)], state)), [job(1, 300), job(2)])
    assert found.owners == {"job:1": {"GPU-a": None}, "job:2": {"GPU-a": None}}
    assert (found.external["GPU-a"], found.unexplained["GPU-a"]) == (None, None)


def test_device_memory_that_no_process_explains_is_its_own_line_and_spread_over_nobody():
    reading = look([proc(700), proc(710)], pool("GPU-a", 19400, [(700, 4000), (710, 2500)]))
    found = attribute(reading, [job("A", 700), job("B", 710)])
    assert (found.owners["job:A"]["GPU-a"], found.owners["job:B"]["GPU-a"]) == (4000, 2500)
    assert found.unexplained["GPU-a"] == 12900
    assert unexplained_growth(4000, 12900, 4000) == 8900
    assert unexplained_growth(4000, None, 4000) is None
    assert unexplained_growth(4000, 3000, 4000) == 0


def test_shared_pages_are_counted_once_and_cached_files_apart():
    table = [proc(300, ram=70, rss=320, ram_exact=True)]
    table += [proc(300 + n, 300, ram=61, rss=308, ram_exact=True) for n in range(1, 5)]
    found = attribute(look(table, pool("ram", 400)), [job("A", 300)])
    assert found.owners["job:A"]["ram"] == 314
    assert found.exact["job:A"]
    mapped = attribute(look([proc(9, ram=900, rss=14200, cached=13300)], pool("ram", 15000)), [job("B", 9)])
    assert (mapped.owners["job:B"]["ram"], mapped.cached["job:B"], mapped.exact["job:B"]) == (900, 13300, False)


def test_one_process_on_two_devices_is_kept_per_device_and_one_listed_twice_counts_once():
    first = pool("GPU-0", 4000, [(500, 3000), (500, 3000), (501, 200)])
    second = pool("GPU-1", 4000, [(500, 2500)])
    found = attribute(look([proc(500), proc(501, 500)], first, second), [job(1, 500)])
    assert found.owners["job:1"] == {"GPU-0": 3200, "GPU-1": 2500}
    assert all(left >= 0 for left in found.unexplained.values())
    with_size = attribute(look([proc(500)], pool("GPU-0", 4000, [(500, None), (500, 3000)])), [job(1, 500)])
    assert with_size.owners["job:1"]["GPU-0"] == 3000


def test_memory_on_a_device_that_is_not_the_jobs_stays_apart():
    lent = pool("GPU-2", 9000, [(900, 9000)])
    other = pool("GPU-0", 1240, [(pid, 310) for pid in range(900, 904)])
    table = [proc(900), *(proc(pid, 900) for pid in range(901, 904))]
    amounts = attribute(look(table, lent, other), [job(1, 900)]).owners["job:1"]
    assert device_use(amounts, ["GPU-2"]) == 9000
    assert elsewhere(amounts, ["GPU-2"]) == {"GPU-0": 1240}
    assert device_use({"GPU-2": None}, ["GPU-2"]) is None
    assert device_use({}, ["GPU-2"]) is None


def test_a_process_that_the_driver_still_lists_though_it_is_gone():
    reading = look([proc(300)], pool("GPU-a", 700, [(501, 700)]))
    found = attribute(reading, [job(1, 300, known=frozenset({ident(501)}))])
    assert found.owners["job:1"]["GPU-a"] == 0
    assert found.external_who["GPU-a"] == ((501, "", "(ended)", 700),)


def test_a_zombie_holds_no_memory_and_is_no_member_but_its_children_are():
    table = [proc(300, state="Z", ram=5), proc(301, 300, 120, ram=40)]
    found = attribute(look(table, pool("ram", 40)), [job(1, 300)])
    assert found.owners["job:1"]["ram"] == 40
    assert found.members["job:1"] == {ident(301, 120)}


def test_a_process_whose_size_could_not_be_read_makes_its_owner_unknown():
    found = attribute(look([proc(300, ram=None), proc(301, 300)], pool("ram", 40)), [job(1, 300)])
    assert found.owners["job:1"]["ram"] is None


def test_the_largest_outsiders_are_named_five_at_most():
    table = [proc(pid, ram=pid) for pid in range(1, 9)]
    who = attribute(look(table, pool("ram", 100)), []).external_who["ram"]
    assert [one[0] for one in who] == [8, 7, 6, 5, 4]


AMOUNTS = st.none() | st.integers(0, 1000)


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(0, 12), st.integers(1, 5), AMOUNTS, AMOUNTS), max_size=12),
    st.integers(0, 8000),
    st.lists(st.integers(1, 12), max_size=3),
)
def test_shares_are_never_negative_and_add_up_to_what_is_used(table, used, roots):
    processes = [proc(pid, ppid, ticks, ram=ram) for pid, ppid, ticks, ram, _ in table]
    listed = {pid: vram for pid, _, _, _, vram in table}
    reading = look(processes, pool("ram", used), pool("GPU-a", used, listed.items()))
    claims = [
        Claim(f"job:{n}", roots=(ident(root, reading.processes[root].start_ticks if root in reading.processes else 1),))
        for n, root in enumerate(roots)
    ]
    found = attribute(reading, claims)
    assert found == attribute(reading, claims)
    for name in ("ram", "GPU-a"):
        owners = [amounts[name] for amounts in found.owners.values()]
        figures = [*owners, found.external[name], found.unexplained[name]]
        assert all(figure is None or figure >= 0 for figure in figures)
        if None not in figures and sum(owners) <= used:
            assert sum(figures) == used
        sizes = listed.values() if name == "GPU-a" else [p.ram for p in reading.processes.values()]
        assert (None in sizes) <= (found.unexplained[name] is None)

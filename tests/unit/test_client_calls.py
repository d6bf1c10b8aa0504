"""Reserving inside a job: granted, waiting, refused, timed out, lost answers, let go."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import warnings
from typing import Any

import pytest
import tidegate
from tidegate import outside
from tidegate.asks import Ask

from tests.inside import CLIENT, WAITS, Fake, environment, in_a_job
from tests.wait import until

GB = 1_000_000_000


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Fake:
    """A job on two devices, and a service that grants at once."""
    return in_a_job(monkeypatch)


def carried(thing: Any) -> Any:
    """Return what another process would get."""
    return pickle.loads(pickle.dumps(thing))  # noqa: S301 - written by the line itself


def released(fake: Fake) -> list[str]:
    return [body["path"] for body in fake.paths("/release")]


def test_a_grant_is_a_placement(job: Fake) -> None:
    place = tidegate.cuda(6, device_id=1, exclusive=True)
    assert (place.device, place.backend, place.device_id) == (tidegate.Device.GPU, tidegate.Backend.CUDA, 1)
    assert (place.memory_bytes, place.uuid, place.node, place.local_index) == (6 * GB, "GPU-1", "here", 1)
    assert place.reserved
    assert place.lease_id == 101
    assert (place.placements, place.primary, place.device_ids) == ((place,), place, (1,))
    (row,) = job.asks()
    assert row["ask"]["exclusive"] is True
    assert row["ask"]["memory"] == "exact"
    assert row["process"]["pid"] == os.getpid()
    assert row["process"]["started"] > 0
    assert row["sees"] == ["GPU-0", "GPU-1"]
    assert row["session"] is None


def test_a_group_is_a_sequence_under_one_lease(job: Fake) -> None:
    group = tidegate.cuda_group(group_memory_gb=5e-9, per_device_memory_gb=1, min_devices=2, max_devices=3)
    assert [one.memory_bytes for one in group] == [GB + 3, GB + 2]
    assert (len(group), group[1], group.primary) == (2, group.placements[1], group[0])
    assert (group.group_memory_bytes, group.per_device_memory_bytes) == (5, GB)
    assert group.reserved_memory_bytes == 2 * GB + 5
    assert (group.device_ids, group.local_indices) == ((0, 1), (0, 1))
    # G10: the group and its members stand for one lease, an equal place made by hand for none
    hand = tidegate.Placement("gpu", "cuda", 0, GB + 3, uuid="GPU-0")
    assert {group.lease_id, group[0].lease_id, group[1].lease_id} == {101}
    assert (hand.lease_id, hand.reserved) == (None, False)
    assert hand != group[0]
    # G1, G2: a member that is kept keeps everything
    member = group[1]
    del group, hand
    gc.collect()
    assert member.reserved
    assert released(job) == []
    del member
    until(lambda: released(job) == ["leases/101/release"], 5, "the release")


def test_copies_are_the_thing_itself_and_a_pickle_is_a_description(job: Fake) -> None:
    """G11, as it should be: nothing is doubled, and nothing freed while any of them is left."""
    place = tidegate.cuda(1)
    same, deep, far = copy.copy(place), copy.deepcopy([place])[0], carried(place)
    group = tidegate.cuda_group(per_device_memory_gb=1, min_devices=2, max_devices=2)
    far_group = carried(group)
    assert same is place is deep
    assert (far.memory_bytes, far.uuid, far.local_index, far.reserved) == (GB, "GPU-0", 0, False)
    assert (far_group.device_ids, far_group.reserved, far_group[0].lease_id) == ((0, 1), False, None)
    del far, far_group, place, same
    gc.collect()
    assert deep.reserved
    assert released(job) == []
    assert carried(tidegate.CPU_PLACEMENT) is tidegate.CPU_PLACEMENT


def test_with_lets_go_at_its_end_and_once(job: Fake) -> None:
    with tidegate.cuda(1) as place, place:
        assert place.reserved
    assert not place.reserved
    with tidegate.cuda_group(per_device_memory_gb=1, min_devices=2, max_devices=2) as group:
        assert group[0].reserved
    assert not group[1].reserved
    del place, group
    gc.collect()
    until(lambda: len(released(job)) >= 2, 5, "both releases")
    assert sorted(released(job)) == ["leases/101/release", "leases/102/release"]


def test_a_payload_keeps_its_place(job: Fake) -> None:
    data = tidegate.Data([1, 2], tidegate.cuda(1))
    gc.collect()
    assert data.placement.reserved
    assert tidegate.Data("x").placement is tidegate.CPU_PLACEMENT
    with pytest.raises(TypeError, match="not 'cuda:0'"):
        tidegate.Data("x", "cuda:0")
    data.placement.outlive("weights", 3600)
    assert job.paths("101/outlive")[0]["artifact"] == "weights"


def test_what_a_group_asks_for_is_read_aloud() -> None:
    asked = Ask("gpu", "cuda", "exact", 0, 10**9, 2, 4, False, None, False, True)
    assert str(asked) == "1.00 GB each on 2 to 4 GPUs (CUDA)"
    assert str(asked._replace(group_bytes=6 * 10**9, max_devices=2)) == "6.00 GB and 1.00 GB each on 2 GPUs (CUDA)"


def test_waiting_says_so_once_and_asks_with_one_key(job: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    job.decide = lambda row: WAITS if row["looks"] < 4 else job.grant(row)
    assert tidegate.cuda(6).reserved
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == ("tidegate: waits for 6.00 GB on a GPU (CUDA): gpu0 has 2.0 GB left; job 7 holds 6.0 GB.")
    assert len(lines) == 2
    assert lines[1].startswith("tidegate: has 6.00 GB on a GPU (CUDA): gpu0, after ")


def test_a_service_that_is_away_is_waited_for(job: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    job.fails = [503, 500, 429]
    assert tidegate.cuda(6).reserved
    assert len({body["key"] for body in job.paths("requests")}) == 1
    assert len(job.asks()) == 1
    assert "answered 503: Not now." in capsys.readouterr().err


def test_time_is_over(job: Fake) -> None:
    job.decide = lambda row: WAITS
    with pytest.raises(tidegate.TimedOut, match=r"was not granted within 0.02 s. gpu0 has 2.0 GB left") as raised:
        tidegate.cuda(6, timeout=0.02)
    assert isinstance(raised.value, TimeoutError)
    assert raised.value.reasons == tuple(WAITS["reasons"])
    assert [body["give_back"] for body in job.paths("requests/withdraw")] == [False]
    with pytest.raises(ValueError, match="0 or more"):
        tidegate.cuda(6, timeout=-1)


def test_a_grant_that_came_before_the_withdrawal_is_taken(job: Fake) -> None:
    job.decide = lambda row: WAITS

    def withdrawn(method: str, path: str, body: dict, token: str) -> tuple[int, dict]:
        if path == "requests/withdraw":
            return 200, {"id": 1} | job.grant(job.rows[body["key"]])
        return Fake.answer(job, method, path, body, token)

    job.answer = withdrawn  # type: ignore[method-assign]
    try:
        assert tidegate.cuda(6, timeout=0).reserved
    finally:
        del job.answer  # type: ignore[method-assign]


def test_a_request_whose_answer_was_lost_is_withdrawn_by_its_key(job: Fake) -> None:
    job.fails = [500] * 3
    job.decide = lambda row: WAITS
    with pytest.raises(tidegate.TimedOut):
        tidegate.cuda(6, timeout=0)
    until(lambda: len(job.paths("requests/withdraw")) >= 2, 5, "the withdrawal, said again")
    assert {body["key"] for body in job.paths("requests/withdraw")} == {body["key"] for body in job.paths("requests")}


def test_impossible_says_the_arithmetic(job: Fake) -> None:
    lines = ["gpu0 can give at most 8.0 GB", "gpu1 can give at most 8.0 GB"]
    refusal = {"code": "impossible", "sentence": "99.0 GB can never be granted.", "arithmetic": lines}
    job.decide = lambda row: {"state": "refused", "refusal": refusal}
    with pytest.raises(tidegate.Impossible) as raised:
        tidegate.cuda(99)
    assert str(raised.value) == "99.0 GB can never be granted.\n  " + "\n  ".join(lines)
    assert len(job.said) == 1  # L1: it is not asked again


@pytest.mark.parametrize(
    "status, error", [(401, tidegate.NotAllowed), (422, tidegate.Unavailable), (302, tidegate.Unavailable)]
)
def test_what_is_no_use_to_say_again(job: Fake, status: int, error: type[Exception]) -> None:
    job.fails = [status]
    with pytest.raises(error, match=f"{status}.*: Not now."):
        tidegate.cuda(1)
    assert len(job.said) == 1


def test_a_device_that_this_process_does_not_see(job: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    with pytest.raises(tidegate.NotVisible, match="“Reserves inside its run” of the workload"):
        tidegate.cuda(1, device_id=0)
    until(lambda: released(job) == ["leases/101/release"], 5, "what was granted in vain")
    assert tidegate.cuda(1, device_id=1).local_index == 0
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    job.said.clear()
    with pytest.raises(tidegate.NotVisible, match="CUDA_VISIBLE_DEVICES=''"):
        tidegate.cuda(1)
    assert job.said == []


def test_a_lease_that_an_operator_took(job: Fake) -> None:
    place = tidegate.cuda(1)
    job.notices = [{"session": None, "lease": 101, "sentence": "An operator revoked it.", "seconds_left": 30}]
    with pytest.raises(tidegate.Revoked, match="An operator"):
        tidegate.check()
    assert not place.reserved
    tidegate.check()  # told once
    assert not issubclass(tidegate.Revoked, Exception)


def test_outside_a_job_the_script_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in environment(Fake()):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(outside, "_warned", [])
    with pytest.warns(RuntimeWarning, match="nothing is reserved"):
        place = tidegate.cuda(6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        group = tidegate.cuda_group(group_memory_gb=6, max_devices=3, prefer_max_devices=True)
    assert (place.reserved, place.local_index, place.memory_bytes) == (False, 0, 6 * GB)
    assert (group.local_indices, group.reserved) == ((0, 1, 2), False)
    with place, group:
        tidegate.check()


FORKS = """
import os, sys, tidegate
place = tidegate.cuda(1)
child = os.fork()
if child == 0:
    with place:
        pass
    del place
    tidegate.cuda(2)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert place.reserved
print("forked", flush=True)
sys.stdin.readline()
"""


def test_a_forked_child_gives_back_only_its_own(job: Fake) -> None:
    """And what a process still has at its end is given back then."""
    env = os.environ | {"PYTHONPATH": str(CLIENT)}
    run = subprocess.Popen([sys.executable, "-c", FORKS], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"forked\n"
        assert released(job) == ["leases/102/release"]
        run.communicate(b"\n", timeout=30)
    assert released(job) == ["leases/102/release", "leases/101/release"]
    assert len({row["process"]["pid"] for row in job.asks()}) == 2

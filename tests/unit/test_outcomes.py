"""Outcomes: our own record, then evidence, then the exit code."""

from __future__ import annotations

import pytest

from placement.domain.ending.outcomes import Evidence, decide_outcome
from placement.domain.jobs import Outcome
from tests.builders import GIB, MIB

CUDA = "Traceback:\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
TORCH = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked} GiB. GPU 0 has a total capacity of "
    "24.00 GiB of which {free} GiB is free. Process 7 has 4.00 GiB memory in use. 4.00 GiB allowed; Of the allocated"
)
REBOOTED = "its node has rebooted since"
CUPY = "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 9 bytes (allocated so far: 1, limit set to: 8)."


@pytest.mark.parametrize(
    ("evidence", "outcome", "feeds", "memory"),
    [
        pytest.param(Evidence(code=0), Outcome.COMPLETED, "need", None, id="0"),
        pytest.param(Evidence(code=3), Outcome.FAILED, "lower_bound", None, id="3"),
        pytest.param(
            Evidence(code=137, oom_kill_delta=1), Outcome.OUT_OF_MEMORY, "lower_bound", "ram", id="kernel, host"
        ),
        pytest.param(
            Evidence(code=137, oom_kill_delta=1, group={"oom": 3, "oom_kill": 1, "memory_max": GIB}),
            Outcome.CAP_EXCEEDED,
            "lower_bound",
            "ram",
            id="kernel, at its own limit",
        ),
        pytest.param(
            Evidence(code=0, group={"oom": 1, "oom_kill": 1, "memory_max": GIB}, oom_kill_delta=1),
            Outcome.CAP_EXCEEDED,
            "lower_bound",
            "ram",
            id="a part of it at its own limit, its shell says 0",
        ),
        pytest.param(
            Evidence(code=0, group={"oom": 0, "oom_kill": 1, "memory_max": GIB}),
            Outcome.OUT_OF_MEMORY,
            "lower_bound",
            "ram",
            id="a part of it by the machine, its shell says 0",
        ),
        pytest.param(
            Evidence(code=0, group={"oom": 4, "oom_kill": 0}, oom_kill_delta=2, log_tail=CUDA),
            Outcome.COMPLETED,
            "need",
            None,
            id="0 and nothing of it was killed",
        ),
        pytest.param(Evidence(code=137), Outcome.FAILED, "lower_bound", None, id="137 with neither"),
        pytest.param(
            Evidence(signal=9, stopped_by="cancel", killed=True), Outcome.CANCELLED, "lower_bound", None, id="our KILL"
        ),
        pytest.param(Evidence(signal=15), Outcome.FAILED, "lower_bound", None, id="TERM of somebody else"),
        pytest.param(
            Evidence(code=143, stopped_by="cancel"), Outcome.CANCELLED, "lower_bound", None, id="143, our TERM"
        ),
        pytest.param(
            Evidence(code=0, stopped_by="cancel"), Outcome.CANCELLED, "lower_bound", None, id="0 after our TERM"
        ),
        pytest.param(
            Evidence(code=1, log_tail=CUDA), Outcome.OUT_OF_MEMORY, "lower_bound", "vram", id="CUDA at the end"
        ),
        pytest.param(
            Evidence(code=1, log_tail=CUDA + "step\n" * 10000),
            Outcome.FAILED,
            "lower_bound",
            None,
            id="10000 lines before",
        ),
        pytest.param(Evidence(lost="the node rebooted"), Outcome.LOST, "lower_bound", None, id="nobody saw it end"),
        pytest.param(
            Evidence(start_error="No such file: ./x"), Outcome.START_FAILED, "nothing", None, id="could not be started"
        ),
        pytest.param(
            Evidence(signal=9, stopped_by="time_limit", time_limit_s=60),
            Outcome.TIMED_OUT,
            "lower_bound",
            None,
            id="its time limit",
        ),
        pytest.param(
            Evidence(signal=9, stopped_by="watchdog", watchdog={"sentence": "watchdog: used much.", "pool": "ram"}),
            Outcome.CAP_EXCEEDED,
            "lower_bound",
            "ram",
            id="the watchdog, RAM",
        ),
        pytest.param(
            Evidence(signal=9, stopped_by="watchdog"), Outcome.CAP_EXCEEDED, "lower_bound", "vram", id="watchdog, VRAM"
        ),
        pytest.param(
            Evidence(code=1, cap_receipt={"cap": 4 * GIB, "asked": GIB, "free": GIB}),
            Outcome.CAP_EXCEEDED,
            "lower_bound",
            "vram",
            id="a receipt of the cap",
        ),
        pytest.param(
            Evidence(code=1, cap_receipt={"cap": 4 * GIB, "asked": GIB}),
            Outcome.OUT_OF_MEMORY,
            "lower_bound",
            "vram",
            id="a receipt that does not say whether the device had room",
        ),
        pytest.param(
            Evidence(code=1, cap_receipt={"cap": 4 * GIB, "asked": GIB, "free": GIB}, receipt_age_s=3600.0),
            Outcome.FAILED,
            "lower_bound",
            None,
            id="refused an hour before it failed of something else",
        ),
        pytest.param(
            Evidence(code=1, cap_receipt={"asked": GIB, "free": GIB}, receipt_age_s=90.0, log_tail=CUDA),
            Outcome.CAP_EXCEEDED,
            "lower_bound",
            "vram",
            id="a while before its end, which its last lines tell",
        ),
        pytest.param(
            Evidence(code=1, log_tail=CUDA, driver_limit={"limit": 10 * GIB, "used": 10 * GIB - 300 * MIB}),
            Outcome.CAP_EXCEEDED,
            "lower_bound",
            "vram",
            id="the driver's limit was reached",
        ),
        pytest.param(
            Evidence(code=1, log_tail=CUDA, driver_limit={"limit": 10 * GIB, "used": 6 * GIB}),
            Outcome.OUT_OF_MEMORY,
            "lower_bound",
            "vram",
            id="the driver's limit was not",
        ),
        pytest.param(
            Evidence(code=1, driver_limit={"limit": GIB, "used": GIB}),
            Outcome.FAILED,
            "lower_bound",
            None,
            id="at its limit, and it failed of something else",
        ),
        pytest.param(
            Evidence(code=1, group={"oom": 1, "oom_kill": 1, "memory_max": GIB, "memory_peak": GIB}, log_tail=CUDA),
            Outcome.CAP_EXCEEDED,
            "lower_bound",
            "ram",
            id="a child died at the RAM limit: the group's counter before any text",
        ),
        pytest.param(
            Evidence(signal=9, group={"oom": 0, "oom_kill": 1, "memory_max": GIB}),
            Outcome.OUT_OF_MEMORY,
            "lower_bound",
            "ram",
            id="killed below its own limit",
        ),
        pytest.param(
            Evidence(signal=9, oom_kill_delta=2, group={"oom": 0, "oom_kill": 0, "memory_max": GIB}),
            Outcome.FAILED,
            "lower_bound",
            None,
            id="the kernel killed others",
        ),
        pytest.param(
            Evidence(signal=9, group={"oom": 1, "oom_kill": 1}, stopped_by="cancel"),
            Outcome.CANCELLED,
            "lower_bound",
            None,
            id="our own record before everything",
        ),
        pytest.param(
            Evidence(signal=9, group={"oom": "x", "oom_kill": None}, oom_kill_delta=0),
            Outcome.FAILED,
            "lower_bound",
            None,
            id="counters that are none",
        ),
        pytest.param(
            Evidence(code=1, cap_receipt={"cap": 4 * GIB, "asked": GIB, "free": 7}),
            Outcome.OUT_OF_MEMORY,
            "lower_bound",
            "vram",
            id="a receipt, but the device itself was full",
        ),
        pytest.param(
            Evidence(code=1, cap_receipt={"cap": "much", "asked": None}),
            Outcome.OUT_OF_MEMORY,
            "lower_bound",
            "vram",
            id="a receipt with nonsense in it",
        ),
        pytest.param(
            Evidence(code=0, cap_receipt={"cap": GIB}), Outcome.COMPLETED, "need", None, id="refused once and survived"
        ),
        pytest.param(
            Evidence(code=1, log_tail=TORCH.format(asked="2.00", free="9.00")),
            Outcome.CAP_EXCEEDED,
            "lower_bound",
            "vram",
            id="torch: a limit was set and the card had room",
        ),
        pytest.param(
            Evidence(code=1, log_tail=TORCH.format(asked="2.00", free="1.00")),
            Outcome.OUT_OF_MEMORY,
            "lower_bound",
            "vram",
            id="torch: the card was full",
        ),
        pytest.param(
            Evidence(code=1, log_tail=CUPY), Outcome.CAP_EXCEEDED, "lower_bound", "vram", id="cupy names its limit"
        ),
        pytest.param(
            Evidence(code=1, log_tail="a\nMemoryError\n"), Outcome.OUT_OF_MEMORY, "lower_bound", "ram", id="RAM"
        ),
        pytest.param(Evidence(signal=11), Outcome.FAILED, "lower_bound", None, id="a crash of its own"),
        pytest.param(
            Evidence(requested="cancel", lost="its runner was killed"),
            Outcome.CANCELLED,
            "lower_bound",
            None,
            id="asked for, and gone unseen",
        ),
        pytest.param(
            Evidence(signal=15, requested="cancel"),
            Outcome.CANCELLED,
            "lower_bound",
            None,
            id="asked for, ended by TERM",
        ),
        pytest.param(
            Evidence(code=0, requested="cancel"),
            Outcome.COMPLETED,
            "need",
            None,
            id="was done before it could be asked",
        ),
        pytest.param(
            Evidence(requested="time_limit", lost="x"),
            Outcome.TIMED_OUT,
            "lower_bound",
            None,
            id="limit without a runner",
        ),
    ],
)
def test_matrix(evidence: Evidence, outcome: Outcome, feeds: str, memory: str | None) -> None:
    found = decide_outcome(evidence)
    assert (found.outcome, found.feeds, found.memory) == (outcome, feeds, memory), found.sentence
    assert found.sentence.endswith(".") or evidence.start_error


@pytest.mark.parametrize(
    ("evidence", "sentence"),
    [
        (
            Evidence(code=137),
            "Killed by something else (SIGKILL): nobody here sent it. Host out of memory? The kernel does not say.",
        ),
        (
            Evidence(code=137, oom_kill_delta=0),
            "Killed by something else (SIGKILL): nobody here sent it, "
            "and the kernel killed nothing for lack of RAM meanwhile.",
        ),
        (
            Evidence(signal=9, oom_kill_delta=1),
            "Killed by something else (SIGKILL): nobody here sent it. "
            "For lack of RAM the kernel killed 1 process on this machine meanwhile: most likely this one.",
        ),
        (
            Evidence(signal=9, oom_kill_delta=3, group={"oom_kill": 0}),
            "Killed by something else (SIGKILL): nobody here sent it. "
            "For lack of RAM the kernel killed 3 processes meanwhile, but none of it.",
        ),
        (
            Evidence(signal=9, group={"oom": 2, "oom_kill": 2, "memory_max": GIB, "memory_peak": GIB}),
            "RAM limit exceeded: the kernel killed it at its own limit of 1.0 GiB; at most 1.0 GiB were in use.",
        ),
        (
            Evidence(signal=9, group={"oom": 0, "oom_kill": 2, "memory_max": GIB}),
            "RAM ran out, the machine's or what all jobs may have of it: the kernel killed 2 processes of this one, "
            "below its own limit of 1.0 GiB.",
        ),
        (
            Evidence(code=1, log_tail=CUDA),
            "GPU out of memory (card or cap): its last lines say so, and nothing proves which of the two.",
        ),
        (Evidence(signal=15), "Killed from outside by SIGTERM: nobody here sent it."),
        (Evidence(signal=15, lost=REBOOTED), "Lost: ended by SIGTERM, and its node has rebooted since."),
        (Evidence(code=143, stopped_by="signal", lost=REBOOTED), f"Lost: ended by SIGTERM, and {REBOOTED}."),
        (
            Evidence(signal=9, stopped_by="signal", killed=True, lost=REBOOTED),
            f"Lost: killed after the grace, and {REBOOTED}.",
        ),
        (Evidence(signal=15, stopped_by="cancel", requested="cancel", lost=REBOOTED), "Cancelled: ended by SIGTERM."),
        (Evidence(signal=15, stopped_by="signal"), "Cancelled: ended by SIGTERM."),
        (Evidence(code=3, lost=REBOOTED), "Failed with code 3."),
        (Evidence(code=3), "Failed with code 3."),
        (
            Evidence(signal=9, stopped_by="cancel", killed=True, requested_by="bob"),
            "Cancelled by bob: killed after the grace.",
        ),
        (Evidence(code=0, stopped_by="cancel"), "Cancelled: ended with code 0."),
        (
            Evidence(signal=15, stopped_by="time_limit", time_limit_s=60),
            "Reached its time limit of 60 s: ended by SIGTERM.",
        ),
        (Evidence(lost="the node rebooted while it ran"), "Lost: the node rebooted while it ran."),
        (Evidence(lost="its runner was killed", group={"oom": 0, "oom_kill": 0}), "Lost: its runner was killed."),
        (
            Evidence(lost="its runner was killed", group={"oom": 1, "oom_kill": 2, "memory_max": GIB}),
            "RAM limit exceeded: the kernel killed it at its own limit of 1.0 GiB. That is from its control group: "
            "its runner was killed.",
        ),
        (Evidence(start_error="could not start: No such file: ./x"), "Could not be started: No such file: ./x."),
        (
            Evidence(code=1, cap_receipt={"cap": 4 * GIB, "asked": GIB, "used": 3 * GIB + 1, "free": 9 * GIB}),
            "It ran past its cap of 4.0 GiB (1.0 GiB asked, 3.0 GiB used, 9.0 GiB free on the device).",
        ),
    ],
)
def test_sentences(evidence: Evidence, sentence: str) -> None:
    assert decide_outcome(evidence).sentence == sentence


def test_leftovers_are_a_note_and_not_an_outcome() -> None:
    found = decide_outcome(Evidence(code=0, leftovers=2))
    assert found.outcome is Outcome.COMPLETED
    assert found.notes == ("2 processes were left behind.",)


@pytest.mark.parametrize(("code", "said"), [(3, ""), (126, ", which a shell has for: found, but not to be run"),
                                            (127, ", which a shell has for: not found")])  # fmt: skip
def test_the_codes_that_shells_give_a_meaning_are_told_with_it(code: int, said: str) -> None:
    assert decide_outcome(Evidence(code=code)).sentence == f"Failed with code {code}{said}."

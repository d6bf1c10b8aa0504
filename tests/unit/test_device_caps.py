"""Which cap is in force, and on what evidence: the best that holds, and nothing is called a cap without proof."""

from __future__ import annotations

import pytest

from placement.domain.containing.device_caps import Applied, CapKind, Given, cap_in_force
from tests.builders import GIB, MIB

CAP = 12 * GIB
POOL = CAP - 512 * MIB
ALL = Given(CAP, driver_limit=CAP, instance=20 * GIB, mps=CAP, applied=(Applied(7, "torch", POOL),))


@pytest.mark.parametrize(
    "given, kind, held, sentence",
    [
        pytest.param(ALL, CapKind.DRIVER, CAP, "capped by the driver at 12.0 GiB", id="the driver before all"),
        pytest.param(
            Given(CAP, instance=20 * GIB, mps=CAP),
            CapKind.INSTANCE,
            20 * GIB,
            "capped by its MIG instance, which has 20.0 GiB",
            id="a slice is the cap, whatever was granted",
        ),
        pytest.param(
            Given(CAP, mps=CAP, applied=(Applied(7, "torch", POOL),)),
            CapKind.MPS,
            CAP,
            "capped by the MPS server at 12.0 GiB",
            id="MPS before a framework",
        ),
        pytest.param(
            Given(CAP, simulated=True),
            CapKind.FRAMEWORK,
            CAP,
            "capped by the simulated device at 12.0 GiB",
            id="a simulated device",
        ),
        pytest.param(
            Given(CAP, applied=(Applied(7, "torch", POOL),), on_device=(7,), context=512 * MIB),
            CapKind.FRAMEWORK,
            CAP,
            "capped in torch at 11.5 GiB and its context (receipt of 1 process)",
            id="a receipt",
        ),
        pytest.param(
            Given(CAP, applied=(Applied(7, "torch", GIB, 2), Applied(8, "torch", GIB, 2)), context=512 * MIB),
            CapKind.FRAMEWORK,
            3 * GIB,
            "capped in torch at 12.0 GiB together (receipt of 2 processes)",
            id="processes that share it",
        ),
        pytest.param(
            Given(CAP, applied=(Applied(7, "torch", 12 * GIB, None, True), Applied(8, "torch", 12 * GIB, None, True))),
            CapKind.FRAMEWORK,
            CAP,
            "capped in torch at 12.0 GiB (receipt of 2 processes)",
            id="one limit on all of them",
        ),
        pytest.param(
            Given(CAP, applied=(Applied(7, "torch", POOL), Applied(8, "torch", POOL)), context=512 * MIB),
            CapKind.FRAMEWORK,
            2 * CAP,
            "capped in torch at up to 11.5 GiB each (receipt of 2 processes); nobody said how many share 12.0 GiB, "
            "so their sum is watched",
            id="nobody said how many: their sum is no cap",
        ),
        pytest.param(
            Given(CAP, applied=(Applied(7, "jax"),)),
            CapKind.FRAMEWORK,
            None,
            "capped in jax (receipt of 1 process)",
            id="a receipt without a figure",
        ),
        pytest.param(
            Given(CAP, applied=(Applied(7, "torch", POOL),), on_device=(7, 9)),
            CapKind.WATCHED,
            None,
            "watched, not capped: of its processes on the device pid 9 has no receipt (1 process told one)",
            id="one of its processes was told nothing",
        ),
        pytest.param(
            Given(CAP, armed=(7,)),
            CapKind.WATCHED,
            None,
            "watched, not capped: torch has not used the device yet (it would be told then; armed in 1 process)",
            id="armed is not applied",
        ),
        pytest.param(
            Given(CAP), CapKind.WATCHED, None, "watched, not capped: no receipt came so far", id="just started"
        ),
        pytest.param(
            Given(CAP, on_device=(9,)), CapKind.WATCHED, None, "watched, not capped: no receipt came", id="env -i"
        ),
        pytest.param(
            Given(CAP, shim_off=True),
            CapKind.WATCHED,
            None,
            "watched, not capped: the submission turned the shim off",
            id="turned off",
        ),
        pytest.param(Given(None), CapKind.WATCHED, None, "no cap", id="no cap was granted"),
    ],
)
def test_the_ladder(given: Given, kind: CapKind, held: int | None, sentence: str) -> None:
    found = cap_in_force(given)
    assert (found.kind, found.bytes, found.sentence) == (kind, held, sentence)


def test_the_evidence_says_who_was_told_what_it_stands_on_and_what_stayed() -> None:
    found = cap_in_force(
        Given(CAP, driver_why_not="Function Not Found", armed=(8, 7), context=GIB, context_runs=4, kept=("X",))
    )
    assert found.as_data()["evidence"] == {
        "armed": [7, 8],
        "applied": [],
        "driver": "Function Not Found",
        "kept": ["X"],
        "context": GIB,
        "context_runs": 4,
    }

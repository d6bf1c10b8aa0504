from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.domain.samples import PoolSample, PoolState
from placement.domain.declaring.inventory import Change, Known, changes

GIB = 2**30


def pool(uuid: str, index: int, total: int | None = 24 * GIB, **fields: Any) -> PoolSample:
    base = {"kind": "vram", "name": f"gpu{index}", "state": PoolState.OK, "model": "A5000", "backend": "CUDA"}
    return PoolSample(pool=uuid, index=index, total=total, **{**base, **fields})


def stored(known: list[Known], made: list[Change]) -> list[Known]:
    """Return what the database holds after the changes."""
    rows = {device.uuid: device for device in known}
    blank = Known("", "", "", 0, "", "CUDA", 0, True, False, False)
    for change in made:
        rows[change.uuid] = replace(rows.get(change.uuid, blank), uuid=change.uuid, **change.fields)
    return list(rows.values())


def test_new_devices_are_declared_with_what_they_report() -> None:
    made = changes("atlas", [], [pool("GPU-a", 0), pool("GPU-b", 1, 48 * GIB)])

    assert [(c.uuid, c.new, c.fields["name"], c.fields["declared"]) for c in made] == [
        ("GPU-a", True, "gpu0", 24 * GIB),
        ("GPU-b", True, "gpu1", 48 * GIB),
    ]
    assert made[0].sentence == "gpu0 found: A5000, 24.0 GiB declared."


def test_after_a_new_order_of_cards_names_and_declarations_stay_with_the_cards() -> None:
    known = stored([], changes("atlas", [], [pool("GPU-a", 0), pool("GPU-b", 1)]))
    known = [replace(d, declared=20 * GIB) if d.uuid == "GPU-a" else d for d in known]

    made = changes("atlas", known, [pool("GPU-b", 0), pool("GPU-a", 1)])

    assert {c.uuid: dict(c.fields) for c in made} == {"GPU-a": {"index": 1}, "GPU-b": {"index": 0}}
    after = {d.uuid: (d.name, d.declared) for d in stored(known, made)}
    assert after == {"GPU-a": ("gpu0", 20 * GIB), "GPU-b": ("gpu1", 24 * GIB)}


def test_a_card_that_takes_the_number_of_another_gets_a_name_that_is_free() -> None:
    known = stored([], changes("atlas", [], [pool("GPU-a", 0)]))

    made = changes("atlas", known, [pool("GPU-new", 0), pool("GPU-a", 1)])

    assert next(c for c in made if c.new).fields["name"] == "gpu1"


def test_a_real_card_that_is_missing_or_unreadable_keeps_its_row_untouched() -> None:
    known = stored([], changes("atlas", [], [pool("GPU-a", 0)]))

    assert changes("atlas", known, []) == []
    assert changes("atlas", known, [pool("GPU-a", 5, None, state=PoolState.UNREADABLE, model="")]) == []


def test_a_card_that_was_never_read_is_not_declared_yet() -> None:
    assert changes("atlas", [], [pool("GPU-a", 0, None, state=PoolState.NOT_READY)]) == []


def test_a_simulated_device_retires_and_comes_back() -> None:
    simulated = pool("SIM-0", 0, simulated=True)
    known = stored([], changes("atlas", [], [simulated]))

    gone = changes("atlas", known, [])
    known = stored(known, gone)
    back = changes("atlas", known, [simulated])

    assert gone == [Change("SIM-0", {"retired": True}, "gpu0 is no longer simulated here.")]
    assert [dict(c.fields) for c in back] == [{"retired": False, "name": "gpu0"}]


def test_a_simulated_device_of_another_size_is_declared_with_it() -> None:
    known = stored([], changes("atlas", [], [pool("SIM-0", 0, simulated=True, model="simulated 24 GiB")]))

    made = changes("atlas", known, [pool("SIM-0", 0, 80 * GIB, simulated=True, model="simulated 80 GiB")])

    assert [c.fields["declared"] for c in made] == [80 * GIB]


def test_a_card_that_moved_to_another_machine_is_declared_there() -> None:
    known = stored([], changes("atlas", [], [pool("GPU-a", 0)]))

    made = changes("borea", known, [pool("GPU-a", 0)])

    assert [dict(c.fields) for c in made] == [{"node": "borea", "name": "gpu0"}]


@settings(max_examples=100)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), unique_by=lambda p: p[0], max_size=6),
        min_size=1,
        max_size=4,
    )
)
def test_a_second_look_changes_nothing_and_names_stay_unique(looks: list[list[tuple[str, bool]]]) -> None:
    known: list[Known] = []
    for look in looks:
        found = [pool(f"GPU-{u}", i, simulated=sim, name=f"gpu{i}") for i, (u, sim) in enumerate(look)]
        known = stored(known, changes("atlas", known, found))
        names = [d.name for d in known if not d.retired]

        assert changes("atlas", known, found) == []
        assert len(names) == len(set(names))

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.domain.forecasting import progress
from placement.domain.forecasting.progress import Seen, by_length, left, moved, parse

BAR = " 45%|████▌     | 450/1000 [01:23<01:41,  5.40it/s]"


@pytest.mark.parametrize(
    "tail, share",
    [
        pytest.param(BAR, 0.45, id="tqdm"),
        pytest.param(f"\r{BAR}\r 46%|████▌     | 461/1000 [01:25<01:39,  5.4it/s]", 0.461, id="the last state wins"),
        pytest.param("Loading:  3%|3  | 31.2M/1.02G [00:01<00:35, 27.5MB/s]", 0.03, id="units"),
        pytest.param("\x1b[32m 45%\x1b[0m|████▌     | 450/1000 [01:23<01:41,  5.40it/s]", 0.45, id="colours inside"),
        pytest.param(" 45%|####5     | 450/1000 [1:01:23<2:01:41,  5.40s/it]", 0.45, id="ascii and hours"),
        pytest.param("  0%|          | 0/1000 [00:00<?, ?it/s]", 0.0, id="not begun"),
        pytest.param("TIDEGATE progress=0.42", 0.42, id="told as a share"),
        pytest.param("TIDEGATE progress=42%\n", 0.42, id="told in percent"),
        pytest.param("TIDEGATE progress = 1\n", 1.0, id="told to be done"),
        pytest.param(f"TIDEGATE progress=0.1\n{BAR}\nTIDEGATE progress=0.2", 0.2, id="the later one"),
        pytest.param("Epoch 3/10\nloss 0.3", 0.2, id="two of ten epochs are over"),
        pytest.param("Epoch [3/10], Step [50/100], Loss: 0.1", 0.25, id="a step of an epoch"),
        pytest.param("Epoch 3/10\n450/1000 [=====>......] - ETA: 1:41 - loss: 0.3", 0.245, id="keras"),
        pytest.param("Epoch 3/10\n\x1b[1m450/1000\x1b[0m \x1b[32m━━━━━━━━━\x1b[0m 3s 5ms/step", 0.245, id="keras 3"),
        pytest.param(f"Epoch 2/4: {BAR}", 0.3625, id="an epoch before a bar"),
        pytest.param("step 120/1000 loss 2.1", 0.12, id="steps"),
        pytest.param("iteration: 120 of 1000", 0.12, id="iterations"),
        pytest.param("global_step=7/8", 0.875, id="global steps"),
        pytest.param("100%|██████████| 5/5 [00:01<00:00,  4.9it/s]", 1.0, id="done, and nothing follows"),
    ],
)
def test_a_log_tells_how_far_its_run_is(tail: str, share: float) -> None:
    seen = parse(tail.encode())
    assert seen is not None
    assert seen.share == pytest.approx(share)


@pytest.mark.parametrize(
    "tail",
    [
        "",
        "accuracy 45%",
        "45% done",
        "2026/11/29 started",
        "data/2/5 [ok]",
        "TIDEGATE progress=42",
        "TIDEGATE progress=-0.5",
        " 45%|██| 7/1000 [01:23<01:41, 5.4it/s]",  # the percent is not that of the counts
        "step 5/0",
        "step 12/10",
        "footstep 1/2",
        "Epoch 3:  45%|████▌     | 450/1000 [01:23<01:41,  5.40it/s]",  # of how many epochs?
        "100%|██████████| 5/5 [00:01<00:00,  4.9it/s]\nnow the real work begins",
    ],
)
def test_what_looks_like_it_is_none(tail: str) -> None:
    assert parse(tail.encode()) is None


def test_an_epoch_that_scrolled_away_is_remembered() -> None:
    first = parse(f"Epoch 3/10\n{BAR}".encode())
    assert first is not None
    assert first.epoch == (3, 10)
    later = parse(f"{BAR}\r".encode() * 200, first.epoch)
    assert later is not None
    assert later.share == pytest.approx(0.245)


def test_the_time_left_is_the_logs_else_by_pace() -> None:
    seen = parse(BAR.encode())
    assert seen is not None
    assert left(seen, 83) == 101
    assert left(Seen(0.25), 100) == 300
    assert left(Seen(0.01), 100) is None


def test_by_its_usual_length_it_is_never_done() -> None:
    assert by_length(30, 120) == 0.25
    assert by_length(500, 120) == 0.99
    assert by_length(30, None) is None
    assert by_length(30, 0) is None


def test_small_moves_are_not_written() -> None:
    assert moved(None, 0.0)
    assert moved(0.3, None)
    assert not moved(None, None)
    assert not moved(0.3, 0.304)
    assert moved(0.3, 0.305)
    assert moved(0.998, 1.0)


@given(st.binary(max_size=400))
def test_no_bytes_are_too_strange(raw: bytes) -> None:
    seen = parse(raw)
    assert seen is None or 0 <= seen.share <= 1


@given(st.text(alphabet="0123456789%|/[]<:?. \r\nEpochstepTIDGA=━█", max_size=120))
def test_no_text_says_less_than_nothing_or_more_than_all(text: str) -> None:
    seen = parse(text.encode(), (2, 3))
    assert seen is None or 0 <= seen.share <= 1


def test_a_long_tail_is_quick() -> None:
    for tail in ("1" * 9000, "45%|" * 2000, "step " * 1600, "[=" * 4000, "1/1 " * 2000 + "━" * 3000, " " * 8000):
        began = time.thread_time()
        parse(tail.encode())
        assert time.thread_time() - began < 0.05, tail[:10]
    assert progress.TAIL == 8192

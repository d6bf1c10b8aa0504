"""The head of a batch script: what is taken, what is left and why."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.domain.submitting.headers import read

SCRIPT = """#!/bin/bash
# trains a little
#SBATCH --job-name="fine tune" --time=1-02:30
#SBATCH -G 1 -p long
##SBATCH --mem=1G
#SBATCH --array=1-10%2

python train.py --part $SLURM_ARRAY_TASK_ID > ${SLURM_JOB_ID}.txt
#SBATCH --time=5
"""


def test_a_script_fills_fields_and_says_what_it_took() -> None:
    head = read(SCRIPT)
    assert head.fields == {
        "name": "fine tune",
        "time_limit_s": "1590 min",
        "gpu": "one",
        "array": "10",
        "array_limit": "2",
        "setup": "export SLURM_ARRAY_TASK_ID=$((TIDEGATE_ARRAY_INDEX + 1))",
    }
    assert head.taken[1] == "--time=1-02:30: time limit 1590 min"
    assert head.left == (
        "--partition=long: there is one queue here",
        "$SLURM_JOB_ID: it is not set here; TIDEGATE_JOB_ID and the like are",
    )


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("--time=30", {"time_limit_s": "30 min"}),
        ("--time=30:30", {"time_limit_s": "1830 s"}),
        ("-t 2:00:00", {"time_limit_s": "2 h"}),
        ("-t1-0", {"time_limit_s": "24 h"}),
        ("--time=0", {}),
        ("--time=soon", {}),
        ("--gres=gpu:1", {"gpu": "one"}),
        ("--gres=gpu:a100:1", {"gpu": "one"}),
        ("--gres=gpu", {"gpu": "one"}),
        ("--gpus=a100:1", {"gpu": "one"}),
        ("--gpus 2", {"gpu": "group", "min_devices": "2", "max_devices": "2"}),
        ("--gres=gpu:a100:4", {"gpu": "group", "min_devices": "4", "max_devices": "4"}),
        ("--gpus=65", {}),
        ("--gres=gpu:0", {"gpu": "none"}),
        ("--gres=tmp:10G", {}),
        ("--container-image=nvcr.io#nvidia/pytorch:25.01", {"image": "nvcr.io/nvidia/pytorch:25.01"}),
        ("--container-image=docker://team/train:2", {"image": "team/train:2"}),
        ("--container-image=/images/a.sqsh", {}),
        ("--mem=16G", {"declared_ram": "16 GiB"}),
        ("--mem=4000", {"declared_ram": "4000 MiB"}),
        ("--mem=0", {}),
        ("--array=0-9", {"array": "10", "setup": "export SLURM_ARRAY_TASK_ID=$TIDEGATE_ARRAY_INDEX"}),
        ("--array=0-20:5", {"array": "5", "setup": "export SLURM_ARRAY_TASK_ID=$((TIDEGATE_ARRAY_INDEX * 5))"}),
        ("--array=1,3,7", {}),
        ("--array=9-1", {}),
        ("-D /data", {"cwd": "/data"}),
        ("-D here", {}),
        ("--exclusive", {"exclusive": "machine"}),
        ("--comment='for ada'", {"note": "for ada"}),
        ("--mail-type=END", {}),
        ("--wrap 'open", {}),
    ],
)
def test_each_option_is_taken_or_named(line: str, fields: dict[str, str]) -> None:
    head = read(f"#!/bin/sh\n#SBATCH {line}\necho\n")
    assert head.fields == fields
    assert len(head.taken) + len(head.left) == 1
    assert bool(head.taken) == bool(fields)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text("-=:%,'\"# atJGarymegpu0123456789é", max_size=40), max_size=5))
def test_no_script_raises(lines: list[str]) -> None:
    head = read("\n".join(f"#SBATCH {line}" for line in lines))
    assert all(isinstance(value, str) for value in head.fields.values())

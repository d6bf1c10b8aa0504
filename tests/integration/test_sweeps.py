"""A sweep: one submission, a job for each combination of values, all of them or none."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from calibration.models import Sediment, params_digest
from placement import estimates
from placement.domain.errors import Infeasible, Refused
from placement.domain.submitting.submission import Submission
from placement.models import AuditEntry, IrrelevantArgument, Job, JobArray, Role, Workload
from placement.services import groups, sweeps
from tests.integration.databases import on, together
from tests.integration.rows import GIB, a_machine, a_user

pytestmark = pytest.mark.django_db
COMMAND = "python /tmp/train.py --lr {lr} --seed {seed}"
AXES = {"lr": ("0.1", "0.01"), "seed": ("1", "2", "3")}


@pytest.fixture
def ada() -> Any:
    a_machine()
    return a_user("ada", Role.ADMIN)


def asked(**more: Any) -> Submission:
    return Submission(**{"name": "", "command": COMMAND, "cwd": "/tmp", "gpu": "one", "sweep": AXES, **more})


def learned(job: Job, vram: int, seconds: float = 600.0) -> None:
    """Let runs with this job's key have been measured."""
    for _ in range(3):
        Sediment.objects.create(
            workload=job.key_workload, fingerprint=job.key_fingerprint, params=job.key_params,
            params_digest=params_digest(job.key_params), script=job.key_script, workers=1, at=timezone.now(),
            completed=True, outcome="completed", peaks={"vram": vram, "ram": GIB}, seconds_to_peak={"vram": 5.0},
            duration=seconds, samples=100, user="ada", owner="job:0",
        )  # fmt: skip
    estimates.forget()


def test_each_combination_becomes_a_job_with_its_own_command_key_and_estimate(ada: Any) -> None:
    first = sweeps.submit(ada, asked(declared_vram=GIB, array_limit=2), form_key="k")
    array = JobArray.objects.get()
    made = list(Job.objects.order_by("pk"))
    assert (array.size, array.limit, [job.array_index for job in made]) == (6, 2, list(range(6)))
    assert made[0] == first
    assert made[4].command == "python /tmp/train.py --lr 0.01 --seed 2"
    assert made[4].name == "python /tmp/train.py --lr 0.01 --seed 2"
    assert made[4].params == {"lr": "0.01", "seed": "2"}
    assert {job.key_workload for job in made} == {"ada: python"}
    assert len({job.key_params for job in made}) == 6
    assert made[4].estimate["pools"]["vram"]["need"] == GIB
    assert array.sweep["axes"] == {name: list(values) for name, values in AXES.items()}
    assert array.sweep["command"] == COMMAND
    assert sweeps.submit(ada, asked(), form_key="k") == first
    assert Job.objects.count() == 6


@pytest.mark.django_db(transaction=True)
def test_it_is_stored_by_postgresql_too_and_twice_at_once_it_is_one(
    transactional_db: None, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with on(postgres_url, monkeypatch):
        a_machine()
        user = a_user("ada", Role.ADMIN)
        firsts = together(*[lambda: sweeps.submit(user, asked(declared_vram=GIB), form_key="k")] * 2)
        assert firsts[0].pk == firsts[1].pk
        made = list(Job.objects.order_by("pk"))
        assert [job.array_index for job in made] == list(range(6))
        assert JobArray.objects.get().sweep["axes"]["seed"] == ["1", "2", "3"]
        assert made[5].command == "python /tmp/train.py --lr 0.01 --seed 3"
        assert made[5].params == {"lr": "0.01", "seed": "3"}
        assert made[5].argv is None
        assert made[5].estimate["pools"]["vram"]["need"] == GIB


def test_an_argument_list_is_filled_without_a_shell(ada: Any) -> None:
    sweeps.submit(ada, asked(command="", argv=("echo", "lr={lr}"), sweep={"lr": ("a b", "c")}))
    made = Job.objects.order_by("pk")
    assert [job.argv for job in made] == [["echo", "lr=a b"], ["echo", "lr=c"]]
    assert sweeps.preview(ada, asked(command="", argv=("echo", "{lr}"), sweep={"lr": ("1",)})).members == (
        ("lr=1", "echo 1"),
    )


def test_values_that_do_not_change_memory_are_learned_as_one_and_stay_marked(ada: Any) -> None:
    sweeps.submit(ada, asked(sweep_same=("seed",)))
    assert len(set(Job.objects.values_list("key_params", flat=True))) == 2
    assert IrrelevantArgument.objects.get().argument == "--seed"
    assert AuditEntry.objects.filter(action="mark_argument").count() == 1
    later = sweeps.submit(ada, Submission(name="", command=COMMAND.format(lr="0.1", seed="9"), cwd="/tmp", gpu="one"))
    assert later.key_params == Job.objects.order_by("pk").first().key_params


@pytest.mark.parametrize("command", ["echo {lr} | sort {seed}", "python /tmp/a.py --out {lr}-{seed}"])
def test_what_is_no_argument_of_its_own_cannot_be_left_out(ada: Any, command: str) -> None:
    with pytest.raises(Refused, match="no argument of its own"):
        sweeps.submit(ada, asked(command=command, sweep_same=("seed",)))
    assert not Job.objects.exists()


def test_one_job_that_can_never_start_keeps_all_from_being_stored(ada: Any) -> None:
    for lr, need in (("0.1", GIB), ("0.01", 30 * GIB)):
        learned(sweeps.submit(ada, asked(sweep={"lr": (lr,), "seed": ("1",)})), need)
    with pytest.raises(Infeasible, match=r"None was submitted, because of lr=0.01, seed=1: "):
        sweeps.submit(ada, asked(sweep={"lr": ("0.1", "0.01"), "seed": ("1",)}))
    assert Job.objects.count() == JobArray.objects.count() == 2


def test_a_workloads_parameters_are_swept(ada: Any) -> None:
    parameters = [{"name": "lr", "default": "1", "matters": False}, {"name": "bs", "default": "8", "matters": True}]
    Workload.objects.create(name="fit", command="fit --lr {lr} --bs {bs}", parameters=parameters)
    more = {"command": "", "workload": "fit", "params": {"bs": "4"}, "name": "fit"}
    sweeps.submit(ada, asked(**more, sweep={"lr": ("0.1", "a b")}))
    made = Job.objects.order_by("pk")
    assert [job.command for job in made] == ["fit --lr 0.1 --bs 4", "fit --lr 'a b' --bs 4"]
    assert [job.name for job in made] == ["fit lr=0.1", "fit lr=a b"]
    assert len({job.key_params for job in made}) == 1
    with pytest.raises(Refused, match="no parameter seed"):
        sweeps.submit(ada, asked(**more, sweep={"seed": ("1",)}))


def test_a_preview_counts_shows_and_adds_up(ada: Any) -> None:
    for seed, need in (("1", 4 * GIB), ("2", 6 * GIB)):
        learned(sweeps.submit(ada, asked(sweep={"lr": ("0.1",), "seed": (seed,)})), need)
    Job.objects.all().delete()
    seen = sweeps.preview(ada, asked(sweep={"lr": ("0.1",), "seed": ("1", "2")}))
    assert (seen.count, seen.asked) == (2, 2)
    assert seen.members[1] == ("lr=0.1, seed=2", "python /tmp/train.py --lr 0.1 --seed 2")
    vram = seen.needs[0]
    assert vram.kind == "vram"
    assert vram.least is not None
    assert vram.most is not None
    assert 4 * GIB <= vram.least < vram.most <= 7 * GIB
    assert seen.look_same == ("seed",)
    assert seen.first.fits_now
    assert seen.at_once == 2
    assert seen.seconds == 600.0
    limited = sweeps.preview(ada, asked(sweep={"lr": ("0.1",), "seed": ("1", "2")}, array_limit=1))
    assert limited.seconds == 1200.0
    assert not Job.objects.exists()


def test_a_preview_of_many_asks_about_some_of_them(ada: Any) -> None:
    seen = sweeps.preview(ada, asked(sweep={"lr": ("1",), "seed": tuple(map(str, range(1000)))}))
    assert (seen.count, seen.asked, len(seen.members)) == (1000, 24, 4)
    assert seen.needs[0].most is None


def test_a_sweep_that_fails_fast_three_times_is_held_as_one_and_released_as_one(ada: Any) -> None:
    sweeps.submit(ada, asked(declared_vram=GIB))
    other = sweeps.submit(ada, asked(declared_vram=GIB))
    made = list(Job.objects.filter(array_id=JobArray.objects.order_by("pk").first().pk).order_by("pk"))
    for job in made[:3]:
        Job.objects.filter(pk=job.pk).update(
            state="finished", outcome="failed", ended_at=timezone.now(), duration_s=0.1, exit_code=2
        )
    made[2].refresh_from_db()
    held = groups.consider(made[2])
    assert held is not None
    assert Job.objects.filter(held_by="tidegate").count() == 3
    other.refresh_from_db()
    assert other.held_by == ""
    made[3].refresh_from_db()
    assert groups.release(ada, made[3]) == 3
    assert groups.consider(made[2]) is None


@pytest.mark.slow
def test_a_thousand_jobs_are_made_within_seconds(ada: Any) -> None:
    began = timezone.now()
    sweeps.submit(ada, asked(sweep={"lr": ("1",), "seed": tuple(map(str, range(1000)))}))
    assert Job.objects.count() == 1000
    assert (timezone.now() - began).total_seconds() < 15

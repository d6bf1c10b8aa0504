from __future__ import annotations

import pytest

from calibration.domain.keys import typed_command_key, workload_key


def key(command, **more):
    facts = {"user": "ann", "setup": "", "cwd": "/home/ann/p", "workers": 1} | more
    return typed_command_key(command=command, **facts)


def test_order_and_spelling_of_options_do_not_matter():
    one = key("python train.py --lr 0.1 --layers=4 --amp")
    other = key("python  train.py --amp --layers 4 '--lr=0.1'")
    assert one.params == other.params
    assert one.workload == other.workload == "ann: python"
    assert one.script == one.source == "/home/ann/p/train.py"


@pytest.mark.parametrize(
    "other",
    [
        "python train.py --lr 0.2",
        "python train.py --lr 0.1 --amp",
        "python train.py",
        "python -O train.py --lr 0.1",
        "python other.py --lr 0.1",
        "A=1 python train.py --lr 0.1",
        "python train.py --lr 0.1 b a",
        "python train.py --lr 0.1 | tee log",
    ],
)
def test_what_may_change_memory_changes_the_key(other):
    assert key("python train.py --lr 0.1").params != key(other).params


def test_positional_arguments_and_repeated_options_keep_their_order():
    assert key("python t.py a b").params != key("python t.py b a").params
    assert key("python t.py --set x=1 --set x=2").params != key("python t.py --set x=2 --set x=1").params


def test_directory_setup_and_user_are_part_of_it():
    base = key("python train.py")
    assert base.params != key("python train.py", cwd="/home/ann/q").params
    assert base.params != key("python train.py", setup="source env/bin/activate").params
    assert base.workload != key("python train.py", user="bob").workload
    assert key("python ./x/../train.py").script == base.script


@pytest.mark.parametrize(
    "command, workload, script, source",
    [
        ("python -u train.py", "ann: python", "/home/ann/p/train.py", "/home/ann/p/train.py"),
        ("python3.11 -W error train.py", "ann: python3.11", "/home/ann/p/train.py", "/home/ann/p/train.py"),
        ("python -m pkg.train --lr 1", "ann: python", "python -m pkg.train", None),
        ("python -c 'print(1)'", "ann: python", "", None),
        ("python", "ann: python", "", None),
        ("./run.sh 3", "ann: run.sh", "/home/ann/p/run.sh", "/home/ann/p/run.sh"),
        ("nohup env A=1 bash run.sh", "ann: bash", "/home/ann/p/run.sh", "/home/ann/p/run.sh"),
        ("torchrun --nproc_per_node 2 train.py --x", "ann: torchrun", "/home/ann/p/train.py", "/home/ann/p/train.py"),
        ("/usr/bin/python3 train.py", "ann: python3", "/home/ann/p/train.py", "/home/ann/p/train.py"),
        ("nvidia-smi -l", "ann: nvidia-smi", "nvidia-smi", None),
        ("bash -c 'cd x && python t.py'", "ann: bash", "", None),
    ],
)  # fmt: skip
def test_program_and_script(command, workload, script, source):
    found = key(command)
    assert (found.workload, found.script, found.source) == (workload, script, source)


@pytest.mark.parametrize(
    "command",
    ["cd x && python t.py", "a | b", "a; b", "python t.py > log", "(a)", "a &", "for i in 1\ndo a\ndone", "echo 'open"],
)
def test_what_only_a_shell_can_take_apart_is_one_argument(command):
    found = key(command)
    assert (found.workload, found.script, found.source) == ("ann: shell", "", None)
    assert [argument.text for argument in found.arguments] == [command]
    assert found.params != key(command + " x").params
    assert found.params == key(f"  {command} ").params


def test_indentation_inside_a_script_counts():
    assert key("a <<E\nif x:\n  y\nE").params != key("a <<E\nif x:\n    y\nE").params


@pytest.mark.parametrize(
    "text, name, look",
    [
        ("--seed 3", "--seed", "seed"),
        ("--random_seed=3", "--random_seed", "seed"),
        ("--out /tmp/x", "--out", "path"),
        ("~/data", "#1", "path"),
        ("model.pt", "#1", "path"),
        ("--run-name fancy", "--run-name", "name"),
        ("--day 2026-08-21", "--day", "date"),
        ("20260821", "#1", "date"),
        ("--lr 0.1", "--lr", None),
        ("1.5e3", "#1", None),
        ("--batch-size 64", "--batch-size", None),
        ("-3", "#1", None),
    ],
)
def test_what_arguments_look_like(text, name, look):
    (argument,) = key(f"python t.py {text}").arguments
    assert (argument.name, argument.text, argument.looks_like, argument.matters) == (name, text, look, True)


def test_an_argument_marked_as_irrelevant_leaves_the_key_whatever_its_value():
    marked = frozenset({"--seed", "#1"})
    one = key("python t.py --seed 3 a.csv --lr 1", irrelevant=marked)
    other = key("python t.py --lr 1 --seed=4 b.csv", irrelevant=marked)
    assert one.params == other.params
    assert one.params != key("python t.py --seed 3 a.csv --lr 2", irrelevant=marked).params
    assert [argument.matters for argument in one.arguments] == [True, False, False]


def test_workers_are_at_least_one():
    assert [key("a", workers=n).workers for n in (-3, 0, 1, 4)] == [1, 1, 1, 4]


def test_a_fingerprint_makes_the_whole_key():
    whole = key("python train.py", workers=2).key("h1")
    assert (whole.workload, whole.fingerprint, whole.script, whole.workers) == (
        "ann: python",
        "h1",
        "/home/ann/p/train.py",
        2,
    )


def test_a_workload_is_keyed_by_its_relevant_parameters_alone():
    params = {"lr": "0.1", "layers": "4"}
    assert workload_key("w", params).params == workload_key("w", dict(reversed(params.items()))).params
    relevant = frozenset({"layers"})
    assert workload_key("w", params, relevant).params == workload_key("w", params | {"lr": "9"}, relevant).params
    assert workload_key("w", params, relevant).params != workload_key("w", params | {"layers": "5"}, relevant).params
    assert workload_key("w", params).params != workload_key("w", params | {"lr": "9"}).params
    assert workload_key("w", params).script == workload_key("w", {}).script == "workload: w"


def test_two_parameters_cannot_be_taken_for_one():
    assert workload_key("w", {"a": "1", "b": "2"}).params != workload_key("w", {"a": '1", "b": "2'}).params
    assert key("python t.py 'a b'").params != key("python t.py a b").params

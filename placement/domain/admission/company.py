"""Whether somebody needs, or has, the machine or a device alone, or has only just come to one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from placement.domain.admission.decision import Check, Code
from placement.domain.admission.demands import Demand
from placement.domain.admission.places import Board, Place, name_of
from placement.domain.world import text
from placement.domain.world.requests import Exclusive, Request
from placement.domain.world.snapshot import Device, Running


def company(board: Board, demand: Demand, place: Place) -> Iterator[Check]:
    """Yield whether somebody needs, or has, the machine or the device alone."""
    there, wanted = board.on_node(place.node.name), demand.request.exclusive
    alone = [r.job for r in board.alone_on(place.node.name)]
    name = place.node.name
    if alone:
        yield _with(Code.EXCLUSIVE_JOB, f"{text.jobs(alone)} has {name} alone.", alone)
    elif wanted is Exclusive.MACHINE and there:
        ids = [r.job for r in there]
        yield _with(Code.EXCLUSIVE_JOB, f"Wants {name} alone; {_run(ids)} there.", ids)
    else:
        yield Check(Code.EXCLUSIVE_JOB, True, f"No job has {name} alone, and none is in the way.")
    if not place.devices:
        return
    asked = [tuple(_on_device(board, device, demand.request)) for device in place.devices]
    for each in zip(*asked, strict=True):  # of several devices the first that says no speaks for all
        against = next((check for check in each if not check.ok), None)
        yield against or (each[0] if len(each) == 1 else replace(each[0], sentence=_nobody(each[0].code, place.label)))


def kept_out_by(board: Board, place: Place, request: Request) -> Iterator[Running]:
    """Yield the jobs on the place's devices whose mere presence is in the way of what is asked for."""
    for device in place.devices:
        here = _others(board, device, request.inside)
        if (
            request.exclusive is Exclusive.DEVICE
            or device.exclusive_only
            or any(r.exclusive is Exclusive.DEVICE for r in here)
        ):
            yield from here
        else:
            yield from (r for r in here if r.cold)


def _others(board: Board, device: Device, inside: int) -> list[Running]:
    """Return who is on a device, less the leftovers there of the job that asks."""
    here = board.on_device(device)
    return [r for r in here if r.job != inside or not r.unheld] if inside else here


def _on_device(board: Board, device: Device, request: Request) -> Iterator[Check]:
    here, name, wanted = _others(board, device, request.inside), name_of(device, board.many), request.exclusive
    taken = [r.job for r in here if r.exclusive is Exclusive.DEVICE or (device.exclusive_only and not r.unheld)]
    if taken:
        yield _with(Code.EXCLUSIVE_DEVICE, f"{text.jobs(taken)} has {name} alone.", taken)
    elif here and (wanted is Exclusive.DEVICE or device.exclusive_only):
        start = f"Wants {name} alone" if wanted is Exclusive.DEVICE else f"{name} takes one job at a time"
        yield _with(Code.EXCLUSIVE_DEVICE, f"{start}; {_are_there(here)}.", [r.job for r in here])
    else:
        yield Check(Code.EXCLUSIVE_DEVICE, True, _nobody(Code.EXCLUSIVE_DEVICE, name))
    yield _settling(board, device, here)


def _nobody(code: Code, name: str) -> str:
    if code is Code.EXCLUSIVE_DEVICE:
        return f"No job has {name} alone, and none is in the way."
    return f"No first run is settling on {name}."


def _run(ids: list[int]) -> str:
    return f"{text.jobs(ids)} {'runs' if len(set(ids)) == 1 else 'run'}"


def _are_there(here: list[Running]) -> str:
    """Return who runs on a device, and who only uses some of it: that holds nothing, so it has nothing alone."""
    held, left = [r.job for r in here if not r.unheld], [r.job for r in here if r.unheld]
    uses = f"{text.jobs(left)} {'uses' if len(left) == 1 else 'use'} some of it without a lease" if left else ""
    return " and ".join(filter(None, (f"{_run(held)} there" if held else "", uses)))


def _with(code: Code, sentence: str, ids: list[int]) -> Check:
    return Check(code, False, sentence, {"who": text.jobs(ids)})


def _settling(board: Board, device: Device, here: list[Running]) -> Check:
    for r in here:
        if r.cold:
            words = text.settling(r, device.pool, board.many)
            return Check(Code.COLD_START, False, words, {"who": f"#{r.job}", "elapsed_s": r.elapsed})
    return Check(Code.COLD_START, True, _nobody(Code.COLD_START, name_of(device, board.many)))

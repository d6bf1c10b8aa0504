"""Restartable steps: calls are numbered, and a step whose leases were taken back runs again from its first line."""

from __future__ import annotations

import functools
import gc
import inspect
import os
import traceback
import uuid
from contextvars import ContextVar
from typing import Any, Callable, TypeVar, overload

from . import leases
from .asks import Ask
from .errors import Restart, SequenceChanged, Unavailable
from .process import identity
from .service import NoAnswer, Service

TOLD_WITHIN = 3.0  # seconds
_F = TypeVar("_F", bound=Callable[..., Any])
_current: ContextVar[Step | None] = ContextVar("tidegate_step", default=None)
_calls: dict[str, int] = {}


class Step:
    """One call of a restartable function. ``log`` are the asks of its longest run so far."""

    def __init__(self, name: str, iteration: int) -> None:
        self.key = uuid.uuid4().hex
        self.name = name
        self.iteration = iteration
        self.execution = 1
        self.pid = os.getpid()
        self.log: list[Ask] = []
        self.index = 0
        self.lost = ""
        self.granted: list[int] = []
        self.service: Service | None = None

    def number(self, ask: Ask) -> int:
        """Return the number of this call; it is the same call as in the run before, or the step is at an end."""
        index = self.index
        if index < len(self.log) and self.log[index] != ask:
            raise SequenceChanged(
                f"Call {index + 1} of {self.name} asks for {ask}; before its leases were taken back it asked for "
                f"{self.log[index]}. A step that is run again makes the same calls in the same order."
            )
        if index == len(self.log):
            self.log.append(ask)
        self.index += 1
        return index

    def as_json(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "step": self.name,
            "iteration": self.iteration,
            "execution": self.execution,
            "restartable": True,
        }

    def check_length(self) -> None:
        """Raise SequenceChanged where the run that just ended made fewer calls than one before."""
        if self.index < len(self.log):
            raise SequenceChanged(
                f"{self.name} ended after {self.index} of {len(self.log)} calls that it made before its leases were "
                f"taken back; the next would have asked for {self.log[self.index]}. What was kept for it is given back."
            )

    def taken_back(self, sentence: str) -> Restart:
        """Note that the leases of this run are gone, and return what unwinds it."""
        self.lost = sentence or "Its leases were taken back."
        for lease in leases.of_session(set(self.granted)):
            lease.lost(self.lost)
        return Restart(self, self.lost)

    def again(self) -> None:
        """Begin the next run."""
        self.tell("restarts")
        self.execution += 1
        self.index, self.lost, self.granted = 0, "", []

    def tell(self, outcome: str) -> None:
        """Tell the service how this run ended; by and by, where it does not answer now."""
        if self.service is None:
            return
        body = {"execution": self.execution, "outcome": outcome}
        path = f"sessions/{self.key}/end"
        try:
            self.service.post(path, {**body, "process": identity()}, TOLD_WITHIN)
        except NoAnswer:
            leases.send(self.service, path, body, self.pid)
        except Unavailable:
            pass  # a step's own result must not be lost for it


def current() -> Step | None:
    """Return the step that this thread is in; a forked child is in none, or it would use its parent's numbers."""
    step = _current.get()
    return step if step is not None and step.pid == os.getpid() else None


@overload
def session(function: _F) -> _F: ...
@overload
def session(*, name: str) -> Callable[[_F], _F]: ...
def session(function: _F | None = None, *, name: str = "") -> Any:
    """Mark a function as a step that may be run again from its first line when its leases are taken back.

    Inside another such step it is a part of that one.
    """
    if function is None:
        return functools.partial(_marked, name=name)
    return _marked(function)


def _marked(function: _F, name: str = "") -> Any:
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise TypeError(f"{function!r} cannot be run again from its first line: a session is a plain function.")
    title = name or getattr(function, "__qualname__", repr(function))

    @functools.wraps(function)
    def run(*given: Any, **named: Any) -> Any:
        if current() is not None:
            return function(*given, **named)
        _calls[title] = _calls.get(title, -1) + 1
        step = Step(title, _calls[title])
        token = _current.set(step)
        try:
            return _run(step, functools.partial(function, *given, **named))
        finally:
            _current.reset(token)

    return run


def _run(step: Step, function: Callable[[], Any]) -> Any:
    while True:
        try:
            value = function()
            if not step.lost:
                step.check_length()
                step.tell("finished")
                return value
            value = None  # somebody swallowed the signal: what the step made, it made without its leases
        except Restart as signal:
            if signal.session is not step:
                step.tell("failed")
                raise
            _forget(signal)
        except SequenceChanged:
            step.tell("sequence_changed")
            raise
        except BaseException as error:
            if not step.lost:
                step.tell("failed")
                raise
            _forget(error)  # the step failed for want of what was taken back from it
        gc.collect()
        step.again()


def _forget(error: BaseException | None) -> None:
    """Empty the frames that an error keeps alive: placements and tensors in them would hold their memory."""
    while error is not None:
        trace, error.__traceback__ = error.__traceback__, None
        if trace is not None:
            traceback.clear_frames(trace)
        error = error.__context__

"""One request, from its first word to a lease: asked again with a key of its own until it is granted or refused."""

from __future__ import annotations

import os
import random
import sys
import time
import uuid
from typing import Any

from . import leases, seen, steps
from .asks import Ask, as_json
from .errors import Impossible, NotVisible, Revoked, TimedOut, Unavailable
from .process import identity
from .service import NoAnswer, Refused, Service

SHORTEST, LONGEST = 0.2, 2.0  # seconds between two looks
SAID_AGAIN = 60.0  # seconds before a wait whose reason has changed is told again
WITHDRAW_WITHIN = 3.0
_chance = random.SystemRandom()  # a job's own random numbers stay as they are
_outside_steps = [0]


def obtain(ask: Ask, service: Service, timeout: float | None) -> tuple[leases.Lease, dict[str, Any]]:
    """Return a lease and what it covers; waits for it, ``timeout`` seconds at most, None for as long as it takes."""
    if timeout is not None and not timeout >= 0:
        raise ValueError(f"timeout is {timeout} seconds; it is 0 or more, or None.")
    sees = seen.require_any(ask, ask.backend)
    return _Request(ask, service, sees, timeout).lease()


def check(service: Service) -> None:
    """Ask whether something was taken back; then the step is run again, or Revoked raised."""
    _heed(service.get("notices").get("notices") or [], steps.current())


class _Request:
    """One row of the service's queue, as this side follows it."""

    def __init__(self, ask: Ask, service: Service, sees: tuple[str, ...] | None, timeout: float | None) -> None:
        self.ask, self.service, self.sees = ask, service, sees
        self.began = time.monotonic()
        self.until = None if timeout is None else self.began + timeout
        self.timeout = timeout
        self.step = steps.current()
        self.index = self.step.number(ask) if self.step is not None else _number()
        if self.step is not None:
            self.step.service = service
            self.key = f"{self.step.key}:{self.step.execution}:{self.index}"
        else:
            self.key = uuid.uuid4().hex
        self.number: int | None = None
        self.reasons: list[str] = []
        self.told: tuple[str, float] = ("", 0.0)

    def lease(self) -> tuple[leases.Lease, dict[str, Any]]:
        leases.ready()
        try:
            while True:
                answer = self._look()
                if answer is not None and (found := self._lease_of(answer)) is not None:
                    return found
                if self.until is not None and time.monotonic() >= self.until:
                    return self._over()
                self._pause()
        except (Impossible, Unavailable):
            raise
        except BaseException:  # a signal, a restart: what is asked for is wanted by nobody any more
            self._withdraw(give_back=True)
            raise

    def _look(self) -> dict[str, Any] | None:
        """Return what became of the request; None while the service does not answer."""
        try:
            if self.number is None:
                answer = self.service.post("requests", self._body())
                self.number = int(answer["id"])
                return answer
            return self.service.get(f"requests/{self.number}")
        except NoAnswer as error:
            self._tell(str(error))
            return None
        except (KeyError, TypeError, ValueError) as error:
            raise Refused(f"The service answered a request with what this client cannot read: {error!r}.", 0) from None

    def _body(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "session": None if self.step is None else self.step.as_json(),
            "index": self.index,
            "process": identity(),
            "ask": as_json(self.ask),
            "sees": None if self.sees is None else list(self.sees),
        }

    def _lease_of(self, answer: dict[str, Any]) -> tuple[leases.Lease, dict[str, Any]] | None:
        """Return the lease of an answer, None while the request waits; raises where it came to another end."""
        state = answer.get("state")
        if state == "granted":
            return self._granted(answer)  # before its notices: the lease must not be lost with them
        _heed(answer.get("notices") or [], self.step)
        if state == "waiting":
            self.reasons = [str(one) for one in answer.get("reasons") or []]
            self._tell(self.reasons[0] if self.reasons else "")
            return None
        if state == "revoked":
            _heed([answer.get("revocation") or {}], self.step, mine=True)
        refusal = answer.get("refusal") or {}
        sentence = str(refusal.get("sentence") or f"The service ended the request for {self.ask}: {state}.")
        if state == "refused" and refusal.get("code") == "not_visible":
            raise NotVisible(f"{sentence} Here {seen.blind(self.ask.backend)}")
        if state == "refused":
            arithmetic = [str(line) for line in refusal.get("arithmetic") or []]
            raise Impossible(sentence, str(refusal.get("code") or "impossible"), arithmetic)
        raise Unavailable(sentence)

    def _granted(self, answer: dict[str, Any]) -> tuple[leases.Lease, dict[str, Any]]:
        what = answer["lease"]
        lease = leases.Lease(int(what["id"]), self.service)
        if self.step is not None:
            self.step.granted.append(lease.number)
        _heed(answer.get("notices") or [], self.step)
        hidden = [one["uuid"] for one in what["members"] if self.sees is not None and one["uuid"] not in self.sees]
        if hidden:
            lease.let_go()
            raise NotVisible(f"{self.ask} was granted on {', '.join(hidden)}, but {seen.blind(self.ask.backend)}")
        if self.told[0]:
            where = ", ".join(f"{one['kind']}{one['device_id']}" for one in what["members"])
            _say(f"has {self.ask}: {where}, after {time.monotonic() - self.began:.0f} s")
        return lease, what

    def _pause(self) -> None:
        wait = _chance.uniform(SHORTEST, LONGEST)
        if self.until is not None:
            wait = min(wait, max(0.0, self.until - time.monotonic()))
        time.sleep(wait)

    def _over(self) -> tuple[leases.Lease, dict[str, Any]]:
        """Withdraw; a grant that came before the withdrawal is taken."""
        answer = self._withdraw(give_back=False)
        if answer is not None and answer.get("state") == "granted":
            return self._granted(answer)
        why = f" {self.reasons[0]}" if self.reasons else f" {self.told[0]}" if self.told[0] else ""
        raise TimedOut(f"{self.ask} was not granted within {self.timeout:g} s.{why}", self.reasons)

    def _withdraw(self, *, give_back: bool) -> dict[str, Any] | None:
        """Withdraw by key, since a request whose answer was lost has arrived; by and by where nobody answers now."""
        body = {"key": self.key, "give_back": give_back}
        try:
            return self.service.post("requests/withdraw", {**body, "process": identity()}, WITHDRAW_WITHIN)
        except NoAnswer:
            leases.send(self.service, "requests/withdraw", {**body, "give_back": True}, os.getpid())
        except Unavailable:
            pass  # there is none, or this job is over
        return None

    def _tell(self, why: str) -> None:
        """Say once that, and why, this waits; and again when that has changed, but not all the time."""
        now = time.monotonic()
        if self.told[0] and (why == self.told[0] or now < self.told[1] + SAID_AGAIN):
            return
        self.told = (why or "it waits.", now)
        _say(f"waits for {self.ask}: {self.told[0]}")


def _heed(notices: list[dict[str, Any]], step: steps.Step | None, mine: bool = False) -> None:
    """Mark what was taken back; raise what ends the step, or has it run again."""
    for notice in notices:
        sentence = str(notice.get("sentence") or "A lease of this job was taken back.")
        of_step = mine or (step is not None and _is_of(notice, step))
        if of_step and step is not None:
            if notice.get("execution", step.execution) != step.execution and not notice.get("final"):
                continue
            signal = step.taken_back(sentence)
            if notice.get("final"):
                step.lost = ""
                raise Revoked(sentence)
            raise signal
        if mine:
            raise Revoked(sentence)
        if notice.get("session") is None and notice.get("lease") is not None:
            found = [one for one in leases.of_session({int(notice["lease"])}) if one.mine and not one.revoked]
            for lease in found:
                lease.lost(sentence)
            if found:
                raise Revoked(sentence)


def _is_of(notice: dict[str, Any], step: steps.Step) -> bool:
    """Return whether a notice names this step, or a lease that this run of it was granted."""
    return notice.get("session") == step.key or notice.get("lease") in step.granted


def _number() -> int:
    _outside_steps[0] += 1
    return _outside_steps[0] - 1


def _say(text: str) -> None:
    """Write one line for the job's log."""
    if os.environ.get("TIDEGATE_QUIET") == "1" or sys.stderr is None:
        return
    try:
        sys.stderr.write(f"tidegate: {text}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass  # closed: nobody reads it

"""Messages to people's hooks: taken here, sent by a process of its own, so that nobody who is slow delays a tick."""

from __future__ import annotations

import base64
import json
import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

from django.db import transaction
from django.utils import timezone

from placement.domain import notices
from placement.domain.notices import Kind
from placement.models import Delivery, Hook
from placement.services import cycle_row, secrets

log = logging.getLogger(__name__)
EVERY = 2.0  # seconds between two looks for messages
AT_ONCE = 200  # messages of one round
SECONDS = 25.0  # that a round may take; then its process is killed
CHECK_SECONDS = 15.0
_ROOT = Path(__file__).resolve().parent.parent.parent
_TYPES = {"ok": "success", "run": "info", "wait": "warning"}


@dataclass
class _Round:
    process: subprocess.Popen[bytes]
    answer: IO[bytes]
    until: float  # monotonic
    parts: dict[int, list[int]]  # of each hook: the messages that went into its one


class Courier:
    """One node's: at most one process sends at a time, and a tick only looks whether it is through."""

    def __init__(self) -> None:
        self._round: _Round | None = None
        self._next = float("-inf")

    def step(self) -> None:
        """Take what a round brought, or begin one if something is due. Never waits."""
        now = time.monotonic()
        if self._round is not None:
            if self._round.process.poll() is None:
                if now > self._round.until:
                    self._round.process.kill()
                return
            self._take(self._round)
            self._round = None
        if now < self._next:
            return
        self._next = now + EVERY
        due = list(Delivery.objects.filter(due_at__lte=timezone.now()).order_by("due_at", "pk")[:AT_ONCE])
        if due:
            self._round = self._begin(due)

    def _begin(self, due: Sequence[Delivery]) -> _Round | None:
        mine = _claim(due)
        hooks = Hook.objects.in_bulk({message.hook_id for message in mine})
        parts: dict[int, list[int]] = {}
        messages = []
        for ident, hook in hooks.items():
            own = [message for message in mine if message.hook_id == ident]
            parts[ident] = [message.pk for message in own]
            messages += [_message(hook, own)]
        if not messages:
            return None
        asked = {"key": str(secrets.key_path()), "seconds": SECONDS - 5, "messages": messages}
        process, answer = _run(asked)
        return _Round(process, answer, time.monotonic() + SECONDS, parts)

    def _take(self, over: _Round) -> None:
        """Store how each hook took its message: gone, or due again later, or given up."""
        results = _answer(over.answer).get("results")
        results = results if isinstance(results, dict) else {}
        now = timezone.now()
        with cycle_row.in_line(), transaction.atomic():
            for ident, ids in over.parts.items():
                said = str(results.get(str(ident), "The process that sends it ended early."))
                Hook.objects.filter(pk=ident).update(last_at=now, last_ok=not said, last_sentence=said[:300])
                sent = Delivery.objects.filter(pk__in=ids)
                (sent.filter(tries__gte=notices.TRIES) if said else sent).delete()
                if said:
                    log.info("hook %s: %s", ident, said, extra={"action": "notice_refused"})


def service_of(address: str) -> str:
    """Return the service that an address belongs to. Raise ValueError with a sentence where it belongs to none.

    It waits for up to 15 s: the library that knows is large, and only ever loaded by a process of its own.
    """
    process, answer = _run({"check": address})
    try:
        process.wait(CHECK_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise ValueError(f"The address could not be checked within {CHECK_SECONDS:g} s; try it again.") from None
    found = _answer(answer)
    if "service" not in found:
        raise ValueError(str(found.get("refused") or "The address could not be checked; try it again."))
    return str(found["service"])


def _claim(due: Sequence[Delivery]) -> list[Delivery]:
    """Take messages for this node: each is due again later, in case that this process ends before it knows."""
    mine = []
    now = timezone.now()
    with cycle_row.in_line(), transaction.atomic():
        for message in due:
            wait = notices.WAITS[min(message.tries, len(notices.WAITS) - 1)]
            if Delivery.objects.filter(pk=message.pk, tries=message.tries, due_at=message.due_at).update(
                tries=message.tries + 1, due_at=now + timedelta(seconds=wait)
            ):
                mine.append(message)
    return mine


def _message(hook: Hook, own: Sequence[Delivery]) -> dict[str, Any]:
    title, body = notices.merged([(message.title, message.sentence) for message in own])
    tones = {notices.TONES.get(Kind(message.kind), "stop") if message.kind != Kind.TEST else "run" for message in own}
    return {
        "id": hook.pk,
        "sealed": base64.b64encode(bytes(hook.sealed)).decode(),
        "title": title,
        "body": body,
        "type": _TYPES.get(tones.pop(), "failure") if len(tones) == 1 else "info",
    }


def _run(asked: dict[str, Any]) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """Start the process; what it is asked and answers lies in files that have no name."""
    with tempfile.TemporaryFile() as question:
        question.write(json.dumps(asked).encode())
        question.flush()
        question.seek(0)
        answer = tempfile.TemporaryFile()  # noqa: SIM115 - read, and closed, when the process is through
        process = subprocess.Popen(
            [sys.executable, "-m", "placement.courier"],
            stdin=question,
            stdout=answer,
            stderr=subprocess.DEVNULL,
            cwd=_ROOT,
            start_new_session=True,
        )
    return process, answer


def _answer(file: IO[bytes]) -> dict[str, Any]:
    with file:
        file.seek(0)
        try:
            found = json.loads(file.read(1 << 20))
        except (ValueError, RecursionError):
            return {}
    return found if isinstance(found, dict) else {}

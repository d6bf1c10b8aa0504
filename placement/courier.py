"""Sends messages to where people want them, as a process of its own: it may be slow, large, or stuck, and harms nobody.

It reads one JSON object from standard input and writes one to standard output:
{"check": ADDRESS} gives {"service": NAME} or {"refused": SENTENCE};
{"key": PATH, "seconds": N, "messages": [{"id", "sealed" (base64), "title", "body", "type"}]} gives
{"results": {ID: SENTENCE, "" where it was taken}}. Addresses never appear among its arguments or in what it says.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

SLOWEST = 10.0  # seconds that one place may take to answer
TOGETHER = 8


class _Said(logging.Handler):
    """Keeps the newest complaint of each thread: the library tells by its log alone what was wrong."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.by_thread: dict[int, str] = {}

    def emit(self, record: logging.LogRecord) -> None:
        self.by_thread[threading.get_ident()] = record.getMessage()


def main() -> int:
    asked = json.load(sys.stdin)
    said = _Said()
    logger = logging.getLogger("apprise")
    logger.addHandler(said)
    logger.propagate = False
    answer = _check(asked["check"]) if "check" in asked else _send(asked, said)
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)  # a thread may still wait for somebody who does not answer


def _target(address: str) -> Any:
    """Return the library's object for an address, None where it can make none of it."""
    import apprise

    asset = apprise.AppriseAsset(app_id="Tidegate", app_desc="Tidegate", app_url="", http_redirects=False)
    found = apprise.Apprise.instantiate(address, asset=asset, suppress_exceptions=True)
    if found is None and address.startswith(("http://", "https://")):
        plain = "json" + address[4:]  # https -> jsons
        found = apprise.Apprise.instantiate(plain, asset=asset, suppress_exceptions=True)
    if found is not None:
        found.redirects = False  # whoever is asked does not choose whom we ask next
        found.socket_read_timeout = min(float(found.socket_read_timeout or SLOWEST), SLOWEST)
        found.socket_connect_timeout = min(float(found.socket_connect_timeout or SLOWEST), SLOWEST)
    return found


def _check(address: str) -> dict[str, str]:
    target = _target(address)
    if target is None:
        return {"refused": "The address is not complete: something that its service needs is missing or misspelt."}
    return {"service": str(target.service_name or "")}


def _send(asked: Mapping[str, Any], said: _Said) -> dict[str, Any]:
    messages = asked["messages"]
    with ThreadPoolExecutor(TOGETHER) as pool:
        tasks = {pool.submit(_one, message, asked["key"], said): str(message["id"]) for message in messages}
        done, late = wait(tasks, timeout=float(asked["seconds"]))
        results = {tasks[task]: task.result() for task in done}
        results |= {tasks[task]: f"It did not answer within {asked['seconds']:g} s." for task in late}
        if late:
            sys.stdout.write(json.dumps({"results": results}))
            sys.stdout.flush()
            os._exit(0)
    return {"results": results}


def _one(message: Mapping[str, Any], key: str, said: _Said) -> str:
    """Send one message; return why it was not taken, "" where it was."""
    try:
        target = _target(_open(message["sealed"], key))
        if target is None:
            return "The address is not complete any more; add it anew."
        if target.notify(body=message["body"] or message["title"], title=message["title"], notify_type=message["type"]):
            return ""
        return said.by_thread.pop(threading.get_ident(), "It was not taken.")[:300]
    except Exception as error:  # whatever a library for a hundred services may raise
        return f"It could not be sent: {type(error).__name__}."


def _open(sealed: str, key: str) -> str:
    from cryptography.fernet import Fernet

    values = json.loads(Fernet(Path(key).read_bytes().strip()).decrypt(base64.b64decode(sealed)))
    return str(values["address"])


if __name__ == "__main__":
    sys.exit(main())

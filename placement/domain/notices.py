"""What people are told of their jobs, and where it may be sent."""

from __future__ import annotations

import enum
from collections.abc import Collection, Sequence
from urllib.parse import parse_qsl, urlsplit

TRIES = 3
WAITS = (60.0, 300.0)  # seconds before the second try and the third
LONGEST = 600  # characters of an address
AT_ONCE = 3  # messages to one hook; more become one message
LINES = 20  # of a message made of many


class Kind(enum.StrEnum):
    STARTED = "started"
    FINISHED = "finished"
    FAILED = "failed"
    RETRIED = "retried"
    STOPPED = "stopped"
    HELD = "held"
    HOLD_ENDS = "hold_ends"
    TEST = "test"


WORDS = {
    Kind.STARTED: "starts after a long wait",
    Kind.FINISHED: "completes",
    Kind.FAILED: "fails",
    Kind.RETRIED: "fails and is run again",
    Kind.STOPPED: "is stopped: by a limit, the watchdog, or somebody else",
    Kind.HELD: "is held: after failures, or by somebody else",
    Kind.HOLD_ENDS: "is a hold of a device or machine, and ends soon or has ended",
}
"""The kinds that can be chosen, as a job's ways to end or not to go on."""
DEFAULT = tuple(WORDS)
TONES = {Kind.FINISHED: "ok", Kind.STARTED: "run", Kind.HELD: "wait", Kind.RETRIED: "wait", Kind.HOLD_ENDS: "wait"}
_STOPS = frozenset({"timed_out", "cap_exceeded", "cancelled"})

SERVICES = {
    "http": "a webhook: JSON by POST", "https": "a webhook: JSON by POST", "json": "", "jsons": "",
    "mailto": "e-mail", "mailtos": "e-mail", "ntfy": "ntfy", "ntfys": "ntfy", "slack": "Slack",
    "discord": "Discord", "mmost": "Mattermost", "mmosts": "Mattermost", "rocket": "Rocket.Chat",
    "rockets": "Rocket.Chat", "matrix": "Matrix", "matrixs": "Matrix", "msteams": "Microsoft Teams",
    "workflows": "Microsoft Teams", "workflow": "Microsoft Teams", "gchat": "Google Chat", "tgram": "Telegram",
    "zulip": "Zulip", "gotify": "Gotify", "gotifys": "Gotify", "pover": "Pushover", "pbul": "Pushbullet",
    "signal": "Signal", "signals": "Signal", "wxteams": "Webex", "opsgenie": "Opsgenie", "pagerduty": "PagerDuty",
}  # fmt: skip
"""Schemes of addresses that are taken: those that send a message elsewhere and touch nothing of this machine."""
_HOSTS = frozenset({"json", "jsons", "http", "https", "gotify", "gotifys", "mmost", "mmosts", "rocket", "rockets"})
_FILES = ("pgp", "attach", "keyfile", "template", "config", "include")


def kind_of_end(outcome: str, stopped_by: str, owner: str, *, again: bool, hold: bool = False) -> Kind | None:
    """Return what an end is to its owner; None: what they did themselves is no news to them."""
    if outcome == "cancelled" and stopped_by == owner:
        return None
    if hold and (outcome == "completed" or outcome in _STOPS):
        return Kind.HOLD_ENDS
    if outcome == "completed":
        return Kind.FINISHED
    if again:
        return Kind.RETRIED
    return Kind.STOPPED if outcome in _STOPS else Kind.FAILED


def chosen(kinds: Collection[object]) -> frozenset[str]:
    """Return those of some words that are kinds people can choose."""
    return frozenset(str(kind) for kind in WORDS if str(kind) in kinds)


def checked(address: str) -> str:
    """Return an address that may be sent to, as it is. Raise ValueError with a sentence that does not repeat it."""
    address = address.strip()
    if not address:
        raise ValueError("Give the address that notices are to go to.")
    if len(address) > LONGEST:
        raise ValueError(f"The address has {len(address)} characters; up to {LONGEST} are taken.")
    if not address.isprintable():
        raise ValueError("The address holds a character that cannot be printed.")
    try:
        parts = urlsplit(address)
        names = [name.lower().strip(" +-:") for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    except ValueError:
        raise ValueError("The address cannot be read: write it like https://host/path or mailto://…") from None
    if parts.scheme not in SERVICES:
        known = ", ".join(sorted(scheme for scheme in SERVICES if scheme + "s" not in SERVICES or scheme == "http"))
        what = f"“{parts.scheme}”" if parts.scheme else "an address without one"
        raise ValueError(f"The scheme must be one of {known}, not {what}.")
    if not parts.netloc:
        raise ValueError(f"The address names nobody after {parts.scheme}://.")
    if wrong := next((name for name in names if name.startswith(_FILES)), ""):
        raise ValueError(f"The option “{wrong}” of the address would read files of this machine; leave it out.")
    return address


def shown(address: str) -> str:
    """Return what may be shown of an address: its kind, and the host where that is no secret."""
    try:
        parts = urlsplit(address)
        host = parts.hostname if parts.scheme in _HOSTS else None
    except ValueError:
        return "…"
    return f"{parts.scheme}://{host}/…" if host else f"{parts.scheme}://…"


def merged(messages: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Return one message (title, sentence) made of many."""
    if len(messages) == 1:
        return messages[0]
    lines = [f"{title}: {sentence}" if sentence else title for title, sentence in messages[:LINES]]
    if len(messages) > LINES:
        lines.append(f"and {len(messages) - LINES} more")
    return f"{len(messages)} notices", "\n".join(lines)

"""A schedule that counts on the monotonic clock and keeps no file."""

from __future__ import annotations

import time
from typing import Any

from celery.beat import Scheduler


class MonotonicScheduler(Scheduler):
    """Sends each entry every period, whatever the wall clock does; missed periods are not replayed.

    Celery's own scheduler compares wall times: set the clock back by an hour and it is silent for an hour.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._due: dict[str, float] = {}
        super().__init__(*args, **kwargs)

    def tick(self, *_: Any, **__: Any) -> float:
        """Send what is due and return the seconds until the next entry."""
        now = time.monotonic()
        for name, entry in self.schedule.items():
            due = self._due.setdefault(name, now)
            if due > now:
                continue
            period = entry.schedule.run_every.total_seconds()
            # Counting from the due time keeps the pace; after a stall the count starts anew.
            self._due[name] = due + period if due + period > now else now + period
            self.apply_entry(entry, producer=self.producer)
        return max(0.0, min(self._due.values(), default=now + 1.0) - time.monotonic())

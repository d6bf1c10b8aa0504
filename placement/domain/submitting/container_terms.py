"""What a submission says of the container that it runs in, and all that can be wrong there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from placement.domain.containing import containers


class Terms(Protocol):
    """The fields of a submission that are looked at here."""

    @property
    def image(self) -> str: ...
    @property
    def engine(self) -> str: ...
    @property
    def argv(self) -> tuple[str, ...] | None: ...
    @property
    def setup(self) -> str: ...
    @property
    def environment(self) -> Mapping[str, str]: ...
    @property
    def workload(self) -> str: ...


def problems(s: Terms) -> Iterator[tuple[str, str]]:
    """Yield (field, sentence) for what cannot be taken; no value of any type raises."""
    if not isinstance(s.image, str) or not isinstance(s.engine, str):
        return
    if s.engine and s.engine not in containers.ENGINES:
        yield "engine", f"It must be one of {', '.join(containers.ENGINES)}, or empty for the first that a node has."
    elif s.image:
        if wrong := containers.problem(s.engine or containers.ENGINES[0], s.image):
            yield "image", wrong
        if s.argv is not None and isinstance(s.setup, str) and s.setup.strip():
            yield "setup", "With an image and an argument list there is no shell for it; give a command instead."
        if isinstance(s.environment, Mapping):
            names = [name for name in s.environment if isinstance(name, str)]
            if wrong := containers.refused_names(names):
                yield "environment", wrong
    elif s.engine and not s.workload:
        yield "engine", "Without an image nothing runs in a container; name one, or leave this empty."

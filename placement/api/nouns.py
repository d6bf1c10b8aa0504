"""How an operation is written down: its noun, role, answer and errors; the rest follows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, get_args, get_origin

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from ninja import Router

from placement.api.doors import SAFE, Door, JobDoor
from placement.api.shapes.error import ErrorAnswer
from placement.api.shapes.kinds import Query
from placement.domain.errors import Refused
from placement.models import Role

View = Callable[..., Any]

ALWAYS = (400, 401, 403, 429, 500, 503)
_OF_BODIES = (409, 413)


class Noun(Router):
    """The operations of one noun. A view returns what its answer says as plain values; it is sent as it is.

    Models describe answers and tests hold the answers to them: checking each again while serving would cost more than
    making it, and could only turn an answer into a fault.
    """

    def __init__(self, name: str, *, inside: bool = False) -> None:
        super().__init__(tags=[name])
        self.noun = name
        self.inside = inside  # for programs inside jobs, which come with their job's token

    def read(
        self, path: str, reply: Any, role: Role = Role.VIEWER, *, name: str = "", **more: Any
    ) -> Callable[[View], View]:
        """Return a decorator for what looks at something."""
        return self._operation("GET", path, reply, role, name=name, **more)

    def change(
        self, path: str, reply: Any, role: Role = Role.SUBMITTER, *, method: str = "POST", name: str = "", **more: Any
    ) -> Callable[[View], View]:
        """Return a decorator for what changes something, or is sent like that."""
        return self._operation(method, path, reply, role, name=name, **more)

    def _operation(
        self,
        method: str,
        path: str,
        reply: Any,
        role: Role,
        *,
        name: str,
        status: int = 200,
        sample: Any = None,
        plain: bool = False,
    ) -> Callable[[View], View]:
        def decorate(view: View) -> View:
            signature = inspect.signature(view, eval_str=True)
            known = _query_names(signature)

            @wraps(view)
            def answering(request: HttpRequest, **values: Any) -> HttpResponseBase:
                _refuse_query(request, known)
                told = view(request, **values)
                return told if isinstance(told, HttpResponseBase) else JsonResponse(told, status=status)

            answering.__signature__ = signature  # type: ignore[attr-defined]
            del answering.__wrapped__
            errors = dict.fromkeys(sorted({*ALWAYS, *_errors(method, path)}), ErrorAnswer)
            first, _, rest = (inspect.getdoc(view) or "").partition("\n")
            answering.__doc__ = f"{rest.strip()}\n\n{_for(role, self.inside)}".strip()
            extra: dict[str, Any] = {"x-role": "job" if self.inside else role.value}
            if plain:
                extra["responses"] = {status: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
            if sample is not None:
                extra["requestBody"] = {"content": {"application/json": {"example": sample}}}
            self.api_operation(
                [method],
                path,
                auth=JobDoor() if self.inside else Door(role),
                response={status: reply, **errors},
                operation_id=f"{view.__module__.rpartition('.')[2]}_{view.__name__}",
                summary=first.rstrip("."),
                url_name=name or f"api-{view.__module__.rpartition('.')[2]}-{view.__name__}".replace("_", "-"),
                openapi_extra=extra,
            )(answering)
            return view

        return decorate


def _for(role: Role, inside: bool) -> str:
    if inside:
        return "For a job, with its own token."
    return "" if role is Role.VIEWER else f"For {'an' if role.value[0] in 'ao' else 'a'} {role.value}."


def _errors(method: str, path: str) -> set[int]:
    found = set(_OF_BODIES) if method not in SAFE else set()
    return found | ({404} if "{" in path else set())


def _query_names(signature: inspect.Signature) -> dict[str, bool]:
    """Return the names that a query may hold, each with whether it may be there more than once: it is a list."""
    asked = [get_args(one.annotation) for one in signature.parameters.values()]
    models = [of[0] for of in asked if of and isinstance(of[0], type) and issubclass(of[0], Query)]
    return {name: _is_list(field.annotation) for model in models for name, field in model.model_fields.items()}


def _is_list(kind: Any) -> bool:
    return get_origin(kind) is list or any(get_origin(one) is list for one in get_args(kind))


def _refuse_query(request: HttpRequest, known: Mapping[str, bool]) -> None:
    """Raise Refused for a query with a name that means nothing, or one that is there twice and can mean one thing only.

    What was to be a filter must not find everything, nor silently be another one.
    """
    here = f"known here are {', '.join(known)}." if known else "none is known here."
    wrong = {}
    for name, values in request.GET.lists():
        if name not in known:
            wrong[name[:60]] = f"There is no such name in a query; {here}"
        elif len(values) > 1 and not known[name]:
            wrong[name] = f"It is there {len(values)} times, and can be one value only; send the one that is meant."
    if wrong:
        raise Refused(" ".join(f"{name}: {said}" for name, said in wrong.items()), wrong)

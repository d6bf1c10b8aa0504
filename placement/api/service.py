"""The API as one thing: its operations, its addresses, and its description."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import URLPattern, path
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI

from placement.api import (
    arrays,
    attribution,
    describing,
    devices,
    forecasts,
    inside,
    job_acts,
    job_lists,
    job_logs,
    job_requests,
    jobs,
    learned,
    nodes,
    notices,
    people,
    queue,
    record,
    refusals,
    taking,
    tokens,
    workloads,
)
from placement.api.doors import Door
from placement.api.parsing import Strict
from placement.models import Role

NOUNS = (
    queue.noun,
    jobs.noun,
    job_lists.noun,
    job_acts.noun,
    job_logs.noun,
    job_requests.noun,
    arrays.noun,
    workloads.noun,
    learned.noun,
    devices.noun,
    nodes.noun,
    taking.noun,
    attribution.noun,
    forecasts.noun,
    notices.noun,
    people.noun,
    record.noun,
    tokens.noun,
    inside.noun,
)
ROOT = "api/v1/"


class Service(NinjaAPI):
    """Ninja's own, with our shape for whatever goes wrong and no pages of its own (they load from other hosts)."""

    def __init__(self) -> None:
        super().__init__(
            title="Tidegate",
            version="1",
            description=describing.ABOUT,
            docs_url=None,
            openapi_url=None,
            parser=Strict(),
        )
        self._exception_handlers.clear()
        self.add_exception_handler(Exception, lambda _, problem: refusals.answer(problem))
        for noun in NOUNS:
            self.add_router("", noun)

    def addresses(self) -> Iterator[URLPattern]:
        """Yield a pattern per path; one view serves all methods of it."""
        served: dict[str, dict[str, Callable[..., Any]]] = {}
        names: dict[str, list[str]] = {}
        for bound in self._get_bound_routers():
            for route, operations in bound.path_operations.items():
                for one in operations.operations:
                    served.setdefault(route, {}).update(dict.fromkeys(one.methods, operations.get_view()))
                    names.setdefault(route, []).append(one.url_name)
        for route, views in served.items():
            for name in names[route]:
                yield path(ROOT + _django(route), _outermost(views), name=name)
        yield path(f"{ROOT}openapi.json", _outermost({"GET": _described}), name="openapi")


def _outermost(views: Mapping[str, Callable[..., Any]]) -> Callable[..., HttpResponse]:
    """Return a view of these methods that answers whatever happens in our shape, and is never kept."""
    allowed = tuple(m for method in views for m in (("GET", "HEAD") if method == "GET" else (method,)))

    @csrf_exempt  # the door looks at it, for sessions only
    def served(request: HttpRequest, **values: Any) -> HttpResponse:
        asked = request.method or ""
        if asked not in allowed:
            return refusals.not_allowed(asked, allowed)
        request.method = "GET" if asked == "HEAD" else asked
        try:
            response: HttpResponse = views[request.method](request, **values)
        except Exception as problem:  # the outermost edge: whatever it was, the caller gets JSON
            response = refusals.answer(problem)
        finally:
            request.method = asked
        response.headers.setdefault("Cache-Control", "no-store, private")
        return response

    return served


def _django(route: str) -> str:
    """Return a route as Django writes it: ``/jobs/{int:job_id}`` is ``jobs/<int:job_id>``."""
    return route.lstrip("/").replace("{", "<").replace("}", ">")


def _described(request: HttpRequest) -> HttpResponse:
    """Return the OpenAPI description, to whoever may look."""
    Door(Role.VIEWER)(request)
    return JsonResponse(schema())


service = Service()


@cache
def schema() -> dict[str, Any]:
    """Return the OpenAPI description."""
    return describing.complete(service.get_openapi_schema(path_prefix=f"/{ROOT}"))

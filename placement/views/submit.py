"""Submit a run, with the estimate and the answer of the gate while typing."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from placement.domain.errors import Infeasible, NotYours, Refused, UnreadableSecret
from placement.forms import placement, prefill, script
from placement.forms.submit import SubmitForm
from placement.models import Job, Role
from placement.selectors import access, again, answer, devices, engines, expected, ladder, submit, verdict, wording
from placement.selectors.again import Again
from placement.services import drafting, sweeps
from placement.views import wake
from placement.views.door import door

SENT = "tidegate_sent"  # a cookie that says which form was taken, so that its draft can go


@door(Role.SUBMITTER, ("GET", "HEAD", "POST"))
def page(request: HttpRequest) -> HttpResponse:
    """Show the form; store a submission. The same form sent twice makes one job."""
    if request.method != "POST":
        old = prefill.earlier(request.user, request.GET)
        return _show(request, _form(request, old=old), old=old)
    data, head = _whole(request), None
    if request.FILES.get("script"):  # without scripts in the browser the file comes along; it is shown, not submitted
        data, head = script.into(data, request.FILES["script"])
    form = _form(request, data)
    if head is not None or "check" in request.POST:
        more = {"head": head, "checked": _asked_about(request, form, data)}
        return _show(request, form, status=422 if form.errors else 200, more=more)
    impossible: list[dict[str, Any]] = []
    if form.is_valid():
        try:
            kept = drafting.kept_variables(request.user, form.variables_from)
            key = form.cleaned_data["form_key"]
            return _made(request, sweeps.submit(request.user, form.submission(kept), form_key=key), key)
        except NotYours:
            raise
        except Infeasible as error:
            form.add_error(None, error.sentence)
            impossible = error.checks
        except Refused as error:
            form.refuse(error.fields, error.sentence)
    return _show(request, form, status=422, more={"impossible": impossible})


@door(Role.SUBMITTER, ("POST",))
def estimate(request: HttpRequest) -> HttpResponse:
    """Return what the gate would say of the form as it stands now."""
    data = request.POST
    response = render(request, "placement/_estimate.html", _asked_about(request, _form(request, data), data))
    chosen = submit.preselect(request.user, data.get("command", ""), _chosen(data))
    response["HX-Trigger"] = json.dumps({"preselect": asdict(chosen)})
    return response


@door(Role.SUBMITTER)
def workload_fields(request: HttpRequest) -> HttpResponse:
    """Return the fields of the chosen workload's parameters, and what it fills in elsewhere."""
    form = _form(request)
    response = render(request, "placement/_workload.html", {"form": form, "workload": form.chosen})
    if form.chosen is not None:
        names = ("cwd", "setup", "workers", "exclusive", "time_limit_s", "image", "engine")
        names = (*names, *placement.shown("", {}))
        filled = {n: form.initial[n] for n in names}
        response["HX-Trigger"] = json.dumps({"prefill": {n: str(v) for n, v in filled.items()}})
    return response


@door(Role.SUBMITTER, ("POST",))
def script_fields(request: HttpRequest) -> HttpResponse:
    """Return what was taken of a script that somebody dropped onto the form, and the texts of the fields it fills."""
    head = script.read(request.FILES.get("script"))
    response = render(request, "placement/_script.html", {"head": head})
    if not head.refused:
        response["HX-Trigger"] = json.dumps({"script": head.fields})
    return response


def _made(request: HttpRequest, job: Job, key: str) -> HttpResponse:
    """Go to what was made."""
    wake.soon()
    if job.array is not None:
        messages.success(request, f"{job.array.size:,} jobs from #{job.pk} on are in the queue.")
        response = redirect("array", job.array_id)
    else:
        messages.success(request, f"#{job.pk} is in the queue.")
        response = redirect("job", job.pk)
    response.set_cookie(SENT, key, max_age=86_400, samesite="Lax", secure=request.is_secure(), path="/submit")
    return response


def _asked_about(request: HttpRequest, form: SubmitForm, data: Any) -> dict[str, Any]:
    """Return what the estimate shows of a form."""
    if not data.get("command", "").strip() and not _chosen(data):
        return {"empty": True}
    if not form.is_valid():
        named = form.fields
        return {
            "errors": [
                (named[name].label or name.replace("_", " ") if name in named else "", text)
                for name, texts in form.errors.items()
                for text in texts
            ]
        }
    try:
        asked = form.submission(drafting.kept_variables(request.user, form.variables_from))
        sweep = sweeps.preview(request.user, asked) if asked.sweep else None
        seen = sweep.first if sweep else sweeps.jobs.preview(request.user, asked)
    except NotYours:
        raise
    except Refused as error:
        said = error.sentence.removeprefix("Nothing was submitted: ")  # while somebody types nothing is
        return {"refused": said, "checks": getattr(error, "checks", [])}
    return {
        "preview": seen,
        "sweep": sweep,
        "verdict": verdict.of(seen.decision),
        "answer": answer.of(seen, devices.named(), devices.unread()),
        "expected": expected.preview(seen.decision["planned"], timezone.now(), asked.not_before),
        "ladders": ladder.ladders(seen.estimate),
        "takes": "" if sweep is None or sweep.seconds is None else wording.span(max(1.0, sweep.seconds)),
        "copies": asked.array,
        "limit": asked.array_limit,
        "unfilled": submit.unfilled(asked),
    }


def _whole(request: HttpRequest) -> Any:
    """Return what was posted; what the one-line box does not ask for is as this person's last jobs had it."""
    if "quick" not in request.POST:
        return request.POST
    data = request.POST.copy()
    usual = submit.choices(request.user).directories
    data.setdefault("kind", "command")
    data.setdefault("cwd", usual[0] if usual else "")
    chosen = submit.preselect(request.user, data.get("command", ""), "")
    for name, value in {"gpu": chosen.gpu, **chosen.group}.items():
        data.setdefault(name, value)
    return data


def _form(request: HttpRequest, data: Any = None, old: Again | None = None) -> SubmitForm:
    source = data if data is not None else request.GET
    name = old.workload if old is not None else source.get("workload", "")
    options: dict[str, Any] = {
        "choices": submit.choices(request.user),
        "workload": submit.workload(name) if name else None,
        "may_raise": access.at_least(request.user, Role.OPERATOR),
    }
    if data is not None:
        return SubmitForm(data, **options)
    first = prefill.initial(request.user, request.GET, old, options["workload"], options["choices"])
    return SubmitForm(initial=first, **options)


def _chosen(data: Any) -> str:
    return data.get("workload", "") if data.get("kind") == "workload" else ""


def _show(
    request: HttpRequest,
    form: SubmitForm,
    status: int = 200,
    old: Again | None = None,
    more: dict[str, Any] | None = None,
) -> HttpResponse:
    context = {
        "form": form,
        "choices": submit.choices(request.user),
        "workload": form.chosen,
        "engines": engines.anywhere(),
        "impossible": [],
        "wrong": [form[name] for name in form.fields if name in form.errors],
        "again": old,
        "kept": _kept_count(request, form),
        "recent": again.recent(request.user),
        "fresh": not request.GET and request.method != "POST",
        **(more or {}),
    }
    return render(request, "placement/submit.html", context, status=status)


def _kept_count(request: HttpRequest, form: SubmitForm) -> int:
    """Return how many variables of an earlier job the form keeps; 0 where they cannot be opened."""
    asked = form["kept_from"].value() if "kept_from" in form.fields else None
    try:
        return len(drafting.kept_variables(request.user, int(asked))) if asked else 0
    except (UnreadableSecret, NotYours, ValueError):
        return 0

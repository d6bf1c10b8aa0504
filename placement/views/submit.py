"""Submit a run, with the estimate and the answer of the gate while typing."""

from __future__ import annotations

import json
import secrets
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from placement.domain.errors import Infeasible, NotYours, Refused
from placement.forms.fields import seconds_text
from placement.forms.submit import SubmitForm
from placement.models import Role, Workload
from placement.selectors import access, expected, ladder, submit, verdict
from placement.services import jobs
from placement.views import wake
from placement.views.door import door


@door(Role.SUBMITTER, ("GET", "HEAD", "POST"))
def page(request: HttpRequest) -> HttpResponse:
    """Show the form; store a submission. The same form sent twice makes one job."""
    if request.method != "POST":
        return _show(request, _form(request))
    form = _form(request, _whole(request))
    impossible: list[dict[str, Any]] = []
    if form.is_valid():
        try:
            job = jobs.submit(request.user, form.submission(), form_key=form.cleaned_data["form_key"])
        except NotYours:
            raise
        except Infeasible as error:
            form.add_error(None, error.sentence)
            impossible = error.checks
        except Refused as error:
            form.refuse(error.fields, error.sentence)
        else:
            wake.soon()
            if job.array is not None:
                messages.success(request, f"{job.array.size:,} jobs from #{job.pk} on are in the queue.")
                return redirect("array", job.array_id)
            messages.success(request, f"#{job.pk} is in the queue.")
            return redirect("job", job.pk)
    return _show(request, form, impossible, status=422)


@door(Role.SUBMITTER, ("POST",))
def estimate(request: HttpRequest) -> HttpResponse:
    """Return what the gate would say of the form as it stands now."""
    form = _form(request, request.POST)
    context: dict[str, Any] = {"empty": False}
    command, workload = request.POST.get("command", ""), _chosen(request.POST)
    if not command.strip() and not workload:
        context["empty"] = True
    elif form.is_valid():
        asked = form.submission()
        try:
            seen = jobs.preview(request.user, asked)
        except NotYours:
            raise
        except Refused as error:
            context["refused"] = error.sentence
            context["checks"] = getattr(error, "checks", [])
        else:
            context["preview"] = seen
            context["verdict"] = verdict.of(seen.decision)
            context["expected"] = expected.preview(seen.decision["planned"], timezone.now(), asked.not_before)
            context["ladders"] = ladder.ladders(seen.estimate)
            context["need"] = ladder.needs(seen.estimate)
    else:
        context["errors"] = [
            (form.fields[name].label or name.replace("_", " ") if name in form.fields else "", text)
            for name, texts in form.errors.items()
            for text in texts
        ]
    response = render(request, "placement/_estimate.html", context)
    gpu, why = submit.preselect(request.user, command, workload)
    response["HX-Trigger"] = json.dumps({"preselect": {"gpu": gpu, "why": why}})
    return response


@door(Role.SUBMITTER)
def workload_fields(request: HttpRequest) -> HttpResponse:
    """Return the fields of the chosen workload's parameters, and what it fills in elsewhere."""
    form = _form(request)
    response = render(request, "placement/_workload.html", {"form": form, "workload": form.chosen})
    if form.chosen is not None:
        filled = {n: form.initial[n] for n in ("cwd", "setup", "workers", "exclusive", "time_limit_s")}
        response["HX-Trigger"] = json.dumps({"prefill": {n: str(v) for n, v in filled.items()}})
    return response


def _whole(request: HttpRequest) -> Any:
    """Return what was posted; what the one-line box does not ask for is as this person's last jobs had it."""
    if "quick" not in request.POST:
        return request.POST
    data = request.POST.copy()
    usual = submit.choices(request.user).directories
    data.setdefault("kind", "command")
    data.setdefault("cwd", usual[0] if usual else "")
    data.setdefault("gpu", submit.preselect(request.user, data.get("command", ""), "")[0])
    return data


def _form(request: HttpRequest, data: Any = None) -> SubmitForm:
    source = data if data is not None else request.GET
    found = submit.workload(source.get("workload", "")) if source.get("workload") else None
    options: dict[str, Any] = {
        "choices": submit.choices(request.user),
        "workload": found,
        "may_raise": access.at_least(request.user, Role.OPERATOR),
    }
    if data is not None:
        return SubmitForm(data, **options)
    return SubmitForm(initial=_initial(request, found, options["choices"]), **options)


def _initial(request: HttpRequest, found: Workload | None, choices: submit.Choices) -> dict[str, Any]:
    command = request.GET.get("command", "")
    first = {
        "form_key": secrets.token_urlsafe(24),
        "kind": "workload" if found else "command",
        "command": command,
        "cwd": choices.directories[0] if choices.directories else "",
        "workers": 1,
        "gpu": submit.preselect(request.user, command, found.name if found else "")[0],
        "exclusive": "no",
        "priority": 0,
    }
    if found is not None:
        first |= {
            "workload": found.name,
            "cwd": found.cwd or first["cwd"],
            "setup": found.setup,
            "workers": found.workers,
            "exclusive": found.exclusive,
            "time_limit_s": seconds_text(found.time_limit_s),
        }
    return first


def _chosen(data: Any) -> str:
    return data.get("workload", "") if data.get("kind") == "workload" else ""


def _show(
    request: HttpRequest, form: SubmitForm, impossible: list[dict[str, Any]] | None = None, status: int = 200
) -> HttpResponse:
    context = {
        "form": form,
        "choices": submit.choices(request.user),
        "workload": form.chosen,
        "impossible": impossible or [],
        "wrong": [form[name] for name in form.fields if name in form.errors],
        "more_open": bool(form.errors),
        "terms_open": form.terms_given,
    }
    return render(request, "placement/submit.html", context, status=status)

"""Define, edit, remove and export named workloads."""

from __future__ import annotations

import shlex
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import content_disposition_header

from calibration.domain import keys
from placement.domain.errors import Refused, UnreadableSecret
from placement.domain.submitting import workload_text
from placement.domain.submitting import workloads as domain
from placement.forms import workloads as forms
from placement.forms.fields import seconds_text
from placement.forms.workloads import TomlForm, WorkloadForm
from placement.models import Job, Role, Workload
from placement.selectors import access, again, job, submit
from placement.services import workloads
from placement.views import wake
from placement.views.door import done, door
from placement.views.workloads import found_subject


@door(Role.OPERATOR, ("GET", "HEAD", "POST"))
def define(request: HttpRequest) -> HttpResponse:
    """Show the form of a new workload, filled from a job where one is named; store what is sent."""
    if request.method == "POST":
        return _sent(request, None)
    return _show(request, _form(request, initial=forms.fresh(**_of_job(request))))


@door(Role.OPERATOR, ("GET", "HEAD", "POST"))
def edit(request: HttpRequest, ident: str) -> HttpResponse:
    """Show the form of a workload that is defined; store what is sent."""
    if request.method == "POST":  # removed meanwhile: what was typed is kept, and can be defined anew
        return _sent(request, found_subject(ident).definition)
    row = _defined(ident)
    return _show(request, _filled(request, row), row)


@door(Role.OPERATOR, ("POST",))
def remove(request: HttpRequest, ident: str) -> HttpResponse:
    """Take a workload away; its jobs and what they taught stay."""
    row = _defined(ident)

    def act() -> str:
        workloads.remove(request.user, row.name)
        wake.soon()
        return f"{row.name} is no workload any more. Its jobs, and what was learned from them, stay."

    return done(request, "workloads", act)


@door(Role.SUBMITTER)
def export(request: HttpRequest, ident: str) -> HttpResponse:
    """Return the definition as a TOML file; sealed variables are named, not told."""
    row = _defined(ident)
    text = workload_text.write(workloads.definition_of(row), workloads.variables(row))
    response = HttpResponse(text, content_type="application/toml; charset=utf-8")
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in row.name)
    response["Content-Disposition"] = content_disposition_header(True, f"{name}.toml")
    return response


def _sent(request: HttpRequest, row: Workload | None) -> HttpResponse:
    variables = workloads.variables(row)
    editing = row.name if row else ""
    what = request.POST.get("what", "save")
    if what == "more":
        shown = forms.unsent(request.POST, further=forms.SPARE)
        return _show(request, _form(request, initial=shown, variables=variables, editing=editing), row)
    if what == "import":
        return _imported(request, row)
    data, lacking = forms.with_rows(request.POST)
    form = _form(request, data, variables=variables, editing=editing)
    valid = form.is_valid()
    if lacking:
        rows = "a row for it is" if len(lacking) == 1 else "rows for them are"
        form.add_error("command", f"It names {', '.join(lacking)}; {rows} below. Give a usual value, then save again.")
    elif valid:
        try:
            saved = workloads.save(
                request.user, form.table(), form.cleaned_data["seen"], frozenset(form.cleaned_data["keep"])
            )
        except Refused as error:
            form.refuse(error.fields, error.sentence)
            if not error.fields:  # what others changed is told now: the next save is on purpose
                now = Workload.objects.filter(name=form.cleaned_data["name"]).first()
                form.data["seen"] = workloads.state(now) if now else ""
        except UnreadableSecret as error:
            form.add_error("environment", str(error))
        else:
            wake.soon()
            messages.success(request, f"{saved.name} is {'up to date' if row else 'defined'}.")
            return redirect("workload", keys.named(saved.name))
    return _show(request, form, row, status=422)


def _imported(request: HttpRequest, row: Workload | None) -> HttpResponse:
    toml = TomlForm(request.POST, request.FILES)
    if not toml.is_valid():
        return _show(request, _filled(request, row), row, toml, status=422)
    try:
        definition = domain.parse(toml.cleaned_data["toml"])
    except Refused as error:
        toml.add_error("toml", error.sentence)
        return _show(request, _filled(request, row), row, toml, status=422)
    shown = forms.of_definition(definition)
    variables = workloads.variables(row)
    if row is not None:
        shown |= {"name": row.name, "seen": workloads.state(row), "keep": variables}
    messages.success(request, "The form is filled from the text; nothing is saved yet. Look it through, then save.")
    return _show(request, _form(request, initial=shown, variables=variables, editing=row.name if row else ""), row)


def _form(request: HttpRequest, *data: Any, **options: Any) -> WorkloadForm:
    return WorkloadForm(*data, choices=submit.choices(request.user), **options)


def _filled(request: HttpRequest, row: Workload | None) -> WorkloadForm:
    if row is None:
        return _form(request, initial=forms.fresh())
    variables = workloads.variables(row)
    shown = forms.of_definition(workloads.definition_of(row))
    shown |= {"seen": workloads.state(row), "keep": variables}
    return _form(request, initial=shown, variables=variables, editing=row.name)


def _of_job(request: HttpRequest) -> dict[str, Any]:
    """Return what a job that was typed gives to a workload: its command, directory and limits, never its variables."""
    text = request.GET.get("job", "")
    row = job.find(int(text)) if text.isascii() and text.isdecimal() and len(text) < 16 else None
    if row is None or not access.sees_private(request.user, row):
        return {}
    return {
        "command": row.command or shlex.join(row.argv or ()),
        "cwd": row.cwd, "setup": row.setup, "gpu": row.gpu, "exclusive": row.exclusive,
        "node": row.node_wanted, "device": row.device_wanted, **again.group(row),
        "image": row.image or "", "engine": row.engine or "",
        "workers": row.workers, "time_limit_s": seconds_text(row.time_limit_s),
        "files": row.key_script if row.key_script.startswith("/") else "",
    }  # fmt: skip


def _defined(ident: str) -> Workload:
    subject = found_subject(ident)
    if subject.definition is None:
        raise Http404("It is not defined, so there is nothing to edit; define it anew.")
    return subject.definition


def _show(
    request: HttpRequest, form: WorkloadForm, row: Workload | None = None, toml: TomlForm | None = None,
    status: int = 200,
) -> HttpResponse:  # fmt: skip
    context = {
        "form": form,
        "row": row,
        "ident": keys.named(row.name) if row else "",
        "toml": toml or TomlForm(),
        "toml_open": toml is not None,
        "wrong": [form[name] for name in form.fields if name in form.errors],
        "sealed_unreadable": bool(row and row.environment and not workloads.variables(row)),
        "jobs": Job.objects.filter(workload_id=row.pk).count() if row else 0,
    }
    name = "placement/_workload_form.html" if request.htmx else "placement/workload_form.html"
    return render(request, name, context, status=status)

from __future__ import annotations

from django.urls import path

from placement.api.urls import urlpatterns as api_urls
from placement.views import (
    api_page,
    arrays,
    attribution,
    audit,
    bulk,
    declarations,
    device,
    devices,
    forecasts,
    job,
    knobs,
    lists,
    log,
    login,
    notices,
    people,
    queue,
    reasons,
    submit,
    taking,
    tokens,
    workloads,
)
from placement.views import workload_definitions as definitions

# Ways in and out.
access_urls = [
    path("login", login.login, name="login"),
    path("login/link/<str:token>", login.link, name="login-link"),
    path("logout", login.logout, name="logout"),
    path("password", login.password, name="password"),
    path("tokens", tokens.page, name="tokens"),
    path("tokens/<int:token_id>/revoke", tokens.revoke, name="token-revoke"),
    path("api", api_page.page, name="api-page"),
    path("admin/login/", login.admin_login, name="admin-login"),
]

# The queue and its live part.
queue_urls = [
    path("", queue.page, name="queue"),
    path("fragments/queue", queue.fragment, name="queue-fragment"),
    path("forecasts/", forecasts.page, name="forecasts"),
    path("queue/hold", queue.hold, name="queue-hold"),
    path("queue/release", queue.release, name="queue-release"),
]

# Submit a run.
submit_urls = [
    path("submit", submit.page, name="submit"),
    path("submit/estimate", submit.estimate, name="submit-estimate"),
    path("submit/workload", submit.workload_fields, name="submit-workload"),
    path("submit/script", submit.script_fields, name="submit-script"),
]

# Jobs, one and all.
job_urls = [
    path("jobs/", lists.jobs, name="jobs"),
    path("jobs/bulk", bulk.act, name="jobs-bulk"),
    path("jobs/at", job.at, name="job-at"),
    path("jobs/<int:job_id>", job.page, name="job"),
    path("jobs/<int:job_id>/fragment", job.fragment, name="job-fragment"),
    path("jobs/<int:job_id>/log", log.fragment, name="job-log"),
    path("jobs/<int:job_id>/log/lines", log.lines, name="job-log-lines"),
    path("jobs/<int:job_id>/log/<str:stream>.log", log.raw, name="job-log-raw"),
    path("jobs/<int:job_id>/memory/<str:kind>", job.memory, name="job-memory"),
    path("jobs/<int:job_id>/change", job.change, name="job-change"),
    path("jobs/<int:job_id>/priority", job.priority, name="job-priority"),
    path("jobs/<int:job_id>/cancel", job.cancel, name="job-cancel"),
    path("jobs/<int:job_id>/retry", job.retry, name="job-retry"),
    path("jobs/<int:job_id>/hold", job.hold, name="job-hold"),
    path("jobs/<int:job_id>/release", job.release, name="job-release"),
    path("jobs/<int:job_id>/requests/<int:request_id>/revoke", job.revoke, name="job-revoke"),
    path("reasons", reasons.page, name="reasons"),
    path("jobs/<int:job_id>/argument", job.argument, name="job-argument"),
    path("jobs/<int:job_id>/mark", job.mark, name="job-mark"),
]

# Workloads: what was learned and defined.
workload_urls = [
    path("workloads", workloads.index, name="workloads"),
    path("workloads/define", definitions.define, name="workload-define"),
    path("workloads/named", workloads.named, name="workload-named"),
    path("workloads/<str:ident>", workloads.page, name="workload"),
    path("workloads/<str:ident>/charge", workloads.charge, name="workload-charge"),
    path("workloads/<str:ident>/figures/<str:which>", workloads.figure, name="workload-figure"),
    path("workloads/<str:ident>/mark", workloads.mark, name="workload-mark"),
    path("workloads/<str:ident>/forget", workloads.forget, name="workload-forget"),
    path("workloads/<str:ident>/forget-later", workloads.forget_later, name="workload-forget-later"),
    path("workloads/<str:ident>/pin", workloads.pin, name="workload-pin"),
    path("workloads/<str:ident>/argument", workloads.argument, name="workload-argument"),
    path("workloads/<str:ident>/edit", definitions.edit, name="workload-edit"),
    path("workloads/<str:ident>/remove", definitions.remove, name="workload-remove"),
    path("workloads/<str:ident>/toml", definitions.export, name="workload-export"),
]

# Arrays: many jobs from one submission.
array_urls = [
    path("arrays/<int:array_id>", arrays.page, name="array"),
    path("arrays/<int:array_id>/fragment", arrays.fragment, name="array-fragment"),
    path("arrays/<int:array_id>/cancel", arrays.cancel, name="array-cancel"),
]

# Devices: charts and declarations.
device_urls = [
    path("devices", devices.page, name="devices"),
    path("declarations/device/add", declarations.add, name="declaration-add"),
    path("declarations/device/<int:ident>/remove", declarations.remove, name="declaration-remove"),
    path("fragments/pools", devices.table, name="pools-fragment"),
    path("attribution", attribution.page, name="attribution"),
    path("attribution/fragment", attribution.fragment, name="attribution-fragment"),
    path("devices/<str:node>/<str:pool>", device.page, name="device-page"),
    path("devices/<str:node>/<str:pool>/take", taking.take, name="device-take"),
    path("devices/<str:node>/<str:pool>/fragment", device.fragment, name="device-fragment"),
    path("devices/<str:node>/<str:pool>/series", device.series, name="device-series"),
    path("devices/<str:node>/<str:pool>/series.csv", device.table, name="device-csv"),
    path("devices/<str:node>/<str:pool>/chart.html", device.drawing, name="device-html"),
    path("declarations/<str:kind>/<int:ident>/preview", declarations.preview, name="declaration-preview"),
    path("declarations/<str:kind>/<int:ident>/edit", declarations.edit, name="declaration-edit"),
    path("declarations/<str:kind>/<int:ident>/hold", declarations.hold, name="declaration-hold"),
    path("declarations/<str:kind>/<int:ident>/release", declarations.release, name="declaration-release"),
    path("declarations/<str:kind>/<int:ident>/drain", declarations.drain, name="declaration-drain"),
]

# For admins.
people_urls = [
    path("people", people.page, name="people"),
    path("people/add", people.add, name="people-add"),
    path("people/<int:user_id>/edit", people.edit, name="people-edit"),
    path("people/<int:user_id>/quota", people.quota, name="people-quota"),
    path("people/<int:user_id>/link", people.link, name="people-link"),
    path("people/<int:user_id>/let-in", people.let_in, name="people-let-in"),
    path("knobs", knobs.page, name="knobs"),
    path("knobs/<str:name>", knobs.turn, name="knob-turn"),
    path("audit", audit.page, name="audit"),
]

# What happened to one's jobs, and where that is told.
notice_urls = [
    path("notices", notices.page, name="notices"),
    path("notices/bell", notices.bell, name="notices-bell"),
    path("notices/seen", notices.saw, name="notices-saw"),
    path("notices/settings", notices.settings, name="notice-settings"),
    path("notices/choose", notices.choose, name="notice-choose"),
    path("notices/hooks", notices.hooks, name="notice-hooks"),
    path("notices/hooks/add", notices.add, name="hook-add"),
    path("notices/hooks/<int:ident>/edit", notices.edit, name="hook-edit"),
    path("notices/hooks/<int:ident>/remove", notices.remove, name="hook-remove"),
    path("notices/hooks/<int:ident>/test", notices.test, name="hook-test"),
]

urlpatterns = [
    *access_urls,
    *queue_urls,
    *submit_urls,
    *job_urls,
    *workload_urls,
    *array_urls,
    *device_urls,
    *people_urls,
    *notice_urls,
    *api_urls,
]

"""The pages to compare with: one raw-SQL view, one plain template loop over 100 rows, on the product's own database.

Served by ``bench.pages`` with gunicorn as the product is (``bench.plain:application``). No login, no session, no
middleware: what a view costs at least. PLAIN_DATABASE names the SQLite file.
"""

from __future__ import annotations

import os
from typing import TypeVar

import django
from django.conf import settings

ROWS = 100
SQL = (
    "SELECT j.id, j.name, u.username AS owner, j.state, j.outcome, j.headline, j.sentence, j.workers, j.priority,"
    " j.submitted_at, j.device, j.basis FROM placement_job j JOIN auth_user u ON u.id = j.user_id"
    " ORDER BY j.id DESC LIMIT %s"
)
PAGE = """<!doctype html><html><head><title>Jobs</title></head><body>{% for row in rows %}
<div class="row {{ row.state }}" data-job="{{ row.id }}">
  <span class="id">#{{ row.id }}</span>
  <div class="title">
    <a href="{% url 'job' row.id %}">{{ row.name }}</a>{% if row.basis %} <b>{{ row.basis }}</b>{% endif %}
  </div>
  <div class="sub">{{ row.headline }}</div>
  <div class="sub">{{ row.owner }}{% if row.workers != 1 %} · {{ row.workers }} workers{% endif %}</div>
  <div class="end">{{ row.state }} {% if row.outcome %}{{ row.outcome }}{% endif %} {{ row.submitted_at }}</div>
</div>{% endfor %}</body></html>"""

if not settings.configured:
    settings.configure(
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": os.environ.get("PLAIN_DATABASE", ":memory:"),
                "CONN_MAX_AGE": None,
            }
        },
        ROOT_URLCONF="bench.plain",
        SECRET_KEY="plain",
        ALLOWED_HOSTS=["*"],
        MIDDLEWARE=[],
        TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
        USE_TZ=True,
    )
    django.setup()

from django.core.wsgi import get_wsgi_application  # noqa: E402  # after the settings
from django.db import connection  # noqa: E402
from django.http import HttpRequest, HttpResponse, JsonResponse  # noqa: E402
from django.template import engines  # noqa: E402
from django.urls import path  # noqa: E402

Answer = TypeVar("Answer", bound=HttpResponse)


def rows() -> list[dict[str, object]]:
    """Return the newest jobs as dicts, by one statement."""
    with connection.cursor() as cursor:
        cursor.execute(SQL, [ROWS])
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def as_json(request: HttpRequest) -> JsonResponse:
    """Return the rows as JSON."""
    return _sized(JsonResponse({"jobs": rows()}))


_page = engines["django"].from_string(PAGE)


def as_page(request: HttpRequest, job: int = 0) -> HttpResponse:
    """Return the rows as a page."""
    return _sized(HttpResponse(_page.render({"rows": rows()})))


def _sized(response: Answer) -> Answer:
    """Name the length, so that the connection is kept without chunks; the product's middleware does the same."""
    response["Content-Length"] = str(len(response.content))
    return response


urlpatterns = [path("json", as_json), path("page", as_page), path("jobs/<int:job>", as_page, name="job")]
application = get_wsgi_application()

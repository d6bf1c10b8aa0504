"""Pages of workloads: the list, what was learned of one, what people say about it; figures are valid and bounded."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from calibration import rows
from calibration import services as instrument
from calibration.domain import keys
from calibration.domain.sediment import Key
from calibration.models import Known, Sediment
from placement.models import AuditEntry, Job, Role, Workload
from placement.selectors import workload_runs
from placement.services import workloads as service
from tests.figures import check
from tests.integration.learned import GIB, NAMED, a_run
from tests.integration.rows import a_machine, a_user
from tests.integration.test_workloads import TEXT
from tests.integration.work import counted

pytestmark = pytest.mark.django_db
HERE = f"/workloads/{keys.named('train')}"
TYPED = Key("bob: python", "", '["/home/bob/secret/net.py", "--seed=7"]', "/home/bob/secret/net.py")


@pytest.fixture
def ada() -> User:
    a_machine()
    return a_user("ada", Role.OPERATOR)


@pytest.fixture
def page(client: Client, ada: User) -> Client:
    client.force_login(ada)
    return client


def text(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, (path, answer.status_code)
    return str(answer.content.decode())


def charged(client: Client, path: str = HERE) -> str:
    """Return what the page says of the next run's charge, without its tags."""
    answer = client.get(path, headers={"HX-Request": "true"}).content.decode()
    found = re.search(r'class="sentence">(.*?)</p>', answer, re.DOTALL)
    assert found, answer
    return " ".join(re.sub(r"<[^>]+>", " ", found[1]).split())


def figure(client: Client, which: str, kind: str = "ram") -> dict[str, Any]:
    found = json.loads(text(client, f"{HERE}/figures/{which}?kind={kind}"))
    check(found)
    return found


def traces(found: dict[str, Any]) -> dict[str, int]:
    return {trace["name"]: len(trace["x"]) for trace in found["data"]}


def test_an_empty_list_says_what_to_do(page: Client) -> None:
    assert "Nothing was learned yet" in text(page, "/workloads")
    service.define(None, TEXT)
    assert "not run yet" in text(page, "/workloads")


def test_the_list_tells_runs_need_spread_and_guesses_that_are_off(page: Client, ada: User) -> None:
    for gib in (2, 3):
        a_run(ada, ram=gib, declared_ram=GIB)
    a_run(ada, completed=False, outcome="failed", ago=1)
    a_run(a_user("bob"), TYPED, ram=1, vram=9)
    shown = text(page, "/workloads")
    assert "2.0 GiB to 3.0 GiB" in shown
    assert "3.0 GiB RAM" in shown
    assert "1 failed" in shown
    assert "declared 1.0 GiB, 3.0 GiB was used in 3 runs" in shown
    assert "9.0 GiB device memory" in shown
    assert shown.index("net.py") < shown.index(">train<")  # the newest run first
    by_runs = text(page, "/workloads?order=runs")
    assert by_runs.index(">train<") < by_runs.index("net.py")
    assert "net.py" not in text(page, "/workloads?which=named")
    assert ">train<" not in text(page, "/workloads?which=typed&q=net")
    assert "No such workload" in text(page, "/workloads?q=nothing-of-that-name")


def test_paths_and_arguments_are_for_who_typed_them_and_operators(client: Client, ada: User) -> None:
    bob = a_user("bob")
    job, _ = a_run(bob, TYPED, command="python /home/bob/secret/net.py --seed 7")
    Job.objects.filter(pk=job.pk).update(cwd="/home/bob")
    where = f"/workloads/{Known.objects.get().subject}"
    for user, sees in ((a_user("cleo"), False), (a_user("vic", Role.VIEWER), False), (bob, True), (ada, True)):
        client.force_login(user)
        both = text(client, "/workloads") + text(client, where)
        assert "net.py" in both
        assert ("/home/bob/secret" in both, "--seed" in both) == (sees, sees)
        found = text(client, "/workloads?q=secret")
        assert ("net.py" in found) == sees


def test_a_page_shows_runs_and_why_some_do_not_count(page: Client, ada: User) -> None:
    service.define(None, TEXT)
    current = replace(NAMED, fingerprint="")
    a_run(ada, current, ram=2, vram=5)
    a_run(ada, replace(NAMED, fingerprint="other"), ram=9, ago=3)
    a_run(ada, current, ram=4, ago=1, completed=False, outcome="out_of_memory")
    odd = a_run(ada, current, ram=8, ago=2)[1]
    assert page.post(f"{HERE}/mark", {"run": odd.pk, "what": "atypical", "kind": "ram"}).status_code == 302
    shown = text(page, f"{HERE}?kind=ram")
    assert "the sources changed since" in shown
    assert "marked as not typical, said ada" in shown
    assert "as a bound" in shown
    assert charged(page) == "measured 5.0 GiB device memory measured 4.0 GiB RAM"  # raised to what was really used
    assert traces(figure(page, "time")) == {
        "was charged": 4, "counts": 1, "△ lower bound: did not complete": 1, "□ sources edited since": 1,
        "✕ not typical": 1, "the next run is charged": 2,
    }  # fmt: skip
    need = figure(page, "need")
    assert {"the next run is charged", "counts"} <= set(traces(need))
    assert traces(figure(page, "spread", "vram")) == {"runs that count": 1}
    assert sum(traces(figure(page, "durations")).values()) == 4
    assert page.get(f"{HERE}/figures/other").status_code == 404
    assert AuditEntry.objects.filter(action="mark_run").count() == 1


def test_the_ladder_follows_the_workers_that_are_asked_for(page: Client, ada: User) -> None:
    for workers in (1, 2):
        a_run(ada, replace(NAMED, workers=workers), ram=workers)
    htmx = {"HX-Request": "true"}
    four = page.get(f"{HERE}/charge?workers=4", headers=htmx).content.decode()
    assert charged(page, f"{HERE}/charge?workers=4") == "fitted 4.0 GiB RAM"
    assert "with 4 workers" in four
    assert "a line through 1, 2 workers" in four
    for odd in ("", "0", "-3", "x", "9" * 30):
        assert page.get(f"{HERE}/charge?workers={odd}", headers=htmx).status_code == 200


def test_a_pin_changes_the_ladder_and_is_taken_back(page: Client, ada: User) -> None:
    a_run(ada, ram=2)
    page.post(f"{HERE}/pin", {"pin_kind": "ram", "amount": "12 GiB"})
    assert charged(page) == "pinned 12.0 GiB RAM"
    assert "said ada" in text(page, HERE)
    assert (
        "is not a unit"
        in page.post(f"{HERE}/pin", {"pin_kind": "ram", "amount": "2 parsecs"}, follow=True).content.decode()
    )
    page.post(f"{HERE}/pin", {"pin_kind": "ram", "off": "1"})
    assert charged(page) == "measured 2.0 GiB RAM"


def test_what_is_old_is_forgotten_from_the_page(page: Client, ada: User) -> None:
    a_run(ada, ram=9, ago=72)
    a_run(ada, ram=2)
    said = page.post(f"{HERE}/forget", {"days": "2"}, follow=True).content.decode()
    assert "1 run is forgotten" in said
    assert charged(page) == "measured 2.0 GiB RAM"
    assert "in whole days" in page.post(f"{HERE}/forget", {"days": "-1"}, follow=True).content.decode()
    assert Sediment.objects.filter(forgotten=True).count() == 1


def test_who_only_submits_sees_no_actions_and_may_do_none(client: Client, ada: User) -> None:
    row = a_run(ada)[1]
    client.force_login(a_user("cleo"))
    shown = text(client, HERE)
    assert "Forget" not in shown
    assert "Pin</button>" not in shown
    pin = {"pin_kind": "ram", "amount": "1 GiB"}
    for path, sent in (("mark", {"run": row.pk, "what": "forget"}), ("forget", {"days": "0"}), ("pin", pin)):
        assert client.post(f"{HERE}/{path}", sent).status_code == 403, path
    assert not Sediment.objects.filter(forgotten=True).exists()


def test_sets_of_parameters_are_chosen_and_runs_turned_over(
    page: Client, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        a_run(ada, ago=number)
    a_run(ada, replace(NAMED, params='{"lr": "1"}'), ram=7, ago=50)
    shown = text(page, HERE)
    assert "lr=1e-3 · 30 runs" in shown
    assert shown.count('class="acts"') == 25
    older = shown.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&").split("#")[0]
    assert text(page, HERE + older).count('class="acts"') == 5
    last = Sediment.objects.order_by("at").filter(params=NAMED.params).first()
    page.post(f"{HERE}/mark", {"run": last.pk, "what": "forget"})
    monkeypatch.setattr(workload_runs, "PLOTTED", 10)  # beyond them a mark is told all the same
    assert "forgotten, said ada" in text(page, HERE + older)
    other = Known.objects.get(params='{"lr": "1"}').params_digest
    assert charged(page, f"{HERE}?key={other}") == "measured 7.0 GiB RAM"
    assert page.get(f"{HERE}?key=nothing").status_code == 404


@pytest.mark.parametrize("ident", ["x", "0" * 32, "'" * 32])
def test_what_is_not_there_is_404(page: Client, ident: str) -> None:
    assert page.get(f"/workloads/{ident}").status_code == 404
    assert page.get(f"/workloads/{ident}/figures/need").status_code == 404


def test_a_name_leads_to_its_page_whatever_it_is(page: Client, ada: User) -> None:
    service.define(None, TEXT.replace('"train"', '"a/b ?#<i>"'))
    answer = page.get("/workloads/named", {"name": "a/b ?#<i>"}, follow=True)
    assert answer.status_code == 200
    assert "a/b ?#&lt;i&gt;" in answer.content.decode()
    assert Workload.objects.count() == 1


def test_a_job_leads_to_what_is_learned_of_its_kind(page: Client, ada: User) -> None:
    job, _ = a_run(ada)
    assert f'href="{HERE}"' in text(page, f"/jobs/{job.pk}")
    Known.objects.all().delete()
    assert f'href="{HERE}"' not in text(page, f"/jobs/{job.pk}")


def many(first: Sediment, count: int) -> None:
    """Make so many further rows of its key, an hour apart."""
    fields = {f.name: getattr(first, f.name) for f in Sediment._meta.concrete_fields if f.name not in ("id", "owner")}
    Sediment.objects.bulk_create(
        Sediment(**{**fields, "owner": f"job:{n}", "at": first.at - timedelta(hours=n)}) for n in range(1, count)
    )


def test_a_long_past_costs_no_more_than_a_short_one(page: Client, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: what is read for a page, its figures and the list is bounded by what they show."""
    if connection.vendor != "sqlite":
        pytest.skip("the default database is not SQLite")
    monkeypatch.setattr(workload_runs, "PLOTTED", 60)
    monkeypatch.setattr(rows, "NEWEST", 60)
    _, first = a_run(ada, vram=5)
    many(first, 200)
    paths = ("/workloads", HERE, *(f"{HERE}/figures/{which}" for which in ("need", "time", "durations", "spread")))

    def steps() -> dict[str, int]:
        found = {}
        for path in paths:
            instrument.raise_version()
            rows.forget()
            page.get(path)
            with counted() as work:
                assert page.get(path).status_code == 200
            found[path] = work.steps
        return found

    before = steps()
    many(first, 2000)
    after = steps()
    assert not {path: (before[path], n) for path, n in after.items() if n > 1.1 * before[path] + 1000}
    assert len(figure(page, "time")["data"][1]["x"]) <= 60


def test_runs_that_used_none_of_a_kind_are_in_its_spread(page: Client, ada: User) -> None:
    service.define(None, TEXT)
    for ago in range(3):
        a_run(ada, replace(NAMED, fingerprint=""), ram=2, vram=0, ago=ago)
    (bars,) = figure(page, "spread", "vram")["data"]
    assert (bars["x"], bars["y"]) == (["0 MiB"], [3])

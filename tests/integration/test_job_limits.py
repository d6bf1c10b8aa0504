"""What a job's page says of how it is kept within its figures."""

from __future__ import annotations

import pytest

from placement.models import Node
from placement.selectors import proof
from tests.integration.rows import GIB, a_finished, a_machine, a_running, a_user
from tests.integration.test_pages import text_of

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ("", "the watchdog stops it past its grant when memory runs short, not before"),
        ("warn", "the watchdog only warns"),
        ("cap", "the watchdog stops it at its cap, and past its grant when memory runs short"),
    ],
)
def test_a_job_that_nothing_keeps_says_when_the_watchdog_would_stop_it(client, node, said):
    def page(job):
        return text_of(client.get(f"/jobs/{job.pk}"))

    ada = a_user("ada")
    client.force_login(ada)
    a_machine()
    Node.objects.update(watch_policy=node)
    force = {"kind": "watched", "bytes": None, "sentence": "watched, not kept: no group", "evidence": {}}
    charge = {"granted": GIB, "held": GIB, "at_start": GIB, "cap": 2 * GIB}
    job = a_running(ada, charges={"ram": {**charge, "force": force}})
    assert f"watched, not kept: no group; {said}" in page(job)
    job = a_finished(ada, charges={"ram": {**charge, "force": force}})
    assert "the watchdog" not in page(job)
    kept = {**force, "kind": "cgroup", "sentence": "kept in 2.0 GiB by its control group"}
    assert "the watchdog" not in page(a_running(ada, charges={"ram": {**charge, "force": kept}}))


def test_a_figure_that_two_witnesses_have_is_told_once():
    watchdog, postmortem = {"granted": GIB, "used": 3 * GIB}, {"granted": GIB, "used": 2 * GIB}
    told = [(fact.name, fact.text) for fact in proof.facts({"watchdog": watchdog, "postmortem": postmortem}, {})]
    assert told == [("granted", "1.0 GiB"), ("used at its end", "3.0 GiB"), ("used at its end", "2.0 GiB")]

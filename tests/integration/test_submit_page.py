"""The submit page: what it shows first, what it keeps, what it takes over from an earlier job, and from whom."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from placement.models import Job, JobArray, Role, Workload
from placement.selectors import again
from placement.services import secrets
from tests.integration.rows import GIB, a_finished, a_job, a_machine, a_user

pytestmark = pytest.mark.django_db
FORM = {"command": "echo {lr}", "cwd": "/tmp", "form_key": "k", "gpu": "none", "exclusive": "no", "workers": "1",
        "kind": "command", "declared_ram": "1 GiB"}  # fmt: skip


@pytest.fixture
def ada(client: Client) -> Any:
    a_machine()
    user = a_user("ada", Role.ADMIN)
    client.force_login(user)
    return user


def shown(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_sweep_is_previewed_and_made(client: Client, ada: Any) -> None:
    sweep = {**FORM, "sweep": "lr = 0.1, 0.01\nseed = 1..3", "command": "echo {lr} --seed {seed}", "array_limit": "2"}
    seen = client.post("/submit/estimate", sweep).content.decode()
    assert "<b>6 jobs</b>" in seen
    assert "echo 0.1 --seed 2" in seen
    assert not Job.objects.exists()
    answer = client.post("/submit", sweep)
    array = JobArray.objects.get()
    assert answer.headers["Location"] == f"/arrays/{array.pk}"
    assert (array.size, array.limit) == (6, 2)
    assert "6 jobs from #" in client.get(answer.headers["Location"]).content.decode()


def test_an_array_is_previewed_by_its_first_job(client: Client, ada: Any) -> None:
    seen = client.post("/submit/estimate", {**FORM, "array": "30", "array_limit": "3"}).content.decode()
    assert "The first fits now" in seen
    assert "30 jobs alike, each charged as below; at most 3 at once." in seen


def test_braces_without_values_are_named_and_go_to_bash(client: Client, ada: Any) -> None:
    assert "<code>{lr}</code> goes to bash as it is" in client.post("/submit/estimate", FORM).content.decode()


def test_what_is_wrong_is_beside_its_field_and_nothing_typed_is_lost(client: Client, ada: Any) -> None:
    typed = {"sweep": "lr = 1..", "sweep_same": "lr, seed", "note": "kept", "after": "12 perhaps", "environment": "A=1"}
    answer = client.post("/submit", {**FORM, **typed, "sweep": "lr"})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "&#x27;lr&#x27; lists no values" in page
    assert 'href="#id_sweep"' in page
    assert re.search(r'<details id="sweep" open>', page)
    for text in ("lr, seed", "kept", "12 perhaps", "A=1"):
        assert text in page
    answer = client.post("/submit", {**FORM, **typed, "sweep": "lr = 1..3", "sweep_same": "", "after": ""})
    assert answer.status_code == 302


def test_without_scripts_a_check_shows_the_estimate_and_stores_nothing(client: Client, ada: Any) -> None:
    page = client.post("/submit", {**FORM, "check": "1"}).content.decode()
    assert re.search(r'<p class="verdict ok">\s*Fits now', page)
    assert not Job.objects.exists()
    assert 'value="1 GiB"' in page


def test_a_script_fills_fields_and_says_what_it_took(client: Client, ada: Any) -> None:
    text = b"#!/bin/bash\n#SBATCH --time=90 -p long --array=0-4%2\necho $SLURM_ARRAY_TASK_ID\n"
    answer = client.post("/submit/script", {"script": SimpleUploadedFile("fit.sh", text)})
    fields = json.loads(answer.headers["HX-Trigger"])["script"]
    assert fields["command"] == text.decode()
    assert (fields["name"], fields["time_limit_s"], fields["array"], fields["array_limit"]) == (
        "fit",
        "90 min",
        "5",
        "2",
    )
    assert "there is one queue here" in answer.content.decode()
    page = client.post(
        "/submit", {**FORM, "command": "", "script": SimpleUploadedFile("fit.sh", text)}
    ).content.decode()
    assert "echo $SLURM_ARRAY_TASK_ID" in page
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x7fELF\xff\xfe", "not UTF-8"),
        (b"echo\0", "NUL bytes"),
        (b" \n", "is empty"),
        (b"x" * 131_072, "131,072 bytes"),
    ],
)
def test_a_file_that_is_no_script_is_refused_with_a_sentence(
    client: Client, ada: Any, content: bytes, said: str
) -> None:
    answer = client.post("/submit/script", {"script": SimpleUploadedFile("<b>.sh", content)})
    assert said in answer.content.decode()
    assert "<b>.sh" not in answer.content.decode()
    assert "HX-Trigger" not in answer.headers


def test_an_earlier_job_fills_the_form_and_its_variables_stay_sealed(client: Client, ada: Any) -> None:
    old = a_finished(
        ada, command="python a.py --x 1", name="python a.py --x 1", cwd="/tmp", workers=3, declared_vram=1500 << 20,
        time_limit_s=5400.0, environment=secrets.seal({"TOKEN": "geheim", "B": "2"}), gpu="one",
    )  # fmt: skip
    page = shown(client, f"/submit?again={old.pk}")
    assert "python a.py --x 1</textarea>" in page
    for text in ('value="1500 MiB"', 'value="90 min"', f'name="kept_from" value="{old.pk}"', "2 variables are kept"):
        assert text in page
    assert "geheim" not in page
    form = {**FORM, "command": "echo", "kept_from": str(old.pk), "keep": "on", "environment": "B=3", "form_key": "one"}
    assert client.post("/submit", form).status_code == 302
    made = Job.objects.get(form_key="one")
    assert secrets.unseal(made.environment) == {"TOKEN": "geheim", "B": "3"}
    assert client.post("/submit", {**form, "keep": "", "form_key": "two"}).status_code == 302
    assert secrets.unseal(Job.objects.get(form_key="two").environment) == {"B": "3"}


def test_only_owner_and_operators_fill_in_a_job_and_its_owner_alone_its_variables(client: Client, ada: Any) -> None:
    bob, eve = a_user("bob"), a_user("eve")
    theirs = a_finished(bob, command="python secret.py", cwd="/tmp", environment=secrets.seal({"TOKEN": "geheim"}))
    page = shown(client, f"/submit?again={theirs.pk}")
    assert "python secret.py</textarea>" in page
    assert "Not taken over: its variables, which bob alone may use again" in page
    assert "kept_from" not in page
    grab = {**FORM, "command": "env", "kept_from": str(theirs.pk), "keep": "on"}
    assert client.post("/submit", grab).status_code == 403
    assert client.post("/submit/estimate", grab).status_code == 403
    client.force_login(eve)
    answer = client.get(f"/submit?again={theirs.pk}")
    assert answer.status_code == 403
    assert "secret.py" not in answer.content.decode()
    assert client.get("/submit?again=999999").status_code == 404
    assert client.get(f"/submit?again={'9' * 18}").status_code == 404
    assert client.get("/submit?again=x").status_code == 200


def test_a_sweep_is_used_again_whole_or_one_job_of_it(client: Client, ada: Any) -> None:
    client.post("/submit", {**FORM, "sweep": "lr = 0.1, 0.01", "array_limit": "1"})
    last = Job.objects.order_by("-pk").first()
    assert last is not None
    whole = shown(client, f"/submit?again={last.pk}&whole=1")
    assert "echo {lr}</textarea>" in whole
    assert "lr = 0.1, 0.01</textarea>" in whole
    alone = shown(client, f"/submit?again={last.pk}")
    assert "echo 0.01</textarea>" in alone
    assert "lr = 0.1, 0.01</textarea>" not in alone


def test_an_array_and_a_workload_are_used_again(client: Client, ada: Any) -> None:
    Workload.objects.create(name="fit", command="fit {x}", parameters=[{"name": "x", "default": "1"}])
    by_name = {**FORM, "kind": "workload", "workload": "fit", "param_x": "7", "command": "", "form_key": "w"}
    client.post("/submit", by_name)
    named = Job.objects.get(form_key="w")
    page = shown(client, f"/submit?again={named.pk}")
    assert re.search(r'name="param_x" value="7"', page)
    assert '<option value="fit" selected>' in page
    client.post("/submit", {**FORM, "command": "echo {index}", "array": "3", "form_key": "a"})
    member = Job.objects.order_by("-pk").first()
    assert member is not None
    assert "echo 2</textarea>" in shown(client, f"/submit?again={member.pk}")
    whole = shown(client, f"/submit?again={member.pk}&whole=1")
    assert "echo {index}</textarea>" in whole
    assert re.search(r'name="array" value="3"', whole)


def test_the_last_ten_distinct_submissions_are_offered(client: Client, ada: Any) -> None:
    a_job(a_user("bob"), command="bobs own")
    for number in range(12):
        a_job(ada, command=f"run {number}")
    a_job(ada, command="run 11")
    client.post("/submit", {**FORM, "sweep": "lr = 1..5"})
    found = again.recent(ada)
    assert [one.words for one in found] == ["echo {lr}", *(f"run {n}" for n in range(11, 2, -1))]
    assert found[0].many == "sweep of 5"
    page = shown(client, "/submit")
    assert f'href="/submit?again={found[0].id}&amp;whole=1"' in page
    assert "bobs own" not in page


def test_what_was_submitted_before_a_large_sweep_is_offered_still(client: Client, ada: Any) -> None:
    a_job(ada, command="before")
    client.post("/submit", {**FORM, "sweep": "lr = 1..350"})
    assert [one.words for one in again.recent(ada)] == ["echo {lr}", "before"]


def test_an_amount_is_used_again_to_the_byte(client: Client, ada: Any) -> None:
    old = a_finished(ada, cwd="/tmp", declared_vram=3 * GIB + 1)
    assert f'value="{3 * GIB + 1} B"' in shown(client, f"/submit?again={old.pk}")


def test_what_was_taken_is_told_to_the_browser_so_that_its_draft_can_go(client: Client, ada: Any) -> None:
    assert client.post("/submit", {**FORM, "form_key": "taken"}).cookies["tidegate_sent"].value == "taken"
    assert "tidegate_sent" not in client.post("/submit", {**FORM, "cwd": "/nowhere"}).cookies

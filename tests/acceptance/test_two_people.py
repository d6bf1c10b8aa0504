"""Two people on one machine: neither reads, stops or forges what is the other's, by pages, by the API or by files."""

from __future__ import annotations

import os
import pwd
import re
import secrets
import shlex
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.scene import end_all, live_leases, rows, scene
from tests.person import Person, Refusal
from tests.service import LiveService
from tests.wait import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root may start jobs as others")

# Accounts that every Debian has and nobody uses.
ACCOUNTS = {"ann": "games", "bob": "news"}
SMALL = {"declared_ram": "64 MiB"}
SECRET = f"sesame-{secrets.token_hex(8)}"
HIS_JOBS = "SELECT j.id FROM placement_job j JOIN auth_user u ON u.id = j.user_id WHERE u.username = 'bob'"
TRY_ALL = """
import os, sys
uid = int(sys.argv[1])
os.setgroups([]); os.setgid(uid); os.setuid(uid)
for path in sys.stdin.read().split("\\0"):
    for flags, word in ((os.O_RDONLY, "read"), (os.O_WRONLY, "write")):
        try:
            os.close(os.open(path, flags | os.O_NONBLOCK))
            print(word, path)
        except OSError:
            pass
"""


@dataclass
class Town:
    service: LiveService
    admin: Person
    ann: Person
    bob: Person
    job: int  # ann's, running

    def run_dir(self, job: int) -> Path:
        return self.service.data / "runs" / f"{job}-1"


@pytest.fixture(scope="module")
def town() -> Iterator[Town]:
    with scene("files", simulate="1x24GiB") as (service, admin):
        service.data.parent.chmod(0o711)  # as /var/lib is: an account may pass through to its own
        ann, bob = (_newcomer(service, admin, name) for name in ("ann", "bob"))
        environment = {"API_TOKEN": SECRET, "PLAIN": "visible"}
        job = ann.submit("echo private-output; sleep 600", name="study", environment=environment, **SMALL)
        town = Town(service, admin, ann, bob, job)
        ann.wait_for(job, "running")
        until(lambda: "private-output" in (town.run_dir(job) / "stdout.log").read_text(), 10, "ann's output")
        yield town
        end_all(service, admin)


def _newcomer(service: LiveService, admin: Person, name: str) -> Person:
    """Add somebody on the People page, give them an account, and log them in by the link that is shown."""
    page = admin.send("/people/add", urllib.parse.urlencode({"name": name, "role": "submitter"}).encode())
    link = re.search(r"/login/link/[\w-]+", page)
    assert link, page[:500]
    ((user_id,),) = rows(service, "SELECT id FROM auth_user WHERE username = ?", name)
    fields = {"role": "submitter", "account": ACCOUNTS[name]}
    admin.send(f"/people/{user_id}/edit", urllib.parse.urlencode(fields).encode())
    return Person(service.address, link[0])


def _status(act: object, *arguments: object) -> int:
    try:
        act(*arguments)  # type: ignore[operator]
    except Refusal as refusal:
        return refusal.status
    return 200


def test_bob_sees_that_anns_job_is_there_and_nothing_that_is_private(town: Town) -> None:
    seen = town.bob.job(town.job)
    assert (seen["user"], seen["name"], seen["state"]) == ("ann", "study", "running")
    shown = [str(seen), town.bob.read(f"/jobs/{town.job}"), town.bob.read("/"), str(town.bob.call("/api/v1/queue"))]
    for text in shown:
        assert "private-output" not in text
        assert SECRET not in text
    assert "command" not in seen
    for path in (f"/jobs/{town.job}/log", f"/jobs/{town.job}/log/stdout.log", f"/jobs/{town.job}/log/stderr.log"):
        assert _status(town.bob.read, path) in (403, 404)
        assert _status(town.bob.read, path, {"HX-Request": "true"}) in (403, 404)
    assert "private-output" in town.ann.read(f"/jobs/{town.job}/log/stdout.log")


def test_bob_cannot_stop_hold_or_repeat_anns_job(town: Town) -> None:
    assert _status(town.bob.call, f"/api/v1/jobs/{town.job}/cancel", {}) == 403
    for act in ("cancel", "hold", "release", "retry"):
        assert _status(town.bob.send, f"/jobs/{town.job}/{act}", b"") in (403, 404)
    for path in ("/people", "/audit"):
        assert _status(town.bob.read, path) == 403
    for path in ("/people/add", "/queue/hold"):
        assert _status(town.bob.send, path, b"name=eve&role=admin") == 403
    job = town.ann.job(town.job)
    assert (job["state"], job["flags"]) == ("running", [])
    assert rows(town.service, "SELECT count(*) FROM placement_job WHERE retry_of_id IS NOT NULL") == [(0,)]
    assert rows(town.service, "SELECT stop_requested_at FROM placement_job WHERE id = ?", town.job) == [(None,)]


def _everything(folder: Path) -> list[Path]:
    """Return all below a folder of a service at work, where messages come and go while it is looked at."""
    return [Path(at) / name for at, folders, files in os.walk(folder) for name in (*folders, *files)]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.is_file() and not path.is_symlink() else b""
    except FileNotFoundError:
        return b""


def test_values_of_the_environment_are_in_the_spec_alone(town: Town) -> None:
    for person in (town.ann, town.bob, town.admin):
        for text in (person.read(f"/jobs/{town.job}"), str(person.job(town.job))):
            assert SECRET not in text
    found = [path for path in _everything(town.service.data) if SECRET.encode() in _content(path)]
    assert found == [town.run_dir(town.job) / "control" / "spec.json"]
    assert found[0].stat().st_mode & 0o777 == 0o600
    assert SECRET not in town.service.said()
    child = rows(town.service, "SELECT json_extract(child, '$.pid') FROM placement_job WHERE id = ?", town.job)[0][0]
    assert f"API_TOKEN={SECRET}".encode() in Path(f"/proc/{child}/environ").read_bytes()  # where it belongs


def test_bobs_account_opens_his_own_output_and_no_other_file_of_the_service(town: Town) -> None:
    own = town.run_dir(town.bob.submit("echo mine", **SMALL))
    town.bob.wait_for(int(own.name.split("-")[0]), "finished")
    his = {town.run_dir(job) for (job,) in rows(town.service, HIS_JOBS)}
    # Everybody may speak to the simulated driver; what is there is what nvidia-smi would show anybody.
    driver = town.service.data / "simulated"
    paths = [p for p in (town.service.data, *_everything(town.service.data)) if driver not in (p, *p.parents)]

    tried = subprocess.run(
        [sys.executable, "-S", "-c", TRY_ALL, str(pwd.getpwnam(ACCOUNTS["bob"]).pw_uid)],
        input="\0".join(map(str, paths)),
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )

    opened = [(how, Path(path)) for how, path in (line.split(" ", 1) for line in tried.stdout.splitlines())]
    assert ("read", own / "stdout.log") in opened
    # What every job imports is there for all: to be read, and no more.
    imported = [("read", path) for path in paths if town.service.data / "client" in (path, *path.parents)]
    assert [path for how, path in opened if not his & {path, *path.parents} and (how, path) not in imported] == []
    assert [path for _, path in opened if "control" in path.parts] == []


def test_a_job_of_bob_reads_ends_and_forges_nothing(town: Town) -> None:
    ann_pid, runner = rows(
        town.service,
        "SELECT json_extract(child, '$.pid'), json_extract(runner, '$.pid') FROM placement_job WHERE id = ?",
        town.job,
    )[0]
    theirs, data = shlex.quote(str(town.run_dir(town.job))), shlex.quote(str(town.service.data))
    forged = shlex.quote('{"version": 1, "code": 0, "ended_at": 1}')
    own = 'R=$(dirname "$TIDEGATE_RECEIPTS"); '
    attempts = [
        f"cat {theirs}/stdout.log {theirs}/control/spec.json {theirs}/receipts/*",
        f"ls {theirs}; ls {theirs}/control; ls {theirs}/receipts; ls {data}; ls {data}/runs",
        f"cat {data}/tidegate.sqlite3 {data}/secret.key {data}/up.json {data}/logs/tick.log",
        f"cat /proc/{ann_pid}/environ; cat /proc/{ann_pid}/fd/1",
        f"kill -9 {ann_pid}; kill -9 {runner}; kill -9 $PPID",
        f"for f in exit started stop claim; do echo {forged} > {theirs}/control/$f.json; done; touch {theirs}/x",
        f"{own}for f in exit started stop leader; do echo {forged} > $R/control/$f.json; done",
        f"{own}mv $R/control $R/gone; rm -rf $R/control; mkdir $R/control; ln -s /tmp $R/new; rm -f $R/stdout.log",
        f"echo {forged} > {data}/broker/queues/x; mkdir {data}/runs/999-1",
    ]
    bob = town.bob.submit(f"id -un; {'; '.join(attempts)}; exit 7", cwd="/tmp", **SMALL)

    ended = town.bob.wait_for(bob, "finished")

    assert (ended["outcome"], ended["exit_code"]) == ("failed", 7)
    assert town.bob.read(f"/jobs/{bob}/log/stdout.log").split() == [ACCOUNTS["bob"]]
    assert (town.run_dir(bob) / "control" / "exit.json").exists()
    assert not (town.service.data / "runs" / "999-1").exists()
    job = town.ann.job(town.job)
    assert (job["state"], job["flags"]) == ("running", [])
    assert os.stat(f"/proc/{ann_pid}").st_uid == pwd.getpwnam(ACCOUNTS["ann"]).pw_uid


def test_bobs_submission_cannot_be_redirected_into_anns_run_or_account(town: Town) -> None:
    for name, value in {"TIDEGATE_JOB_ID": str(town.job), "TIDEGATE_RECEIPTS": str(town.run_dir(town.job))}.items():
        with pytest.raises(Refusal, match=name) as refused:
            town.bob.submit("id -un", environment={name: value}, **SMALL)
        assert refused.value.status == 400
    job = town.bob.submit('id -un; echo "$TIDEGATE_JOB_ID"', environment={"USER": "root", "HOME": "/root"}, **SMALL)
    assert town.bob.wait_for(job, "finished")["outcome"] == "completed"
    assert town.bob.read(f"/jobs/{job}/log/stdout.log").split() == [ACCOUNTS["bob"], str(job)]


def test_somebody_without_an_account_waits_and_is_told(town: Town) -> None:
    page = town.admin.send("/people/add", b"name=cleo&role=submitter")
    link = re.search(r"/login/link/[\w-]+", page)
    assert link
    cleo = Person(town.service.address, link[0])
    job = cleo.submit("id -un", **SMALL)

    waits = until(lambda: (found := cleo.job(job))["code"] and found, 10, "a reason", 0.1)

    assert (waits["state"], waits["code"]) == ("queued", "no_account")
    assert "No Unix account is mapped for cleo" in waits["headline"]
    assert "is cancelled" in cleo.call(f"/api/v1/jobs/{job}/cancel", {})["message"]
    assert live_leases(town.service) == len(rows(town.service, "SELECT 1 FROM placement_job WHERE state = 'running'"))

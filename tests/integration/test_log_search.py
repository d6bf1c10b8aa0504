from __future__ import annotations

import os
import random
import re
import time
import tracemalloc
from html import unescape
from pathlib import Path

import pytest
from django.test import Client

from placement.selectors import log_lines, log_search
from tests.integration.rows import a_finished, a_running, a_user

HTMX = {"HX-Request": "true"}
MOST = 128 * 1024


@pytest.fixture(autouse=True)
def _nothing_found_before() -> None:
    log_search.forget()


@pytest.fixture
def ada(client: Client, db):
    user = a_user("ada")
    client.force_login(user)
    return user


def said(answer) -> str:
    body = unescape(answer.content.decode())
    return " ".join(
        re.sub("<[^>]+>", "", body.partition('id="log-said"')[2].partition(">")[2].partition("</p>")[0]).split()
    )


def view(client: Client, job, query: str):
    return client.get(f"/jobs/{job.pk}/log?stream=stdout&{query}", headers=HTMX)


def test_words_are_found_counted_marked_and_walked_through(client, ada, tmp_path: Path) -> None:
    text = "\n".join("a NEEDLE <b>" if n % 5000 == 0 else f"hay {n}" for n in range(1, 20_001))
    (tmp_path / "stdout.log").write_text(text)
    job = a_finished(ada, run_dir=str(tmp_path))
    first = view(client, job, "q=needle")
    assert said(first) == "1 of 4"
    assert '<li id="L5000" class="hit" tabindex="-1">a <mark>NEEDLE</mark> &lt;b&gt;</li>' in first.content.decode()
    assert len(first.content) < MOST
    at = re.search(r'name="at" value="(\d+)"', first.content.decode())[1]
    second = view(client, job, f"q=needle&of=needle&at={at}")
    assert said(second) == "2 of 4"
    assert 'id="L10000" class="hit"' in second.content.decode()
    assert said(view(client, job, f"q=needle&of=needle&at={at}&to=previous")) == "4 of 4"
    assert said(view(client, job, f"q=hay&of=needle&at={at}")) == "1 of 19996"  # other words begin anew
    assert said(view(client, job, "q=nowhere")) == "“nowhere” is nowhere in stdout."


@pytest.mark.parametrize("words", ["<script>alert(1)</script>", "a.*(b", "x" * 500, "ä", " ", "%00"])
def test_what_is_typed_is_looked_for_as_it_is(client, ada, tmp_path: Path, words: str) -> None:
    (tmp_path / "stdout.log").write_text("nothing of the kind\n")
    answer = client.get(
        f"/jobs/{a_finished(ada, run_dir=str(tmp_path)).pk}/log", {"q": words, "stream": "stdout"}, headers=HTMX
    )
    assert answer.status_code == 200
    assert "<script" not in answer.content.decode()


def test_hits_over_the_edges_of_blocks_are_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(random.Random(3).choices("ab", k=5000)).encode()
    (tmp_path / "stdout.log").write_bytes(text)
    for size in (1, 2, 7, 64):
        monkeypatch.setattr(log_search, "_BLOCK", size)
        for words in ("a", "ab", "aab", "bbabab"):
            log_search.forget()
            assert log_search.find(str(tmp_path), "stdout", words).total == text.count(words.encode()), (size, words)


def test_a_log_that_grows_is_searched_on_from_where_it_ended(tmp_path: Path) -> None:
    log = tmp_path / "stdout.log"
    log.write_text("needle and nee")
    assert log_search.find(str(tmp_path), "stdout", "needle").total == 1
    with log.open("a") as more:
        more.write("dle, needle")
    hits = log_search.find(str(tmp_path), "stdout", "needle", 0)
    assert (hits.total, hits.at, hits.number) == (3, 11, 2)
    log.write_text("needle")
    assert log_search.find(str(tmp_path), "stdout", "needle").total == 1


def test_two_gigabytes_are_searched_in_little_time_and_memory(client, ada, tmp_path: Path) -> None:
    with (tmp_path / "stdout.log").open("wb") as log:
        log.write(b"begun\n")
        log.truncate(2 << 30)  # sparse: the rest reads as NULs
        log.seek(0, os.SEEK_END)
        log.write(b"\nValueError: at the end\n")
    job = a_finished(ada, run_dir=str(tmp_path))
    view(client, job, "q=begun")
    tracemalloc.start()
    try:
        for query in ("q=at+the+end", "error=1", "offset=1000000000", "line=2", ""):
            began = time.process_time()
            answer = view(client, job, query)
            assert time.process_time() - began < 3, query
            assert answer.status_code == 200
            assert len(answer.content) < MOST
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_a_search_that_is_not_through_says_so_and_goes_on(client, ada, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(log_search, "AT_ONCE_S", 0.0)
    (tmp_path / "stdout.log").write_bytes(b"hay\n" * 600_000 + b"needle\n")
    monkeypatch.setattr(log_search, "_BLOCK", 1 << 20)
    job = a_finished(ada, run_dir=str(tmp_path))

    def one_step(scan, query):
        monkeypatch.setattr(log_search, "monotonic", iter([0.0, -1.0, 1.0]).__next__)
        return view(client, job, query)

    first = one_step(None, "q=needle")
    assert said(first) == "Searching: 43 % …"
    again = unescape(re.search(r'id="log-said"[^>]*hx-get="([^"]+)"', first.content.decode())[1])
    second = one_step(None, again.partition("?")[2])
    assert said(second) == "Searching: 87 % …"
    third = one_step(None, again.partition("?")[2])
    assert said(third) == "1 of 1"
    assert b'hx-trigger="load' not in third.content


def test_the_first_error_is_jumped_to_in_whichever_stream(client, ada, tmp_path: Path) -> None:
    (tmp_path / "stdout.log").write_text("0 errors\n" * 5000)
    (tmp_path / "stderr.log").write_text(
        "warming up\n" * 3000 + "Traceback (most recent call last):\n  x\nKeyError: 1\n"
    )
    job = a_finished(ada, "failed", run_dir=str(tmp_path))
    answer = view(client, job, "error=1")
    assert said(answer) == "First error in stderr: Python traceback"
    assert '<li id="L3001" class="hit"' in answer.content.decode()
    assert "warming up" in answer.content.decode()  # with what stood before it
    (tmp_path / "stderr.log").write_text("")
    assert said(view(client, job, "error=1")) == "No line of the output tells of an error."


def test_an_error_that_comes_later_is_found_then(tmp_path: Path) -> None:
    log = tmp_path / "stderr.log"
    log.write_text("fine\nKey")
    assert log_search.first_of_errors(str(tmp_path), "stderr").at is None
    with log.open("a") as more:
        more.write("Error: 'x'\n")
    assert log_search.first_of_errors(str(tmp_path), "stderr").at == 5


def test_numbers_of_lines_are_right_wherever_a_stretch_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "_STEP", 1000)
    text = b"".join(b"%d\n" % n for n in range(1, 60_000))
    (tmp_path / "stdout.log").write_bytes(text)
    log_lines._marks.clear()
    for at in (0, 5, 999, 1000, 1001, 123_456, len(text) - 1):
        found = log_lines.around(str(tmp_path), "stdout", at)
        assert found.lines[0][1] == b"%d" % found.number
    for number in (1, 2, 777, 59_999):
        at = log_lines.line_at(str(tmp_path), "stdout", number)
        assert text[at:].startswith(b"%d\n" % number)
    assert log_lines.line_at(str(tmp_path), "stdout", 10**9) == len(text)


def test_only_who_may_read_a_log_may_search_it(client, ada, tmp_path: Path) -> None:
    (tmp_path / "stdout.log").write_text("secret")
    job = a_running(ada, run_dir=str(tmp_path))
    client.force_login(a_user("eve"))
    for path in ("log?q=secret", "log?error=1", "log/lines?since=0", "log/stdout.log"):
        assert client.get(f"/jobs/{job.pk}/{path}", headers=HTMX).status_code == 403, path

from __future__ import annotations

import os
import random
import re
import time
from html import unescape
from pathlib import Path

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from placement.selectors import log_lines, log_search, logs
from placement.views import terminal
from placement.views.terminal import MARKUP_LIMIT
from tests.integration.rows import a_finished, a_running, a_user

MOST = 128 * 1024
HTMX = {"HX-Request": "true"}


@pytest.fixture
def ada(client: Client, db):
    user = a_user("ada")
    client.force_login(user)
    return user


def view(client: Client, job, query: str = ""):
    return client.get(f"/jobs/{job.pk}/log?stream=stdout{query}", headers=HTMX)


def shown(answer) -> str:
    """Return the text of the lines."""
    body = answer if isinstance(answer, str) else answer.content.decode()
    lines = re.findall(r"<li(?! class=\"edge)[^>]*>(.*?)</li>", body, re.S)
    return unescape("\n".join(line for line in lines if line).replace("<mark>", "").replace("</mark>", ""))


def asked(body: str, with_: str = "since=") -> str:
    """Return the address that a part asks for."""
    return next(unescape(found) for found in re.findall(r'hx-get="([^"]+)"', body) if with_ in found)


def markup(text: str) -> str:
    """Return what lines of a terminal become."""
    return "\n".join(terminal.lines(text.split("\n"))[1])


@pytest.mark.parametrize(
    "text, expected",
    [
        pytest.param("a\rb", "b", id="a carriage return begins the line anew"),
        pytest.param("a\r\nb\r\n", "a\nb\n", id="line ends of another system"),
        pytest.param("abc\x08\x08X", "aX", id="backspace"),
        pytest.param("\x1b[31mred\x1b[0m", '<span class="f1">red</span>', id="colour"),
        pytest.param("\x1b[1;92mok\x1b[m.", '<span class="f10 bold">ok</span>.', id="bold and bright"),
        pytest.param("\x1b[38;5;3mx", '<span class="f3">x</span>', id="small palette"),
        pytest.param("\x1b[38;2;1;2;3mx\x1b[48;5;200my", "xy", id="colours that pages do not have"),
        pytest.param("\x1b[31mone\ntwo", '<span class="f1">one</span>\n<span class="f1">two</span>', id="over lines"),
        pytest.param("\x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x07", "link", id="links are dropped, text stays"),
        pytest.param("\x1b]0;title", "", id="an unfinished title ends with its line"),
        pytest.param("\x1b[2J\x1b[10;10Hx\x1b(B", "x", id="screen control"),
        pytest.param("<b>&\"'", "&lt;b&gt;&amp;&quot;&#x27;", id="escaped"),
        pytest.param("a\x00b\u202ec", "abc", id="nulls and turned text"),
        pytest.param("\x1b[31", "", id="cut in the middle"),
        pytest.param("\x1b[99999999999999999999mx", "x", id="a number that is too long"),
    ],
)
def test_terminal_output_becomes_safe_markup(text, expected):
    assert markup(text) == expected


@given(st.text(alphabet="ab<>&\"'\x1b[]0123;m\r\n\x08\x07\\", max_size=200))
def test_no_output_makes_other_markup_than_spans(text):
    body = str(markup(text))
    without = body.replace("</span>", "")
    for part in without.split("<")[1:]:
        assert part.startswith('span class="')
        assert part.partition('">')[1]


def test_markup_is_bounded_and_keeps_the_newest_lines():
    body = markup("\n".join(f'"line {n}"' for n in range(200_000)))
    assert len(body.encode()) <= MARKUP_LIMIT
    assert body.endswith("&quot;line 199999&quot;")
    assert len(markup("\x1b[31m'\x1b[32m'" * 40_000).encode()) <= MOST


def test_bytes_that_are_no_text_show_and_download_unchanged(client, ada, tmp_path):
    raw = b"ok\n\xff\xfe\x00\xc0 end\n" + random.Random(7).randbytes(200_000) + "\n€\n".encode()
    (tmp_path / "stdout.log").write_bytes(raw)
    job = a_finished(ada, run_dir=str(tmp_path))
    answer = view(client, job)
    assert answer.status_code == 200
    assert len(answer.content) < MOST
    assert shown(answer).endswith("€")
    assert client.get(f"/jobs/{job.pk}").status_code == 200
    download = client.get(f"/jobs/{job.pk}/log/stdout.log")
    assert b"".join(download.streaming_content) == raw
    assert download["Content-Type"].startswith("text/plain")
    assert download["Content-Disposition"] == f'attachment; filename="job-{job.pk}-stdout.log"'
    assert download["X-Content-Type-Options"] == "nosniff"


def test_a_log_is_found_after_the_data_directory_was_moved(client, ada, tmp_path, settings):
    settings.RUNS = tmp_path / "now"
    (settings.RUNS / "7-1").mkdir(parents=True)
    (settings.RUNS / "7-1" / "stdout.log").write_text("still here\n")
    job = a_finished(ada, run_dir=str(tmp_path / "before" / "7-1"))
    assert shown(view(client, job)) == "still here"


def test_a_finished_run_that_wrote_errors_alone_shows_them(client, ada, tmp_path):
    (tmp_path / "stdout.log").touch()
    (tmp_path / "stderr.log").write_text("python: command not found\n")
    job = a_finished(ada, "failed", run_dir=str(tmp_path))
    assert shown(client.get(f"/jobs/{job.pk}#h-log").content.decode().partition('id="log"')[2]).startswith("python:")
    (tmp_path / "stdout.log").write_text("begun\n")
    assert shown(client.get(f"/jobs/{job.pk}").content.decode().partition('id="log"')[2]) == "begun"


def test_a_character_that_is_not_whole_yet_waits_for_its_end(client, ada, tmp_path):
    log = tmp_path / "stdout.log"
    log.write_bytes(b"cost " + "€".encode()[:2])
    job = a_running(ada, run_dir=str(tmp_path))
    assert shown(view(client, job)) == "cost "
    with log.open("ab") as more:
        more.write("€\n".encode()[2:])
    assert shown(view(client, job)) == "cost €"


def test_a_range_never_cuts_a_character(tmp_path):
    text = "aé€😀" * 20_000
    (tmp_path / "stdout.log").write_bytes(text.encode())
    at, seen = 0, b""
    while (piece := log_lines.later(str(tmp_path), "stdout", at)).end > at:
        piece.lines[0][1].decode()
        seen, at = seen + piece.lines[0][1], piece.end
    assert seen.decode() == text
    before, seen = at, b""
    while (piece := log_lines.earlier(str(tmp_path), "stdout", before)).start < before:
        piece.lines[0][1].decode()
        seen, before = piece.lines[0][1] + seen, piece.start
    assert seen.decode() == text


def test_a_progress_bar_is_one_line_in_its_last_state(client, ada, tmp_path):
    (tmp_path / "stdout.log").write_text("".join(f"\r{n:6d}/200000 #####" for n in range(200_000)))
    answer = view(client, a_running(ada, run_dir=str(tmp_path)))
    assert shown(answer) == "199999/200000 #####"


def test_a_line_of_100_mib_is_cut_and_fast(client, ada, tmp_path):
    with (tmp_path / "stdout.log").open("wb") as log:
        log.truncate(100 << 20)  # sparse: reads as 100 MiB of NULs without an end
        log.seek(0, os.SEEK_END)
        log.write(b"x" * 60_000)
    job = a_running(ada, run_dir=str(tmp_path))
    view(client, job)
    began = time.process_time()
    answers = [view(client, job, f"&v={n}") for n in range(5)]
    assert (time.process_time() - began) / 5 < 0.2
    assert all(len(answer.content) < MOST for answer in answers)
    assert "more characters in this line" in shown(answers[0])


@pytest.mark.parametrize("offset", ["-1", "x", "1.5", "", "١", "9" * 30])
def test_a_bad_offset_is_400(client, ada, tmp_path, offset):
    (tmp_path / "stdout.log").write_text("hello")
    assert view(client, a_running(ada, run_dir=str(tmp_path)), f"&offset={offset}").status_code == 400


def test_an_offset_beyond_the_end_shows_the_end(client, ada, tmp_path):
    (tmp_path / "stdout.log").write_text("hello")
    assert shown(view(client, a_running(ada, run_dir=str(tmp_path)), "&offset=999999")) == "hello"


def test_only_news_are_sent_and_an_end_is_the_last_answer(client, ada, tmp_path):
    log = tmp_path / "stdout.log"
    log.write_text("hello\nwor")
    job = a_running(ada, run_dir=str(tmp_path))
    first = view(client, job).content.decode()
    at = asked(first)
    assert "since=6" in at
    assert client.get(at, headers=HTMX).status_code == 204
    log.write_text("hello\nworld\nand")
    news = client.get(at, headers=HTMX)
    assert shown(news) == "world\nand"
    assert "since=12" in asked(news.content.decode())
    over = a_finished(ada, run_dir=str(tmp_path))
    assert b"data-poll" not in view(client, over).content
    last = client.get(at.replace(f"/jobs/{job.pk}/", f"/jobs/{over.pk}/"), headers=HTMX)
    assert (last.status_code, shown(last)) == (200, "world\nand")
    assert b"data-poll" not in last.content


@pytest.mark.parametrize("now", ["", "new", "\n".join(f"line {n}" for n in range(20_000))])
def test_another_log_or_too_much_at_once_is_shown_anew(client, ada, tmp_path, now):
    log = tmp_path / "stdout.log"
    log.write_text("hello\nworld\n")
    job = a_running(ada, run_dir=str(tmp_path))
    at = asked(view(client, job).content.decode())
    log.write_text(now)
    answer = client.get(at, headers=HTMX)
    assert answer["HX-Retarget"] == "#log"
    assert shown(answer).endswith(now[-10:])


def test_lines_have_numbers_and_earlier_ones_are_loaded_in_pages(client, ada, tmp_path):
    text = "\n".join(f"this is line {n}" for n in range(1, 30_001))
    (tmp_path / "stdout.log").write_text(text)
    job = a_finished(ada, run_dir=str(tmp_path))
    body = view(client, job).content.decode()
    assert '<li id="L30000">this is line 30000</li>' in body
    seen = shown(body).split("\n")
    pages = 0
    while "before=" in body:
        body = client.get(asked(body, "before="), headers=HTMX).content.decode()
        assert len(body) < MOST
        seen, pages = shown(body).split("\n") + seen, pages + 1
        number = int(seen[0].rpartition(" ")[2])
        assert f'<li id="L{number}" value="{number}">' in body
    assert "\n".join(seen) == text
    assert pages > 5
    body = view(client, job, "&line=12345").content.decode()
    assert re.search(r'<li id="L12345" class="hit" tabindex="-1">this is line 12345</li>', body)
    assert "after=" in body
    assert shown(client.get(asked(body, "after="), headers=HTMX)).startswith("this is line ")


def test_both_streams_stand_side_by_side(client, ada, tmp_path):
    (tmp_path / "stdout.log").write_text("out\n")
    (tmp_path / "stderr.log").write_text("err\n")
    body = client.get(
        f"/jobs/{a_running(ada, run_dir=str(tmp_path)).pk}/log?stream=both", headers=HTMX
    ).content.decode()
    assert 'id="stdout-L1"' in body
    assert 'id="stderr-L1"' in body
    assert body.count("data-poll") == 2


def test_only_the_runs_own_regular_files_are_read(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("not yours")
    runs = {}
    for name in ("link", "pipe", "folder", "directory-link"):
        runs[name] = tmp_path / name
        runs[name].mkdir()
    (runs["link"] / "stdout.log").symlink_to(secret)
    os.mkfifo(runs["pipe"] / "stdout.log")
    (runs["folder"] / "stdout.log").mkdir()
    aside = tmp_path / "aside"
    aside.symlink_to(runs["directory-link"])
    (runs["directory-link"] / "stdout.log").write_text("not yours")
    for run in (*(runs[n] for n in ("link", "pipe", "folder")), aside, Path("/nowhere"), Path("")):
        assert log_lines.tail(str(run), "stdout") is None, run
        assert log_lines.more(str(run), "stdout", 0) is None, run
        assert log_search.find(str(run), "stdout", "not") is None
        assert log_search.first_of_errors(str(run), "stdout") is None
        assert logs.size(str(run), "stdout") == 0
        assert logs.download(str(run), "stdout") is None
        assert logs.version(str(run), "stdout") == ""
    assert log_lines.tail(str(tmp_path), "../secret") is None


def test_opened_by_itself_a_log_is_framed_and_never_a_document_of_its_own(client, ada, tmp_path):
    (tmp_path / "stdout.log").write_text("<h1>hello</h1>")
    job = a_running(ada, run_dir=str(tmp_path))
    page = client.get(f"/jobs/{job.pk}/log?stream=stdout").content.decode()
    assert page.lstrip().startswith("<!doctype html>")
    assert "&lt;h1&gt;hello" in page
    assert "<h1>hello" not in page
    fragment = view(client, job)
    assert fragment["X-Content-Type-Options"] == "nosniff"
    assert "<h1>" not in fragment.content.decode()
    assert client.get(f"/jobs/{job.pk}/log?stream=..%2Fcontrol", headers=HTMX).status_code == 400
    opened = client.get(f"/jobs/{job.pk}/log/lines?stream=stdout&since=0")
    assert (opened.status_code, opened.url.partition("?")[0]) == (302, f"/jobs/{job.pk}/log")

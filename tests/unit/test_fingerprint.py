from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.domain.fingerprint import LARGEST_READ, fingerprint


@pytest.fixture
def sources(tmp_path):
    """Return three source files of a small package."""
    (tmp_path / "sub").mkdir()
    files = [tmp_path / "__init__.py", tmp_path / "a.py", tmp_path / "sub" / "b.py"]
    for number, file in enumerate(files):
        file.write_text(f"x = {number}\n")
    return files


def test_a_rename_changes_it_and_the_way_back_restores_it(sources):
    before = fingerprint(sources)
    moved = sources[1].rename(sources[1].with_name("c.py"))
    assert fingerprint([sources[0], moved, sources[2]]) != before
    moved.rename(sources[1])
    assert fingerprint(sources) == before


@pytest.mark.parametrize("which", [0, 1, 2])
def test_one_space_anywhere_changes_it(sources, which):
    before = fingerprint(sources)
    sources[which].write_text(sources[which].read_text() + " ")
    assert fingerprint(sources) != before


def test_one_more_file_changes_it_and_files_that_are_not_listed_do_not(sources, tmp_path):
    before = fingerprint(sources)
    (tmp_path / "README").write_text("new")
    assert fingerprint(sources) == before
    assert fingerprint([*sources, tmp_path / "README"]) != before


def test_order_and_repetition_do_not_matter(sources):
    assert fingerprint(sources) == fingerprint([*sources[::-1], sources[0]])


def test_a_copy_elsewhere_has_the_same_one(sources, tmp_path):
    other = tmp_path / "copy"
    (other / "sub").mkdir(parents=True)
    copies = [other / file.relative_to(tmp_path) for file in sources]
    for file, copy in zip(sources, copies, strict=True):
        copy.write_bytes(file.read_bytes())
    assert fingerprint(copies) == fingerprint(sources)
    assert fingerprint(copies[:1]) == fingerprint(sources[:1])


def test_a_missing_file_is_part_of_it_and_nothing_readable_has_none(sources, tmp_path):
    before = fingerprint(sources)
    sources[2].unlink()
    missing = fingerprint(sources)
    assert missing not in ("", before, fingerprint(sources[:2]))
    sources[2].write_text("")
    assert fingerprint(sources) != missing
    assert fingerprint([tmp_path / "nothing"]) == ""
    assert fingerprint([]) == ""


def test_folders_pipes_and_devices_are_not_read(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert fingerprint([tmp_path, pipe, tmp_path / "a\0b"]) == ""


def test_beyond_the_cap_size_and_time_stand_for_the_content(tmp_path):
    big = tmp_path / "big.bin"
    with big.open("wb") as file:
        file.truncate(LARGEST_READ + 10)
    os.utime(big, ns=(1, 1))
    before = fingerprint([big])
    os.utime(big, ns=(1, 2))
    assert fingerprint([big]) != before
    os.utime(big, ns=(1, 1))
    assert fingerprint([big]) == before
    with big.open("r+b") as file:
        file.write(b"x")
    os.utime(big, ns=(1, 1))
    assert fingerprint([big]) != before


NAMES = st.text("ab./\n", min_size=1, max_size=4).map(lambda name: "/r/" + name.strip("./") + "x")
TREES = st.dictionaries(NAMES.map(os.path.normpath), st.none() | st.binary(max_size=3), min_size=1, max_size=3)


@settings(max_examples=200)
@given(TREES, TREES)
def test_equal_fingerprints_mean_equal_files(one, other):
    def of(tree):
        return fingerprint([*tree, "/r/zz"], lambda path: b"" if str(path) == "/r/zz" else tree[str(path)])

    assert (of(one) == of(other)) == (one == other)

"""A service keeps its machine's name: a host that is called otherwise one day has not lost its jobs."""

from __future__ import annotations

from pathlib import Path

from scheduler_site import naming


def test_a_host_that_was_renamed_goes_on_as_the_node_that_its_data_knows(tmp_path: Path) -> None:
    assert naming.settled(tmp_path, {}, "vm") == ("vm", "")
    naming.keep(tmp_path, "vm")
    name, said = naming.settled(tmp_path, {}, "newbox")
    assert name == "vm"
    assert "called newbox now" in said
    assert "under vm" in said
    assert naming.settled(tmp_path, {}, "vm") == ("vm", "")


def test_who_says_a_name_is_taken_at_his_word(tmp_path: Path) -> None:
    naming.keep(tmp_path, "vm")
    assert naming.settled(tmp_path, {"TIDEGATE_NODE": "atlas"}, "newbox") == ("atlas", "")


def test_beside_a_server_of_its_own_a_copied_directory_is_no_second_machine_of_one_name(tmp_path: Path) -> None:
    naming.keep(tmp_path, "vm")
    environment = {"TIDEGATE_DATABASE_URL": "postgresql://db/tidegate"}
    assert naming.settled(tmp_path, environment, "newbox") == ("newbox", "")

from __future__ import annotations

from pathlib import Path

import pytest

from calibration.probes.cgroup import ram_capacity

GIB = 2**30
HOST = (790000000 * 1024, 700000000 * 1024)


class Machine:
    """Fake /proc and /sys/fs/cgroup of a host with 790 GB."""

    def __init__(self, root: Path) -> None:
        self.proc, self.groups = root / "proc", root / "cgroup"
        (self.proc / "self").mkdir(parents=True)
        self.groups.mkdir()
        (self.proc / "meminfo").write_text("MemTotal: 790000000 kB\nMemAvailable: 700000000 kB\n")

    def own(self, line: str) -> None:
        (self.proc / "self" / "cgroup").write_text(line + "\n")
        if line.startswith("0::"):
            (self.groups / "cgroup.controllers").write_text("memory\n")

    def v2(self, path: str, limit: object, current: int = 0, **stat: int) -> Path:
        return self._group(path, "memory.max", limit, "memory.current", current, stat)

    def v1(self, path: str, limit: object, current: int = 0, **stat: int) -> Path:
        return self._group(f"memory/{path}", "memory.limit_in_bytes", limit, "memory.usage_in_bytes", current, stat)

    def _group(self, path: str, limit: str, bound: object, use: str, current: int, stat: dict[str, int]) -> Path:
        folder = self.groups / path.strip("/")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / limit).write_text(f"{bound}\n")
        (folder / use).write_text(f"{current}\n")
        (folder / "memory.stat").write_text("".join(f"{name} {value}\n" for name, value in stat.items()))
        return folder

    def read(self) -> tuple[int | None, int | None, str]:
        capacity = ram_capacity(str(self.proc), str(self.groups))
        return capacity.total, capacity.available, capacity.note


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_file_cache_of_the_own_group_is_available(machine: Machine) -> None:
    machine.own("0::/job")
    machine.v2("job", 96636764160, 80 * GIB, inactive_file=30 * GIB, active_file=10 * GIB)
    assert machine.read() == (90 * GIB, 50 * GIB, "/job")


def test_reclaimable_slab_of_the_own_group_is_available(machine: Machine) -> None:
    machine.own("0::/job")
    machine.v2("job", 90 * GIB, 80 * GIB, inactive_file=30 * GIB, active_file=10 * GIB, slab_reclaimable=GIB)
    assert machine.read()[1] == 51 * GIB


def test_a_parent_with_less_decides(machine: Machine) -> None:
    machine.own("0::/slice/job")
    machine.v2("slice/job", 90 * GIB, 30 * GIB, inactive_file=10 * GIB)
    machine.v2("slice", 64 * GIB, 50 * GIB, inactive_file=20 * GIB)
    assert machine.read() == (64 * GIB, 34 * GIB, "/slice")


def test_the_smallest_limit_and_the_fullest_group_may_be_two(machine: Machine) -> None:
    machine.own("0::/slice/job")
    machine.v2("slice/job", 40 * GIB, 1 * GIB)
    machine.v2("slice", 64 * GIB, 60 * GIB)
    assert machine.read() == (40 * GIB, 4 * GIB, "/slice/job")


def test_no_limit_gives_the_host(machine: Machine) -> None:
    machine.own("0::/job")
    machine.v2("job", "max", 5 * GIB)
    assert machine.read() == (*HOST, "host")


def test_no_control_group_gives_the_host(machine: Machine) -> None:
    assert machine.read() == (*HOST, "host")


def test_the_first_version_s_no_limit_gives_the_host(machine: Machine) -> None:
    machine.own("4:memory:/job")
    machine.v1("job", 9223372036854771712, 5 * GIB)
    assert machine.read() == (*HOST, "host")


def test_the_first_version_counts_the_cache_of_the_whole_tree(machine: Machine) -> None:
    machine.own("5:cpu,memory:/job")
    machine.v1("job", 8 * GIB, 6 * GIB, inactive_file=1, total_inactive_file=2 * GIB, total_active_file=GIB)
    assert machine.read() == (8 * GIB, 5 * GIB, "/job")


def test_the_first_version_s_limit_binds_with_what_its_cache_leaves(machine: Machine) -> None:
    machine.own("4:memory:/docker/abc")
    machine.v1("docker/abc", 8 * GIB, 6 * GIB, total_inactive_file=2 * GIB, total_active_file=GIB, inactive_file=GIB)
    assert machine.read() == (8 * GIB, 5 * GIB, "/docker/abc")


def test_a_container_of_the_first_version_sees_its_own_group_as_the_root(machine: Machine) -> None:
    machine.own("4:memory:/docker/only-the-host-sees-this")
    machine.v1("", 8 * GIB, 6 * GIB, total_inactive_file=2 * GIB)
    assert machine.read() == (8 * GIB, 4 * GIB, "/")


def test_of_two_hierarchies_the_one_that_governs_memory_decides(machine: Machine) -> None:
    (machine.proc / "self" / "cgroup").write_text("5:cpu,memory:/box\n0::/box\n")
    (machine.groups / "unified" / "box").mkdir(parents=True)
    machine.v1("box", 8 * GIB, 2 * GIB)
    assert machine.read() == (8 * GIB, 6 * GIB, "/box")


def test_memory_of_a_device_among_the_machine_s_nodes_is_no_ram(machine: Machine, tmp_path: Path) -> None:
    def node(number: int, cpus: str, total: int, free: int, files: int = 0) -> None:
        folder = tmp_path / f"sys/devices/system/node/node{number}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(f"{cpus}\n")
        figures = {"MemTotal": total, "MemFree": free, "Inactive(file)": files}
        (folder / "meminfo").write_text("".join(f"Node {number} {n}: {s // 1024} kB\n" for n, s in figures.items()))

    (machine.proc / "meminfo").write_text(f"MemTotal: {576 << 20} kB\nMemAvailable: {500 << 20} kB\n")
    node(0, "0-71", 480 * GIB, 400 * GIB)
    node(1, "", 96 * GIB, 60 * GIB, 10 * GIB)
    node(2, "", 128 * GIB, 128 * GIB)  # memory behind a link of its own: nobody's device has that size

    def read(*devices: int) -> tuple[int | None, int | None]:
        found = ram_capacity(str(machine.proc), str(machine.groups), str(tmp_path / "sys"), devices)
        return found.total, found.available

    assert read(96 * GIB) == (480 * GIB, 430 * GIB)
    assert read(97871 << 20, 24 * GIB) == (480 * GIB, 430 * GIB), "as the driver counts it"
    assert read() == read(24 * GIB) == (576 * GIB, 500 * GIB)


def test_a_limit_above_the_host_gives_the_host(machine: Machine) -> None:
    machine.own("0::/job")
    machine.v2("job", 800000000 * 1024, 5 * GIB)
    assert machine.read() == (*HOST, "host")


def test_an_unreadable_cache_counts_as_used_and_is_said(machine: Machine) -> None:
    machine.own("0::/job")
    (machine.v2("job", 90 * GIB, 80 * GIB, inactive_file=30 * GIB) / "memory.stat").unlink()

    capacity = ram_capacity(str(machine.proc), str(machine.groups))

    assert (capacity.total, capacity.available) == (90 * GIB, 10 * GIB)
    assert "file cache of /job could not be read" in capacity.remarks[0]


def test_an_unreadable_use_leaves_the_available_unknown_and_never_the_host_s(machine: Machine) -> None:
    machine.own("0::/job")
    (machine.v2("job", 90 * GIB, 80 * GIB) / "memory.current").unlink()
    assert machine.read() == (90 * GIB, None, "/job")


def test_a_zfs_cache_is_counted_as_available_and_shown(machine: Machine) -> None:
    (machine.proc / "spl/kstat/zfs").mkdir(parents=True)
    (machine.proc / "spl/kstat/zfs/arcstats").write_text(
        f"13 1 0x01\nname type data\nsize 4 {20 * GIB}\nc_min 4 {2 * GIB}\nc_max 4 {40 * GIB}\n"
    )
    capacity = ram_capacity(str(machine.proc), str(machine.groups))
    assert (capacity.available, capacity.reclaimable) == (HOST[1] + 18 * GIB, 18 * GIB)
    assert "18.0 GiB" in capacity.remarks[0]


def test_a_container_that_sees_only_its_own_root_uses_the_root_s_limit(machine: Machine) -> None:
    machine.own("0::/")
    machine.v2("", 2 * GIB, GIB)
    assert machine.read() == (2 * GIB, GIB, "/")


@pytest.mark.parametrize("path", ["/docker/abc", "/../../other", "/gone (deleted)"])
def test_a_path_that_only_the_host_sees_ends_at_the_visible_root(machine: Machine, path: str) -> None:
    machine.own(f"4:memory:{path}")
    machine.v1("", 2 * GIB, GIB)
    assert machine.read() == (2 * GIB, GIB, "/")


def test_the_available_is_never_above_the_total(machine: Machine) -> None:
    machine.own("0::/job")
    machine.v2("job", 4 * GIB, GIB, inactive_file=3 * GIB)
    assert machine.read() == (4 * GIB, 4 * GIB, "/job")


def test_the_available_is_never_above_what_the_host_has_left(machine: Machine) -> None:
    (machine.proc / "meminfo").write_text("MemTotal: 790000000 kB\nMemAvailable: 41943040 kB\n")
    machine.own("0::/job")
    machine.v2("job", 90 * GIB, 30 * GIB, inactive_file=10 * GIB)  # 70 GiB would be left by the group alone
    assert machine.read() == (90 * GIB, 40 * GIB, "/job")


def test_a_machine_without_figures_is_unknown_and_says_why(tmp_path: Path) -> None:
    capacity = ram_capacity(str(tmp_path), str(tmp_path))
    assert (capacity.total, capacity.available) == (None, None)
    assert "could not be read" in capacity.remarks[0]

"""What must be shown: the demonstration, the sparse file, and the same run twice."""

import os
import re

import pytest

import harness

PAGES = 100_000
DEMO_LIMIT_S = 600
MACHINES = {
    "smp1": [],
    "smp4": ["--smp", "4"],
    "mem32": ["--mem", "32"],
    "debug": ["--debug", "--smp", "2"],
    "iso": ["--iso", "--smp", "2"],
}
SPARSE_PAGES_TOUCHED = 10_001
ROW = re.compile(r"(ondemand|around|none)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)"
                 r"\s+\d+m[\d.]+s\s+([0-9a-f]{16})$")
COLUMNS = ("pages", "major", "minor", "waits", "windows", "requests", "metadata")


def rows_of(out):
    rows = {}
    for line in out.splitlines():
        match = ROW.match(line)
        if match:
            row = dict(zip(COLUMNS, map(int, match.groups()[1:-1])))
            row["checksum"] = match.group(9)
            rows[match.group(1)] = row
    return rows


def host_checksum(*arguments):
    result = harness.on_host("/bin/mplay", *arguments)
    assert result.status == 0, result.explain()
    return harness.numbers_of(result.out)["checksum"]


def check_demonstration(result, policies):
    rows = rows_of(result.out)
    assert result.status == 0 and "BROKEN" not in result.out, result.explain()
    assert list(rows) == policies, result.explain()
    checksum = host_checksum(f"rx32:0-{PAGES - 1}/32",
                             os.path.join(harness.BUILD, "data", "random.bin"))
    for row in rows.values():
        assert row["pages"] == PAGES
        assert row["checksum"] == checksum
        assert row["major"] == row["waits"] <= row["windows"]
    assert rows["ondemand"]["windows"] == 3125
    assert rows["ondemand"]["requests"] <= 3250
    assert rows["ondemand"]["metadata"] <= 110
    assert 6200 <= rows["around"]["windows"] <= 6300
    return rows


def test_the_demonstration_keeps_its_promises():
    result = harness.boot("/bin/demo", "--quick", image=harness.DISK, timeout=DEMO_LIMIT_S)
    check_demonstration(result, ["ondemand", "around"])


@pytest.mark.long
@pytest.mark.parametrize("machine", MACHINES)
def test_the_whole_demonstration_on_a_machine(machine):
    result = harness.boot("/bin/demo", image=harness.DISK, timeout=DEMO_LIMIT_S,
                          options=MACHINES[machine])
    rows = check_demonstration(result, ["ondemand", "around", "none"])
    assert rows["none"]["windows"] == PAGES


def test_a_stride_over_a_sparse_file_reads_no_data(tmp_path):
    result = harness.boot("/bin/mplay", "--load", "/data/stride100.trace", "/data/sparse.bin")
    numbers = harness.numbers_of(result.out)
    assert result.status == 0, result.explain()
    assert numbers["touched"] == str(SPARSE_PAGES_TOUCHED)
    assert (numbers["data_requests"], numbers["windows"]) == ("0", "0"), result.explain()
    assert (numbers["major"], numbers["minor"]) == ("0", str(SPARSE_PAGES_TOUCHED))
    hole = tmp_path / "hole"
    with open(hole, "wb") as file:
        file.truncate(1_000_001 * 4096)
    assert numbers["checksum"] == host_checksum("r:0-1000000/100", str(hole))


def test_the_end_of_the_sparse_file_has_its_bytes():
    last = 1000 * (1 << 30) // 4096 - 1
    pattern = f"m:{last - 255}-{last}"
    result = harness.boot("/bin/mplay", pattern, "/data/sparse.bin")
    assert result.status == 0, result.explain()
    assert harness.numbers_of(result.out)["checksum"] == host_checksum(
        pattern, os.path.join(harness.BUILD, "data", "sparse.bin"))


def test_the_same_run_twice_prints_the_same():
    def run():
        return harness.boot("/bin/mplay", "--show-io", "m:0-1999,i9000/12000x100", "/data/medium.bin",
                            ramdisk=True, icount=True, smp=2)

    first, second = run(), run()
    assert first.status == 0, first.explain()
    assert first.out == second.out
    assert harness.numbers_of(first.out)["touched"] == "2200"


def test_a_touch_behind_the_end_is_sigbus():
    result = harness.boot("/bin/mplay", "m:16383-16384", "/data/medium.bin")
    assert result.status == 128 + 7, result.explain()

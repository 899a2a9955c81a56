"""Every machine reaches the same demonstration: CPUs, memory, and the ways to boot."""

import os

import pytest

import harness
from test_demo import host_checksum, rows_of

MACHINES = {
    "plain": [],
    **{f"smp{n}": ["--smp", str(n)] for n in (2, 4, 8)},
    **{f"mem{n}": ["--mem", str(n)] for n in (32, 64, 256, 4096)},
    "smp8-mem32": ["--smp", "8", "--mem", "32"],
    "iso": ["--iso"],
    "iso-mem32": ["--iso", "--mem", "32"],
    "uefi": ["--uefi", "--mem", "128"],
    "uefi-smp4": ["--uefi", "--mem", "256", "--smp", "4"],
}
SHORT = ("smp4", "mem32", "mem4096", "iso")  # in every run
BOOT_LIMIT_S = 180
FILE = "/data/medium.bin"
FILE_PAGES = 16_384


def start(case):
    return harness.boot("/bin/demo", "--quick", FILE, timeout=BOOT_LIMIT_S, options=MACHINES[case])


@pytest.fixture(scope="module")
def checksum():
    return host_checksum(os.path.join(harness.BUILD, "data", "medium.bin"))


@pytest.fixture(scope="module")
def boots(request):
    all_boots = harness.Boots(request, start)
    yield all_boots
    all_boots.close()


@pytest.mark.parametrize("case", [
    pytest.param(name, marks=[] if name in SHORT else pytest.mark.long) for name in MACHINES])
def test_the_machine_reaches_the_demonstration(boots, case, checksum):
    result = boots[case]
    rows = rows_of(result.out)
    assert result.status == 0 and "BROKEN" not in result.out, result.explain()
    assert list(rows) == ["ondemand", "around"], result.explain()
    for row in rows.values():
        assert (row["pages"], row["checksum"]) == (FILE_PAGES, checksum), result.explain()
    assert rows["ondemand"]["windows"] == FILE_PAGES // 32
    assert result.out.startswith(FILE), "stdout is the program's output alone"

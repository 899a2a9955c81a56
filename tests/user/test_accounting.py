"""What each step counts under `vm.account=linux-6.12` and `linux-6.1`, against what those kernels
counted (tests/data/accounting-*.txt; perf's columns are not compared)."""

import os
import re
import subprocess

import pytest

import harness

DATA = os.path.join(harness.ROOT, "tests", "data")
KERNELS = ["6.12", "6.1"]
FILE = "/data/medium.bin"
BAD_PAGE = 50
SECTORS_PER_BLOCK = 8
STEP = re.compile(r"ACT (?P<name>.*?) +ret=(?P<ret>-?\d+) errno=(?P<errno>\d+) sig=(?P<sig>\S+) "
                  r"+maj=(?P<maj>\d+) min=(?P<min>\d+) \|.* vmstat pgfault=(?P<pgfault>\d+) "
                  r"pgmajfault=(?P<pgmajfault>\d+)$")


def steps(text):
    """{name: (ret, errno, sig, maj, min, pgfault, pgmajfault)}"""
    found = (STEP.search(line) for line in text.splitlines())
    return {m["name"]: m.groups()[1:] for m in found if m}


def expected(kernel):
    with open(os.path.join(DATA, f"accounting-{kernel}.txt"), encoding="ascii") as data:
        return steps(data.read())


def bad_sectors():
    """The first and the last sector of the bad page, from the image itself."""
    block = subprocess.run(["debugfs", "-R", f"bmap {FILE} {BAD_PAGE}", harness.SMALL], check=True,
                           capture_output=True, text=True).stdout
    first = int(block) * SECTORS_PER_BLOCK
    return str(first), str(first + SECTORS_PER_BLOCK - 1)


def start(case):
    kernel, part = case
    bad = ["bad", "/sys/block/ram0", *bad_sectors()] if part == "bad" else []
    return harness.boot("/tests/accounting", FILE, "/tmp/scratch", *bad, ramdisk=True, icount=True,
                        append=f"vm.account=linux-{kernel}")


@pytest.fixture(scope="module")
def boots(request):
    boots = harness.Boots(request, start)
    yield boots
    boots.close()


@pytest.mark.parametrize("case", [(k, part) for k in KERNELS for part in ("good", "bad")],
                         ids=lambda case: "-".join(case))
def test_each_step_counts_what_that_linux_counts(case, boots):
    kernel, part = case
    result = boots[case]
    wanted = {name: counts for name, counts in expected(kernel).items()
              if name.startswith("ioerr") == (part == "bad")}
    assert len(wanted) == (7 if part == "bad" else 25)
    got = steps(result.out)
    assert got.pop("warm-up")
    assert got == wanted, result.explain()
    assert result.status == 0


def test_the_two_kernels_differ_where_a_read_is_waited_for():
    """Else one rule could stand for both."""
    old, new = expected("6.1"), expected("6.12")
    assert old.keys() == new.keys()
    differing = {name for name in old if old[name] != new[name]}
    assert {"file read cold", "file read on marker pg24", "ioerr neighbour 51"} <= differing
    assert "anon write after read" not in differing


@pytest.mark.long
def test_linux_itself_counts_so():
    """The steps are what their names say: on Debian's Linux 6.12 they count what it has counted."""
    made = subprocess.run(["make", "-s", "linux"], cwd=harness.ROOT, capture_output=True,
                          text=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"no Linux to compare with: {made.stderr}")
    done = subprocess.run([os.path.join(harness.ROOT, "tools", "linux"), "--disk", harness.SMALL,
                           "--", "/tests/accounting", FILE, "/tmp/scratch"], capture_output=True,
                          text=True, check=False, timeout=200)
    got = steps(done.stdout)
    assert got.pop("warm-up")
    assert got == {name: counts for name, counts in expected("6.12").items()
                   if not name.startswith("ioerr")}


def test_each_thread_counts_for_itself():
    result = harness.boot("/tests/threadcounts", "/data/medium.bin", ramdisk=True, icount=True,
                          append="gate.latency_ns=1000000 vm.map_around_bytes=4096")
    assert result.status == 0, result.explain()
    # Each page misses, lets its lock go, and is looked up again.
    assert result.out.splitlines() == ["main started=0 attempts=0 latencies=0",
                                       "thread started=50 attempts=100 latencies=50"]

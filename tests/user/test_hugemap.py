"""Huge pages, step by step: what tests/user/hugemap.c prints, against what Debian's Linux 6.12 printed
(tests/data/hugemap.txt), and in the long run against that Linux itself."""

import os
import subprocess

import pytest

import harness

RECORDED = os.path.join(harness.ROOT, "tests", "data", "hugemap.txt")


def recorded():
    with open(RECORDED, encoding="ascii") as data:
        return data.read().splitlines()


@pytest.mark.parametrize("smp", [1, 2])
def test_each_step_does_what_linux_does(smp):
    result = harness.boot("/tests/hugemap", smp=smp)
    assert result.status == 0, result.explain()
    assert result.out.splitlines() == recorded()


def test_the_pool_of_the_command_line():
    result = harness.boot("/bin/busybox", "cat", "/proc/sys/vm/nr_hugepages", "/proc/meminfo",
                          append="hugepages=3")
    assert result.status == 0, result.explain()
    lines = result.out.splitlines()
    assert lines[0] == "3"
    assert "HugePages_Total:       3" in lines
    assert "HugePages_Free:        3" in lines
    assert "Hugepagesize:       2048 kB" in lines
    assert "Hugetlb:            6144 kB" in lines


@pytest.mark.long
def test_linux_still_says_what_is_recorded():
    if subprocess.run(["make", "-s", "linux"], cwd=harness.ROOT, check=False).returncode != 0:
        pytest.skip("no Linux to compare with")
    done = subprocess.run([os.path.join(harness.ROOT, "tools", "linux"), "--smp", "2", "--",
                           "/tests/hugemap"], capture_output=True, check=True, timeout=200)
    assert harness.text(done.stdout).splitlines() == recorded()

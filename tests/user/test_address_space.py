"""The calls on an address space: what comes of them is compared with what Debian's Linux 6.12 answers
to the same program. tests/data has these answers; in the long run Linux is asked again."""

import os
import subprocess

import pytest

import harness

DATA = os.path.join(harness.ROOT, "tests", "data")
# Program, and the lines it has to print: all of the file, or those that begin so.
PROGRAMS = {
    "vmasteps": ("vma.txt", "VMA"),
    "maperrno": ("maperrno.txt", ""),
    "promises": ("promises.txt", ""),
}
# The oracle's program counted one area more than Linux does.
NOT_OF_LINUX = "VMA map count limit"


def wanted_lines(name):
    file_name, prefix = PROGRAMS[name]
    with open(os.path.join(DATA, file_name), encoding="ascii") as lines:
        return [line.rstrip("\n") for line in lines if line.startswith(prefix)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_line_is_as_on_linux(name):
    result = harness.boot(f"/tests/{name}")
    assert result.status == 0, result.explain()
    assert result.out.splitlines() == wanted_lines(name), result.explain()


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_linux_still_says_so(name):
    """With four levels of page tables, as here: with five, addresses go further."""
    done = subprocess.run([os.path.join(harness.ROOT, "tools", "linux"), "--append", "no5lvl",
                           "--", f"/tests/{name}"], stdin=subprocess.DEVNULL, capture_output=True,
                          check=False, timeout=harness.HOST_LIMIT_S)
    assert done.returncode == 0, harness.text(done.stderr)
    lines = harness.text(done.stdout).splitlines()
    wanted = wanted_lines(name)
    assert [line for line in lines if not line.startswith(NOT_OF_LINUX)] == \
        [line for line in wanted if not line.startswith(NOT_OF_LINUX)]

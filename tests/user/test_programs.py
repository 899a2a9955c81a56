"""Static Linux programs: loader, calls, bad accesses, counts. What they print is compared with what
the same binary prints on this machine's Linux, and else stands here."""

import os
import sys

import pytest

import harness

SIGILL, SIGBUS, SIGFPE, SIGSEGV = 4, 7, 8, 11

# Programs whose output is the same on every kernel: name, arguments here, arguments on the host.
DATA = os.path.join(harness.BUILD, "data")
SAME = {
    "hello": (["/tests/hello"], []),
    "status-of-eight-bits": (["/tests/status", "300"], ["300"]),
    "status-raw": (["/tests/status", "7", "raw"], ["7", "raw"]),
    "start": (["/tests/start", "a", "b c", "", "d\"e"], ["a", "b c", "", "d\"e"]),
    "heap": (["/tests/heap"], []),
    "stack-grows": (["/tests/stack", "1500"], ["1500"]),
    "stack-overflow": (["/tests/stack", "4000"], ["4000"]),
    "mapcalls": (["/tests/mapcalls", "/data/small.txt"], [os.path.join(DATA, "small.txt")]),
    "filecalls": (["/tests/filecalls", "/data"], [DATA]),
    "procself": (["/tests/procself", "a", "b c"], ["a", "b c"]),
    "callerrno": (["/tests/callerrno", "/data"], [DATA]),
    "procerrno": (["/tests/procerrno"], []),
    "advices": (["/tests/advices"], []),
    "remotemem": (["/tests/remotemem", "/data/medium.bin"], [os.path.join(DATA, "medium.bin")]),
    "efault": (["/tests/efault", "/data/medium.bin"], [os.path.join(DATA, "medium.bin")]),
}

FOR_ROOT = {"procerrno"}

BAD_ACCESS = {
    "read-null": SIGSEGV, "write-readonly": SIGSEGV, "write-text": SIGSEGV, "read-none": SIGSEGV,
    "execute-data": SIGSEGV, "read-unmapped": SIGSEGV, "read-kernel": SIGSEGV,
    "read-noncanonical": SIGSEGV, "read-past-end": SIGBUS, "privileged": SIGSEGV,
    "undefined": SIGILL, "divide": SIGFPE,
}

# FAULTS.md, section 3: event, (major, minor), by the faultline rule.
COUNTS = {
    "cold file page": (1, 0),
    "the same page again": (0, 0),
    "cached file page": (0, 1),
    "cached file page with the mark": (0, 1),
    "store to a cold private file page": (1, 0),
    "store to a cached private file page": (0, 1),
    "load of a cached private file page": (0, 1),
    "store to it after the load": (0, 1),
    "hole in a sparse file": (0, 1),
    "first read of anonymous memory": (0, 1),
    "write after read": (0, 1),
    "first write of anonymous memory": (0, 1),
    "second write": (0, 0),
    "mprotect to read-only and back, then a store": (0, 0),
    "read into 4 absent pages": (0, 4),
    "read into an unmapped page": (0, 0),
    "read into one page with a hole behind it": (0, 1),
}


def start(case):
    kind, name = case
    if kind == "same":
        return harness.boot(*SAME[name][0])
    if kind == "bad":
        return harness.boot("/tests/badaccess", name)
    return harness.boot("/tests/counts", "/data/medium.bin", "/data/sparse.bin", ramdisk=True,
                        icount=True, append="gate.latency_ns=1000000")


@pytest.fixture(scope="module")
def boots(request):
    boots = harness.Boots(request, start)
    yield boots
    boots.close()


def cases(kind, names):
    return pytest.mark.parametrize("case", [(kind, name) for name in names], ids=list(names))


def comparable(out):
    return [line for line in out.splitlines() if not line.startswith("host: ")]


@cases("same", SAME)
def test_does_the_same_as_on_linux(case, boots):
    here = boots[case]
    (program, *_), host_arguments = SAME[case[1]]
    if sys.platform != "linux":
        pytest.skip("the other side of this comparison is Linux")
    if case[1] in FOR_ROOT and os.geteuid() != 0:
        pytest.skip("everybody is root here, so it must be there")
    there = harness.on_host(program, *host_arguments)
    assert here.status == there.status, here.explain()
    assert comparable(here.out) == comparable(there.out), here.explain()


@cases("bad", BAD_ACCESS)
def test_a_bad_access_ends_the_program_by_its_signal(case, boots):
    result = boots[case]
    assert result.status == 128 + BAD_ACCESS[case[1]], result.explain()
    assert result.out.splitlines()[:1] == [case[1]]
    assert "still alive" not in result.out


@cases("counts", ["counts"])
def test_one_access_is_one_count(case, boots):
    result = boots[case]
    assert result.status == 0, result.explain()
    counted = {}
    for line in result.out.splitlines():
        event, _, numbers = line.rpartition(": ")
        counted[event] = tuple(int(word) for word in numbers.split())
    assert counted == COUNTS, result.explain()


def test_a_program_that_is_not_there_is_said():
    result = harness.boot("/tests/not-there")
    assert result.status != 0
    assert "not-there" in result.out + result.err + result.log, result.explain()

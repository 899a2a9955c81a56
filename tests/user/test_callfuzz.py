"""Calls with good, borderline and wild arguments: the kernel survives them, and nothing leaks."""

import re

import pytest

import harness

SHORT_CALLS, LONG_CALLS = 4000, 60000
PAGES_LOST = 64  # slabs that are not yet empty, pages on the CPUs' own lists

# seed, CPUs, MiB, the debug kernel with its lock checker
SHORT = [(1, 1, 512, True), (2, 2, 512, True), (3, 4, 512, False), (4, 2, 64, False)]
LONG = [(seed, 1 + seed % 4, 48 if seed % 5 == 0 else 256, seed % 3 > 0) for seed in range(101, 113)]


# seed, CPUs, MiB, debug kernel, batches of the calls of processes
SHORT_PROCESSES = [(11, 1, 256, True, 12), (12, 2, 256, True, 12)]
LONG_PROCESSES = [(seed, 1 + seed % 4, 256, seed % 3 > 0, 60) for seed in range(201, 211)]


def start(case):
    if case[0] == "processes":
        _, seed, smp, mem, debug, batches = case
        return harness.boot("/tests/procfuzz", str(seed), str(batches), smp=smp, mem=mem,
                            timeout=300, options=["--debug"] if debug else [])
    seed, smp, mem, debug, calls = case
    return harness.boot("/tests/callfuzz", str(seed), str(calls), smp=smp, mem=mem,
                        options=["--debug"] if debug else [])


@pytest.fixture(scope="module")
def boots(request):
    boots = harness.Boots(request, start)
    yield boots
    boots.close()


def cases():
    short = [pytest.param((*case, SHORT_CALLS), id=f"seed{case[0]}") for case in SHORT]
    long = [pytest.param((*case, LONG_CALLS), id=f"seed{case[0]}", marks=pytest.mark.long)
            for case in LONG]
    return pytest.mark.parametrize("case", short + long)


@cases()
def test_no_arguments_of_calls_harm_the_kernel(case, boots):
    result = boots[case]
    assert result.status == 0, result.explain()
    assert "assertion" not in result.log.lower(), result.explain()
    summary = re.search(r"callfuzz: seed \d+, (\d+) calls, (\d+) succeeded, (-?\d+) pages lost",
                        result.out)
    assert summary, result.explain()
    calls, succeeded, lost = map(int, summary.groups())
    assert calls == case[-1]
    assert calls // 20 < succeeded < calls // 2, result.explain()
    assert lost < PAGES_LOST, result.explain()


def process_cases():
    short = [pytest.param(("processes", *case), id=f"seed{case[0]}") for case in SHORT_PROCESSES]
    long = [pytest.param(("processes", *case), id=f"seed{case[0]}", marks=pytest.mark.long)
            for case in LONG_PROCESSES]
    return pytest.mark.parametrize("case", short + long)


@process_cases()
def test_whatever_processes_do_they_end_and_leave_nothing(case, boots):
    result = boots[case]
    assert result.status == 0, result.explain()
    assert "assertion" not in result.log.lower(), result.explain()
    summary = re.search(r"procfuzz: seed \d+, (\d+) batches, (\d+) calls, \d+ had to be killed, "
                        r"(-?\d+) pages lost", result.out)
    assert summary, result.explain()
    batches, calls, lost = map(int, summary.groups())
    assert batches == case[-1]
    assert calls > 50 * batches, result.explain()
    assert lost < PAGES_LOST, result.explain()

"""Signals: each program runs here and on this machine's Linux, and must print the same. One boot each, and one with two
CPUs for what goes on between processes and threads."""

import os
import sys

import pytest

import harness

DATA = os.path.join(harness.BUILD, "data")
# name: (arguments here, arguments on the host, CPUs)
PROGRAMS = {
    "bad-accesses": (["/tests/segvtable", "/data/small.txt", "tmp"],
                     [os.path.join(DATA, "small.txt"), "tmp"], 1),
    "calls": (["/tests/sigcalls"], [], 1),
    "processes": (["/tests/sigproc"], [], 1),
    "processes-two-cpus": (["/tests/sigproc"], [], 2),
}


@pytest.fixture(scope="module")
def boots(request):
    boots = harness.Boots(request, lambda case: harness.boot(*PROGRAMS[case][0],
                                                             smp=PROGRAMS[case][2]))
    yield boots
    boots.close()


@pytest.mark.parametrize("case", list(PROGRAMS))
def test_signals_are_those_of_linux(case, boots):
    here = boots[case]
    (program, *_), host_arguments, _ = PROGRAMS[case]
    if sys.platform != "linux":
        pytest.skip("the other side of this comparison is Linux")
    there = harness.on_host(program, *host_arguments)
    assert there.status == 0 and there.out.endswith("done\n"), there.explain()
    assert here.status == 0, here.explain()
    assert here.out.splitlines() == there.out.splitlines(), here.explain()


def test_the_first_program_gets_from_others_only_what_it_handles():
    """Its own signals end it, other than on Linux: so abort() of a program under test is seen."""
    result = harness.boot("/tests/initsignals")
    assert result.out.splitlines() == ["alive after signals without a handler", "waited for: 1",
                                       "alive after the same while they were blocked",
                                       "handled: 1"], result.explain()
    assert result.status == 128 + 15, result.explain()


def test_a_fatal_signal_does_not_wait_for_the_disk():
    result = harness.boot("/tests/sigdisk", "/data/medium.bin", "vda")
    assert result.status == 0, result.explain()
    assert result.out.splitlines() == ["none: signal 0, at once", "SIGKILL: signal 9, at once",
                                       "SIGTERM: signal 15, at once"], result.explain()

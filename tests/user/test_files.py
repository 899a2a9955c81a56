"""Files that can be written, pipes and the calls that wait: the same programs here and on Linux."""

import sys

import pytest

import harness

# Program, arguments here, arguments on the host.
CASES = {
    "files-in-tmp": ("/tests/tmpfiles", ["/tmp"], 1),
    "files-in-dev-shm": ("/tests/tmpfiles", ["/dev/shm"], 2),
    "pipes": ("/tests/pipes", ["/tmp"], 1),
    "pipes-on-two-cpus": ("/tests/pipes", ["/tmp"], 2),
    "limits": ("/tests/filelimits", ["/tmp"], 1),
}


def start(name):
    program, arguments, smp = CASES[name]
    return harness.boot(program, *arguments, smp=smp)


@pytest.fixture(scope="module")
def boots(request):
    boots = harness.Boots(request, start)
    yield boots
    boots.close()


@pytest.mark.parametrize("case", list(CASES))
def test_does_the_same_as_on_linux(case, boots, tmp_path):
    here = boots[case]
    if sys.platform != "linux":
        pytest.skip("the other side of this comparison is Linux")
    there = harness.on_host(CASES[case][0], str(tmp_path))
    assert here.status == there.status == 0, here.explain()
    # The last lines name no path: both directories are made for the run.
    assert here.out == there.out, here.explain()


def test_a_full_tmp_is_an_error_and_leaves_memory_to_programs():
    result = harness.boot("/tests/tmpfull", "/tmp", mem=128)
    assert result.status == 0, result.explain()
    assert result.out.splitlines() == [
        "write: No space left on device",
        "between a third and two thirds of memory: yes",
        "a store to a page that is not there: signal 7",
        "memory for programs: yes",
        "a new file's first byte: No space left on device",
        "after unlink: 1",
    ], result.explain()

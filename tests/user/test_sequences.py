"""The worked sequences of tests/user/sequences.py, to the letter: all in one process by the batch
program, and each in a boot of its own by mplay, whose numbers must agree with its line."""

import re

import pytest

import harness
from sequences import SEQUENCES

BATCH_CPUS = (1, 4)
# Those that every run does by mplay: the policies' options, the advice, read, mmap, holes.
SHORT = ("mmap-from-0", "madvise-sequential", "around", "read-over-a-hole")

CASES = [pytest.param((name, smp), id=f"{name}-smp{smp}",
                      marks=[] if name in SHORT and smp == 1 else pytest.mark.long)
         for name in SEQUENCES for smp in (1, 4)]


@pytest.fixture(scope="module", params=BATCH_CPUS, ids=lambda smp: f"smp{smp}")
def batch(request):
    result = harness.boot("/tests/oracle", "/tests/sequences.txt", smp=request.param)
    assert result.status == 0, result.explain()
    return harness.parse_batch(result.out)


@pytest.fixture(scope="module")
def boots(request):
    boots = harness.Boots(request, lambda case: harness.boot(
        "/bin/mplay", "--show-io", *SEQUENCES[case[0]][0], smp=case[1]))
    yield boots
    boots.close()


def check_numbers(expected, numbers):
    assert numbers["windows"] == str(expected.count("@"))
    assert numbers["major"] == numbers["waits"], "each major fault is one that waited"


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequence_in_the_batch(batch, name):
    expected = SEQUENCES[name][1]
    assert batch[name]["io"] == expected
    check_numbers(expected, batch[name])


@pytest.mark.parametrize("case", CASES)
def test_sequence_by_mplay(case, boots):
    result = boots[case]
    expected = SEQUENCES[case[0]][1]
    assert result.status == 0, result.explain()
    assert harness.io_line(result.out) == expected, result.explain()
    numbers = harness.numbers_of(result.out)
    check_numbers(expected, numbers)
    assert int(numbers["window_pages"]) == sum(map(int, re.findall(r",(\d+)\)", expected)))

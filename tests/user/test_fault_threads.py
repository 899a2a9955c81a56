"""Eight faulting threads among others that map, protect and fork: many seeds, the same run twice.

The in-kernel suite fault_threads tries a few seeds in every configuration. Here it tries many, on a
clock that counts instructions: what a seed finds, it finds again.
"""

import pytest

import harness

LIMIT_S = 1500
SUITE = "fault_threads/*"


def run_seeds(first, count, smp, *knobs):
    words = [f"sync.seed={first}", f"ktest.seeds={count}", *knobs]
    return harness.boot(None, smp=smp, ramdisk=True, icount=True, timeout=LIMIT_S,
                        append=" ".join(words), options=["--debug", f"--ktest={SUITE}"])


def expect_passed(result):
    assert result.status == 0, result.explain()
    assert "\nok 1 fault_threads\n" in result.out, result.explain()
    assert "# SKIP" not in result.out


def test_a_few_seeds_twice():
    """One CPU: the order is the seed's alone, so two runs write the same."""
    first, again = run_seeds(1, 4, 1), run_seeds(1, 4, 1)
    expect_passed(first)
    assert first.out == again.out


@pytest.mark.long
@pytest.mark.parametrize("smp", [1, 2, 4, 8])
@pytest.mark.parametrize("first", [1, 51, 101, 151])
def test_two_hundred_seeds(first, smp):
    expect_passed(run_seeds(first, 50, smp))

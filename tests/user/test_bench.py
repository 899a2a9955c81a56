"""Speed, as a count: instructions per operation under --icount, each below half of what Linux 6.12 needs."""

import importlib.machinery
import importlib.util
import os

import pytest

import harness


def load_bench():
    path = os.path.join(harness.ROOT, "tools", "bench")
    loader = importlib.machinery.SourceFileLoader("bench", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench", loader))
    loader.exec_module(module)
    return module


bench = load_bench()


@pytest.fixture(scope="module")
def counts():
    return bench.measure_here(harness.SMALL)


@pytest.mark.parametrize("operation", bench.LINUX_6_12)
def test_needs_less_than_half_of_the_instructions_of_linux(counts, operation):
    assert 0 < counts[operation] < bench.LINUX_6_12[operation] / 2


def test_the_same_instructions_in_every_run(counts):
    assert bench.measure_here(harness.SMALL) == counts

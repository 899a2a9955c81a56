"""`stream` against `ondemand`: every order of tools/patterns.py and of tests/data/readahead.txt under both.

All run in one process of one boot (tests/user/oracle.c), in time that counts instructions, on two disks:
one that is slower than the reader, who waits for nearly every window, and one that is faster, so that
only those wait who did not ask early enough.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import harness

sys.path.insert(0, os.path.join(harness.ROOT, "tools"))
import patterns  # noqa: E402, behind its path

LATENCIES_NS = {"slow": 2000000, "fast": 100000}
LIMIT_S = 300
TO_LEARN = 2  # requests, and waits, for each stream
LONG_TOUCHES = 1000
UNUSED_LIMIT = 0.05

RUNS = {run.name: run for run in patterns.all_runs()}
ORDERS = [name for name, run in RUNS.items() if run in patterns.PATTERNS or "/" in name]
LONG = [run.name for run in patterns.LONG]
RANDOM = [run.name for run in patterns.RANDOM]


def measure(latency_ns):
    result = harness.boot("/tests/oracle", "/tests/streams.txt", ramdisk=True, icount=True,
                          append=f"gate.latency_ns={latency_ns}", timeout=LIMIT_S)
    assert result.status == 0, result.explain()
    return harness.parse_batch(result.out)


@pytest.fixture(scope="module")
def disks():
    with ThreadPoolExecutor(harness.BOOTS_AT_ONCE) as pool:
        return dict(zip(LATENCIES_NS, pool.map(measure, LATENCIES_NS.values())))


@pytest.fixture(params=LATENCIES_NS)
def disk(request, disks):
    return disks[request.param]


class Numbers:
    def __init__(self, answer):
        self.touched, self.requests, self.pages, ahead, used = (
            int(answer[name])
            for name in ("touched", "windows", "window_pages", "ahead", "ahead_used"))
        self.waits = int(answer["waits"]) + int(answer["read_waits"])
        self.unused = ahead - used
        self.checksum = answer["checksum"]


def both(disk, name):
    return tuple(Numbers(disk[f"{name}@{policy}"]) for policy in ("ondemand", "stream"))


@pytest.mark.parametrize("name", ORDERS)
def test_stream_costs_no_more_than_it_takes_to_learn(disk, name):
    ondemand, stream = both(disk, name)
    allowed = TO_LEARN * RUNS[name].streams
    assert (stream.touched, stream.checksum) == (ondemand.touched, ondemand.checksum)
    assert stream.requests <= ondemand.requests + allowed
    assert stream.waits <= ondemand.waits + allowed


@pytest.mark.parametrize("name", LONG)
def test_stream_is_better_where_ondemand_can_be_beaten(disks, name):
    ondemand, stream = both(disks["slow"], name)
    assert ondemand.touched >= LONG_TOUCHES
    assert stream.requests < ondemand.requests and stream.waits < ondemand.waits
    # Where the disk is fast, reads larger than a window wait for their first pages only, under both.
    ondemand, stream = both(disks["fast"], name)
    assert stream.requests < ondemand.requests and stream.waits <= ondemand.waits


@pytest.mark.parametrize("name", RANDOM)
def test_stream_reads_little_in_vain_where_there_is_no_order(disk, name):
    first, stream = (Numbers(disk[f"{run}@stream"]) for run in (name + "-first", name))
    assert stream.touched - first.touched >= LONG_TOUCHES
    assert stream.unused - first.unused <= UNUSED_LIMIT * (stream.pages - first.pages)


def test_small_memory_makes_ondemand_read_pages_more_than_once(disk):
    """That is what the thrashing orders are for: else they would show nothing."""
    for name in ("thrash-mmap", "thrash-read"):
        ondemand, stream = both(disk, name)
        assert ondemand.pages > 2 * ondemand.touched
        assert stream.pages < ondemand.pages and stream.unused < ondemand.unused

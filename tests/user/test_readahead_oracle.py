"""Every scenario of tests/data/readahead.txt asks the disk for what was measured.

All run in one process of one boot (tests/user/oracle.c): on the RAM disk, which has every page
before it is touched; on the virtio disk, which may or may not have it; and on a disk that never has,
where the major faults are exact too.
"""

import re

import pytest

import harness
import readahead_oracle

SCENARIOS = {scenario.key: scenario for scenario in readahead_oracle.scenarios()}
BATCH_LIMIT_S = 240
# In time that counts instructions, so that no load of this machine makes the disk look fast.
SLOW_DISK = "gate.latency_ns=1000000"


def run_batch(**machine):
    result = harness.boot("/tests/oracle", "/tests/oracle.txt", timeout=BATCH_LIMIT_S, **machine)
    return result, harness.parse_batch(result.out)


@pytest.fixture(scope="module", params=(1, 4), ids=lambda smp: f"smp{smp}")
def on_ramdisk(request):
    return run_batch(ramdisk=True, smp=request.param)


@pytest.fixture(scope="module")
def on_disk():
    return run_batch(smp=2)


@pytest.fixture(scope="module")
def on_slow_disk():
    return run_batch(ramdisk=True, icount=True, append=SLOW_DISK)


def check_common(scenario, batch):
    result, answers = batch
    answer = answers.get(scenario.key)
    assert answer and "io" in answer and "touched" in answer, result.explain()
    assert answer["undropped"] in ("0", "-1")
    assert int(answer["signals"]) == scenario.signals
    assert answer["io"] == readahead_oracle.expected_line(scenario)
    assert answer["major"] == answer["waits"], "each major fault is one that waited"
    if answer["resident"] != "-1":
        assert int(answer["resident"]) == readahead_oracle.expected_resident(scenario)
    expected_sum = readahead_oracle.expected_fault_sum(scenario)
    if expected_sum is not None:
        assert int(answer["major"]) + int(answer["minor"]) == expected_sum
    return answer


@pytest.mark.parametrize("key", SCENARIOS)
def test_scenario_on_the_ramdisk(key, on_ramdisk):
    check_common(SCENARIOS[key], on_ramdisk)


FAR_FROM_THE_MISS_LIMIT = [key for key, scenario in SCENARIOS.items()
                           if scenario.name not in readahead_oracle.NEAR_THE_MISS_LIMIT]


@pytest.mark.parametrize("key", FAR_FROM_THE_MISS_LIMIT)
def test_scenario_on_the_disk(key, on_disk):
    check_common(SCENARIOS[key], on_disk)


@pytest.mark.parametrize("key", FAR_FROM_THE_MISS_LIMIT)
def test_scenario_on_a_slow_disk(key, on_slow_disk):
    answer = check_common(SCENARIOS[key], on_slow_disk)
    expected_major = readahead_oracle.expected_major(SCENARIOS[key])
    if expected_major is not None:
        assert int(answer["major"]) == expected_major


def test_the_batch_ends_well(on_ramdisk):
    result, _ = on_ramdisk
    assert result.status == 0, result.explain()
    assert re.search(rf"^{len(SCENARIOS)} scenarios$", result.out, re.M), result.explain()


def test_the_notation_is_expanded_in_full():
    windows = readahead_oracle.expand("@R1:(5,2) ..+10/acc+3 x3.. @R7:(25,2) @9:(40,1)R")
    assert [str(w) for w in windows] == ["@R1:(5,2)", "@R4:(15,2)", "@R7:(25,2)", "@9:(40,1)"]
    with pytest.raises(ValueError):
        readahead_oracle.expand("@1:(5,2) ..+10/acc+3 x4.. @7:(25,2)")

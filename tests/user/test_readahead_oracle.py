"""Every fitting scenario of tests/data/readahead.txt asks the disk for what was measured.

All run in one process of one boot (tests/user/oracle.c): once on the RAM disk, which has every page
before it is touched, and once on the virtio disk.
"""

import re

import pytest

import harness
import readahead_oracle

SCENARIOS = {scenario.key: scenario for scenario in readahead_oracle.scenarios()}
BATCH_LIMIT_S = 240


def parse_batch(out):
    """{key: {"io": line, name: value}}"""
    answers = {}
    for line in out.splitlines():
        key, _, rest = line.partition(" ")
        if key not in SCENARIOS:
            continue
        answer = answers.setdefault(key, {})
        if rest.startswith("io:"):
            answer["io"] = rest
        else:
            answer.update(word.split("=", 1) for word in rest.split() if "=" in word)
    return answers


def run_batch(ramdisk):
    result = harness.boot("/tests/oracle", "/tests/oracle.txt", ramdisk=ramdisk, smp=2,
                          timeout=BATCH_LIMIT_S)
    return result, parse_batch(result.out)


@pytest.fixture(scope="module")
def on_ramdisk():
    return run_batch(ramdisk=True)


@pytest.fixture(scope="module")
def on_disk():
    return run_batch(ramdisk=False)


def check_common(scenario, batch):
    result, answers = batch
    answer = answers.get(scenario.key)
    assert answer and "io" in answer and "touched" in answer, result.explain()
    assert answer["undropped"] in ("0", "-1")
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


@pytest.mark.parametrize("key", [key for key, scenario in SCENARIOS.items()
                                 if scenario.name not in readahead_oracle.NEAR_THE_MISS_LIMIT])
def test_scenario_on_the_disk(key, on_disk):
    answer = check_common(SCENARIOS[key], on_disk)
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

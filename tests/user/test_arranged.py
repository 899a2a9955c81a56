"""Races that an unmodified program arranges, by the files gate and sync in
/sys/kernel/debug/faultline: what happens between a fault and its disk, in a fixed order."""

import re

import pytest

import harness

EXPECTED = """\
== disk
munmap: 0
the disk still has 1
the touch: signal 11, code 1, value -1
the disk has 0
== kill
reaped: signal 9
the disk still has 1
== replace
armed: 1
parked: 1
the touch: signal 0, code 0, value 65
off: 1
== dies
the other went on: 1
== closes
the touch: signal 0
== bad
refused 17
nothing is held: No such file or directory
armed: 0
armed again: Resource busy
rules 0, armed 1
two lines: 0
rules 1 1
rules 0
"""
COMPLAINTS = [
    'gate: "hold vda 0 0": expected hold DISK SECTOR COUNT [TIMES]',
    'gate: "explode vda" is no command; expected one of',
    "    release DISK [INDEX]",
    'sync: "park nowhere *": expected park NAME PID|*',
    'sync: "go fault_retry": expected go NAME of a point that is armed',
    'sync: "stay" is no command; expected one of',
]


def arranged(*races, flavour="--debug", smp=1):
    return harness.boot("/tests/arranged", *races, smp=smp, append="vm.readahead=none", timeout=60,
                        options=[flavour])


@pytest.mark.parametrize("smp", [1, 2])
def test_a_program_arranges_races(smp):
    races = re.findall(r"== (\w+)", EXPECTED)
    result = arranged(*races, smp=smp)
    assert result.status == 0 and result.out == EXPECTED, result.explain()
    for line in COMPLAINTS:
        assert line in result.log, result.explain()


def test_release_kernels_have_the_gate_and_park_nobody():
    result = arranged("disk", "closes", flavour="--release")
    before, after = EXPECTED.split("== kill")[0], result.out.split("== closes\n")[1]
    assert result.out.startswith(before), result.explain()
    assert after == "/sys/kernel/debug/faultline/sync: No such file or directory\n"

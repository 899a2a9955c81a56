"""Random sequences of address-space calls do what they do on Linux 6.12 (tests/user/mmfuzz/)."""

import os
import subprocess
import sys

import pytest

import harness

RECORD = os.path.join(harness.ROOT, "tests", "data", "mmfuzz.txt")
TOOL = os.path.join(harness.ROOT, "tools", "mmfuzz")
LONG_SEQUENCES = 20000
AGAIN = "tools/mmfuzz --seeds FIRST END shows what differs, and makes it short"


def recorded():
    with open(RECORD, encoding="ascii") as file:
        return file.read().splitlines()


@pytest.mark.parametrize("smp, options", [(1, ()), (2, ("--debug",))])
def test_sequences_do_as_recorded_on_linux(smp, options):
    expected = recorded()
    result = harness.boot("/tests/mmfuzz", "--seeds", "0", str(len(expected)), smp=smp,
                          timeout=300, options=options)
    assert result.status == 0, result.explain()
    lines = result.out.splitlines()
    differing = [(linux, here) for linux, here in zip(expected, lines) if linux != here]
    assert not differing, AGAIN
    assert len(lines) == len(expected)


def test_a_step_left_out_changes_the_log_and_no_other_sequence():
    seed, steps = recorded()[0].split()[0].split("/")
    without_last = f"{int(steps, 16) >> 1:x}"
    result = harness.boot("/tests/mmfuzz", seed, f"{seed}/{without_last}", seed)
    whole, shorter, again = result.out.splitlines()
    assert whole == again == recorded()[0]
    assert shorter.split()[0] == f"{seed}/{without_last}"
    assert shorter.split()[2] != whole.split()[2]


@pytest.mark.long
def test_20_000_sequences_do_as_on_linux():
    done = subprocess.run(["make", "-s", "linux"], cwd=harness.ROOT, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        pytest.skip(f"no Linux to compare with: {done.stderr}")
    done = subprocess.run([sys.executable, TOOL, "--seeds", "0", str(LONG_SEQUENCES)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{LONG_SEQUENCES} sequences" in done.stdout.splitlines()[-1]

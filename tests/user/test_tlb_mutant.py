"""The tests of TLB shootdown can fail: with the shootdown left out on purpose (`ktest.mutant=`) most
of them do, and with it all pass."""

import os
import re
import subprocess

import harness

RESULT = re.compile(r"^\s+(not ok|ok) \d+ (\S+)", re.MULTILINE)
FAILING_AT_LEAST = 12


def run(tmp_path, *options):
    """{suite's test: whether it passed}"""
    done = subprocess.run([os.path.join(harness.ROOT, "tools", "qemu"), "--debug", "--ktest=tlb*",
                           "--smp", "2", "--timeout", "100", "--log", str(tmp_path / "log"),
                           *options], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, timeout=130)
    return {name: verdict == "ok" for verdict, name in RESULT.findall(done.stdout)}, done


def test_shootdown_tests_pass_and_fail_without_it(tmp_path):
    good, done = run(tmp_path)
    assert done.returncode == 0 and all(good.values()), done.stdout
    bad, done = run(tmp_path, "--append", "ktest.mutant=no_shootdown")
    assert bad.keys() == good.keys(), done.stdout  # no test hangs or panics without it
    failed = {name for name, passed in bad.items() if not passed}
    assert len(failed) >= FAILING_AT_LEAST, done.stdout
    assert "munmap" in failed and "store_after_a_fork_stays_the_parents" in failed
    # What one CPU does to itself does not need it.
    assert bad["own_cpu_sees_the_change_after_a_flush_by_page"]

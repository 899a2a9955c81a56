"""Each rule of the fault's protocol, left out on purpose (kernel/sync/mutant.h), makes the kernel's
own tests fail: those that are named here. With all rules they pass.

docs/model.md says which bug of the model each mutant is.
"""

import os
import re
import shutil
import subprocess

import pytest

import harness

RESULT = re.compile(r"^\s+(not ok|ok) \d+ (\S+)", re.MULTILINE)
RUNNING = re.compile(r"# running \w+/(\w+)")

RACES, LOCK, RETRY = "fault_races/*", "fault_lock/*", "fault_retry/*"

# mutant: (suite, a test that must fail, and the words of the panic where it does not get to fail)
MUTANTS = {
    "no_pin": (RACES, "awaited_page_is_referenced", None),
    "not_kept": (RACES, "dropped_from_the_cache_is_read_again_in_one_fault", None),
    "no_owner_check": (RACES, "punched_before_it_has_the_page_lock_is_zeros", None),
    "no_relookup": (RACES, "unmapped_is_maperr_and_munmap_returns_before_the_disk", None),
    "no_change_count": (RACES, "unmapped_is_maperr_and_munmap_returns_before_the_disk", None),
    "no_size_recheck": (RACES, "truncated_before_it_asks_is_sigbus_without_a_request", None),
    "asked_not_kept": (RETRY, "page_asked_for_is_not_dropped_before_it_is_looked_at", None),
    "retry_forever": (RETRY, "second_attempt_of_once_keeps_the_lock", None),
    "wait_anyway": (RETRY, "wait_after_a_failed_read_is_without_the_lock", None),
    "count_each_try": (RETRY, "a_retried_fault_is_one_count", None),
    "lost_wakeup": (RACES, "delivered_before_it_is_queued_is_not_slept_for", None),
    "unmap_before_lock": (RACES, "punched_before_it_has_the_page_lock_is_zeros", "mapcount == 0"),
    "reclaim_no_freeze": (RACES, "dropped_from_the_cache_is_read_again_in_one_fault", None),
    "copy_under_page_lock": ("tmpfs/*",
                             "a_write_whose_source_is_unmapped_after_the_touch_touches_it_again",
                             "page lock (file)"),
    "no_detached_check": (LOCK, "unmapped_between_lookup_and_lock_is_segv", None),
    "no_detach_wait": (RACES, "unmapped_is_maperr_and_munmap_returns_before_the_disk", None),
    "new_area_open": (LOCK, "a_store_into_an_area_just_put_there_is_not_zapped", None),
}
QUICK = ("no_pin", "no_owner_check")
SUITES = sorted({suite for suite, _, _ in MUTANTS.values()})


def build(mutant):
    """The kernel's path."""
    done = subprocess.run(["make", "-s", f"MUTANT={mutant}", "kernel"], cwd=harness.ROOT,
                          capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return os.path.join(harness.BUILD, f"mutant-{mutant}", "faultline.elf")


def run(suite, *options):
    return harness.boot(None, smp=2, timeout=60, options=[f"--ktest={suite}", *options])


def failed_tests(out):
    """Those that said so, and the one that complained and did not come to its end."""
    results = {name: verdict for verdict, name in RESULT.findall(out)}
    failed = {name for name, verdict in results.items() if verdict == "not ok"}
    running = RUNNING.findall(out)
    if running and running[-1] not in results and re.search(r"# tests/kernel/", out.split("# running")[-1]):
        failed.add(running[-1])
    return failed


@pytest.mark.long
@pytest.mark.parametrize("suite", SUITES)
def test_with_all_rules_they_pass(suite):
    result = run(suite, "--debug")
    assert result.status == 0 and not failed_tests(result.out), result.explain()


@pytest.mark.parametrize("mutant", [pytest.param(name, marks=() if name in QUICK else pytest.mark.long)
                                    for name in MUTANTS])
def test_mutant_is_noticed(mutant):
    suite, test, panic = MUTANTS[mutant]
    result = run(suite, "--kernel", build(mutant))
    assert result.status != 0, result.explain()
    if panic:
        assert RUNNING.findall(result.out)[-1] == test, result.explain()
        assert re.search(re.escape(panic), result.out.split("PANIC")[-1]), result.explain()
    else:
        assert test in failed_tests(result.out), result.explain()


def test_every_mutant_has_its_test():
    with open(os.path.join(harness.ROOT, "kernel/sync/mutant.h"), encoding="utf-8") as header:
        names = set(re.findall(r"^    MUTANT_(\w+),", header.read(), re.MULTILINE)) - {"none"}
    assert names == set(MUTANTS)


def test_an_unknown_mutant_is_no_kernel():
    done = subprocess.run(["make", "-s", "MUTANT=no_such_rule", "kernel"], cwd=harness.ROOT,
                          capture_output=True, text=True, check=False, timeout=300)
    shutil.rmtree(os.path.join(harness.BUILD, "mutant-no_such_rule"))
    assert done.returncode != 0 and "MUTANT_no_such_rule" in done.stderr

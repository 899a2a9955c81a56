"""What builds, checks and runs: setup, the symbol table, the floors, the reader of KTAP."""

import importlib.machinery
import importlib.util
import sys
import time

import pytest

from conftest import ROOT, run_tool

MAP = """ffffffff80101000 T __text_start
ffffffff80101000 T kernel_main
ffffffff80101010 t helper
ffffffff80101020 W weak_one
ffffffff80102000 R __rodata_start
ffffffff80102000 T __text_end
0000000000100018 T start_multiboot2
"""


def mksyms(text, *arguments):
    return run_tool(sys.executable, "tools/mksyms.py", *arguments, stdin=None, input=text)


def test_symbols_are_the_functions_in_order():
    table = mksyms(MAP).stdout
    assert ".long 3\n" in table
    order = [table.index(part) for part in (
        ".long 0x101000, 0", ".long 0x101010, 12", ".long 0x101020, 19",
        '"kernel_main"', '"helper"', '"weak_one"')]
    assert order == sorted(order)
    assert "start_multiboot2" not in table


def test_symbols_of_nothing_are_an_empty_table():
    assert ".long 0\n" in mksyms("").stdout


def test_functions_that_move_between_the_links_are_an_error(tmp_path):
    first = tmp_path / "first.map"
    first.write_text(MAP)
    assert mksyms(MAP, "--check", first).returncode == 0
    done = mksyms(MAP.replace("80101010", "80101014"), "--check", first)
    assert done.returncode == 1 and "helper" in done.stderr


def load(name, path):
    """Imports a script whose name has no .py."""
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module
    loader.exec_module(module)
    return module


def test_no_include_points_up_the_floors():
    done = run_tool(sys.executable, "tools/lint_includes.py")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path, header, good", [
    ("mm/fault.c", "mm/core/page.h", True),
    ("mm/fault.c", "lib/list.h", True),
    ("mm/core/slab.c", "kernel/sched/sched.h", False),
    ("lib/list.h", "kernel/log/log.h", False),
    ("kernel/main.c", "tests/kernel/ktest.h", True),
    ("fs/file.c", "tests/kernel/ktest.h", False),
    ("user/mplay.c", "lib/list.h", False),
])
def test_the_floors(monkeypatch, path, header, good):
    lint = load("lint_includes", "tools/lint_includes.py")
    monkeypatch.setattr(lint.os.path, "isfile", lambda _: True)
    assert (lint.check_include(path, '"', header) is None) == good


def test_setup_has_nothing_to_do_and_is_quick():
    began = time.monotonic()
    done = run_tool("./setup")
    assert done.returncode == 0 and "everything is there" in done.stdout
    assert time.monotonic() - began < 2


# ---- The reader of KTAP ----

@pytest.fixture(scope="module")
def runner():
    return load("tests_run", "tests/run")


def read(runner, text):
    results = runner.Results()
    ktap = runner.Ktap(results)
    for line in text.splitlines(True):
        ktap.feed(line)
    return ktap, results


SUITES = """KTAP version 1
1..2
  KTAP version 1
  # Subtest: fault
  1..3
    # running fault/one
  ok 1 one
    # running fault/two
    # mm/fault.c:7: a is 1, expected b = 2
  not ok 2 two
    # running fault/three
  ok 3 three # SKIP no disk
not ok 1 fault
  KTAP version 1
  # Subtest: vma
  1..1
    # running vma/split
  ok 1 split
ok 2 vma
"""


def test_suites_of_cases(runner):
    ktap, results = read(runner, SUITES)
    assert ktap.is_complete()
    assert results.passed == ["fault/one", "vma/split"]
    assert results.skipped == ["fault/three"]
    assert results.failed == [("fault/two", ["mm/fault.c:7: a is 1, expected b = 2"])]


def test_a_flat_list(runner):
    ktap, results = read(runner, "KTAP version 1\n1..2\nok 1 a\nnot ok 2 - b\n")
    assert ktap.is_complete()
    assert (results.passed, results.failed) == (["a"], [("b", [])])


def test_a_run_that_dies_names_the_test_that_was_running(runner):
    ktap, results = read(runner, SUITES[:SUITES.index("  ok 3 three")] + "PANIC: oops\n")
    assert ktap.running == "fault/three" and not ktap.is_complete()
    assert ktap.tail[-1] == "PANIC: oops"
    assert len(results.failed) == 1


@pytest.mark.parametrize("text", ["", "KTAP version 1\nok 1 a\n", "1..2\nok 1 a\n"])
def test_missing_plans_and_results_are_not_complete(runner, text):
    assert not read(runner, text)[0].is_complete()


def test_a_suite_with_too_few_cases_fails(runner):
    text = SUITES.replace("  1..1\n", "  1..2\n")
    assert ("vma/(plan)", ["planned 2 tests, but 1 ended"]) in read(runner, text)[1].failed


def test_a_kernel_that_dies_is_booted_again_behind_the_test(runner, monkeypatch):
    boots = []

    def boot(config, options, pattern, after, results):
        boots.append(after)
        text = SUITES[:SUITES.index("  ok 3 three")] if not after else \
            SUITES[:5 + 10] + "1..1\n" + SUITES[SUITES.index("  KTAP version 1\n  # Subtest: vma"):]
        if after:
            text = text.replace("ok 2 vma", "ok 1 vma").replace("1..2\n", "")
        ktap = runner.Ktap(results)
        for line in text.splitlines(True):
            ktap.feed(line)
        return ktap, 0 if after else 70

    monkeypatch.setattr(runner, "boot_once", boot)
    results = runner.Results()
    options = type("Options", (), {"pattern": None})
    runner.run_config(runner.CONFIGS[0], options, results)
    assert boots == ["", "fault/three"]
    assert results.passed == ["fault/one", "vma/split"]
    assert [name for name, _ in results.failed] == ["fault/two", "fault/three"]


def test_nothing_run_is_a_failure(runner, capsys):
    report = runner.Report()
    runner.run_part(report, "empty", lambda results: None)
    assert report.finish() == 1
    assert capsys.readouterr().out.endswith("0 passed, 1 failed\n")

"""The model of the fault's retry protocol, checked by Spin (docs/model.md): a few of its checks, and
in the long run all."""

import os
import re
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "model"))
import run as model  # pylint: disable=wrong-import-position

QUICK = ("once-mmap", "no-detached-check", "wait-anyway")
LONG = bool(os.environ.get("FAULTLINE_LONG"))

needs_spin = pytest.mark.skipif(not model.is_there(), reason="no spin here; ./setup installs it on Debian")


@needs_spin
@pytest.mark.parametrize("name", [name for name in model.CHECKS if LONG or name in QUICK])
def test_check(name):
    check = model.CHECKS[name]
    outcome = model.run(check)
    assert outcome.is_as_it_must_be(check), outcome.text


def test_every_bug_of_the_model_is_left_in_by_a_check():
    there = set(re.findall(r"BUG_[A-Z_]+", (ROOT / "tests/model/retry.pml").read_text(encoding="utf-8")))
    asked = set(re.findall(r"BUG_[A-Z_]+", " ".join(check.flags for check in model.BUGS)))
    assert asked == there - {"BUG_"}


def test_chapter_names_bugs_and_mutants():
    chapter = (ROOT / "docs/model.md").read_text(encoding="utf-8")
    mutants = re.findall(r"^    MUTANT_(\w+),", (ROOT / "kernel/sync/mutant.h").read_text(encoding="utf-8"),
                         re.MULTILINE)
    names = [name for name in mutants if name != "none"]
    names += [check.name for check in model.BUGS if not check.name.endswith("-vma")]
    assert not [name for name in names if f"`{name}`" not in chapter]

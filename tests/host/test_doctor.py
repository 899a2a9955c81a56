"""tools/doctor: what it finds, what it calls wrong, and what it says to do about it."""

import os
import re
import shutil
import sys

import pytest

from conftest import run_tool

# Without ccache's links, which look for the compiler in PATH.
HERE = ":".join(part for part in os.environ["PATH"].split(":") if "ccache" not in part)
HERE += ":/usr/sbin:/sbin"
# All that the doctor looks for, and what it and those need themselves.
TOOLS = ("make gcc x86_64-linux-gnu-gcc ld as musl-gcc qemu-system-x86_64 grub-mkrescue xorriso mformat gdb python3 "
         "clang-format clang spin env sh uname apt-get").split()


class Machine:
    """A folder of commands as PATH: this machine's, less or other ones as the test says."""

    def __init__(self, folder):
        self.folder = folder
        for tool in TOOLS:
            path = shutil.which(tool, path=HERE)
            if path:
                (folder / tool).symlink_to(path)

    def remove(self, tool):
        (self.folder / tool).unlink(missing_ok=True)

    def fake(self, tool, script):
        self.remove(tool)
        (self.folder / tool).write_text(f"#!/bin/sh\n{script}\n")
        (self.folder / tool).chmod(0o755)

    def doctor(self, *options, **environment):
        done = run_tool(sys.executable, "tools/doctor", *(options or ("--no-boot",)),
                        env={**os.environ, "PATH": str(self.folder), **environment})
        assert "Traceback" not in done.stderr, done.stderr
        return done


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def said_about(done, name):
    """The line that calls it wrong, and the one behind it."""
    match = re.search(rf"^  WRONG +{re.escape(name)}: (.*)\n +to mend it: (.*)$", done.stdout, re.M)
    assert match, done.stdout
    return match.groups()


def test_nothing_is_wrong_with_a_machine_that_has_all(machine):
    done = machine.doctor()
    assert (done.returncode, "WRONG" in done.stdout) == (0, False), done.stdout
    assert done.stdout.endswith("doctor: all is well\n")
    assert re.search(r"^  ok +QEMU \d+\.\d+", done.stdout, re.M)


def test_what_is_missing_is_named_with_its_package(machine):
    machine.remove("gdb")
    machine.remove("xorriso")
    done = machine.doctor()
    assert done.returncode == 1
    assert said_about(done, "gdb") == ("gdb or x86_64-elf-gdb is not there",
                                       "./setup   (or: apt-get install gdb)")
    assert "apt-get install xorriso" in said_about(done, "xorriso")[1]
    assert done.stdout.endswith("doctor: 2 things to mend\n")


def test_the_package_is_named_as_this_system_names_it(machine):
    machine.remove("qemu-system-x86_64")
    machine.remove("apt-get")
    machine.fake("dnf", "exit 0")
    assert said_about(machine.doctor(), "QEMU")[1] == "dnf install qemu-system-x86-core"
    machine.remove("dnf")
    assert "no package manager" in said_about(machine.doctor(), "QEMU")[1]


def test_too_old_and_of_no_version_are_told_apart(machine):
    machine.fake("qemu-system-x86_64", "echo QEMU emulator version 5.2.0")
    machine.fake("xorriso", "echo hello")
    done = machine.doctor()
    assert said_about(done, "QEMU")[0] == "QEMU 5.2.0 is too old: 7.0 is needed"
    assert said_about(done, "xorriso")[0] == "xorriso does not say its version: 'hello'"


def test_what_is_broken_says_how(machine):
    machine.fake("musl-gcc", "echo no crt1.o here; exit 3")
    machine.fake("gdb", 'case "$*" in *python*) echo "Python scripting is not supported"; exit 1;; '
                        '*) echo GNU gdb 13.1;; esac')
    done = machine.doctor()
    assert said_about(done, "musl")[0] == "musl-gcc ended with status 3: no crt1.o here"
    assert "has no Python" in said_about(done, "gdb")[0]


def test_what_few_need_is_reported_and_does_not_count(machine):
    machine.remove("spin")
    done = machine.doctor()
    assert done.returncode == 0
    assert re.search(r"^  without +spin: .*\n +to mend it: .*\n +needed only by", done.stdout, re.M)


def test_no_boot_is_tried_with_broken_tools(machine):
    machine.remove("mformat")
    done = machine.doctor("--timeout-is-no-option")
    assert done.returncode == 2
    done = run_tool(sys.executable, "tools/doctor",
                    env={**os.environ, "PATH": str(machine.folder)})
    assert done.returncode == 1 and "skipped  the boot" in done.stdout


def test_this_machine_boots():
    done = run_tool(sys.executable, "tools/doctor")
    assert done.returncode == 0, done.stdout
    assert re.search(r"the smallest machine boots, and \d+ tests of the boot pass", done.stdout)

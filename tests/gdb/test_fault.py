"""A scripted gdb session: stop in a page fault, and walk back to the line of the program."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / (os.environ.get("BUILD") or "build")
GDB = shutil.which("gdb") or shutil.which("x86_64-elf-gdb")
START_LIMIT_S = 20
SESSION_LIMIT_S = 120


@pytest.fixture
def session(tmp_path):
    """Runs gdb commands against the debug kernel that starts `program`; gdb's output."""
    started = []

    def run(program, *commands):
        sock = tmp_path / "gdb"
        qemu = subprocess.Popen(
            [sys.executable, ROOT / "tools" / "qemu", "--debug", f"--gdb={sock}",
             "--disk", BUILD / "small.img", "--log", tmp_path / "log", "--timeout", "120",
             "--", *program],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        started.append(qemu)
        end = time.monotonic() + START_LIMIT_S
        while not sock.exists():
            assert qemu.poll() is None and time.monotonic() < end, qemu.stdout.read()
            time.sleep(0.05)
        command = [GDB, "-nx", "-q", "-batch", BUILD / "debug" / "faultline.elf",
                   "-iex", "set pagination off", "-iex", "set confirm off",
                   "-ex", f"target remote {sock}"]
        for text in commands:
            command += ["-ex", text]
        done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False, timeout=SESSION_LIMIT_S)
        return done.stdout + done.stderr

    yield run
    for qemu in started:
        if qemu.poll() is None:
            qemu.terminate()
        qemu.wait(10)


def frames(output):
    """The functions of a backtrace, innermost first."""
    return [match.group(1) for match in
            re.finditer(r"^#\d+\s+(?:0x[0-9a-f]+ in )?([\w.]+) \(", output, re.MULTILINE)]


def test_a_breakpoint_in_the_fault_handler_shows_the_user_function(session):
    """The kernel is built without knowing the program: gdb walks from one's stack to the other's."""
    output = session(["/tests/badaccess", "read-null"],
                     f"add-symbol-file {BUILD}/tests/user/badaccess",
                     "hbreak fault_user if addr == 0", "continue", "backtrace", "kill")
    names = frames(output)
    assert names and names[0] == "fault_user", output
    assert "page_fault_trap" in names, output
    assert "read_null" in names and "main" in names, output
    order = [names.index(name) for name in ("fault_user", "page_fault_trap", "read_null", "main")]
    assert order == sorted(order), output


def test_a_fault_that_waits_for_the_disk_shows_its_context_and_the_program(session):
    output = session(["/bin/mplay", "m:0-3", "/data/medium.bin"],
                     f"add-symbol-file {BUILD}/user/mplay",
                     # By the program itself (flag 1), on a mapping and not on its own text.
                     "hbreak fault_wait_unlocked if (f->flags & 1) && f->addr > 0x10000000000",
                     "continue",
                     "backtrace", "print *f", "kill")
    names = frames(output)
    assert names and names[0] == "fault_wait_unlocked", output
    assert {"fault_user", "page_fault_trap", "main"} <= set(names), output
    assert "locked = false" in output and "attempt = 0" in output, output

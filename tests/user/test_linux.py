"""tools/linux: Debian's Linux in the same QEMU (downloads it once, therefore only in the long run)."""

import os
import subprocess

import pytest

from harness import ROOT, SMALL

pytestmark = pytest.mark.long


@pytest.fixture(scope="module", autouse=True)
def kernel():
    done = subprocess.run(["make", "-s", "linux"], cwd=ROOT, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        pytest.skip(f"no Linux to compare with: {done.stderr}")


def run_linux(*words, data=b""):
    done = subprocess.run([os.path.join(ROOT, "tools", "linux"), *words], input=data,
                          capture_output=True, check=False, timeout=200)
    return done.returncode, done.stdout, done.stderr.decode()


def test_stdout_is_the_programs_and_nothing_else():
    assert run_linux("--", "/bin/printf", "a\\tb\\nc") == (0, b"a\tb\nc", "")


def test_the_status_is_the_programs():
    assert run_linux("--", "/bin/sh", "-c", "exit 7") == (7, b"", "")
    assert run_linux("--", "/bin/sh", "-c", "kill -9 $$") == (137, b"", "")


def test_arguments_come_as_they_are():
    words = ["a b", "", '"', "\\", "--", "é"]
    expected = "".join(f"[{word}]\n" for word in words).encode()
    assert run_linux("--smp", "2", "--", "/bin/printf", "[%s]\n", *words) == (0, expected, "")


def test_the_disk_is_the_root_and_files_come_along(tmp_path):
    (tmp_path / "x").write_text("brought along\n")
    script = "cat /data/x; wc -c < /data/small.txt; ls /tests | grep -c ."
    size = os.path.getsize(os.path.join(ROOT, "build", "data", "small.txt"))
    status, out, _ = run_linux("--disk", SMALL, "--file", f"{tmp_path}/x:/data/x", "--", "/bin/sh",
                               "-c", script)
    lines = out.decode().split("\n")
    assert (status, lines[0], lines[1]) == (0, "brought along", str(size))


def test_input_reaches_the_program():
    assert run_linux("--", "/bin/head", "-n1", data=b"first\nsecond\n") == (0, b"first\n", "")


def test_its_own_statuses():
    status, out, err = run_linux("--timeout", "8", "--", "/bin/sleep", "1000")
    assert (status, out) == (124, b"") and "time limit" in err
    status, out, err = run_linux("--", "/bin/no-such-program")
    assert (status, out) == (72, b"") and "no program" in err
    status, out, err = run_linux("--no-such-option", "--", "/bin/true")
    assert (status, out) == (72, b"") and "unknown argument" in err

"""What the tests of the tools share."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run_tool(*command, **options):
    """Runs a command from the root; its output as text."""
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([str(part) for part in command], cwd=ROOT, capture_output=True,
                          text=True, check=False, timeout=120, **options)


@pytest.fixture(scope="session")
def toy_kernel(tmp_path_factory):
    """tests/host/toy_kernel.S, linked as the kernel is."""
    folder = tmp_path_factory.mktemp("toy")
    prefix = "x86_64-elf-" if shutil.which("x86_64-elf-gcc") else ""
    done = run_tool(f"{prefix}gcc", "-c", "tests/host/toy_kernel.S", "-o", folder / "toy.o")
    assert done.returncode == 0, done.stderr
    done = run_tool(f"{prefix}ld", "-n", "-z", "max-page-size=4096", "-z", "noexecstack",
                    "--no-warn-rwx-segments", "-T", "linker.ld", folder / "toy.o",
                    "-o", folder / "toy.elf")
    assert done.returncode == 0, done.stderr
    return folder / "toy.elf"


@pytest.fixture
def qemu(toy_kernel, tmp_path):
    """Runs tools/qemu with the toy kernel, without a disk, its files in a folder of the test's."""

    def run(*options, kernel=toy_kernel, disk=("--disk", "none"), timeout="30", **more):
        environment = dict(os.environ, BUILD=str(tmp_path))
        command = [sys.executable, "tools/qemu", "--timeout", timeout, *disk]
        if kernel:
            command += ["--kernel", kernel]
        return run_tool(*command, *options, env=environment, **more)

    return run

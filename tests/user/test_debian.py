"""Programs of Debian's that nobody here built: dynamically linked, with glibc and their libraries,
copied into an image of their own by tools/addprogram. What they print is what they print here."""

import os
import re
import shutil
import subprocess
import sys

import pytest

import harness

SCRIPT = os.path.join(harness.HERE, "debian.sql")
SBIN = ":/usr/sbin:/sbin"
PROGRAMS = {name: shutil.which(name, path=os.environ.get("PATH", "") + SBIN)
            for name in ("sqlite3", "memtester", "stress-ng")}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the programs are Linux's")

# Stressors with an end of their own; what each does must be seen to be right by itself (--verify).
SHORT = ["--vm 1 --vm-bytes 4M --vm-ops 20 --fork 1 --fork-ops 50 --pipe 1 --pipe-ops 500 "
         "--mmap 1 --mmap-bytes 1M --mmap-ops 2 --mremap 1 --mremap-bytes 1M --mremap-ops 5 "
         "--sigsegv 1 --sigsegv-ops 50 --futex 1 --futex-ops 100 --pthread 1 --pthread-ops 20"]
LONG = ["--vm 2 --vm-bytes 16M --vm-ops 500", "--fork 4 --fork-ops 500", "--vfork 2 --vfork-ops 200",
        "--pipe 4 --pipe-ops 20000", "--mmap 2 --mmap-bytes 4M --mmap-ops 10",
        "--mremap 2 --mremap-bytes 4M --mremap-ops 50", "--msync 1 --msync-ops 200",
        "--mlock 1 --mlock-ops 20", "--madvise 1 --madvise-ops 1", "--fault 2 --fault-ops 200",
        "--brk 1 --brk-ops 2000", "--stack 1 --stack-ops 5", "--malloc 2 --malloc-ops 2000",
        "--futex 2 --futex-ops 2000", "--pthread 1 --pthread-ops 50", "--sem 1 --timeout 5",
        "--switch 1 --switch-ops 1000", "--sigsegv 1 --sigsegv-ops 100", "--clone 1 --clone-ops 50",
        "--hdd 1 --hdd-bytes 1M --hdd-ops 10", "--poll 1 --poll-ops 200"]


def need(name):
    if not PROGRAMS[name]:
        pytest.skip(f"Debian's package {name} is not installed (./setup)")
    return PROGRAMS[name]


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=harness.ROOT)


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """An image with the programs that are here, and no shell."""
    place = tmp_path_factory.mktemp("debian")
    folder = place / "root"
    folder.mkdir()
    run("tools/mkroot", folder)
    run("tools/addprogram", folder, *[path for path in PROGRAMS.values() if path])
    shutil.copy(SCRIPT, folder / "root")
    run(sys.executable, "tools/mkimage", folder, place / "debian.img")
    return str(place / "debian.img")


def on_host(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False,
                          timeout=harness.HOST_LIMIT_S)
    return harness.Result(done.returncode, harness.text(done.stdout), harness.text(done.stderr))


def test_sqlite3_works_through_a_script_as_on_the_host(image, tmp_path):
    program = need("sqlite3")
    here = harness.boot(program, "/tmp/test.db", ".read /root/debian.sql", image=image, smp=2)
    there = on_host(program, str(tmp_path / "test.db"), f".read {SCRIPT}")
    assert here.status == there.status, here.explain()
    # Messages go to stderr on the host, and to the one console here: lines of both, in any order.
    wanted = there.out + there.err.replace(SCRIPT, "/root/debian.sql")
    assert sorted(here.out.splitlines()) == sorted(wanted.splitlines()), here.explain()
    assert "ok" in here.out.splitlines() and "no such table" in here.out


def verdicts(out):
    """memtester's line for each test, without the figures that turn meanwhile."""
    lines = re.sub(r".\x08+|\x08", "", out).splitlines()
    return [re.sub(r"\s+", " ", line).strip() for line in lines
            if re.match(r"\s+[A-Z][\w ]+\s*:", line)]


def test_memtester_finds_memory_as_good_as_the_host_does(image):
    program = need("memtester")
    here = harness.boot(program, "1M", "1", image=image)
    there = on_host(program, "1M", "1")
    assert here.status == 0 and there.status == 0, here.explain()
    assert verdicts(here.out) == verdicts(there.out), here.explain()
    assert len(verdicts(here.out)) > 10
    assert "locked." in here.out, here.explain()


def stress(image, options, smp=2, timeout=120):
    program = need("stress-ng")
    # The options come last: a stressor that does not count its operations (sem) says for itself how long it runs.
    words = ["--verify", "--temp-path", "/tmp", "--timeout", str(timeout), *options.split()]
    result = harness.boot(program, *words, image=image, smp=smp, timeout=timeout)
    assert result.status == 0, result.explain()
    assert "successful run completed" in result.out, result.explain()
    assert "fail:" not in result.out, result.explain()


@pytest.mark.parametrize("options", SHORT, ids=["mixed"])
def test_stress_ng_ends_without_complaint(image, options):
    stress(image, options)


@pytest.mark.long
@pytest.mark.parametrize("options", LONG, ids=[line.split()[0][2:] for line in LONG])
def test_stress_ng_ends_without_complaint_for_long(image, options):
    stress(image, options)

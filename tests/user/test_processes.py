"""Processes and threads: the same binaries here and on this machine's Linux print the same; what only this kernel limits
stands here."""

import os
import shutil
import subprocess
import sys

import pytest

import harness

# name: (program and arguments, CPUs)
SAME = {
    "forks": (["/tests/forktree"], 1),
    "forks-2": (["/tests/forktree"], 2),
    "threads": (["/tests/threads"], 1),
    "threads-4": (["/tests/threads"], 4),
    "exec": (["/tests/execer"], 2),
    "harness": (["/tests/harness_walk"], 1),
    "harness-2": (["/tests/harness_walk", "/dev/shm"], 2),
    "messages": (["/tests/messages", "1000"], 2),
    "500-threads": (["/tests/swarm"], 2),
}

HERE = {
    "bomb": (["/tests/forktree", "bomb"], 2),
    "big": (["/tests/forktree", "big", "100"], 2),
}

LONG = {
    "big-1000": (["/tests/forktree", "big", "1000"], 4),
    "threads-8": (["/tests/threads"], 8),
    "messages-10000": (["/tests/messages"], 2),
}


def start(case):
    program, smp = {**SAME, **HERE, **LONG}[case]
    return harness.boot(*program, smp=smp, timeout=240)


@pytest.fixture(scope="module")
def boots(request):
    boots = harness.Boots(request, start)
    yield boots
    boots.close()


def compare_with_host(case, result):
    (program, *arguments), _ = {**SAME, **LONG}[case]
    if sys.platform != "linux":
        pytest.skip("the other side of this comparison is Linux")
    there = harness.on_host(program, *arguments)
    assert result.status == there.status, result.explain()
    assert result.out == there.out, result.explain()


@pytest.mark.parametrize("case", SAME)
def test_does_the_same_as_on_linux(case, boots):
    compare_with_host(case, boots[case])


@pytest.mark.long
@pytest.mark.parametrize("name", ["threads-8", "messages-10000"])
def test_more_of_it_does_the_same_as_on_linux(name):
    compare_with_host(name, start(name))


def lines(result):
    assert result.status == 0, result.explain()
    return [line for line in result.out.splitlines() if not line.startswith("host: ")]


@pytest.mark.parametrize("case", ["bomb"])
def test_a_fork_bomb_meets_its_limit(case, boots):
    assert lines(boots[case]) == ["-- bomb", "errno: 11", "all came back: 1",
                                  "as many as the limit says, or nearly: 1"], boots[case].explain()


def check_big(result):
    assert lines(result) == ["wrong: 0", "fewer than 200 frames missing: 1",
                             "parent's pages changed: 0"], result.explain()


@pytest.mark.parametrize("case", ["big"])
def test_forks_of_64_mib_give_their_memory_back(case, boots):
    check_big(boots[case])


@pytest.mark.long
def test_a_thousand_forks_of_64_mib():
    check_big(start("big-1000"))


@pytest.mark.skipif(sys.platform != "linux", reason="the other side of this comparison is Linux")
def test_proc_shows_memory_as_on_linux():
    here = harness.boot("/tests/procmem", "/data/medium.bin", smp=2)
    there = harness.on_host("/tests/procmem", os.path.join(harness.BUILD, "data", "medium.bin"))
    assert here.status == there.status == 0, here.explain()
    assert here.out == there.out, here.explain()


def check_kernel_tests(result):
    assert result.status == 0 and "not ok" not in result.out and "SKIP" not in result.out, \
        result.explain()


@pytest.mark.long
@pytest.mark.parametrize("smp", [2, 4])
def test_thousands_leave_nothing_behind(smp):
    """All frames and slab objects are counted by the kernel itself, before and after."""
    check_kernel_tests(harness.boot(None, smp=smp, timeout=600,
                                    options=["--debug", "--ktest=leftovers_long"]))


GLIBC = ("forktree", "threads", "execer")
# Those that are short, all in one boot.
GLIBC_TOGETHER = ("hello", "harness_walk", "messages 300", "swarm", "pipes", "tmpfiles", "sigcalls",
                  "filelimits")


@pytest.fixture(scope="module")
def glibc(tmp_path_factory):
    """The same programs with the host's C library: their folder, and an image with them."""
    root = tmp_path_factory.mktemp("glibc")
    for folder in ("bin", "tests", "tmp", "dev", "proc", "sys"):
        (root / folder).mkdir()
    shutil.copy("/usr/bin/busybox", root / "bin" / "sh")
    for name in (line.split()[0] for line in GLIBC + GLIBC_TOGETHER):
        source = os.path.join(harness.HERE, name + ".c")
        subprocess.run(["gcc", "-static", "-O2", "-pthread", "-I", harness.ROOT, source, "-o",
                        root / "tests" / name], check=True)
    image = root.with_suffix(".img")
    subprocess.run([os.path.join(harness.ROOT, "tools", "mkimage"), root, image], check=True)
    return root / "tests", str(image)


@pytest.mark.skipif(sys.platform != "linux", reason="the other side of this comparison is Linux")
@pytest.mark.parametrize("name", GLIBC)
def test_does_the_same_with_glibc(name, glibc):
    folder, image = glibc
    here = harness.boot("/tests/" + name, image=image, smp=2)
    there = subprocess.run([folder / name], capture_output=True, check=False,
                           timeout=harness.HOST_LIMIT_S)
    assert here.status == there.returncode, here.explain()
    assert here.out == harness.text(there.stdout), here.explain()


@pytest.mark.skipif(sys.platform != "linux", reason="the other side of this comparison is Linux")
def test_short_programs_do_the_same_with_glibc(glibc):
    folder, image = glibc
    script = "; ".join(f"echo == {name}; {{}}/{name}; echo status $?" for name in GLIBC_TOGETHER)
    here = harness.boot("/bin/sh", "-c", script.replace("{}", "/tests"), image=image, smp=2)
    there = subprocess.run(["sh", "-c", script.replace("{}", str(folder))], capture_output=True,
                           check=False, timeout=harness.HOST_LIMIT_S)
    assert here.out == harness.text(there.stdout), here.explain()
    assert here.out.count("status 0\n") == len(GLIBC_TOGETHER), here.explain()

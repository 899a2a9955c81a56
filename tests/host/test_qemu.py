"""tools/qemu: what outside checks rely on, tried with a kernel of a page."""

import importlib.machinery
import importlib.util
import os
import subprocess
import sys

import pytest

from conftest import ROOT

ARGUMENTS = ["/bin/x", "a b", 'q"u', "b\\s", "i's", "$x;y,z", "--", "*"]


def test_status_is_the_programs(qemu):
    done = qemu("--append", "e")
    assert (done.returncode, done.stdout, done.stderr) == (42, "e\n", "")


def test_poweroff_is_status_0(qemu):
    assert qemu("--append", "o").returncode == 0


@pytest.mark.parametrize("word, status, text", [
    ("p", 70, "panic"), ("r", 71, "reset"), ("h", 124, "time limit")])
def test_own_statuses_say_so_in_one_line(qemu, word, status, text):
    done = qemu("--append", word, timeout="2")
    assert done.returncode == status
    assert done.stdout == f"{word}\n"
    lines = done.stderr.splitlines()
    assert text in lines[-1]
    assert len(lines) == 1 or (word == "r" and lines[0] == "==== MACHINE RESET ====")


def test_a_reset_is_reported_for_any_kernel(qemu):
    """One in 32-bit mode, without tasks, and with a stack that is no kernel's."""
    lines = qemu("--append", "r").stderr.splitlines()
    assert "  its interrupt table ends at byte 0x0: no place for most exceptions" in lines
    assert any(line.startswith("  at 0x00000000001") and "CPU 0 of 1" in line for line in lines)
    assert "  not known: there is no task yet, or its memory cannot be read" in lines


def test_a_signal_ends_it_also_without_a_time_limit(toy_kernel, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "tools/qemu", "--timeout", "0", "--disk", "none", "--kernel", toy_kernel,
         "--append", "h"], cwd=ROOT, env=dict(os.environ, BUILD=str(tmp_path)),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout.read(1) == b"h"
        process.terminate()
        assert process.wait(10) == 128 + 15
    finally:
        process.kill()


def test_tools_linux_starts_its_kernel_by_the_same_options(toy_kernel, tmp_path, monkeypatch, capfd):
    """What tools/qemu learns to ask for must not end tools/linux, which has fewer options."""
    loader = importlib.machinery.SourceFileLoader("tools_linux", str(ROOT / "tools" / "linux"))
    linux = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(linux)
    monkeypatch.setattr(linux, "fetch", lambda: str(toy_kernel))
    monkeypatch.setattr(linux, "make_archive", lambda args: b"")
    monkeypatch.setattr(linux, "WORDS", "e")
    monkeypatch.setattr(sys, "argv", ["tools/linux", "--log", str(tmp_path / "log"),
                                      "--timeout", "30", "--", "/bin/x"])
    assert linux.main() == 42
    assert capfd.readouterr() == ("e\n", "")


def test_a_programs_124_says_nothing(qemu):
    done = qemu("--append", "t")
    assert (done.returncode, done.stderr) == (124, "")


@pytest.mark.parametrize("options, text", [
    (["--kernel", "/nowhere.elf"], "/nowhere.elf"),
    (["--disk", "/nowhere.img"], "/nowhere.img"),
    (["--smp", "0"], "at least 1"),
    (["--smp", "65"], "64"),
    (["--no-such-option"], "--no-such-option"),
    (["/bin/x"], "behind --"),
    (["--uefi", "--mem", "64"], "128"),
    (["--ktest", "--", "/bin/x"], "--ktest"),
    (["--append", 'a "b'], "quotation"),
])
def test_what_cannot_start_is_status_72(qemu, options, text):
    done = qemu(*options)
    assert done.returncode == 72
    assert len(done.stderr.splitlines()) == 1 and text in done.stderr
    assert done.stdout == ""


def test_a_refusal_of_qemu_is_status_72(qemu):
    done = qemu("--cpu", "no-such-cpu")
    assert done.returncode == 72
    assert "no-such-cpu" in done.stderr


def test_missing_kernel_and_image_say_what_to_run(qemu):
    assert "`make`" in qemu(kernel=None).stderr
    assert "`make DEBUG=1`" in qemu("--debug", kernel=None).stderr
    assert "`make image`" in qemu(disk=()).stderr


def unquote(line):
    """Splits as the kernel does."""
    words, word, quoted, rest = [], None, False, iter(line)
    for c in rest:
        if c == "\\":
            word = (word or "") + next(rest)
        elif c == '"':
            quoted, word = not quoted, word or ""
        elif c == " " and not quoted:
            words += [word] if word is not None else []
            word = None
        else:
            word = (word or "") + c
    return words + ([word] if word is not None else [])


@pytest.mark.parametrize("options", [[], ["--iso"]])
def test_words_reach_the_kernel_whole(qemu, options):
    done = qemu(*options, "--append", 'e two="a b"', "--append", "three", "--", *ARGUMENTS)
    assert done.returncode == 42
    assert unquote(done.stdout.strip()) == ["e", "two=a b", "three", "init=/bin/x", "--"] + ARGUMENTS[1:]


def test_words_of_options(qemu, tmp_path):
    image = tmp_path / "ram.img"
    image.write_bytes(bytes(4096))
    assert qemu("--append", "e", "--ktest").stdout == "e ktest=*\n"
    assert qemu("--append", "e", "--ktest=fault/*").stdout == "e ktest=fault/*\n"
    assert qemu("--append", "e", "--icount").stdout == "e icount\n"
    assert qemu("--append", "e", "--ramdisk", image).stdout == "e root=ram0\n"
    assert qemu("--append", "e root=vda", "--ramdisk", image).stdout == "e root=vda\n"
    assert qemu("--append", "e", "--iso", "--ramdisk", image).stdout == "e root=ram0\n"


def test_uefi_keeps_the_firmwares_words_from_stdout(qemu):
    done = qemu("--uefi", "--append", "e uefi", timeout="100")
    assert (done.returncode, done.stdout) == (42, "e uefi\n")


@pytest.mark.parametrize("options", [[], ["--iso"]])
def test_log_and_output_are_apart(qemu, tmp_path, options):
    log = tmp_path / "the,log"
    assert qemu(*options, "--append", "e", "--log", log).stdout == "e\n"
    assert log.read_text().endswith("log\n")
    assert "log" not in qemu("--append", "e", "--log", log).stdout


@pytest.mark.parametrize("options", [[], ["--iso"]])
def test_stdin_feeds_the_guest(qemu, options):
    text = "a line that is longer than the chip's memory\nq"
    done = qemu(*options, "--append", "c", stdin=None, input=text)
    assert (done.returncode, done.stdout) == (42, "c\n" + text)


def test_a_closed_stdin_is_no_harm(toy_kernel, tmp_path):
    done = subprocess.run(["sh", "-c", f"tools/qemu --kernel {toy_kernel} --disk none --append e "
                           f"--log {tmp_path}/log <&-"], cwd=ROOT, capture_output=True,
                          text=True, check=False, timeout=30)
    assert (done.returncode, done.stdout) == (42, "e\n")


def test_a_closed_stdout_is_no_harm(toy_kernel, tmp_path):
    done = subprocess.run(["sh", "-c", f"{{ tools/qemu --kernel {toy_kernel} --disk none --append e "
                           f"--log {tmp_path}/log >&- ; }}; echo $?"], cwd=ROOT,
                          capture_output=True, text=True, check=False, timeout=30)
    assert done.stdout == "42\n"


def test_dry_run_shows_the_machine(qemu, tmp_path):
    image = tmp_path / "a,b.img"
    image.write_bytes(bytes(4096))
    line = qemu("--dry-run", "--smp", "4", "--icount=3", disk=("--disk", image)).stdout
    for part in ("-machine q35,hpet=off", "-icount shift=3,sleep=off", "-seed 1", "-cpu max",
                 "-rtc base=2020-01-01,clock=vm", "-smp 4", "-m 512", "disable-legacy=on",
                 "num-queues=4", "rerror=report,werror=report", "snapshot=on", "a,,b.img"):
        assert part in line
    line = qemu("--dry-run", "--write", disk=("--disk", image, "--disk2", image)).stdout
    assert line.count("snapshot=off") == 2 and line.count("virtio-blk-pci") == 2
    assert "hpet" not in line

"""tools/debug (`make gdb`, `make gdb-attach`) and tools/vscode: gdb and QEMU start together and end
together, and what is missing is said in words."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pexpect

from session import BUILD, ROOT, tried

DEBUG = [sys.executable, "-B", str(ROOT / "tools" / "debug")]
SMALL = ["--disk", str(BUILD / "small.img")]
LIMIT_S = 60


def start(*arguments, flags="", **options):
    return subprocess.Popen([*DEBUG, *arguments], cwd=ROOT, text=True, stdin=subprocess.DEVNULL,
                            env={**os.environ, "GDBFLAGS": flags, **options},
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)


def run(*arguments, **options):
    """(exit status, what it said)"""
    process = start(*arguments, **options)
    try:
        return process.communicate(timeout=LIMIT_S)[0], process.returncode
    finally:
        end_group(process)


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def qemu_of_the_last_session():
    """The processes that have its socket among their arguments."""
    sock = json.loads((BUILD / "gdb.json").read_text(encoding="utf-8"))["where"]
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if f"path={sock}".encode() in file.read():
                    found.append(int(name))
        except OSError:
            pass
    return found


def assert_qemu_is_gone():
    end = time.monotonic() + LIMIT_S
    while qemu_of_the_last_session():
        assert time.monotonic() < end, "QEMU has outlived gdb"
        time.sleep(0.05)


def test_a_batch_session_of_a_program(tmp_path):
    """Kernel and program symbols, stopped at kernel_main; `continue` runs to the program's main."""
    script = tmp_path / "script"
    script.write_text("bt 1\ncontinue\nbt 1\nfl tasks\n" + tried("fl last-fault") + "\n")
    said, status = run(*SMALL, "--", "gdbtarget", "an argument", flags=f"-batch -x {script}")
    assert status == 0, said
    assert "no error" not in said and "Traceback" not in said, said
    stops = re.findall(r"^#0 +(\w+) \(", said, re.MULTILINE)
    assert stops == ["kernel_main", "main"], said
    assert re.search(r"^\* +\d+ +gdbtarget +cpu 0 +running$", said, re.MULTILINE), said
    assert "refused: fl last-fault: there is no history here: make record" in said, said
    assert "fl stop-at fault|retry|wait|readahead|sigbus" in said, said
    assert_qemu_is_gone()


def test_the_makefile_hands_the_program_on():
    done = subprocess.run(["make", "-n", "gdb", "PROG=mplay -p 'a b' /data/small.txt"], cwd=ROOT,
                          stdout=subprocess.PIPE, text=True, check=True)
    assert "tools/debug -- mplay -p 'a b' /data/small.txt\n" in done.stdout


def test_gdb_that_dies_takes_qemu_with_it():
    said, status = run(*SMALL, flags="-batch -ex 'shell kill -KILL $PPID'")
    assert status != 0, said
    assert_qemu_is_gone()


def wait_for_ready(process):
    for line in process.stdout:
        if line == "ready\n":
            return
    raise AssertionError("gdb has not come up")


def signal_in_a_session(number):
    process = start(*SMALL, flags="-batch -ex 'shell echo ready; exec sleep 60'")
    try:
        wait_for_ready(process)
        assert len(qemu_of_the_last_session()) >= 1
        process.send_signal(number)
        process.wait(LIMIT_S)
        assert_qemu_is_gone()
    finally:
        end_group(process)
    return process.returncode


def test_an_interrupt_of_a_batch_session_ends_both():
    assert signal_in_a_session(signal.SIGINT) == 128 + signal.SIGINT


def test_nothing_is_left_where_the_tool_is_killed():
    assert signal_in_a_session(signal.SIGKILL) == -signal.SIGKILL


def test_at_a_terminal_an_interrupt_stops_the_kernel():
    child = pexpect.spawn(DEBUG[0], [*DEBUG[1:], *SMALL], cwd=ROOT, encoding="utf-8", timeout=LIMIT_S,
                          env={**os.environ, "TERM": "dumb", "GDBFLAGS": "-nx"})
    try:
        child.expect(r"kernel_main \(.*\(gdb\) ")
        child.sendline("hbreak idle_once")
        child.expect(r"\(gdb\) ")
        child.sendline("continue")
        child.expect(r"Breakpoint \d+, .*idle_once.*\(gdb\) ")
        child.sendline("delete")
        child.expect(r"\(gdb\) |y or n\) ")
        if child.after.startswith("y or n"):
            child.sendline("y")
            child.expect(r"\(gdb\) ")
        child.sendline("continue")
        child.expect("Continuing")
        time.sleep(0.2)  # not for the outcome: an interrupt before gdb waits is kept until it does
        child.sendintr()
        child.expect(r"SIGINT.*\(gdb\) ")
        assert qemu_of_the_last_session()
        child.sendline("quit")
        child.expect([pexpect.EOF, r"y or n\) "])
        if child.after is not pexpect.EOF:
            child.sendline("y")
            child.expect(pexpect.EOF)
    finally:
        child.close(force=True)
    assert_qemu_is_gone()


def test_attaching_to_a_kernel_that_runs(tmp_path):
    """It finds the kernel and the program by itself; the kernel goes on when gdb has left."""
    qemu = subprocess.Popen(
        [sys.executable, "-B", ROOT / "tools" / "qemu", "--debug", f"--gdb={tmp_path}/sock", *SMALL,
         "--log", tmp_path / "log", "--timeout", str(LIMIT_S), "--", "/tests/gdbtarget"],
        cwd=ROOT, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        end = time.monotonic() + LIMIT_S
        while not (tmp_path / "sock").exists():
            assert qemu.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        said, status = run("--attach", flags="-batch -ex 'hbreak inner' -ex continue -ex 'bt' "
                           "-ex delete -ex detach")
        assert status == 0, said
        assert re.findall(r"^#\d+ +(?:0x\w+ in )?(\w+) \(", said, re.MULTILINE) == \
            ["inner", "outer", "main"], said
        assert qemu.communicate(timeout=LIMIT_S)[0] == "gdbtarget: done (1)\n", said
        assert qemu.returncode == 0
    finally:
        if qemu.poll() is None:
            qemu.terminate()
        qemu.wait(LIMIT_S)


def test_what_is_missing_is_said(tmp_path):
    said, status = run("--", "gdbtarge")
    assert status == 1 and said.startswith("debug: no program gdbtarge: "), said
    assert "Is it gdbtarget" in said, said
    said, status = run("--attach=/nowhere/sock")
    assert (status, said) == (1, "debug: no kernel listens at /nowhere/sock; start one with "
                              "tools/qemu --debug --gdb=/nowhere/sock\n")
    (BUILD / "gdb.json").unlink()
    said, status = run("--attach")
    assert (status, said) == (1, "debug: no kernel waits for gdb; start one with tools/qemu --debug "
                              "--gdb\n")
    said, status = run(GDB="no-such-gdb")
    assert (status, said) == (1, "debug: no no-such-gdb here; run ./setup\n")
    small = tmp_path / "gdb"
    small.write_text("#!/bin/sh\necho 'Scripting in the \"Python\" language is not supported.'\n")
    small.chmod(0o755)
    said, status = run(GDB=str(small))
    assert status == 1 and "runs no Python" in said and "./setup" in said, said
    said, status = run("--disk", "/nowhere/image")
    assert status == 1 and "no image at /nowhere/image" in said, said


def test_vscode_gets_files_that_hold_together(tmp_path):
    tool = [sys.executable, "-B", ROOT / "tools" / "vscode", tmp_path]
    for _ in range(2):  # its own files it writes anew
        subprocess.run(tool, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    launch = json.loads((tmp_path / ".vscode" / "launch.json").read_text(encoding="utf-8"))
    tasks = json.loads((tmp_path / ".vscode" / "tasks.json").read_text(encoding="utf-8"))
    labels = {task["label"]: task for task in tasks["tasks"]}
    assert len(launch["configurations"]) == 2
    for configuration in launch["configurations"]:
        start_task = labels[configuration["preLaunchTask"]]
        assert f"--gdb={configuration['miDebuggerServerAddress']}" in start_task["args"]
        assert configuration["postDebugTask"] in labels
        assert configuration["program"].endswith("/debug/faultline.elf")
        for command in configuration["setupCommands"]:
            if command["text"].startswith("source "):
                assert (ROOT / command["text"].split("${workspaceFolder}/")[1]).is_file()
    asked = re.findall(r"\$\{input:(\w+)\}", json.dumps([launch, tasks]))
    assert set(asked) == {entry["id"] for entry in launch["inputs"] + tasks["inputs"]}

    (tmp_path / ".vscode" / "launch.json").write_text("{}")
    done = subprocess.run(tool, cwd=ROOT, check=False, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "not of this tool's making" in done.stderr
    assert (tmp_path / ".vscode" / "launch.json").read_text() == "{}"

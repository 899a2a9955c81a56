"""A recorded run, played again under gdb: from the end of a program back to its third fault, then to
the store that gave a variable its value, and to where the recording begins."""

import os
import re
import signal
import subprocess
import sys

import pytest

from session import BEGIN, BUILD, ROOT, Session, tried

DEBUG = [sys.executable, "-B", str(ROOT / "tools" / "debug")]
LIMIT_S = 120
PAGE = 4096
STEPS = [
    ("end", ["continue", "continue", 'printf "status = %d\\n", status']),
    *((f"fault {n}", ["fl last-fault", 'printf "addr = %#lx\\n", addr', "bt",
                      "frame function touch", 'printf "number = %d\\n", number',
                      'printf "page = %#lx\\n", page', 'printf "touched = %d\\n", touched'])
      for n in (5, 4, 3)),
    ("wrote", ["fl who-wrote chosen", "bt", 'printf "rip = %#lx\\n", $rip',
               'printf "entry = %#lx\\n", (unsigned long)&choose', 'printf "chosen = %d\\n", chosen']),
    ("forward", ["stepi", 'printf "chosen = %d\\n", chosen']),
    ("behind", ["fl who-wrote chosen"]),
    ("watch", ["watch chosen", "reverse-continue", "reverse-stepi",
               'printf "value = %d\\n", value', 'printf "chosen = %d\\n", chosen', "delete"]),
    ("never", [tried("fl who-wrote never_written"), 'printf "rip = %#lx\\n", $rip']),
    ("beginning", [tried("fl last-fault"), tried("fl who-wrote"), tried("fl last-fault for"),
                   tried("fl who-wrote no_such_thing"), tried("fl who-wrote 0x123456"),
                   tried("fl who-wrote cmdline")]),
    ("help", ["help fl last-fault", "help fl who-wrote"]),
]


def run(*arguments, flags=""):
    """(exit status, what it said). QEMU that hangs while gdb goes back ends with the time limit."""
    process = subprocess.Popen([*DEBUG, *arguments], cwd=ROOT, text=True, stdin=subprocess.DEVNULL,
                               env={**os.environ, "GDBFLAGS": flags}, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    try:
        said = process.communicate(timeout=LIMIT_S)[0]
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
    return process.returncode, said


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A recording of the program."""
    folder = tmp_path_factory.mktemp("replay")
    status, said = run(f"--record={folder}/run", "--disk", str(BUILD / "small.img"), "--log",
                       f"{folder}/log", "--append", "vm.map_around_bytes=4096 vm.readahead=none",
                       "--", "replayed")
    assert status == 0 and said.startswith("replayed\n"), said
    assert "now make replay" in said, said
    return folder


@pytest.fixture(scope="module")
def session(folder):
    lines = ["set confirm off", "set width 0"]
    for name, commands in STEPS:
        lines += [f"echo \\n{BEGIN}{name}\\n", *commands]
    (folder / "script").write_text("\n".join(lines) + "\n")
    status, said = run(f"--replay={folder}/run", flags=f"-batch -x {folder}/script")
    assert status == 0 and "Traceback" not in said, said
    return Session(said)


def test_the_same_run_is_played_again(folder):
    done = subprocess.run([sys.executable, "-B", ROOT / "tools" / "qemu", "--replay", folder / "run",
                           "--log", folder / "log2"], cwd=ROOT, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, check=False, timeout=LIMIT_S)
    assert (done.returncode, done.stdout) == (0, "replayed\n")
    assert (folder / "log2").read_bytes() == (folder / "log").read_bytes()  # with its times


def test_from_the_end_back_to_the_third_fault(session):
    assert session.value("end", "status") == 0
    for n in (5, 4, 3):
        step = f"fault {n}"
        assert [name for name in session.frames(step)
                if name in ("fault_user", "page_fault_trap", "touch", "main")][:4] == \
            ["fault_user", "page_fault_trap", "touch", "main"], session.output
        assert session.value(step, "number") == session.value(step, "touched") == n
        assert session.value(step, "addr") == session.value(step, "page")
        said = session.text(step)
        assert re.search(rf"^page fault of \d+ replayed: read of {session.value(step, 'addr'):#x}$",
                         said, re.MULTILINE), said
        assert re.search(r"^  in +touch, tests/user/replayed.c:\d+$", said, re.MULTILINE), said
    assert session.value("fault 5", "addr") - session.value("fault 3", "addr") == 2 * PAGE


def test_then_to_the_store_that_set_a_variable(session):
    said = session.text("wrote")
    assert re.search(r"^chosen at 0x[0-9a-f]+: 41 -> 42$", said, re.MULTILINE), said
    assert re.search(r"^  instruction 0x[0-9a-f]+ <choose.*>:\tmov .*<chosen>$", said,
                     re.MULTILINE), said
    assert re.search(r"^  function +choose, tests/user/replayed.c:\d+$", said, re.MULTILINE), said
    assert re.search(r"^  task +\d+ replayed$", said, re.MULTILINE), said
    assert session.frames("wrote")[:2] == ["choose", "main"], said
    assert session.value("wrote", "rip") == session.value("wrote", "entry")
    assert session.value("wrote", "chosen") == 41
    assert session.value("forward", "chosen") == 42
    assert re.search(r"^chosen at 0x[0-9a-f]+: 41 -> 42$", session.text("behind"), re.MULTILINE), \
        "right behind the store it is not seen"


def test_gdbs_own_watchpoints_work_backwards(session):
    """From the store of choose(42) to the one of choose(41)."""
    assert session.value("watch", "value") == 41, session.output
    assert session.value("watch", "chosen") == 7, session.output


def test_where_the_recording_begins(session):
    assert re.search(r"^refused: fl who-wrote: no instruction has written never_written before this: "
                     r"here the recording begins; its value came with its page$",
                     session.text("never"), re.MULTILINE), session.output
    assert session.value("never", "rip") == 0xfff0
    said = [line for line in session.text("beginning").splitlines() if line.startswith("refused: ")]
    assert said[0] == "refused: fl last-fault: no page fault before this: here the recording begins"
    assert said[1].startswith("refused: Usage: fl who-wrote ADDR|EXPR")
    assert said[2] == "refused: Usage: fl last-fault [for PROG]"
    assert said[3].startswith('refused: fl who-wrote: No symbol "no_such_thing"')
    assert said[5].startswith("refused: fl who-wrote: cmdline has "), said
    for name in ("last-fault", "who-wrote"):
        assert re.search(rf"^fl {name} ", session.text("help"), re.MULTILINE), session.output


def test_what_cannot_be_replayed_is_said(folder, tmp_path):
    status, said = run(f"--replay={tmp_path}/none")
    assert status == 1 and said.startswith("debug: no recording in "), said
    assert 'make record PROG="..." makes one' in said, said
    for options in (["--smp", "2"], ["--iso"], ["--write"], ["--ramdisk", str(BUILD / "small.img")]):
        status, said = run(f"--record={tmp_path}/run", *options)
        assert status == 72 and "--record " in said, said
    image = tmp_path / "image"
    image.write_bytes(b"another")
    (tmp_path / "run").mkdir(exist_ok=True)
    (tmp_path / "run" / "replay.bin").touch()
    text = (folder / "run" / "run.json").read_text(encoding="utf-8")
    (tmp_path / "run" / "run.json").write_text(text.replace(str(BUILD / "small.img"), str(image)))
    status, said = run(f"--replay={tmp_path}/run")
    assert status == 1 and "has changed since" in said and "record it again" in said, said

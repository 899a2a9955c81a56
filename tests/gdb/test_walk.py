"""docs/walk.md is a session: its commands are run in their order, and what gdb says is compared with
what stands there."""

import os
import re
import subprocess
import sys

import pytest

from session import BUILD, ROOT

LIMIT_S = 200
MARK = "=== walk "
REST = "…"  # anything in a line; a line of its own: any lines

# What another build or image may have otherwise.
VARIABLE = (
    (r"0x[0-9a-f]+", "0x#"), (r"\b[0-9a-f]{8,12}-[0-9a-f]{8,12}\b", "#-#"), (r"^\$\d+ = ", "$# = "),
    (r"^(0x# +)?\d+\s+", r"\1# "), (r"(\.[chS]):\d+", r"\1:#"), (r"(\.[ch], line) \d+", r"\1 #"),
    (r"\b(frame|inode|fe:00|breakpoint|is \$|Breakpoint) ?-?[\d.]+", r"\1 #"), (r"\+\d+>?", "+#"),
    (r"sectors \d+ to \d+", "sectors # to #"), (r"\d+\.\d{6} s\b", "# s"), (r"@entry=\d+", "@entry=#"), (r" +", " "),
    (r"\d+ sectors", "# sectors"), (r"\d+ reads", "# reads"), (r"page \d{3,} of inode", "page # of inode"),
    (r"^#\d+ (0x# in )?", "#: "), (r"\[[ \d]+\]", "[#]"),
)


def fixed(line):
    line = line.replace("\t", " ")
    for pattern, by in VARIABLE:
        line = re.sub(pattern, by, line)
    return line.strip()


def steps_of(chapter):
    """[(command, lines it is to say)] of the blocks marked exact; of the others [(command, None)]."""
    steps = []
    for words, block in re.findall(r"^```gdb *(.*)\n((?:.*\n)*?)```$", chapter, re.MULTILINE):
        for line in block.splitlines():
            if line.startswith("(gdb) "):
                steps.append((line[len("(gdb) "):], [] if words == "exact" else None))
            elif steps[-1][1] is not None:
                steps[-1][1].append(line)
    return steps


def matches(expected, said):
    """Line by line; a line REST stands for any number of them."""
    if not expected:
        return not said
    if expected[0].strip() == REST:
        return any(matches(expected[1:], said[i:]) for i in range(len(said) + 1))
    if not said:
        return False
    pattern = ".*".join(re.escape(part) for part in fixed(expected[0]).split(REST))
    return re.fullmatch(pattern, fixed(said[0])) is not None and matches(expected[1:], said[1:])


def lines_of(text):
    return [line for line in text.splitlines() if line.strip()]


def run(commands, folder):
    """What each command says."""
    recorded = subprocess.run(
        [sys.executable, "tools/debug", f"--record={folder}/run", "--disk", BUILD / "small.img", "--", "goback"],
        cwd=ROOT, capture_output=True, stdin=subprocess.DEVNULL, text=True, check=False, timeout=LIMIT_S)
    assert recorded.returncode == 0, recorded.stderr
    script = folder / "script"
    script.write_text("".join(f"echo \\n{MARK}{i}\\n\n{command}\n" for i, command in enumerate(commands)))
    done = subprocess.run(["timeout", "-k", "2", str(LIMIT_S), sys.executable, "tools/debug",
                           f"--replay={folder}/run"], cwd=ROOT, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          env=dict(os.environ, GDBFLAGS=f"-iex 'set width 0' -batch -x {script}"))
    parts = re.split(rf"^{MARK}\d+\n", done.stdout, flags=re.MULTILINE)
    assert len(parts) == len(commands) + 1, done.stdout
    parts[-1] = re.split(r"\[Inferior 1|Remote communication", parts[-1])[0]
    return parts[1:]


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    """[(command, lines it is to say or None, lines it says)]"""
    steps = steps_of((ROOT / "docs" / "walk.md").read_text(encoding="utf-8"))
    said = run([command for command, _ in steps], tmp_path_factory.mktemp("walk"))
    return [(command, expected, lines_of(text)) for (command, expected), text in zip(steps, said)]


def test_gdb_says_what_stands_there(walk):
    wrong = [f"(gdb) {command}\n" + "\n".join(said) for command, expected, said in walk
             if expected is not None and not matches(lines_of("\n".join(expected)), said)]
    assert not wrong, "\n\n".join(["Other than in docs/walk.md:", *wrong])


def test_it_is_a_walk_through_all_rooms(walk):
    said = "\n".join(line for _, _, lines in walk for line in lines)
    for place in ("kernel/cpu/trap.c", "mm/fault.c", "mm/fault_trap.c", "mm/readahead", "fs/ext2/",
                  "drivers/block/", "drivers/virtio/", "kernel/sched/", "tests/user/goback.c"):
        assert place in said, place
    assert sum(expected is not None for _, expected, _ in walk) > 40
    assert not any("Traceback" in line for _, _, lines in walk for line in lines)


def test_the_comparison_can_fail():
    assert matches(["a 0x12 …", "…", "z"], ["a 0x34 b", "c", "d", "z"])
    assert matches(["…"], []) and matches(["1\tx"], ["22\tx"])
    assert not matches(["attempt 1: waits"], ["attempt 2: waits"])
    assert not matches(["a"], ["a", "b"]) and not matches(["a", "b"], ["a"])
    assert not matches(["size = 32"], ["size = 64"])

"""Scripted gdb sessions against the debug kernel."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / (os.environ.get("BUILD") or "build")
GDB = shutil.which("gdb") or shutil.which("x86_64-elf-gdb")
KERNEL = BUILD / "debug" / "faultline.elf"
START_LIMIT_S = 20
SESSION_LIMIT_S = 90

SETTINGS = ["set pagination off", "set confirm off", "set width 0", "set print frame-arguments all"]
BEGIN = "=== "


class Session:
    """What gdb said, step by step."""

    def __init__(self, output):
        self.output = output
        self.steps = {}
        name = None
        for line in output.splitlines():
            if line.startswith(BEGIN):
                name = line[len(BEGIN):]
                self.steps[name] = []
            elif name:
                self.steps[name].append(line)

    def text(self, step):
        assert step in self.steps, self.output
        return "\n".join(self.steps[step])

    def frames(self, step):
        """The functions of its backtrace, innermost first."""
        return re.findall(r"^#\d+\s+(?:0x[0-9a-f]+ in )?([\w.]+) \(", self.text(step), re.MULTILINE)

    def value(self, step, name):
        """What a line `name = value` says, as a number."""
        match = re.search(rf"^{re.escape(name)} = (0x[0-9a-f]+|-?\d+)", self.text(step), re.MULTILINE)
        assert match, f"{name} is not in step {step}:\n{self.output}"
        return int(match.group(1), 0)


def tried(command):
    """A command that may fail: its message, after `refused: `, and the session goes on."""
    return (f"python\ntry:\n    gdb.execute({command!r})\n"
            "except gdb.error as error:\n    print('refused:', error)\nend")


def run_session(folder, program, steps, append="", options=()):
    """
    Boots the debug kernel for a program of the image and runs gdb commands.
      steps    (name, [commands]) in order
      options  further ones of tools/qemu
    """
    sock, script = folder / "gdb", folder / "commands"
    lines = [f"target remote {sock}"]
    for name, commands in steps:
        lines += [f"echo \\n{BEGIN}{name}\\n", *commands]
    script.write_text("\n".join(lines + ["kill"]) + "\n")
    qemu = subprocess.Popen(
        [sys.executable, ROOT / "tools" / "qemu", "--debug", f"--gdb={sock}",
         "--disk", BUILD / "small.img", "--log", folder / "log", "--timeout", "120",
         "--append", append, *options, *(["--", *program] if program else [])],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + START_LIMIT_S
        while not sock.exists():
            assert qemu.poll() is None and time.monotonic() < end, qemu.stdout.read()
            time.sleep(0.05)
        command = [GDB, "-nx", "-q", "-batch"]
        for setting in SETTINGS:
            command += ["-iex", setting]
        done = subprocess.run([*command, "-x", script, KERNEL], cwd=ROOT, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, timeout=SESSION_LIMIT_S)
        return Session(done.stdout)
    finally:
        if qemu.poll() is None:
            qemu.terminate()
        qemu.communicate(timeout=10)
